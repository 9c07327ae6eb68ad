// Decodes the big-endian numbers of pack files and indexes.
//
// Thread-compatible.
#ifndef REPOTXN_OBJECTS_BIG_ENDIAN_H_
#define REPOTXN_OBJECTS_BIG_ENDIAN_H_

#include <cstdint>

namespace repotxn::objects {

// `bytes` holds at least four.
inline uint32_t LoadBigEndian32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// `bytes` holds at least eight.
inline uint64_t LoadBigEndian64(const char* bytes) {
  return uint64_t{LoadBigEndian32(bytes)} << 32 | LoadBigEndian32(bytes + 4);
}

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_BIG_ENDIAN_H_
