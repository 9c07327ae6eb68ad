#include "txn/housekeeping.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/repository_sizes.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr int kListedAtOnce = 1000;

size_t IndexOf(HousekeepingTask task) { return static_cast<size_t>(task); }

HousekeepingRules RulesOf(const StoreOptions& options) {
  HousekeepingRules rules;
  rules.loose_refs_max = options.loose_refs_max;
  rules.packs_added_max = options.packs_added_max;
  rules.unreachable_grace = options.unreachable_grace;
  rules.repack_interval = options.repack_interval;
  rules.indexes_interval = options.indexes_interval;
  return rules;
}

// The tasks that a run asks for by name, each once, in their order; none: what is needed.
std::vector<HousekeepingTask> NamedTasks(const HousekeepingRun& run) {
  std::vector<HousekeepingTask> tasks = run.tasks;
  if (run.all) tasks.assign(std::begin(kAllHousekeeping), std::end(kAllHousekeeping));
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  return tasks;
}

bool NeedsAttention(const TaskStatus& task) {
  return task.is_needed() || task.is_running || (task.last && !task.last->is_success());
}

}  // namespace

absl::string_view TaskOutcomeName(TaskOutcome outcome) {
  switch (outcome) {
    case TaskOutcome::kDone: return "done";
    case TaskOutcome::kNothingToDo: return "nothing to do";
    case TaskOutcome::kStoodInTheWay: return "stood in the way";
    case TaskOutcome::kFailed: return "failed";
  }
  return "outcome";
}

TaskOutcome TaskResult::outcome() const {
  switch (status.code()) {
    case absl::StatusCode::kOk: return did_work ? TaskOutcome::kDone : TaskOutcome::kNothingToDo;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded: return TaskOutcome::kStoodInTheWay;
    default: return TaskOutcome::kFailed;
  }
}

Housekeeper::Housekeeper(StoreCore* core) : core_(core), rules_(RulesOf(core->options())) {}

void Housekeeper::Start() {
  const StoreOptions& options = core_->options();
  const bool has_rounds = options.housekeeping_interval > absl::ZeroDuration();
  if (!has_rounds && options.packs_added_max == 0) return;
  {
    const storage::MutexLock lock(&mutex_);
    next_round_ = has_rounds ? core_->clock()->Monotonic() + options.housekeeping_interval : absl::InfiniteDuration();
  }
  for (int i = 0; i < options.housekeeping_concurrency; ++i) workers_.emplace_back([this] { WorkerLoop(); });
}

void Housekeeper::Stop() {
  {
    const storage::MutexLock lock(&mutex_);
    stop_ = true;
    wake_.SignalAll();
  }
  stop_source_.request_stop();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Housekeeper::Pause(bool is_paused) {
  const storage::MutexLock lock(&mutex_);
  is_paused_ = is_paused;
  wake_.SignalAll();
}

void Housekeeper::NotePackAdded(const RepositoryState& repository) {
  if (rules_.packs_added_max == 0 || repository.packs_added() < rules_.packs_added_max) return;
  const storage::MutexLock lock(&mutex_);
  Queue(repository.id());
}

void Housekeeper::Queue(const RepositoryId& id) {
  if (!queued_.insert(id).second) return;
  queue_.push_back(id);
  wake_.Signal();
}

bool Housekeeper::TakeQueued(RepositoryId* id) {
  auto found = queue_.begin();
  while (found != queue_.end() && busy_.contains(*found)) ++found;
  if (found == queue_.end()) return false;
  *id = *found;
  queue_.erase(found);
  queued_.erase(*id);
  busy_.insert(*id);
  return true;
}

bool Housekeeper::AwaitWork(RepositoryId* id, bool* is_round) {
  const storage::MutexLock lock(&mutex_);
  while (!stop_) {
    const absl::Duration left = next_round_ - core_->clock()->Monotonic();
    *is_round = !is_paused_ && left <= absl::ZeroDuration();
    if (*is_round) {
      next_round_ = core_->clock()->Monotonic() + core_->options().housekeeping_interval;
      return true;
    }
    if (!is_paused_ && TakeQueued(id)) return true;
    if (is_paused_ || left == absl::InfiniteDuration()) {
      wake_.Wait(&mutex_);
    } else {
      wake_.WaitFor(&mutex_, left);
    }
  }
  return false;
}

void Housekeeper::WorkerLoop() {
  Work work;
  work.is_background = true;
  work.run.cancellation = stop_source_.get_token();
  RepositoryId id;
  bool is_round = false;
  while (AwaitWork(&id, &is_round)) {
    if (is_round) {
      const auto all = AllRepositories();
      if (!all.ok()) storage::LogWarning(absl::StrCat("housekeeping: no list: ", all.status().message()));
      const storage::MutexLock lock(&mutex_);
      if (all.ok()) {
        for (const RepositoryId& each : *all) Queue(each);
      }
      wake_.SignalAll();
      continue;
    }
    if (const absl::Status status = Tend(id, work); !status.ok()) {
      storage::LogWarning(absl::StrCat("housekeeping of repository ", id.ToHex(), " failed: ", status.message()));
    }
    const storage::MutexLock lock(&mutex_);
    busy_.erase(id);
    // It may have been queued again, for another worker.
    wake_.SignalAll();
  }
}

absl::StatusOr<std::vector<RepositoryId>> Housekeeper::AllRepositories() {
  std::vector<RepositoryId> all;
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const auto rows, core_->ListRepositories("", after, kListedAtOnce));
    for (const RepositoryInfo& row : rows) all.push_back(row.id);
    if (rows.size() < static_cast<size_t>(kListedAtOnce)) break;
    after = rows.back().path;
  }
  // And those that are remembered and gone: who looks at them forgets them.
  const absl::flat_hash_set<RepositoryId> listed(all.begin(), all.end());
  const storage::MutexLock lock(&mutex_);
  for (const auto& [id, record] : records_) {
    if (!listed.contains(id)) all.push_back(id);
  }
  return all;
}

