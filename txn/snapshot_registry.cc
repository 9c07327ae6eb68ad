#include "txn/snapshot_registry.h"

#include "storage/check.h"

namespace repotxn::txn {

wal::Lsn SnapshotRegistry::Enter() {
  const storage::MutexLock lock(&mutex_);
  const wal::Lsn lsn(committed_->load(std::memory_order_acquire));
  ++in_use_[lsn];
  ++count_;
  return lsn;
}

void SnapshotRegistry::Leave(wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  const auto it = in_use_.find(lsn);
  REPOTXN_DCHECK(it != in_use_.end());
  if (it != in_use_.end() && --it->second == 0) in_use_.erase(it);
  --count_;
}

wal::Lsn SnapshotRegistry::OldestInUse() const {
  const storage::MutexLock lock(&mutex_);
  return in_use_.empty() ? wal::Lsn(committed_->load(std::memory_order_acquire))
                         : in_use_.begin()->first;
}

int64_t SnapshotRegistry::count() const {
  const storage::MutexLock lock(&mutex_);
  return count_;
}

}  // namespace repotxn::txn
