// What a commit rests on beyond its footprint: that objects it uses are still there, and that objects it removes are not used.
//
// Existence of an object is no key: there are too many. So the commit takes a *look* at the objects outside the critical section,
// which only asks whether the look is still true, and if not, leaves for another one.
//
//   use      a pack is added, a ref gets a value, an object was asked for, or objects are given up since a pool has them. Looked
//            at while staging; a stale look (objects of a repository on the chain were removed since) is taken again natively:
//            every link of the new packs, every new tip. Packs cost nothing more while nothing is removed.
//   removal  whoever may use the removed objects is watched: the repository and all that borrow from it. A round looks at what
//            came since the last one (packs, which may be new in a borrower by a repack, and refs), always moving forward. While
//            pushes come all the time no round is the last; then the removal takes a turn before the whole of the
//            repositories (locks/intent_queue.h), and they wait for that one round [hard case B10].
//
// Errors
//   kFailedPrecondition  an object that a staged pack names is gone (detail "oid"): the pack has to be sent again, with it. Replaying
//                        the body brings nothing new.
//   kAborted             a tip is gone, or what was to be removed is used again: the body judges anew.
//
// Lives for one commit. Single-threaded.
#ifndef REPOTXN_TXN_OBJECT_LOOKS_H_
#define REPOTXN_TXN_OBJECT_LOOKS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "locks/intent_queue.h"
#include "storage/object_id.h"
#include "txn/committer.h"
#include "txn/staged_changes.h"
#include "wal/lsn.h"

namespace repotxn::txn {

// Who may use objects that are removed, and what was looked at of him.
struct WatchedUser {
  std::shared_ptr<RepositoryState> live;
  std::set<std::string> packs;
  wal::Lsn refs_seen;
};

// Objects that a transaction removes from `id` with packs of its.
struct ObjectRemoval {
  RepositoryId id;
  ObjectFormat format = ObjectFormat::kSha1;
  absl::flat_hash_set<ObjectId> objects;
  std::set<std::string> removed_packs;
  std::map<RepositoryId, WatchedUser> watched;
};

class ObjectLooks {
 public:
  // `commit` is filled with what the critical section asks. Both must outlive the calls of Take().
  ObjectLooks(StoreCore* core, StagedChanges* changes, PendingCommit* commit)
      : core_(core), changes_(changes), commit_(commit) {}
  ~ObjectLooks();
  ObjectLooks(const ObjectLooks&) = delete;
  ObjectLooks& operator=(const ObjectLooks&) = delete;

  // Before the first try to commit, and again after each that found a look stale.
  absl::Status Take();

 private:
  absl::Status TakeFirst();
  // Every object that the transaction uses is there, natively.
  absl::Status ProveUses(wal::Lsn at);
  absl::Status ProveUsesOf(StagedRepository* repository);
  absl::StatusOr<std::vector<RepositoryId>> ChainOf(const StagedRepository& repository);
  // One round of a removal, up to `at`.
  absl::Status LookForUses(ObjectRemoval* removal, wal::Lsn at);
  absl::Status Watch(const ObjectRemoval& removal, wal::Lsn at);
  void TakeTurn(const ObjectRemoval& removal);

  StoreCore* const core_;
  StagedChanges* const changes_;
  PendingCommit* const commit_;
  int rounds_ = 0;
  bool must_prove_ = false;  // whatever was removed
  bool is_entered_ = false;
  wal::Lsn entered_;  // registered, so that history and files since are kept
  locks::IntentQueue::Turn turn_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_OBJECT_LOOKS_H_
