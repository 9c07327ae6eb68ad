#include "storage/errno_status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace repotxn::storage {
namespace {

constexpr absl::string_view kErrnoPayload = "repotxn/errno";

std::string ErrnoName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? std::string(name) : absl::StrCat("errno ", error);
}

absl::Status WithErrno(int error, absl::string_view message) {
  absl::Status status(ErrnoCode(error), message);
  status.SetPayload(kErrnoPayload, absl::Cord(absl::StrCat(error)));
  return status;
}

}  // namespace

absl::StatusCode ErrnoCode(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
      return absl::StatusCode::kResourceExhausted;
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
    case EXDEV:
      return absl::StatusCode::kFailedPrecondition;
    case ELOOP:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status ErrnoStatus(int error, absl::string_view operation) {
  return WithErrno(error, absl::StrCat(operation, ": ", ErrnoName(error)));
}

absl::Status ErrnoStatus(int error, absl::string_view operation, const StorePath& path) {
  return WithErrno(
      error, absl::StrCat(operation, " \"", absl::CEscape(path.text()), "\": ", ErrnoName(error)));
}

int ErrnoOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrnoPayload);
  int error = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &error)) return 0;
  return error;
}

}  // namespace repotxn::storage
