#include <atomic>
#include <thread>

#include "tests/support/fault_file_system.h"
#include "tests/support/notification.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

// Callers that give up, at each stage of a commit. The disk is stopped in a sync of the log, so that one commit leads its
// group and others stand behind it for as long as the test wants. No background thread: what goes on without a caller is
// carried on by other commits, or by the background work that the test calls.
class CancellationTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(World::Options()); }
  void TearDown() override {
    OpenGate();
    for (std::thread& thread : threads_) thread.join();
    world_.Drop();
  }
  void Open(const txn::StoreOptions& options) {
    world_.Drop();
    ASSERT_THAT(world_.OpenOn(fault_.get(), options), IsOk());
    if (id_.IsZero()) id_ = world_.Create("r");
  }
  // The next sync of the log waits until OpenGate().
  void CloseGate() {
    is_armed_ = true;
    fault_->SetWatcher([this](FileOperation operation, const storage::StorePath& path) {
      if (operation != FileOperation::kSync || !absl::StartsWith(path.text(), "log/")) return;
      if (!is_armed_.exchange(false)) return;
      is_syncing_.Notify();
      gate_.WaitForNotification();
    });
  }
  void OpenGate() { gate_.Notify(); }
  absl::Status Stage(Transaction& txn, absl::string_view branch, int n) {
    return txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = World::At(n)});
  }
  CommitResult Set(const txn::BeginOptions& begin, const std::string& branch, int n) {
    return world_.store().Run({.begin = begin}, [&](Transaction& txn) { return Stage(txn, branch, n); });
  }
  // In a thread of its own; `result` is set when it ends.
  void Start(CommitResult* result, std::function<CommitResult()> run) {
    threads_.emplace_back([result, run] { *result = run(); });
  }
  // A commit that leads a group and does not get on until the gate opens.
  void StartLeader(CommitResult* result) {
    CloseGate();
    Start(result, [this] { return Set({}, "leader", 1); });
    is_syncing_.WaitForNotification();
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  txn::StoreMetrics Metrics() { return world_.store().Metrics(); }
  void AwaitInFlight(int count) {
    while (Metrics().commits_in_flight < count) std::this_thread::yield();
  }
  txn::BeginOptions Cancellable() {
    txn::BeginOptions begin;
    begin.cancellation = source_.get_token();
    begin.transaction_id = world_.store().NewTransactionId();
    return begin;
  }

  World world_;
  std::unique_ptr<FaultFileSystem> fault_ = std::make_unique<FaultFileSystem>(&world_.fs());
  RepositoryId id_;
  storage::CancellationSource source_;
  std::atomic<bool> is_armed_{false};
  Notification is_syncing_, gate_;
  std::vector<std::thread> threads_;
};

