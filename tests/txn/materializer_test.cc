#include <atomic>

#include "objects/repository_skeleton.h"
#include "refs/ref_reader.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/hooked_random.h"
#include "tests/txn/world.h"
#include "txn/materializer.h"
#include "txn/staged_objects.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

// What the background brings to disk: the ref files and files of one repository, looked at as Git would.
class MaterializerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = World::Options();
    options_.direct_pack_refs_min = 2;
    fault_ = std::make_unique<FaultFileSystem>(&world_.fs());
    ASSERT_THAT(world_.OpenIn({fault_.get(), &world_.clock(), &random_}, options_), IsOk());
    id_ = world_.Create("r");
    directory_ = txn::layout::RepositoryDirectory(id_);
  }
  void TearDown() override { world_.Drop(); }

  CommitResult Set(absl::string_view branch, int n) { return world_.Set(id_, Branch(branch), World::At(n)); }
  CommitResult Erase(absl::string_view branch) {
    return world_.Set(id_, Branch(branch), refs::RefValue::Absent());
  }
  // Sets several branches in one transaction.
  CommitResult SetAll(const std::vector<std::string>& branches, int n) {
    return world_.store().Run({}, [&](Transaction& txn) {
      absl::Status status;
      for (const std::string& branch : branches) {
        status.Update(txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = World::At(n)}));
      }
      return status;
    });
  }
  std::string Loose(absl::string_view branch) {
    const auto content = storage::ReadFile(world_.fs(), directory_ / "refs/heads" / branch);
    return content.ok() ? content->substr(0, 40) : "";
  }
  std::string Packed() {
    const auto content = storage::ReadFile(world_.fs(), directory_ / "packed-refs");
    return content.ok() ? *content : "";
  }
  std::string PackedValue(absl::string_view branch) {
    const std::string packed = Packed();
    const size_t at = packed.find(absl::StrCat(" refs/heads/", branch, "\n"));
    return at == std::string::npos ? "" : packed.substr(at - 40, 40);
  }
  // As Git reads it: loose over packed.
  std::string Shown(absl::string_view branch) {
    const std::string loose = Loose(branch);
    return loose.empty() ? PackedValue(branch) : loose;
  }
  static std::string Hex(int n) { return MakeCommit(n).oid.ToHex(); }
  absl::Status Reopen() {
    REPOTXN_RETURN_IF_ERROR(world_.store().Close());
    world_.Drop();
    return world_.OpenIn({fault_.get(), &world_.clock(), &random_}, options_);
  }

  World world_;
  HookedRandom random_{3};
  std::unique_ptr<FaultFileSystem> fault_;
  txn::StoreOptions options_;
  RepositoryId id_;
  storage::StorePath directory_;
};

// A12
TEST_F(MaterializerTest, ShowsABatchedUpdateThroughAnOlderLooseFile) {
  ASSERT_TRUE(Set("x", 5).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  ASSERT_EQ(Loose("x"), Hex(5));

  ASSERT_TRUE(SetAll({"x", "y", "z"}, 6).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());

  EXPECT_EQ(Loose("x"), "");
  EXPECT_EQ(PackedValue("x"), Hex(6));
  ASSERT_THAT(Reopen(), IsOk());
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("x"))), "c6");
}

