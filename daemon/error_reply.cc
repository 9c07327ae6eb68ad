#include "daemon/error_reply.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "admin/clean_text.h"

namespace repotxn::daemon {
namespace {

HeaderList RetryHeaders(int http_status) {
  if (http_status == 503) return {{"Retry-After", "1"}};
  return {};
}

}  // namespace

void ReplyJson(const admin::Reply& reply, ResponseWriter& out) {
  out.Reply(reply.status, "application/json", admin::JsonText(reply.body),
            RetryHeaders(reply.status));
}

void ReplyJsonError(const absl::Status& status, ResponseWriter& out) {
  ReplyJson(admin::ErrorReply(status), out);
}

void ReplyTextError(const absl::Status& status, ResponseWriter& out) {
  const int http_status = HttpStatusOf(status);
  std::string text = admin::CleanLine(status.message());
  for (const auto& [key, value] : DetailOf(status)) absl::StrAppend(&text, ", ", key, " ", value);
  out.Reply(http_status, "text/plain", text + "\n", RetryHeaders(http_status));
}

}  // namespace repotxn::daemon
