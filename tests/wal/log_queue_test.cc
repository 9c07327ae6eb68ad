#include "wal/log_queue.h"

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "storage/check.h"
#include "tests/wal/wal_fixtures.h"
#include "wal/segment.h"

namespace repotxn::wal {
namespace {

// Remembers the groups that it gets; what happens while one is on its way, and how it ends, is the
// test's.
class ScriptedReplicator : public Replicator {
 public:
  absl::StatusOr<LogTail> Acquire() override { return LogTail{}; }
  absl::Status Release() override { return absl::OkStatus(); }
  absl::Status StagePayload(const TransactionId&, absl::Span<const PayloadFile>) override {
    return absl::OkStatus();
  }
  absl::Status ReserveSpace(int64_t bytes) override {
    if (bytes > space) return absl::ResourceExhaustedError("no space");
    space -= bytes;
    return absl::OkStatus();
  }
  absl::Status PrepareSpace() override { return absl::OkStatus(); }
  bool HasSpareSpace() const override { return space > 1000; }
  std::unique_ptr<PendingAppend> Append(std::vector<SealedEntry> group) override {
    groups.push_back(std::move(group));
    return std::make_unique<Pending>(this);
  }
  absl::StatusOr<Resolution> Resolve(const TransactionId&) override { return Resolution{}; }
  absl::StatusOr<std::unique_ptr<EntryCursor>> Follow(Lsn) override {
    return absl::OutOfRangeError("nothing to follow");
  }
  absl::Status Applied(Lsn) override { return absl::OkStatus(); }
  absl::Status ReadBarrier() override { return absl::OkStatus(); }

  int64_t space = 1 << 30;
  std::vector<std::vector<SealedEntry>> groups;
  // Run while a group is on its way, outside every lock.
  std::function<void()> on_the_way;
  std::deque<AppendOutcome> outcomes;  // of the next groups; committed when empty

 private:
  class Pending : public PendingAppend {
   public:
    explicit Pending(ScriptedReplicator* owner) : owner_(owner) {}
    AppendOutcome Wait(absl::Status* status) override {
      if (owner_->on_the_way) owner_->on_the_way();
      AppendOutcome outcome = AppendOutcome::kCommitted;
      if (!owner_->outcomes.empty()) {
        outcome = owner_->outcomes.front();
        owner_->outcomes.pop_front();
      }
      if (outcome != AppendOutcome::kCommitted) *status = absl::UnavailableError("sync");
      return outcome;
    }
    ScriptedReplicator* const owner_;
  };
};

// Goal: LSN order is queue order; who waits together shares an append; a failure reaches everybody
// with the right outcome. Deterministic: one thread, unless the name says otherwise.
class LogQueueTest : public ::testing::Test {
 protected:
  LogQueue& Queue(LogQueue::Options options = {}) {
    queue_ = std::make_unique<LogQueue>(&replicator_, LogTail{Lsn(0), {}, 4}, std::move(options));
    return *queue_;
  }
  absl::StatusOr<Lsn> Reserve(LogQueue::Ticket* ticket, size_t value_bytes = 20) {
    PreparedEntry entry = Prepared(++transactions_, value_bytes);
    std::string dropped;
    return queue_->Reserve(&entry, &dropped, ticket);
  }
  AppendOutcome Await(LogQueue::Ticket* ticket) { return queue_->AwaitDurable(ticket, &status_); }
  std::vector<size_t> GroupSizes() const {
    std::vector<size_t> sizes;
    for (const auto& group : replicator_.groups) sizes.push_back(group.size());
    return sizes;
  }

  ScriptedReplicator replicator_;
  std::unique_ptr<LogQueue> queue_;
  uint64_t transactions_ = 0;
  absl::Status status_;
};

// I1, I2. [LOG-18, LOG-19, LOG-20, LOG-21]
TEST_F(LogQueueTest, QueuedEntriesShareOneAppendInLsnOrder) {
  LogQueue& queue = Queue();
  std::deque<LogQueue::Ticket> tickets(20);
  for (size_t i = 0; i < tickets.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const Lsn lsn, Reserve(&tickets[i]));
    EXPECT_EQ(lsn, Lsn(i + 1));
  }
  EXPECT_EQ(queue.durable_lsn(), Lsn(0));
  EXPECT_EQ(queue.reserved_lsn(), Lsn(20));

  // The last to arrive leads for all.
  EXPECT_EQ(Await(&tickets.back()), AppendOutcome::kCommitted);