// A12, C022, C028
TEST_F(MaterializerTest, DoesNotResurrectARefThatWasPackedAfterItsDeletionWasStaged) {
  options_.loose_refs_max = 0;
  ASSERT_THAT(Reopen(), IsOk());
  ASSERT_TRUE(Set("x", 5).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  auto erase = world_.Begin();
  ASSERT_THAT(erase->UpdateRef(id_, {.name = Branch("x"), .expected = {}, .value = refs::RefValue::Absent()}), IsOk());
  ASSERT_TRUE(Set("other", 1).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_EQ(PackedValue("x"), Hex(5));

  ASSERT_TRUE(erase->Commit().committed());

  EXPECT_TRUE(world_.Read(id_, Branch("x")).is_absent());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_EQ(Shown("x"), "");
  ASSERT_THAT(Reopen(), IsOk());
  EXPECT_TRUE(world_.Read(id_, Branch("x")).is_absent());
}

// A12, C020: whoever looks between two calls sees the value before or after, never an older one.
TEST_F(MaterializerTest, NeverShowsAnOlderValueBetweenTwoSteps) {
  ASSERT_TRUE(SetAll({"erased", "packed", "loose"}, 1).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  for (const char* branch : {"erased", "packed", "loose"}) ASSERT_TRUE(Set(branch, 2).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  ASSERT_TRUE(Erase("erased").committed());
  ASSERT_TRUE(SetAll({"packed", "p2", "p3"}, 3).committed());
  ASSERT_TRUE(Set("loose", 3).committed());
  std::map<std::string, std::set<std::string>> seen;
  int calls = 0;

  fault_->SetWatcher([&](FileOperation, const storage::StorePath&) {
    ++calls;
    for (const char* branch : {"erased", "packed", "loose"}) seen[branch].insert(Shown(branch));
  });
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  fault_->SetWatcher({});

  EXPECT_GT(calls, 4);
  EXPECT_EQ(seen["erased"], (std::set<std::string>{Hex(2), ""}));
  EXPECT_EQ(seen["packed"], (std::set<std::string>{Hex(2), Hex(3)}));
  EXPECT_THAT(seen["loose"], ::testing::Not(::testing::Contains(Hex(1))));
}

TEST_F(MaterializerTest, PacksACrowdedRepositoryWithPeeledTags) {
  const LooseObject tag = MakeLooseObject(
      "tag", absl::StrCat("object ", Hex(4), "\ntype commit\ntag v1\ntagger A <a@example.org> 1 +0000\n\nv1\n"));
  world_.PutObject(id_, tag);
  ASSERT_TRUE(world_.Set(id_, Ref("refs/tags/v1"), refs::RefValue::Object(tag.oid)).committed());
  for (int n = 0; n < 15; ++n) ASSERT_TRUE(Set(absl::StrCat("b", n), n % 10).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_EQ(world_.store().Metrics().ref_packings, 0);
  ASSERT_EQ(Loose("b3"), Hex(3));

  ASSERT_TRUE(Set("b15", 5).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());

  EXPECT_EQ(world_.store().Metrics().ref_packings, 1);
  EXPECT_THAT(Packed(), ::testing::StartsWith("# pack-refs with: peeled fully-peeled sorted"));
  EXPECT_THAT(Packed(), ::testing::HasSubstr(absl::StrCat(tag.oid.ToHex(), " refs/tags/v1\n^", Hex(4), "\n")));
  for (int n = 0; n < 16; ++n) {
    EXPECT_EQ(Loose(absl::StrCat("b", n)), "");
    EXPECT_EQ(PackedValue(absl::StrCat("b", n)), Hex(n < 15 ? n % 10 : 5));
  }
  const std::string refs = world_.Refs(id_);
  ASSERT_THAT(Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), refs);
}

// B5: a packing never wins over a write that came between its staging and its commit. [C022, C029]
TEST_F(MaterializerTest, DropsARefFromAPackingThatWasWrittenMeanwhile) {
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(Set(absl::StrCat("b", n), 1).committed());
  random_.AtNextDraw([&] {
    ASSERT_TRUE(Set("b7", 2).committed());
    ASSERT_TRUE(Erase("b8").committed());
  });

  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());

  ASSERT_EQ(world_.store().Metrics().ref_packings, 1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(World::Name(world_.Read(id_, Branch("b7"))), "c2");
    EXPECT_TRUE(world_.Read(id_, Branch("b8")).is_absent());
    EXPECT_EQ(Shown("b7"), Hex(2));
    EXPECT_EQ(Shown("b8"), "");
    EXPECT_EQ(PackedValue("b9"), Hex(1));
    if (round == 0) {
      auto crashed = world_.fs().CrashClone({CrashSurvival::kNothing, 0, 0});
      World again;
      again.owned_fs() = std::move(crashed);
      ASSERT_THAT(again.Open(), IsOk());
      EXPECT_EQ(World::Name(again.Read(id_, Branch("b7"))), "c2");
      EXPECT_TRUE(again.Read(id_, Branch("b8")).is_absent());
    }
    if (round == 1) {
      ASSERT_THAT(Reopen(), IsOk());
    }
  }
}

// C013: an edit of packed-refs is in the log, its other lines are nowhere but in the file that it replaces.
TEST_F(MaterializerTest, KeepsTheOtherLinesOfPackedRefsThroughACrash) {
  ASSERT_TRUE(SetAll({"p", "q", "r"}, 1).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_TRUE(SetAll({"x", "y", "z"}, 2).committed());
  ASSERT_TRUE(Erase("q").committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  const std::string refs = world_.Refs(id_);

  for (uint64_t seed = 0; seed < 16; ++seed) {
    World world;
    world.owned_fs() = world_.fs().CrashClone({CrashSurvival::kRandom, seed, 0});
    ASSERT_THAT(world.Open(), IsOk());
    EXPECT_EQ(world.Refs(id_), refs) << seed;
  }
}

TEST_F(MaterializerTest, WritesManyRefsOfOneTransactionStraightToPackedRefs) {
  options_.direct_pack_refs_min = 64;
  ASSERT_THAT(Reopen(), IsOk());
  std::vector<std::string> few, many;
  for (int n = 0; n < 64; ++n) few.push_back(absl::StrCat("few/", n));
  for (int n = 0; n < 65; ++n) many.push_back(absl::StrCat("many/", n));
  ASSERT_TRUE(SetAll(many, 1).committed());
  ASSERT_TRUE(SetAll(few, 2).committed());

  ASSERT_THAT(world_.store().Materialize(), IsOk());

  EXPECT_EQ(Loose("many/3"), "");
  EXPECT_EQ(PackedValue("many/3"), Hex(1));
  EXPECT_EQ(Loose("few/3"), Hex(2));
}

// B6, C002, C036
TEST_F(MaterializerTest, MovesUnknownThingsInTheWayToLostFound) {
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  MemoryFileSystem& fs = world_.fs();
  const storage::StorePath heads = directory_ / "refs/heads";
  ASSERT_THAT(storage::WriteFile(fs, heads / "a", "what somebody put here"), IsOk());
  ASSERT_THAT(storage::MakeDirectories(fs, heads / "empty/below"), IsOk());
  ASSERT_THAT(storage::MakeDirectories(fs, heads / "stale"), IsOk());
  ASSERT_THAT(storage::WriteFile(fs, heads / "stale/x.lock", "left by a process that died"), IsOk());
  ASSERT_THAT(storage::MakeDirectories(fs, directory_ / "info"), IsOk());
  ASSERT_THAT(storage::WriteFile(fs, directory_ / "info/refs", "unknown"), IsOk());

  for (const char* branch : {"a/b", "empty", "stale", "fine"}) ASSERT_TRUE(Set(branch, 1).committed()) << branch;
  ASSERT_THAT(world_.store().Materialize(), IsOk());

  for (const char* branch : {"a/b", "empty", "stale", "fine"}) EXPECT_EQ(Loose(branch), Hex(1)) << branch;
  std::string found;
  ASSERT_OK_AND_ASSIGN(const auto entries, fs.List(txn::layout::LostFound()));
  for (const auto& entry : entries) {
    const auto content = storage::ReadFile(fs, txn::layout::LostFound() / entry.name);
    absl::StrAppend(&found, content.ok() ? *content : "directory", "; ");
  }
  EXPECT_THAT(found, ::testing::HasSubstr("what somebody put here"));
  EXPECT_THAT(fs.DumpTree(txn::layout::LostFound()), ::testing::HasSubstr("x.lock"));
  EXPECT_THAT(storage::ReadFile(fs, directory_ / "info/refs"), IsOkAndHolds("unknown"));
}

// A batch that failed half way leaves the disk between two states: the next must not take it for the old one.
TEST_F(MaterializerTest, WritesTheDiskRightAfterABatchThatFailedHalfWay) {
  ASSERT_TRUE(Set("a", 1).committed());
  ASSERT_TRUE(SetAll({"p", "q", "z"}, 1).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  ASSERT_TRUE(Set("a", 2).committed());
  ASSERT_TRUE(SetAll({"p", "q", "s"}, 2).committed());
  ASSERT_TRUE(Set("b", 2).committed());
  fault_->AddRule({.operation = FileOperation::kRename,
                   .path_suffix = "refs/heads/b",
                   .status = absl::ResourceExhaustedError("no space left on device"),
                   .is_sticky = true});
  ASSERT_FALSE(world_.store().Materialize().ok());
  fault_->ClearRules();
  ASSERT_EQ(Loose("a"), Hex(2));
  ASSERT_EQ(PackedValue("p"), Hex(2));

  ASSERT_TRUE(Set("a", 1).committed());
  ASSERT_TRUE(SetAll({"p", "q", "z"}, 1).committed());
  ASSERT_TRUE(Erase("s").committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());

  EXPECT_EQ(Loose("a"), Hex(1));
  EXPECT_EQ(Loose("b"), Hex(2));
  EXPECT_EQ(Shown("p"), Hex(1));
  EXPECT_EQ(Shown("s"), "");
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("a"))), "c1");
}

// A13 (a), (c) [CORE-25]
TEST_F(MaterializerTest, KeepsFilesAndListingsOfAnOpenSnapshot) {
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "info/kept", {"old", 0644});
    status.Update(txn.PutFile(id_, "info/removed", {"removed", 0600}));
    return status;
  }).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  auto reader = world_.Begin();
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "info/kept", {"new", 0644});
    status.Update(txn.RemoveFile(id_, "info/removed"));
    status.Update(txn.PutFile(id_, "made/below/file", {"x", 0644}));
    return status;
  }).committed());

  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(reader->ReadFile(id_, "info/kept")->content, "old") << round;
    EXPECT_EQ(*reader->ReadFile(id_, "info/removed"), (txn::FileValue{"removed", 0600})) << round;
    EXPECT_THAT(reader->ReadFile(id_, "made/below/file"), StatusIs(absl::StatusCode::kNotFound)) << round;
    EXPECT_THAT(*reader->ListDirectory(id_, ""), ::testing::ElementsAre("config", "info")) << round;
    EXPECT_THAT(*reader->ListDirectory(id_, "info"), ::testing::ElementsAre("kept", "removed")) << round;
    EXPECT_THAT(*reader->ListDirectory(id_, "made"), ::testing::IsEmpty()) << round;
    ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  }
  EXPECT_THAT(*world_.Begin()->ListDirectory(id_, "made"), ::testing::ElementsAre("below"));
  reader->Abort();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "info/kept")->content, "new");
}

