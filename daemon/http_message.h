// A request and its answer as the handlers see them, without an HTTP library.
//
// The body is pulled and the answer pushed, both in pieces, so neither is ever held whole. A handler
// may answer without reading the body to its end; it must not read after it returned.
//
// Single-threaded: the thread that runs the handler.
#ifndef REPOTXN_DAEMON_HTTP_MESSAGE_H_
#define REPOTXN_DAEMON_HTTP_MESSAGE_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "txn/object_staging.h"

namespace repotxn::daemon {

struct HttpRequest {
  std::string method;  // upper case
  std::string path;    // decoded, without the query
  std::string raw_target;
  std::map<std::string, std::string> query;    // decoded; the first of a name
  std::map<std::string, std::string> headers;  // names in lower case
  std::string peer;                            // address of the client, for the log
  bool has_body = false;
  absl::Time deadline;  // the whole exchange ends by then

  // Empty when absent. `name` in lower case.
  absl::string_view Header(absl::string_view name) const;
  absl::string_view Query(absl::string_view name) const;
};

// Bytes of the body, already without transfer and content encoding.
//
// Errors: kInvalidArgument (cut off or malformed), kResourceExhausted (more than the limit),
// kDeadlineExceeded (too slow), kCancelled (the server stops).
using BodyReader = txn::ByteSource;

using HeaderList = std::vector<std::pair<std::string, std::string>>;

class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  // Status line and headers; before the first Write(), once.
  virtual void Start(int status, absl::string_view content_type, const HeaderList& headers) = 0;
  // Blocks while the client is slower. kUnavailable when the client is gone, kDeadlineExceeded when
  // it is too slow, kCancelled when the server stops; later calls give the same.
  virtual absl::Status Write(absl::string_view bytes) = 0;
  virtual bool is_started() const = 0;

  // A whole answer at once, with its length.
  virtual void Reply(int status, absl::string_view content_type, absl::string_view body,
                     const HeaderList& headers);
  void Reply(int status, absl::string_view content_type, absl::string_view body) {
    Reply(status, content_type, body, {});
  }
};

using HttpHandler =
    std::function<void(const HttpRequest& request, const BodyReader& body, ResponseWriter& out)>;

// For tests and for answers that must be complete before they start: keeps everything in memory.
class BufferedResponse final : public ResponseWriter {
 public:
  void Start(int status, absl::string_view content_type, const HeaderList& headers) override;
  absl::Status Write(absl::string_view bytes) override;
  bool is_started() const override { return status_ != 0; }
  using ResponseWriter::Reply;

  int status() const { return status_; }
  const std::string& content_type() const { return content_type_; }
  const std::string& body() const { return body_; }
  const HeaderList& headers() const { return headers_; }

 private:
  int status_ = 0;
  std::string content_type_;
  std::string body_;
  HeaderList headers_;
};

// Gives the bytes of `text`.
BodyReader TextBody(std::string text);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_HTTP_MESSAGE_H_
