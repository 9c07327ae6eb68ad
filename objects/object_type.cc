#include "objects/object_type.h"

#include "absl/strings/str_cat.h"
#include "storage/check.h"

namespace repotxn::objects {

absl::string_view ObjectTypeName(ObjectType type) {
  switch (type) {
    case ObjectType::kCommit:
      return "commit";
    case ObjectType::kTree:
      return "tree";
    case ObjectType::kBlob:
      return "blob";
    case ObjectType::kTag:
      return "tag";
  }
  return "unknown";
}

absl::StatusOr<ObjectType> ParseObjectType(absl::string_view name) {
  for (ObjectType type :
       {ObjectType::kCommit, ObjectType::kTree, ObjectType::kBlob, ObjectType::kTag}) {
    if (name == ObjectTypeName(type)) return type;
  }
  return absl::InvalidArgumentError("unknown object type");
}

ObjectId EmptyTree(ObjectFormat format) {
  const absl::string_view hex =
      format == ObjectFormat::kSha1
          ? "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
          : "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
  const auto oid = ObjectId::FromHex(hex, format);
  REPOTXN_DCHECK(oid.ok());
  return oid.ok() ? *oid : ObjectId();
}

}  // namespace repotxn::objects
