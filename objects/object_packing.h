// Makes packs of objects that are there already, and walks what is to be packed, with Git children.
//
// Durability: nothing is synced; the caller stages packs as payload. If we die here, what was made lies in staging/, which is
// wiped at open.
//
// Thread-safe: each call is independent; one call for one snapshot at a time.
#ifndef REPOTXN_OBJECTS_OBJECT_PACKING_H_
#define REPOTXN_OBJECTS_OBJECT_PACKING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "objects/git_child.h"
#include "objects/id_file.h"
#include "objects/object_lookup.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

struct ObjectPackingOptions {
  ObjectFormat format = ObjectFormat::kSha1;
  // Wall-clock bound of each child.
  absl::Duration timeout = absl::Hours(1);
  // Unset: nothing is condemned.
  ObjectLookup::CondemnedPredicate is_condemned = nullptr;
  // Descriptor of the store's LOCK for the children; -1: none.
  int lock_fd = -1;
  std::string program = "git";
};

// A pack that was made, or none.
struct PackedObjects {
  // Stem of the files in <snapshot>/objects/pack: "pack-<hex>"; empty when there was nothing to
  // pack. The files are .pack, .idx and .rev.
  std::string pack_name;
  int64_t objects = 0;

  friend bool operator==(const PackedObjects&, const PackedObjects&) = default;
};

// Writes the objects that `ids` lists, each once, as one pack to `snapshot`'s objects/pack; `snapshot` is an object snapshot
// whose chain reaches them.
//
// Errors
//   kDataLoss            an object is missing or damaged; detail "oid", "stderr".
//   kResourceExhausted, kDeadlineExceeded  no space or process; the timeout passed.
// After an error nothing is left in objects/pack that was not there before.
absl::StatusOr<PackedObjects> PackIdFile(storage::FileSystem& fs, const storage::StorePath& snapshot, const IdFile& ids,
                                         const ObjectPackingOptions& options);
// The same for ids in memory.
absl::StatusOr<PackedObjects> PackObjects(storage::FileSystem& fs,
                                          const storage::StorePath& snapshot,
                                          const std::vector<ObjectId>& ids,
                                          const ObjectPackingOptions& options);

// Called with each object that a walk meets, and the path at which it met it first (empty for most).
using WalkVisitor = std::function<absl::Status(const ObjectId&, absl::string_view name)>;

// Walks all that `revisions` (lines as `rev-list --stdin` takes them) reach, in the repository or snapshot at the absolute path
// `snapshot`. Errors as PackIdFile(), and those of `visit`.
absl::Status WalkObjects(const std::string& snapshot, InputSource revisions, const ObjectPackingOptions& options,
                         const WalkVisitor& visit);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_PACKING_H_
