#include "admin/call.h"

#include "absl/strings/escaping.h"

namespace repotxn::admin {
namespace {

bool IsUtf8(const std::string& bytes) {
  // A strict dump refuses anything else; there is no cheaper question to ask the library.
  try {
    const std::string text = Json(bytes).dump();
    return !text.empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

}  // namespace

void SetBytes(Json& object, absl::string_view field, const std::string& bytes) {
  const std::string key(field.data(), field.size());
  object[key] = bytes;
  if (!IsUtf8(bytes)) {
    object[key + "_hex"] = absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
  }
}

std::string JsonText(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace repotxn::admin