  EXPECT_EQ(GroupSizes(), std::vector<size_t>{20});
  EXPECT_EQ(queue.durable_lsn(), Lsn(20));
  for (size_t i = 0; i + 1 < tickets.size(); ++i) {
    EXPECT_EQ(Await(&tickets[i]), AppendOutcome::kCommitted);
    EXPECT_EQ(tickets[i].position(), PositionOf(replicator_.groups[0][i]));
  }
  const auto expected = SealRun({}, 20, 4);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(EntryBytes(replicator_.groups[0][i]), EntryBytes(expected[i]));
  }
}

TEST_F(LogQueueTest, WhoArrivesWhileAGroupIsOnItsWayFormsTheNextOne) {
  Queue();
  std::deque<LogQueue::Ticket> tickets(6);
  ASSERT_OK(Reserve(&tickets[0]));
  replicator_.on_the_way = [&] {
    replicator_.on_the_way = nullptr;
    for (size_t i = 1; i < tickets.size(); ++i) EXPECT_OK(Reserve(&tickets[i]));
  };

  for (LogQueue::Ticket& ticket : tickets) EXPECT_EQ(Await(&ticket), AppendOutcome::kCommitted);

  EXPECT_EQ(GroupSizes(), (std::vector<size_t>{1, 5}));
}

TEST_F(LogQueueTest, GroupsStayWithinTheirLimits) {
  LogQueue::Options options;
  options.group_entries_max = 3;
  options.group_bytes_max = 2'000;
  Queue(options);
  std::deque<LogQueue::Ticket> tickets(7);
  for (size_t i = 0; i < 5; ++i) ASSERT_OK(Reserve(&tickets[i]));
  ASSERT_OK(Reserve(&tickets[5], 5'000));
  ASSERT_OK(Reserve(&tickets[6]));

  EXPECT_EQ(Await(&tickets[6]), AppendOutcome::kCommitted);

  EXPECT_EQ(GroupSizes(), (std::vector<size_t>{3, 2, 1, 1}));
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(Await(&tickets[i]), AppendOutcome::kCommitted);
}

// I4, hard case A18.
TEST_F(LogQueueTest, NoSpaceIsFoundBeforeAnythingIsPublished) {
  LogQueue& queue = Queue();
  LogQueue::Ticket refused, later;
  PreparedEntry entry = Prepared(1);
  const PreparedEntry copy = entry;
  std::string dropped = "d";
  replicator_.space = 10;

  EXPECT_THAT(queue.Reserve(&entry, &dropped, &refused),
              StatusIs(absl::StatusCode::kResourceExhausted));

  EXPECT_EQ(entry.body, copy.body);
  EXPECT_EQ(dropped, "d");
  EXPECT_EQ(queue.reserved_lsn(), Lsn(0));
  replicator_.space = 1 << 20;
  EXPECT_THAT(Reserve(&later), testing::IsOkAndHolds(Lsn(1)));
  EXPECT_EQ(Await(&later), AppendOutcome::kCommitted);
}

// I3. [CORE-04]
TEST_F(LogQueueTest, FailedGroupIsUnknownAndEverythingBehindItNotCommitted) {
  LogQueue& queue = Queue();
  LogQueue::Ticket first, failed, behind, late;
  ASSERT_OK(Reserve(&first));
  ASSERT_EQ(Await(&first), AppendOutcome::kCommitted);
  ASSERT_OK(Reserve(&failed));
  replicator_.outcomes = {AppendOutcome::kUnknown};
  replicator_.on_the_way = [&] { EXPECT_OK(Reserve(&behind)); };

  EXPECT_EQ(Await(&failed), AppendOutcome::kUnknown);
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Await(&behind), AppendOutcome::kNotCommitted);
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_THAT(Reserve(&late), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(queue.WriteEmptyGroup(LogQueue::WhenBusy::kWait), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(GroupSizes(), (std::vector<size_t>{1, 1}));
  EXPECT_EQ(queue.durable_lsn(), Lsn(1));
}

TEST_F(LogQueueTest, FaultFoundElsewhereRefusesReservationsButWritesWhatIsQueued) {
  LogQueue& queue = Queue();
  LogQueue::Ticket queued, late;
  ASSERT_OK(Reserve(&queued));

  queue.Poison(absl::UnavailableError("directory work failed"));

  EXPECT_THAT(Reserve(&late), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Await(&queued), AppendOutcome::kCommitted);
}

// I5.
TEST_F(LogQueueTest, ObserverSeesEachDurableLsnBeforeItsCommitterReturns) {
  std::vector<uint64_t> seen;
  LogQueue::Options options;
  options.durable_observer = [&](Lsn durable) { seen.push_back(durable.value()); };
  LogQueue& queue = Queue(options);
  LogQueue::Ticket a, b, c;
  ASSERT_OK(Reserve(&a));
  ASSERT_OK(Reserve(&b));

  EXPECT_EQ(Await(&a), AppendOutcome::kCommitted);
  EXPECT_EQ(seen, std::vector<uint64_t>{2});
  ASSERT_OK(Reserve(&c));
  EXPECT_EQ(Await(&c), AppendOutcome::kCommitted);
  EXPECT_EQ(seen, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(Await(&b), AppendOutcome::kCommitted);
  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kWait));
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(LogQueueTest, AsksForSpaceWhenItRunsShort) {
  int asked = 0;
  LogQueue::Options options;
  options.space_observer = [&] { ++asked; };
  Queue(options);
  LogQueue::Ticket a, b;
  ASSERT_OK(Reserve(&a));
  ASSERT_EQ(Await(&a), AppendOutcome::kCommitted);
  EXPECT_EQ(asked, 0);

  replicator_.space = 1'000;
  ASSERT_OK(Reserve(&b));
  ASSERT_EQ(Await(&b), AppendOutcome::kCommitted);

  EXPECT_EQ(asked, 1);
}

// While others write the log is not idle, and whoever only wants to say so waits for nobody.
TEST_F(LogQueueTest, EmptyGroupIsLeftOutWhileSomethingIsQueued) {
  LogQueue& queue = Queue();
  LogQueue::Ticket a;
  ASSERT_OK(Reserve(&a));
  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kGiveUp));
  EXPECT_TRUE(replicator_.groups.empty());
  EXPECT_EQ(Await(&a), AppendOutcome::kCommitted);
  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kGiveUp));
  EXPECT_EQ(GroupSizes(), (std::vector<size_t>{1, 0}));
}

