// What housekeeping did and has still to do, as callers of Store are told.
//
// Values. Thread-compatible.
#ifndef REPOTXN_TXN_HOUSEKEEPING_STATUS_H_
#define REPOTXN_TXN_HOUSEKEEPING_STATUS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/wait_limit.h"
#include "txn/housekeeping_plan.h"
#include "txn/transaction.h"

namespace repotxn::txn {

// How a task ended. One that something kept from its work (a `.keep`, loose objects, another transaction each time, the same
// task under way, a version that cannot do it) is no success, whatever it did: it stays needed, with its age.
enum class TaskOutcome : uint8_t { kDone, kNothingToDo, kStoodInTheWay, kFailed };
inline constexpr size_t kTaskOutcomes = 4;
// "done", "nothing to do", "stood in the way", "failed".
absl::string_view TaskOutcomeName(TaskOutcome outcome);

struct TaskResult {
  HousekeepingTask task = HousekeepingTask::kPackRefs;
  absl::Status status;    // of the task
  bool did_work = false;  // something was committed
  absl::Time started_at = absl::InfinitePast();
  absl::Duration duration;
  // What it did; that of its task alone.
  int64_t refs_packed = 0;
  PackMerge merge;
  Repack repack;
  DerivedIndexes indexes;

  TaskOutcome outcome() const;
  bool is_success() const { return status.ok(); }
};

struct HousekeepingRun {
  // What is done, in the order of the tasks; empty: what is needed.
  std::vector<HousekeepingTask> tasks;
  // Every task, needed or not, and wholly: all refs are packed, all packs are merged. `tasks` is empty then.
  bool all = false;
  // Age from which unreachable objects are removed by a repack; zero: all of them. Without: StoreOptions::unreachable_grace.
  std::optional<absl::Duration> grace = {};
  // As in BeginOptions.
  absl::Time deadline = absl::InfiniteFuture();
  storage::CancellationToken cancellation{};
};

struct HousekeepingPlan {
  RepositorySizes sizes;
  std::vector<TaskNeed> needs;
};

struct TaskStatus {
  // Empty: not needed, as far as anybody has looked. Else since when, through all tries without success: its age.
  std::string reason;
  absl::Time needed_since = absl::InfiniteFuture();
  bool is_running = false;
  std::optional<TaskResult> last;

  bool is_needed() const { return needed_since != absl::InfiniteFuture(); }
};

// Since the store was opened.
struct RepositoryHousekeeping {
  RepositoryId id;
  std::string path;
  std::array<TaskStatus, kHousekeepingTasks> tasks;  // by HousekeepingTask
};

struct HousekeepingOverview {
  bool is_paused = false;
  // Those that need something, where something runs, or where the last result of a task is no success; by path.
  std::vector<RepositoryHousekeeping> repositories;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_HOUSEKEEPING_STATUS_H_
