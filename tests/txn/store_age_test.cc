// Parts of a store from different times: a directory that came back from a copy, a disk that went backwards. And what
// must not matter: how much of the metadata store, which is not synced between checkpoints, a crash leaves.
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using storage::StorePath;
using txn::CommitResult;
using txn::Transaction;

// Copies a tree into another file system, in place of what is there.
absl::Status CopyTree(storage::FileSystem& from, const StorePath& path, storage::FileSystem& to) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, from.List(path));
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(to, path));
  for (const storage::DirectoryEntry& entry : entries) {
    const StorePath child = path / entry.name;
    if (entry.kind == storage::FileKind::kDirectory) {
      REPOTXN_RETURN_IF_ERROR(CopyTree(from, child, to));
    } else if (entry.kind == storage::FileKind::kRegular) {
      REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(from, child));
      REPOTXN_RETURN_IF_ERROR(storage::WriteFile(to, child, content));
    }
  }
  return absl::OkStatus();
}
absl::Status ReplaceTree(storage::FileSystem& from, const StorePath& path, storage::FileSystem& to) {
  REPOTXN_RETURN_IF_ERROR(storage::RemoveTree(to, path));
  REPOTXN_RETURN_IF_ERROR(CopyTree(from, path, to));
  return to.SyncAll();
}

class StoreAgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = World::Options();
    options_.segment_bytes = 64 << 10;
    ASSERT_THAT(world_.Open(options_), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(Set("main", 1).committed());
  }
  CommitResult Set(absl::string_view branch, int n) { return world_.Set(id_, Branch(branch), World::At(n)); }
  std::unique_ptr<MemoryFileSystem> Disk() {
    return world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0});
  }
  // Enough entries to use up segments, and a checkpoint, after which the log is trimmed to it.
  void FillAndCheckpoint() {
    for (int n = 0; n < 6; ++n) {
      ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
        return txn.PutFile(id_, absl::StrCat("info/f", n), {std::string(15'000, 'x'), 0644});
      }).committed());
    }
    ASSERT_TRUE(Set("main", 2).committed());
    ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  }
  // Opening what `disk` holds is refused as damage, and changes nothing that was acknowledged.
  void ExpectRefused(std::unique_ptr<MemoryFileSystem> disk) {
    World world(3);
    world.owned_fs() = std::move(disk);
    const std::string log = world.fs().DumpTree(txn::layout::Log());
    const std::string repositories = world.fs().DumpTree(txn::layout::Repositories());
    EXPECT_THAT(world.Open(options_), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(world.fs().DumpTree(txn::layout::Log()), log);
    EXPECT_EQ(world.fs().DumpTree(txn::layout::Repositories()), repositories);
  }

  World world_;
  txn::StoreOptions options_;
  RepositoryId id_;
};

TEST_F(StoreAgeTest, RefusesALogThatIsOlderThanTheCheckpoint) {
  auto older = Disk();
  FillAndCheckpoint();
  auto disk = Disk();
  ASSERT_THAT(ReplaceTree(*older, txn::layout::Log(), *disk), IsOk());

  ExpectRefused(std::move(disk));
}

TEST_F(StoreAgeTest, RefusesACheckpointThatIsOlderThanWhatTheLogStillHas) {
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  auto older = Disk();
  FillAndCheckpoint();
  FillAndCheckpoint();
  FillAndCheckpoint();
  auto disk = Disk();
  ASSERT_THAT(ReplaceTree(*older, txn::layout::Metadata(), *disk), IsOk());

  ExpectRefused(std::move(disk));
}

// B22: ids, LSNs, rows and outcomes come back from the log alone.
TEST_F(StoreAgeTest, NeedsNothingOfTheMetadataStoreSinceTheCheckpoint) {
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  auto at_checkpoint = Disk();
  txn::RunOptions run;
  run.begin.request_id = "request";
  const CommitResult made = world_.store().Run(run, [&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.CreateRepository(Path("g/made"), {}).status());
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(3)});
  });
  ASSERT_TRUE(made.committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  const std::string acknowledged = Visible(world_);
  auto disk = Disk();
  ASSERT_THAT(ReplaceTree(*at_checkpoint, txn::layout::Metadata(), *disk), IsOk());
  world_.Drop();
  world_.owned_fs() = std::move(disk);

  ASSERT_THAT(world_.Open(options_), IsOk());

  EXPECT_EQ(Visible(world_), acknowledged);
  EXPECT_TRUE(world_.store().OutcomeOf(made.transaction_id).committed());
  EXPECT_EQ(world_.store().OutcomeOfRequest("request", world_.clock().Now()).lsn, made.lsn);
  const CommitResult next = Set("main", 4);
  ASSERT_TRUE(next.committed());
  EXPECT_EQ(next.lsn, made.lsn.Next());
}

// HEAD-06, RST-04: the effects are on disk, the position that says so is not.
TEST_F(StoreAgeTest, SetsHeadAgainAfterACrashBeforeThePositionIsKept) {
  const auto set_head = [&](absl::string_view branch) {
    return world_.store().Run({}, [&](Transaction& txn) {
      return txn.UpdateRef(id_, {.name = refs::RefName::Head(),
                                 .expected = {},
                                 .value = refs::RefValue::Symbolic(Branch(branch)),
                                 .no_deref = true});
    });
  };
  for (const CrashOptions& crash : CrashKinds()) {
    ASSERT_TRUE(set_head("dev").committed());
    ASSERT_THAT(world_.store().Materialize(), IsOk());
    world_.CrashAndKeep(crash);
    ASSERT_THAT(world_.Open(options_), IsOk());
    EXPECT_EQ(world_.Read(id_, refs::RefName::Head()).ToString(), "ref: refs/heads/dev");
    ASSERT_TRUE(set_head("main").committed());
    ASSERT_THAT(world_.Reopen(), IsOk());
    EXPECT_THAT(storage::ReadFile(world_.fs(), txn::layout::RepositoryDirectory(id_) / "HEAD"),
                IsOkAndHolds("ref: refs/heads/main\n"));
  }
}

}  // namespace
}  // namespace repotxn::testing