// A13 (b), C021
TEST_F(MaterializerTest, ListsEveryRefOnceWhileItMovesIntoPackedRefs) {
  for (int n = 0; n < 18; ++n) ASSERT_TRUE(Set(absl::StrCat("b", n), 1).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  ASSERT_TRUE(Set("b3", 2).committed());
  auto reader = world_.Begin();
  const auto count = [&] { return reader->ListRefs(id_, "refs/")->size(); };
  int calls = 0;
  fault_->SetWatcher([&](FileOperation, const storage::StorePath& path) {
    if (!absl::StartsWith(path.text(), "repositories/")) return;
    ++calls;
    EXPECT_EQ(count(), 18u);
  });

  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());

  fault_->SetWatcher({});
  EXPECT_GE(calls, 19);
  EXPECT_EQ(count(), 18u);
  EXPECT_EQ(world_.Begin()->ListRefs(id_, "")->size(), 18u);
}

// B9
TEST_F(MaterializerTest, RefusesCommitsBeyondTheOverlayBoundUntilTheDiskHasCaughtUp) {
  options_.overlay_bytes_max = 100'000;
  ASSERT_THAT(Reopen(), IsOk());
  const auto put = [&](int n) {
    return world_.store().Run({}, [&](Transaction& txn) {
      return txn.PutFile(id_, absl::StrCat("info/f", n), {std::string(10'000, 'x'), 0644});
    });
  };
  fault_->AddRule({.operation = FileOperation::kRename,
                   .path_prefix = "repositories/",
                   .status = absl::ResourceExhaustedError("no space left on device"),
                   .is_sticky = true});
  int n = 0;
  CommitResult refused = put(n);
  while (refused.committed() && n < 100) {
    EXPECT_FALSE(world_.store().RunBackgroundWork().ok());
    refused = put(++n);
  }

  ASSERT_THAT(refused.status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_GE(n, 9);
  EXPECT_GT(world_.store().Metrics().overlay_bytes, 100'000);
  fault_->ClearRules();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_LT(world_.store().Metrics().overlay_bytes, 50'000);
  EXPECT_TRUE(put(n).committed());
}

// B9: while one commit waits for its sync, the next finds the queue of the partition full, and is told at once.
TEST_F(MaterializerTest, RefusesCommitsBeyondTheAdmissionBoundAndTakesThemAfterwards) {
  options_.commits_in_flight_max = 1;
  options_.admission_queue_max = 0;
  ASSERT_THAT(Reopen(), IsOk());
  std::optional<CommitResult> beyond;
  world_.fs().SetMutationHook([&](int64_t, absl::string_view op, const storage::StorePath& path) {
    if (op != "sync" || !absl::StartsWith(path.text(), "log/") || beyond) return;
    beyond.emplace();  // once
    beyond = Set("beyond", 2);
  });
  EXPECT_TRUE(Set("first", 1).committed());
  world_.fs().SetMutationHook({});

  ASSERT_TRUE(beyond.has_value());
  EXPECT_EQ(beyond->outcome, txn::CommitOutcome::kNotCommitted);
  EXPECT_THAT(beyond->status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(world_.Read(id_, Branch("beyond")).is_absent());
  EXPECT_TRUE(Set("beyond", 2).committed());
}

// A pack that could not be linked is a copy, which nothing has synced: opening after a crash puts it right.
// CORE-08
TEST_F(MaterializerTest, PutsRightACopiedPackThatACrashHasTorn) {
  const TransactionId id = world_.store().NewTransactionId();
  const std::string content(3000, 'P');
  world_.fs().SetLinkCountMax(2);
  RepositoryId created;
  std::shared_ptr<txn::ObjectStaging> staging;
  txn::RunOptions run;
  run.begin.transaction_id = id;
  const CommitResult result = world_.store().Run(run, [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(created, txn.CreateRepository(Path("packed"), {}));
    REPOTXN_ASSIGN_OR_RETURN(staging, world_.store().StageObjects(id, Path("packed"), ObjectFormat::kSha1));
    REPOTXN_RETURN_IF_ERROR(dynamic_cast<txn::StagedObjects&>(*staging).StageIndexedPack(
        absl::StrCat("pack-", std::string(40, 'b')), content, "index", "reverse"));
    return txn.AddPack(created, staging);
  });
  ASSERT_TRUE(result.committed()) << result.status;
  const storage::StorePath pack = txn::layout::RepositoryDirectory(created) / "objects/pack" /
                                  absl::StrCat("pack-", std::string(40, 'b'), ".pack");
  ASSERT_THAT(storage::ReadFile(world_.fs(), pack), IsOkAndHolds(content));

  int torn = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    World world;
    world.owned_fs() = world_.fs().CrashClone({CrashSurvival::kRandom, seed, 0});
    const auto left = storage::ReadFile(world.fs(), pack);
    torn += left.ok() && *left != content ? 1 : 0;
    ASSERT_THAT(world.Open(), IsOk());
    EXPECT_THAT(storage::ReadFile(world.fs(), pack), IsOkAndHolds(content)) << seed;
  }
  EXPECT_GT(torn, 0);
  staging.reset();
}

// A snapshot has a repository written ahead of a round that began before it, and fails half way: what the round writes then
// must reach as far, or the disk keeps values that nobody knows to be there.
class HalfWrittenBatchTest : public ::testing::TestWithParam<bool> {
 protected:
  HalfWrittenBatchTest() {
    EXPECT_THAT(storage::MakeDirectories(memory_, txn::layout::Staging()), IsOk());
    EXPECT_THAT(storage::MakeDirectories(memory_, txn::layout::RepositoryDirectory(id_).Parent()), IsOk());
    EXPECT_THAT(objects::WriteSkeleton(memory_, txn::layout::RepositoryDirectory(id_), ObjectFormat::kSha1, "refs/heads/main"),
                IsOk());
  }
  void Publish(uint64_t lsn, const std::vector<std::pair<std::string, int>>& refs) {
    txn::RepositoryEffects effects;
    effects.id = id_;
    for (const auto& [name, n] : refs) effects.refs.emplace_back(name, txn::RefState{World::At(n), GetParam()});
    state_->Publish(effects, wal::Lsn(lsn));
    committed_ = lsn;
  }
  absl::Status Materialize(uint64_t target) {
    const storage::MutexLock latch(state_->latch());
    return materializer_.MaterializeRepository(state_.get(), wal::Lsn(target));
  }
  std::string OnDisk(const std::string& name) {
    const auto value =
        refs::RefReader(memory_, txn::layout::RepositoryDirectory(id_), ObjectFormat::kSha1).Read(Ref(name));
    return value.ok() ? World::Name(*value) : value.status().ToString();
  }

  const RepositoryId id_ = *RepositoryId::FromHex(std::string(32, 'a'));
  MemoryFileSystem memory_;
  FaultFileSystem fault_{&memory_};
  txn::CondemnedFiles condemned_;
  txn::RepositoryTable table_{&fault_, &condemned_};
  std::shared_ptr<txn::RepositoryState> state_ = table_.Get(id_, txn::RepositoryRow{"r", 7, ObjectFormat::kSha1, 0});
  std::atomic<uint64_t> committed_{0};
  txn::SnapshotRegistry registry_{&committed_};
  txn::Materializer materializer_{&fault_, &table_, nullptr, &registry_};
};
INSTANTIATE_TEST_SUITE_P(Both, HalfWrittenBatchTest, ::testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Packed" : "Loose"; });

TEST_P(HalfWrittenBatchTest, IsPutRightByTheNextHoweverOldItsTarget) {
  Publish(5, {{"refs/heads/y", 1}});
  ASSERT_THAT(Materialize(5), IsOk());
  Publish(9, {{"refs/heads/y", 2}, {"refs/heads/z", 2}});
  // After y, or after packed-refs.
  fault_.AddRule({.operation = GetParam() ? FileOperation::kStat : FileOperation::kRename,
                  .path_suffix = "refs/heads/z",
                  .status = absl::ResourceExhaustedError("no space left on device"),
                  .is_sticky = true});
  fault_.AddRule({.operation = FileOperation::kRemove,
                  .path_suffix = "refs/heads/z",
                  .status = absl::ResourceExhaustedError("no space left on device"),
                  .is_sticky = true});
  ASSERT_FALSE(Materialize(9).ok());
  fault_.ClearRules();
  ASSERT_THAT(Materialize(6), IsOk());
  Publish(10, {{"refs/heads/y", 1}});
  ASSERT_THAT(Materialize(10), IsOk());
  EXPECT_EQ(OnDisk("refs/heads/y"), "c1");
  EXPECT_EQ(OnDisk("refs/heads/z"), "c2");
}

}  // namespace
}  // namespace repotxn::testing
