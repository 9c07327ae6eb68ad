#include "daemon/server.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/access.h"
#include "daemon/error_reply.h"
#include "daemon/event_delivery.h"
#include "daemon/event_file.h"
#include "daemon/http_server.h"
#include "daemon/metrics.h"
#include "daemon/receive_pack.h"
#include "daemon/rest.h"
#include "daemon/upload_pack.h"
#include "daemon/webhook.h"
#include "storage/clock.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/store.h"

namespace repotxn::daemon {
namespace {

constexpr absl::string_view kUpload = "git-upload-pack";
constexpr absl::string_view kReceive = "git-receive-pack";

// Lets at most so many in at once.
class Gate {
 public:
  explicit Gate(int max) : max_(max) {}
  bool Enter() {
    if (count_.fetch_add(1) < max_) return true;
    count_.fetch_sub(1);
    return false;
  }
  void Leave() { count_.fetch_sub(1); }

 private:
  const int max_;
  std::atomic<int> count_{0};
};

// Where a request leads.
struct Route {
  RequestKind kind = RequestKind::kOther;
  Right needs = Right::kWrite;
  bool is_upload = false;
  std::string repository;  // as it stands in the URL
};

// Passes a handler's answer on and remembers its status for the metrics.
class WatchedWriter final : public ResponseWriter {
 public:
  explicit WatchedWriter(ResponseWriter& out) : out_(out) {}
  void Start(int status, absl::string_view content_type, const HeaderList& headers) override {
    status_ = status;
    out_.Start(status, content_type, headers);
  }
  absl::Status Write(absl::string_view bytes) override { return out_.Write(bytes); }
  void Reply(int status, absl::string_view content_type, absl::string_view body,
             const HeaderList& headers) override {
    status_ = status;
    out_.Reply(status, content_type, body, headers);
  }
  bool is_started() const override { return out_.is_started(); }
  using ResponseWriter::Reply;
  int status() const { return status_; }

 private:
  ResponseWriter& out_;
  int status_ = 500;
};

Route RouteOf(const HttpRequest& request) {
  Route route;
  absl::string_view path = request.path;
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (path == "/healthz" || path == "/readyz") {
    route.kind = RequestKind::kProbe;
    route.needs = Right::kNone;
  } else if (path == "/metrics") {
    route.kind = RequestKind::kProbe;
    route.needs = Right::kRead;
  } else if (absl::StartsWith(path, kRestPrefix)) {
    route.kind = RequestKind::kRest;
    route.needs = RestApi::NeedsWrite(request) ? Right::kWrite : Right::kRead;
  } else if (is_get && absl::ConsumeSuffix(&path, "/info/refs")) {
    route.kind = RequestKind::kAdvertise;
    route.is_upload = request.Query("service") == kUpload;
    route.needs = request.Query("service") == kReceive ? Right::kWrite : Right::kRead;
  } else if (request.method == "POST" && absl::ConsumeSuffix(&path, "/git-upload-pack")) {
    route.kind = RequestKind::kFetch;
    route.needs = Right::kRead;
    route.is_upload = true;
  } else if (request.method == "POST" && absl::ConsumeSuffix(&path, "/git-receive-pack")) {
    route.kind = RequestKind::kPush;
  }
  route.repository = std::string(path.data(), path.size());
  return route;
}

// A slash or NUL written as %2f or %00 would change how the path falls into components.
bool HasEncodedSeparator(absl::string_view raw_target) {
  const std::string lower =
      absl::AsciiStrToLower(raw_target.substr(0, raw_target.find('?')));
  return absl::StrContains(lower, "%2f") || absl::StrContains(lower, "%00") ||
         absl::StrContains(lower, "%5c");
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, AccessList access, std::unique_ptr<txn::Store> store)
      : options_(options),
        access_(std::move(access)),
        store_(std::move(store)),
        rest_(store_.get()),
        receive_pack_(store_.get(), ReceiveOptions(options)),
        upload_pack_(store_.get(), storage::Clock::System(), UploadOptions(options)),
        pushes_(options.pushes_max),
        fetches_(options.fetches_max) {}

