// Makes snapshot directories and keeps those that can be shared.
//
// A directory is made under the repository's latch right after the repository was materialized to the newest committed
// LSN, so it shows exactly that LSN [hard case A13]. It is shared as long as nothing was committed in the repository since.
// The LSN it shows stays registered as a snapshot in use while somebody holds it.
//
// If we die: snapshots/ is wiped at open.
//
// Thread-safe. Mutex: rank kSnapshot, not held while a directory is made.
#ifndef REPOTXN_TXN_SNAPSHOT_MAKER_H_
#define REPOTXN_TXN_SNAPSHOT_MAKER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "objects/derived_watch.h"
#include "storage/file_system.h"
#include "storage/sync.h"
#include "txn/materializer.h"
#include "txn/publisher.h"
#include "txn/repository_state.h"
#include "txn/snapshot.h"
#include "txn/snapshot_registry.h"

namespace repotxn::txn {

// Whether snapshots leave out what has this name at the top of a repository: Git writes it in place, or it is nobody's.
bool IsLeftOutOfSnapshots(absl::string_view name);

class SnapshotMaker {
 public:
  // All must outlive the maker and every snapshot it made. `opening`: a random number of this opening of the store. It
  // stands in the names of the directories, so that none is used twice: neither a hook that outlived the process before
  // nor a snapshot that its owner keeps for too long can touch another's [hard case B16].
  SnapshotMaker(storage::FileSystem* fs, Materializer* materializer, const Publisher* publisher,
                SnapshotRegistry* registry, uint64_t opening);
  ~SnapshotMaker();

  // A shared snapshot at the newest committed LSN or later.
  absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> Share(RepositoryState* repository)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Links everything of the repository that a snapshot has, except objects/, into an existing directory, replacing
  // what is there. Returns the LSN that it shows.
  absl::StatusOr<wal::Lsn> LinkInto(RepositoryState* repository, const storage::StorePath& directory);
  // The same for whoever holds the latch already and says which committed LSN the directory is to show.
  absl::Status LinkAt(RepositoryState* repository, wal::Lsn target, const storage::StorePath& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(repository->latch());
  // A path below snapshots/ that was never used in the life of this store.
  storage::StorePath NewPath();
  // Makes `directory` with objects/ and its alternates line in it, and nothing else yet. An error may leave parts.
  absl::Status MakeObjectsOnly(const RepositoryState& repository, const storage::StorePath& directory);
  // Gives up the shared ones that nobody has used for `idle_rounds_max` calls: a kept one holds its LSN in use, and so
  // everything that was overwritten since.
  void DropUnused(int idle_rounds_max) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t made() const { return made_.load(std::memory_order_relaxed); }
  int64_t shared() const { return shared_.load(std::memory_order_relaxed); }
  int64_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  class Directory;
  absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> Make(RepositoryState* repository);

  storage::FileSystem* const fs_;
  Materializer* const materializer_;
  const Publisher* const publisher_;
  SnapshotRegistry* const registry_;
  const uint64_t opening_;
  objects::DerivedWatch derived_;
  std::atomic<uint64_t> count_{0};
  std::atomic<int64_t> made_{0}, shared_{0}, live_{0};

  storage::Mutex mutex_{storage::MutexRank::kSnapshot};
  struct Shared {
    std::shared_ptr<const SnapshotDirectory> directory;
    int idle_rounds = 0;
  };
  absl::flat_hash_map<RepositoryId, Shared> newest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SNAPSHOT_MAKER_H_
