// The durable positions of a store: applied, and one for each consumer. Private to txn/.
//
// All of them stand in one row of the metadata store (wal/positions.h), so that whatever is synced last is one consistent
// set.
//
// Invariants
//   I1  The low-water mark is computed from positions that a synced write has made durable, never from memory alone
//       [hard case B15].
//   I2  A consumer is acknowledged only up to what was delivered to it since the store was opened.
//   I3  No position moves back.
//
// If we die between an acknowledgement and the next synced write, the older position holds: its entries are still in
// the log, because the mark was not above it (I1), and are delivered again.
//
// Thread-safe. Mutex: rank kRegistry, held around writes of the metadata store, never while somebody waits for entries.
#ifndef REPOTXN_TXN_CONSUMER_TABLE_H_
#define REPOTXN_TXN_CONSUMER_TABLE_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/metadata_store.h"
#include "storage/sync.h"
#include "wal/positions.h"
#include "wal/replicator.h"

namespace repotxn::txn {

// What is known of a consumer only while the store is open.
struct ConsumerReader {
  // Ends the wait under way, or the next one.
  std::atomic<bool> is_interrupted{false};
  // The following belong to whoever holds the reader (BeginRead to EndRead).
  std::unique_ptr<wal::EntryCursor> cursor;
  wal::Lsn cursor_at;  // the entry that `cursor` gives next

 private:
  friend class ConsumerTable;
  // Under the table's mutex.
  bool is_taken = false;
  std::deque<wal::LogPosition> delivered;  // and not acknowledged; dense (I2)
};

class ConsumerTable {
 public:
  // `stored`: what Load() found. `metadata` must outlive the table.
  ConsumerTable(storage::MetadataStore* metadata, wal::Positions stored);
  static absl::StatusOr<wal::Positions> Load(storage::MetadataStore* metadata);

  wal::Positions positions() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Durable when it returns OK. kAlreadyExists; kOutOfRange `acknowledged` is below the low-water mark by now.
  absl::Status Create(absl::string_view name, const wal::LogPosition& acknowledged) ABSL_LOCKS_EXCLUDED(mutex_);
  // Durable when it returns OK. kNotFound.
  absl::Status Remove(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Not synced. kNotFound; kOutOfRange it has been dropped; kFailedPrecondition `lsn` was not delivered (I2), changes
  // nothing. An LSN acknowledged already is fine.
  absl::Status Acknowledge(absl::string_view name, wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the reader of a consumer; no second one while it is held. kNotFound; kOutOfRange dropped; kFailedPrecondition
  // taken; kUnavailable closing. `*acknowledged` is its position.
  absl::StatusOr<std::shared_ptr<ConsumerReader>> BeginRead(absl::string_view name, wal::LogPosition* acknowledged)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives it back; what was `delivered`, in LSN order, may be acknowledged.
  void EndRead(ConsumerReader* reader, const std::vector<wal::LogPosition>& delivered) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it may read: OK, kNotFound, kOutOfRange dropped, kUnavailable closing.
  absl::Status Check(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // kNotFound. The caller wakes whoever waits.
  absl::Status Interrupt(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Advances the applied position, synced, together with every acknowledgement so far and the edits of `batch`. Returns the
  // low-water mark.
  absl::StatusOr<wal::LogPosition> AdvanceApplied(const wal::LogPosition& applied, storage::MetadataBatch batch = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes acknowledgements durable; drops those that `lags`, durably. Returns the low-water mark.
  absl::StatusOr<wal::LogPosition> SyncMark(absl::FunctionRef<bool(const wal::ConsumerPosition&)> lags)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses reading and acknowledging from now on, and interrupts everybody. The caller wakes whoever waits.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Write(const wal::Positions& positions, storage::MetadataSync sync, storage::MetadataBatch batch = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its reader. kNotFound; kOutOfRange dropped; kUnavailable closing.
  absl::StatusOr<std::shared_ptr<ConsumerReader>> Usable(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::MetadataStore* const metadata_;
  mutable storage::Mutex mutex_{storage::MutexRank::kRegistry};
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  wal::Positions positions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<ConsumerReader>> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CONSUMER_TABLE_H_
