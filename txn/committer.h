// The commit of a staged transaction, from admission to publication.
//
// Steps
//   1  admit         at once while there is room, else through the partitions' queues (txn/admission.h); a full queue
//                    is kResourceExhausted, the caller's limit kDeadlineExceeded or kCancelled. If we die here: nothing
//                    happened.
//   2  check and     the critical section (CheckAndReserve): conflict check in every partition involved, LSN and log
//      reserve       space, history. If we die here: the entry is nowhere, not committed.
//   3  make durable  the leader of the group writes and syncs. If we die here: recovery finds the entry or does not.
//   4  directory     created repositories are renamed into place, packs linked. If we die here: the entry is in the
//      work          log, opening does the work again.
//   5  publish       in LSN order: versions, committed LSN, answer. If we die here: as in step 4.
//
// A caller that waits in step 3 may give up: the commit is *detached*. It goes on without its caller, whose answer is
// unknown and can be asked for: steps 4 and 5 are done by whoever comes by first, a committer of the same time (others
// wait for the publication of what stands before them) or the background work.
//
// Invariants
//   I1  The critical section makes no system call but the futex of its mutexes, starts no child and allocates nothing
//       that grows with history or repository.
//   I2  Until step 3 succeeded no live repository is touched.
//   I3  Directory work that fails poisons the store: the entry is durable, its outcome for the caller is unknown.
//   I4  A reserved commit passes steps 3 to 5 whether its caller waits or not.
//
// Thread-safe.
#ifndef REPOTXN_TXN_COMMITTER_H_
#define REPOTXN_TXN_COMMITTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "locks/footprint.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"
#include "txn/admission.h"
#include "txn/entry_effects.h"
#include "txn/outcome.h"
#include "txn/partition.h"
#include "txn/publisher.h"
#include "txn/snapshot_registry.h"
#include "wal/log_queue.h"

namespace repotxn::txn {

class RepositoryState;

// A transaction on its way through the pipeline.
struct PendingCommit {
  // What one partition has to check and to remember.
  struct Part {
    Partition* partition = nullptr;
    locks::Footprint footprint;
  };
  // Names that a packing moves into packed-refs, sorted: those written since the snapshot are dropped.
  struct Packing {
    RepositoryId id;
    Partition* partition = nullptr;
    std::vector<std::string> names;
  };

  // A repository whose objects it relies on.
  struct ObjectUse {
    Partition* partition = nullptr;
    locks::LockKey removals;
    std::shared_ptr<const RepositoryState> repository;
  };

  TransactionId id;
  wal::Lsn snapshot_lsn;
  storage::WaitLimit limit;
  bool is_of_store = false;  // housekeeping: stands in no queue
  // Called once when the outcome of a detached commit is known; by any thread, with nothing held.
  std::function<void(const CommitResult&)> settle;
  std::vector<Part> parts;  // sorted by partition id
  std::vector<Packing> packings;
  // Looks at objects, taken outside (txn/object_looks.h): none of `object_uses` may have lost objects after `objects_checked`,
  // and nothing of `watched`, whose partitions are among those of `parts`, may have been written after `watched_since`.
  std::vector<ObjectUse> object_uses;
  wal::Lsn objects_checked;
  std::vector<Part> watched;
  wal::Lsn watched_since;
  wal::PreparedEntry prepared;
  EntryEffects effects;

  // Filled by the pipeline.
  std::optional<locks::LockKey> lost_on;  // my key that met a newer commit, after a conflict
  bool is_look_stale = false;             // not committed, since a look has to be taken again
  std::vector<wal::DroppedRef> dropped;
  wal::LogQueue::Ticket ticket;
  std::atomic<bool> is_ready{false};  // effects are final, and no directory work is left
  bool is_published = false;          // guarded by the publisher's mutex
  storage::CondVar published;
  // Guarded by the committer's detached_mutex_.
  bool is_being_advanced = false;
  bool is_durable = false;            // step 4 is done too
};

class Committer {
 public:
  struct Options {
    Admission::Options admission;
  };
  // Does the directory work of a durable entry.
  using DirectoryWork = std::function<absl::Status(const PendingCommit&)>;
  // Makes log space ahead of need; may do I/O.
  using PrepareSpace = std::function<absl::Status()>;

