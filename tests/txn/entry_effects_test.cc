#include "txn/entry_effects.h"

#include <algorithm>

#include "objects/derived_path.h"
#include "refs/ref_operations.h"
#include "storage/check.h"
#include "tests/txn/crash_sweep.h"
#include "tests/txn/world.h"
#include "storage/metadata_store.h"
#include "wal/local_replicator.h"
#include "wal/manifest_codec.h"
#include "wal/log_queue.h"
#include "wal/payload_store.h"
#include "wal/positions.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using txn::ValidateManifest;

RepositoryId SomeId() { return *RepositoryId::FromHex("00112233445566778899aabbccddeeff"); }

wal::Manifest With(wal::Operation operation) {
  wal::Manifest manifest;
  manifest.transaction_id = *TransactionId::FromHex("0123456789abcdef0123456789abcdef");
  manifest.operations.push_back(std::move(operation));
  return manifest;
}

wal::PutFile Put(const std::string& path) { return wal::PutFile{SomeId(), path, 0644, {"x", {}}}; }

// Hand-made manifests, judged as recovery does before the first effect of an entry.
TEST(ValidateManifestTest, RefusesRemovedObjectsWithoutARepositoryOrIds) {
  const auto removal = [](const RepositoryId& id, std::vector<std::string> oids) {
    wal::Manifest manifest = With(Put("config"));
    manifest.note.objects_removed.push_back({id, std::move(oids)});
    return ValidateManifest(manifest);
  };
  EXPECT_THAT(removal(SomeId(), {std::string(20, 'a'), std::string(20, 'b')}), IsOk());
  EXPECT_THAT(removal(RepositoryId(), {std::string(20, 'a')}), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(removal(SomeId(), {}), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(removal(SomeId(), {std::string(20, 'a'), "short"}), StatusIs(StatusCode::kDataLoss));
}

// C042, C043: what the API refuses cannot come in through the log either. [FSR-03]
TEST(ValidateManifestTest, RefusesPathsAndNamesThatNoApiWouldHaveTaken) {
  for (const char* path : {"../x", "/etc/passwd", "a/../../b", "a//b", "", ".", "x/..", "objects/pack/p", "logs/HEAD",
                           "config.lock", "gc.pid", "FETCH_HEAD"}) {
    EXPECT_THAT(ValidateManifest(With(Put(path))), StatusIs(StatusCode::kDataLoss)) << path;
  }
  EXPECT_THAT(ValidateManifest(With(wal::CreateRepository{SomeId(), "a/../b", 7, ObjectFormat::kSha1, "refs/heads/main"})),
              StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(With(wal::CreateRepository{SomeId(), "a", 7, ObjectFormat::kSha1, "refs/heads/x.lock"})),
              StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(With(wal::CreateRepository{SomeId(), "a", 0, ObjectFormat::kSha1, "refs/heads/main"})),
              StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(With(wal::EnsureGroup{"@id"})), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(With(wal::AddPack{SomeId(), "pack-../../x", {}, {}, {}})), StatusIs(StatusCode::kDataLoss));
  wal::PutFile setuid = Put("hooks/x");
  setuid.mode = 04755;
  EXPECT_THAT(ValidateManifest(With(setuid)), StatusIs(StatusCode::kDataLoss));
}

TEST(ValidateManifestTest, TakesDerivedFilesAsPayloadAtTheirOwnPathsAlone) {
  const std::string chain = "objects/info/commit-graphs/commit-graph-chain";
  const wal::PayloadFile payload{0, 3, std::string(32, 'd')};
  const auto put = [&](const std::string& path) { return wal::ReplaceDerived{SomeId(), path, false, {"", payload}}; };
  EXPECT_THAT(ValidateManifest(With(put(chain))), IsOk());
  EXPECT_THAT(ValidateManifest(With(wal::ReplaceDerived{SomeId(), chain, true, {}})), IsOk());
  const wal::Operation malformed[] = {
      put("objects/info/alternates"),
      put("objects/pack/pack-" + std::string(40, 'a') + ".idx"),
      put("objects/pack/../pack/multi-pack-index"),
      put("HEAD"),
      wal::ReplaceDerived{SomeId(), chain, false, {"abc", {}}},
      wal::ReplaceDerived{SomeId(), chain, false, {}},
      wal::ReplaceDerived{SomeId(), chain, true, {"", payload}},
  };
  for (const wal::Operation& operation : malformed) {
    EXPECT_THAT(ValidateManifest(With(operation)), StatusIs(StatusCode::kDataLoss));
  }
}

TEST(ValidateManifestTest, RefusesToAdoptFromOrReleaseToTheStoresOwnDirectories) {
  const auto adopt = [](const std::string& from, const std::string& aside) {
    return With(wal::CreateRepository{SomeId(), "a", 7, ObjectFormat::kSha1, "refs/heads/main", from, {aside}});
  };
  const auto release = [](const std::string& to, bool purge) {
    return With(wal::RemoveRepository{SomeId(), "a", {7, ObjectFormat::kSha1, {}, purge ? 5 : 0}, purge, to});
  };
  EXPECT_THAT(ValidateManifest(adopt("incoming/a.git", "logs")), IsOk());
  EXPECT_THAT(ValidateManifest(adopt("lost-found/a.1", "logs")), IsOk());
  EXPECT_THAT(ValidateManifest(release("incoming/a.git", true)), IsOk());
  for (const char* ours : {"log", "repositories", "repositories/@id/aa/x.git", "staging/x", "../x", "lost-found"}) {
    EXPECT_THAT(ValidateManifest(adopt(ours, "logs")), StatusIs(StatusCode::kDataLoss)) << ours;
    EXPECT_THAT(ValidateManifest(release(ours, true)), StatusIs(StatusCode::kDataLoss)) << ours;
  }
  EXPECT_THAT(ValidateManifest(adopt("incoming/a.git", "../x")), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(adopt("incoming/a.git", "")), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(adopt("", "logs")), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(ValidateManifest(release("incoming/a.git", false)), StatusIs(StatusCode::kDataLoss));
}

TEST(ValidateManifestTest, RefusesFactsOfARepositoryThatCannotBe) {
  const RepositoryId other = *RepositoryId::FromHex("ffffffffffffffffffffffffffffffff");
  const wal::RowFacts facts{7, ObjectFormat::kSha1, {other}, 0};
  EXPECT_THAT(ValidateManifest(With(wal::RemoveRepository{SomeId(), "a", facts, false})), IsOk());
  EXPECT_THAT(ValidateManifest(With(wal::SetPath{SomeId(), "b", "a", facts})), IsOk());
  EXPECT_THAT(ValidateManifest(With(wal::LinkAlternate{SomeId(), other, {other}})), IsOk());
  EXPECT_THAT(ValidateManifest(With(wal::UnlinkAlternate{SomeId(), other, {}})), IsOk());
  EXPECT_THAT(ValidateManifest(With(wal::PutKey{0, "pk", ""})), IsOk());
  const wal::Operation malformed[] = {
      wal::RemoveRepository{SomeId(), "../a", facts, false},
      wal::RemoveRepository{SomeId(), "a", facts, true},  // purged, and never removed
      wal::RemoveRepository{SomeId(), "a", {0, ObjectFormat::kSha1, {}, 0}, false},
      wal::RemoveRepository{SomeId(), "a", {7, ObjectFormat::kSha1, {SomeId()}, 0}, false},
      wal::RemoveRepository{SomeId(), "a", {7, ObjectFormat::kSha1, {other, other}, 0}, false},
      wal::SetPath{SomeId(), "b", "", facts},  // brought back, and never removed
      wal::SetPath{SomeId(), "b", "a", {7, ObjectFormat::kSha1, {}, 5}},
      wal::SetPath{SomeId(), "b", "-a", facts},
      wal::RemoveGroup{"a//b"},
      wal::LinkAlternate{SomeId(), SomeId(), {SomeId()}},
      wal::LinkAlternate{SomeId(), other, {}},
      wal::UnlinkAlternate{SomeId(), other, {other}},
      wal::PutKey{0, "", "x"},
      wal::DeleteKey{0, "p"},
  };
  for (const wal::Operation& operation : malformed) {
    EXPECT_THAT(ValidateManifest(With(operation)), StatusIs(StatusCode::kDataLoss)) << operation.index();
  }
}

TEST(ValidateManifestTest, RefusesANoteAndFileOperationsThatDisagree) {
  wal::Manifest manifest = With(Put("info/x"));
  wal::RefChange change;
  change.id = SomeId();
  change.name = "refs/heads/main";
  change.new_value = World::At(1).ToLogged();
  manifest.note.ref_changes.push_back(change);
  EXPECT_THAT(ValidateManifest(manifest), StatusIs(StatusCode::kDataLoss));

  for (wal::Operation& operation : refs::DeriveRefOperations(manifest.note.ref_changes, {})) {
    manifest.operations.push_back(operation);
  }
  EXPECT_THAT(ValidateManifest(manifest), IsOk());

  manifest.note.ref_changes[0].new_value = World::At(2).ToLogged();
  EXPECT_THAT(ValidateManifest(manifest), StatusIs(StatusCode::kDataLoss));
}

// Appends entries by hand to the log of a closed store.
absl::Status AppendByHand(World& world, const std::vector<wal::Manifest>& manifests, bool is_of_later_version = false) {
  storage::FileSystem& fs = world.fs();
  REPOTXN_ASSIGN_OR_RETURN(const auto metadata, storage::MetadataStore::Open(&fs, txn::layout::Metadata()));
  REPOTXN_ASSIGN_OR_RETURN(const std::string stored, metadata->Get(txn::kPositionsKey));
  REPOTXN_ASSIGN_OR_RETURN(const wal::Positions positions, wal::DecodePositions(stored));
  REPOTXN_RETURN_IF_ERROR(metadata->Close());
  wal::LocalReplicator::Options options;
  options.segment_bytes = World::Options().segment_bytes;
  REPOTXN_ASSIGN_OR_RETURN(const auto log, wal::LocalReplicator::Create(&fs, positions.applied, options));
  REPOTXN_ASSIGN_OR_RETURN(const wal::LogTail tail, log->Acquire());
  REPOTXN_RETURN_IF_ERROR(log->PrepareSpace());
  wal::LogQueue queue(log.get(), tail, {});
  absl::Status status;
  for (const wal::Manifest& manifest : manifests) {
    std::string encoded = wal::EncodeManifest(manifest);
    // Its first field is the format level.
    if (is_of_later_version) ++encoded[1];
    REPOTXN_ASSIGN_OR_RETURN(wal::PreparedEntry prepared,
                             wal::PrepareEncodedEntry(manifest.transaction_id, std::move(encoded)));
    std::string dropped;
    wal::LogQueue::Ticket ticket;
    REPOTXN_RETURN_IF_ERROR(queue.Reserve(&prepared, &dropped, &ticket).status());
    queue.AwaitDurable(&ticket, &status);
    REPOTXN_RETURN_IF_ERROR(status);
  }
  return status;
}

TEST(OpeningAStoreTest, RefusesAnEntryOfALaterVersionBeforeItsFirstEffect) {
  World world;
  ASSERT_THAT(world.Open(), IsOk());
  const RepositoryId id = world.Create("r");
  ASSERT_THAT(world.store().Close(), IsOk());
  world.Drop();
  ASSERT_THAT(AppendByHand(world, {With(wal::PutFile{id, "info/x", 0644, {"x", {}}})}, /*is_of_later_version=*/true), IsOk());
  const std::string before = world.fs().DumpTree(txn::layout::Repositories());

  EXPECT_THAT(world.Open(), StatusIs(StatusCode::kUnimplemented));

  EXPECT_EQ(world.fs().DumpTree(txn::layout::Repositories()), before);
}

TEST(OpeningAStoreTest, RefusesAnEntryThatNamesAPathOutsideItsRepository) {
  World world;
  ASSERT_THAT(world.Open(), IsOk());
  const RepositoryId id = world.Create("r");
  ASSERT_THAT(world.store().Close(), IsOk());
  world.Drop();
  ASSERT_THAT(AppendByHand(world, {With(wal::PutFile{id, "../../../STORE", 0644, {"x", {}}})}), IsOk());
  const std::string before = world.fs().DumpTree(txn::layout::Repositories());

  EXPECT_THAT(world.Open(), StatusIs(StatusCode::kDataLoss));

  EXPECT_EQ(world.fs().DumpTree(txn::layout::Repositories()), before);
}

// Two entries that replace the commit-graph of a repository, the second one's layer for the first's, and take the files
// that were there along.
class DerivedRedoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(World::Options()), IsOk());
    id_ = world_.Create("r");
    ASSERT_THAT(storage::WriteFile(world_.fs(), Path(std::string(objects::kCommitGraph)), "legacy"), IsOk());
    ASSERT_THAT(storage::WriteFile(world_.fs(), Path(std::string(objects::kMultiPackIndex)), "index"), IsOk());
    ASSERT_THAT(world_.fs().SyncAll(), IsOk());
    ASSERT_THAT(world_.store().Close(), IsOk());
    world_.Drop();
    wal::Manifest first = Replace('1', 'a'), second = Replace('2', 'b');
    for (const std::string& path : {std::string(objects::kCommitGraph), Layer('a'), std::string(objects::kMultiPackIndex)}) {
      second.operations.push_back(wal::ReplaceDerived{id_, path, true, {}});
    }
    // In any order in the manifest.
    std::reverse(second.operations.begin(), second.operations.end());
    ASSERT_THAT(AppendByHand(world_, {first, second}), IsOk());
  }
  storage::StorePath Path(const std::string& path) { return txn::layout::RepositoryDirectory(id_) / path; }
  static std::string Layer(char hash) {
    return absl::StrCat("objects/info/commit-graphs/graph-", std::string(40, hash), ".graph");
  }
  // Puts a chain of one layer.
  wal::Manifest Replace(char transaction, char layer) {
    wal::Manifest manifest;
    manifest.transaction_id = *TransactionId::FromHex(std::string(32, transaction));
    wal::PayloadStore store(&world_.fs(), txn::layout::Payload());
    auto payload = store.Create(manifest.transaction_id);
    EXPECT_THAT(payload, IsOk());
    const std::pair<std::string, std::string> files[] = {
        {std::string(objects::kCommitGraphChain), std::string(40, layer)}, {Layer(layer), std::string(3000, layer)}};
    for (const auto& [path, content] : files) {
      wal::ReplaceDerived put{id_, path, false, {}};
      put.content.payload = *(*payload)->AddBytes(content);
      manifest.operations.push_back(put);
    }
    EXPECT_THAT((*payload)->Seal(), IsOk());
    return manifest;
  }
  // "" when each file that is named is there.
  std::string Dangling(storage::FileSystem& fs) {
    const auto chain = storage::ReadFile(fs, Path(std::string(objects::kCommitGraphChain)));
    if (!chain.ok()) return "";
    return *storage::Exists(fs, Path(Layer((*chain)[0]))) ? "" : "the chain names a layer that is not there";
  }
  std::string Open() {
    std::string dangling;
    // The disk is asked once the opening is over: it is locked while it calls.
    std::vector<std::unique_ptr<MemoryFileSystem>> states;
    world_.fs().SetMutationHook([&](int64_t, absl::string_view, const storage::StorePath& path) {
      if (path.text().find("commit-graph") == std::string::npos && path.text().find("graph-") == std::string::npos) return;
      states.push_back(world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0}));
    });
    EXPECT_THAT(world_.Open(World::Options()), IsOk());
    world_.fs().SetMutationHook({});
    EXPECT_GE(states.size(), 4u);
    for (const auto& state : states) dangling += Dangling(*state);
    return dangling;
  }
  std::string Fault(MemoryFileSystem& fs) {
    const auto layers = fs.List(Path(std::string(objects::kCommitGraphs)));
    if (!layers.ok() || layers->size() != 2) return "layers";
    const auto layer = storage::ReadFile(fs, Path(Layer('b')));
    if (!layer.ok() || *layer != std::string(3000, 'b')) return "layer";
    if (*storage::Exists(fs, Path(std::string(objects::kCommitGraph)))) return "whole graph";
    if (*storage::Exists(fs, Path(std::string(objects::kMultiPackIndex)))) return "multi-pack-index";
    if (!fs.List(txn::layout::Staging())->empty()) return "staging";
    return Dangling(fs);
  }

  World world_;
  RepositoryId id_;
};

