// Checks the closure of a whole repository: that each of its objects, reachable or not, has all
// the objects it names, in the repository or its alternates.
//
// A new pack is proved against what is there already, so closure needs a closed start; `git fsck`
// looks only below what refs reach and accepts holes elsewhere. This walk takes every own object,
// packed or loose, and looks up each link among own and borrowed objects. What borrowed objects
// name is the lender's affair. Gitlinks are no links, the empty tree always exists, parents of the
// commits listed in `shallow` are no links. Presence is judged, not soundness: hashes are for
// `git fsck`.
//
// An object whose link is missing is *open*, and so is each object that names an open one: without
// all of them the rest is closed. Finding who names them costs a second walk, taken only when there
// is a hole.
//
// Thread-safe (no state). Changes nothing. The repository's configuration is to be checked before
// (CheckRepositoryConfig()), since Git children run in it; on a tree that is on no disk objects are
// read natively instead.
#ifndef REPOTXN_OBJECTS_CLOSURE_WALK_H_
#define REPOTXN_OBJECTS_CLOSURE_WALK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

struct ClosureWalkOptions {
  ObjectFormat format = ObjectFormat::kSha1;
  // Wall-clock bound of each walk.
  absl::Duration timeout = absl::Hours(6);
  // Most links that are kept to find out who names open objects, 8 bytes each.
  int64_t links_max = int64_t{64} << 20;
  // Descriptor of the store's LOCK for the children; -1: none.
  int lock_fd = -1;
  std::string program = "git";
};

// A hole: `referrer` names `missing`, which is nowhere.
struct MissingLink {
  ObjectId referrer;
  ObjectId missing;

  friend auto operator<=>(const MissingLink&, const MissingLink&) = default;
};

struct ClosureReport {
  // Own objects, one in several files counted as often.
  int64_t objects = 0;
  // All holes, sorted.
  std::vector<MissingLink> missing_links;
  // All open objects, sorted.
  std::vector<ObjectId> open_objects;

  bool is_closed() const { return open_objects.empty(); }
};

// Walks the repository directory `repository` (…/objects below it).
//
// Errors
//   kDataLoss            an object or an index is damaged; detail "oid" or "file", "stderr".
//   kInvalidArgument, kFailedPrecondition  its chain of alternates is not sound, as ResolveChain().
//   kResourceExhausted   too many loose objects, or holes in a repository with too many links.
//   kDeadlineExceeded    the timeout passed.
absl::StatusOr<ClosureReport> WalkClosure(storage::FileSystem& fs,
                                          const storage::StorePath& repository,
                                          const ClosureWalkOptions& options);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_CLOSURE_WALK_H_
