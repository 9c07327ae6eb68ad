#include "txn/committer.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/critical_section.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "wal/manifest_codec.h"

namespace repotxn::txn {
namespace {

// How often a commit makes log space by itself before it reports that there is none.
constexpr int kSpaceTries = 3;

// Holds the mutexes of all partitions involved, acquired in id order.
class PartitionLocks {
 public:
  explicit PartitionLocks(const std::vector<PendingCommit::Part>& parts) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : parts_(parts) {
    for (const PendingCommit::Part& part : parts_) part.partition->mutex.Lock();
  }
  ~PartitionLocks() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) part->partition->mutex.Unlock();
  }
  PartitionLocks(const PartitionLocks&) = delete;
  PartitionLocks& operator=(const PartitionLocks&) = delete;

 private:
  const std::vector<PendingCommit::Part>& parts_;
};

// The first part that may not commit, with the evidence.
struct FailedCheck {
  const PendingCommit::Part* part = nullptr;
  locks::CheckResult result;
};

FailedCheck CheckParts(const PendingCommit& commit) {
  for (const PendingCommit::Part& part : commit.parts) {
    const locks::CheckResult result =
        part.partition->history.Check(part.footprint, commit.snapshot_lsn);
    if (!result.ok()) return FailedCheck{&part, result};
  }
  return FailedCheck{};
}

// Takes names that were written since the snapshot out of a packing: a walk over those writes, not over the packing.
void DropWrittenRefs(PendingCommit* commit) {
  for (const PendingCommit::Packing& packing : commit->packings) {
    const auto drop = [&](absl::string_view name) {
      commit->dropped.push_back(
          wal::DroppedRef{packing.id, std::string(name.data(), name.size())});
    };
    packing.partition->history.ForEachRefWrittenSince(
        packing.id, commit->snapshot_lsn, [&](const locks::ConflictHistory::WrittenRef& written) {
          auto name = std::lower_bound(packing.names.begin(), packing.names.end(), written.name);
          for (; name != packing.names.end() && absl::StartsWith(*name, written.name); ++name) {
            if (!written.is_prefix && absl::string_view(*name) != written.name) break;
            drop(*name);
          }
        });
  }
  std::sort(commit->dropped.begin(), commit->dropped.end(),
            [](const wal::DroppedRef& a, const wal::DroppedRef& b) {
              return std::tie(a.id, a.name) < std::tie(b.id, b.name);
            });
  commit->dropped.erase(std::unique(commit->dropped.begin(), commit->dropped.end()),
                        commit->dropped.end());
}

}  // namespace

absl::Status Committer::Admit(const PendingCommit& commit) {
  REPOTXN_RETURN_IF_ERROR(queue_->poison());
  if (clock_->Now() > commit.deadline) {
    return absl::DeadlineExceededError("deadline passed before the commit was admitted");
  }
  const int others = in_flight_.fetch_add(1);
  if (is_draining_.load()) {
    LeaveFlight();
    return absl::UnavailableError("store is closing");
  }
  if (others >= static_cast<int>(Publisher::kInFlightMax) - 1) {
    LeaveFlight();
    return absl::ResourceExhaustedError("too many commits are in flight");
  }
  for (size_t i = 0; i < commit.parts.size(); ++i) {
    if (commit.parts[i].partition->waiting.fetch_add(1) < options_.admission_queue_max) continue;
    for (size_t j = 0; j <= i; ++j) commit.parts[j].partition->waiting.fetch_sub(1);
    LeaveFlight();
    return absl::ResourceExhaustedError("admission queue of a partition is full");
  }
  return absl::OkStatus();
}

void Committer::Leave(const PendingCommit& commit) {
  for (const PendingCommit::Part& part : commit.parts) part.partition->waiting.fetch_sub(1);
  LeaveFlight();
}

void Committer::LeaveFlight() {
  if (in_flight_.fetch_sub(1) == 1 && is_draining_.load()) {
    const storage::MutexLock lock(&drain_mutex_);
    drained_.SignalAll();
  }
}

void Committer::Drain() {
  is_draining_.store(true);
  const storage::MutexLock lock(&drain_mutex_);
  while (in_flight_.load() > 0) drained_.Wait(&drain_mutex_);
}

