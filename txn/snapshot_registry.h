// Snapshot LSNs in use: what the oldest reader still needs.
//
// Enter() takes S and publishes the slot under one mutex with OldestInUse(), so that nobody can compute an oldest
// snapshot between the two [hard case A14].
//
// Thread-safe. Mutex: rank kRegistry.
#ifndef REPOTXN_TXN_SNAPSHOT_REGISTRY_H_
#define REPOTXN_TXN_SNAPSHOT_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class SnapshotRegistry {
 public:
  // `committed`: the store's committed LSN; outlives the registry.
  explicit SnapshotRegistry(const std::atomic<uint64_t>* committed) : committed_(committed) {}

  // Takes the newest committed LSN as a snapshot in use.
  wal::Lsn Enter() ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Smallest snapshot in use, or the committed LSN when there is none: what every later Enter() is at or above.
  wal::Lsn OldestInUse() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::atomic<uint64_t>* const committed_;
  mutable storage::Mutex mutex_{storage::MutexRank::kRegistry};
  std::map<wal::Lsn, int64_t> in_use_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SNAPSHOT_REGISTRY_H_
