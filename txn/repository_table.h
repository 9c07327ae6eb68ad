// The repositories that are open in memory, by id, and which of them have changes that are not on disk yet.
//
// Thread-safe. A RepositoryState stays valid as long as somebody holds its pointer.
#ifndef REPOTXN_TXN_REPOSITORY_TABLE_H_
#define REPOTXN_TXN_REPOSITORY_TABLE_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "storage/file_system.h"
#include "storage/sync.h"
#include "txn/catalogue.h"
#include "txn/condemned_files.h"
#include "txn/repository_state.h"

namespace repotxn::txn {

class RepositoryTable {
 public:
  // Both must outlive the table.
  RepositoryTable(storage::FileSystem* fs, const CondemnedFiles* condemned) : fs_(fs), condemned_(condemned) {}

  // The state of a repository, made from its row when it is not open yet.
  std::shared_ptr<RepositoryState> Get(const RepositoryId& id, const RepositoryRow& row)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The state if it is open, else nullptr.
  std::shared_ptr<RepositoryState> Find(const RepositoryId& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets a repository that was purged.
  void Remove(const RepositoryId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  void MarkDirty(const RepositoryId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Repositories marked since the last TakeDirty().
  std::vector<std::shared_ptr<RepositoryState>> Dirty() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, and clears the marks.
  std::vector<std::shared_ptr<RepositoryState>> TakeDirty() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<RepositoryState>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<std::shared_ptr<RepositoryState>> DirtyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::FileSystem* const fs_;
  const CondemnedFiles* const condemned_;
  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<RepositoryId, std::shared_ptr<RepositoryState>> states_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<RepositoryId> dirty_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_REPOSITORY_TABLE_H_
