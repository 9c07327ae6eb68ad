// Rows of the applied state (catalogue, outcomes) as of any snapshot in use: versions over the metadata store.
//
// Rows of the catalogue, which every transaction asks for, are remembered as the store holds them (RowCache), so that a
// transaction on a repository in use asks the metadata store nothing. Why a remembered row is never stale:
//   * Only Materialize() changes rows of the catalogue in the store, and only those with a version here. From before its
//     write until it is done such a row has a version for every snapshot in use: the base is captured first, and a
//     version goes only when the store shows it. So nobody who finds no version can meet the store between old and new.
//   * It is done, and the row forgotten, in one hold of the mutex. A look for a version and in the memory is one hold too.
//   * What was read from the store without the mutex is remembered only when no version came and no Materialize() ended
//     meanwhile: then the store holds it still.
// That a row is absent is remembered for alternates alone, which most repositories have none of: names that nobody made
// would fill the memory.
//
// Thread-safe. Mutex: rank kOverlay, held for an instant, never around the metadata store.
#ifndef REPOTXN_TXN_ROW_SPACE_H_
#define REPOTXN_TXN_ROW_SPACE_H_

#include <atomic>
#include <cstdint>
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
#include "txn/row_cache.h"
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
  // Questions that went to the metadata store. For tests and measurements.
  int64_t stored_reads() const { return stored_reads_.load(std::memory_order_relaxed); }

 private:
  absl::StatusOr<std::optional<Row>> GetStored(absl::string_view key);

  // Of a generation of the cache; a row takes at most kCachedRowBytes and its key.
  static constexpr size_t kCachedRows = 4096;
  static constexpr size_t kCachedRowBytes = 1024;

  storage::MetadataStore* const metadata_;
  mutable storage::Mutex mutex_{storage::MutexRank::kOverlay};
  VersionTable<RowState> rows_ ABSL_GUARDED_BY(mutex_);
  RowCache<std::optional<Row>> stored_ ABSL_GUARDED_BY(mutex_){kCachedRows};
  uint64_t rounds_ ABSL_GUARDED_BY(mutex_) = 0;  // of Materialize() that ended
  std::atomic<int64_t> stored_reads_{0};
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ROW_SPACE_H_
