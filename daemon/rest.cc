#include "daemon/rest.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "daemon/error_reply.h"
#include "storage/status_macros.h"
#include "txn/repository_path.h"

namespace repotxn::daemon {
namespace {

using nlohmann::json;

constexpr size_t kBodyBytesMax = 64 << 10;
constexpr int kLimitDefault = 100;
constexpr int kLimitMax = 1000;
constexpr absl::string_view kRepositories = "/api/repositories";
constexpr absl::string_view kTransactions = "/api/transactions/";

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

void ReplyJson(int status, const json& body, ResponseWriter& out) {
  out.Reply(status, "application/json",
            body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

json ToJson(const txn::RepositoryInfo& info) {
  return {{"path", info.path},
          {"id", info.id.ToHex()},
          {"format", Text(ObjectFormatName(info.format))},
          {"version", info.version.value()}};
}

absl::StatusOr<json> ReadJson(const BodyReader& body) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, body(absl::MakeSpan(buffer)));
    if (size == 0) break;
    text.append(buffer.data(), size);
    if (text.size() > kBodyBytesMax) return absl::ResourceExhaustedError("the body is too large");
  }
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  return value;
}

// A string member; `fallback` when absent.
absl::StatusOr<std::string> StringMember(const json& object, const char* name,
                                         const std::string& fallback) {
  const auto found = object.find(name);
  if (found == object.end()) return fallback;
  if (!found->is_string()) return absl::InvalidArgumentError("a member of the body is no string");
  return found->get<std::string>();
}

struct Creation {
  txn::RepositoryPath path;
  txn::CreateOptions options;
};

absl::StatusOr<Creation> ReadCreation(const BodyReader& body) {
  Creation creation;
  REPOTXN_ASSIGN_OR_RETURN(const json object, ReadJson(body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string path, StringMember(object, "path", ""));
  REPOTXN_ASSIGN_OR_RETURN(const std::string format, StringMember(object, "format", "sha1"));
  REPOTXN_ASSIGN_OR_RETURN(creation.path, txn::RepositoryPath::Parse(path));
  if (path == "api" || absl::StartsWith(path, "api/")) {
    return absl::InvalidArgumentError("the path is reserved for the interface itself");
  }
  REPOTXN_ASSIGN_OR_RETURN(creation.options.format, ParseObjectFormat(format));
  return creation;
}

}  // namespace

void RestApi::Create(const BodyReader& body, ResponseWriter& out) {
  const absl::StatusOr<Creation> creation = ReadCreation(body);
  if (!creation.ok()) return ReplyJsonError(creation.status(), out);
  txn::RepositoryInfo info;
  const txn::CommitResult result =
      store_->Run({}, [&](txn::Transaction& txn) -> absl::Status {
        REPOTXN_ASSIGN_OR_RETURN(info.id, txn.CreateRepository(creation->path, creation->options));
        return absl::OkStatus();
      });
  if (!result.committed()) return ReplyJsonError(result.status, out);
  info.path = creation->path.text();
  info.format = creation->options.format;
  info.version = result.lsn;
  ReplyJson(201, ToJson(info), out);
}

void RestApi::List(const HttpRequest& request, ResponseWriter& out) {
  int limit = kLimitDefault;
  const absl::string_view text = request.Query("limit");
  if (!text.empty() && (!absl::SimpleAtoi(text, &limit) || limit < 1 || limit > kLimitMax)) {
    return ReplyJsonError(absl::InvalidArgumentError("limit is a number from 1 to 1000"), out);
  }
  // One more than asked for tells whether there is a next page.
  auto found = store_->ListRepositories(request.Query("prefix"), request.Query("after"), limit + 1);
  if (!found.ok()) return ReplyJsonError(found.status(), out);
  json body = {{"repositories", json::array()}};
  if (found->size() > static_cast<size_t>(limit)) {
    found->resize(static_cast<size_t>(limit));
    body["next"] = found->back().path;
  }
  for (const txn::RepositoryInfo& info : *found) body["repositories"].push_back(ToJson(info));
  ReplyJson(200, body, out);
}

void RestApi::Describe(absl::string_view path, ResponseWriter& out) {
  const auto describe = [&]() -> absl::StatusOr<txn::RepositoryInfo> {
    REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath parsed, txn::RepositoryPath::Parse(path));
    txn::BeginOptions begin;
    begin.access = txn::Access::kReadOnly;
    REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<txn::Transaction> txn, store_->Begin(begin));
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn->OpenRepository(parsed));
    return txn->Describe(id);
  };
  const absl::StatusOr<txn::RepositoryInfo> info = describe();
  if (!info.ok()) return ReplyJsonError(info.status(), out);
  ReplyJson(200, ToJson(*info), out);
}

void RestApi::Outcome(absl::string_view id, ResponseWriter& out) {
  const absl::StatusOr<TransactionId> parsed = TransactionId::FromHex(id);
  if (!parsed.ok()) return ReplyJsonError(parsed.status(), out);
  const txn::CommitResult result = store_->OutcomeOf(*parsed);
  if (result.outcome == txn::CommitOutcome::kUnknown && !result.status.ok()) {
    return ReplyJsonError(result.status, out);
  }
  json body = {{"transaction_id", parsed->ToHex()},
               {"outcome", txn::CommitOutcomeName(result.outcome)}};
  if (result.committed()) body["lsn"] = result.lsn.value();
  ReplyJson(200, body, out);
}

void RestApi::Handle(const HttpRequest& request, const BodyReader& body, ResponseWriter& out) {
  absl::string_view path = request.path;
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (path == kRepositories && request.method == "POST") return Create(body, out);
  if (path == kRepositories && is_get) return List(request, out);
  if (is_get && absl::ConsumePrefix(&path, kTransactions)) return Outcome(path, out);
  if (is_get && absl::ConsumePrefix(&path, kRepositories) && absl::ConsumePrefix(&path, "/")) {
    return Describe(path, out);
  }
  ReplyJsonError(absl::NotFoundError("there is nothing at this address"), out);
}

}  // namespace repotxn::daemon
