#include "txn/payload_retention.h"

#include <algorithm>

namespace repotxn::txn {

void PayloadRetention::Note(wal::Lsn lsn, const TransactionId& id, int64_t manifest_bytes) {
  const storage::MutexLock lock(&mutex_);
  payloads_.push_back({lsn, id, manifest_bytes});
}

std::vector<TransactionId> PayloadRetention::Take(wal::Lsn applied, wal::Lsn low_water_mark) {
  const storage::MutexLock lock(&mutex_);
  const auto keep = std::stable_partition(
      payloads_.begin(), payloads_.end(),
      [&](const Payload& payload) { return payload.IsNeeded(applied, low_water_mark); });
  std::vector<TransactionId> taken;
  for (auto it = keep; it != payloads_.end(); ++it) taken.push_back(it->id);
  payloads_.erase(keep, payloads_.end());
  return taken;
}

bool PayloadRetention::HasAny(wal::Lsn applied, wal::Lsn low_water_mark) const {
  const storage::MutexLock lock(&mutex_);
  return std::any_of(payloads_.begin(), payloads_.end(), [&](const Payload& payload) {
    return !payload.IsNeeded(applied, low_water_mark);
  });
}

absl::flat_hash_set<TransactionId> PayloadRetention::ids() const {
  const storage::MutexLock lock(&mutex_);
  absl::flat_hash_set<TransactionId> ids;
  for (const Payload& payload : payloads_) ids.insert(payload.id);
  return ids;
}

int64_t PayloadRetention::BytesAbove(wal::Lsn lsn) const {
  const storage::MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Payload& payload : payloads_) {
    if (payload.lsn > lsn) bytes += payload.manifest_bytes;
  }
  return bytes;
}

}  // namespace repotxn::txn
