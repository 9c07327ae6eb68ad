#include <optional>

#include "storage/check.h"
#include "tests/support/fault_file_system.h"
#include "tests/txn/crash_sweep.h"
#include "txn/staged_objects.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

// Each case does one thing with a store and is crashed before every mutating call of it, in several ways. Whatever the
// crash left must open, show all of the thing or nothing of it (all, once it was acknowledged), and converge.
class CommitCrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(SmallOptions()), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(1)).committed());
    ASSERT_TRUE(world_.Set(id_, Branch("gone"), World::At(1)).committed());
    ASSERT_TRUE(world_.Set(id_, Branch("d/f"), World::At(1)).committed());
  }

  // Creates a repository with a pack and a large file, and changes the refs of another.
  CommitResult CommitMuch(const TransactionId& id) {
    std::shared_ptr<txn::ObjectStaging> staging;
    txn::RunOptions options;
    options.begin.transaction_id = id;
    options.begin.request_id = "much";
    return world_.store().Run(options, [&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId created, txn.CreateRepository(Path("g/new"), {}));
      REPOTXN_ASSIGN_OR_RETURN(staging, world_.store().StageObjects(id, Path("g/new"), ObjectFormat::kSha1));
      REPOTXN_RETURN_IF_ERROR(dynamic_cast<txn::StagedObjects&>(*staging).StageIndexedPack(
          absl::StrCat("pack-", std::string(40, 'a')), std::string(3000, 'P'), "index", "reverse"));
      absl::Status status = txn.AddPack(created, staging);
      status.Update(txn.PutFile(created, "info/large", {std::string(70'000, 'L'), 0644}));
      status.Update(txn.PutFile(created, "hooks/update", {"#!/bin/sh\n", 0755}));
      status.Update(txn.UpdateRef(created, {.name = refs::RefName::Head(),
                                            .expected = {},
                                            .value = refs::RefValue::Symbolic(Branch("dev"))}));
      status.Update(Stage(txn, "main", World::At(2)));
      status.Update(Stage(txn, "gone", refs::RefValue::Absent()));
      status.Update(Stage(txn, "d/f", refs::RefValue::Absent()));
      status.Update(Stage(txn, "d", World::At(3)));
      return status;
    });
  }
  absl::Status Stage(Transaction& txn, absl::string_view branch, const refs::RefValue& value) {
    return txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = value});
  }

  std::string SweepCommit() {
    const TransactionId id = world_.store().NewTransactionId();
    const std::string before = Visible(world_);
    CrashSweep sweep(&world_.fs());
    sweep.Record([&] {
      const CommitResult result = CommitMuch(id);
      EXPECT_TRUE(result.committed()) << result.status;
      sweep.NoteAcknowledged();
    });
    return FirstFault(sweep, before, Visible(world_), id);
  }
  std::string SweepCheckpoint() {
    EXPECT_TRUE(CommitMuch(world_.store().NewTransactionId()).committed());
    const std::string state = Visible(world_);
    CrashSweep sweep(&world_.fs());
    sweep.NoteAcknowledged();
    sweep.Record([&] { EXPECT_THAT(world_.store().Checkpoint(), IsOk()); });
    return FirstFault(sweep, state, state);
  }

  World world_;
  RepositoryId id_;
};

// C013, C014, C015, CORE-05, C096
TEST_F(CommitCrashTest, LeavesAllOrNothingOfACommitWhereverItDies) { EXPECT_EQ(SweepCommit(), ""); }

TEST_F(CommitCrashTest, LosesNothingWhereverACheckpointDies) { EXPECT_EQ(SweepCheckpoint(), ""); }

// B7: the changes d/f -> d are materialized, crashed half way, and done again. [CORE-08]
TEST_F(CommitCrashTest, ConvergesWhereverMaterializingDies) {
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_TRUE(CommitMuch(world_.store().NewTransactionId()).committed());
  ASSERT_TRUE(world_.Set(id_, Branch("d"), refs::RefValue::Absent()).committed());
  ASSERT_TRUE(world_.Set(id_, Branch("d/f/g"), World::At(4)).committed());
  const std::string state = Visible(world_);
  CrashSweep sweep(&world_.fs());
  sweep.NoteAcknowledged();

  sweep.Record([&] { ASSERT_THAT(world_.store().Materialize(), IsOk()); });

  EXPECT_EQ(FirstFault(sweep, state, state), "");
}