absl::Status Housekeeper::RunRound() {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> all, AllRepositories());
  absl::Status first_failure;
  for (const RepositoryId& id : all) first_failure.Update(Tend(id, Work{}));
  return first_failure;
}

bool Housekeeper::GoesOn(const Work& work) const {
  if (!core_->CheckNotClosed().ok() || !core_->committer()->poison().ok()) return false;
  if (!work.is_background) return true;
  const storage::MutexLock lock(&mutex_);
  return !stop_ && !is_paused_;
}

absl::Status Housekeeper::Tend(const RepositoryId& id, const Work& work) {
  absl::Status first_failure;
  std::array<bool, kHousekeepingTasks> was_run{};
  // What one task did may make another needed.
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    if (!GoesOn(work)) return first_failure;
    const absl::StatusOr<HousekeepingPlan> plan = Plan(id);
    if (absl::IsNotFound(plan.status())) return first_failure;  // deleted meanwhile
    REPOTXN_RETURN_IF_ERROR(plan.status());
    for (const TaskNeed& need : plan->needs) {
      if (was_run[IndexOf(need.task)]) continue;
      if (!GoesOn(work)) return first_failure;
      was_run[IndexOf(need.task)] = true;
      const TaskResult result = RunTask(id, need.task, work.run);
      if (result.outcome() == TaskOutcome::kFailed && !absl::IsNotFound(result.status)) {
        first_failure.Update(result.status);
      }
      is_changed = is_changed || result.did_work;
    }
  }
  return first_failure;
}

absl::StatusOr<std::shared_ptr<RepositoryState>> Housekeeper::Open(const RepositoryId& id) {
  const wal::Lsn at = core_->registry()->Enter();
  const auto leave = absl::MakeCleanup([&] { core_->registry()->Leave(at); });
  return core_->StateOf(id, at);
}

absl::StatusOr<RepositorySizes> Housekeeper::Measure(const RepositoryId& id) {
  const wal::Lsn at = core_->registry()->Enter();
  const auto leave = absl::MakeCleanup([&] { core_->registry()->Leave(at); });
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<RepositoryRow> row, core_->RowOf(id, at));
  if (!row || row->is_removed()) return absl::NotFoundError("repository does not exist");
  REPOTXN_ASSIGN_OR_RETURN(RepositorySizes sizes, MeasureRepository(*core_->file_system(), core_->condemned(), id,
                                                                    row->format, rules_.loose_refs_max));
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, core_->AlternatesOf(id, at));
  sizes.borrows = static_cast<int64_t>(alternates.size());
  // Not opened only to be counted: its refs would stay in memory.
  std::shared_ptr<RepositoryState> state = core_->FindState(id);
  if (state == nullptr && sizes.loose_refs > rules_.loose_refs_max) state = core_->OpenState(id, *row);
  wal::Lsn changed;
  if (state != nullptr) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<refs::NamedRef> loose, state->NewestLooseRefs());
    sizes.loose_refs = static_cast<int64_t>(loose.size());
    sizes.packs_added = state->packs_added();
    changed = state->changed_lsn();
  }
  const storage::MutexLock lock(&mutex_);
  const auto found = records_.find(id);
  const Record record = found == records_.end() ? Record{} : found->second;
  sizes.packs_added += record.packs_owed;
  sizes.repacked_at = record.repacked_at;
  sizes.refs_changed_since_repack = changed > record.repacked_lsn;
  sizes.packs_rewritten_since_indexes = record.packs_rewritten_since_indexes;
  sizes.indexed_at = std::max(sizes.indexed_at, record.indexed_at);
  return sizes;
}

