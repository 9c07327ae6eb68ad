#include "tests/support/scripted_clock.h"

#include "storage/check.h"

namespace repotxn::testing {

ScriptedClock::ScriptedClock(absl::Time start) : now_(start) {}

absl::Time ScriptedClock::Now() {
  const storage::MutexLock lock(&mutex_);
  return now_;
}

absl::Duration ScriptedClock::Monotonic() {
  const storage::MutexLock lock(&mutex_);
  return monotonic_;
}

void ScriptedClock::Advance(absl::Duration by) {
  REPOTXN_DCHECK(by >= absl::ZeroDuration());
  const storage::MutexLock lock(&mutex_);
  now_ += by;
  monotonic_ += by;
}

void ScriptedClock::SetWallClock(absl::Time now) {
  const storage::MutexLock lock(&mutex_);
  now_ = now;
}

}  // namespace repotxn::testing
