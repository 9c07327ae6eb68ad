// Names the four kinds of Git object and carries what a native read of one returns.
//
// Thread-compatible.
#ifndef REPOTXN_OBJECTS_OBJECT_TYPE_H_
#define REPOTXN_OBJECTS_OBJECT_TYPE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Values are those of a pack entry's type field.
enum class ObjectType : uint8_t { kCommit = 1, kTree = 2, kBlob = 3, kTag = 4 };

// "commit", "tree", "blob" or "tag", as in a loose object's header.
absl::string_view ObjectTypeName(ObjectType type);
// kInvalidArgument for any other word.
absl::StatusOr<ObjectType> ParseObjectType(absl::string_view name);

// What the header of an object says.
struct ObjectInfo {
  ObjectType type = ObjectType::kBlob;
  int64_t size = 0;  // bytes of content, inflated

  friend bool operator==(const ObjectInfo&, const ObjectInfo&) = default;
};

// A whole object. The content is not hashed again: it is what the file holds under that id.
struct ObjectContent {
  ObjectType type = ObjectType::kBlob;
  std::string content;
};

// Id of the tree without entries. Git has it compiled in: it exists in every repository without
// being stored.
ObjectId EmptyTree(ObjectFormat format);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_TYPE_H_
