// What a ref holds: nothing, an object id (with the peeled id of an annotated tag), or the name of
// another ref.
//
// Value type. Thread-compatible.
#ifndef REPOTXN_REFS_REF_VALUE_H_
#define REPOTXN_REFS_REF_VALUE_H_

#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "refs/ref_name.h"
#include "storage/object_id.h"
#include "wal/operation.h"

namespace repotxn::refs {

class RefValue {
 public:
  // Absent.
  RefValue() = default;
  static RefValue Absent() { return RefValue(); }
  // Value of an update as it comes over the wire: the zero id and no id mean absent. `peeled` is
  // what an annotated tag finally names; no id for everything else.
  static RefValue Object(const ObjectId& oid, const ObjectId& peeled = ObjectId());
  // A symbolic ref. `target` lies below refs/ (REPOTXN_DCHECK); it need not exist.
  static RefValue Symbolic(RefName target);

  bool is_absent() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Ids>(value_); }
  bool is_symbolic() const { return std::holds_alternative<RefName>(value_); }

  // The id; no id when the ref is not an object ref.
  ObjectId oid() const { return is_object() ? std::get<Ids>(value_).oid : ObjectId(); }
  // The peeled id; no id when there is none or it is not known.
  ObjectId peeled() const { return is_object() ? std::get<Ids>(value_).peeled : ObjectId(); }
  // Requires is_symbolic().
  const RefName& target() const { return std::get<RefName>(value_); }

  // Equality of what the ref names; the peeled id follows from it and is not compared.
  bool SameAs(const RefValue& other) const;
  // For messages: "absent", the hex id, or "ref: <target>".
  std::string ToString() const;

  wal::LoggedRefValue ToLogged() const;
  // Judges bytes of a log entry: id lengths, the zero id, the target's name. kDataLoss when
  // malformed.
  static absl::StatusOr<RefValue> FromLogged(const wal::LoggedRefValue& logged);

  friend bool operator==(const RefValue&, const RefValue&) = default;

 private:
  struct Ids {
    ObjectId oid, peeled;
    friend bool operator==(const Ids&, const Ids&) = default;
  };
  std::variant<std::monostate, Ids, RefName> value_;
};

// A ref with its value, as listings give it.
struct NamedRef {
  RefName name;
  RefValue value;

  friend bool operator==(const NamedRef&, const NamedRef&) = default;
};

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_VALUE_H_
