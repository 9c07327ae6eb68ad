// Errors as HTTP answers.
//
// Two forms: JSON for the REST interface, one line of text for Git, which shows it as `remote: ...`.
// Messages are constant text; data stands in the detail (admin/error_json.h).
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_ERROR_REPLY_H_
#define REPOTXN_DAEMON_ERROR_REPLY_H_

#include "absl/status/status.h"
#include "admin/call.h"
#include "admin/error_json.h"
#include "daemon/http_message.h"

namespace repotxn::daemon {

using admin::CodeName;
using admin::DetailOf;
using admin::HttpStatusOf;

// An answer of the administration as it goes out. Refusals that pass by themselves say when to come
// again.
void ReplyJson(const admin::Reply& reply, ResponseWriter& out);
// {"error": {"code", "message", "detail"}}.
void ReplyJsonError(const absl::Status& status, ResponseWriter& out);
void ReplyTextError(const absl::Status& status, ResponseWriter& out);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_ERROR_REPLY_H_
