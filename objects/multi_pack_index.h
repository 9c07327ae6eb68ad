// Reads which packs a multi-pack-index names.
//
// Layout of version 1, numbers big-endian, h = 20 (SHA-1) or 32 (SHA-256):
//
//   offset        bytes         field
//   0             4             magic "MIDX"
//   4             1             version, 1
//   5             1             hash, 1 (SHA-1) or 2 (SHA-256)
//   6             1             number of chunks c
//   7             1             number of base files, 0
//   8             4             number of packs n
//   12            (c + 1) * 12  table: id of a chunk (4 bytes), where it begins (8); the last has id 0 and ends the others
//   ...                         chunks; of them PNAM is read here, and OIDF, OIDL, OOFF are known to be there
//   size - h      h             checksum
//
// PNAM: n names of index files, ascending, each ended by a NUL; then NULs up to a multiple of four.
//
// Valid when: (1) magic, version and hash are right and there are no base files; (2) chunks begin behind the table, none
// before the one above it, all at or before the checksum; (3) the four chunks are there, each once; (4) PNAM
// holds n names, strictly ascending, "<something>.idx" without a slash, and nothing but NULs behind them. Neither offsets
// nor the checksum are looked at (objects/trailing_checksum.h). Git reads no object for which (1) to (3) fail, and ends
// every child that tries.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_MULTI_PACK_INDEX_H_
#define REPOTXN_OBJECTS_MULTI_PACK_INDEX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Names of the packs ("pack-<hex>", no suffix), ascending. `name` is used in errors.
//
// Errors: kDataLoss when a rule above is broken, detail "file", "offset"; kUnimplemented for another version; those of the
// file.
absl::StatusOr<std::vector<std::string>> ReadPackNames(const storage::ReadableFile& file, absl::string_view name,
                                                       ObjectFormat format);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_MULTI_PACK_INDEX_H_