// Hard case A16.
TEST_F(LogQueueTest, EmptyGroupFollowsTheLastEntryOnce) {
  LogQueue& queue = Queue();
  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kWait));
  EXPECT_TRUE(replicator_.groups.empty());
  LogQueue::Ticket a;
  ASSERT_OK(Reserve(&a));

  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kWait));
  EXPECT_OK(queue.WriteEmptyGroup(LogQueue::WhenBusy::kWait));

  EXPECT_EQ(GroupSizes(), (std::vector<size_t>{1, 0}));
  EXPECT_EQ(Await(&a), AppendOutcome::kCommitted);
}

TEST_F(LogQueueTest, AnswerBeforeSyncIsNoticed) {
  const auto outcome_of_failed_group = [&] {
    LogQueue::Ticket ticket;
    Queue();
    EXPECT_OK(Reserve(&ticket));
    replicator_.outcomes = {AppendOutcome::kUnknown};
    return Await(&ticket);
  };

  EXPECT_EQ(outcome_of_failed_group(), AppendOutcome::kUnknown);
  PlantedBug bug("wal.ack_before_sync");
  EXPECT_EQ(outcome_of_failed_group(), AppendOutcome::kCommitted);
}

// Threads: leadership passes on, nobody is forgotten, and the log holds every answered entry in LSN
// order. [LOG-18, LOG-38]
TEST(LogQueueThreadsTest, ManyCommittersShareSyncsAndLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kCommits = 60;
  MemoryFileSystem memory;
  FaultFileSystem fs(&memory);
  LocalReplicator::Options log_options;
  log_options.segment_bytes = 1 << 20;
  const auto log = OpenLog(&fs, {}, log_options);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  LogQueue queue(log.get(), tail, {});
  const int64_t syncs = fs.CallCount(FileOperation::kSync);
  std::vector<std::vector<uint64_t>> lsns(kThreads);

  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        PreparedEntry entry = Prepared(static_cast<uint64_t>(t * kCommits + i + 1));
        std::string dropped;
        LogQueue::Ticket ticket;
        const auto lsn = queue.Reserve(&entry, &dropped, &ticket);
        ASSERT_OK(lsn);
        absl::Status status;
        ASSERT_EQ(queue.AwaitDurable(&ticket, &status), AppendOutcome::kCommitted);
        EXPECT_GE(queue.durable_lsn(), *lsn);
        lsns[static_cast<size_t>(t)].push_back(lsn->value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_LE(fs.CallCount(FileOperation::kSync) - syncs, kThreads * kCommits);
  EXPECT_EQ(queue.durable_lsn(), Lsn(kThreads * kCommits));
  ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(log.get(), Lsn(1)));
  const std::vector<uint64_t> numbers = NumbersOf(entries, Lsn(1));
  ASSERT_EQ(numbers.size(), static_cast<size_t>(kThreads * kCommits));
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kCommits; ++i) {
      const uint64_t lsn = lsns[static_cast<size_t>(t)][static_cast<size_t>(i)];
      EXPECT_EQ(numbers[lsn - 1], static_cast<uint64_t>(t * kCommits + i + 1));
    }
  }
}

}  // namespace
}  // namespace repotxn::wal
