// One HTTP request while it is served: a handler on its own thread, pipes to and from the thread
// that owns the connection.
//
// The HTTP library pushes the body and pulls the answer; handlers do the reverse. The exchange is
// where the two meet. Sequence of the connection's thread:
//   1. Begin()                starts the handler
//   2. FeedBody()..., EndBody() or BreakBody()
//   3. WaitStarted()          status and headers are known
//   4. whole_body() or NextPiece()...
//   5. Finish()               joins the handler
// If the client goes away in 2 or 4 the pipes are broken with a reason, and the handler's next call
// gets it.
//
// Thread-safe as far as that sequence is kept; Break() from any thread.
#ifndef REPOTXN_DAEMON_HTTP_EXCHANGE_H_
#define REPOTXN_DAEMON_HTTP_EXCHANGE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/byte_pipe.h"
#include "daemon/http_message.h"
#include "storage/sync.h"

namespace repotxn::daemon {

class HttpExchange final : public ResponseWriter {
 public:
  explicit HttpExchange(HttpRequest request);
  ~HttpExchange() override { Finish(); }

  // Connection's side.
  // False when the machine has no thread left; nothing was started.
  bool Begin(const HttpHandler& handler);
  // An error: the handler wants no more, or the time is over.
  absl::Status FeedBody(absl::string_view bytes) { return body_.Write(bytes, request_.deadline); }
  void EndBody() { body_.Close(); }
  void BreakBody(absl::Status reason) { body_.Break(std::move(reason)); }
  // False when the handler gave no answer before the deadline.
  bool WaitStarted() ABSL_LOCKS_EXCLUDED(mutex_);
  // The whole answer when the handler gave it at once.
  const std::optional<std::string>& whole_body() const { return whole_body_; }
  absl::Time deadline() const { return request_.deadline; }
  int status() const { return status_; }
  const std::string& content_type() const { return content_type_; }
  const HeaderList& headers() const { return headers_; }
  // 0: the answer is complete.
  absl::StatusOr<size_t> NextPiece(absl::Span<char> out) {
    return answer_.Read(out, request_.deadline);
  }
  // Breaks whatever is open and waits for the handler. Idempotent.
  void Finish();
  // Makes the handler's next call on body or answer fail with `reason`.
  void Break(const absl::Status& reason);

  // Handler's side.
  void Start(int status, absl::string_view content_type, const HeaderList& headers) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Write(absl::string_view bytes) override {
    return answer_.Write(bytes, request_.deadline);
  }
  void Reply(int status, absl::string_view content_type, absl::string_view body,
             const HeaderList& headers) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_started() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(const HttpHandler& handler);

  const HttpRequest request_;
  BytePipe body_;
  BytePipe answer_;
  std::thread thread_;

  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar started_changed_;
  bool is_started_ ABSL_GUARDED_BY(mutex_) = false;
  // Written once, before is_started_ is set, and constant afterwards.
  int status_ = 0;
  std::string content_type_;
  HeaderList headers_;
  std::optional<std::string> whole_body_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_HTTP_EXCHANGE_H_