TEST_F(DerivedRedoTest, NamesNoFileThatIsNotThere) {
  EXPECT_EQ(Open(), "");
  EXPECT_EQ(Fault(world_.fs()), "");
}

TEST_F(DerivedRedoTest, WouldNoticeAChainBeforeItsLayer) {
  const PlantedBug bug("txn.chain_before_its_layers");
  EXPECT_NE(Open(), "");
}

TEST_F(DerivedRedoTest, EndsAlikeWhereverARecoveryDies) {
  CrashSweep sweep(&world_.fs());
  sweep.Record([&] { ASSERT_THAT(world_.Open(World::Options()), IsOk()); });
  EXPECT_GT(sweep.images().size(), 20u);
  for (CrashSweep::Image& image : sweep.images()) {
    World world(7);
    world.owned_fs() = std::move(image.fs);
    ASSERT_THAT(world.Open(World::Options()), IsOk()) << image.when;
    EXPECT_EQ(Fault(world.fs()), "") << image.when;
    ASSERT_THAT(world.store().Close(), IsOk()) << image.when;
    EXPECT_EQ(Fault(world.fs()), "") << image.when;
    EXPECT_TRUE(world.fs().List(txn::layout::Payload())->empty()) << image.when;
  }
}

}  // namespace
}  // namespace repotxn::testing
