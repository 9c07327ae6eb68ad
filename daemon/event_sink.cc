#include "daemon/event_sink.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"

namespace repotxn::daemon {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void SetBytes(Json& object, const std::string& field, const std::string& bytes) {
  object[field] = bytes;
  // What comes back differs exactly when something had to be replaced.
  const Json back = Json::parse(Dump(Json(bytes)), nullptr, false);
  if (back != Json(bytes)) object[field + "_hex"] = absl::BytesToHexString(bytes);
}

void SetValue(Json& object, const std::string& field, const refs::RefValue& value) {
  if (value.is_absent()) {
    object[field] = nullptr;
  } else {
    SetBytes(object, field, value.ToString());
  }
}

}  // namespace

std::string EventJson(const StoreId& incarnation, const txn::ConsumedEntry& entry) {
  Json event;
  event["incarnation"] = incarnation.ToHex();
  event["lsn"] = entry.lsn.value();
  event["transaction_id"] = entry.transaction_id.ToHex();
  event["time"] = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E9SZ", entry.created_at, absl::UTCTimeZone());
  SetBytes(event, "pusher", entry.actor);
  SetBytes(event, "origin", entry.origin);
  event["push_options"] = entry.push_options;
  Json changes = Json::array();
  for (const txn::ConsumedRefChange& change : entry.ref_changes) {
    Json item;
    item["repository_id"] = change.repository.ToHex();
    item["repository"] = change.path;
    SetBytes(item, "ref", change.ref);
    SetValue(item, "old", change.old_value);
    SetValue(item, "new", change.new_value);
    changes.push_back(std::move(item));
  }
  event["changes"] = std::move(changes);
  return Dump(event);
}

}  // namespace repotxn::daemon
