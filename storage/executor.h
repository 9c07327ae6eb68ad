// Runs work in the background, as an argument, so that tests decide when it runs.
//
// Tasks may start other tasks. A task that waits for a later one may wait for ever when all threads
// do so: tasks do their work and end.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_EXECUTOR_H_
#define REPOTXN_STORAGE_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "storage/clock.h"
#include "storage/sync.h"

namespace repotxn::storage {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `task` soon, once, on some thread of the executor.
  virtual void Schedule(std::function<void()> task) = 0;
  // The same, not before `delay` has passed.
  virtual void ScheduleAfter(absl::Duration delay, std::function<void()> task) = 0;
};

// A fixed number of threads; tasks begin in the order in which they become due.
class ThreadPoolExecutor final : public Executor {
 public:
  // `clock` measures the delays and must outlive the executor.
  explicit ThreadPoolExecutor(int threads, Clock* clock = Clock::System());
  // As Shutdown().
  ~ThreadPoolExecutor() override;

  void Schedule(std::function<void()> task) override ABSL_LOCKS_EXCLUDED(mutex_);
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops what has not begun, waits for what has, joins. What is scheduled afterwards is dropped.
  // Idempotent; not to be called from a task.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Task = std::function<void()>;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for a due task; false when shutting down.
  bool Next(Task* task) ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  Mutex mutex_{MutexRank::kLeaf};
  CondVar changed_;
  std::deque<Task> ready_ ABSL_GUARDED_BY(mutex_);
  // By due time on clock_->Monotonic(); the counter keeps equal times in order.
  std::map<std::pair<absl::Duration, uint64_t>, Task> delayed_ ABSL_GUARDED_BY(mutex_);
  uint64_t delayed_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_shut_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_EXECUTOR_H_
