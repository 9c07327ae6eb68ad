// Carries data of an error beside its constant message.
//
// A message states what was attempted and never holds bytes that a client sent; names, offsets and
// ids travel in one payload of the status as key/value text, read back with ErrorDetail().
//
// Thread-compatible.
#ifndef REPOTXN_OBJECTS_ERROR_DETAIL_H_
#define REPOTXN_OBJECTS_ERROR_DETAIL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace repotxn::objects {

// Returns `status` with `value` recorded under `key` ("oid", "file", "offset", "line", "expected",
// "found", "stderr"). Control characters in `value` are escaped, so that it can be logged; an OK
// status is returned as it is.
absl::Status WithDetail(absl::Status status, absl::string_view key, absl::string_view value);

// The value recorded under `key`, escaped as WithDetail() left it; empty when there is none.
std::string ErrorDetail(const absl::Status& status, absl::string_view key);

// kDataLoss for a damaged object file: `what` is the constant message, `file` a store path,
// `offset` in bytes.
absl::Status Damaged(absl::string_view what, absl::string_view file, int64_t offset);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_ERROR_DETAIL_H_
