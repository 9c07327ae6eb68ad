#include "admin/json_fields.h"

#include "absl/strings/escaping.h"
#include "objects/error_detail.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

// Watches a parse: fields that stand in one object twice, and depth.
class Watch {
 public:
  bool See(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > JsonFields::kDepthMax) fault_ = FieldError("the body is nested too deeply", "");
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string name = parsed.get<std::string>();
      if (!open_.back().insert(name).second) fault_ = FieldError("a field stands there twice", name);
    }
    return true;
  }
  const absl::Status& fault() const { return fault_; }

 private:
  std::vector<std::set<std::string>> open_;
  absl::Status fault_;
};

absl::StatusOr<std::string> AsString(const Json& value, const std::string& name) {
  if (!value.is_string()) return FieldError("a field is no string", name);
  return value.get<std::string>();
}

}  // namespace

absl::Status FieldError(absl::string_view message, absl::string_view field) {
  const absl::Status status = absl::InvalidArgumentError(message);
  return field.empty() ? status : objects::WithDetail(status, "field", field);
}

absl::StatusOr<JsonFields> JsonFields::Parse(absl::string_view text) {
  if (text.size() > kBodyBytesMax) return absl::ResourceExhaustedError("the body is too large");
  Watch watch;
  Json value = Json::parse(
      text.begin(), text.end(),
      [&watch](int depth, Json::parse_event_t event, Json& parsed) {
        return watch.See(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  REPOTXN_RETURN_IF_ERROR(watch.fault());
  if (!value.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  return JsonFields(std::move(value));
}

const Json* JsonFields::Find(const std::string& name) {
  asked_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

absl::StatusOr<std::optional<std::string>> JsonFields::OptionalString(const std::string& name) {
  const Json* found = Find(name);
  if (found == nullptr) return std::optional<std::string>();
  REPOTXN_ASSIGN_OR_RETURN(std::string text, AsString(*found, name));
  return std::optional<std::string>(std::move(text));
}

absl::StatusOr<std::string> JsonFields::String(const std::string& name) {
  REPOTXN_ASSIGN_OR_RETURN(std::optional<std::string> text, OptionalString(name));
  if (!text) return FieldError("a field is missing", name);
  return *std::move(text);
}

absl::StatusOr<std::string> JsonFields::StringOr(const std::string& name,
                                                 const std::string& fallback) {
  REPOTXN_ASSIGN_OR_RETURN(std::optional<std::string> text, OptionalString(name));
  return std::move(text).value_or(fallback);
}

absl::StatusOr<bool> JsonFields::BoolOr(const std::string& name, bool fallback) {
  const Json* found = Find(name);
  if (found == nullptr) return fallback;
  if (!found->is_boolean()) return FieldError("a field is neither true nor false", name);
  return found->get<bool>();
}

absl::StatusOr<bool> JsonFields::Bool(const std::string& name) {
  if (Find(name) == nullptr) return FieldError("a field is missing", name);
  return BoolOr(name, false);
}

absl::StatusOr<std::optional<int64_t>> JsonFields::OptionalInteger(const std::string& name) {
  const Json* found = Find(name);
  if (found == nullptr) return std::optional<int64_t>();
  // One above the range of int64_t is kept as unsigned, and would come out negative.
  const bool fits = found->is_number_integer() && !(found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX);
  if (!fits) return FieldError("a field is no whole number", name);
  return std::optional<int64_t>(found->get<int64_t>());
}

absl::StatusOr<std::string> JsonFields::Bytes(const std::string& name) {
  REPOTXN_ASSIGN_OR_RETURN(std::optional<std::string> text, OptionalString(name));
  const std::string hex_name = name + "_hex";
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<std::string> hex, OptionalString(hex_name));
  if (text.has_value() == hex.has_value()) {
    return FieldError("a field is needed once, as text or as _hex", name);
  }
  if (text) return *std::move(text);
  if (hex->size() % 2 != 0 ||
      hex->find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return FieldError("a field is no hexadecimal text", hex_name);
  }
  return absl::HexStringToBytes(*hex);
}

absl::StatusOr<std::optional<std::vector<std::string>>> JsonFields::OptionalStrings(
    const std::string& name) {
  const Json* found = Find(name);
  if (found == nullptr) return std::optional<std::vector<std::string>>();
  if (!found->is_array()) return FieldError("a field is no array", name);
  std::vector<std::string> list;
  for (const Json& item : *found) {
    REPOTXN_ASSIGN_OR_RETURN(std::string text, AsString(item, name));
    list.push_back(std::move(text));
  }
  return std::optional<std::vector<std::string>>(std::move(list));
}

absl::StatusOr<std::vector<JsonFields>> JsonFields::Objects(const std::string& name) {
  const Json* found = Find(name);
  if (found == nullptr) return FieldError("a field is missing", name);
  if (!found->is_array()) return FieldError("a field is no array", name);
  std::vector<JsonFields> list;
  for (const Json& item : *found) {
    if (!item.is_object()) return FieldError("a field is no array of objects", name);
    list.push_back(JsonFields(item));
  }
  return list;
}

absl::Status JsonFields::Finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (asked_.count(name) == 0) return FieldError("a field is unknown", name);
  }
  return absl::OkStatus();
}

}  // namespace repotxn::admin
