// The file beside a cruft pack that says since when each of its objects is unreachable, or rather: when it was added last.
//
// Format (gitformat-pack, "pack-*.mtimes files have the format"), all numbers big endian
//   4 bytes   "MTME"
//   4 bytes   version, 1
//   4 bytes   hash function: 1 SHA-1, 2 SHA-256
//   4 bytes   seconds since 1970, one for each object of the pack, in the order of its index (ascending ids)
//   hash      checksum of the pack
//   hash      checksum of all that stands before
//
// Thread-safe (pure).
#ifndef REPOTXN_OBJECTS_CRUFT_TIMES_H_
#define REPOTXN_OBJECTS_CRUFT_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// `pack_checksum`: raw bytes, as long as the format's ids.
std::string FormatCruftTimes(const std::vector<uint32_t>& times, absl::string_view pack_checksum, ObjectFormat format);

// How many times a file of this size holds, when it is sound.
int64_t CruftTimesCount(absl::string_view bytes, ObjectFormat format);

// kDataLoss when `bytes` breaks a rule above, or holds not `count` times.
absl::StatusOr<std::vector<uint32_t>> ParseCruftTimes(absl::string_view bytes, int64_t count, ObjectFormat format);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_CRUFT_TIMES_H_