  // Before the first push: the consumers are there when it is committed.
  absl::Status StartDeliveries() {
    if (!options_.events_file.empty()) {
      REPOTXN_ASSIGN_OR_RETURN(auto file, EventFile::OpenPath(options_.events_file, store_->incarnation()));
      REPOTXN_RETURN_IF_ERROR(StartDelivery("events-file", std::move(file)));
    }
    if (!options_.webhook.empty()) {
      REPOTXN_ASSIGN_OR_RETURN(const WebhookUrl url, ParseWebhookUrl(options_.webhook));
      REPOTXN_RETURN_IF_ERROR(
          StartDelivery("webhook", MakeWebhook(url, WebhookOptions(), store_->incarnation())));
    }
    return absl::OkStatus();
  }

  absl::Status Listen() {
    HttpServerOptions http;
    http.host = options_.host;
    http.port = options_.port;
    http.connections_max = options_.connections_max;
    http.body_bytes_max = options_.body_bytes_max;
    http.request_timeout = options_.request_timeout;
    http.idle_timeout = options_.idle_timeout;
    REPOTXN_ASSIGN_OR_RETURN(
        http_, HttpServer::Start(http, [this](const HttpRequest& request, const BodyReader& body,
                                              ResponseWriter& out) {
          Handle(request, body, out);
        }));
    return absl::OkStatus();
  }

  std::string url() const {
    return absl::StrCat("http://", HostForUrl(options_.host), ":", http_->port());
  }

  absl::Status Stop() {
    if (is_stopped_.exchange(true)) return absl::OkStatus();
    if (http_ != nullptr && !http_->Stop(options_.stop_grace)) {
      storage::LogWarning("requests were cut off when the server stopped");
    }
    upload_pack_.DropPins();
    for (const auto& delivery : deliveries_) delivery->Stop();
    return store_->Close();
  }

 private:
  absl::Status StartDelivery(const std::string& name, std::unique_ptr<EventSink> sink) {
    REPOTXN_ASSIGN_OR_RETURN(auto delivery,
                             EventDelivery::Start(store_.get(), storage::Clock::System(), name,
                                                  std::move(sink), EventDeliveryOptions()));
    deliveries_.push_back(std::move(delivery));
    return absl::OkStatus();
  }

  static ReceivePackOptions ReceiveOptions(const ServerOptions& options) {
    ReceivePackOptions receive;
    receive.create_on_push = options.create_on_push;
    receive.pack_bytes_max = options.body_bytes_max;
    receive.hook_timeout = options.hook_timeout;
    return receive;
  }
  static UploadPackOptions UploadOptions(const ServerOptions& options) {
    UploadPackOptions upload;
    upload.pin_duration = options.pin_duration;
    return upload;
  }

  void Handle(const HttpRequest& request, const BodyReader& body, ResponseWriter& raw) {
    const absl::Time begun = absl::Now();
    const Route route = RouteOf(request);
    WatchedWriter out(raw);
    requests_.Begin();
    const Caller caller = access_.Judge(request.Header("authorization"));
    if (caller.right < route.needs) {
      Deny(caller, out);
    } else {
      Dispatch(route, caller, request, body, out);
    }
    requests_.End(route.kind, out.status(), absl::Now() - begun);
  }

  static void Deny(const Caller& caller, ResponseWriter& out) {
    if (caller.right == Right::kNone) {
      return out.Reply(401, "text/plain", "a token is needed\n",
                       {{"WWW-Authenticate", "Basic realm=\"repotxn\""}});
    }
    out.Reply(403, "text/plain", "the token does not allow this\n");
  }

  void Dispatch(const Route& route, const Caller& caller, const HttpRequest& request,
                const BodyReader& body, ResponseWriter& out) {
    switch (route.kind) {
      case RequestKind::kProbe: return Probe(request, out);
      case RequestKind::kRest:
        if (HasEncodedSeparator(request.raw_target)) break;
        return rest_.Handle(caller.name, request, body, out);
      case RequestKind::kAdvertise:
      case RequestKind::kPush:
      case RequestKind::kFetch: return Git(route, caller, request, body, out);
      case RequestKind::kOther:
        return ReplyTextError(absl::NotFoundError("there is nothing at this address"), out);
    }
    ReplyTextError(absl::InvalidArgumentError("encoded separator in the address"), out);
  }

