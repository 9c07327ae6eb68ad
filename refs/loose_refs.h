// Loose refs: one file each, below refs/ of a repository, and HEAD.
//
// Reading is as tolerant as Git's: a missing newline, and text behind a blank or newline, are fine.
// An empty or garbled file is damage (kDataLoss): it hides a packed value from Git, so it is
// reported and never taken for an absent ref.
//
// Thread-safe: no state; as consistent as the directory is (see refs/ref_reader.h for reading
// beside a packing).
#ifndef REPOTXN_REFS_LOOSE_REFS_H_
#define REPOTXN_REFS_LOOSE_REFS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"

namespace repotxn::refs {

inline constexpr int64_t kLooseRefBytesMax = 64 << 10;

// Value of a loose file. `path` is for the error only. kDataLoss when it is no ref
// (RefFileDamageDetail).
absl::StatusOr<RefValue> ParseLooseRef(absl::string_view content, ObjectFormat format,
                                       absl::string_view path = "");

// Content of the loose file of a value that is not absent: "<hex>\n" or "ref: <target>\n".
std::string EncodeLooseRef(const RefValue& value);

// The loose file of `name` in the repository at `repository`; absent when there is none or a
// directory is in its place. kDataLoss for an empty or garbled file; otherwise the file system's
// errors.
absl::StatusOr<RefValue> ReadLooseRef(storage::FileSystem& fs, const storage::StorePath& repository,
                                      const RefName& name, ObjectFormat format);

// Something below refs/ that is no readable ref.
struct RefFault {
  std::string name;     // path inside the repository
  absl::Status status;  // kDataLoss: a damaged ref, which hides a packed one; kInvalidArgument: no
                        // ref's name
};

struct LooseRefListing {
  std::vector<NamedRef> refs;  // sorted by name
  std::vector<RefFault>
      faults;  // sorted by name; `*.lock`, other malformed names, symlinks, damaged files
};

// All loose refs whose names begin with `prefix` (any bytes; HEAD is not below refs/ and not
// listed). Only directories that can hold such names are walked; the walk is as deep as a name may
// be long. A file or directory that vanishes meanwhile is not listed. kNotFound when the walk
// begins at refs/ and there is none.
absl::StatusOr<LooseRefListing> ListLooseRefs(storage::FileSystem& fs,
                                              const storage::StorePath& repository,
                                              absl::string_view prefix, ObjectFormat format);

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_LOOSE_REFS_H_
