// Housekeeping: what a repository needs, doing it now, how it went; pausing the background.
#include <utility>
#include <vector>

#include "admin/error_json.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

using txn::HousekeepingTask;
using txn::TaskOutcome;

constexpr int kListedAtOnce = 1000;

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }
std::string TimeText(absl::Time time) { return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()); }

// What the task itself counts.
void AddCounts(const txn::TaskResult& result, Json& item) {
  switch (result.task) {
    case HousekeepingTask::kPackRefs: item["refs_packed"] = result.refs_packed; break;
    case HousekeepingTask::kMergePacks:
      item["packs_before"] = result.merge.packs_before;
      item["packs_merged"] = result.merge.packs_merged;
      item["loose_objects"] = result.merge.loose_objects;
      item["objects"] = result.merge.objects;
      break;
    case HousekeepingTask::kRepack:
      item["packs_before"] = result.repack.packs_before;
      item["packs_after"] = result.repack.packs_after;
      item["reachable"] = result.repack.reachable;
      item["cruft"] = result.repack.cruft;
      item["borrowed"] = result.repack.borrowed;
      item["removed"] = result.repack.removed;
      break;
    case HousekeepingTask::kIndexes:
      item["commit_graph"] = result.indexes.has_commit_graph;
      item["multi_pack_index"] = result.indexes.has_multi_pack_index;
      item["bitmap"] = result.indexes.has_bitmap;
      break;
  }
}

void AddResult(const txn::TaskResult& result, Json& item) {
  item["outcome"] = Text(txn::TaskOutcomeName(result.outcome()));
  item["started_at"] = TimeText(result.started_at);
  item["seconds"] = absl::ToDoubleSeconds(result.duration);
  if (result.is_success()) {
    AddCounts(result, item);
  } else {
    item["error"] = ErrorToJson(result.status);
    // A column for people.
    item["message"] = item["error"]["message"];
  }
}

Json TasksToJson(const txn::RepositoryHousekeeping& repository, absl::Time now) {
  Json tasks = Json::array();
  for (const HousekeepingTask task : txn::kAllHousekeeping) {
    const txn::TaskStatus& status = repository.tasks[static_cast<size_t>(task)];
    Json item;
    item["task"] = Text(txn::HousekeepingTaskName(task));
    item["running"] = status.is_running;
    item["needed"] = status.is_needed();
    if (status.is_needed()) {
      item["reason"] = status.reason;
      item["needed_since"] = TimeText(status.needed_since);
      item["age_seconds"] = absl::ToInt64Seconds(now - status.needed_since);
    }
    if (status.last) AddResult(*status.last, item);
    tasks.push_back(std::move(item));
  }
  return tasks;
}

Json SizesToJson(const txn::RepositorySizes& sizes) {
  return Json{{"loose_refs", sizes.loose_refs},
              {"loose_objects", sizes.loose_objects},
              {"packs", sizes.packs},
              {"pack_bytes", sizes.pack_bytes},
              {"packs_added", sizes.packs_added},
              {"cruft_packs", sizes.cruft_packs},
              {"condemned_packs", sizes.condemned_packs},
              {"condemned_bytes", sizes.condemned_bytes},
              {"keep_files", sizes.keep_files},
              {"borrows", sizes.borrows},
              {"packs_since_indexes", sizes.packs_since_indexes}};
}

absl::StatusOr<txn::HousekeepingRun> ReadRun(JsonFields& fields, const Call& call) {
  txn::HousekeepingRun run;
  run.deadline = call.deadline;
  REPOTXN_ASSIGN_OR_RETURN(const auto names, fields.OptionalStrings("tasks"));
  if (names && names->empty()) return FieldError("a list of tasks is empty", "tasks");
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    REPOTXN_ASSIGN_OR_RETURN(const HousekeepingTask task, txn::ParseHousekeepingTask(name));
    run.tasks.push_back(task);
  }
  REPOTXN_ASSIGN_OR_RETURN(run.all, fields.BoolOr("all", false));
  if (run.all && names) return FieldError("all tasks, and some by name", "tasks");
  REPOTXN_ASSIGN_OR_RETURN(const auto grace, fields.OptionalInteger("grace_seconds"));
  if (grace && *grace < 0) return FieldError("a grace below zero", "grace_seconds");
  if (grace) run.grace = absl::Seconds(*grace);
  return run;
}

