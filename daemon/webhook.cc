#include "daemon/webhook.h"

#include <httplib.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/server_options.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

constexpr absl::string_view kScheme = "http://";

class Webhook final : public EventSink {
 public:
  Webhook(const WebhookUrl& url, const WebhookOptions& options, const StoreId& incarnation)
      : target_(url.target), incarnation_(incarnation), client_(url.host, url.port) {
    client_.set_connection_timeout(absl::ToChronoMicroseconds(options.connect_timeout));
    client_.set_read_timeout(absl::ToChronoMicroseconds(options.idle_timeout));
    client_.set_write_timeout(absl::ToChronoMicroseconds(options.idle_timeout));
    client_.set_follow_location(false);
    client_.set_keep_alive(true);
  }

  absl::Status Deliver(const txn::ConsumedEntry& entry) override {
    if (is_cancelled_.load()) return absl::CancelledError("webhook is stopping");
    const httplib::Headers headers = {{"Repotxn-Incarnation", incarnation_.ToHex()},
                                      {"Repotxn-Lsn", absl::StrCat(entry.lsn.value())},
                                      {"Repotxn-Transaction", entry.transaction_id.ToHex()}};
    const httplib::Result result =
        client_.Post(target_.c_str(), headers, EventJson(incarnation_, entry), "application/json");
    if (!result) return absl::UnavailableError(absl::StrCat("webhook: ", httplib::to_string(result.error())));
    if (result->status / 100 == 2) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("webhook answered ", result->status));
  }

  void Cancel() override {
    is_cancelled_.store(true);
    client_.stop();
  }

 private:
  const std::string target_;
  const StoreId incarnation_;
  std::atomic<bool> is_cancelled_{false};
  httplib::Client client_;
};

}  // namespace

absl::StatusOr<WebhookUrl> ParseWebhookUrl(const std::string& url) {
  const absl::Status fault = absl::InvalidArgumentError("--webhook takes http://HOST[:PORT][/PATH]");
  if (!absl::StartsWith(url, kScheme)) return fault;
  for (const char c : url) {
    if (c <= ' ' || c == '\x7f' || c == '@' || c == '#') return fault;
  }
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string authority = rest.substr(0, slash);
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    authority += ":80";
  }
  WebhookUrl parsed;
  if (!ParseListenAddress(authority, &parsed.host, &parsed.port).ok() || parsed.port == 0) return fault;
  parsed.target = rest.substr(slash);
  if (!absl::StartsWith(parsed.target, "/")) parsed.target = "/" + parsed.target;
  return parsed;
}

std::unique_ptr<EventSink> MakeWebhook(const WebhookUrl& url, const WebhookOptions& options,
                                       const StoreId& incarnation) {
  return std::make_unique<Webhook>(url, options, incarnation);
}

}  // namespace repotxn::daemon
