// Builds loose objects, packs and indexes in memory, from the format descriptions alone, so that
// readers are tested against a second opinion and damage can be placed exactly.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_OBJECTS_PACK_BUILDER_H_
#define REPOTXN_TESTS_OBJECTS_PACK_BUILDER_H_

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "objects/object_type.h"
#include "storage/object_id.h"

namespace repotxn::testing {

inline std::string HashOf(const std::string& bytes, ObjectFormat format) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const EVP_MD* algorithm = format == ObjectFormat::kSha1 ? EVP_sha1() : EVP_sha256();
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, algorithm, nullptr) != 1) std::abort();
  return std::string(reinterpret_cast<const char*>(digest), size);
}

inline std::string Deflated(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(&out[0]), &size,
               reinterpret_cast<const Bytef*>(bytes.data()),
               static_cast<uLong>(bytes.size())) != Z_OK) {
    std::abort();
  }
  out.resize(size);
  return out;
}

inline std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift & 0xff));
  }
  return out;
}

inline std::string LooseText(objects::ObjectType type, const std::string& content) {
  const absl::string_view name = objects::ObjectTypeName(type);
  std::string text(name.data(), name.size());
  text += " " + std::to_string(content.size());
  text.push_back('\0');
  return text + content;
}

inline ObjectId OidOf(objects::ObjectType type, const std::string& content, ObjectFormat format) {
  return *ObjectId::FromBytes(HashOf(LooseText(type, content), format));
}

// An index with the given rows, sorted here. Offsets of 2^31 and more go to the large table.
inline std::string BuildIndex(std::vector<std::pair<ObjectId, int64_t>> rows, ObjectFormat format,
                              const std::string& pack_checksum) {
  std::sort(rows.begin(), rows.end());
  std::string out = "\377tOc" + BigEndian(2, 4);
  for (unsigned bucket = 0; bucket < 256; ++bucket) {
    const auto n = std::count_if(rows.begin(), rows.end(), [bucket](const auto& row) {
      return static_cast<uint8_t>(row.first.bytes()[0]) <= bucket;
    });
    out += BigEndian(static_cast<uint64_t>(n), 4);
  }
  for (const auto& [oid, offset] : rows) out.append(oid.bytes().data(), oid.bytes().size());
  out.append(4 * rows.size(), '\0');
  std::string large;
  for (const auto& [oid, offset] : rows) {
    if (offset < int64_t{1} << 31) {
      out += BigEndian(static_cast<uint64_t>(offset), 4);
    } else {
      out += BigEndian(0x80000000u + large.size() / 8, 4);
      large += BigEndian(static_cast<uint64_t>(offset), 8);
    }
  }
  out += large + pack_checksum;
  return out + HashOf(out, format);
}

// Builds one pack, entry by entry.
class PackBuilder {
 public:
  explicit PackBuilder(ObjectFormat format) : format_(format) {}

  // Adds an object stored whole; returns its id.
  ObjectId Add(objects::ObjectType type, const std::string& content) {
    const ObjectId oid = OidOf(type, content, format_);
    rows_.emplace_back(oid, Append(static_cast<unsigned>(type), content.size(), "", content));
    return oid;
  }
  // Adds `delta` under the id `oid`, whose base is the entry at `base_offset`.
  void AddOffsetDelta(const ObjectId& oid, int64_t base_offset, const std::string& delta) {
    uint64_t distance = static_cast<uint64_t>(NextOffset() - base_offset);
    std::string varint(1, static_cast<char>(distance & 0x7f));
    while (distance >>= 7) varint.insert(0, 1, static_cast<char>(0x80 | (--distance & 0x7f)));
    rows_.emplace_back(oid, Append(6, delta.size(), varint, delta));
  }
  void AddIdDelta(const ObjectId& oid, const ObjectId& base, const std::string& delta) {
    const std::string id(base.bytes().data(), base.bytes().size());
    rows_.emplace_back(oid, Append(7, delta.size(), id, delta));
  }

  int64_t NextOffset() const { return static_cast<int64_t>(12 + entries_.size()); }
  std::string Pack() const {
    const std::string body = "PACK" + BigEndian(2, 4) + BigEndian(rows_.size(), 4) + entries_;
    return body + HashOf(body, format_);
  }
  std::string Index() const { return BuildIndex(rows_, format_, HashOf(Pack(), format_)); }

 private:
  int64_t Append(unsigned kind, uint64_t size, const std::string& base, const std::string& data) {
    const int64_t offset = NextOffset();
    unsigned byte = kind << 4 | static_cast<unsigned>(size & 0xf);
    for (size >>= 4; size != 0; size >>= 7) {
      entries_.push_back(static_cast<char>(0x80 | byte));
      byte = static_cast<unsigned>(size & 0x7f);
    }
    entries_.push_back(static_cast<char>(byte));
    entries_ += base + Deflated(data);
    return offset;
  }

  const ObjectFormat format_;
  std::string entries_;
  std::vector<std::pair<ObjectId, int64_t>> rows_;
};

// Delta of `base_size` bytes that copies [from, from + length) (both below 256) and then inserts
// `tail`.
inline std::string SmallDelta(size_t base_size, size_t from, size_t length,
                              const std::string& tail) {
  const auto varint = [](size_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
    out.push_back(static_cast<char>(value));
    return out;
  };
  std::string delta = varint(base_size) + varint(length + tail.size());
  delta += std::string(1, '\x91') + static_cast<char>(from) + static_cast<char>(length);
  if (!tail.empty()) delta += static_cast<char>(tail.size()) + tail;
  return delta;
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_OBJECTS_PACK_BUILDER_H_
