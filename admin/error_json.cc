#include "admin/error_json.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "admin/clean_text.h"
#include "locks/verdict.h"
#include "objects/error_detail.h"
#include "refs/ref_error.h"

namespace repotxn::admin {

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
  for (const char* key :
       {"oid", "file", "offset", "line", "expected", "found", "pid", "rule", "field"}) {
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
  if (const auto mismatch = refs::RefMismatchDetail(status)) {
    detail["ref"] = CleanLine(mismatch->name);
    detail["expected"] = CleanLine(mismatch->expected);
    detail["found"] = CleanLine(mismatch->found);
  }
  if (const auto conflict = refs::DirectoryFileDetail(status)) {
    detail["ref"] = CleanLine(conflict->wanted);
    detail["blocked_by"] = CleanLine(conflict->blocked_by);
  }
  return detail;
}

Json ErrorToJson(const absl::Status& status) {
  Json error;
  error["code"] = CodeName(status.code());
  error["message"] = CleanLine(status.message());
  error["detail"] = DetailOf(status);
  return error;
}

Reply ErrorReply(const absl::Status& status) {
  return {HttpStatusOf(status), Json{{"error", ErrorToJson(status)}}};
}

}  // namespace repotxn::admin
