#include "txn/pack_pressure.h"

#include "storage/clock.h"

namespace repotxn::txn {

void PackPressure::Await(const storage::WaitLimit& limit, storage::Clock* clock, absl::FunctionRef<int()> packs_added) {
  if (packs_added() < kPacksWaitingMin) return;
  const absl::Duration until = clock->Monotonic() + kPatience;
  const storage::CancellationWaker waker(limit, &mutex_, &moved_);
  const storage::MutexLock lock(&mutex_);
  const uint64_t seen = merges_;
  while (merges_ == seen && !is_released_ && packs_added() >= kPacksWaitingMin && limit.Check().ok()) {
    const absl::Duration left = until - clock->Monotonic();
    if (left <= absl::ZeroDuration()) return;
    storage::WaitWithin(limit, &moved_, &mutex_, left);
  }
}

void PackPressure::NoteMerge() {
  const storage::MutexLock lock(&mutex_);
  ++merges_;
  moved_.SignalAll();
}

void PackPressure::Release() {
  const storage::MutexLock lock(&mutex_);
  is_released_ = true;
  moved_.SignalAll();
}

}  // namespace repotxn::txn
