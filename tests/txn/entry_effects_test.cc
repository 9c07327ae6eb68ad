#include "txn/entry_effects.h"

#include "refs/ref_operations.h"
#include "tests/txn/world.h"
#include "storage/metadata_store.h"
#include "wal/local_replicator.h"
#include "wal/log_queue.h"
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
TEST(ValidateManifestTest, RefusesOperationsThatAreSpecifiedAndNotAppliedYet) {
  const wal::Operation operations[] = {
      wal::ReplaceDerived{SomeId(), "objects/info/commit-graph", true, {}},
  };
  for (const wal::Operation& operation : operations) {
    EXPECT_THAT(ValidateManifest(With(operation)), StatusIs(StatusCode::kUnimplemented)) << operation.index();
  }
  wal::Manifest removal = With(Put("config"));
  removal.note.objects_removed.push_back({SomeId(), {std::string(20, 'a')}});
  EXPECT_THAT(ValidateManifest(removal), StatusIs(StatusCode::kUnimplemented));
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

// Appends an entry by hand to the log of a closed store.
absl::Status AppendByHand(World& world, const wal::Manifest& manifest) {
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
  REPOTXN_ASSIGN_OR_RETURN(wal::PreparedEntry prepared, wal::PrepareEntry(manifest));
  std::string dropped;
  wal::LogQueue::Ticket ticket;
  REPOTXN_RETURN_IF_ERROR(queue.Reserve(&prepared, &dropped, &ticket).status());
  absl::Status status;
  queue.AwaitDurable(&ticket, &status);
  return status;
}

TEST(OpeningAStoreTest, RefusesAnEntryOfALaterVersionBeforeItsFirstEffect) {
  World world;
  ASSERT_THAT(world.Open(), IsOk());
  const RepositoryId id = world.Create("r");
  ASSERT_THAT(world.store().Close(), IsOk());
  world.Drop();
  wal::Manifest later = With(wal::PutFile{id, "info/x", 0644, {"x", {}}});
  later.operations.push_back(wal::ReplaceDerived{id, "objects/info/commit-graph", true, {}});
  ASSERT_THAT(AppendByHand(world, later), IsOk());
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
  ASSERT_THAT(AppendByHand(world, With(wal::PutFile{id, "../../../STORE", 0644, {"x", {}}})), IsOk());
  const std::string before = world.fs().DumpTree(txn::layout::Repositories());

  EXPECT_THAT(world.Open(), StatusIs(StatusCode::kDataLoss));

  EXPECT_EQ(world.fs().DumpTree(txn::layout::Repositories()), before);
}

}  // namespace
}  // namespace repotxn::testing
