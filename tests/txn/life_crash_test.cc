// What happens to whole repositories, crashed before every call that changes the disk.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::KeySpace;
using txn::Transaction;

class LifeCrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(SmallOptions()), IsOk());
    source_ = world_.Create("g/source");
    moved_ = world_.Create("g/moved");
    removed_ = world_.Create("g/h/removed");
    ASSERT_TRUE(world_.Set(source_, Branch("main"), World::At(1)).committed());
    ASSERT_TRUE(world_.Set(removed_, Branch("main"), World::At(2)).committed());
    ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  }

  // Every operation on whole repositories in one transaction.
  CommitResult CommitLife(const TransactionId& id) {
    txn::RunOptions options;
    options.begin.transaction_id = id;
    return world_.store().Run(options, [&](Transaction& txn) -> absl::Status {
      REPOTXN_RETURN_IF_ERROR(txn.MoveRepository(moved_, Path("elsewhere/moved")));
      REPOTXN_RETURN_IF_ERROR(txn.DeleteRepository(removed_));
      REPOTXN_RETURN_IF_ERROR(txn.RemoveGroup("g/h"));
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId fork, txn.ForkRepository(source_, Path("forks/f"), {}));
      REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(moved_, source_));
      REPOTXN_RETURN_IF_ERROR(txn.PutKey(KeySpace::OfRepository(fork), "owner", "somebody"));
      REPOTXN_RETURN_IF_ERROR(txn.PutKey(KeySpace::OfStore(), "forks", "1"));
      return txn.UpdateRef(moved_, {.name = Branch("borrowed"), .value = World::At(3)});
    });
  }
  std::string SweepLife() {
    const TransactionId id = world_.store().NewTransactionId();
    const std::string before = Visible(world_);
    CrashSweep sweep(&world_.fs());
    sweep.Record([&] {
      EXPECT_THAT(CommitLife(id).status, IsOk());
      sweep.NoteAcknowledged();
    });
    return FirstFault(sweep, before, Visible(world_), id);
  }
  // `act` changes nothing that a client sees, whatever it does to the disk.
  std::string SweepUnseen(const std::function<void()>& act) {
    const std::string state = Visible(world_);
    CrashSweep sweep(&world_.fs());
    sweep.NoteAcknowledged();
    sweep.Record(act);
    return FirstFault(sweep, state, state);
  }

  World world_;
  RepositoryId source_, moved_, removed_;
};

// C074, REPO-16, ALT-09
TEST_F(LifeCrashTest, LeavesAllOrNothingOfMovesDeletionsForksAndLinks) { EXPECT_EQ(SweepLife(), ""); }

// REPO-06, REPO-17, ALT-09, A3
TEST_F(LifeCrashTest, ConvergesWhereverMaterializingOrACheckpointDies) {
  ASSERT_TRUE(CommitLife(world_.store().NewTransactionId()).committed());
  EXPECT_EQ(SweepUnseen([&] { ASSERT_THAT(world_.store().Checkpoint(), IsOk()); }), "");
}

// C074, A3
TEST_F(LifeCrashTest, ConvergesWhereverARecoveryDies) {
  ASSERT_TRUE(CommitLife(world_.store().NewTransactionId()).committed());
  const std::string state = Visible(world_);
  world_.CrashAndKeep({CrashSurvival::kRandom, 5, 0});
  CrashSweep sweep(&world_.fs());
  sweep.NoteAcknowledged();
  sweep.Record([&] { ASSERT_THAT(world_.Open(SmallOptions()), IsOk()); });
  EXPECT_EQ(FirstFault(sweep, state, state), "");
}

TEST_F(LifeCrashTest, PurgesToTheEndWhereverAPurgeDies) {
  ASSERT_TRUE(CommitLife(world_.store().NewTransactionId()).committed());
  world_.clock().Advance(absl::Hours(25));
  EXPECT_EQ(SweepUnseen([&] {
              ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
              ASSERT_THAT(world_.store().Checkpoint(), IsOk());
            }),
            "");
  EXPECT_FALSE(*storage::Exists(world_.fs(), txn::layout::RepositoryDirectory(removed_)));
}

TEST_F(LifeCrashTest, BringsBackAllOrNothing) {
  ASSERT_TRUE(CommitLife(world_.store().NewTransactionId()).committed());
  const TransactionId id = world_.store().NewTransactionId();
  const std::string before = Visible(world_);
  CrashSweep sweep(&world_.fs());
  sweep.Record([&] {
    txn::RunOptions options;
    options.begin.transaction_id = id;
    EXPECT_THAT(world_.store().Run(options, [&](Transaction& txn) {
      return txn.UndeleteRepository(removed_, Path("g/h"));
    }).status, IsOk());
    sweep.NoteAcknowledged();
  });
  EXPECT_EQ(FirstFault(sweep, before, Visible(world_), id), "");
}

}  // namespace
}  // namespace repotxn::testing
