#include "txn/partition.h"

#include <utility>
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

int64_t PartitionTable::Evict(wal::Lsn oldest, int64_t bytes_max) {
  std::vector<Partition*> left;
  {
    const storage::MutexLock lock(&mutex_);
    for (const auto& [id, partition] : partitions_) left.push_back(partition.get());
  }
  int64_t settled = 0;  // bytes of histories that have nothing more to evict
  while (true) {
    int64_t bytes = settled;
    std::vector<Partition*> more;
    for (Partition* partition : left) {
      const storage::MutexLock lock(&partition->mutex);
      partition->history.SetOldestSnapshot(oldest);
      const bool has_more = partition->history.Evict(kEvictedKeysMax);
      const auto held = static_cast<int64_t>(partition->history.bytes());
      bytes += held;
      if (has_more) {
        more.push_back(partition);
      } else {
        settled += held;
      }
    }
    if (bytes <= bytes_max || more.empty()) return bytes;
    left = std::move(more);
  }
}

}  // namespace repotxn::txn
