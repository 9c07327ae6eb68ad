#include "txn/store.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "locks/verdict.h"
#include "storage/posix_file_system.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr size_t kRequestIdBytesMax = 200;
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(10);
constexpr absl::Duration kBackoffMax = absl::Milliseconds(320);
// How long a writer stands in line for a hot key before it tries without a turn.
constexpr absl::Duration kLinePatience = absl::Seconds(2);
constexpr int kHousekeepingConcurrencyMax = 64;

absl::Status CheckOptions(const StoreOptions& options) {
  if (options.segment_bytes < 64 << 10 || options.segment_bytes > 1 << 30) {
    return absl::InvalidArgumentError("segment_bytes is out of range");
  }
  if (options.loose_refs_max < 0 || options.direct_pack_refs_min < 1 ||
      options.admission_queue_max < 0 || options.commits_in_flight_max < 1 ||
      options.commits_in_flight_max >= static_cast<int>(Publisher::kInFlightMax) ||
      options.consumer_bytes_max < 1 || options.idle_lease <= absl::ZeroDuration() ||
      options.old_versions_bytes_max < 0 || options.history_bytes_max < 0 || options.packs_added_max < 0 ||
      options.housekeeping_concurrency < 1 || options.housekeeping_concurrency > kHousekeepingConcurrencyMax ||
      options.housekeeping_interval < absl::ZeroDuration() || options.unreachable_grace < absl::ZeroDuration() ||
      options.repack_interval < absl::ZeroDuration() || options.indexes_interval < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("a bound of the store options is out of range");
  }
  return absl::OkStatus();
}

}  // namespace

Store::Store(std::unique_ptr<StoreCore> core) : core_(std::move(core)) {}
Store::~Store() = default;

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& root,
                                                   const StoreOptions& options) {
  REPOTXN_RETURN_IF_ERROR(CheckOptions(options));
  if (options.create_if_missing) REPOTXN_RETURN_IF_ERROR(storage::MakeRootDirectory(root));
  REPOTXN_ASSIGN_OR_RETURN(auto fs, storage::OpenPosixFileSystem(root));
  Environment environment;
  environment.file_system = fs.get();
  environment.clock = storage::Clock::System();
  environment.random = storage::SystemRandom();
  REPOTXN_ASSIGN_OR_RETURN(auto core, StoreCore::Open(environment, std::move(fs), options));
  return std::unique_ptr<Store>(new Store(std::move(core)));
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const Environment& environment,
                                                   const StoreOptions& options) {
  REPOTXN_RETURN_IF_ERROR(CheckOptions(options));
  Environment complete = environment;
  if (complete.file_system == nullptr) return absl::InvalidArgumentError("no file system given");
  if (complete.clock == nullptr) complete.clock = storage::Clock::System();
  if (complete.random == nullptr) complete.random = storage::SystemRandom();
  REPOTXN_ASSIGN_OR_RETURN(auto core, StoreCore::Open(complete, nullptr, options));
  return std::unique_ptr<Store>(new Store(std::move(core)));
}

absl::StatusOr<std::unique_ptr<Transaction>> Store::Begin(const BeginOptions& options) {
  return core_->Begin(options, false);
}

storage::WaitLimit StoreCore::LimitOf(const BeginOptions& options) const {
  return storage::WaitLimit{environment_.clock, options.deadline, options.cancellation};
}

absl::StatusOr<std::unique_ptr<Transaction>> StoreCore::Begin(const BeginOptions& options,
                                                             bool is_attempt) {
  if (options.request_id.size() > kRequestIdBytesMax) {
    return absl::InvalidArgumentError("request id is longer than 200 bytes");
  }
  auto changes = std::make_unique<StagedChanges>();
  changes->core = this;
  changes->id = options.transaction_id.IsZero() ? NewTransactionId() : options.transaction_id;
  changes->access = options.access;
  changes->limit = LimitOf(options);
  changes->request_id = options.request_id;
  changes->is_attempt = is_attempt;
  changes->life = std::make_unique<TransactionLife>(changes->id, is_attempt, clock()->Monotonic());
  changes->memo = std::make_shared<RunMemo>();
  if (!is_attempt) REPOTXN_RETURN_IF_ERROR(live_.Enter(changes->id, options.request_id));
  changes->snapshot_lsn = registry_->Open(changes->life.get());
  std::unique_ptr<Transaction> transaction(new Transaction(std::move(changes)));
  for (const RepositoryPath& path : options.repositories) {
    REPOTXN_RETURN_IF_ERROR(transaction->OpenRepository(path).status());
  }
  return transaction;
}