  void Probe(const HttpRequest& request, ResponseWriter& out) {
    if (request.path == "/healthz") return out.Reply(200, "text/plain", "alive\n");
    if (request.path == "/readyz") {
      if (store_->Health().ok()) return out.Reply(200, "text/plain", "ready\n");
      return out.Reply(503, "text/plain", "the store takes no writes\n", {{"Retry-After", "5"}});
    }
    std::string text;
    requests_.AppendText(&text);
    AppendStoreMetrics(store_->Metrics(), &text);
    AppendConsumerMetrics(store_->ListConsumers(), &text);
    out.Reply(200, "text/plain; version=0.0.4", text);
  }

  void Git(const Route& route, const Caller& caller, const HttpRequest& request,
           const BodyReader& body, ResponseWriter& out) {
    const absl::string_view service = request.Query("service");
    if (route.kind == RequestKind::kAdvertise && service != kUpload && service != kReceive) {
      return out.Reply(403, "text/plain", "only the smart protocol is served\n");
    }
    if (HasEncodedSeparator(request.raw_target)) {
      return ReplyTextError(absl::InvalidArgumentError("encoded separator in the address"), out);
    }
    const auto path = txn::RepositoryPath::ParseUrl(route.repository);
    if (!path.ok()) return ReplyTextError(path.status(), out);
    Gate& gate = route.is_upload ? fetches_ : pushes_;
    if (!gate.Enter()) {
      return out.Reply(503, "text/plain", "too many requests of this kind, try again\n",
                       {{"Retry-After", "1"}});
    }
    if (route.kind == RequestKind::kAdvertise) {
      route.is_upload ? upload_pack_.Advertise(*path, request, out)
                      : receive_pack_.Advertise(*path, request, out);
    } else {
      route.is_upload ? upload_pack_.Serve(*path, request, body, out)
                      : receive_pack_.Push(*path, caller.name, request, body, out);
    }
    gate.Leave();
  }

  const ServerOptions options_;
  const AccessList access_;
  const std::unique_ptr<txn::Store> store_;
  RestApi rest_;
  ReceivePack receive_pack_;
  UploadPack upload_pack_;
  Gate pushes_;
  Gate fetches_;
  RequestMetrics requests_;
  std::atomic<bool> is_stopped_{false};
  std::vector<std::unique_ptr<EventDelivery>> deliveries_;
  // Last, so that it is destroyed first: its handlers use all of the above.
  std::unique_ptr<HttpServer> http_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  const absl::Status status = Stop();
  if (!status.ok()) storage::LogError(absl::StrCat("stopping failed: ", status.message()));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  AccessList access = AccessList::Open();
  if (!options.token_file.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(access, AccessList::Load(options.token_file));
  } else if (!IsLoopback(options.host)) {
    return absl::FailedPreconditionError(
        "an address that others can reach needs --token-file");
  }
  std::string root = options.store;
  if (!absl::StartsWith(root, "/")) {
    const std::unique_ptr<char, decltype(&std::free)> here(realpath(".", nullptr), &std::free);
    if (here == nullptr) return absl::UnavailableError("the current directory cannot be read");
    root = absl::StrCat(here.get(), "/", root);
  }
  txn::StoreOptions store_options;
  store_options.create_if_missing = true;
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<txn::Store> store,
                           txn::Store::Open(root, store_options));
  auto impl = std::make_unique<Impl>(options, std::move(access), std::move(store));
  REPOTXN_RETURN_IF_ERROR(impl->StartDeliveries());
  REPOTXN_RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::string Server::url() const { return impl_->url(); }
absl::Status Server::Stop() { return impl_->Stop(); }

int RunDaemon(int argc, char** argv) {
  const absl::StatusOr<CommandLine> line =
      ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  const auto complain = [](const absl::Status& status) {
    std::fprintf(stderr, "repotxnd: %s\n",
                 std::string(status.message().data(), status.message().size()).c_str());
  };
  if (!line.ok()) {
    complain(line.status());
    return 2;
  }
  if (line->action != CommandLine::Action::kServe) {
    std::fputs(line->action == CommandLine::Action::kHelp ? HelpText().c_str()
                                                          : VersionText().c_str(),
               stdout);
    return 0;
  }
  // Blocked before any thread is made, so that this thread alone receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(line->options);
  if (!server.ok()) {
    complain(server.status());
    return 1;
  }
  std::printf("listening on %s\n", (*server)->url().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  const absl::Status status = (*server)->Stop();
  if (!status.ok()) complain(status);
  return status.ok() ? 0 : 1;
}

}  // namespace repotxn::daemon