absl::StatusOr<HousekeepingPlan> Housekeeper::Plan(const RepositoryId& id) {
  absl::StatusOr<RepositorySizes> sizes = Measure(id);
  if (absl::IsNotFound(sizes.status())) Forget(id);
  REPOTXN_RETURN_IF_ERROR(sizes.status());
  HousekeepingPlan plan;
  plan.sizes = *std::move(sizes);
  const absl::Time now = core_->clock()->Now();
  plan.needs = WhatIsNeeded(plan.sizes, rules_, now);
  const storage::MutexLock lock(&mutex_);
  if (plan.needs.empty() && !records_.contains(id)) return plan;
  std::array<TaskStatus, kHousekeepingTasks>& tasks = records_[id].tasks;
  std::array<std::string, kHousekeepingTasks> reasons;
  for (const TaskNeed& need : plan.needs) reasons[IndexOf(need.task)] = need.reason;
  for (size_t i = 0; i < kHousekeepingTasks; ++i) {
    tasks[i].needed_since = reasons[i].empty() ? absl::InfiniteFuture() : std::min(tasks[i].needed_since, now);
    tasks[i].reason = std::move(reasons[i]);
  }
  return plan;
}

absl::StatusOr<std::vector<TaskResult>> Housekeeper::Run(const RepositoryId& id, const HousekeepingRun& run) {
  if (run.all && !run.tasks.empty()) return absl::InvalidArgumentError("all tasks, and some by name");
  if (run.grace && *run.grace < absl::ZeroDuration()) return absl::InvalidArgumentError("a grace below zero");
  std::vector<TaskResult> results;
  const std::vector<HousekeepingTask> named = NamedTasks(run);
  for (const HousekeepingTask task : named) results.push_back(RunTask(id, task, run));
  if (!named.empty()) return results;
  std::array<bool, kHousekeepingTasks> was_run{};
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    REPOTXN_ASSIGN_OR_RETURN(const HousekeepingPlan plan, Plan(id));
    for (const TaskNeed& need : plan.needs) {
      if (was_run[IndexOf(need.task)]) continue;
      was_run[IndexOf(need.task)] = true;
      results.push_back(RunTask(id, need.task, run));
      is_changed = is_changed || results.back().did_work;
    }
  }
  return results;
}

TaskResult Housekeeper::RunTask(const RepositoryId& id, HousekeepingTask task, const HousekeepingRun& run) {
  TaskResult result;
  result.task = task;
  result.started_at = core_->clock()->Now();
  const absl::Duration begun = core_->clock()->Monotonic();
  const absl::StatusOr<std::shared_ptr<RepositoryState>> state = Open(id);
  if (!state.ok()) {
    result.status = state.status();
    if (absl::IsNotFound(result.status)) Forget(id);
    return result;
  }
  {
    const storage::MutexLock lock(&mutex_);
    TaskStatus& status = records_[id].tasks[IndexOf(task)];
    if (status.is_running) {
      result.status = absl::AbortedError("the same task of the repository is under way");
      return result;
    }
    status.is_running = true;
  }
  // Before the look: what changes from here on counts for the next time.
  const wal::Lsn seen = (*state)->changed_lsn();
  const int packs_seen = (*state)->packs_added();
  const bool rewrites_packs = task == HousekeepingTask::kMergePacks || task == HousekeepingTask::kRepack;
  if (rewrites_packs) {
    (*state)->NotePacksMerged();
    core_->pack_pressure()->NoteMerge();
  }
  DoTask(state->get(), run, &result);
  if (rewrites_packs) core_->pack_pressure()->NoteMerge();
  result.duration = core_->clock()->Monotonic() - begun;
  NoteResult(**state, seen, packs_seen, result);
  return result;
}

