// Writes what is kept of a repository's objects into two new packs: what is reached, and a cruft pack of what is not; and
// says what goes.
//
// Steps
//   1  `git rev-list --objects` walks from the tips. What it meets among the repository's own objects, and is in no alternate,
//      is *reachable*. A tip that an alternate has needs no walk: closure holds there.
//   2  The other own objects are *unreachable*; what an alternate has too is given up (*borrowed*). Each has a time: that of
//      the youngest pack that holds it, by the pack's modification time, which is its entry's commit time, or of a cruft
//      pack by its list of times (objects/cruft_times.h).
//   3  Those with a time before the cut-off *expire*, unless one that does not names them, directly or not: a second walk, from all
//      that are young enough.
//   4  `git pack-objects | git index-pack` writes both packs, hashed anew; the cruft pack gets its times.
//   5  Proof, when anything goes: every object in the two packs is read once more, and none names what goes. Walks are trusted for
//      speed, this for safety.
//
// The commit-graph is off: it hides holes. Memory: 44 bytes an own object, and what rev-list needs.
//
// Durability: nothing is synced; the caller stages the packs as payload. If we die here, what was made lies in staging/, which
// is wiped at open.
//
// Thread-safe: each call is independent; one call for one snapshot at a time.
#ifndef REPOTXN_OBJECTS_REPACK_H_
#define REPOTXN_OBJECTS_REPACK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "objects/borrowed_objects.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

struct RepackRequest {
  // Object snapshot (objects/quarantine.h) of the repository: Git runs there, and the packs are written to its objects/pack.
  storage::StorePath snapshot;
  // The repository's own object directory (…/<id>.git/objects), and its packs ("pack-<hex>"): all that it has, and no loose
  // objects.
  storage::StorePath objects;
  std::vector<std::string> packs;
  // Object directories that it borrows from, its whole chain.
  std::vector<storage::StorePath> alternates;
  // Must stay with all they name: values of refs, and what borrowers name.
  std::vector<ObjectId> tips;
  // Unreachable objects with a time before it expire; InfinitePast: none.
  absl::Time expire_before = absl::InfinitePast();
};

struct RepackedObjects {
  // Stems of new packs in <snapshot>/objects/pack; empty: there is none of this kind, or the old one serves.
  std::string reachable_pack, cruft_pack;
  // Packs of the request that stay, since they hold just what a new one would.
  std::vector<std::string> kept_packs;
  int64_t reachable = 0, cruft = 0;
  std::vector<ObjectId> borrowed;  // sorted
  std::vector<ObjectId> expired;   // sorted
};

// Errors
//   kDataLoss            an object is missing or damaged; detail "oid", "stderr".
//   kInternal            what stays names what was to go: nothing is to be removed.
//   kResourceExhausted, kDeadlineExceeded  no space or process; the timeout passed.
// After an error what was made lies in the snapshot, and goes with it.
absl::StatusOr<RepackedObjects> RepackObjects(storage::FileSystem& fs, const RepackRequest& request,
                                              const ObjectPackingOptions& options);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_REPACK_H_
