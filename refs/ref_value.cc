#include "refs/ref_value.h"

#include "absl/status/status.h"
#include "storage/check.h"

namespace repotxn::refs {
namespace {

absl::Status Malformed() { return absl::DataLossError("malformed ref value in a log entry"); }

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

}  // namespace

RefValue RefValue::Object(const ObjectId& oid, const ObjectId& peeled) {
  RefValue value;
  if (oid.empty() || oid.IsZero()) return value;
  REPOTXN_DCHECK(peeled.empty() || (peeled.format() == oid.format() && !peeled.IsZero()));
  value.value_ = Ids{oid, peeled};
  return value;
}

RefValue RefValue::Symbolic(RefName target) {
  REPOTXN_DCHECK(!target.IsHead());
  RefValue value;
  value.value_ = std::move(target);
  return value;
}

bool RefValue::SameAs(const RefValue& other) const {
  if (is_object() && other.is_object()) return oid() == other.oid();
  return value_ == other.value_;
}

std::string RefValue::ToString() const {
  if (is_object()) return oid().ToHex();
  if (is_symbolic()) return "ref: " + target().text();
  return "absent";
}

wal::LoggedRefValue RefValue::ToLogged() const {
  wal::LoggedRefValue logged;
  if (is_object()) {
    logged.kind = wal::LoggedRefValue::Kind::kObject;
    const Ids& ids = std::get<Ids>(value_);
    logged.bytes = Text(ids.oid.bytes());
    logged.peeled = Text(ids.peeled.bytes());
  } else if (is_symbolic()) {
    logged.kind = wal::LoggedRefValue::Kind::kSymbolic;
    logged.bytes = target().text();
  }
  return logged;
}

absl::StatusOr<RefValue> RefValue::FromLogged(const wal::LoggedRefValue& logged) {
  switch (logged.kind) {
    case wal::LoggedRefValue::Kind::kAbsent:
      if (!logged.bytes.empty() || !logged.peeled.empty()) return Malformed();
      return RefValue();
    case wal::LoggedRefValue::Kind::kObject: {
      const auto oid = ObjectId::FromBytes(View(logged.bytes));
      if (!oid.ok() || oid->IsZero()) return Malformed();
      if (logged.peeled.empty()) return Object(*oid);
      const auto peeled = ObjectId::FromBytes(View(logged.peeled));
      if (!peeled.ok() || peeled->IsZero() || peeled->format() != oid->format()) {
        return Malformed();
      }
      return Object(*oid, *peeled);
    }
    case wal::LoggedRefValue::Kind::kSymbolic: {
      auto target = RefName::Parse(View(logged.bytes));
      if (!target.ok() || target->IsHead() || !logged.peeled.empty()) return Malformed();
      return Symbolic(std::move(target).value());
    }
  }
  return Malformed();
}

}  // namespace repotxn::refs
