// Who keeps too much, or lies idle too long, is ended: bounds on what open transactions hold in memory [hard case B9].
//
// A transaction pins what its snapshot may still ask for: versions that are on disk already, and the conflict history.
// Refusing everybody's commits because somebody forgot a transaction would be the wrong one to refuse. So the oldest
// goes: with "too old" and the oldest LSN that can be checked, which its owner gets from its next call.
#include <algorithm>

#include "locks/footprint.h"
#include "locks/verdict.h"
#include "storage/log.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

absl::Status TooOld(wal::Lsn snapshot, wal::Lsn oldest_known) {
  locks::CheckResult result;
  result.verdict = locks::Verdict::kTooOld;
  result.rule = locks::ConflictRule::kTooOld;
  result.snapshot_lsn = snapshot;
  result.conflicting_lsn = oldest_known;
  return locks::ToStatus(result, locks::Footprint());
}

}  // namespace

void StoreCore::GiveUp(const std::vector<SnapshotRegistry::Ended>& ended) {
  // The attempts of Run share one id, which lives on: Run plays the body again.
  for (const SnapshotRegistry::Ended& transaction : ended) {
    if (!transaction.is_attempt) live_.GiveUp(transaction.id);
  }
}

void StoreCore::EndIdleTransactions() {
  if (options_.idle_lease == absl::InfiniteDuration()) return;
  const auto ended = registry_->EndIdle(environment_.clock->Monotonic() - options_.idle_lease,
                                        absl::AbortedError("transaction was idle longer than its lease"));
  if (ended.empty()) return;
  GiveUp(ended);
  ended_idle_.fetch_add(static_cast<int64_t>(ended.size()), std::memory_order_relaxed);
  storage::LogWarning("transactions were ended: idle longer than their lease");
}

void StoreCore::TrimToOldestReader() {
  const wal::Lsn oldest = registry_->OldestReader();
  history_bytes_.store(partitions_->Evict(oldest, options_.history_bytes_max), std::memory_order_relaxed);
  rows_->Trim(oldest);
  int64_t bytes = rows_->bytes();
  for (const auto& repository : repositories_->All()) {
    repository->Trim(oldest);
    bytes += repository->overlay_bytes();
    // What one that is set aside owes may stay for long, and grows no more: it must not hold the others back.
    if (!repository->fault().ok()) bytes -= repository->dirty_bytes();
  }
  overlay_bytes_.store(bytes, std::memory_order_relaxed);
  SlowAdmission(bytes);
}

void StoreCore::SlowAdmission(int64_t overlay_bytes) {
  // From all to one at a time between the two bounds: the smaller the groups, the slower the log fills.
  const int64_t high = options_.overlay_bytes_high, max = options_.overlay_bytes_max;
  double share = 1;
  if (overlay_bytes >= max) {
    share = 0;
  } else if (overlay_bytes > high) {
    share = static_cast<double>(max - overlay_bytes) / static_cast<double>(max - high);
  }
  committer_->admission()->SetRoom(static_cast<int>(share * options_.commits_in_flight_max));
}

bool StoreCore::SnapshotsKeepTooMuch() const {
  if (history_bytes_.load(std::memory_order_relaxed) > options_.history_bytes_max) return true;
  const int64_t versions_max = std::min(options_.old_versions_bytes_max, options_.overlay_bytes_max);
  if (OverlayBytes() <= versions_max) return false;
  // What is not on disk yet is kept whoever reads, and is not held against anybody.
  int64_t old_versions = rows_->bytes() - rows_->dirty_bytes();
  for (const auto& repository : repositories_->All()) {
    old_versions += repository->overlay_bytes() - repository->dirty_bytes();
  }
  return old_versions > versions_max;
}

void StoreCore::EndOldestTransactionsBeyondBounds() {
  while (SnapshotsKeepTooMuch()) {
    const wal::Lsn newest = publisher_->committed_lsn();
    const auto ended = registry_->EndOldest([&](wal::Lsn snapshot) { return TooOld(snapshot, newest); });
    // Nobody to end, or a call is under way in each of them: those end with it, and the next round trims.
    if (ended.empty()) return;
    GiveUp(ended);
    ended_too_old_.fetch_add(static_cast<int64_t>(ended.size()), std::memory_order_relaxed);
    storage::LogWarning("transactions were ended: what their snapshots keep is beyond the bound");
    TrimToOldestReader();
  }
}

}  // namespace repotxn::txn
