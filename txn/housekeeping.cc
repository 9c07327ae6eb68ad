// Work on repositories that is worth a thread of its own, because Git children do it: merging packs.
//
// Each task is a transaction like any other, so it never holds a push back. One that lost against another, or failed, is
// tried again when the next pack comes.
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {

void StoreCore::WakeHousekeeping() {
  const storage::MutexLock lock(&housekeeping_mutex_);
  housekeeping_is_wanted_ = true;
  housekeeping_wake_.Signal();
}

void StoreCore::HousekeepingLoop() {
  while (true) {
    {
      const storage::MutexLock lock(&housekeeping_mutex_);
      while (!stop_housekeeping_ && !housekeeping_is_wanted_) housekeeping_wake_.Wait(&housekeeping_mutex_);
      housekeeping_is_wanted_ = false;
      if (stop_housekeeping_) return;
    }
    if (absl::Status status = RunHousekeeping(); !status.ok()) {
      storage::LogWarning(absl::StrCat("housekeeping failed: ", status.message()));
    }
  }
}

bool StoreCore::NeedsPackMerge(const RepositoryState& repository) const {
  return options_.packs_added_max > 0 && repository.packs_added() >= options_.packs_added_max;
}

absl::Status StoreCore::RunHousekeeping() {
  absl::Status first_failure;
  for (const std::shared_ptr<RepositoryState>& repository : repositories_->All()) {
    if (is_closed_.load()) return absl::OkStatus();
    if (!NeedsPackMerge(*repository)) continue;
    first_failure.Update(MergePacksOf(repository.get()));
  }
  return first_failure;
}

absl::Status StoreCore::MergePacksOf(RepositoryState* repository) {
  // Before the look: what is added from here on counts for the next merge.
  repository->NotePacksMerged();
  pack_pressure_.NoteMerge();
  const auto note = absl::MakeCleanup([this] { pack_pressure_.NoteMerge(); });
  bool is_merged = false, has_loose = false;
  const CommitResult result = Run({}, [&](Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const PackMerge merge, transaction.MergePacks(repository->id(), {}));
    is_merged = merge.packs_merged > 0;
    has_loose = merge.loose_objects > 0;
    return absl::OkStatus();
  });
  if (!result.committed()) return absl::IsNotFound(result.status) ? absl::OkStatus() : result.status;
  if (is_merged) pack_merges_.fetch_add(1, std::memory_order_relaxed);
  if (has_loose) return DropPackedLooseObjects(*repository);
  return absl::OkStatus();
}

}  // namespace repotxn::txn
