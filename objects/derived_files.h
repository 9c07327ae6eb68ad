// Has stock Git write commit-graph, multi-pack-index and bitmap of a repository, beside it, and tells what has to be
// replaced in it. The repository itself is only read.
//
// An object snapshot becomes an object directory of its own: the packs named are hard-linked into it, directories of loose
// objects are symbolic links, and it borrows what the repository borrows. So Git sees exactly these packs, and what it
// writes lies apart.
//
//   commit-graph      A chain of layers. The layers that are there, when all of them are sound, are linked in first, so that Git
//                     adds one, merged with those that are not much larger. Otherwise it is written from nothing.
//   multi-pack-index  Kept when it is sound, names exactly these packs, and has the bitmap that is wanted; else written from
//                     nothing. There is none for a single pack, but to give it a bitmap.
//
// Sound: the file ends in its checksum, and has the name and the header that it should have. What Git wrote is compared
// with what is there, by name and bytes; files that are there and belong to nothing any more are to be removed.
//
// Durability: nothing is synced; the caller stages the files as payload. If we die here, what was made lies in staging/,
// which is wiped at open.
//
// Thread-safe: each call is independent; one call for one snapshot.
#ifndef REPOTXN_OBJECTS_DERIVED_FILES_H_
#define REPOTXN_OBJECTS_DERIVED_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"

namespace repotxn::objects {

struct DerivedFilesRequest {
  ObjectFormat format = ObjectFormat::kSha1;
  // Object snapshot (objects/quarantine.h) of the repository; its objects/ is changed and used up.
  storage::StorePath snapshot;
  // The repository (…/<id>.git).
  storage::StorePath live;
  // Packs of the repository ("pack-<hex>").
  std::vector<std::string> packs;
  // Object directories that it borrows from, first level.
  std::vector<storage::StorePath> alternates;
  // Values of refs; tags are peeled, and what is no commit is left out.
  std::vector<ObjectId> tips;
  // False: there shall be none.
  bool has_commit_graph = true;
  bool has_bitmap = true;
  // The graph holds all commits that are packed, not only those that tips reach.
  bool has_all_commits = false;
  // Wall-clock bound of each child.
  absl::Duration timeout = absl::Hours(1);
  // Descriptor of the store's LOCK for the children; -1: none.
  int lock_fd = -1;
  std::string program = "git";
};

struct DerivedChange {
  std::string path;           // in the repository
  storage::StorePath source;  // the new file
  bool is_removal = false;
};

struct DerivedFiles {
  std::vector<DerivedChange> changes;
  bool has_commit_graph = false, has_multi_pack_index = false, has_bitmap = false;  // afterwards
};

// Errors
//   kDataLoss            a pack or an object is damaged or missing; detail "stderr".
//   kResourceExhausted, kDeadlineExceeded, kUnavailable  no space or process; the timeout passed; a child was killed.
absl::StatusOr<DerivedFiles> WriteDerivedFiles(storage::FileSystem& fs, const DerivedFilesRequest& request);

// Derived files that are in the repository `live`, relative to it, ascending.
absl::StatusOr<std::vector<std::string>> ListDerivedFiles(storage::FileSystem& fs, const storage::StorePath& live);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_DERIVED_FILES_H_
