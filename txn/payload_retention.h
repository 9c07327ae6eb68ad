// Which payload directories of logged entries are still needed, and when they go.
//
// A directory belongs to its entry until a checkpoint covers that: what it holds is durable in the repositories then.
// One file is needed longer: a manifest that was too large for the record. Whoever reads the log again, a consumer,
// reads it, so its directory stays until the low-water mark has passed the entry as well.
//
// Thread-safe. Mutex: rank kLeaf.
#ifndef REPOTXN_TXN_PAYLOAD_RETENTION_H_
#define REPOTXN_TXN_PAYLOAD_RETENTION_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "storage/id128.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class PayloadRetention {
 public:
  // The committed entry at `lsn` has a payload directory. `manifest_bytes`: size of its manifest's file, 0 when the
  // manifest stands in the record.
  void Note(wal::Lsn lsn, const TransactionId& id, int64_t manifest_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes out what nobody needs: covered by `applied`, and not wanted above `low_water_mark`. Both are durable.
  std::vector<TransactionId> Take(wal::Lsn applied, wal::Lsn low_water_mark) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether Take() would find something.
  bool HasAny(wal::Lsn applied, wal::Lsn low_water_mark) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::flat_hash_set<TransactionId> ids() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes of manifests above `lsn` that are kept for readers of the log.
  int64_t BytesAbove(wal::Lsn lsn) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Payload {
    wal::Lsn lsn;
    TransactionId id;
    int64_t manifest_bytes = 0;

    bool IsNeeded(wal::Lsn applied, wal::Lsn low_water_mark) const {
      return lsn > applied || (manifest_bytes > 0 && lsn > low_water_mark);
    }
  };

  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  std::vector<Payload> payloads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_PAYLOAD_RETENTION_H_
