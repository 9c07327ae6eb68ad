// Keeps the repositories of a store in order: looks what each needs (txn/housekeeping_plan.h) and does it, each task as a
// transaction or two like any other, so that it never holds a push back. Private to txn/.
//
// Workers of its own (StoreOptions::housekeeping_concurrency) do it in the background: for a repository to which many packs
// were added at once, and for all of them every housekeeping_interval, those first that came first. A worker does one task
// after another; two never work on one repository. Others may ask for tasks at any time, beside the workers and one another:
// only the same task of the same repository is not done twice at once, who comes second gets kAborted.
//
// A task without success stays needed, with its age; it is tried again in the next round, or when packs come.
//
// Thread-safe. Mutex: rank kLeaf, never held while something is measured or done.
#ifndef REPOTXN_TXN_HOUSEKEEPING_H_
#define REPOTXN_TXN_HOUSEKEEPING_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"
#include "txn/housekeeping_plan.h"
#include "txn/housekeeping_status.h"
#include "txn/repository_state.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class StoreCore;
struct StoreMetrics;

class Housekeeper {
 public:
  // `core` must outlive it.
  explicit Housekeeper(StoreCore* core);

  // The workers. Stop() lets a task that has begun end, calls off the transaction that it waits for, and begins no other.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // A pack was added: asks for a merge when it is time.
  void NotePackAdded(const RepositoryState& repository) ABSL_LOCKS_EXCLUDED(mutex_);

  // A round over all repositories, here and now, paused or not: does what is needed. The first task that failed; what
  // something stood in the way of is no failure of the round.
  absl::Status RunRound();
  absl::StatusOr<HousekeepingPlan> Plan(const RepositoryId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // One result a task, in the order of the tasks; one that is not successful does not keep the others.
  absl::StatusOr<std::vector<TaskResult>> Run(const RepositoryId& id, const HousekeepingRun& run)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Without the path.
  RepositoryHousekeeping StatusOf(const RepositoryId& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  HousekeepingOverview Overview() ABSL_LOCKS_EXCLUDED(mutex_);
  // While paused no worker begins a task.
  void Pause(bool is_paused) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddTo(StoreMetrics* metrics) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What is remembered of a repository.
  struct Record {
    std::array<TaskStatus, kHousekeepingTasks> tasks;
    // Packs added before a merge that did not succeed.
    int64_t packs_owed = 0;
    bool packs_rewritten_since_indexes = false;
    absl::Time repacked_at = absl::InfinitePast(), indexed_at = absl::InfinitePast();
    wal::Lsn repacked_lsn;  // newest change that the last repack has seen
  };
  // Who works: whether it goes on after a task, and how it can be called off.
  struct Work {
    bool is_background = false;
    HousekeepingRun run;
  };

  void WorkerLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until there is something to do. False: it is time to stop. With `*is_round` all repositories are to be queued,
  // else `*id`, which is busy then.
  bool AwaitWork(RepositoryId* id, bool* is_round) ABSL_LOCKS_EXCLUDED(mutex_);
  bool TakeQueued(RepositoryId* id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Queue(const RepositoryId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<RepositoryId>> AllRepositories() ABSL_LOCKS_EXCLUDED(mutex_);

  bool GoesOn(const Work& work) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Tend(const RepositoryId& id, const Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<RepositoryState>> Open(const RepositoryId& id);
  absl::StatusOr<RepositorySizes> Measure(const RepositoryId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  TaskResult RunTask(const RepositoryId& id, HousekeepingTask task, const HousekeepingRun& run)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DoTask(RepositoryState* repository, const HousekeepingRun& run, TaskResult* result) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteResult(const RepositoryState& repository, wal::Lsn seen, int64_t packs_seen, const TaskResult& result)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const RepositoryId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  StoreCore* const core_;
  HousekeepingRules rules_;
  storage::CancellationSource stop_source_;
  std::vector<std::thread> workers_;

  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration next_round_ ABSL_GUARDED_BY(mutex_);  // monotonic
  std::deque<RepositoryId> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<RepositoryId> queued_ ABSL_GUARDED_BY(mutex_);  // those in queue_
  absl::flat_hash_set<RepositoryId> busy_ ABSL_GUARDED_BY(mutex_);    // those of workers
  absl::flat_hash_map<RepositoryId, Record> records_ ABSL_GUARDED_BY(mutex_);
  std::array<std::array<int64_t, kTaskOutcomes>, kHousekeepingTasks> results_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_HOUSEKEEPING_H_
