#include "storage/rocksdb_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rocksdb/io_status.h"
#include "rocksdb/status.h"

namespace repotxn::storage {
namespace {

absl::StatusCode CodeOf(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return absl::StatusCode::kResourceExhausted;
  switch (status.code()) {
    case rocksdb::Status::kNotFound:
      return absl::StatusCode::kNotFound;
    case rocksdb::Status::kCorruption:
      return absl::StatusCode::kDataLoss;
    case rocksdb::Status::kNotSupported:
      return absl::StatusCode::kUnimplemented;
    case rocksdb::Status::kInvalidArgument:
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status FromRocksdb(const rocksdb::Status& status, absl::string_view operation) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(CodeOf(status), absl::StrCat(operation, ": ", status.ToString()));
}

rocksdb::IOStatus ToRocksdb(const absl::Status& status) {
  if (status.ok()) return rocksdb::IOStatus::OK();
  const std::string message = status.ToString();
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return rocksdb::IOStatus::PathNotFound(message);
    case absl::StatusCode::kResourceExhausted:
      return rocksdb::IOStatus::NoSpace(message);
    default:
      return rocksdb::IOStatus::IOError(message);
  }
}

}  // namespace repotxn::storage
