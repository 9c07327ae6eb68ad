#include "txn/committer.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/critical_section.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/repository_state.h"
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

// Whether objects were removed, or (for a removal) used, since the looks that the commit rests on.
bool IsLookStale(const PendingCommit& commit) {
  for (const PendingCommit::ObjectUse& use : commit.object_uses) {
    // What the history has forgotten is published.
    if (use.partition->history.NewestWrite(use.removals) > commit.objects_checked ||
        use.repository->objects_removed() > commit.objects_checked) {
      return true;
    }
  }
  for (const PendingCommit::Part& part : commit.watched) {
    if (!part.partition->history.Check(part.footprint, commit.watched_since).ok()) return true;
  }
  return false;
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
  std::vector<wal::PartitionId> partitions;
  partitions.reserve(commit.parts.size());
  for (const PendingCommit::Part& part : commit.parts) partitions.push_back(part.partition->id);
  absl::Status entered =
      commit.is_of_store ? admission_.EnterOwn() : admission_.Enter(partitions, commit.limit);
  // One that is turned away may have been counted for a moment.
  if (!entered.ok()) WakeDrain();
  return entered;
}

void Committer::Leave() {
  admission_.Leave();
  WakeDrain();
}

void Committer::WakeDrain() {
  if (!is_draining_.load()) return;
  const storage::MutexLock lock(&drain_mutex_);
  drained_.SignalAll();
}

void Committer::Drain() {
  is_draining_.store(true);
  admission_.Close();
  while (true) {
    AdvanceDetached(newest_detached());
    const storage::MutexLock lock(&drain_mutex_);
    // Who detaches, or leaves, signals after it: neither is missed.
    while (admission_.in_flight() > 0 && unattended_.load() == 0) drained_.Wait(&drain_mutex_);
    if (admission_.in_flight() == 0) return;
  }
}

