// Packs what a repository borrows from a pool that it leaves. Closure asks that every object of a repository, reachable or not, finds all it
// names; so it is not enough to copy what the refs reach. In order:
//   1. Each own object (packs and loose, condemned ones left out) is read once and its links are
//      looked up among own objects and those of the directories still borrowed from. What is found
//      in neither is a *root*, and so is each extra tip that is in neither.
//   2. `git rev-list --objects` walks from the roots; what it meets that is not kept is *borrowed*.
//      What is met in a directory still borrowed from needs nothing: its own closure holds there.
//   3. `git pack-objects | git index-pack` writes the borrowed objects as one pack, hashed anew,
//      with links checked; then each borrowed id is looked up in its index.
//
// Ids go through pipes and two files in the snapshot; memory is the indexes and one object of ours,
// and what rev-list needs for the part of the pool that it walks. The commit-graph is off: it hides
// holes.
//
// Durability: nothing is synced; the caller stages the pack as payload. If we die here, what was
// made lies in staging/, which is wiped at open.
//
// Thread-safe: each call is independent; one call for one snapshot at a time.
#ifndef REPOTXN_OBJECTS_BORROWED_OBJECTS_H_
#define REPOTXN_OBJECTS_BORROWED_OBJECTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "objects/object_packing.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

struct BorrowedObjects {
  // Object snapshot (objects/quarantine.h) of the repository: Git runs there, its chain of
  // alternates still reaches the pool, and the pack is written to its objects/pack. Objects that
  // are there already count as the repository's own.
  storage::StorePath snapshot;
  // The repository's own object directory (…/<id>.git/objects).
  storage::StorePath objects;
  // Object directories that it goes on borrowing from, first level; their own chains are followed
  // on disk.
  std::vector<storage::StorePath> still_borrowed;
  // Objects that must be there afterwards with all they name, beside what own objects name: the
  // values of refs.
  std::vector<ObjectId> tips;
};

// Writes all objects that `request` needs and would not have any more.
//
// Errors
//   kDataLoss            an own or a borrowed object is missing or damaged; detail "oid", "stderr".
//   kInvalidArgument, kFailedPrecondition  a chain of alternates is not sound, as ResolveChain().
//   kResourceExhausted, kDeadlineExceeded  no space or process; the timeout passed.
// After an error nothing is left in objects/pack that was not there before.
absl::StatusOr<PackedObjects> PackBorrowedObjects(storage::FileSystem& fs,
                                                  const BorrowedObjects& request,
                                                  const ObjectPackingOptions& options);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_BORROWED_OBJECTS_H_
