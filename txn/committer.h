// The commit of a staged transaction, from admission to publication.
//
// Steps
//   1  admit         count into the partitions' queues; beyond the bound kResourceExhausted, past the deadline
//                    kDeadlineExceeded. If we die here: nothing happened.
//   2  check and     the critical section (CheckAndReserve): conflict check in every partition involved, LSN and log
//      reserve       space, history. If we die here: the entry is nowhere, not committed.
//   3  make durable  the leader of the group writes and syncs. If we die here: recovery finds the entry or does not.
//   4  directory     created repositories are renamed into place, packs linked. If we die here: the entry is in the
//      work          log, opening does the work again.
//   5  publish       in LSN order: versions, committed LSN, answer. If we die here: as in step 4.
//
// Invariants
//   I1  The critical section makes no system call but the futex of its mutexes, starts no child and allocates nothing
//       that grows with history or repository.
//   I2  Until step 3 succeeded no live repository is touched.
//   I3  Directory work that fails poisons the store: the entry is durable, its outcome for the caller is unknown.
//
// Thread-safe.
#ifndef REPOTXN_TXN_COMMITTER_H_
#define REPOTXN_TXN_COMMITTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "locks/footprint.h"
#include "storage/clock.h"
#include "storage/sync.h"
#include "txn/entry_effects.h"
#include "txn/outcome.h"
#include "txn/partition.h"
#include "txn/publisher.h"
#include "txn/snapshot_registry.h"
#include "wal/log_queue.h"

namespace repotxn::txn {

// A transaction on its way through the pipeline. Lives on its committer's stack until the outcome is known.
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

  TransactionId id;
  wal::Lsn snapshot_lsn;
  absl::Time deadline = absl::InfiniteFuture();
  std::vector<Part> parts;  // sorted by partition id
  std::vector<Packing> packings;
  wal::PreparedEntry prepared;
  EntryEffects effects;

  // Filled by the pipeline.
  std::vector<wal::DroppedRef> dropped;
  wal::LogQueue::Ticket ticket;
  std::atomic<bool> is_ready{false};  // effects are final, and no directory work is left
  bool is_published = false;          // guarded by the publisher's mutex
  storage::CondVar published;
};

class Committer {
 public:
  struct Options {
    int admission_queue_max = 4096;
  };
  // Does the directory work of a durable entry.
  using DirectoryWork = std::function<absl::Status(const PendingCommit&)>;
  // Makes log space ahead of need; may do I/O.
  using PrepareSpace = std::function<absl::Status()>;

  // All must outlive the committer.
  Committer(storage::Clock* clock, wal::LogQueue* queue, Publisher* publisher,
            const SnapshotRegistry* registry, DirectoryWork directory_work, PrepareSpace prepare_space,
            const Options& options)
      : clock_(clock),
        queue_(queue),
        publisher_(publisher),
        registry_(registry),
        directory_work_(std::move(directory_work)),
        prepare_space_(std::move(prepare_space)),
        options_(options) {}

  // Steps 1 to 5. Not committed: nothing happened and nothing will. Unknown: see CommitResult.
  CommitResult Commit(PendingCommit* commit);
  // The check of step 2 alone.
  absl::Status DryRun(const PendingCommit& commit);

  // Why nothing is committed any more, or OK.
  absl::Status poison() const { return queue_->poison(); }
  // Refuses every later commit and wakes whoever waits.
  void Poison(const absl::Status& why);

  // Admits nothing more and waits until every commit under way has its outcome.
  void Drain() ABSL_LOCKS_EXCLUDED(drain_mutex_);

  bool is_draining() const { return is_draining_.load(); }

  int64_t conflicts() const { return conflicts_.load(std::memory_order_relaxed); }
  int64_t commits() const { return commits_.load(std::memory_order_relaxed); }

 private:
  absl::Status Admit(const PendingCommit& commit);
  void Leave(const PendingCommit& commit);
  void LeaveFlight() ABSL_LOCKS_EXCLUDED(drain_mutex_);
  absl::Status CheckAndReserve(PendingCommit* commit);
  CommitResult Finish(PendingCommit* commit);

  storage::Clock* const clock_;
  wal::LogQueue* const queue_;
  Publisher* const publisher_;
  const SnapshotRegistry* const registry_;
  const DirectoryWork directory_work_;
  const PrepareSpace prepare_space_;
  const Options options_;
  std::atomic<int> in_flight_{0};
  std::atomic<bool> is_draining_{false};
  storage::Mutex drain_mutex_{storage::MutexRank::kLeaf};
  storage::CondVar drained_;
  std::atomic<int64_t> conflicts_{0};
  std::atomic<int64_t> commits_{0};
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_COMMITTER_H_
