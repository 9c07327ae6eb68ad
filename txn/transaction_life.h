// Whether a transaction may still be used, decided between its owner and whoever ends it from outside.
//
// The owner brackets each call with EnterCall() and LeaveCall(). Others (an idle lease that ran out, too many old versions
// kept in memory) call End(): a transaction in which no call is under way has ended at once; otherwise the call goes
// on to its end, over the snapshot that it reads, and the transaction ends with it. So what a call returned is right,
// and every later call, Commit included, gets the reason.
//
// Invariants
//   I1  After End() returned true, or LeaveCall() did, every EnterCall() fails with the reason: nothing is committed.
//   I2  The first reason stays.
//
// Thread-safe. Mutex: rank kLeaf.
#ifndef REPOTXN_TXN_TRANSACTION_LIFE_H_
#define REPOTXN_TXN_TRANSACTION_LIFE_H_

#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class TransactionLife {
 public:
  // `now`: monotonic, as everywhere here. `is_attempt`: the id belongs to a call of Run, not to this transaction.
  TransactionLife(const TransactionId& id, bool is_attempt, absl::Duration now)
      : id_(id), is_attempt_(is_attempt), used_at_(now) {}
  TransactionLife(const TransactionLife&) = delete;
  TransactionLife& operator=(const TransactionLife&) = delete;

  const TransactionId& id() const { return id_; }
  bool is_attempt() const { return is_attempt_; }

  // Calls may be nested: a call's own calls see what it saw.
  absl::Status EnterCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // True when the transaction was ended meanwhile and this was its last call: the owner lets its snapshot go.
  [[nodiscard]] bool LeaveCall(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the transaction for `why` (not OK). True: it has ended now, and its snapshot may be let go. False: it had ended
  // before, or ends with the call that is under way.
  [[nodiscard]] bool End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // A Git child of it went away.
  void NoteUse(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  // End() when no call is under way and the last one ended at or before `since`; else nothing, and false.
  [[nodiscard]] bool EndIfIdleSince(absl::Duration since, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class SnapshotRegistry;

  const TransactionId id_;
  const bool is_attempt_;

  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::Status end_ ABSL_GUARDED_BY(mutex_);     // not OK: has ended (I1)
  absl::Status asked_ ABSL_GUARDED_BY(mutex_);   // not OK: ends with the call under way
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;        // nested
  absl::Duration used_at_ ABSL_GUARDED_BY(mutex_);

  // Of the registry, guarded by its mutex.
  bool is_registered_ = false;
  wal::Lsn registered_lsn_;
  std::list<TransactionLife*>::iterator place_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_TRANSACTION_LIFE_H_