void Housekeeper::DoTask(RepositoryState* repository, const HousekeepingRun& run, TaskResult* result) {
  const RepositoryId& id = repository->id();
  if (result->task == HousekeepingTask::kPackRefs) {
    const absl::StatusOr<int64_t> packed = core_->PackLooseRefs(repository, 0);
    result->status = packed.status();
    result->refs_packed = packed.value_or(0);
    result->did_work = result->refs_packed > 0;
    return;
  }
  RepackOptions repack;
  const absl::Duration grace = run.grace.value_or(rules_.unreachable_grace);
  repack.expire_before = grace > absl::ZeroDuration() ? core_->clock()->Now() - grace : absl::InfiniteFuture();
  RunOptions options;
  options.begin.deadline = run.deadline;
  options.begin.cancellation = run.cancellation;
  const CommitResult committed = core_->Run(options, [&](Transaction& transaction) -> absl::Status {
    switch (result->task) {
      case HousekeepingTask::kPackRefs: break;
      case HousekeepingTask::kMergePacks: {
        REPOTXN_ASSIGN_OR_RETURN(result->merge, transaction.MergePacks(id, {.all = run.all}));
        break;
      }
      case HousekeepingTask::kRepack: {
        REPOTXN_ASSIGN_OR_RETURN(result->repack, transaction.RepackObjects(id, repack));
        break;
      }
      case HousekeepingTask::kIndexes: {
        REPOTXN_ASSIGN_OR_RETURN(result->indexes, transaction.WriteDerivedIndexes(id));
        break;
      }
    }
    return absl::OkStatus();
  });
  result->status = committed.status;
  result->did_work = committed.committed() && committed.lsn != wal::Lsn::Zero();
  if (committed.committed() && result->merge.loose_objects > 0) {
    result->status.Update(core_->DropPackedLooseObjects(*repository));
  }
}

void Housekeeper::NoteResult(const RepositoryState& repository, wal::Lsn seen, int64_t packs_seen,
                             const TaskResult& result) {
  const storage::MutexLock lock(&mutex_);
  Record& record = records_[repository.id()];
  TaskStatus& task = record.tasks[IndexOf(result.task)];
  task.is_running = false;
  task.last = result;
  if (result.is_success()) {
    task.needed_since = absl::InfiniteFuture();
    task.reason.clear();
  }
  ++results_[IndexOf(result.task)][static_cast<size_t>(result.outcome())];
  switch (result.task) {
    case HousekeepingTask::kPackRefs: break;
    case HousekeepingTask::kRepack:
      if (result.is_success()) {
        record.repacked_at = result.started_at;
        record.repacked_lsn = seen;
      }
      [[fallthrough]];
    case HousekeepingTask::kMergePacks:
      record.packs_owed = result.is_success() ? 0 : record.packs_owed + packs_seen;
      if (result.did_work) record.packs_rewritten_since_indexes = true;
      break;
    case HousekeepingTask::kIndexes:
      if (!result.is_success()) break;
      record.indexed_at = result.started_at;
      record.packs_rewritten_since_indexes = false;
      break;
  }
}

void Housekeeper::Forget(const RepositoryId& id) {
  const storage::MutexLock lock(&mutex_);
  records_.erase(id);
}

RepositoryHousekeeping Housekeeper::StatusOf(const RepositoryId& id) const {
  RepositoryHousekeeping status;
  status.id = id;
  const storage::MutexLock lock(&mutex_);
  const auto found = records_.find(id);
  if (found != records_.end()) status.tasks = found->second.tasks;
  return status;
}

HousekeepingOverview Housekeeper::Overview() {
  HousekeepingOverview overview;
  {
    const storage::MutexLock lock(&mutex_);
    overview.is_paused = is_paused_;
    for (const auto& [id, record] : records_) {
      if (!std::any_of(record.tasks.begin(), record.tasks.end(), NeedsAttention)) continue;
      overview.repositories.push_back({id, "", record.tasks});
    }
  }
  const wal::Lsn at = core_->registry()->Enter();
  const auto leave = absl::MakeCleanup([&] { core_->registry()->Leave(at); });
  std::vector<RepositoryHousekeeping> live;
  for (RepositoryHousekeeping& repository : overview.repositories) {
    absl::StatusOr<RepositoryInfo> row = core_->Describe(repository.id, at);
    if (!row.ok()) continue;  // deleted; a round forgets it
    repository.path = std::move(row->path);
    live.push_back(std::move(repository));
  }
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  overview.repositories = std::move(live);
  return overview;
}

void Housekeeper::AddTo(StoreMetrics* metrics) const {
  const absl::Time now = core_->clock()->Now();
  const storage::MutexLock lock(&mutex_);
  metrics->housekeeping_results = results_;
  metrics->housekeeping_is_paused = is_paused_;
  metrics->pack_merges = results_[IndexOf(HousekeepingTask::kMergePacks)][static_cast<size_t>(TaskOutcome::kDone)];
  absl::Time oldest = now;
  for (const auto& [id, record] : records_) {
    bool is_waiting = false;
    for (const TaskStatus& task : record.tasks) {
      is_waiting = is_waiting || task.is_needed();
      oldest = std::min(oldest, task.needed_since);
    }
    if (is_waiting) ++metrics->repositories_needing_housekeeping;
  }
  metrics->housekeeping_oldest_need = now - oldest;
}

}  // namespace repotxn::txn