void StoreCore::End(StagedChanges* changes, bool outcome_unknown) {
  changes->has_ended = true;
  changes->write_snapshots.clear();
  if (!registry_->Close(changes->life.get())) return;  // it was ended from outside before
  // The attempts of Run share one id, which Run itself lets go; a detached commit lets go its own.
  if (!changes->is_attempt && !changes->is_detached) live_.Leave(changes->id, outcome_unknown);
}

void StoreCore::LetGo(TransactionLife* life) {
  if (registry_->Close(life) && !life->is_attempt()) live_.GiveUp(life->id());
}

CommitResult Store::Run(const RunOptions& options,
                        absl::FunctionRef<absl::Status(Transaction&)> body) {
  return core_->Run(options, body);
}

CommitResult StoreCore::Run(const RunOptions& options, absl::FunctionRef<absl::Status(Transaction&)> body) {
  RunCall call;
  call.begin = options.begin;
  if (call.begin.transaction_id.IsZero()) call.begin.transaction_id = NewTransactionId();
  call.limit = LimitOf(call.begin);
  CommitResult result;
  result.transaction_id = call.begin.transaction_id;
  result.status = live_.Enter(call.begin.transaction_id, call.begin.request_id);
  if (!result.status.ok()) return result;
  const auto leave = absl::MakeCleanup([&] {
    if (!call.is_detached) {
      live_.Leave(call.begin.transaction_id, result.outcome == CommitOutcome::kUnknown);
    }
  });
  absl::Duration backoff = kFirstBackoff;
  int retries_left = options.retries_max;
  for (int attempt = 1;; ++attempt) {
    result = PlayOnce(&call, body);
    result.attempts = attempt;
    if (result.outcome != CommitOutcome::kNotCommitted || !absl::IsAborted(result.status)) return result;
    // Standing in line costs no retry: it is done at most once between two conflicts.
    if (!call.was_put_off) {
      if (retries_left-- == 0 || clock()->Now() + backoff > call.begin.deadline) return result;
      call.previous_conflict = result.status;
      retries_.fetch_add(1, std::memory_order_relaxed);
    }
    AwaitRetry(&call, result, backoff);
    if (!call.was_put_off) backoff = std::min(2 * backoff, kBackoffMax);
    if (absl::Status over = call.limit.Check(); !over.ok()) {
      result.status = std::move(over);
      return result;
    }
  }
}

absl::Status StoreCore::CheckNotClosed() const {
  return is_closed_.load() ? absl::UnavailableError("store is closed") : absl::OkStatus();
}

void StoreCore::AwaitRetry(RunCall* call, const CommitResult& lost, absl::Duration backoff) {
  // One turn at a time: with the lines of all its keys entered at once nobody waits in a circle.
  call->turn.GiveUp();
  // What it lost against may be on its way to the disk still: a new snapshot would not have it [hard case B11].
  if (const auto conflict = locks::ConflictDetailOf(lost.status)) {
    // And nobody may be on the way to write it.
    committer_->AdvanceDetached(conflict->conflicting_lsn, call->limit);
    publisher_->AwaitCommitted(conflict->conflicting_lsn, call->limit);
  }
  if (options_.intent_queue && !call->is_impatient && !call->lines.empty()) {
    call->turn = intents_.LineUp(call->lines, call->limit, kLinePatience);
    if (call->turn.is_held()) return;
    call->is_impatient = true;
  }
  if (!call->was_put_off) Pause(backoff, call->limit);
}

CommitResult StoreCore::PlayOnce(RunCall* call, absl::FunctionRef<absl::Status(Transaction&)> body) {
  CommitResult result;
  result.transaction_id = call->begin.transaction_id;
  call->was_put_off = false;
  auto transaction = Begin(call->begin, true);
  result.status = transaction.status();
  if (!result.status.ok()) return result;
  StagedChanges* const changes = (*transaction)->changes_.get();
  changes->previous_conflict = call->previous_conflict;
  changes->memo = call->memo;
  changes->has_turn = !options_.intent_queue || call->is_impatient || call->turn.is_held();
  // What the body expects may not hold any more because the request was committed: that comes first.
  auto recorded = RecordedRequest(call->begin.request_id, changes->snapshot_lsn);
  if (recorded.ok() && *recorded) return **std::move(recorded);
  result.status = recorded.ok() ? body(**transaction) : recorded.status();
  if (!result.status.ok()) return result;
  result = (*transaction)->Commit();
  call->is_detached = changes->is_detached;
  call->was_put_off = changes->was_put_off;
  call->lines.insert(call->lines.end(), changes->lines_to_stand_in.begin(), changes->lines_to_stand_in.end());
  return result;
}

