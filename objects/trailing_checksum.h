// Whether a file of Git ends in the hash of everything before: pack indexes, multi-pack-index, bitmap, commit-graph.
//
// Tells bytes that have changed since the file was written; says nothing about what was written. Cost: the file is read
// once, in pieces.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_TRAILING_CHECKSUM_H_
#define REPOTXN_OBJECTS_TRAILING_CHECKSUM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// The hash, in hex. `name` is used in errors.
//
// Errors: kDataLoss when the file does not end in its hash, detail "file"; those of the file.
absl::StatusOr<std::string> VerifyTrailingChecksum(const storage::ReadableFile& file, absl::string_view name,
                                                   ObjectFormat format);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_TRAILING_CHECKSUM_H_
