// Tells committed entries to an HTTP server, by POST of their JSON (daemon/event_sink.h).
//
// Delivered is what was answered with 2xx. Everything else, a time-out and a lost connection included, may or may not
// have arrived and is sent again, so receivers must bear repetition. Headers to know an entry by:
//   Repotxn-Incarnation, Repotxn-Lsn   name the entry for ever
//   Repotxn-Transaction                id of its transaction
// Redirects are not followed. Plain HTTP only, to the address that the operator gave: put a proxy with TLS in between where
// the way is not trusted.
//
// Externally synchronised; Cancel() from any thread.
#ifndef REPOTXN_DAEMON_WEBHOOK_H_
#define REPOTXN_DAEMON_WEBHOOK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/event_sink.h"

namespace repotxn::daemon {

struct WebhookUrl {
  std::string host;  // without brackets
  int port = 80;
  std::string target;  // path and query
};
// http://HOST[:PORT][/PATH]; kInvalidArgument for anything else.
absl::StatusOr<WebhookUrl> ParseWebhookUrl(const std::string& url);

struct WebhookOptions {
  absl::Duration connect_timeout = absl::Seconds(10);
  // Without a byte in either direction.
  absl::Duration idle_timeout = absl::Seconds(30);
};

std::unique_ptr<EventSink> MakeWebhook(const WebhookUrl& url, const WebhookOptions& options,
                                       const StoreId& incarnation);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_WEBHOOK_H_
