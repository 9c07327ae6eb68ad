// What the files that implement Transaction share: private to txn/.
//
// Thread-compatible.
#ifndef REPOTXN_TXN_TRANSACTION_INTERNAL_H_
#define REPOTXN_TXN_TRANSACTION_INTERNAL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "objects/object_lookup.h"
#include "txn/staged_changes.h"

namespace repotxn::txn {

// A call of the owner: while it lasts nobody takes its snapshot away. May be nested.
class ActiveCall {
 public:
  explicit ActiveCall(StagedChanges* changes);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

  // kFailedPrecondition once the transaction has ended, or why it was ended.
  const absl::Status& CheckOpen() const { return entered_; }
  // The same, and kPermissionDenied for a write in a read-only one.
  absl::Status CheckWritable() const;

 private:
  StagedChanges* const changes_;
  const absl::Status entered_;
};

// The repository as this transaction has it, opened on first use. kNotFound: absent (a declared read), or removed by the
// transaction.
absl::StatusOr<StagedRepository*> Touch(StagedChanges* changes, const RepositoryId& id);

// Declares every key of a repository as read, those that are not there included: the lock on its subtree, which covers
// refs, files and objects, does not reach into the key space.
void DeclareAllKeysRead(StagedChanges* changes, const StagedRepository& repository, const RepositoryId& id);

// What a path names, with the transaction's own changes. Declares no read: whoever writes the path, or makes a group of
// it, holds a key on it anyway.
absl::StatusOr<std::optional<PathRow>> LookUp(const StagedChanges& changes, const std::string& path);
// Whether a repository may get `path`: kAlreadyExists (what stands there is then a declared read) when it is taken or a
// repository stands at an ancestor.
absl::Status CheckPathIsFree(StagedChanges* changes, const RepositoryPath& path);
// Gives `path` to a repository: it, and its ancestors as groups.
void StagePath(const RepositoryPath& path, const RepositoryId& id, StagedChanges* changes);

// Repositories that `repository` borrows from directly, with the transaction's own changes.
absl::StatusOr<std::vector<RepositoryId>> AlternatesOf(const StagedChanges& changes,
                                                       const StagedRepository& repository);

// The objects that a transaction may name: those of the repository and of all it borrows from, behind what it staged.
// Null: only the empty tree exists.
absl::StatusOr<std::shared_ptr<objects::ObjectLookup>> ObjectsOf(StagedChanges* changes,
                                                                 const StagedRepository& repository);

// Packs of a live repository that are not condemned, ascending, as they stood at one moment: a pack may need another that
// was linked before it, and a directory that changes while it is read may show the second alone. So two readings that say
// the same. kUnavailable when there are none.
absl::StatusOr<std::vector<std::string>> ListPacksAtOnce(const StoreCore& core, const RepositoryId& id);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_TRANSACTION_INTERNAL_H_
