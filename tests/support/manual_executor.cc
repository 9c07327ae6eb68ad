#include "tests/support/manual_executor.h"

#include <algorithm>

namespace repotxn::testing {

void ManualExecutor::Schedule(std::function<void()> task) {
  ScheduleAfter(absl::ZeroDuration(), std::move(task));
}

void ManualExecutor::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  const storage::MutexLock lock(&mutex_);
  const absl::Duration due = now_ + std::max(delay, absl::ZeroDuration());
  tasks_.emplace(std::make_pair(due, count_++), std::move(task));
}

bool ManualExecutor::RunOne() {
  std::function<void()> task;
  {
    const storage::MutexLock lock(&mutex_);
    if (tasks_.empty() || tasks_.begin()->first.first > now_) return false;
    task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
  }
  task();
  return true;
}

int ManualExecutor::RunDue() {
  int ran = 0;
  while (RunOne()) ++ran;
  return ran;
}

int ManualExecutor::Advance(absl::Duration by) {
  {
    const storage::MutexLock lock(&mutex_);
    now_ += by;
  }
  return RunDue();
}

int ManualExecutor::pending_count() const {
  const storage::MutexLock lock(&mutex_);
  return static_cast<int>(tasks_.size());
}

}  // namespace repotxn::testing
