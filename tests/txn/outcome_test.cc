#include "storage/sync.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

// Questions about what became of a transaction or a request, asked at every time of its life [A24].
class OutcomeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }
  static txn::BeginOptions WithRequest(absl::string_view request_id) {
    txn::BeginOptions options;
    options.request_id = std::string(request_id.data(), request_id.size());
    return options;
  }
  CommitResult SetAs(absl::string_view request_id, int n) {
    return world_.store().Run({.begin = WithRequest(request_id)}, [&](Transaction& txn) { return Stage(txn, n); });
  }
  absl::Status Stage(Transaction& txn, int n) {
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(n)});
  }
  CommitResult Ask(absl::string_view request_id) {
    return world_.store().OutcomeOfRequest(request_id, world_.clock().Now());
  }
  std::string Main() { return World::Name(world_.Read(id_, Branch("main"))); }

  World world_;
  RepositoryId id_;
};

// A24, C141
TEST_F(OutcomeTest, IsPendingWhileOpenAndThenWhatHappened) {
  auto committed = world_.Begin(), aborted = world_.Begin();
  ASSERT_THAT(Stage(*committed, 1), IsOk());
  EXPECT_EQ(world_.store().OutcomeOf(committed->id()).outcome, CommitOutcome::kPending);

  const CommitResult result = committed->Commit();
  aborted->Abort();

  const CommitResult asked = world_.store().OutcomeOf(committed->id());
  EXPECT_TRUE(asked.committed());
  EXPECT_EQ(asked.lsn, result.lsn);
  EXPECT_EQ(world_.store().OutcomeOf(aborted->id()).outcome, CommitOutcome::kNotCommitted);
  for (int round = 0; round < 2; ++round) {
    ASSERT_THAT(world_.Reopen(), IsOk());
    EXPECT_EQ(world_.store().OutcomeOf(committed->id()).lsn, result.lsn);
    EXPECT_EQ(world_.store().OutcomeOf(aborted->id()).outcome, CommitOutcome::kNotCommitted);
  }
}