// B7: file, directory and file again at one path; the log has all of it, the disk any part of it.
TEST_F(CommitCrashTest, ConvergesWhereverAFileAndADirectoryTakeTurns) {
  const auto run = [&](const std::function<absl::Status(Transaction&)>& body) {
    ASSERT_TRUE(world_.store().Run({}, body).committed());
  };
  run([&](Transaction& txn) { return txn.MakeDirectory(id_, "info/a/b"); });
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  run([&](Transaction& txn) { return txn.PutFile(id_, "info/a/b/c", {"first", 0644}); });
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  run([&](Transaction& txn) { return txn.RemoveFile(id_, "info/a/b/c"); });
  run([&](Transaction& txn) { return txn.RemoveDirectory(id_, "info/a/b"); });
  run([&](Transaction& txn) { return txn.RemoveDirectory(id_, "info/a"); });
  run([&](Transaction& txn) { return txn.PutFile(id_, "info/a", {"a file", 0644}); });
  const std::string as_file = Visible(world_);
  CrashSweep to_file(&world_.fs());
  to_file.NoteAcknowledged();
  to_file.Record([&] { ASSERT_THAT(world_.store().Materialize(), IsOk()); });
  run([&](Transaction& txn) { return txn.RemoveFile(id_, "info/a"); });
  run([&](Transaction& txn) { return txn.PutFile(id_, "info/a/b/c", {"again", 0644}); });
  const std::string as_directory = Visible(world_);
  CrashSweep to_directory(&world_.fs());
  to_directory.NoteAcknowledged();
  to_directory.Record([&] { ASSERT_THAT(world_.store().Materialize(), IsOk()); });

  EXPECT_EQ(FirstFault(to_file, as_file, as_file), "");
  EXPECT_EQ(FirstFault(to_directory, as_directory, as_directory), "");
}

TEST_F(CommitCrashTest, LosesNothingWhereverARecoveryDies) {
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_TRUE(CommitMuch(world_.store().NewTransactionId()).committed());
  const std::string state = Visible(world_);
  world_.CrashAndKeep({CrashSurvival::kRandom, 5, 0});
  CrashSweep sweep(&world_.fs());
  sweep.NoteAcknowledged();

  sweep.Record([&] { ASSERT_THAT(world_.Open(SmallOptions()), IsOk()); });

  EXPECT_EQ(FirstFault(sweep, state, state), "");
}

// C022
TEST_F(CommitCrashTest, LosesNothingWhereverAPackingDies) {
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  for (int n = 0; n < 6; ++n) {
    ASSERT_TRUE(world_.Set(id_, Branch(absl::StrCat("b", n)), World::At(n)).committed());
  }
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  for (int n = 0; n < 6; ++n) {
    ASSERT_TRUE(world_.Set(id_, Branch(absl::StrCat("b", n)), World::At(n + 1)).committed());
  }
  const std::string state = Visible(world_);
  CrashSweep sweep(&world_.fs());
  sweep.NoteAcknowledged();

  sweep.Record([&] { ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk()); });

  EXPECT_EQ(world_.store().Metrics().ref_packings, 2);
  EXPECT_EQ(FirstFault(sweep, state, state), "");
}

// The planted bugs that these sweeps are there to notice.
TEST_F(CommitCrashTest, NoticesAPayloadThatIsNotSynced) {
  const PlantedBug bug("txn.skip_payload_sync");
  EXPECT_NE(SweepCommit(), "");
}
TEST_F(CommitCrashTest, NoticesAPositionThatIsAheadOfTheDisk) {
  const PlantedBug bug("txn.applied_before_sync");
  EXPECT_NE(SweepCheckpoint(), "");
}

