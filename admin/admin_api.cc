#include "admin/admin_api.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "admin/error_json.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

constexpr int kLimitDefault = 100;
constexpr int kLimitMax = 1000;
constexpr absl::string_view kOwnerEnd = "/-/";

struct RouteRule {
  const char* method;
  // What the path names: the resource, and "/*" when an item stands behind it.
  const char* resource;
  Route route;
  bool needs_write;
  bool takes_body = false;
  std::vector<const char*> query = {};
};

const std::vector<RouteRule>& Rules() {
  static const std::vector<RouteRule>* const rules = new std::vector<RouteRule>{
      {"GET", "repositories", ListRepositories, false, false, {"prefix", "after", "limit"}},
      {"POST", "repositories", CreateRepository, true, true},
      {"GET", "repositories/*", ShowRepository, false},
      {"DELETE", "repositories/*", DeleteRepository, true},
      {"POST", "undelete", UndeleteRepository, true, true},
      {"POST", "repositories/-/move", MoveRepository, true, true},
      {"POST", "repositories/-/fork", ForkRepository, true, true},
      {"POST", "repositories/-/pool", CreatePool, true, true},
      {"POST", "repositories/-/alternates", LinkAlternate, true, true},
      {"DELETE", "repositories/-/alternates", UnlinkAlternate, true, false, {"pool"}},
      {"GET", "groups", ListGroup, false},
      {"GET", "groups/*", ListGroup, false},
      {"DELETE", "groups/*", RemoveGroup, true},
      {"GET", "repositories/-/head", GetHead, false},
      {"PUT", "repositories/-/head", SetHead, true, true},
      {"GET", "repositories/-/refs", ListRefs, false, false, {"prefix", "after", "limit"}},
      {"POST", "repositories/-/refs", UpdateRefs, true, true},
      {"GET", "repositories/-/refs/*", GetRef, false},
      {"PUT", "repositories/-/refs/*", PutRef, true, true},
      {"DELETE", "repositories/-/refs/*", DeleteRef, true, false, {"expected"}},
      {"GET", "repositories/-/files", ListFiles, false, false, {"below"}},
      {"GET", "repositories/-/files/*", GetFile, false},
      {"PUT", "repositories/-/files/*", PutFile, true, true},
      {"DELETE", "repositories/-/files/*", DeleteFile, true},
      {"GET", "keys", StoreKeys, false, false, {"key", "first", "end", "limit"}},
      {"PUT", "keys", StoreKeys, true, true, {"key"}},
      {"DELETE", "keys", StoreKeys, true, false, {"key"}},
      {"GET", "partitions/-/keys", PartitionKeys, false, false, {"key", "first", "end", "limit"}},
      {"PUT", "partitions/-/keys", PartitionKeys, true, true, {"key"}},
      {"DELETE", "partitions/-/keys", PartitionKeys, true, false, {"key"}},
      {"GET", "repositories/-/keys", RepositoryKeys, false, false, {"key", "first", "end", "limit"}},
      {"PUT", "repositories/-/keys", RepositoryKeys, true, true, {"key"}},
      {"DELETE", "repositories/-/keys", RepositoryKeys, true, false, {"key"}},
      {"GET", "repositories/-/housekeeping", ShowHousekeeping, false},
      {"POST", "repositories/-/housekeeping", RunHousekeeping, true, true},
      {"GET", "housekeeping", ShowAllHousekeeping, false, false, {"look"}},
      {"POST", "housekeeping", ControlHousekeeping, true, true},
      {"GET", "transactions/*", OutcomeOfTransaction, true},
      {"GET", "requests", OutcomeOfRequest, true, false, {"id", "issued_at"}},
  };
  return *rules;
}

// A path in its parts: `resource` is what RouteRule names.
struct Parts {
  std::string resource;
  std::string owner;
  std::string item;
};

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

// Cuts "name/rest" into both.
std::pair<absl::string_view, absl::string_view> CutAtSlash(absl::string_view path) {
  const size_t slash = path.find('/');
  if (slash == absl::string_view::npos) return {path, absl::string_view()};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Parts PartsOf(absl::string_view path) {
  Parts parts;
  const auto [collection, rest] = CutAtSlash(path);
  absl::string_view item = rest;
  parts.resource = Text(collection);
  const size_t end = rest.find(kOwnerEnd);
  if (end != absl::string_view::npos) {
    parts.owner = Text(rest.substr(0, end));
    const auto [name, behind] = CutAtSlash(rest.substr(end + kOwnerEnd.size()));
    absl::StrAppend(&parts.resource, kOwnerEnd, name);
    item = behind;
  }
  parts.item = Text(item);
  if (!item.empty()) parts.resource += "/*";
  return parts;
}

absl::Status CheckShape(const RouteRule& rule, const Call& call) {
  if (!rule.takes_body && !call.body.empty()) {
    return absl::InvalidArgumentError("a body where none is expected");
  }
  for (const auto& [name, value] : call.query) {
    const auto is_it = [&name = name](const char* known) { return name == known; };
    if (!absl::c_any_of(rule.query, is_it)) return FieldError("a parameter is unknown", name);
  }
  return absl::OkStatus();
}

const RouteRule* FindRule(const std::string& method, const std::string& resource, bool* is_known) {
  const std::string wanted = method == "HEAD" ? "GET" : method;
  for (const RouteRule& rule : Rules()) {
    if (resource != rule.resource) continue;
    *is_known = true;
    if (wanted == rule.method) return &rule;
  }
  return nullptr;
}

}  // namespace

std::string QueryOr(const Call& call, const std::string& name, const std::string& fallback) {
  const auto found = call.query.find(name);
  return found == call.query.end() ? fallback : found->second;
}

absl::StatusOr<int> LimitOf(const Call& call) {
  const auto found = call.query.find("limit");
  if (found == call.query.end()) return kLimitDefault;
  int limit = 0;
  if (!absl::SimpleAtoi(found->second, &limit) || limit < 1 || limit > kLimitMax) {
    return FieldError("limit is a number from 1 to 1000", "limit");
  }
  return limit;
}

absl::StatusOr<txn::RepositoryPath> NewPath(const std::string& text) {
  if (text == "api" || absl::StartsWith(text, "api/")) {
    return absl::InvalidArgumentError("the path is reserved for the interface itself");
  }
  return txn::RepositoryPath::Parse(text);
}

absl::StatusOr<RepositoryId> OpenOwner(const Matched& matched, txn::Transaction& transaction) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path,
                           txn::RepositoryPath::Parse(matched.owner));
  return transaction.OpenRepository(path);
}

Reply AdminApi::Handle(const Call& call) const {
  const Parts parts = PartsOf(call.path);
  bool is_known = false;
  const RouteRule* rule = FindRule(call.method, parts.resource, &is_known);
  if (rule == nullptr) {
    Reply reply = ErrorReply(absl::NotFoundError(
        is_known ? "this address does not take the method" : "there is nothing at this address"));
    if (is_known) reply.status = 405;
    return reply;
  }
  const absl::Status shape = CheckShape(*rule, call);
  if (!shape.ok()) return ErrorReply(shape);
  absl::StatusOr<Reply> reply = rule->route({*store_, call, parts.owner, parts.item});
  return reply.ok() ? *std::move(reply) : ErrorReply(reply.status());
}

bool AdminApi::NeedsWrite(const Call& call) {
  bool is_known = false;
  const RouteRule* rule = FindRule(call.method, PartsOf(call.path).resource, &is_known);
  return rule != nullptr ? rule->needs_write : call.method != "GET" && call.method != "HEAD";
}

}  // namespace repotxn::admin