// A24 (b), C010
TEST_F(OutcomeTest, FencesAnIdBeforeItSaysNotCommitted) {
  txn::BeginOptions options;
  options.transaction_id = world_.store().NewTransactionId();

  EXPECT_EQ(world_.store().OutcomeOf(options.transaction_id).outcome, CommitOutcome::kNotCommitted);

  EXPECT_THAT(world_.store().Begin(options), StatusIs(absl::StatusCode::kFailedPrecondition));
  const CommitResult run = world_.store().Run({.begin = options}, [&](Transaction& txn) { return Stage(txn, 1); });
  EXPECT_THAT(run.status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(world_.Read(id_, Branch("main")).is_absent());
}

TEST_F(OutcomeTest, RefusesAnIdThatLives) {
  auto open = world_.Begin();
  txn::BeginOptions options;
  options.transaction_id = open->id();

  EXPECT_THAT(world_.store().Begin(options), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(world_.store().OutcomeOf(open->id()).outcome, CommitOutcome::kPending);
}

// A24 (c), C142
TEST_F(OutcomeTest, GivesASecondCommitOfARequestTheOutcomeOfTheFirst) {
  const CommitResult first = SetAs("push", 1);
  ASSERT_TRUE(first.committed());

  for (int round = 0; round < 3; ++round) {
    const CommitResult second = SetAs("push", 2);
    EXPECT_TRUE(second.committed());
    EXPECT_EQ(second.lsn, first.lsn);
    EXPECT_EQ(second.transaction_id, first.transaction_id);
    EXPECT_EQ(Main(), "c1");
    const CommitResult asked = Ask("push");
    EXPECT_EQ(asked.lsn, first.lsn);
    EXPECT_EQ(asked.transaction_id, first.transaction_id);
    if (round == 0) world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
    if (round == 0) {
      ASSERT_THAT(world_.Open(), IsOk());
    }
    if (round == 1) {
      ASSERT_THAT(world_.Reopen(), IsOk());
    }
  }
}

// (c) two begins with one request id in flight [A24 (c)]
TEST_F(OutcomeTest, LetsOneOfTwoConcurrentCommitsOfARequestWin) {
  auto first = *world_.store().Begin(WithRequest("push"));
  auto second = *world_.store().Begin(WithRequest("push"));
  ASSERT_THAT(Stage(*first, 1), IsOk());
  ASSERT_THAT(second->UpdateRef(id_, {.name = Branch("other"), .expected = {}, .value = World::At(2)}), IsOk());
  ASSERT_TRUE(first->Commit().committed());

  EXPECT_THAT(second->Commit().status, StatusIs(absl::StatusCode::kAborted));

  EXPECT_TRUE(world_.Read(id_, Branch("other")).is_absent());
}

// A24 (b)
TEST_F(OutcomeTest, FencesARequestForEver) {
  EXPECT_EQ(Ask("lost").outcome, CommitOutcome::kNotCommitted);

  for (int round = 0; round < 2; ++round) {
    const CommitResult late = SetAs("lost", 1);
    EXPECT_EQ(late.outcome, CommitOutcome::kNotCommitted);
    EXPECT_THAT(late.status, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_TRUE(world_.Read(id_, Branch("main")).is_absent());
    EXPECT_EQ(Ask("lost").outcome, CommitOutcome::kNotCommitted);
    world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
    ASSERT_THAT(world_.Open(), IsOk());
  }
}

TEST_F(OutcomeTest, SaysPendingForARequestThatLives) {
  auto open = *world_.store().Begin(WithRequest("push"));
  ASSERT_THAT(Stage(*open, 1), IsOk());

  EXPECT_EQ(Ask("push").outcome, CommitOutcome::kPending);

  EXPECT_TRUE(open->Commit().committed());
  EXPECT_TRUE(Ask("push").committed());
}

// Runs an action once, at the n-th scheduling point after it was armed.
class AtPoint final : public storage::SchedulingHook {
 public:
  AtPoint(int n, std::function<void()> action) : left_(n), action_(std::move(action)) {
    storage::SetSchedulingHook(this);
  }
  ~AtPoint() override { storage::SetSchedulingHook(nullptr); }
  void OnSchedulingPoint() override {
    if (left_ < 0 || left_-- > 0) return;
    left_ = -1;
    action_();
  }

 private:
  int left_;
  const std::function<void()> action_;
};

// The request is committed between the looks of the one who asks: the fence must never cover a commit.
// A24 (b)
TEST_F(OutcomeTest, NeverFencesARequestThatWasCommittedWhileItWasAskedFor) {
  // The points are those of the two looks for the row and of the look for a live request: no mutex is held there.
  for (const int point : {0, 2, 3, 5, 6, 7}) {
    const std::string request = absl::StrCat("push-", point);
    CommitResult committed;
    CommitResult asked;
    {
      const AtPoint commit_there(point, [&] { committed = SetAs(request, point + 1); });
      asked = Ask(request);
    }
    if (!committed.committed()) continue;  // the answer was there before
    EXPECT_TRUE(asked.committed()) << point << " " << asked.status;
    EXPECT_EQ(Ask(request).lsn, committed.lsn) << point;
  }
}

// A24 (a), A24 (d)
TEST_F(OutcomeTest, DoesNotGuessBeyondTheRetentionTime) {
  const CommitResult result = SetAs("push", 1);
  const absl::Time issued = world_.clock().Now();
  const TransactionId never = world_.store().NewTransactionId();
  world_.clock().Advance(absl::Hours(23));
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_TRUE(world_.store().OutcomeOf(result.transaction_id).committed());

  world_.clock().Advance(absl::Hours(2));
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(world_.Set(id_, Branch("x"), World::At(round)).committed());
    ASSERT_THAT(world_.store().Checkpoint(), IsOk());
    for (const TransactionId& id : {result.transaction_id, never}) {
      const CommitResult asked = world_.store().OutcomeOf(id);
      if (round > 0 || id == never) {
        EXPECT_EQ(asked.outcome, CommitOutcome::kUnknown);
        EXPECT_THAT(asked.status, StatusIs(absl::StatusCode::kOutOfRange));
      }
    }
    ASSERT_THAT(world_.Reopen(), IsOk());
  }
  const CommitResult request = world_.store().OutcomeOfRequest("push", issued);
  EXPECT_EQ(request.outcome, CommitOutcome::kUnknown);
  EXPECT_THAT(request.status, StatusIs(absl::StatusCode::kOutOfRange));
}

// A clock that was wrong for a while and is set back must not turn a forgotten commit into "not committed".
TEST_F(OutcomeTest, DoesNotGuessAfterTheClockWasSetBack) {
  const CommitResult result = SetAs("push", 1);
  const absl::Time issued = world_.clock().Now();
  world_.clock().SetWallClock(issued + absl::Hours(100));
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_TRUE(world_.Set(id_, Branch("x"), World::At(1)).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  world_.clock().SetWallClock(issued + absl::Minutes(1));

  for (int round = 0; round < 2; ++round) {
    EXPECT_NE(world_.store().OutcomeOf(result.transaction_id).outcome, CommitOutcome::kNotCommitted);
    EXPECT_NE(world_.store().OutcomeOfRequest("push", issued).outcome, CommitOutcome::kNotCommitted);
    ASSERT_THAT(world_.Reopen(), IsOk());
  }
}

}  // namespace
}  // namespace repotxn::testing
