// Reads natively what the objects of one pack name.
//
// For packs that are small or rarely read: one object is inflated after another, deltas and all. Whole repositories are for
// ScanLinks() (objects/object_links.h), which has Git read them.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_PACK_LINKS_H_
#define REPOTXN_OBJECTS_PACK_LINKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "objects/object_links.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Calls `visit` with each commit, tree and tag of the pack `name` ("pack-…") in `directory` (objects/pack), and its links.
//
// Errors: kNotFound without the pack; kDataLoss damage; kOutOfRange an object of more than 256 MiB; those of `visit`.
absl::Status VisitPackLinks(storage::FileSystem& fs, const storage::StorePath& directory, absl::string_view name,
                            ObjectFormat format, const ShallowCommits& shallow, const LinkVisitor& visit);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_LINKS_H_
