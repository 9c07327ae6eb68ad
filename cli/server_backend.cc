#include <httplib.h>

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/error_json.h"
#include "cli/backend.h"
#include "storage/status_macros.h"

namespace repotxn::cli {
namespace {

constexpr time_t kConnectSeconds = 10;
// Unlinking from a pool and making one copy objects before they answer, and housekeeping does its work.
constexpr time_t kAnswerSeconds = 3600;

// Everything but letters, digits, "-._~" and, in a path, '/' as %XX.
std::string Escaped(const std::string& bytes, bool keeps_slash) {
  std::string text;
  for (const char c : bytes) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keeps_slash);
    if (is_plain) {
      text.push_back(c);
    } else {
      absl::StrAppendFormat(&text, "%%%02x", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::string Target(const admin::Call& call) {
  std::string target = absl::StrCat("/api/", Escaped(call.path, /*keeps_slash=*/true));
  char separator = '?';
  for (const auto& [name, value] : call.query) {
    target += absl::StrCat(std::string(1, separator), Escaped(name, false), "=",
                           Escaped(value, false));
    separator = '&';
  }
  return target;
}

// What is not from the interface itself (a proxy, a refusal of the token) as if it were.
admin::Reply Foreign(int status, const std::string& text) {
  const absl::StatusCode code = status == 401   ? absl::StatusCode::kUnauthenticated
                                : status == 403 ? absl::StatusCode::kPermissionDenied
                                                : absl::StatusCode::kUnavailable;
  admin::Reply reply = admin::ErrorReply(absl::Status(code, text.empty() ? "no reason given" : text));
  reply.status = status;
  return reply;
}

class ServerBackend final : public Backend {
 public:
  ServerBackend(const std::string& url, const std::string& token) : client_(url) {
    client_.set_url_encode(false);
    client_.set_connection_timeout(kConnectSeconds);
    client_.set_read_timeout(kAnswerSeconds);
    if (!token.empty()) headers_.emplace("Authorization", "Bearer " + token);
  }
  bool is_valid() const { return client_.is_valid(); }

  absl::StatusOr<admin::Reply> Send(const admin::Call& call) override {
    httplib::Request request;
    request.method = call.method;
    request.path = Target(call);
    request.headers = headers_;
    if (!call.request_id.empty()) request.set_header("Idempotency-Key", call.request_id);
    if (!call.body.empty()) {
      request.body = call.body;
      request.set_header("Content-Type", "application/json");
    }
    const httplib::Result result = client_.send(request);
    if (!result) {
      return absl::UnavailableError(
          absl::StrCat("the server gave no answer: ", httplib::to_string(result.error())));
    }
    admin::Json body = admin::Json::parse(result->body, nullptr, /*allow_exceptions=*/false);
    if (!body.is_object()) return Foreign(result->status, result->body);
    return admin::Reply{result->status, std::move(body)};
  }

 private:
  httplib::Client client_;
  httplib::Headers headers_;
};

absl::StatusOr<std::string> ReadToken(const std::string& file) {
  if (file.empty()) return "";
  std::ifstream stream(file);
  if (!stream) return absl::NotFoundError("the token file cannot be read");
  std::string token;
  if (!(stream >> token)) return absl::InvalidArgumentError("the token file holds no token");
  return token;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> ConnectToServer(const std::string& url,
                                                         const std::string& token_file) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string token, ReadToken(token_file));
  const size_t host = url.find("://");
  const bool is_url = absl::StartsWith(url, "http://") || absl::StartsWith(url, "https://");
  const std::string plain = absl::EndsWith(url, "/") ? url.substr(0, url.size() - 1) : url;
  if (!is_url || plain.find('/', host + 3) != std::string::npos) {
    return absl::InvalidArgumentError("a server is http://HOST:PORT or https://HOST:PORT");
  }
  auto backend = std::make_unique<ServerBackend>(plain, token);
  if (!backend->is_valid()) {
    return absl::InvalidArgumentError("a server is http://HOST:PORT or https://HOST:PORT");
  }
  return backend;
}

}  // namespace repotxn::cli
