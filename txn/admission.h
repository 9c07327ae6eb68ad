// Who may go on to the conflict check: bounded queues, one a partition, in front of the commit pipeline.
//
// As long as fewer than in_flight_max commits are under way and nobody waits, admission is one atomic counter. Beyond it
// a commit enters the queues of all its partitions at once, under one mutex, so that any two commits stand in the same
// order in every queue that they share: the oldest is at the head of all of its queues, and nobody waits in a circle
// [hard case B12]. A commit is admitted when it heads all its queues and there is room; whoever leaves admits the next.
// Partitions take turns, so a flooded one delays the others by one commit a turn.
//
// The name space (partition 0) has no queue of its own for commits that touch a repository as well: nearly all do, and
// one line for all would let the flood of one repository stand before everybody. What the name space needs is decided
// by the check; admission is only about order and room.
//
// Invariants
//   I1  At most in_flight_max are admitted, the store's own not counted.
//   I2  Within a partition commits are admitted in the order of their coming, except one that comes while there is room
//       at the moment in which another begins to wait.
//   I3  While somebody waits and there is room, somebody is on the way to admit him: nobody waits for nothing.
//
// Thread-safe. Mutex: rank kLeaf.
#ifndef REPOTXN_TXN_ADMISSION_H_
#define REPOTXN_TXN_ADMISSION_H_

#include <atomic>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"
#include "wal/operation.h"

namespace repotxn::txn {

class Admission {
 public:
  struct Options {
    int in_flight_max = 4096;  // [1, 65535]
    int queue_max = 4096;      // that may wait for one partition
  };

  explicit Admission(const Options& options) : options_(options), room_(options.in_flight_max) {}

  // Admits a commit of `partitions` (each once), at once or when its turn comes. Every OK is followed by one Leave().
  // Errors: kResourceExhausted at once, when the queue of a partition is full; kCancelled, kDeadlineExceeded when the
  // limit came first; kUnavailable after Close(). Not admitted then.
  absl::Status Enter(const std::vector<wal::PartitionId>& partitions, const storage::WaitLimit& limit)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // For a commit of the store's own, whose thread carries on what others have left: never waits, and counts.
  absl::Status EnterOwn();
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits no more than `room` at a time, at most in_flight_max and at least 1: for a store that falls behind.
  void SetRoom(int room) ABSL_LOCKS_EXCLUDED(mutex_);
  // Turns away whoever waits and whoever comes.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  int in_flight() const { return in_flight_.load(); }
  int waiting() const { return waiting_.load(); }

 private:
  enum class Answer : uint8_t { kNone, kAdmitted, kClosed };
  struct Waiter {
    std::vector<wal::PartitionId> partitions;
    Answer answer = Answer::kNone;
    storage::CondVar answered;
  };
  using Queue = std::list<Waiter*>;

  bool TakeRoom();
  absl::Status Wait(Waiter* waiter, const storage::WaitLimit& limit) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HeadsAllQueues(const Waiter& waiter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdmitNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Waiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::atomic<int> room_;
  std::atomic<int> in_flight_{0};
  std::atomic<int> waiting_{0};
  std::atomic<bool> is_closed_{false};

  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<wal::PartitionId, Queue> queues_ ABSL_GUARDED_BY(mutex_);  // none is empty
  std::list<wal::PartitionId> turns_ ABSL_GUARDED_BY(mutex_);                     // those in queues_, next first
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ADMISSION_H_
