// Serves HTTP/1.1 on one address and hands each request to one handler.
//
// The HTTP library is behind this interface alone. Bodies may be chunked and gzipped and are
// streamed; a request is bounded in bytes (after decompression) and in time. A connection is kept
// for the next request only when the body of the last was read to its end.
//
// Limits: lines of a request and its headers are at most 8 KiB each. No TLS: put a proxy in front.
//
// Thread-safe. The handler runs on one thread a request, many at once.
#ifndef REPOTXN_DAEMON_HTTP_SERVER_H_
#define REPOTXN_DAEMON_HTTP_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/http_message.h"

namespace repotxn::daemon {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // address or name; an IPv6 literal without brackets
  int port = 0;                    // 0: any free one
  // Connections served at once; more wait for a thread. [1, 10000].
  int connections_max = 256;
  // Bytes of one body after decompression.
  int64_t body_bytes_max = int64_t{4} << 30;
  // Time of one whole exchange.
  absl::Duration request_timeout = absl::Hours(1);
  // Longest time without a byte in either direction.
  absl::Duration idle_timeout = absl::Seconds(30);
};

class HttpServer {
 public:
  // Binds and listens. kUnavailable when the address cannot be used.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           HttpHandler handler);
  // As Stop(absl::ZeroDuration()).
  ~HttpServer();

  int port() const;
  // Accepts nothing more, waits up to `grace` for the requests that run, then breaks their
  // connections and waits for their handlers. False when it had to break one. Idempotent.
  bool Stop(absl::Duration grace);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_HTTP_SERVER_H_
