#include "daemon/error_reply.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/push_report.h"
#include "locks/verdict.h"
#include "objects/error_detail.h"
#include "refs/ref_error.h"

namespace repotxn::daemon {
namespace {

// Refusals that pass by themselves say when to come again.
HeaderList RetryHeaders(int http_status) {
  if (http_status == 503) return {{"Retry-After", "1"}};
  return {};
}

}  // namespace

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return 200;
    case absl::StatusCode::kInvalidArgument: return 400;
    case absl::StatusCode::kUnauthenticated: return 401;
    case absl::StatusCode::kPermissionDenied: return 403;
    case absl::StatusCode::kNotFound: return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition: return 409;
    case absl::StatusCode::kOutOfRange: return 410;
    case absl::StatusCode::kResourceExhausted: return 413;
    case absl::StatusCode::kUnimplemented: return 501;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded: return 503;
    default: return 500;
  }
}

std::string CodeName(absl::StatusCode code) {
  return absl::AsciiStrToLower(absl::StatusCodeToString(code));
}

std::map<std::string, std::string> DetailOf(const absl::Status& status) {
  std::map<std::string, std::string> detail;
  for (const char* key : {"oid", "file", "offset", "line", "expected", "found", "pid", "rule"}) {
    const std::string value = objects::ErrorDetail(status, key);
    if (!value.empty()) detail[key] = CleanLine(value);
  }
  if (const auto conflict = locks::ConflictDetailOf(status)) {
    detail["rule"] = std::string(conflict->rule_text().data(), conflict->rule_text().size());
    detail["key"] = CleanLine(conflict->key);
    detail["snapshot_lsn"] = absl::StrCat(conflict->snapshot_lsn.value());
    detail["conflicting_lsn"] = absl::StrCat(conflict->conflicting_lsn.value());
    detail["conflicting_transaction"] = conflict->conflicting_transaction.ToHex();
  }
  if (const auto fault = refs::RefNameFaultDetail(status)) {
    detail["rule"] = CleanLine(fault->rule);
    detail["offset"] = absl::StrCat(fault->offset);
  }
  return detail;
}

void ReplyJsonError(const absl::Status& status, ResponseWriter& out) {
  const int http_status = HttpStatusOf(status);
  const nlohmann::json body = {{"error",
                                {{"code", CodeName(status.code())},
                                 {"message", CleanLine(status.message())},
                                 {"detail", DetailOf(status)}}}};
  out.Reply(http_status, "application/json",
            body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
            RetryHeaders(http_status));
}

void ReplyTextError(const absl::Status& status, ResponseWriter& out) {
  const int http_status = HttpStatusOf(status);
  std::string text = CleanLine(status.message());
  for (const auto& [key, value] : DetailOf(status)) absl::StrAppend(&text, ", ", key, " ", value);
  out.Reply(http_status, "text/plain", text + "\n", RetryHeaders(http_status));
}

}  // namespace repotxn::daemon
