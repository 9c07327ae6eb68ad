// Rows of the applied state (catalogue, outcomes) as of any snapshot in use: versions over the metadata store.
//
// Thread-safe. Mutex: rank kOverlay, held for an instant, never around the metadata store.
#ifndef REPOTXN_TXN_ROW_SPACE_H_
#define REPOTXN_TXN_ROW_SPACE_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/metadata_store.h"
#include "storage/sync.h"
#include "txn/catalogue.h"
#include "txn/version_table.h"
#include "wal/lsn.h"

namespace repotxn::txn {

// Value of a row; nullopt: absent.
struct RowState {
  std::optional<std::string> value;
};
inline int64_t StateBytes(const RowState& state) {
  return state.value ? static_cast<int64_t>(state.value->size()) : 0;
}

// A row with the LSN of its last change.
struct Row {
  std::string key;
  wal::Lsn version;
  std::string value;
};

class RowSpace {
 public:
  // `metadata` must outlive the space.
  explicit RowSpace(storage::MetadataStore* metadata) : metadata_(metadata) {}

  // The row at snapshot `at`; nullopt when absent there. Errors: those of the metadata store, kDataLoss.
  absl::StatusOr<std::optional<Row>> Get(absl::string_view key, wal::Lsn at) ABSL_LOCKS_EXCLUDED(mutex_);
  // At most `limit` rows whose keys begin with `prefix` and are greater than `after`, in order.
  absl::StatusOr<std::vector<Row>> Scan(absl::string_view prefix, absl::string_view after, wal::Lsn at,
                                        int limit) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Publish(const KeyChanges& changes, wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes every row as of `target` into the metadata store, not synced, after calling `on_row` for each with its value
  // (nullopt: removed). One caller at a time (the materializer).
  using RowVisitor = std::function<absl::Status(absl::string_view key, const std::optional<std::string>& value)>;
  absl::Status Materialize(wal::Lsn target, wal::Lsn oldest, const RowVisitor& on_row)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops versions that were kept for snapshots below `oldest`.
  void Trim(wal::Lsn oldest) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes of versions that are not on disk yet.
  int64_t dirty_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::optional<Row>> GetStored(absl::string_view key);

  storage::MetadataStore* const metadata_;
  mutable storage::Mutex mutex_{storage::MutexRank::kOverlay};
  VersionTable<RowState> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ROW_SPACE_H_
