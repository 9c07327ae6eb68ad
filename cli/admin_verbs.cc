#include "cli/admin_verbs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/object_id.h"
#include "storage/status_macros.h"
#include "txn/housekeeping_plan.h"
#include "txn/repository_path.h"

namespace repotxn::cli {
namespace {

using admin::Call;
using admin::Json;
using Arguments = AdminArguments;
using CallOr = absl::StatusOr<Call>;

constexpr int64_t kGraceDaysMax = 36'500;

std::string Body(const Json& json) { return admin::JsonText(json); }

// Bytes as a field of a body: what is not UTF-8 travels as hex.
Json BytesField(const std::string& name, const std::string& bytes) {
  Json field;
  admin::SetBytes(field, name, bytes);
  if (field.contains(name + "_hex")) field.erase(name);
  return field;
}

// Copies options that were given into the query.
void Query(const Arguments& arguments, const std::vector<std::string>& names, Call& call) {
  for (const std::string& name : names) {
    const auto found = arguments.options.find(name);
    if (found != arguments.options.end()) call.query[name] = found->second;
  }
}

Call Of(const std::string& method, const std::string& path, const Arguments& arguments) {
  Call call;
  call.method = method;
  call.path = path;
  call.request_id = arguments.Option("request-id");
  return call;
}

std::string Repository(const Arguments& arguments, absl::string_view part = "") {
  return absl::StrCat("repositories/", arguments.Operand(0), part.empty() ? "" : "/-/", part);
}

CallOr RepoCreate(const Arguments& a) {
  Call call = Of("POST", "repositories", a);
  Json body = {{"path", a.Operand(0)}};
  if (a.options.count("object-format") > 0) body["format"] = a.Option("object-format");
  if (a.options.count("head") > 0) body["head"] = a.Option("head");
  call.body = Body(body);
  return call;
}
CallOr RepoList(const Arguments& a) {
  Call call = Of("GET", "repositories", a);
  Query(a, {"prefix", "after", "limit"}, call);
  return call;
}
CallOr RepoShow(const Arguments& a) { return Of("GET", Repository(a), a); }
CallOr RepoDelete(const Arguments& a) { return Of("DELETE", Repository(a), a); }
CallOr RepoUndelete(const Arguments& a) {
  Call call = Of("POST", "undelete", a);
  call.body = Body({{"id", a.Operand(0)}, {"path", a.Operand(1)}});
  return call;
}
CallOr RepoMove(const Arguments& a) {
  Call call = Of("POST", Repository(a, "move"), a);
  call.body = Body({{"to", a.Operand(1)}});
  return call;
}
CallOr RepoFork(const Arguments& a) {
  Call call = Of("POST", Repository(a, "fork"), a);
  call.body = Body({{"path", a.Operand(1)}});
  return call;
}
CallOr RepoPool(const Arguments& a) {
  Call call = Of("POST", Repository(a, "pool"), a);
  call.body = Body({{"path", a.Operand(1)}});
  return call;
}
CallOr RepoLink(const Arguments& a) {
  Call call = Of("POST", Repository(a, "alternates"), a);
  call.body = Body({{"pool", a.Operand(1)}});
  return call;
}
CallOr RepoUnlink(const Arguments& a) {
  Call call = Of("DELETE", Repository(a, "alternates"), a);
  call.query["pool"] = a.Operand(1);
  return call;
}

// Address of a ref of a repository.
CallOr RefCall(const std::string& method, const Arguments& a) {
  if (!absl::StartsWith(a.Operand(1), "refs/")) {
    return absl::InvalidArgumentError("a ref has a full name, such as refs/heads/main");
  }
  return Of(method, Repository(a, a.Operand(1)), a);
}
// "value" and, from --old, "expected".
std::string ValueBody(const std::string& value, const Arguments& a) {
  Json body = {{"value", value}};
  if (a.options.count("old") > 0) body["expected"] = a.Option("old");
  return Body(body);
}
CallOr RefsList(const Arguments& a) {
  Call call = Of("GET", Repository(a, "refs"), a);
  Query(a, {"prefix", "after", "limit"}, call);
  return call;
}
CallOr RefsGet(const Arguments& a) { return RefCall("GET", a); }
CallOr RefsSet(const Arguments& a) {
  REPOTXN_ASSIGN_OR_RETURN(Call call, RefCall("PUT", a));
  call.body = ValueBody(a.Operand(2), a);
  return call;
}
CallOr RefsDelete(const Arguments& a) {
  REPOTXN_ASSIGN_OR_RETURN(Call call, RefCall("DELETE", a));
  if (a.options.count("old") > 0) call.query["expected"] = a.Option("old");
  return call;
}
CallOr HeadGet(const Arguments& a) { return Of("GET", Repository(a, "head"), a); }
CallOr HeadSet(const Arguments& a) {
  Call call = Of("PUT", Repository(a, "head"), a);
  const std::string& value = a.operands[1];
  call.body = ValueBody(absl::StartsWith(value, "refs/") ? "ref: " + value : value, a);
  return call;
}

// Address of a file of a repository.
Call FileCall(const std::string& method, const Arguments& a) {
  return Of(method, Repository(a, absl::StrCat("files/", a.Operand(1))), a);
}
CallOr FileList(const Arguments& a) {
  Call call = Of("GET", Repository(a, "files"), a);
  if (a.operands.size() > 1) call.query["below"] = a.Operand(1);
  return call;
}
CallOr FileGet(const Arguments& a) { return FileCall("GET", a); }
CallOr FilePut(const Arguments& a) {
  if ((a.operands.size() > 2) == (a.options.count(std::string(kContentOf)) > 0)) {
    return absl::InvalidArgumentError("file put takes the content, or --content-of and the name of a file that has it");
  }
  Call call = FileCall("PUT", a);
  Json body = BytesField("content", a.Operand(2));
  if (a.options.count("mode") > 0) body["mode"] = a.Option("mode");
  call.body = Body(body);
  return call;
}
CallOr FileDelete(const Arguments& a) { return FileCall("DELETE", a); }

CallOr GroupList(const Arguments& a) {
  return Of("GET", a.operands.empty() ? "groups" : "groups/" + a.Operand(0), a);
}
CallOr GroupRemove(const Arguments& a) { return Of("DELETE", "groups/" + a.Operand(0), a); }

// Keys of the store, of --partition N, or of --repository PATH.
CallOr KeyCall(const std::string& method, const Arguments& a) {
  const bool of_partition = a.options.count("partition") > 0;
  const bool of_repository = a.options.count("repository") > 0;
  if (of_partition && of_repository) {
    return absl::InvalidArgumentError("--partition and --repository exclude one another");
  }
  std::string path = "keys";
  if (of_partition) path = absl::StrCat("partitions/", a.Option("partition"), "/-/keys");
  if (of_repository) path = absl::StrCat("repositories/", a.Option("repository"), "/-/keys");
  Call call = Of(method, path, a);
  if (!a.operands.empty()) call.query["key"] = a.Operand(0);
  return call;
}
CallOr KeyGet(const Arguments& a) { return KeyCall("GET", a); }
CallOr KeyPut(const Arguments& a) {
  REPOTXN_ASSIGN_OR_RETURN(Call call, KeyCall("PUT", a));
  call.body = Body(BytesField("value", a.Operand(1)));
  return call;
}
CallOr KeyDelete(const Arguments& a) { return KeyCall("DELETE", a); }
CallOr KeyList(const Arguments& a) {
  REPOTXN_ASSIGN_OR_RETURN(Call call, KeyCall("GET", a));
  Query(a, {"first", "end", "limit"}, call);
  return call;
}
CallOr OutcomeCall(const Arguments& a) {
  const bool by_request = a.options.count("request") > 0;
  if (by_request == !a.operands.empty()) {
    return absl::InvalidArgumentError("outcome takes a transaction id, or --request and --issued-at");
  }
  if (!by_request) return Of("GET", "transactions/" + a.Operand(0), a);
  Call call = Of("GET", "requests", a);
  call.query = {{"id", a.Option("request")}, {"issued_at", a.Option("issued-at")}};
  return call;
}

// "now", or a time such as 36h, 90m or 14d; in seconds.
absl::StatusOr<int64_t> ReadGrace(const std::string& text) {
  if (text == "now") return 0;
  absl::Duration grace;
  int64_t days = 0;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "d") && absl::SimpleAtoi(number, &days) && days >= 0 && days <= kGraceDaysMax) {
    return absl::ToInt64Seconds(absl::Hours(24) * days);
  }
  if (absl::ParseDuration(text, &grace) && grace >= absl::ZeroDuration() &&
      grace <= absl::Hours(24) * kGraceDaysMax) {
    return absl::ToInt64Seconds(grace);
  }
  return absl::InvalidArgumentError("--expire is now, or a time such as 14d, 36h or 90m");
}
// Housekeeping of one repository, or of all.
Call HousekeepingCall(const std::string& method, const Arguments& a) {
  return Of(method, a.operands.empty() ? "housekeeping" : Repository(a, "housekeeping"), a);
}
CallOr HousekeepingPlan(const Arguments& a) {
  Call call = HousekeepingCall("GET", a);
  if (a.operands.empty()) call.query["look"] = "true";
  return call;
}
CallOr HousekeepingStatus(const Arguments& a) { return HousekeepingCall("GET", a); }
CallOr HousekeepingRun(const Arguments& a) {
  Json body = Json::object();
  if (a.operands.empty()) body["run"] = true;
  if (a.options.count("all") > 0) body["all"] = true;
  if (a.options.count("task") > 0) {
    if (body.contains("all")) return absl::InvalidArgumentError("--all and --task exclude one another");
    const std::vector<std::string> tasks = absl::StrSplit(a.Option("task"), ',');
    for (const std::string& task : tasks) REPOTXN_RETURN_IF_ERROR(txn::ParseHousekeepingTask(task).status());
    body["tasks"] = tasks;
  }
  if (a.options.count("expire") > 0) {
    REPOTXN_ASSIGN_OR_RETURN(body["grace_seconds"], ReadGrace(a.Option("expire")));
  }
  Call call = HousekeepingCall("POST", a);
  call.body = Body(body);
  return call;
}
CallOr PauseCall(const Arguments& a, bool is_paused) {
  Call call = Of("POST", "housekeeping", a);
  call.body = Body({{"paused", is_paused}});
  return call;
}
CallOr HousekeepingPause(const Arguments& a) { return PauseCall(a, true); }
CallOr HousekeepingResume(const Arguments& a) { return PauseCall(a, false); }

