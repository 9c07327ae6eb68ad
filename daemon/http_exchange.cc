#include "daemon/http_exchange.h"

#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/check.h"
#include "storage/log.h"

namespace repotxn::daemon {
namespace {

constexpr size_t kBodyPipeBytes = 256 << 10;
constexpr size_t kAnswerPipeBytes = 256 << 10;

}  // namespace

HttpExchange::HttpExchange(HttpRequest request)
    : request_(std::move(request)), body_(kBodyPipeBytes), answer_(kAnswerPipeBytes) {}

bool HttpExchange::Begin(const HttpHandler& handler) {
  try {
    thread_ = std::thread([this, &handler] { Run(handler); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void HttpExchange::Run(const HttpHandler& handler) {
  const BodyReader reader = [this](absl::Span<char> out) {
    return body_.Read(out, request_.deadline);
  };
  try {
    handler(request_, reader, *this);
  } catch (const std::exception& fault) {
    storage::LogError(absl::StrCat("a request handler failed: ", fault.what()));
    answer_.Break(absl::InternalError("the handler failed"));
  }
  if (!is_started()) Reply(500, "text/plain", "the server failed to answer\n", {});
  body_.Break(absl::CancelledError("the handler has answered"));
  answer_.Close();
}

bool HttpExchange::WaitStarted() {
  storage::MutexLock lock(&mutex_);
  while (!is_started_) {
    const absl::Duration left = request_.deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    started_changed_.WaitFor(&mutex_, left);
  }
  return true;
}

void HttpExchange::Start(int status, absl::string_view content_type, const HeaderList& headers) {
  storage::MutexLock lock(&mutex_);
  REPOTXN_DCHECK(!is_started_);
  status_ = status;
  content_type_ = std::string(content_type.data(), content_type.size());
  headers_ = headers;
  is_started_ = true;
  started_changed_.SignalAll();
}

void HttpExchange::Reply(int status, absl::string_view content_type, absl::string_view body,
                         const HeaderList& headers) {
  // Not yet started, so nobody else looks at it.
  whole_body_ = std::string(body.data(), body.size());
  Start(status, content_type, headers);
}

bool HttpExchange::is_started() const {
  storage::MutexLock lock(&mutex_);
  return is_started_;
}

void HttpExchange::Break(const absl::Status& reason) {
  body_.Break(reason);
  answer_.Break(reason);
}

void HttpExchange::Finish() {
  Break(absl::UnavailableError("the client is gone"));
  if (thread_.joinable()) thread_.join();
}

}  // namespace repotxn::daemon
