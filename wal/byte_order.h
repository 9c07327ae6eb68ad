// Little-endian integers in byte strings, for the formats of this folder.
//
// Callers check lengths; the functions assert them. Thread-safe (pure functions).
#ifndef REPOTXN_WAL_BYTE_ORDER_H_
#define REPOTXN_WAL_BYTE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/check.h"

namespace repotxn::wal {

// Writes the low `bytes` bytes of `value` at `out`.
inline void StoreLittle(uint64_t value, size_t bytes, char* out) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(value >> (8 * i) & 0xff);
}
inline uint64_t LoadLittle(absl::string_view in, size_t offset, size_t bytes) {
  REPOTXN_DCHECK(bytes <= 8 && offset + bytes <= in.size());
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(in[offset + i])) << (8 * i);
  }
  return value;
}
inline uint64_t Load64(absl::string_view in, size_t offset) { return LoadLittle(in, offset, 8); }
inline uint32_t Load32(absl::string_view in, size_t offset) {
  return static_cast<uint32_t>(LoadLittle(in, offset, 4));
}
inline void AppendLittle(uint64_t value, size_t bytes, std::string* out) {
  char buffer[8];
  StoreLittle(value, bytes, buffer);
  out->append(buffer, bytes);
}
inline void Append64(uint64_t value, std::string* out) { AppendLittle(value, 8, out); }
inline void Append32(uint32_t value, std::string* out) { AppendLittle(value, 4, out); }
inline void AppendBytes(absl::string_view bytes, std::string* out) {
  out->append(bytes.data(), bytes.size());
}
// Whether [begin, end) holds only zeros; an end behind the string counts as its end.
inline bool IsZeroFilled(absl::string_view in, size_t begin, size_t end) {
  for (size_t i = begin; i < end && i < in.size(); ++i) {
    if (in[i] != 0) return false;
  }
  return true;
}

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_BYTE_ORDER_H_
