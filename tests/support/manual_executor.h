// Executor that runs tasks only when the test says so, on the test's thread.
//
// Thread-safe.
#ifndef REPOTXN_TESTS_SUPPORT_MANUAL_EXECUTOR_H_
#define REPOTXN_TESTS_SUPPORT_MANUAL_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "storage/executor.h"

namespace repotxn::testing {

class ManualExecutor final : public storage::Executor {
 public:
  void Schedule(std::function<void()> task) override;
  void ScheduleAfter(absl::Duration delay, std::function<void()> task) override;

  // Runs the next due task; false when none is due.
  bool RunOne();
  // Runs due tasks, also those that they schedule, until none is due; returns how many ran.
  int RunDue();
  // Moves the executor's time on, then RunDue().
  int Advance(absl::Duration by);
  // Tasks waiting, due or not.
  int pending_count() const;

 private:
  mutable storage::Mutex mutex_{storage::MutexRank::kInnermost};
  absl::Duration now_ ABSL_GUARDED_BY(mutex_);
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<absl::Duration, uint64_t>, std::function<void()>> tasks_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_MANUAL_EXECUTOR_H_
