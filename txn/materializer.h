// Writes committed versions into the repositories, in batches, behind the commits.
//
// A batch of a repository ends at one LSN and coalesces per name, under the repository's latch; when the latch is
// released the disk equals exactly that LSN. Order on disk: lines of packed-refs first, then loose files removed, then
// loose files put; so a name never shows an older value than it did [hard case A12]. Temporary files live in staging/ and
// are renamed across; nothing ends in ".lock". Only packed-refs is synced, before it is renamed: an edit of it is in the log,
// its other lines are nowhere else. For the rest a crash loses the disk's state, never an entry, and recovery writes the
// final state again. If we die between two steps, the log since the checkpoint overrides both.
//
// What stands in the way of a committed entry is moved to lost-found/ and reported, never deleted, and never makes a
// batch fail [hard case B6].
//
// Thread-safe.
#ifndef REPOTXN_TXN_MATERIALIZER_H_
#define REPOTXN_TXN_MATERIALIZER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file_system.h"
#include "storage/sync.h"
#include "txn/repository_state.h"
#include "txn/repository_table.h"
#include "txn/row_space.h"
#include "txn/snapshot_registry.h"

namespace repotxn::txn {

class Materializer {
 public:
  // All must outlive the materializer.
  Materializer(storage::FileSystem* fs, RepositoryTable* repositories, RowSpace* rows,
               const SnapshotRegistry* registry)
      : fs_(fs), repositories_(repositories), rows_(rows), registry_(registry) {}

