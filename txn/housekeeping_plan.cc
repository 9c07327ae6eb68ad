#include "txn/housekeeping_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace repotxn::txn {
namespace {

std::string PackRefsReason(const RepositorySizes& sizes, const HousekeepingRules& rules) {
  if (sizes.loose_refs <= rules.loose_refs_max) return "";
  return absl::StrCat(sizes.loose_refs, " loose refs");
}

std::string MergePacksReason(const RepositorySizes& sizes, const HousekeepingRules& rules) {
  if (sizes.loose_objects > 0) return absl::StrCat(sizes.loose_objects, " loose objects");
  if (rules.packs_added_max <= 0) return "";
  if (sizes.packs_added >= rules.packs_added_max) {
    return absl::StrCat(sizes.packs_added, " packs since the last merge");
  }
  // Those that were there when the store was opened are counted nowhere else.
  if (sizes.packs >= 2 * rules.packs_added_max) return absl::StrCat(sizes.packs, " packs");
  return "";
}

std::string RepackReason(const RepositorySizes& sizes, const HousekeepingRules& rules, absl::Time now) {
  if (sizes.packs == 0) return "";
  // No pack is older than the last repack, which wrote them all anew.
  const absl::Time last = std::max(sizes.repacked_at, sizes.oldest_pack);
  if (now - last < rules.repack_interval) return "";
  // Nothing is ever removed from a shallow repository.
  if (!sizes.is_shallow && sizes.oldest_cruft < now - rules.unreachable_grace) {
    return "unreachable objects are older than the grace";
  }
  if (sizes.packs - sizes.cruft_packs > 1) {
    return absl::StrCat(sizes.packs - sizes.cruft_packs, " packs, none of them new");
  }
  return sizes.refs_changed_since_repack ? "refs changed since the last repack" : "";
}

std::string IndexesReason(const RepositorySizes& sizes, const HousekeepingRules& rules, absl::Time now) {
  if (sizes.packs == 0) return "";
  if (sizes.packs_rewritten_since_indexes) return "packs were rewritten";
  if (sizes.packs_since_indexes == 0) return "";
  const bool are_many = rules.packs_added_max > 0 && sizes.packs_since_indexes >= rules.packs_added_max;
  const bool are_old = now - std::max(sizes.indexed_at, sizes.oldest_unindexed_pack) >= rules.indexes_interval;
  return are_many || are_old ? absl::StrCat(sizes.packs_since_indexes, " packs younger than the indexes") : "";
}

}  // namespace

absl::string_view HousekeepingTaskName(HousekeepingTask task) {
  switch (task) {
    case HousekeepingTask::kPackRefs: return "pack-refs";
    case HousekeepingTask::kMergePacks: return "merge-packs";
    case HousekeepingTask::kRepack: return "repack";
    case HousekeepingTask::kIndexes: return "indexes";
  }
  return "task";
}

absl::StatusOr<HousekeepingTask> ParseHousekeepingTask(absl::string_view name) {
  for (const HousekeepingTask task : kAllHousekeeping) {
    if (HousekeepingTaskName(task) == name) return task;
  }
  return absl::InvalidArgumentError("a task is pack-refs, merge-packs, repack or indexes");
}

std::vector<TaskNeed> WhatIsNeeded(const RepositorySizes& sizes, const HousekeepingRules& rules, absl::Time now) {
  const std::string reasons[kHousekeepingTasks] = {PackRefsReason(sizes, rules), MergePacksReason(sizes, rules),
                                                   RepackReason(sizes, rules, now), IndexesReason(sizes, rules, now)};
  std::vector<TaskNeed> needs;
  for (size_t i = 0; i < kHousekeepingTasks; ++i) {
    if (!reasons[i].empty()) needs.push_back({kAllHousekeeping[i], reasons[i]});
  }
  return needs;
}

}  // namespace repotxn::txn
