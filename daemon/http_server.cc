#include "daemon/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/elastic_pool.h"
#include "daemon/http_exchange.h"
#include "storage/sync.h"

namespace repotxn::daemon {
namespace {

// The library asks for a queue of 5 connections, which a burst of clients overruns.
constexpr int kListenQueue = 1024;
// A kept connection occupies a thread.
constexpr int kKeepAliveSeconds = 2;
constexpr int kKeepAliveRequests = 100;
// Body bytes read and dropped so that the client sees an early refusal instead of a reset.
constexpr int64_t kDrainRefusedBytes = 1 << 20;
constexpr size_t kPieceBytes = 16 << 10;

class TaskQueue final : public httplib::TaskQueue {
 public:
  explicit TaskQueue(size_t threads_max) : pool_(threads_max) {}
  void enqueue(std::function<void()> task) override { pool_.Run(std::move(task)); }
  void shutdown() override { pool_.Shutdown(); }

 private:
  ElasticPool pool_;
};

bool HasBody(const httplib::Request& request) {
  if (request.has_header("Transfer-Encoding")) return true;
  return request.has_header("Content-Length") &&
         request.get_header_value("Content-Length") != "0";
}

HttpRequest Translate(const httplib::Request& from, absl::Duration timeout) {
  HttpRequest to;
  to.method = from.method;
  to.path = from.path;
  to.raw_target = from.target;
  for (const auto& [name, value] : from.params) to.query.emplace(name, value);
  for (const auto& [name, value] : from.headers) {
    to.headers.emplace(absl::AsciiStrToLower(name), value);
  }
  to.peer = from.remote_addr;
  to.has_body = HasBody(from);
  to.deadline = absl::Now() + timeout;
  return to;
}

// Why a request is refused before any handler sees it; status 0 when it is not.
struct Refusal {
  int status = 0;
  const char* text = "";
};

Refusal JudgeHead(const httplib::Request& request, int64_t body_bytes_max) {
  for (const char c : request.path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return {400, "control character in the path\n"};
    }
  }
  const size_t lengths = request.get_header_value_count("Content-Length");
  const std::string coding = request.get_header_value("Transfer-Encoding");
  // Two ways to tell the length are how requests are smuggled past a proxy.
  if (lengths > 1 || (lengths == 1 && !coding.empty())) return {400, "ambiguous body length\n"};
  if (!coding.empty() && !absl::EqualsIgnoreCase(coding, "chunked")) {
    return {501, "unknown transfer encoding\n"};
  }
  int64_t length = 0;
  const std::string text = request.get_header_value("Content-Length");
  if (lengths == 1 && (!absl::SimpleAtoi(text, &length) || length < 0)) {
    return {400, "malformed body length\n"};
  }
  if (length > body_bytes_max) return {413, "the body is too large\n"};
  const std::string encoding = request.get_header_value("Content-Encoding");
  if (!encoding.empty() && encoding != "gzip" && encoding != "identity") {
    return {415, "unknown content encoding\n"};
  }
  return {};
}

// Writes the answer of an exchange and says whether the connection may serve another request.
bool StreamAnswer(HttpExchange& exchange, httplib::DataSink& sink) {
  std::string piece(kPieceBytes, '\0');
  while (true) {
    absl::StatusOr<size_t> size = exchange.NextPiece(absl::MakeSpan(&piece[0], piece.size()));
    if (!size.ok()) return false;  // the client sees an answer that is cut off
    if (*size == 0) return true;
    if (!sink.write(piece.data(), *size)) {
      exchange.Break(absl::UnavailableError("the client is gone"));
      return false;
    }
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : options_(options), handler_(std::move(handler)) {}

  absl::Status Start();
  bool Stop(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mutex_);
  int port() const { return port_; }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  void Configure();
  void Serve(const httplib::Request& request, httplib::Response& response,
             const httplib::ContentReader* body);
  void Answer(const Exchange& exchange, bool may_keep, httplib::Response& response);
  static void Refuse(const Refusal& refusal, httplib::Response& response);
  bool ReadBody(HttpExchange& exchange, const httplib::ContentReader& body);
  bool Enter(const Exchange& exchange) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(const Exchange& exchange) ABSL_LOCKS_EXCLUDED(mutex_);

  const HttpServerOptions options_;
  const HttpHandler handler_;
  httplib::Server server_;
  std::thread listener_;
  int port_ = 0;
  int listen_socket_ = -1;

  storage::Mutex mutex_{storage::MutexRank::kLifecycle};
  storage::CondVar changed_;
  absl::flat_hash_set<Exchange> running_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

void HttpServer::Impl::Configure() {
  const size_t threads = static_cast<size_t>(options_.connections_max);
  server_.new_task_queue = [threads] { return new TaskQueue(threads); };
  const absl::Duration silence = std::min(options_.idle_timeout, options_.request_timeout);
  const auto idle = static_cast<time_t>(
      std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(silence, absl::Seconds(1)))));
  server_.set_read_timeout(idle);
  server_.set_write_timeout(idle);
  server_.set_keep_alive_timeout(kKeepAliveSeconds);
  server_.set_keep_alive_max_count(kKeepAliveRequests);
  server_.set_tcp_nodelay(true);
  server_.set_socket_options([this](socket_t socket) {
    httplib::default_socket_options(socket);
    listen_socket_ = socket;
  });

  // Everything is answered here, or by a handler that streams the body: the library's other ways
  // read bodies into memory without a bound.
  server_.set_pre_routing_handler([this](const httplib::Request& request,
                                         httplib::Response& response) {
    const Refusal refusal = JudgeHead(request, options_.body_bytes_max);
    const bool has_reader = request.method == "POST" || request.method == "PUT" ||
                            request.method == "PATCH" || request.method == "DELETE";
    if (refusal.status != 0) {
      Refuse(refusal, response);
    } else if (request.method == "GET" || request.method == "HEAD") {
      if (HasBody(request)) {
        Refuse({400, "a body where none is expected\n"}, response);
      } else {
        Serve(request, response, nullptr);
      }
    } else if (!has_reader) {
      Refuse({405, "unknown method\n"}, response);
    } else {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto with_body = [this](const httplib::Request& request, httplib::Response& response,
                                const httplib::ContentReader& body) {
    Serve(request, response, &body);
  };
  server_.Post(".*", with_body);
  server_.Put(".*", with_body);
  server_.Patch(".*", with_body);
  server_.Delete(".*", with_body);
}

absl::Status HttpServer::Impl::Start() {
  Configure();
  bool is_bound = false;
  if (options_.port == 0) {
    port_ = server_.bind_to_any_port(options_.host);
    is_bound = port_ > 0;
  } else {
    port_ = options_.port;
    is_bound = server_.bind_to_port(options_.host, port_);
  }
  if (!is_bound || ::listen(listen_socket_, kListenQueue) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on port ", options_.port, " of ", options_.host));
  }
  listener_ = std::thread([this] { server_.listen_after_bind(); });
  // stop() does nothing before the listener runs.
  while (!server_.is_running()) std::this_thread::yield();
  return absl::OkStatus();
}

bool HttpServer::Impl::Enter(const Exchange& exchange) {
  storage::MutexLock lock(&mutex_);
  if (is_stopping_) return false;
  running_.insert(exchange);
  return true;
}

void HttpServer::Impl::Leave(const Exchange& exchange) {
  storage::MutexLock lock(&mutex_);
  running_.erase(exchange);
  changed_.SignalAll();
}

void HttpServer::Impl::Refuse(const Refusal& refusal, httplib::Response& response) {
  response.status = refusal.status;
  if (refusal.status == 503) response.set_header("Retry-After", "1");
  // Its body is not read, so the connection ends: a provider that gives false closes it.
  response.set_header("Connection", "close");
  const std::string text = refusal.text;
  response.set_chunked_content_provider("text/plain", [text](size_t, httplib::DataSink& sink) {
    sink.write(text.data(), text.size());
    sink.done();
    return false;
  });
}

bool HttpServer::Impl::ReadBody(HttpExchange& exchange, const httplib::ContentReader& body) {
  int64_t bytes = 0;
  int64_t dropped = 0;
  bool is_dropping = false;
  // A body that trickles in is bounded by the deadline, one that stops by the library's time-out.
  const bool is_read = body([&](const char* data, size_t size) {
    bytes += static_cast<int64_t>(size);
    if (bytes > options_.body_bytes_max) {
      exchange.BreakBody(absl::ResourceExhaustedError("the body is too large"));
      return false;
    }
    if (!is_dropping) {
      const absl::Status status = exchange.FeedBody(absl::string_view(data, size));
      if (absl::IsDeadlineExceeded(status)) return false;
      is_dropping = !status.ok();
    }
    if (is_dropping) dropped += static_cast<int64_t>(size);
    if (absl::Now() > exchange.deadline()) return false;
    // A handler that answered early with success still wants its answer to arrive.
    const bool is_refused = is_dropping && exchange.is_started() && exchange.status() >= 400;
    return !is_refused || dropped <= kDrainRefusedBytes;
  });
  if (is_read) {
    exchange.EndBody();
  } else {
    exchange.BreakBody(absl::InvalidArgumentError("the body was cut off, or came too slowly"));
  }
  return is_read;
}

void HttpServer::Impl::Serve(const httplib::Request& request, httplib::Response& response,
                             const httplib::ContentReader* body) {
  auto exchange =
      std::make_shared<HttpExchange>(Translate(request, options_.request_timeout));
  if (!Enter(exchange)) return Refuse({503, "the server is stopping\n"}, response);
  if (!exchange->Begin(handler_)) {
    Leave(exchange);
    return Refuse({503, "no thread is left\n"}, response);
  }
  bool may_keep = true;
  if (body != nullptr && HasBody(request)) {
    may_keep = ReadBody(*exchange, *body);
  } else {
    exchange->EndBody();
  }
  if (!exchange->WaitStarted()) {
    exchange->Finish();
    Leave(exchange);
    return Refuse({503, "the request took too long\n"}, response);
  }
  Answer(exchange, may_keep, response);
}

void HttpServer::Impl::Answer(const Exchange& exchange, bool may_keep,
                              httplib::Response& response) {
  response.status = exchange->status();
  for (const auto& [name, value] : exchange->headers()) response.set_header(name, value);
  if (!may_keep) response.set_header("Connection", "close");
  if (exchange->whole_body().has_value() && may_keep) {
    response.set_content(*exchange->whole_body(), exchange->content_type());
    exchange->Finish();
    Leave(exchange);
    return;
  }
  response.set_chunked_content_provider(
      exchange->content_type(),
      [exchange, may_keep](size_t, httplib::DataSink& sink) {
        // The whole answer in one call: between two calls the library would cut it off when the
        // server is told to stop.
        const std::optional<std::string>& whole = exchange->whole_body();
        const bool is_sent = whole.has_value()
                                 ? whole->empty() || sink.write(whole->data(), whole->size())
                                 : StreamAnswer(*exchange, sink);
        if (!is_sent) return false;
        sink.done();
        return may_keep;
      },
      [this, exchange](bool) {
        exchange->Finish();
        Leave(exchange);
      });
}

bool HttpServer::Impl::Stop(absl::Duration grace) {
  bool was_graceful = true;
  {
    storage::MutexLock lock(&mutex_);
    if (is_stopped_) return true;
    is_stopped_ = true;
    // New requests get 503 while the running ones end; only then the library is stopped, which
    // would cut them off.
    is_stopping_ = true;
    const absl::Time until = absl::Now() + grace;
    while (!running_.empty() && absl::Now() < until) {
      changed_.WaitFor(&mutex_, until - absl::Now());
    }
    was_graceful = running_.empty();
    for (const Exchange& exchange : running_) {
      exchange->Break(absl::CancelledError("the server stops"));
    }
  }
  server_.stop();
  if (listener_.joinable()) listener_.join();
  return was_graceful;
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  absl::Status status = impl->Start();
  if (!status.ok()) return status;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }
bool HttpServer::Stop(absl::Duration grace) { return impl_->Stop(grace); }

}  // namespace repotxn::daemon
