// Knows whether what Git derives of a repository may be used: commit-graph, multi-pack-index, bitmaps.
//
// Git trusts these files: a damaged multi-pack-index or bitmap ends the child that meets it, a damaged commit-graph makes
// it answer wrongly. They can be made anew and are never worth a failed read, so a child is told to do without them
// while one is damaged. Each file is read once, for the checksum at its end, and again when size, inode or time
// say that it is another.
//
// Thread-safe. Mutex: rank kLeaf, not held while files are read.
//
// Lifetime: the file system must outlive the watch.
#ifndef REPOTXN_OBJECTS_DERIVED_WATCH_H_
#define REPOTXN_OBJECTS_DERIVED_WATCH_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"
#include "storage/sync.h"

namespace repotxn::objects {

class DerivedWatch {
 public:
  explicit DerivedWatch(storage::FileSystem* fs) : fs_(fs) {}

  // Settings (`key=value`, for GitCommand::settings) that a child needs now that reads the object directory `objects` and
  // what that borrows from; none when all is well. A file that cannot be read counts as damaged.
  //
  // Cost: two directory listings and a stat of each derived file a level of the chain; more when one is new.
  std::vector<std::string> SettingsFor(const storage::StorePath& objects, ObjectFormat format) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What a file was when it was read.
  struct Verdict {
    storage::FileInfo info;
    bool is_sound = false;
    std::vector<std::string> packs = {};  // that a multi-pack-index names
  };

  absl::StatusOr<bool> AreSound(const storage::StorePath& objects, ObjectFormat format);
  absl::StatusOr<Verdict> VerdictOn(const storage::StorePath& path, ObjectFormat format) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Verdict> Judge(const storage::StorePath& path, ObjectFormat format);
  // Whether the layers are there that a chain names.
  absl::StatusOr<bool> IsChainSound(const storage::StorePath& repository);

  storage::FileSystem* const fs_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::flat_hash_map<storage::StorePath, Verdict> verdicts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_DERIVED_WATCH_H_
