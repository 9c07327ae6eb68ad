#include "daemon/http_message.h"

#include <algorithm>
#include <memory>

#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

absl::string_view Find(const std::map<std::string, std::string>& map, absl::string_view key) {
  const auto it = map.find(std::string(key.data(), key.size()));
  return it == map.end() ? absl::string_view() : absl::string_view(it->second);
}

}  // namespace

absl::string_view HttpRequest::Header(absl::string_view name) const { return Find(headers, name); }
absl::string_view HttpRequest::Query(absl::string_view name) const { return Find(query, name); }

void ResponseWriter::Reply(int status, absl::string_view content_type, absl::string_view body,
                           const HeaderList& headers) {
  Start(status, content_type, headers);
  IgnoreBecause(Write(body), "a client that is gone needs no answer");
}

void BufferedResponse::Start(int status, absl::string_view content_type,
                             const HeaderList& headers) {
  REPOTXN_DCHECK(status_ == 0);
  status_ = status;
  content_type_ = std::string(content_type.data(), content_type.size());
  headers_ = headers;
}

absl::Status BufferedResponse::Write(absl::string_view bytes) {
  REPOTXN_DCHECK(status_ != 0);
  body_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

BodyReader TextBody(std::string text) {
  auto rest = std::make_shared<std::pair<std::string, size_t>>(std::move(text), 0);
  return [rest](absl::Span<char> out) -> absl::StatusOr<size_t> {
    const size_t size = std::min(out.size(), rest->first.size() - rest->second);
    std::copy_n(rest->first.data() + rest->second, size, out.data());
    rest->second += size;
    return size;
  };
}

}  // namespace repotxn::daemon
