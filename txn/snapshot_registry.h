// Snapshots in use: what the oldest reader still needs, and which open transaction that is.
//
// Enter() and Open() take S and publish the slot under one mutex with OldestReader(), so that nobody can compute an oldest
// snapshot between the two [hard case A14]. A transaction can be ended from outside (TransactionLife): one that lies
// idle longer than its lease, or the oldest ones when they keep too much. Then its snapshot is let go at once, or at the
// end of the call that is under way.
//
// A snapshot *directory* that is shown to a Git child reads nothing through us: it keeps no versions and no history
// [hard case B9], and counts only for what must stay on disk.
//
// Invariants
//   I1  Open transactions stand in the order of their snapshots.
//   I2  A transaction is let go exactly once, by the call of Close(), EndIdle() or EndOldest() that says so.
//
// Thread-safe. Mutex: rank kRegistry; below it those of the lives.
#ifndef REPOTXN_TXN_SNAPSHOT_REGISTRY_H_
#define REPOTXN_TXN_SNAPSHOT_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/sync.h"
#include "txn/transaction_life.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class SnapshotRegistry {
 public:
  // `committed`: the store's committed LSN; outlives the registry.
  explicit SnapshotRegistry(const std::atomic<uint64_t>* committed) : committed_(committed) {}

  // Takes the newest committed LSN as a snapshot in use, for a moment.
  wal::Lsn Enter() ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a snapshot directory.
  wal::Lsn EnterDirectory() ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveDirectory(wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the newest committed LSN as the snapshot of a transaction. The life must outlive Close().
  wal::Lsn Open(TransactionLife* life) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the transaction's snapshot go. False: somebody did before.
  bool Close(TransactionLife* life) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the transaction the snapshot `entered` (from Enter(), taken over) in place of its own.
  void Move(TransactionLife* life, wal::Lsn entered) ABSL_LOCKS_EXCLUDED(mutex_);

  // A Git child works for transaction `id`: it is not idle, whether it is open or not.
  void EnterChild(const TransactionId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveChild(const TransactionId& id, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // A transaction that was ended here and let go.
  struct Ended {
    TransactionId id;
    bool is_attempt = false;
  };
  // Ends those that nobody has used since `since`.
  std::vector<Ended> EndIdle(absl::Duration since, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those with the oldest snapshot, when that is before the newest committed LSN. `why` is asked for the reason.
  std::vector<Ended> EndOldest(absl::FunctionRef<absl::Status(wal::Lsn snapshot)> why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Smallest snapshot that reads versions and history, or the committed LSN when there is none: what every later
  // Enter() and Open() is at or above.
  wal::Lsn OldestReader() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same with the directories.
  wal::Lsn OldestInUse() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Counts = std::map<wal::Lsn, int64_t>;
  wal::Lsn Take(Counts* counts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Drop(wal::Lsn lsn, Counts* counts);
  void Unlink(TransactionLife* life) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wal::Lsn OldestReaderLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::atomic<uint64_t>* const committed_;
  mutable storage::Mutex mutex_{storage::MutexRank::kRegistry};
  Counts readers_ ABSL_GUARDED_BY(mutex_), directories_ ABSL_GUARDED_BY(mutex_);
  std::list<TransactionLife*> open_ ABSL_GUARDED_BY(mutex_);  // I1
  absl::flat_hash_map<TransactionId, int> children_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SNAPSHOT_REGISTRY_H_