bool IsPath(const std::string& operand) { return absl::EndsWith(operand, "PATH"); }

// A repository path as it stands in a URL.
absl::StatusOr<std::string> ReadPath(const std::string& text) {
  const auto path = txn::RepositoryPath::ParseUrl(text);
  if (path.ok()) return path->text();
  return absl::InvalidArgumentError(
      absl::StrCat("no repository path: ", text, ": ", path.status().message()));
}

absl::Status CheckOption(const std::string& name, std::string& value) {
  int number = 0;
  if (name == "object-format" && !ParseObjectFormat(value).ok()) {
    return absl::InvalidArgumentError("--object-format is sha1 or sha256");
  }
  if (name == "limit" && (!absl::SimpleAtoi(value, &number) || number < 1)) {
    return absl::InvalidArgumentError("--limit is a positive number");
  }
  if (name == "repository") {
    REPOTXN_ASSIGN_OR_RETURN(value, ReadPath(value));
  }
  return absl::OkStatus();
}

}  // namespace

std::string AdminArguments::Operand(size_t index) const {
  return index < operands.size() ? operands[index] : "";
}
std::string AdminArguments::Option(const std::string& name) const {
  const auto found = options.find(name);
  return found == options.end() ? "" : found->second;
}

const std::vector<AdminVerb>& AdminVerbs() {
  const std::string id = "request-id";
  static const std::vector<AdminVerb>* const verbs = new std::vector<AdminVerb>{
      {{"repo", "create"}, {"PATH"}, 1, {"object-format", "head", id}, RepoCreate, "", {}, ""},
      {{"repo", "list"}, {}, 0, {"prefix", "after", "limit"}, RepoList, "repositories",
       {"id", "format", "path"}, "after"},
      {{"repo", "show"}, {"PATH"}, 1, {}, RepoShow, "", {"id", "path"}, ""},
      {{"repo", "delete"}, {"PATH"}, 1, {id}, RepoDelete, "", {}, ""},
      {{"repo", "undelete"}, {"ID", "PATH"}, 2, {id}, RepoUndelete, "", {}, ""},
      {{"repo", "move"}, {"PATH", "NEW-PATH"}, 2, {id}, RepoMove, "", {}, ""},
      {{"repo", "fork"}, {"PATH", "NEW-PATH"}, 2, {id}, RepoFork, "", {}, ""},
      {{"repo", "pool"}, {"PATH", "POOL-PATH"}, 2, {id}, RepoPool, "", {}, ""},
      {{"repo", "link"}, {"PATH", "POOL-PATH"}, 2, {id}, RepoLink, "", {}, ""},
      {{"repo", "unlink"}, {"PATH", "POOL-PATH"}, 2, {id}, RepoUnlink, "", {}, ""},
      {{"refs", "list"}, {"PATH"}, 1, {"prefix", "after", "limit"}, RefsList, "refs",
       {"value", "name"}, "after"},
      {{"refs", "get"}, {"PATH", "NAME"}, 2, {}, RefsGet, "", {}, ""},
      {{"refs", "set"}, {"PATH", "NAME", "VALUE"}, 3, {"old", id}, RefsSet, "", {}, ""},
      {{"refs", "delete"}, {"PATH", "NAME"}, 2, {"old", id}, RefsDelete, "", {}, ""},
      {{"head", "get"}, {"PATH"}, 1, {}, HeadGet, "", {}, ""},
      {{"head", "set"}, {"PATH", "TARGET"}, 2, {"old", id}, HeadSet, "", {}, ""},
      {{"file", "list"}, {"PATH", "DIRECTORY"}, 1, {}, FileList, "entries", {"name"}, ""},
      {{"file", "get"}, {"PATH", "FILE"}, 2, {}, FileGet, "", {}, "", "content"},
      {{"file", "put"}, {"PATH", "FILE", "CONTENT"}, 2, {std::string(kContentOf), "mode", id}, FilePut, "", {}, ""},
      {{"file", "delete"}, {"PATH", "FILE"}, 2, {id}, FileDelete, "", {}, ""},
      {{"group", "list"}, {"GROUP"}, 0, {}, GroupList, "entries", {"kind", "name"}, ""},
      {{"group", "remove"}, {"GROUP"}, 1, {id}, GroupRemove, "", {}, ""},
      {{"key", "get"}, {"KEY"}, 1, {"partition", "repository"}, KeyGet, "", {}, ""},
      {{"key", "put"}, {"KEY", "VALUE"}, 2, {"partition", "repository", id}, KeyPut, "", {}, ""},
      {{"key", "delete"}, {"KEY"}, 1, {"partition", "repository", id}, KeyDelete, "", {}, ""},
      {{"key", "list"}, {}, 0, {"partition", "repository", "first", "end", "limit"}, KeyList,
       "keys", {"key", "value"}, "first"},
      {{"housekeeping", "plan"}, {"PATH"}, 0, {}, HousekeepingPlan, "plan", {"path", "task", "reason"}, ""},
      {{"housekeeping", "run"}, {"PATH"}, 0, {"all", "task", "expire"}, HousekeepingRun, "tasks",
       {"path", "task", "outcome", "message"}, ""},
      {{"housekeeping", "status"}, {"PATH"}, 0, {}, HousekeepingStatus, "/status/tasks",
       {"path", "task", "outcome", "started_at", "needed_since", "reason", "message"}, ""},
      {{"housekeeping", "pause"}, {}, 0, {}, HousekeepingPause, "", {}, ""},
      {{"housekeeping", "resume"}, {}, 0, {}, HousekeepingResume, "", {}, ""},
      {{"outcome"}, {"ID"}, 0, {"request", "issued-at"}, OutcomeCall, "", {}, ""},
  };
  return *verbs;
}