TEST_F(CancellationTest, CommitsNothingWhenItIsCancelledOrLateBeforeAdmission) {
  txn::BeginOptions cancelled = Cancellable();
  const CommitResult first = world_.store().Run({.begin = cancelled}, [&](Transaction& txn) {
    source_.request_stop();
    return Stage(txn, "a", 1);
  });
  txn::BeginOptions late;
  late.deadline = world_.clock().Now() + absl::Seconds(1);
  const CommitResult second = world_.store().Run({.begin = late}, [&](Transaction& txn) {
    world_.clock().Advance(absl::Seconds(2));
    return Stage(txn, "b", 1);
  });

  EXPECT_EQ(first.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(first.status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(world_.store().OutcomeOf(first.transaction_id).outcome, CommitOutcome::kNotCommitted);
  EXPECT_EQ(second.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(second.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\n");
}

TEST_F(CancellationTest, LeavesTheAdmissionQueueAndCommitsNothing) {
  txn::StoreOptions options = World::Options();
  options.commits_in_flight_max = 1;
  Open(options);
  CommitResult leader, cancelled, late;
  StartLeader(&leader);
  txn::BeginOptions deadline;
  deadline.deadline = world_.clock().Now() + absl::Seconds(1);
  Start(&cancelled, [this] { return Set(Cancellable(), "cancelled", 1); });
  Start(&late, [this, deadline] { return Set(deadline, "late", 1); });
  while (Metrics().commits_waiting < 2) std::this_thread::yield();

  source_.request_stop();
  world_.clock().Advance(absl::Seconds(2));
  while (Metrics().commits_waiting > 0) std::this_thread::yield();
  OpenGate();
  Join();

  EXPECT_TRUE(leader.committed());
  EXPECT_EQ(cancelled.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(cancelled.status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(late.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(late.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/leader c1\n");
}

// A24, C139: unknown with an id to ask for; never "failed" for what may still be committed.
TEST_F(CancellationTest, GivesUpTheWaitAfterAdmissionAndTheCommitGoesOn) {
  CommitResult leader, cancelled;
  StartLeader(&leader);
  txn::BeginOptions begin = Cancellable();
  begin.request_id = "push";
  const absl::Time issued = world_.clock().Now();
  Start(&cancelled, [&] { return Set(begin, "left", 2); });
  AwaitInFlight(2);

  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();

  EXPECT_EQ(cancelled.outcome, CommitOutcome::kUnknown);
  EXPECT_THAT(cancelled.status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(cancelled.transaction_id, begin.transaction_id);
  EXPECT_EQ(world_.store().OutcomeOf(begin.transaction_id).outcome, CommitOutcome::kPending);
  EXPECT_EQ(world_.store().OutcomeOfRequest("push", issued).outcome, CommitOutcome::kPending);
  EXPECT_EQ(Metrics().commits_detached, 1);
  EXPECT_TRUE(world_.Read(id_, Branch("left")).is_absent());
  OpenGate();
  Join();
  ASSERT_TRUE(leader.committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  for (int round = 0; round < 2; ++round) {
    const CommitResult asked = world_.store().OutcomeOf(begin.transaction_id);
    EXPECT_TRUE(asked.committed()) << asked.status;
    EXPECT_EQ(world_.store().OutcomeOfRequest("push", issued).lsn, asked.lsn);
    EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/leader c1\nrefs/heads/left c2\n");
    EXPECT_EQ(Metrics().commits_detached, 0);
    EXPECT_EQ(Metrics().commits_in_flight, 0);
    EXPECT_EQ(Metrics().open_transactions, 0);
    ASSERT_THAT(world_.store().Close(), IsOk());
    Open(World::Options());
  }
}

TEST_F(CancellationTest, GivesUpTheWaitAtItsDeadlineAndAnotherCommitCarriesItOn) {
  CommitResult leader, late, next;
  StartLeader(&leader);
  txn::BeginOptions begin;
  begin.deadline = world_.clock().Now() + absl::Seconds(1);
  RepositoryId created;
  // With directory work, for which whatever is committed after it has to wait.
  Start(&late, [&] {
    return world_.store().Run({.begin = begin}, [&](Transaction& txn) -> absl::Status {
      auto id = txn.CreateRepository(Path("new"), {});
      if (id.ok()) created = *id;
      return id.status();
    });
  });
  AwaitInFlight(2);
  world_.clock().Advance(absl::Seconds(2));
  threads_.back().join();
  threads_.pop_back();
  EXPECT_EQ(late.outcome, CommitOutcome::kUnknown);
  EXPECT_THAT(late.status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  Start(&next, [this] { return Set({}, "next", 3); });
  AwaitInFlight(3);

  OpenGate();
  Join();

  EXPECT_TRUE(leader.committed());
  EXPECT_TRUE(next.committed());
  EXPECT_TRUE(world_.store().OutcomeOf(late.transaction_id).committed());
  EXPECT_EQ(*world_.Begin()->OpenRepository(Path("new")), created);
  EXPECT_EQ(Metrics().commits_in_flight, 0);
}

TEST_F(CancellationTest, ClosesOnlyWhenWhatGoesOnAloneHasItsOutcome) {
  CommitResult leader, cancelled;
  StartLeader(&leader);
  const txn::BeginOptions begin = Cancellable();
  Start(&cancelled, [&] { return Set(begin, "left", 2); });
  AwaitInFlight(2);
  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();
  ASSERT_EQ(cancelled.outcome, CommitOutcome::kUnknown);
  absl::Status closed;
  threads_.emplace_back([&] { closed = world_.store().Close(); });

  OpenGate();
  Join();

  EXPECT_THAT(closed, IsOk());
  Open(World::Options());
  EXPECT_TRUE(world_.store().recovery_report().was_clean);
  EXPECT_TRUE(world_.store().OutcomeOf(begin.transaction_id).committed());
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("left"))), "c2");
}

TEST_F(CancellationTest, SaysUnknownOfWhatWentOnAloneWhenTheLogFails) {
  CommitResult leader, cancelled;
  StartLeader(&leader);
  const txn::BeginOptions begin = Cancellable();
  Start(&cancelled, [&] { return Set(begin, "left", 2); });
  AwaitInFlight(2);
  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();
  // The leader's sync has passed the fault rules; the next group's has not.
  fault_->AddRule({.operation = FileOperation::kSync,
                   .path_prefix = "log/",
                   .status = absl::UnavailableError("sync"),
                   .is_sticky = true});
  OpenGate();
  Join();

  const absl::Status background = world_.store().RunBackgroundWork();

  EXPECT_TRUE(leader.committed());
  const CommitResult asked = world_.store().OutcomeOf(begin.transaction_id);
  EXPECT_EQ(asked.outcome, CommitOutcome::kUnknown) << asked.status;
  EXPECT_EQ(Metrics().commits_detached, 0);
  EXPECT_FALSE(world_.store().Health().ok()) << background;
  fault_->ClearRules();
  Open(World::Options());
  const CommitResult decided = world_.store().OutcomeOf(begin.transaction_id);
  EXPECT_NE(decided.outcome, CommitOutcome::kUnknown);
  EXPECT_EQ(world_.Read(id_, Branch("left")).is_absent(), !decided.committed());
}

// B11, C145: the second play begins when what it lost against is visible; one retry is enough.
TEST_F(CancellationTest, RetriesOnlyWhenTheConflictingEntryIsCommitted) {
  CommitResult leader, loser;
  StartLeader(&leader);
  std::atomic<int> plays{0};
  Start(&loser, [&] {
    return world_.store().Run({.begin = {}, .retries_max = 1}, [&](Transaction& txn) -> absl::Status {
      plays.fetch_add(1);
      REPOTXN_RETURN_IF_ERROR(txn.ReadRef(id_, Branch("leader")).status());
      return Stage(txn, "loser", 2);
    });
  });
  while (Metrics().retries < 1) std::this_thread::yield();
  EXPECT_EQ(plays.load(), 1);

  OpenGate();
  Join();

  EXPECT_TRUE(leader.committed());
  EXPECT_TRUE(loser.committed()) << loser.status;
  EXPECT_EQ(loser.attempts, 2);
  EXPECT_EQ(Metrics().conflicts, 1);
}

// What it lost against stands in the log's queue, left by everybody: it is written by whoever waits for it.
TEST_F(CancellationTest, ARetryWritesWhatNobodyElseWrites) {
  CommitResult led, left;
  StartLeader(&led);
  Start(&left, [this, begin = Cancellable()] { return Set(begin, "contended", 2); });
  AwaitInFlight(2);
  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();
  ASSERT_EQ(left.outcome, CommitOutcome::kUnknown);
  OpenGate();
  Join();
  ASSERT_EQ(Metrics().commits_detached, 1);

  EXPECT_TRUE(Set({}, "contended", 3).committed());
  EXPECT_EQ(world_.store().OutcomeOf(left.transaction_id).outcome, CommitOutcome::kCommitted);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("contended"))), "c3");
}

// The same while another writes the log for all: the one who waits may still be called off.
TEST_F(CancellationTest, EndsTheWaitForWhatWentOnAloneWhenItIsCancelled) {
  CommitResult led, left, retried;
  StartLeader(&led);
  Start(&left, [this, begin = Cancellable()] { return Set(begin, "contended", 2); });
  AwaitInFlight(2);
  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();
  ASSERT_EQ(left.outcome, CommitOutcome::kUnknown);

  storage::CancellationSource again;
  txn::BeginOptions begin;
  begin.cancellation = again.get_token();
  Start(&retried, [this, begin] { return Set(begin, "contended", 3); });
  while (Metrics().conflicts < 1) std::this_thread::yield();
  again.request_stop();
  threads_.back().join();
  threads_.pop_back();
  EXPECT_EQ(retried.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(retried.status, StatusIs(absl::StatusCode::kCancelled));

  OpenGate();
  Join();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(Metrics().commits_detached, 0);
  EXPECT_EQ(world_.store().OutcomeOf(left.transaction_id).outcome, CommitOutcome::kCommitted);
}

TEST_F(CancellationTest, EndsTheWaitForARetryWhenItIsCancelled) {
  CommitResult leader, loser;
  StartLeader(&leader);
  const txn::BeginOptions begin = Cancellable();
  Start(&loser, [&] { return Set(begin, "leader", 2); });
  while (Metrics().retries < 1) std::this_thread::yield();

  source_.request_stop();
  threads_.back().join();
  threads_.pop_back();

  EXPECT_EQ(loser.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(loser.status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(loser.attempts, 1);
  EXPECT_EQ(world_.store().OutcomeOf(begin.transaction_id).outcome, CommitOutcome::kNotCommitted);
  OpenGate();
  Join();
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("leader"))), "c1");
}

}  // namespace
}  // namespace repotxn::testing