// Appends the results to `tasks`, each with `path` when it is not empty; the first that is no success becomes the reply's own
// error, and one that failed wins over one that something stood in the way of.
void AddResults(const std::vector<txn::TaskResult>& results, const std::string& path, Json& tasks, Reply& reply) {
  for (const txn::TaskResult& result : results) {
    Json item;
    if (!path.empty()) item["path"] = path;
    item["task"] = Text(txn::HousekeepingTaskName(result.task));
    AddResult(result, item);
    tasks.push_back(std::move(item));
    if (result.is_success()) continue;
    const bool is_failure = result.outcome() == TaskOutcome::kFailed;
    const bool is_first = !reply.body.contains("error");
    if (!is_first && !(is_failure && reply.status == 409)) continue;
    const int status = HttpStatusOf(result.status);
    // Whatever stood in the way is of the state, and the call is to be repeated when that has changed.
    reply.status = is_failure && status != 409 ? status : 409;
    reply.body["error"] = ErrorToJson(result.status);
  }
}

// Calls `visit` with each repository of the store.
absl::Status ForEachRepository(txn::Store& store,
                               absl::FunctionRef<absl::Status(const txn::RepositoryPath& path)> visit) {
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const auto rows, store.ListRepositories("", after, kListedAtOnce));
    for (const txn::RepositoryInfo& row : rows) {
      REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, txn::RepositoryPath::Parse(row.path));
      const absl::Status status = visit(path);
      if (!absl::IsNotFound(status)) REPOTXN_RETURN_IF_ERROR(status);  // deleted meanwhile
    }
    if (rows.size() < static_cast<size_t>(kListedAtOnce)) return absl::OkStatus();
    after = rows.back().path;
  }
}

}  // namespace

absl::StatusOr<Reply> ShowHousekeeping(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, txn::RepositoryPath::Parse(matched.owner));
  REPOTXN_ASSIGN_OR_RETURN(const txn::HousekeepingPlan plan, matched.store.PlanHousekeeping(path));
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryHousekeeping status, matched.store.HousekeepingStatus(path));
  Reply reply;
  reply.body["path"] = path.text();
  reply.body["plan"] = Json::array();
  for (const txn::TaskNeed& need : plan.needs) {
    reply.body["plan"].push_back({{"task", Text(txn::HousekeepingTaskName(need.task))}, {"reason", need.reason}});
  }
  reply.body["sizes"] = SizesToJson(plan.sizes);
  reply.body["status"] = {{"paused", matched.store.HousekeepingStatus().is_paused},
                          {"tasks", TasksToJson(status, absl::Now())}};
  return reply;
}

absl::StatusOr<Reply> RunHousekeeping(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, txn::RepositoryPath::Parse(matched.owner));
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const txn::HousekeepingRun run, ReadRun(fields, matched.call));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const auto results, matched.store.RunHousekeeping(path, run));
  Reply reply;
  reply.body["path"] = path.text();
  Json tasks = Json::array();
  AddResults(results, "", tasks, reply);
  reply.body["tasks"] = std::move(tasks);
  return reply;
}

absl::StatusOr<Reply> ShowAllHousekeeping(const Matched& matched) {
  const std::string look = QueryOr(matched.call, "look", "false");
  if (look != "true" && look != "false") return FieldError("a parameter is neither true nor false", "look");
  if (look == "true") {
    REPOTXN_RETURN_IF_ERROR(ForEachRepository(matched.store, [&](const txn::RepositoryPath& path) {
      return matched.store.PlanHousekeeping(path).status();
    }));
  }
  const txn::HousekeepingOverview overview = matched.store.HousekeepingStatus();
  const absl::Time now = absl::Now();
  Reply reply;
  reply.body["paused"] = overview.is_paused;
  reply.body["tasks"] = Json::array();
  for (const txn::RepositoryHousekeeping& repository : overview.repositories) {
    for (const Json& task : TasksToJson(repository, now)) {
      const bool is_quiet = !task["needed"] && !task["running"] && !task.contains("error");
      if (is_quiet) continue;
      Json item = {{"path", repository.path}};
      item.update(task);
      reply.body["tasks"].push_back(std::move(item));
    }
  }
  return reply;
}

absl::StatusOr<Reply> ControlHousekeeping(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const bool runs, fields.BoolOr("run", false));
  Reply reply;
  if (!runs) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_paused, fields.Bool("paused"));
    REPOTXN_RETURN_IF_ERROR(fields.Finish());
    matched.store.PauseHousekeeping(is_paused);
    reply.body["paused"] = is_paused;
    return reply;
  }
  REPOTXN_ASSIGN_OR_RETURN(const txn::HousekeepingRun run, ReadRun(fields, matched.call));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  Json tasks = Json::array();
  REPOTXN_RETURN_IF_ERROR(ForEachRepository(matched.store, [&](const txn::RepositoryPath& path) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const auto results, matched.store.RunHousekeeping(path, run));
    AddResults(results, path.text(), tasks, reply);
    return absl::OkStatus();
  }));
  reply.body["tasks"] = std::move(tasks);
  return reply;
}

}  // namespace repotxn::admin