void StoreCore::Pause(absl::Duration backoff, const storage::WaitLimit& limit) {
  // Half fixed, half drawn, so that those who lost together do not come back together.
  const double drawn = static_cast<double>(storage::NextUint64(*environment_.random) >> 11) * 0x1p-53;
  const absl::Duration until = environment_.clock->Monotonic() + backoff * (0.5 + drawn);
  const storage::CancellationWaker waker(limit, &pause_mutex_, &pause_over_);
  const storage::MutexLock lock(&pause_mutex_);
  while (!is_closed_.load() && !limit.cancellation.stop_requested() && environment_.clock->Monotonic() < until) {
    if (pause_over_.WaitFor(&pause_mutex_, until - environment_.clock->Monotonic())) break;
  }
}

CommitResult Store::OutcomeOf(const TransactionId& id) { return core_->OutcomeOf(id); }
CommitResult Store::OutcomeOfRequest(absl::string_view request_id, absl::Time issued_at) {
  return core_->OutcomeOfRequest(request_id, issued_at);
}
TransactionId Store::NewTransactionId() { return core_->NewTransactionId(); }

absl::StatusOr<std::shared_ptr<ObjectStaging>> Store::StageObjects(const TransactionId& id,
                                                                   const RepositoryPath& path,
                                                                   ObjectFormat format_if_absent) {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  REPOTXN_ASSIGN_OR_RETURN(auto staged, core_->StageObjects(id, path, format_if_absent));
  return std::shared_ptr<ObjectStaging>(std::move(staged));
}

absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> Store::ReadSnapshot(
    const RepositoryPath& path) {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->ReadSnapshot(path);
}

absl::StatusOr<std::vector<RepositoryInfo>> Store::ListRepositories(absl::string_view prefix,
                                                                   absl::string_view after,
                                                                   int limit) {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->ListRepositories(prefix, after, limit);
}

wal::Lsn Store::committed_lsn() const { return core_->publisher()->committed_lsn(); }
StoreMetrics Store::Metrics() const { return core_->Metrics(); }
StoreId Store::incarnation() const { return core_->incarnation(); }
const RecoveryReport& Store::recovery_report() const { return core_->recovery_report(); }
int Store::lock_descriptor() const { return core_->lock_descriptor(); }
absl::Status Store::Health() const { return core_->committer()->poison(); }
absl::Status Store::Materialize() {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->Materialize();
}
absl::Status Store::Checkpoint() {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->Checkpoint();
}
absl::Status Store::RunBackgroundWork() {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->RunBackgroundWork();
}
absl::Status Store::RunHousekeeping() {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  return core_->housekeeper()->RunRound();
}
absl::StatusOr<HousekeepingPlan> Store::PlanHousekeeping(const RepositoryPath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, IdOf(path));
  return core_->housekeeper()->Plan(id);
}
absl::StatusOr<std::vector<TaskResult>> Store::RunHousekeeping(const RepositoryPath& path, const HousekeepingRun& run) {
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, IdOf(path));
  return core_->housekeeper()->Run(id, run);
}
absl::StatusOr<RepositoryHousekeeping> Store::HousekeepingStatus(const RepositoryPath& path) {
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, IdOf(path));
  RepositoryHousekeeping status = core_->housekeeper()->StatusOf(id);
  status.path = path.text();
  return status;
}
HousekeepingOverview Store::HousekeepingStatus() { return core_->housekeeper()->Overview(); }
void Store::PauseHousekeeping(bool is_paused) { core_->housekeeper()->Pause(is_paused); }
absl::StatusOr<RepositoryId> Store::IdOf(const RepositoryPath& path) {
  REPOTXN_RETURN_IF_ERROR(core_->CheckNotClosed());
  const wal::Lsn at = core_->registry()->Enter();
  const auto leave = absl::MakeCleanup([&] { core_->registry()->Leave(at); });
  REPOTXN_ASSIGN_OR_RETURN(const auto row, core_->LookUpPath(path.text(), at));
  if (!row || !row->repository) return absl::NotFoundError("repository does not exist");
  return *row->repository;
}
absl::Status Store::Close() { return core_->Close(); }

}  // namespace repotxn::txn