  // What came of a round.
  struct Round {
    // Not OK: the round was given up, for a reason that is everybody's, such as a full disk.
    absl::Status status;
    // Repositories whose own directories could not be written. They stay marked as dirty.
    std::vector<std::shared_ptr<RepositoryState>> behind;
  };
  // Brings every repository, symlink and row to `target`, a committed LSN. Afterwards all of them show at least it, but for
  // repositories that are behind, and are set aside, and for paths that could not be written, which reconciliation finds.
  // `now` is monotonic; those that failed before are tried when it is worth it, or all of them.
  enum class Try : uint8_t { kWhatIsWorthIt, kAll };
  Round MaterializeAll(wal::Lsn target, absl::Duration now, Try which) ABSL_LOCKS_EXCLUDED(mutex_);
  // Brings one repository to `target` now.
  absl::Status MaterializeRepository(RepositoryState* repository, wal::Lsn target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(repository->latch());

  // Directory work of an entry: idempotent, so that recovery can do it again.
  absl::Status CreateRepositoryDirectory(const wal::CreateRepository& created);
  // Makes the skeleton ahead of the commit, where CreateRepositoryDirectory finds it.
  absl::Status StageSkeleton(const wal::CreateRepository& created);
  void DiscardSkeleton(const RepositoryId& id);
  absl::Status LinkPack(const wal::AddPack& pack, const TransactionId& transaction_id, absl::Time created_at);
  // Puts or removes a file that Git derives. If we die between any two of an entry, a reader finds each name's file there,
  // old or new (objects/derived_path.h), and recovery does all of them again.
  absl::Status ReplaceDerived(const wal::ReplaceDerived& derived, const TransactionId& transaction_id);
  // Replaces the alternates file of a repository; without any it is removed.
  absl::Status WriteAlternates(const ChangedAlternates& changed);
  // Takes the directory of a purged repository out of the way; absent is fine. `state` is null when it is not open.
  absl::Status CondemnDirectory(const RepositoryId& id, RepositoryState* state);
  // Gives the directory of a repository, and what its adoption set aside, to `target` below the root (a purge of another
  // kind). What stands at the target is moved to lost-found/.
  absl::Status ReleaseDirectory(const RepositoryId& id, absl::string_view target, RepositoryState* state);
  // Makes the symlink of a path, or the directory of a group, again. `row` is the path's newest; none: it is given up.
  absl::Status RepairPath(absl::string_view path, const std::optional<std::string>& row) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves what is at `path` to lost-found/ and reports it; an empty directory is just removed.
  absl::Status MoveToLostFound(const storage::StorePath& path) { return ClearObstacle(path); }
  // Removes what CondemnDirectory() took out of the way. May take long; a crash leaves the rest for the next call.
  absl::Status EmptyPendingDelete();

  // Whether a sync has failed, for good: a later one that "succeeds" proves nothing about what was written before.
  bool has_failed_sync() const { return has_failed_sync_.load(std::memory_order_relaxed); }

  int64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  // What was moved to lost-found/, for the operator.
  std::vector<std::string> lost_found() const ABSL_LOCKS_EXCLUDED(reports_mutex_);

 private:
  // Puts every file and directory of the skeleton again: what a crash left of a creation may be torn. Later changes of
  // the same files are in the log too and come back.
  absl::Status RewriteSkeleton(const wal::CreateRepository& created);
  // The same for a directory that stood elsewhere (txn/adopted_directory.cc).
  absl::Status AdoptRepositoryDirectory(const wal::CreateRepository& created);
  absl::Status PutBack(const storage::StorePath& directory, const storage::StorePath& trash);
  absl::Status RemoveEmptyTree(const storage::StorePath& directory);
  absl::Status SetAside(const storage::StorePath& directory, const storage::StorePath& trash, absl::string_view path);
  // The target is there already: fine when it is our file, else replaced, since it may be a copy that a crash has torn.
  absl::Status RelinkPack(const storage::StorePath& source, const storage::StorePath& target);
  // Makes `target` a link to the payload file `source`, or a copy where there can be no link.
  absl::Status LinkPayload(const storage::StorePath& root, const storage::StorePath& source, int64_t bytes,
                           const storage::StorePath& target);
  absl::StatusOr<std::shared_ptr<const DiskRefs>> WriteRefs(const RepositoryState& repository,
                                                            const RepositoryState::Batch& batch);
  absl::Status WriteFiles(const RepositoryState& repository, const RepositoryState::Batch& batch);
  absl::Status MaterializeRows(wal::Lsn target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WritePath(absl::string_view path, const std::string& row);
  // A path that cannot be written must not hold the others back.
  absl::Status PassOver(absl::string_view path, const absl::Status& status);
  // What a path that was given up leaves: a symlink, the directory of a group. Anything else stays.
  absl::Status RemovePath(absl::string_view path);
  absl::Status RemoveLink(absl::string_view path);
  absl::Status RemoveGroupDirectory(absl::string_view path);

  // Replaces `target` by a file of this content; makes parents, clears obstacles below `root`.
  absl::Status ReplaceFile(const storage::StorePath& root, const storage::StorePath& target,
                           absl::string_view content, uint32_t permissions);
  // The same for packed-refs, durable before it has its name.
  absl::Status ReplacePackedRefs(const storage::StorePath& directory, const std::string& content);
  // Removes a file and then its parents below `stop` that are empty. Absent is fine.
  absl::Status RemoveFile(const storage::StorePath& stop, const storage::StorePath& target);
  // Renames `from` to `target`, with the same care.
  absl::Status MoveInto(const storage::StorePath& root, const storage::StorePath& from,
                        const storage::StorePath& target);
  // The same for a file in staging/, which goes when that fails.
  absl::Status MoveTemporaryInto(const storage::StorePath& root, const storage::StorePath& temporary,
                                 const storage::StorePath& target);
  // Moves whatever is at `path` to lost-found/ and reports it; an empty directory is just removed.
  absl::Status ClearObstacle(const storage::StorePath& path) ABSL_LOCKS_EXCLUDED(reports_mutex_);
  absl::Status EnsureDirectory(const storage::StorePath& root, const storage::StorePath& directory);
  storage::StorePath TemporaryPath();

  storage::FileSystem* const fs_;
  RepositoryTable* const repositories_;
  RowSpace* const rows_;
  const SnapshotRegistry* const registry_;

  // One round of MaterializeAll at a time.
  storage::Mutex mutex_{storage::MutexRank::kSnapshot};
  std::atomic<uint64_t> temporary_count_{0};
  std::atomic<int64_t> batches_{0};
  std::atomic<bool> has_failed_sync_{false};

  mutable storage::Mutex reports_mutex_{storage::MutexRank::kLeaf};
  std::vector<std::string> lost_found_ ABSL_GUARDED_BY(reports_mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_MATERIALIZER_H_
