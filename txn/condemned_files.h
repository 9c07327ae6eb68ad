// Packs that a committed entry has removed and that are still at their places: nobody is answered from them, and they go
// when no open transaction and no snapshot directory of the store is older than their removal [hard cases A4, A5, A6].
//
// Part of the applied state: a row of the catalogue for each (CondemnedKey), written by the entry that removes the pack and
// taken back by one that adds a pack of the same name again.
//
// Life of a condemned pack P of repository R
//   condemn  an entry that removes P is published.
//   pardon   an entry that adds P again is durable: before its directory work links the file. Under R's latch, so that
//            nobody is unlinking it. From here on P is no candidate.
//   settle   that entry is published; its caller takes the row back.
//   unlink   R's latch is taken, Contains() asked once more, the files are removed, Forget(), the row is deleted. If we die
//            in between: the row is there at the next open, and absent files are fine.
//
// Thread-safe. Mutex: rank kLeaf. A question costs one atomic while nothing is condemned.
#ifndef REPOTXN_TXN_CONDEMNED_FILES_H_
#define REPOTXN_TXN_CONDEMNED_FILES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "storage/store_path.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class CondemnedFiles {
 public:
  struct Pack {
    RepositoryId id;
    std::string name;  // "pack-<hex>"
    wal::Lsn lsn;      // of the removal
  };

  void Condemn(Pack pack) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `file` (…/objects/pack/<name>.pack) is condemned.
  bool Contains(const storage::StorePath& file) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Contains(const RepositoryId& id, absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Requires the repository's latch, when others may unlink.
  void Pardon(const RepositoryId& id, absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the pack was condemned or pardoned; it is neither any more.
  bool Settle(const RepositoryId& id, absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  // LSN of its removal; zero: it is not condemned.
  wal::Lsn RemovalOf(const RepositoryId& id, absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether packs of `id` lie about that were removed at or below `lsn`.
  bool HasRemovedUpTo(const RepositoryId& id, wal::Lsn lsn) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Those removed at or below `lsn`, in the order of LSNs.
  std::vector<Pack> RemovedUpTo(wal::Lsn lsn) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const RepositoryId& id, absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> size_{0};  // of packs_
  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<storage::StorePath, Pack> packs_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<storage::StorePath> pardoned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CONDEMNED_FILES_H_
