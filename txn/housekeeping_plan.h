// Decides from counts and sizes which housekeeping a repository needs. Pure.
//
// A task is needed
//   pack-refs    more loose refs than loose_refs_max.
//   merge-packs  packs_added_max packs came since the last merge, there are twice as many in all, or loose objects are there.
//   repack       something was pushed since the last one, and that is repack_interval ago; or a cruft pack holds objects
//                older than the grace, and the last one is repack_interval ago. Never for loose objects alone.
//   indexes      packs were rewritten by a merge or a repack; packs_added_max packs are younger than the indexes, or one has
//                been for indexes_interval.
//
// Thread-compatible.
#ifndef REPOTXN_TXN_HOUSEKEEPING_PLAN_H_
#define REPOTXN_TXN_HOUSEKEEPING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace repotxn::txn {

// In the order in which they are done.
enum class HousekeepingTask : uint8_t { kPackRefs, kMergePacks, kRepack, kIndexes };
inline constexpr size_t kHousekeepingTasks = 4;
inline constexpr HousekeepingTask kAllHousekeeping[kHousekeepingTasks] = {
    HousekeepingTask::kPackRefs, HousekeepingTask::kMergePacks, HousekeepingTask::kRepack, HousekeepingTask::kIndexes};

// "pack-refs", "merge-packs", "repack", "indexes".
absl::string_view HousekeepingTaskName(HousekeepingTask task);
// kInvalidArgument: there is none of this name.
absl::StatusOr<HousekeepingTask> ParseHousekeepingTask(absl::string_view name);

// What a repository has. Times are those of the wall clock; a time that is not known is the infinite one at which it asks
// for nothing.
struct RepositorySizes {
  int64_t loose_refs = 0;
  int64_t loose_objects = 0;
  int64_t packs = 0;  // that answer, cruft packs included
  int64_t pack_bytes = 0;
  int64_t packs_added = 0;  // since the last merge or the opening of the store
  int64_t cruft_packs = 0;
  absl::Time oldest_cruft = absl::InfiniteFuture();  // object in them
  absl::Time oldest_pack = absl::InfiniteFuture();   // file
  int64_t condemned_packs = 0;                       // removed, and kept on disk for older readers
  int64_t condemned_bytes = 0;
  int64_t keep_files = 0;
  int64_t borrows = 0;  // repositories that it borrows from directly
  bool is_shallow = false;
  // Since the store was opened.
  absl::Time repacked_at = absl::InfinitePast();
  bool refs_changed_since_repack = false;
  bool packs_rewritten_since_indexes = false;
  // When the indexes were written, and what is younger: how many packs, and the oldest of them.
  absl::Time indexed_at = absl::InfinitePast();
  int64_t packs_since_indexes = 0;
  absl::Time oldest_unindexed_pack = absl::InfiniteFuture();
};

// Bounds; StoreOptions says what they mean.
struct HousekeepingRules {
  int64_t loose_refs_max = 16;
  int64_t packs_added_max = 16;  // 0: packs are not merged for their number
  absl::Duration unreachable_grace = absl::Hours(14 * 24);
  absl::Duration repack_interval = absl::Hours(24);
  absl::Duration indexes_interval = absl::Hours(24);
};

struct TaskNeed {
  HousekeepingTask task = HousekeepingTask::kPackRefs;
  std::string reason;  // for people

  friend bool operator==(const TaskNeed&, const TaskNeed&) = default;
};

// In the order of the tasks, each at most once.
std::vector<TaskNeed> WhatIsNeeded(const RepositorySizes& sizes, const HousekeepingRules& rules, absl::Time now);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_HOUSEKEEPING_PLAN_H_