  // All must outlive the committer.
  Committer(wal::LogQueue* queue, Publisher* publisher,
            const SnapshotRegistry* registry, DirectoryWork directory_work, PrepareSpace prepare_space,
            const Options& options)
      : queue_(queue),
        publisher_(publisher),
        registry_(registry),
        directory_work_(std::move(directory_work)),
        prepare_space_(std::move(prepare_space)),
        admission_(options.admission) {}

  // Steps 1 to 5. Not committed: nothing happened and nothing will. Unknown: see CommitResult. When the limit of the
  // commit came during step 3 it is detached: taken (`*commit` is null), and settle() tells the outcome later.
  CommitResult Commit(std::unique_ptr<PendingCommit>* commit);
  // Carries detached commits on: those up to `wait_for` to their ends, the others as far as it goes without waiting. With
  // newest_detached() it ends however many come meanwhile. `limit` ends the wait for the log; what was waited for is left to
  // the next who comes by.
  void AdvanceDetached(wal::Lsn wait_for, const storage::WaitLimit& limit = {}) ABSL_LOCKS_EXCLUDED(detached_mutex_);
  wal::Lsn newest_detached() const ABSL_LOCKS_EXCLUDED(detached_mutex_);
  // The check of step 2 alone.
  absl::Status DryRun(const PendingCommit& commit);

  // Why nothing is committed any more, or OK.
  absl::Status poison() const { return queue_->poison(); }
  // Refuses every later commit and wakes whoever waits.
  void Poison(const absl::Status& why);

  // Admits nothing more and waits until every commit under way has its outcome.
  void Drain() ABSL_LOCKS_EXCLUDED(drain_mutex_);

  bool is_draining() const { return is_draining_.load(); }
  Admission* admission() { return &admission_; }
  const Admission& admission() const { return admission_; }
  int detached() const { return detached_count_.load(); }

  int64_t conflicts() const { return conflicts_.load(std::memory_order_relaxed); }
  int64_t commits() const { return commits_.load(std::memory_order_relaxed); }

 private:
  absl::Status Admit(const PendingCommit& commit);
  void Leave() ABSL_LOCKS_EXCLUDED(drain_mutex_);
  void WakeDrain() ABSL_LOCKS_EXCLUDED(drain_mutex_);
  absl::Status CheckAndReserve(PendingCommit* commit);
  // Step 4 of a durable entry; it is ready to be published afterwards.
  void DoDirectoryWork(PendingCommit* commit);
  CommitResult AwaitPublished(PendingCommit* commit);
  // What the log's answer means when it is not "committed".
  CommitResult NotDurable(const PendingCommit& commit, wal::AppendOutcome appended, absl::Status why);
  void Detach(std::unique_ptr<PendingCommit> commit) ABSL_LOCKS_EXCLUDED(detached_mutex_, drain_mutex_);
  // Gives back one that was taken, for others to carry on.
  void PutBackDetached(PendingCommit* commit, bool is_durable) ABSL_LOCKS_EXCLUDED(detached_mutex_);
  PendingCommit* TakeDetached(wal::Lsn wait_for) ABSL_LOCKS_EXCLUDED(detached_mutex_);
  void Settle(PendingCommit* commit, const CommitResult& result) ABSL_LOCKS_EXCLUDED(detached_mutex_);

  wal::LogQueue* const queue_;
  Publisher* const publisher_;
  const SnapshotRegistry* const registry_;
  const DirectoryWork directory_work_;
  const PrepareSpace prepare_space_;
  Admission admission_;
  std::atomic<bool> is_draining_{false};
  storage::Mutex drain_mutex_{storage::MutexRank::kLeaf};
  storage::CondVar drained_;
  // Taken with no partition held; the log's and the publisher's mutexes are taken below it.
  mutable storage::Mutex detached_mutex_{storage::MutexRank::kPartition};
  std::vector<std::unique_ptr<PendingCommit>> detached_ ABSL_GUARDED_BY(detached_mutex_);
  std::atomic<int> detached_count_{0};
  std::atomic<int> unattended_{0};  // of them, those that nobody advances just now
  std::atomic<int64_t> conflicts_{0};
  std::atomic<int64_t> commits_{0};
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_COMMITTER_H_
