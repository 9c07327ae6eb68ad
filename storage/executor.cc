#include "storage/executor.h"

#include <algorithm>

#include "storage/check.h"

namespace repotxn::storage {

ThreadPoolExecutor::ThreadPoolExecutor(int threads, Clock* clock) : clock_(clock) {
  REPOTXN_DCHECK(threads > 0);
  threads_.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

ThreadPoolExecutor::~ThreadPoolExecutor() { Shutdown(); }

void ThreadPoolExecutor::Schedule(std::function<void()> task) {
  const MutexLock lock(&mutex_);
  if (is_shut_) return;
  ready_.push_back(std::move(task));
  changed_.Signal();
}

void ThreadPoolExecutor::ScheduleAfter(absl::Duration delay, std::function<void()> task) {
  const absl::Duration due = clock_->Monotonic() + std::max(delay, absl::ZeroDuration());
  const MutexLock lock(&mutex_);
  if (is_shut_) return;
  delayed_.emplace(std::make_pair(due, delayed_count_++), std::move(task));
  // All, because a thread in a long wait has to shorten it and we cannot tell which one will take
  // the task.
  changed_.SignalAll();
}

void ThreadPoolExecutor::Shutdown() {
  // Dropped tasks are destroyed outside the lock: what they captured may do anything.
  std::deque<Task> dropped;
  std::map<std::pair<absl::Duration, uint64_t>, Task> dropped_delayed;
  {
    const MutexLock lock(&mutex_);
    is_shut_ = true;
    dropped.swap(ready_);
    dropped_delayed.swap(delayed_);
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadPoolExecutor::Run() {
  for (Task task; Next(&task); task = nullptr) task();
}

bool ThreadPoolExecutor::Next(Task* task) {
  const MutexLock lock(&mutex_);
  while (!is_shut_) {
    const absl::Duration now = clock_->Monotonic();
    while (!delayed_.empty() && delayed_.begin()->first.first <= now) {
      ready_.push_back(std::move(delayed_.begin()->second));
      delayed_.erase(delayed_.begin());
    }
    if (!ready_.empty()) {
      *task = std::move(ready_.front());
      ready_.pop_front();
      return true;
    }
    if (delayed_.empty()) {
      changed_.Wait(&mutex_);
    } else {
      changed_.WaitFor(&mutex_, delayed_.begin()->first.first - now);
    }
  }
  return false;
}

}  // namespace repotxn::storage
