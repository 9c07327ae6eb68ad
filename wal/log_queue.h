// Reservation of LSNs, the queue in LSN order, and group commit led by a waiting committer.
//
// A committer calls Reserve() inside its critical section: under the one log mutex the entry gets
// its LSN and its place at the end of the queue. Outside, it calls AwaitDurable(). The first to
// wait becomes the leader of the next group: it takes what is queued, seals it, appends it, waits,
// and wakes the others. There is no log thread, since a wake-up costs as much as a sixth of a sync.
// Who arrives meanwhile forms the next group and shares its sync.
//
//   LogQueue::Ticket ticket;
//   // inside the critical section:
//   auto lsn = queue.Reserve(&prepared, &dropped, &ticket);
//   // outside, when it succeeded:
//   AppendOutcome outcome = queue.AwaitDurable(&ticket, &status);
//
// Invariants
//   I1  Queue order is LSN order, dense; one group is under way at a time.
//   I2  durable_lsn() never decreases, and covers an LSN only after the append that holds it was
//       committed.
//   I3  After a group that did not commit nothing is reserved and nothing is sent any more
//       (poison). Tickets of that group are unknown (or what the replicator says), later ones not
//       committed: they were never sent.
//   I4  A reservation that fails has changed nothing.
//   I5  The durability observer sees LSNs in order and before any committer of the group is woken.
//
// Thread-safe. Mutex: rank kLog; no I/O, no allocation and no callback under it.
//
// Lifetime: the replicator must outlive the queue; a ticket must outlive its AwaitDurable(). The
// queue must be idle (no ticket waiting) when it is destroyed.
#ifndef REPOTXN_WAL_LOG_QUEUE_H_
#define REPOTXN_WAL_LOG_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"
#include "wal/replicator.h"

namespace repotxn::wal {

class LogQueue {
 public:
  struct Options {
    // Most entries of a group. Range [1, 4096].
    int group_entries_max = 512;
    // A group is closed before the entry that would bring it above this many bytes; it has at least
    // one entry.
    int64_t group_bytes_max = 8 << 20;
    // Run by the leader after its group is durable and before anybody of it is woken (I5), outside
    // the log mutex.
    std::function<void(Lsn durable)> durable_observer;
    // Run by a leader, outside the log mutex, when the replicator has no spare space: someone in
    // the background should call Replicator::PrepareSpace(). May be run again while that is under
    // way.
    std::function<void()> space_observer;
  };

  // A committer's place in the queue, owned by it. Not copied, not moved; used for one entry.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    // Valid after Reserve() succeeded.
    Lsn lsn() const { return lsn_; }
    // Valid after AwaitDurable() returned kCommitted: the place of the entry, with its chain.
    LogPosition position() const { return LogPosition{lsn_, chain_}; }

   private:
    friend class LogQueue;
    enum class State : uint8_t { kIdle, kQueued, kInGroup, kDone };
    PreparedEntry entry_;
    std::string dropped_;
    Lsn lsn_;
    ChainChecksum chain_;
    int64_t record_bytes_ = 0;
    State state_ = State::kIdle;
    AppendOutcome outcome_ = AppendOutcome::kUnknown;
    absl::Status status_;
    Ticket* next_ = nullptr;
    bool is_left_ = false;  // nobody waits for it any more, or again
    storage::CondVar wake_;
  };

  // `tail` is what Replicator::Acquire() returned.
  LogQueue(Replicator* replicator, const LogTail& tail, Options options);
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Gives `*entry` the next LSN and queues it. Takes entry and dropped list over only when it
  // succeeds (moved, not copied). Inside the critical section: no system call but the futex, no
  // allocation.
  //
  // Errors: kResourceExhausted no record space (PrepareSpace, then again); kUnavailable the queue
  // is poisoned. In both cases nothing was published, the outcome is *not committed*.
  absl::StatusOr<Lsn> Reserve(PreparedEntry* entry, std::string* dropped, Ticket* ticket);

  // Waits until the outcome of a reserved ticket is known, leading a group when nobody does.
  // Exactly once a ticket. `status` says why when the outcome is not kCommitted.
  AppendOutcome AwaitDurable(Ticket* ticket, absl::Status* status);

  // The same for a caller that does not wait for ever. Nothing: the limit came first, `status` says how. The entry goes
  // on; its ticket is kept until somebody has called AwaitDurable() for it again. Who leads a group stays until it is
  // written, and gets the outcome.
  std::optional<AppendOutcome> AwaitDurable(Ticket* ticket, const storage::WaitLimit& limit, absl::Status* status);
  // Whether AwaitDurable() would return at once.
  bool IsDecided(const Ticket& ticket) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the newest durable entry provable by a group without entries, so that later damage to it
  // is told from a torn tail. For idle and closing logs. Queued entries go first; does nothing when
  // there was no entry since the opening or since the last empty group. Errors: kResourceExhausted
  // no space; kUnavailable poisoned, also by this.
  // kGiveUp does nothing, and is OK, while others write: the log is not idle then.
  enum class WhenBusy : uint8_t { kWait, kGiveUp };
  absl::Status WriteEmptyGroup(WhenBusy when_busy);

  // Newest LSN known to be durable; never waits.
  Lsn durable_lsn() const { return Lsn(durable_lsn_.load(std::memory_order_acquire)); }
  // Newest LSN given out; >= durable_lsn().
  Lsn reserved_lsn() const { return Lsn(reserved_lsn_.load(std::memory_order_acquire)); }
  // Why nothing is reserved any more, or OK. I3.
  absl::Status poison() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses every later reservation with `why` (not OK); what is queued is still written. For a
  // fault found elsewhere.
  void Poison(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Group {
    Ticket* first = nullptr;
    int entries = 0;
  };
  Group TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes one group with the mutex released around the I/O. The caller has set leader_active_.
  void LeadGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<SealedEntry> SealGroup(const Group& group);
  AppendOutcome SendGroup(std::vector<SealedEntry> sealed, Group* group, absl::Status* status);
  void FinishGroup(const Group& group, AppendOutcome outcome, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailQueued(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StepDown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  Replicator* const replicator_;
  const Options options_;
  const uint64_t epoch_;

  mutable storage::Mutex mutex_{storage::MutexRank::kLog};
  storage::CondVar leader_gone_;
  // Queue in LSN order (I1).
  Ticket* head_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Ticket* tail_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Lsn next_lsn_ ABSL_GUARDED_BY(mutex_);
  bool leader_active_ ABSL_GUARDED_BY(mutex_) = false;
  // Nothing was queued since the log was opened or the last empty group: damage to any entry would
  // be noticed.
  bool newest_is_provable_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status poison_ ABSL_GUARDED_BY(mutex_);  // sticky (I3)
  // The leader's alone while leader_active_.
  ChainChecksum chain_;

  std::atomic<uint64_t> durable_lsn_;
  std::atomic<uint64_t> reserved_lsn_;
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_LOG_QUEUE_H_
