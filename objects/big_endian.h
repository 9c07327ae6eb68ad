// Decodes the big-endian numbers of pack files and indexes.
//
// Thread-compatible.
#ifndef REPOTXN_OBJECTS_BIG_ENDIAN_H_
#define REPOTXN_OBJECTS_BIG_ENDIAN_H_

#include <cstdint>
#include <string>

namespace repotxn::objects {

// `bytes` holds at least four.
inline uint32_t LoadBigEndian32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// `bytes` holds at least eight.
inline void AppendBigEndian32(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift & 0xff));
}
inline uint64_t LoadBigEndian64(const char* bytes) {
  return uint64_t{LoadBigEndian32(bytes)} << 32 | LoadBigEndian32(bytes + 4);
}

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_BIG_ENDIAN_H_
