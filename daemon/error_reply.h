// Status codes as HTTP answers.
//
// Two forms: JSON for the REST interface, one line of text for Git, which shows it as `remote: ...`.
// Messages are constant text; data stands in the detail.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_ERROR_REPLY_H_
#define REPOTXN_DAEMON_ERROR_REPLY_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/http_message.h"

namespace repotxn::daemon {

// HTTP status that a status code becomes.
int HttpStatusOf(const absl::Status& status);
// "already_exists".
std::string CodeName(absl::StatusCode code);
// What the payloads of an error tell: "oid", "conflict", "rule", "offset", ... ; safe to show.
std::map<std::string, std::string> DetailOf(const absl::Status& status);

// {"error": {"code", "message", "detail"}}.
void ReplyJsonError(const absl::Status& status, ResponseWriter& out);
void ReplyTextError(const absl::Status& status, ResponseWriter& out);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_ERROR_REPLY_H_
