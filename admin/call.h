// A request to the administration of a store, and its answer, without any transport.
//
// Values. Thread-compatible.
#ifndef REPOTXN_ADMIN_CALL_H_
#define REPOTXN_ADMIN_CALL_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace repotxn::admin {

// Keeps the order of its fields.
using Json = nlohmann::ordered_json;

struct Call {
  std::string method = "GET";                // GET, POST, PUT or DELETE
  std::string path;                          // decoded, what stands behind "/api/"
  std::map<std::string, std::string> query;  // decoded
  std::string body;                          // JSON text; empty when there is none
  std::string request_id;                    // of a write: at most 200 bytes; empty is none
  std::string actor;                         // who, for the log
  std::string origin;                        // from where, for the log
  absl::Time deadline = absl::InfiniteFuture();
};

struct Reply {
  int status = 200;  // an HTTP status
  Json body = Json::object();

  bool ok() const { return status >= 200 && status < 300; }
};

// Most bytes of a body.
inline constexpr size_t kBodyBytesMax = 4 << 20;

// Sets object[field] to `bytes`; when they are not UTF-8 to their printable form, and
// object[field + "_hex"] to all of them.
void SetBytes(Json& object, absl::string_view field, const std::string& bytes);

// `document` as text on one line or (`indent` > 0) on several, newline at the end. Never fails: what
// is not UTF-8 is replaced.
std::string JsonText(const Json& document, int indent = -1);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_CALL_H_
