// Takes bare repositories that stock Git made into a store, and gives them back.
//
// The directory lies below the store's root (in a directory of the operator's own, such as `incoming/`), on the same file
// system, and nobody writes to it any more: an adoption is a rename, whatever its size. In order
//   1. Survey: the directory is listed and judged (txn/adoption_plan.h), its refs are read, each object is hashed
//      (`git fsck`) and its closure walked (objects/closure_walk.h). Nothing is changed; a dry run ends here.
//   2. Staging: when packs hold objects with missing children, the others are copied to a new pack; a pack without a
//      reverse index gets one. They are payload files, as of any transaction.
//   3. Commit: one transaction registers path, id and links. It names the directory and what is set aside. If we die
//      before it is durable, the repository is untouched at its place.
//   4. Directory work (txn/adopted_directory.cc): the rename, and the moves to lost-found/adopt-<id>/. If we die before
//      or inside, recovery does it again: the repository is adopted whole.
//   5. A checkpoint, then the answer.
// So at each moment the repository is whole, at one place or the other.
//
// Objects with missing children. Git leaves them behind, unreachable, and a later push could name them. They are set
// aside with all that stands above them; when a ref reaches one the repository is damaged and refused.
//
// Alternates. Repositories that borrow from one another are adopted by one transaction (AdoptTree()), so that no link
// dangles in between; one that borrows from an adopted repository becomes its member; any other is refused. Who borrows
// from outside the tree cannot be seen: adopt them together.
//
// Thread-safe, as Store.
#ifndef REPOTXN_TXN_ADOPTION_H_
#define REPOTXN_TXN_ADOPTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "objects/closure_walk.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "txn/adoption_plan.h"
#include "wal/lsn.h"

namespace repotxn::txn {

struct AdoptOptions {
  // Plans and reports; changes nothing.
  bool dry_run = false;
  // Locks younger than this are somebody's.
  absl::Duration lock_age_min = absl::Hours(1);
  // Hashes every object (`git fsck`). Off, damage at rest is taken over unseen.
  bool verify_content = true;
  // Wall-clock bound of each Git child.
  absl::Duration timeout = absl::Hours(6);
};

// What an adoption found and did, or would do.
struct AdoptionReport {
  std::string source;  // below the store's root
  std::string path;
  RepositoryId id;     // zero: not adopted
  wal::Lsn lsn;
  ObjectFormat format = ObjectFormat::kSha1;
  int64_t objects = 0;
  int64_t refs = 0;
  // Moved to `trash`; sorted by path.
  std::vector<AdoptionFinding> set_aside;
  std::string trash;
  // Why it is not adopted; empty when it was, or could be.
  std::vector<AdoptionFinding> refusals;
  // Holes, and all objects above them, which are set aside.
  std::vector<objects::MissingLink> missing_links;
  std::vector<ObjectId> open_objects;
  // Directories that it borrows from, below the store's root, in order.
  std::vector<std::string> borrows_from;

  bool is_adopted() const { return !id.IsZero(); }
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ADOPTION_H_
