// Strict reading of a JSON object that a client sent.
//
// Refused: what is no object, more than kBodyBytesMax, nesting deeper than kDepthMax, a field that
// stands there twice, a field of another type, and (Finish) a field that nobody asked for. Every
// refusal is kInvalidArgument (the size: kResourceExhausted) and names the field in its detail.
//
// Single-threaded.
#ifndef REPOTXN_ADMIN_JSON_FIELDS_H_
#define REPOTXN_ADMIN_JSON_FIELDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "admin/call.h"

namespace repotxn::admin {

class JsonFields {
 public:
  static constexpr int kDepthMax = 8;

  static absl::StatusOr<JsonFields> Parse(absl::string_view text);

  // A string that must be there.
  absl::StatusOr<std::string> String(const std::string& name);
  absl::StatusOr<std::string> StringOr(const std::string& name, const std::string& fallback);
  absl::StatusOr<std::optional<std::string>> OptionalString(const std::string& name);
  absl::StatusOr<bool> BoolOr(const std::string& name, bool fallback);
  // A boolean that must be there.
  absl::StatusOr<bool> Bool(const std::string& name);
  absl::StatusOr<std::optional<int64_t>> OptionalInteger(const std::string& name);
  // Any bytes: exactly one of `name` (text) and `name`_hex.
  absl::StatusOr<std::string> Bytes(const std::string& name);
  absl::StatusOr<std::optional<std::vector<std::string>>> OptionalStrings(const std::string& name);
  // An array of objects that must be there.
  absl::StatusOr<std::vector<JsonFields>> Objects(const std::string& name);

  // OK when every field was asked for.
  absl::Status Finish() const;

 private:
  explicit JsonFields(Json object) : object_(std::move(object)) {}
  const Json* Find(const std::string& name);

  Json object_;
  std::set<std::string> asked_;
};

// kInvalidArgument about one field or query parameter.
absl::Status FieldError(absl::string_view message, absl::string_view field);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_JSON_FIELDS_H_
