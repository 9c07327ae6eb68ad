#include "storage/object_id.h"

#include <algorithm>
#include <cstring>

#include "storage/id128.h"

namespace repotxn {
namespace {

absl::Status MalformedObjectId() { return internal::MalformedId("object id"); }

}  // namespace

absl::string_view ObjectFormatName(ObjectFormat format) {
  return format == ObjectFormat::kSha1 ? "sha1" : "sha256";
}

absl::StatusOr<ObjectFormat> ParseObjectFormat(absl::string_view name) {
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    if (name == ObjectFormatName(format)) return format;
  }
  return absl::InvalidArgumentError("unknown object format");
}

ObjectId ObjectId::Zero(ObjectFormat format) {
  ObjectId id;
  id.size_ = static_cast<uint8_t>(ObjectIdBytes(format));
  return id;
}

absl::StatusOr<ObjectId> ObjectId::FromBytes(absl::string_view bytes) {
  if (bytes.size() != ObjectIdBytes(ObjectFormat::kSha1) &&
      bytes.size() != ObjectIdBytes(ObjectFormat::kSha256)) {
    return MalformedObjectId();
  }
  ObjectId id;
  std::memcpy(id.bytes_.data(), bytes.data(), bytes.size());
  id.size_ = static_cast<uint8_t>(bytes.size());
  return id;
}

absl::StatusOr<ObjectId> ObjectId::FromHex(absl::string_view hex, ObjectFormat format) {
  ObjectId id = Zero(format);
  if (!internal::BytesOfHex(hex, id.bytes_.data(), id.size_)) return MalformedObjectId();
  return id;
}

absl::StatusOr<ObjectId> ObjectId::FromHex(absl::string_view hex) {
  const bool is_long = hex.size() == 2 * ObjectIdBytes(ObjectFormat::kSha256);
  return FromHex(hex, is_long ? ObjectFormat::kSha256 : ObjectFormat::kSha1);
}

std::string ObjectId::ToHex() const { return internal::HexOf(bytes_.data(), size_); }

bool ObjectId::IsZero() const {
  return !empty() &&
         std::all_of(bytes_.begin(), bytes_.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace repotxn
