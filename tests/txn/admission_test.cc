#include "txn/admission.h"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/scripted_clock.h"
#include "tests/support/status_matchers.h"

namespace repotxn::testing {
namespace {

using txn::Admission;

// The queues in front of the pipeline, alone: who is admitted when, told by the order in which threads that came one
// after the other get on. A thread counts as having come when the admission counts it as waiting.
class AdmissionTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }
  void Make(int in_flight_max, int queue_max = 100) {
    admission_ = std::make_unique<Admission>(Admission::Options{in_flight_max, queue_max});
  }
  // Takes all room, so that whoever comes now waits.
  void FillRoom() {
    while (admission_->Enter({99}, Cancelled(false)).ok()) {
      if (++filled_ == room_) return;
    }
  }
  // Comes, waits its turn, notes its name, leaves.
  void Come(const std::string& name, std::vector<wal::PartitionId> partitions, storage::WaitLimit limit = {}) {
    const int before = admission_->waiting();
    threads_.emplace_back([this, name, partitions, limit] {
      const absl::Status status = admission_->Enter(partitions, limit);
      {
        const storage::MutexLock lock(&mutex_);
        absl::StrAppend(&order_, order_.empty() ? "" : " ", name);
        if (!status.ok()) absl::StrAppend(&order_, ":", absl::StatusCodeToString(status.code()));
      }
      if (status.ok()) admission_->Leave();
    });
    while (admission_->waiting() == before) std::this_thread::yield();
  }
  void LeaveAll() {
    for (; filled_ > 0; --filled_) admission_->Leave();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  static storage::WaitLimit Cancelled(bool is_cancelled) {
    storage::CancellationSource source;
    if (is_cancelled) source.request_stop();
    return {.cancellation = source.get_token()};
  }
  std::string Order() {
    const storage::MutexLock lock(&mutex_);
    return order_;
  }

  std::unique_ptr<Admission> admission_;
  int room_ = 1, filled_ = 0;
  storage::Mutex mutex_{storage::MutexRank::kInnermost};
  std::string order_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

TEST_F(AdmissionTest, AdmitsAtOnceWhileThereIsRoom) {
  Make(3);
  for (int n = 0; n < 3; ++n) EXPECT_THAT(admission_->Enter({1}, {}), IsOk());
  EXPECT_EQ(admission_->in_flight(), 3);
  EXPECT_EQ(admission_->waiting(), 0);
  for (int n = 0; n < 3; ++n) admission_->Leave();
  EXPECT_EQ(admission_->in_flight(), 0);
}

TEST_F(AdmissionTest, AdmitsInTheOrderOfComing) {
  Make(1);
  FillRoom();
  for (const char* name : {"a", "b", "c", "d"}) Come(name, {1});
  LeaveAll();
  EXPECT_EQ(Order(), "a b c d");
}

TEST_F(AdmissionTest, DelaysOthersByOneCommitATurnWhenOnePartitionIsFlooded) {
  Make(1);
  FillRoom();
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) Come(name, {1});
  Come("b1", {2});
  Come("c1", {3});
  Come("b2", {2});
  LeaveAll();
  EXPECT_EQ(Order(), "a1 b1 c1 a2 b2 a3 a4 a5");
}

// Nearly all commits touch the name space: that must not make one line of them.
TEST_F(AdmissionTest, TakesNoAccountOfTheNameSpaceBesideARepository) {
  Make(1);
  FillRoom();
  for (const char* name : {"a1", "a2", "a3"}) Come(name, {0, 1});
  Come("b1", {0, 2});
  Come("names", {0});
  LeaveAll();
  EXPECT_EQ(Order(), "a1 b1 names a2 a3");
}

// B12
TEST_F(AdmissionTest, PutsAnyTwoInTheSameOrderInAllTheirQueues) {
  Make(1);
  FillRoom();
  Come("t1", {1, 2});
  Come("t2", {2, 1});
  Come("t3", {2});
  Come("t4", {1});
  Come("t5", {1, 2});
  LeaveAll();
  EXPECT_EQ(Order(), "t1 t2 t4 t3 t5");
}

// B12: whatever the order of their partitions, nobody waits in a circle.
TEST_F(AdmissionTest, LetsManyWithManyPartitionsThrough) {
  Make(2);
  std::atomic<int> inside{0}, most{0}, done{0};
  for (int writer = 0; writer < 8; ++writer) {
    threads_.emplace_back([&, writer] {
      for (uint64_t n = 0; n < 500; ++n) {
        const uint64_t first = 1 + (n + static_cast<uint64_t>(writer)) % 3;
        ASSERT_THAT(admission_->Enter({first, 1 + first % 3}, {}), IsOk());
        const int now = inside.fetch_add(1) + 1;
        for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        inside.fetch_sub(1);
        admission_->Leave();
        done.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_EQ(done.load(), 4000);
  EXPECT_LE(most.load(), 2);
  EXPECT_EQ(admission_->in_flight(), 0);
  EXPECT_EQ(admission_->waiting(), 0);
}

TEST_F(AdmissionTest, RefusesAtOnceWhenAQueueIsFullAndNobodyElse) {
  Make(1, /*queue_max=*/2);
  FillRoom();
  Come("a1", {1});
  Come("a2", {1, 2});

  EXPECT_THAT(admission_->Enter({1}, {}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(admission_->Enter({1, 3}, {}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(admission_->waiting(), 2);
  Come("b1", {2});
  LeaveAll();
  EXPECT_EQ(Order(), "a1 a2 b1");
}

TEST_F(AdmissionTest, LetsOneWhoIsCancelledGoAndTheNextMoveUp) {
  Make(1);
  FillRoom();
  storage::CancellationSource source;
  Come("a1", {1, 2}, {.cancellation = source.get_token()});
  Come("a2", {1});
  Come("b1", {2});
  source.request_stop();
  while (Order().empty()) std::this_thread::yield();
  EXPECT_THAT(admission_->Enter({1}, Cancelled(true)), StatusIs(absl::StatusCode::kCancelled));
  LeaveAll();
  EXPECT_EQ(Order(), "a1:CANCELLED a2 b1");
}

TEST_F(AdmissionTest, LetsOneGoWhoseDeadlineCame) {
  ScriptedClock clock;
  Make(1);
  FillRoom();
  Come("late", {1}, {.clock = &clock, .deadline = clock.Now() + absl::Seconds(5)});
  Come("patient", {1});
  clock.Advance(absl::Seconds(6));
  while (Order().empty()) std::this_thread::yield();
  LeaveAll();
  EXPECT_EQ(Order(), "late:DEADLINE_EXCEEDED patient");
}

TEST_F(AdmissionTest, AdmitsLessWhileItsRoomIsMadeSmaller) {
  Make(3);
  admission_->SetRoom(1);
  ASSERT_THAT(admission_->Enter({1}, {}), IsOk());
  filled_ = 1;
  Come("a", {1});
  Come("b", {1});
  EXPECT_EQ(admission_->in_flight(), 1);
  admission_->SetRoom(100);  // at most as much as there was
  while (admission_->waiting() > 0) std::this_thread::yield();
  LeaveAll();
  EXPECT_EQ(admission_->in_flight(), 0);
}

TEST_F(AdmissionTest, TurnsAwayWhoeverWaitsAndComesWhenItIsClosed) {
  Make(1);
  FillRoom();
  Come("a", {1, 2});
  admission_->Close();
  EXPECT_THAT(admission_->Enter({1}, {}), StatusIs(absl::StatusCode::kUnavailable));
  LeaveAll();
  EXPECT_EQ(Order(), "a:UNAVAILABLE");
  EXPECT_THAT(admission_->Enter({1}, {}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(admission_->in_flight(), 0);
}

}  // namespace
}  // namespace repotxn::testing
