#include "daemon/rest.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "daemon/error_reply.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

absl::StatusOr<std::string> ReadAll(const BodyReader& body) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, body(absl::MakeSpan(buffer)));
    if (size == 0) return text;
    text.append(buffer.data(), size);
    if (text.size() > admin::kBodyBytesMax) {
      return absl::ResourceExhaustedError("the body is too large");
    }
  }
}

// Without the body.
admin::Call ToCall(const HttpRequest& request) {
  admin::Call call;
  call.method = request.method;
  call.path = Text(absl::StripPrefix(request.path, kRestPrefix));
  call.query = request.query;
  call.request_id = Text(request.Header("idempotency-key"));
  call.origin = request.peer;
  call.deadline = request.deadline;
  return call;
}

}  // namespace

bool RestApi::NeedsWrite(const HttpRequest& request) {
  return admin::AdminApi::NeedsWrite(ToCall(request));
}

void RestApi::Handle(absl::string_view actor, const HttpRequest& request, const BodyReader& body,
                     ResponseWriter& out) {
  admin::Call call = ToCall(request);
  call.actor = Text(actor);
  if (request.has_body) {
    absl::StatusOr<std::string> text = ReadAll(body);
    if (!text.ok()) return ReplyJsonError(text.status(), out);
    call.body = *std::move(text);
  }
  ReplyJson(api_.Handle(call), out);
}

}  // namespace repotxn::daemon