absl::Status Committer::CheckAndReserve(PendingCommit* commit) {
  const wal::Lsn oldest = registry_->OldestReader();
  std::string encoded_drops;
  FailedCheck failed;
  {
    const PartitionLocks locks(commit->parts);
    const storage::CriticalSection section;
    failed = CheckParts(*commit);
    commit->is_look_stale = failed.part == nullptr && IsLookStale(*commit);
    if (failed.part == nullptr && !commit->is_look_stale) {
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
  if (commit->is_look_stale) return absl::AbortedError("objects were removed or used meanwhile");
  if (failed.part == nullptr) return absl::OkStatus();
  conflicts_.fetch_add(1, std::memory_order_relaxed);
  if (failed.result.verdict == locks::Verdict::kConflict) {
    commit->lost_on = failed.part->footprint.locks()[failed.result.lock_index].key;
  }
  return locks::ToStatus(failed.result, failed.part->footprint);
}

CommitResult Committer::Commit(std::unique_ptr<PendingCommit>* owned) {
  PendingCommit* const commit = owned->get();
  REPOTXN_DCHECK(std::is_sorted(
      commit->parts.begin(), commit->parts.end(),
      [](const auto& a, const auto& b) { return a.partition->id < b.partition->id; }));
  CommitResult result;
  result.transaction_id = commit->id;
  commit->is_look_stale = false;
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
  if (!result.status.ok()) {
    Leave();
    return result;
  }
  if (!commit->dropped.empty()) DropPackedRefs(commit->dropped, &commit->effects);
  if (REPOTXN_PLANT("txn.publish_before_durable")) publisher_->OnDurable(commit->ticket.lsn());
  if (REPOTXN_PLANT("txn.apply_before_durable") && commit->effects.has_directory_work()) {
    IgnoreBecause(directory_work_(*commit), "planted: it is done again below");
  }
  const auto appended = queue_->AwaitDurable(&commit->ticket, commit->limit, &result.status);
  if (!appended) {
    result.outcome = CommitOutcome::kUnknown;
    Detach(std::move(*owned));
    return result;
  }
  if (*appended == wal::AppendOutcome::kCommitted) {
    DoDirectoryWork(commit);
    // Before the wait: it may be for one of them.
    AdvanceDetached(wal::Lsn::Zero());
    result = AwaitPublished(commit);
  } else {
    result = NotDurable(*commit, *appended, std::move(result.status));
  }
  Leave();
  AdvanceDetached(wal::Lsn::Zero());
  return result;
}

void Committer::DoDirectoryWork(PendingCommit* commit) {
  if (commit->effects.has_directory_work()) {
    // I2: the entry is durable.
    if (absl::Status work = directory_work_(*commit); !work.ok()) {
      storage::LogError(absl::StrCat("directory work of a committed entry failed: ", work.message()));
      Poison(absl::UnavailableError("directory work of a committed entry failed"));
    }
  }
  if (!commit->is_ready.load(std::memory_order_relaxed)) publisher_->MarkReady(commit);
}

CommitResult Committer::NotDurable(const PendingCommit& commit, wal::AppendOutcome appended, absl::Status why) {
  publisher_->NoteLogFailed();
  CommitResult result;
  result.transaction_id = commit.id;
  result.outcome = appended == wal::AppendOutcome::kUnknown ? CommitOutcome::kUnknown
                                                            : CommitOutcome::kNotCommitted;
  result.status = std::move(why);
  return result;
}

CommitResult Committer::AwaitPublished(PendingCommit* commit) {
  CommitResult result;
  result.transaction_id = commit->id;
  if (!publisher_->AwaitPublished(commit)) {
    result.outcome = CommitOutcome::kUnknown;
    result.status = absl::UnavailableError("entry is durable and could not be made visible");
    return result;
  }
  result.outcome = CommitOutcome::kCommitted;
  result.lsn = commit->ticket.lsn();
  commits_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

void Committer::Detach(std::unique_ptr<PendingCommit> commit) {
  REPOTXN_PROBE("txn.detached_commit");
  {
    const storage::MutexLock lock(&detached_mutex_);
    const auto place = std::find_if(detached_.begin(), detached_.end(), [&](const auto& other) {
      return other->ticket.lsn() > commit->ticket.lsn();
    });
    detached_.insert(place, std::move(commit));
    detached_count_.fetch_add(1);
    unattended_.fetch_add(1);
  }
  // It may have become durable since, and those who looked before it stood here are gone.
  AdvanceDetached(wal::Lsn::Zero());
  WakeDrain();
}

// The first detached commit, in the order of LSNs, with which something can be done now.
PendingCommit* Committer::TakeDetached(wal::Lsn wait_for) {
  const storage::MutexLock lock(&detached_mutex_);
  for (const auto& commit : detached_) {
    if (commit->is_being_advanced) continue;
    const bool can_go_on = commit->ticket.lsn() <= wait_for || (commit->is_durable ? publisher_->IsDecided(*commit)
                                                           : queue_->IsDecided(commit->ticket));
    if (!can_go_on) continue;
    commit->is_being_advanced = true;
    unattended_.fetch_sub(1);
    return commit.get();
  }
  return nullptr;
}

wal::Lsn Committer::newest_detached() const {
  const storage::MutexLock lock(&detached_mutex_);
  return detached_.empty() ? wal::Lsn::Zero() : detached_.back()->ticket.lsn();
}

void Committer::PutBackDetached(PendingCommit* commit, bool is_durable) {
  const storage::MutexLock lock(&detached_mutex_);
  commit->is_durable = is_durable;
  commit->is_being_advanced = false;
  unattended_.fetch_add(1);
}

void Committer::AdvanceDetached(wal::Lsn wait_for, const storage::WaitLimit& limit) {
  if (detached_count_.load() == 0) return;
  while (PendingCommit* const commit = TakeDetached(wait_for)) {
    if (commit->is_durable) {
      Settle(commit, AwaitPublished(commit));
      continue;
    }
    absl::Status why;
    const auto appended = queue_->AwaitDurable(&commit->ticket, limit, &why);
    if (!appended) {
      PutBackDetached(commit, /*is_durable=*/false);
      // Who closes the store may have found it attended.
      WakeDrain();
      return;
    }
    if (*appended != wal::AppendOutcome::kCommitted) {
      Settle(commit, NotDurable(*commit, *appended, std::move(why)));
      continue;
    }
    DoDirectoryWork(commit);
    PutBackDetached(commit, /*is_durable=*/true);
  }
}

void Committer::Settle(PendingCommit* commit, const CommitResult& result) {
  if (commit->settle) commit->settle(result);
  std::unique_ptr<PendingCommit> done;  // destroyed outside the mutex
  {
    const storage::MutexLock lock(&detached_mutex_);
    const auto it = std::find_if(detached_.begin(), detached_.end(),
                                 [&](const auto& other) { return other.get() == commit; });
    done = std::move(*it);
    detached_.erase(it);
    detached_count_.fetch_sub(1);
  }
  Leave();
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
