// Conflict domains of a store: each has a mutex and the history of what was written in it.
//
// Thread-safe. A Partition lives as long as its table; its history is guarded by its mutex (rank kPartition; several
// are acquired in the order of their ids).
#ifndef REPOTXN_TXN_PARTITION_H_
#define REPOTXN_TXN_PARTITION_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "locks/conflict_history.h"
#include "storage/sync.h"
#include "wal/lsn.h"
#include "wal/operation.h"

namespace repotxn::txn {

struct Partition {
  Partition(wal::PartitionId partition_id, wal::Lsn floor) : id(partition_id), history(floor) {}

  const wal::PartitionId id;
  storage::Mutex mutex{storage::MutexRank::kPartition};
  locks::ConflictHistory history;  // guarded by mutex
};

class PartitionTable {
 public:
  // `floor`: the LSN at which the store was opened. A partition in which nothing was committed since has nothing above it.
  explicit PartitionTable(wal::Lsn floor) : floor_(floor) {}

  Partition* Get(wal::PartitionId id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets every history forget what no snapshot at or above `oldest` needs: bounded work each, and more, all that may go
  // at the utmost, while they hold more than `bytes_max` together. Returns the bytes that they hold.
  int64_t Evict(wal::Lsn oldest, int64_t bytes_max) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const wal::Lsn floor_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<wal::PartitionId, std::unique_ptr<Partition>> partitions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_PARTITION_H_