// Watches one commit: the number of calls that touch a live repository, or see the commit, before its entry is synced.
struct EarlyEffects {
  int touched = 0;
  int visible = 0;
};
EarlyEffects WatchCommit(World& world, const std::function<CommitResult()>& commit) {
  EarlyEffects early;
  bool is_durable = false;
  const wal::Lsn before = world.store().committed_lsn();
  world.fs().SetMutationHook([&](int64_t, absl::string_view op, const storage::StorePath& path) {
    const absl::string_view name = path.text();
    if (!is_durable && absl::StartsWith(name, "repositories/")) ++early.touched;
    if (absl::StartsWith(name, "log/") && op == "sync") {
      if (!is_durable && world.store().committed_lsn() != before) ++early.visible;
      is_durable = true;
    }
  });
  EXPECT_TRUE(commit().committed());
  world.fs().SetMutationHook({});
  EXPECT_TRUE(is_durable);
  return early;
}

// C008
TEST_F(CommitCrashTest, TouchesAndShowsNothingBeforeTheEntryIsDurable) {
  const EarlyEffects early =
      WatchCommit(world_, [&] { return CommitMuch(world_.store().NewTransactionId()); });

  EXPECT_EQ(early.touched, 0);
  EXPECT_EQ(early.visible, 0);
}
TEST_F(CommitCrashTest, NoticesDirectoryWorkBeforeTheEntryIsDurable) {
  const PlantedBug bug("txn.apply_before_durable");
  EXPECT_GT(WatchCommit(world_, [&] { return CommitMuch(world_.store().NewTransactionId()); }).touched, 0);
}
TEST_F(CommitCrashTest, NoticesPublicationBeforeTheEntryIsDurable) {
  const PlantedBug bug("txn.publish_before_durable");
  EXPECT_GT(WatchCommit(world_, [&] { return world_.Set(id_, Branch("x"), World::At(1)); }).visible, 0);
}

// C017: a sync that fails, each in turn, never gives a commit that is not there after a power failure.
TEST_F(CommitCrashTest, NeverAnswersCommittedWhenASyncBeforeItFailed) {
  int faults = 0;
  for (const FileOperation operation :
       {FileOperation::kSync, FileOperation::kSyncFile, FileOperation::kSyncDirectory}) {
    for (int64_t occurrence = 1;; ++occurrence) {
      auto base = world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0});
      FaultFileSystem fault(base.get());
      World world(static_cast<uint64_t>(occurrence));
      ASSERT_THAT(world.OpenOn(&fault, SmallOptions()), IsOk());
      fault.AddRule({.operation = operation,
                     .occurrence = occurrence,
                     .status = absl::UnavailableError("sync failed")});
      std::optional<CommitResult> result;
      {
        const std::string large(70'000, 'x');
        result = world.store().Run({.begin = {}, .retries_max = 0}, [&](Transaction& txn) -> absl::Status {
          REPOTXN_RETURN_IF_ERROR(txn.CreateRepository(Path("new"), {}).status());
          REPOTXN_RETURN_IF_ERROR(txn.PutFile(id_, "info/large", {large, 0644}));
          return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(5)});
        });
      }
      const bool has_fired = fault.fault_count() > 0;
      faults += has_fired ? 1 : 0;
      auto left = base->CrashClone({CrashSurvival::kNothing, 0, 0});
      world.Drop();
      World again(99);
      again.owned_fs() = std::move(left);
      ASSERT_THAT(again.Open(SmallOptions()), IsOk());
      const bool is_there = World::Name(again.Read(id_, Branch("main"))) == "c5";
      if (result->committed()) {
        EXPECT_TRUE(is_there) << FileOperationName(operation) << " " << occurrence;
      }
      if (result->outcome == CommitOutcome::kNotCommitted) {
        EXPECT_FALSE(is_there) << FileOperationName(operation) << " " << occurrence;
      }
      EXPECT_EQ(again.store().OutcomeOf(result->transaction_id).committed(), is_there);
      if (!has_fired) break;
    }
  }
  EXPECT_GE(faults, 4);  // the payload's file and directories, and the log
}

}  // namespace
}  // namespace repotxn::testing
