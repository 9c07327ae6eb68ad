// Git object ids of both formats, as a value.
//
// Lives below refs/ and objects/ because both need it and neither may include the other; it carries bytes and knows
// nothing of objects.
//
// Thread-compatible.
#ifndef REPOTXN_STORAGE_OBJECT_ID_H_
#define REPOTXN_STORAGE_OBJECT_ID_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn {

// Hash of a repository's objects; fixed at its creation. Values are stored in the log.
enum class ObjectFormat : uint8_t { kSha1 = 1, kSha256 = 2 };

// Bytes of an id: 20 or 32.
constexpr size_t ObjectIdBytes(ObjectFormat format) { return format == ObjectFormat::kSha1 ? 20 : 32; }
// "sha1" or "sha256", as in `extensions.objectFormat` and the wire protocol.
absl::string_view ObjectFormatName(ObjectFormat format);
absl::StatusOr<ObjectFormat> ParseObjectFormat(absl::string_view name);

// An object id. The zero id of a format means "must not exist" / "delete". A default-constructed id is *no* id
// (size 0), distinct from both zero ids.
class ObjectId {
 public:
  constexpr ObjectId() = default;
  static ObjectId Zero(ObjectFormat format);
  // kInvalidArgument unless 20 or 32 bytes.
  static absl::StatusOr<ObjectId> FromBytes(absl::string_view bytes);
  // kInvalidArgument unless exactly the format's number of hex digits.
  static absl::StatusOr<ObjectId> FromHex(absl::string_view hex, ObjectFormat format);
  // Format by length: 40 or 64 hex digits.
  static absl::StatusOr<ObjectId> FromHex(absl::string_view hex);

  absl::string_view bytes() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes_.data()), size_);
  }
  std::string ToHex() const;
  bool empty() const { return size_ == 0; }
  bool IsZero() const;
  ObjectFormat format() const { return size_ == 32 ? ObjectFormat::kSha256 : ObjectFormat::kSha1; }

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ObjectId& id) {
    return H::combine(std::move(h), id.bytes());
  }

 private:
  std::array<uint8_t, 32> bytes_{};
  uint8_t size_ = 0;
};

}  // namespace repotxn

#endif  // REPOTXN_STORAGE_OBJECT_ID_H_
