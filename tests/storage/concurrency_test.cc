// Lock ranks, scheduling points, executors, clocks, the log's lines.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/clock.h"
#include "storage/executor.h"
#include "storage/log.h"
#include "storage/sync.h"
#include "tests/support/manual_executor.h"
#include "tests/support/scripted_clock.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::ManualExecutor;
using ::repotxn::testing::ScriptedClock;
using ::testing::ElementsAre;

TEST(MutexRanks, AscendingRanksAndSeveralPartitionsAreFine) {
  Mutex latch_a(MutexRank::kMaterializer);
  Mutex latch_b(MutexRank::kMaterializer);
  Mutex partition_a(MutexRank::kPartition);
  Mutex partition_b(MutexRank::kPartition);
  Mutex log(MutexRank::kLog);
  for (int i = 0; i < 2; ++i) {
    const MutexLock l1(&latch_a);
    const MutexLock l2(&latch_b);
    const MutexLock l3(&partition_a);
    const MutexLock l4(&partition_b);
    const MutexLock l5(&log);
  }
  // Released in another order than acquired.
  partition_a.Lock();
  log.Lock();
  partition_a.Unlock();
  log.Unlock();
  const bool is_free = latch_a.TryLock();
  EXPECT_TRUE(is_free);
  if (is_free) latch_a.Unlock();
}

TEST(MutexRanksDeathTest, AnInversionAborts) {
  Mutex log(MutexRank::kLog);
  Mutex partition(MutexRank::kPartition);
  EXPECT_DEATH(
      {
        const MutexLock l1(&log);
        const MutexLock l2(&partition);
      },
      "rank 40 acquired under rank 50");
}

TEST(MutexRanksDeathTest, TwoOfAnotherRankAbort) {
  Mutex a(MutexRank::kLog);
  Mutex b(MutexRank::kLog);
  EXPECT_DEATH(
      {
        const MutexLock l1(&a);
        const MutexLock l2(&b);
      },
      "rank 50 acquired under rank 50");
}

TEST(MutexRanks, AreOfOneThread) {
  Mutex leaf(MutexRank::kLeaf);
  Mutex log(MutexRank::kLog);
  const MutexLock lock(&leaf);
  std::thread([&log] { const MutexLock other(&log); }).join();
}

class CountingHook final : public SchedulingHook {
 public:
  void OnSchedulingPoint() override { ++count; }
  std::atomic<int> count{0};
};

TEST(SchedulingPoint, LocksUnlocksAndWaitsPassOne) {
  CountingHook hook;
  Mutex mutex(MutexRank::kLeaf);
  CondVar changed;
  SetSchedulingHook(&hook);
  mutex.Lock();
  changed.WaitFor(&mutex, absl::ZeroDuration());
  mutex.Unlock();
  SetSchedulingHook(nullptr);
  EXPECT_EQ(hook.count, 3);
  mutex.Lock();
  mutex.Unlock();
  EXPECT_EQ(hook.count, 3);
}

TEST(ThreadPoolExecutor, RunsEveryTaskOnce) {
  std::atomic<int> ran{0};
  repotxn::testing::Notification all;
  ThreadPoolExecutor executor(3);
  for (int i = 0; i < 500; ++i) {
    executor.Schedule([&] {
      if (++ran == 1000) all.Notify();
    });
    executor.ScheduleAfter(absl::ZeroDuration(), [&] {
      if (++ran == 1000) all.Notify();
    });
  }
  all.WaitForNotification();
  executor.Shutdown();
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPoolExecutor, ADelayedTaskRunsAfterItsTimeAndInOrder) {
  ThreadPoolExecutor executor(1);
  std::vector<int> order;
  repotxn::testing::Notification done;
  const absl::Duration begin = Clock::System()->Monotonic();
  executor.ScheduleAfter(absl::Milliseconds(20), [&] {
    order.push_back(2);
    done.Notify();
  });
  executor.ScheduleAfter(absl::Milliseconds(10), [&] { order.push_back(1); });
  done.WaitForNotification();
  EXPECT_GE(Clock::System()->Monotonic() - begin, absl::Milliseconds(20));
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(ThreadPoolExecutor, ShutdownFinishesWhatRunsAndDropsTheRest) {
  std::atomic<bool> finished{false};
  std::atomic<bool> dropped_ran{false};
  repotxn::testing::Notification begun;
  repotxn::testing::Notification go_on;
  ThreadPoolExecutor executor(1);
  executor.Schedule([&] {
    begun.Notify();
    go_on.WaitForNotification();
    finished = true;
  });
  begun.WaitForNotification();
  executor.ScheduleAfter(absl::Hours(1), [&] { dropped_ran = true; });
  std::thread shutdown([&] { executor.Shutdown(); });
  go_on.Notify();
  shutdown.join();
  EXPECT_TRUE(finished);
  executor.Schedule([&] { dropped_ran = true; });
  executor.Shutdown();
  EXPECT_FALSE(dropped_ran);
}

TEST(ManualExecutor, RunsWhenToldAndByItsOwnTime) {
  ManualExecutor executor;
  std::vector<int> order;
  executor.ScheduleAfter(absl::Seconds(2), [&] { order.push_back(3); });
  executor.Schedule([&] {
    order.push_back(1);
    executor.Schedule([&] { order.push_back(2); });
  });
  EXPECT_EQ(executor.pending_count(), 2);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(executor.RunDue(), 2);
  EXPECT_FALSE(executor.RunOne());
  EXPECT_EQ(executor.Advance(absl::Seconds(1)), 0);
  EXPECT_EQ(executor.Advance(absl::Seconds(1)), 1);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(ScriptedClock, MovesOnlyWhenTold) {
  ScriptedClock clock(absl::FromUnixSeconds(100));
  const absl::Duration begin = clock.Monotonic();
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Monotonic() - begin, absl::Seconds(5));
  clock.SetWallClock(absl::FromUnixSeconds(1));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1));
  EXPECT_EQ(clock.Monotonic() - begin, absl::Seconds(5));
}

TEST(Log, OneCallIsOneLineAndLevelsAreKept) {
  std::vector<std::string> lines;
  SetLogSink([&lines](LogLevel level, absl::string_view message) {
    lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(message));
  });
  LogInfo("plain");
  LogWarning("ref a\nERROR forged\x7f");
  SetLogLevel(LogLevel::kError);
  LogWarning("dropped");
  LogError("kept");
  SetLogLevel(LogLevel::kInfo);
  SetLogSink(nullptr);
  EXPECT_THAT(lines, ElementsAre("0 plain", "1 ref a\\nERROR forged\\x7f", "2 kept"));
}

}  // namespace
}  // namespace repotxn::storage
