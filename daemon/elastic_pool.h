// Threads that run tasks, made when needed up to a bound.
//
// A connection occupies its thread as long as it lives, so a fixed pool would either hold hundreds
// of idle threads or starve. Tasks beyond the bound wait.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_ELASTIC_POOL_H_
#define REPOTXN_DAEMON_ELASTIC_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"

namespace repotxn::daemon {

class ElasticPool {
 public:
  explicit ElasticPool(size_t threads_max) : threads_max_(threads_max) {}
  ~ElasticPool() { Shutdown(); }

  // Runs `task` on a thread of the pool, soon or when one becomes free.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs what is queued, takes nothing more, joins. Idempotent.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t threads_max_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for a task
  bool is_shut_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_ELASTIC_POOL_H_
