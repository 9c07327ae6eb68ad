// Refs and HEAD. A value is "absent", "ref: <name>" or an object id in hex.
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "admin/commit_reply.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

using refs::RefName;
using refs::RefUpdate;
using refs::RefValue;

constexpr size_t kUpdatesMax = 10'000;

absl::StatusOr<RefName> NameOf(const Matched& matched) {
  return RefName::Parse(absl::StrCat("refs/", matched.item));
}

Json ToJson(const RefName& name, const RefValue& value) {
  Json item;
  SetBytes(item, "name", name.text());
  SetBytes(item, "value", value.ToString());
  if (!value.peeled().empty()) item["peeled"] = value.peeled().ToHex();
  return item;
}

absl::StatusOr<std::optional<RefValue>> ExpectedFrom(const std::optional<std::string>& text) {
  if (!text) return std::optional<RefValue>();
  REPOTXN_ASSIGN_OR_RETURN(RefValue value, ParseRefValue(*text));
  return std::optional<RefValue>(std::move(value));
}

// Fields "value", "expected" and "no_deref" of an update of `name`.
absl::StatusOr<RefUpdate> ReadUpdate(RefName name, JsonFields& fields) {
  RefUpdate update{.name = std::move(name)};
  REPOTXN_ASSIGN_OR_RETURN(const std::string value, fields.String("value"));
  REPOTXN_ASSIGN_OR_RETURN(update.value, ParseRefValue(value));
  REPOTXN_ASSIGN_OR_RETURN(const auto expected, fields.OptionalString("expected"));
  REPOTXN_ASSIGN_OR_RETURN(update.expected, ExpectedFrom(expected));
  REPOTXN_ASSIGN_OR_RETURN(update.no_deref, fields.BoolOr("no_deref", false));
  return update;
}

Reply Update(const Matched& matched, const std::vector<RefUpdate>& updates) {
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, transaction));
    for (const RefUpdate& update : updates) {
      REPOTXN_RETURN_IF_ERROR(transaction.UpdateRef(id, update));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<RefValue> ParseRefValue(const std::string& text) {
  if (text == "absent") return RefValue::Absent();
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "ref: ")) {
    REPOTXN_ASSIGN_OR_RETURN(RefName target, RefName::Parse(rest));
    if (target.IsHead()) return absl::InvalidArgumentError("a symbolic ref names one below refs/");
    return RefValue::Symbolic(std::move(target));
  }
  const absl::StatusOr<ObjectId> oid = ObjectId::FromHex(text);
  if (!oid.ok()) {
    return FieldError("a value is 'absent', 'ref: NAME' or an object id", "value");
  }
  return RefValue::Object(*oid);
}

absl::StatusOr<Reply> GetHead(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const RefValue head, transaction->ReadRef(id, RefName::Head()));
  return Reply{200, ToJson(RefName::Head(), head)};
}

absl::StatusOr<Reply> SetHead(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(RefUpdate update, ReadUpdate(RefName::Head(), fields));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  update.no_deref = true;
  return Update(matched, {update});
}

absl::StatusOr<Reply> ListRefs(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const int limit, LimitOf(matched.call));
  const std::string after = QueryOr(matched.call, "after", "");
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const auto refs,
                           transaction->ListRefs(id, QueryOr(matched.call, "prefix", "")));
  Reply reply;
  Json& list = reply.body["refs"] = Json::array();
  const RefName* last = nullptr;
  for (const auto& [name, value] : refs) {
    if (name.text() <= after) continue;
    if (list.size() == static_cast<size_t>(limit)) {
      SetBytes(reply.body, "next", last->text());
      break;
    }
    list.push_back(ToJson(name, value));
    last = &name;
  }
  return reply;
}

absl::StatusOr<Reply> GetRef(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const RefName name, NameOf(matched));
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const RefValue value, transaction->ReadRef(id, name));
  if (value.is_absent()) return absl::NotFoundError("ref is absent");
  return Reply{200, ToJson(name, value)};
}

absl::StatusOr<Reply> PutRef(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(RefName name, NameOf(matched));
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const RefUpdate update, ReadUpdate(std::move(name), fields));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  return Update(matched, {update});
}

absl::StatusOr<Reply> DeleteRef(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(RefName name, NameOf(matched));
  RefUpdate update{.name = std::move(name), .value = RefValue::Absent(), .no_deref = true};
  const auto expected = matched.call.query.find("expected");
  if (expected != matched.call.query.end()) {
    REPOTXN_ASSIGN_OR_RETURN(update.expected, ParseRefValue(expected->second));
  }
  // Deleting what is not there changes nothing, and is told.
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, transaction));
    REPOTXN_ASSIGN_OR_RETURN(const RefValue found, transaction.ReadRef(id, update.name));
    if (found.is_absent() && !update.expected) return absl::NotFoundError("ref is absent");
    return transaction.UpdateRef(id, update);
  });
}

absl::StatusOr<Reply> UpdateRefs(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(std::vector<JsonFields> items, fields.Objects("updates"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  if (items.size() > kUpdatesMax) return absl::ResourceExhaustedError("too many updates at once");
  std::vector<RefUpdate> updates;
  for (JsonFields& item : items) {
    REPOTXN_ASSIGN_OR_RETURN(const std::string text, item.Bytes("name"));
    REPOTXN_ASSIGN_OR_RETURN(RefName name, RefName::Parse(text));
    REPOTXN_ASSIGN_OR_RETURN(RefUpdate update, ReadUpdate(std::move(name), item));
    REPOTXN_RETURN_IF_ERROR(item.Finish());
    updates.push_back(std::move(update));
  }
  return Update(matched, updates);
}

}  // namespace repotxn::admin
