// The payload directory of one transaction, shared by everything that adds files to it: staged packs of several
// repositories, large files, a large manifest.
//
// Removed when the last holder lets go, unless the entry is in the log (or may be): then it belongs to the log, and goes
// after the checkpoint that covers it.
//
// Thread-safe.
#ifndef REPOTXN_TXN_TRANSACTION_PAYLOAD_H_
#define REPOTXN_TXN_TRANSACTION_PAYLOAD_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sync.h"
#include "wal/payload_store.h"

namespace repotxn::txn {

class TransactionPayload {
 public:
  TransactionPayload(wal::PayloadStore* store, const TransactionId& id) : store_(store), id_(id) {}
  ~TransactionPayload();

  absl::StatusOr<wal::PayloadFile> AddBytes(absl::string_view content) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<wal::PayloadFile> AddLinked(const storage::StorePath& source) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes what was added so far durable.
  absl::Status Seal() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<wal::PayloadFile> files() ABSL_LOCKS_EXCLUDED(mutex_);
  // The entry is in the log, or nobody knows yet.
  void ReleaseToLog() { belongs_to_log_.store(true); }

 private:
  absl::Status EnsureCreated() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  wal::PayloadStore* const store_;
  const TransactionId id_;
  std::atomic<bool> belongs_to_log_{false};
  // Held while files are copied and synced: those who add to one transaction wait for one another.
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  std::unique_ptr<wal::StagedPayload> staged_ ABSL_GUARDED_BY(mutex_);
};

class TransactionPayloads {
 public:
  explicit TransactionPayloads(wal::PayloadStore* store) : store_(store) {}
  // The payload of a transaction; the same one for every holder.
  std::shared_ptr<TransactionPayload> Of(const TransactionId& id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  wal::PayloadStore* const store_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<TransactionId, std::weak_ptr<TransactionPayload>> payloads_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_TRANSACTION_PAYLOAD_H_
