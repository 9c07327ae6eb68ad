// Clock that only the test moves.
//
// Thread-safe.
#ifndef REPOTXN_TESTS_SUPPORT_SCRIPTED_CLOCK_H_
#define REPOTXN_TESTS_SUPPORT_SCRIPTED_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "absl/time/time.h"
#include "storage/clock.h"

namespace repotxn::testing {

class ScriptedClock final : public storage::Clock {
 public:
  explicit ScriptedClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000));

  absl::Time Now() override;
  absl::Duration Monotonic() override;

  // Moves both clocks on; `by` is not negative.
  void Advance(absl::Duration by);
  // Makes the wall clock jump, the monotonic one not.
  void SetWallClock(absl::Time now);

 private:
  storage::Mutex mutex_{storage::MutexRank::kInnermost};
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  absl::Duration monotonic_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_SCRIPTED_CLOCK_H_
