#include "txn/partition.h"

#include <vector>

namespace repotxn::txn {
namespace {

// Keys that one sweep evicts from one history: about a tenth of a millisecond.
constexpr size_t kEvictedKeysMax = 1024;

}  // namespace

Partition* PartitionTable::Get(wal::PartitionId id) {
  const storage::MutexLock lock(&mutex_);
  std::unique_ptr<Partition>& partition = partitions_[id];
  if (partition == nullptr) partition = std::make_unique<Partition>(id, floor_);
  return partition.get();
}

void PartitionTable::Evict(wal::Lsn oldest) {
  std::vector<Partition*> all;
  {
    const storage::MutexLock lock(&mutex_);
    for (const auto& [id, partition] : partitions_) all.push_back(partition.get());
  }
  for (Partition* partition : all) {
    const storage::MutexLock lock(&partition->mutex);
    partition->history.SetOldestSnapshot(oldest);
    partition->history.Evict(kEvictedKeysMax);
  }
}

}  // namespace repotxn::txn
