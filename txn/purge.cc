// What is left of removed repositories: kept as long as they may be brought back, then purged by a transaction like any other.
//
// The purge takes the row, the links and the keys away; its directory work moves the directory to pending-delete/, from
// where it is removed at leisure. If we die before that, opening empties pending-delete/.
#include "absl/cleanup/cleanup.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// Repositories that one round of the background purges.
constexpr int kPurgedMax = 16;
constexpr int kKeysAtOnce = 1000;

}  // namespace

absl::StatusOr<bool> StoreCore::PurgeRepository(const RemovedRow& due, wal::Lsn snapshot,
                                                const std::string& released_to) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> stored, rows_->Get(RepositoryKey(due.id), snapshot));
  if (!stored) return false;
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryRow row, DecodeRepositoryRow(stored->value));
  if (row.removed_at_ns != due.removed_at_ns) return false;
  // Somebody may still look at it as it was.
  if (registry_->OldestInUse() < stored->version) return false;
  wal::Manifest manifest = NewOwnManifest();
  wal::RemoveRepository purge{due.id, row.path, {}, true};
  purge.released_to = released_to;
  purge.facts.partition = row.partition;
  purge.facts.format = row.format;
  purge.facts.removed_at_ns = row.removed_at_ns;
  REPOTXN_ASSIGN_OR_RETURN(purge.facts.alternates, AlternatesOf(due.id, snapshot));
  manifest.operations.push_back(std::move(purge));
  const std::string keys = KeyOfKeySpace(row.partition, KeyPrefixOfRepository(due.id));
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows, rows_->Scan(keys, after, snapshot, kKeysAtOnce));
    if (rows.empty()) break;
    for (const Row& key : rows) {
      manifest.operations.push_back(
          wal::DeleteKey{row.partition, key.key.substr(KeyOfKeySpace(row.partition, "").size())});
    }
    after = rows.back().key;
  }
  auto commit = std::make_unique<PendingCommit>();
  commit->snapshot_lsn = snapshot;
  const CommitResult result = CommitOwn(manifest, std::move(commit));
  if (result.committed()) return true;
  // Aborted: brought back meanwhile.
  if (result.outcome == CommitOutcome::kNotCommitted && absl::IsAborted(result.status)) return false;
  return result.status;
}

absl::Status StoreCore::PurgeRemoved() {
  if (!queue_->poison().ok() || committer_->is_draining()) return absl::OkStatus();
  const int64_t due_ns = absl::ToUnixNanos(environment_.clock->Now() - options_.undelete_retention);
  const wal::Lsn snapshot = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(snapshot); });
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows, rows_->Scan("d/", "", snapshot, kPurgedMax));
  for (const Row& row : rows) {
    REPOTXN_ASSIGN_OR_RETURN(const RemovedRow removed, DecodeRemovedKey(row.key));
    if (removed.removed_at_ns > due_ns) break;
    REPOTXN_RETURN_IF_ERROR(PurgeRepository(removed, snapshot).status());
  }
  if (!has_pending_delete_.exchange(false)) return absl::OkStatus();
  return materializer_->EmptyPendingDelete();
}

}  // namespace repotxn::txn
