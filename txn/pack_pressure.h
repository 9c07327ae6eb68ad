// Slows those who add packs to a repository faster than its packs are merged: at a thousand packs Git's own commands, and the
// proof of a push among them, are many times slower, so that waiting for a merge now is the shorter way [hard case P3].
//
// Who finds too many waits until a merge has begun (which counts anew) or ended, for at most a moment: a merge that cannot be done
// must not shut a repository.
//
// Thread-safe. Mutex: rank kLeaf.
#ifndef REPOTXN_TXN_PACK_PRESSURE_H_
#define REPOTXN_TXN_PACK_PRESSURE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"

namespace repotxn::txn {

class PackPressure {
 public:
  // Packs added since the last merge at which others wait, and for how long at most.
  static constexpr int kPacksWaitingMin = 200;
  static constexpr absl::Duration kPatience = absl::Seconds(1);

  // Waits while `packs_added` tells that they are too many, until `limit` or the patience is over.
  void Await(const storage::WaitLimit& limit, storage::Clock* clock, absl::FunctionRef<int()> packs_added)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A merge has begun or ended.
  void NoteMerge() ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody waits any more: the store closes.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar moved_;
  uint64_t merges_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_PACK_PRESSURE_H_
