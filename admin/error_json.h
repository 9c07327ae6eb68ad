// Status codes as HTTP status and JSON.
//
// Messages are constant text; data stands in the detail. `{"error": {"code", "message", "detail"}}`:
// code is the lower-case name of the status code, detail an object of strings. Of a conflict: rule,
// key, snapshot_lsn, conflicting_lsn, conflicting_transaction.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_ADMIN_ERROR_JSON_H_
#define REPOTXN_ADMIN_ERROR_JSON_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "admin/call.h"

namespace repotxn::admin {

// HTTP status that a status code becomes.
int HttpStatusOf(const absl::Status& status);
// "already_exists".
std::string CodeName(absl::StatusCode code);
// What the payloads of an error tell; safe to show.
std::map<std::string, std::string> DetailOf(const absl::Status& status);
// {"code", "message", "detail"}.
Json ErrorToJson(const absl::Status& status);
// The whole answer. `status` is not OK.
Reply ErrorReply(const absl::Status& status);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_ERROR_JSON_H_