absl::Status Committer::CheckAndReserve(PendingCommit* commit) {
  const wal::Lsn oldest = registry_->OldestReader();
  std::string encoded_drops;
  FailedCheck failed;
  {
    const PartitionLocks locks(commit->parts);
    const storage::CriticalSection section;
    failed = CheckParts(*commit);
    if (failed.part == nullptr) {
      commit->dropped.clear();
      DropWrittenRefs(commit);
      if (!commit->dropped.empty()) encoded_drops = wal::EncodeDropped(commit->dropped);
      const auto lsn = queue_->Reserve(&commit->prepared, &encoded_drops, &commit->ticket);
      if (!lsn.ok()) return lsn.status();
      publisher_->Register(commit);
      for (const PendingCommit::Part& part : commit->parts) {
        part.partition->history.SetOldestSnapshot(oldest);
        part.partition->history.Record(part.footprint, *lsn, commit->id);
      }
    }
  }
  if (failed.part == nullptr) return absl::OkStatus();
  conflicts_.fetch_add(1, std::memory_order_relaxed);
  return locks::ToStatus(failed.result, failed.part->footprint);
}

CommitResult Committer::Commit(PendingCommit* commit) {
  REPOTXN_DCHECK(std::is_sorted(
      commit->parts.begin(), commit->parts.end(),
      [](const auto& a, const auto& b) { return a.partition->id < b.partition->id; }));
  CommitResult result;
  result.transaction_id = commit->id;
  result.status = Admit(*commit);
  if (!result.status.ok()) return result;
  // A packing waits for its committer: its effects are cut to what the critical section left of it.
  commit->is_ready.store(!commit->effects.has_directory_work() && commit->packings.empty(),
                         std::memory_order_relaxed);
  result.status = CheckAndReserve(commit);
  // A burst may use up the segments that exist before the background has made another: make it now, outside.
  for (int i = 0; i < kSpaceTries && absl::IsResourceExhausted(result.status); ++i) {
    if (absl::Status prepared = prepare_space_(); !prepared.ok()) {
      result.status = prepared;
      break;
    }
    result.status = CheckAndReserve(commit);
  }
  if (result.status.ok()) {
    if (!commit->dropped.empty()) DropPackedRefs(commit->dropped, &commit->effects);
    result = Finish(commit);
  }
  Leave(*commit);
  return result;
}

CommitResult Committer::Finish(PendingCommit* commit) {
  CommitResult result;
  result.transaction_id = commit->id;
  if (REPOTXN_PLANT("txn.publish_before_durable")) publisher_->OnDurable(commit->ticket.lsn());
  if (REPOTXN_PLANT("txn.apply_before_durable") && commit->effects.has_directory_work()) {
    IgnoreBecause(directory_work_(*commit), "planted: it is done again below");
  }
  const wal::AppendOutcome appended = queue_->AwaitDurable(&commit->ticket, &result.status);
  if (appended != wal::AppendOutcome::kCommitted) {
    result.outcome = appended == wal::AppendOutcome::kUnknown ? CommitOutcome::kUnknown
                                                              : CommitOutcome::kNotCommitted;
    publisher_->NoteLogFailed();
    return result;
  }
  if (commit->effects.has_directory_work()) {
    // I2: the entry is durable.
    if (absl::Status work = directory_work_(*commit); !work.ok()) {
      storage::LogError(absl::StrCat("directory work of a committed entry failed: ", work.message()));
      Poison(absl::UnavailableError("directory work of a committed entry failed"));
    }
  }
  if (!publisher_->AwaitPublished(commit)) {
    result.outcome = CommitOutcome::kUnknown;
    result.status = absl::UnavailableError("entry is durable and could not be made visible");
    return result;
  }
  result.outcome = CommitOutcome::kCommitted;
  result.lsn = commit->ticket.lsn();
  result.status = absl::OkStatus();
  commits_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

absl::Status Committer::DryRun(const PendingCommit& commit) {
  FailedCheck failed;
  {
    const PartitionLocks locks(commit.parts);
    failed = CheckParts(commit);
  }
  return failed.part == nullptr ? absl::OkStatus()
                                : locks::ToStatus(failed.result, failed.part->footprint);
}

void Committer::Poison(const absl::Status& why) {
  queue_->Poison(why);
  publisher_->Fail();
}

}  // namespace repotxn::txn
