// Makes the object snapshot in which index-pack runs, and lists what it left there.
//
// An object snapshot is a directory in staging that Git takes for a repository without refs: HEAD,
// config, empty refs/, objects/pack, and objects/info/alternates with one absolute line naming the
// live object directory, through which its chain is followed. `shallow` comes along when the live
// repository has it, since index-pack then takes parents of shallow commits for absent. Its own
// objects/ is the quarantine. Making it costs the same at any size of the repository: no ref and no
// object is touched.
//
// For a repository that the same transaction creates there is nothing live: the line is left out.
//
// Thread-safe (no state); one owner for one directory.
#ifndef REPOTXN_OBJECTS_QUARANTINE_H_
#define REPOTXN_OBJECTS_QUARANTINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"

namespace repotxn::objects {

struct ObjectSnapshotOptions {
  ObjectFormat format = ObjectFormat::kSha1;
  // Directory of the live repository (…/<id>.git); none for one that the transaction creates.
  std::optional<storage::StorePath> live_repository = std::nullopt;
  // Content of `shallow`; unset: copied from the live repository when it has one.
  std::optional<std::string> shallow = std::nullopt;
};

// Makes the object snapshot `directory`; its parent exists.
//
// Errors: kAlreadyExists when it is there; kUnimplemented when the tree is on no disk and there is
// a live repository; else those of the file system. Durability: none, staging is wiped at open.
absl::Status MakeObjectSnapshot(storage::FileSystem& fs, const storage::StorePath& directory,
                                const ObjectSnapshotOptions& options);

// One finished pack of a quarantine.
struct StagedPack {
  std::string name;  // stem: "pack-<hex>"
  // Its files in the order in which they are linked into an object directory: .pack, .rev and
  // others, .idx last.
  std::vector<storage::StorePath> files;
};

// Packs below `directory`/objects/pack that have both .pack and .idx, by name. Temporary and
// unfinished files are left out.
absl::StatusOr<std::vector<StagedPack>> ListStagedPacks(storage::FileSystem& fs,
                                                        const storage::StorePath& directory);

// Loose objects below `directory`/objects, by name: hooks and unpack-objects leave those. Relative
// to objects/.
absl::StatusOr<std::vector<std::string>> ListStagedLooseObjects(
    storage::FileSystem& fs, const storage::StorePath& directory);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_QUARANTINE_H_