const AdminVerb* FindAdminVerb(const std::vector<std::string>& words) {
  for (const AdminVerb& verb : AdminVerbs()) {
    if (words.size() >= verb.words.size() &&
        std::equal(verb.words.begin(), verb.words.end(), words.begin())) {
      return &verb;
    }
  }
  return nullptr;
}

bool IsAdminOption(const std::string& name) {
  for (const AdminVerb& verb : AdminVerbs()) {
    if (std::find(verb.options.begin(), verb.options.end(), name) != verb.options.end()) return true;
  }
  return false;
}

absl::StatusOr<AdminArguments> ReadAdminArguments(
    const AdminVerb& verb, const std::vector<std::string>& words,
    const std::map<std::string, std::string>& options) {
  const std::string name = absl::StrJoin(verb.words, " ");
  AdminArguments arguments;
  arguments.operands.assign(words.begin() + static_cast<std::ptrdiff_t>(verb.words.size()),
                            words.end());
  const size_t count = arguments.operands.size();
  if (count < verb.operands_min) {
    const std::string& missing = verb.operands[count];
    return absl::InvalidArgumentError(
        absl::StrCat(name, " needs ", missing == "PATH" ? "a repository path" : missing));
  }
  if (count > verb.operands.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unexpected argument ", arguments.operands[verb.operands.size()], " behind ", name));
  }
  for (size_t i = 0; i < count; ++i) {
    if (!IsPath(verb.operands[i])) continue;
    REPOTXN_ASSIGN_OR_RETURN(arguments.operands[i], ReadPath(arguments.operands[i]));
  }
  arguments.options = options;
  for (auto& [option, value] : arguments.options) {
    if (std::find(verb.options.begin(), verb.options.end(), option) == verb.options.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--", option, " makes no sense for ", name));
    }
    REPOTXN_RETURN_IF_ERROR(CheckOption(option, value));
  }
  return arguments;
}

}  // namespace repotxn::cli
