// Translates errno into absl::Status, the same way for every system call.
//
// The codes are the table of storage/file_system.h. The message names the operation, the errno and
// the escaped StorePath, never an absolute path. The errno itself travels as a payload, for the few
// callers that act on it (EMLINK and EXDEV on a link become a copy).
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_ERRNO_STATUS_H_
#define REPOTXN_STORAGE_ERRNO_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/store_path.h"

namespace repotxn::storage {

// Code that `error` (an errno, not 0) stands for.
absl::StatusCode ErrnoCode(int error);
// A failed call on something that has no path in a store (pipe, process).
absl::Status ErrnoStatus(int error, absl::string_view operation);
absl::Status ErrnoStatus(int error, absl::string_view operation, const StorePath& path);
// The errno that `status` was made from; 0 when it was made from none.
int ErrnoOf(const absl::Status& status);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_ERRNO_STATUS_H_
