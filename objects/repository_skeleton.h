// Says what a fresh bare repository consists of, and writes it.
//
//   HEAD                 "ref: <default branch>\n"
//   config               format version, bare, object format
//   objects/info/  objects/pack/  refs/heads/  refs/tags/
//
// No description, no hooks, no logs: stock Git asks for none of them. The bytes are a function of
// the format and the branch, so that replicas make the same ones.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_REPOSITORY_SKELETON_H_
#define REPOTXN_OBJECTS_REPOSITORY_SKELETON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

inline constexpr absl::string_view kDefaultBranch = "refs/heads/main";

struct SkeletonEntry {
  std::string path;  // relative to the repository
  bool is_directory = false;
  std::string content;  // of a file
};

// Parents before what they hold; the repository's own directory is not listed.
std::vector<SkeletonEntry> RepositorySkeleton(ObjectFormat format,
                                              absl::string_view default_branch = kDefaultBranch);

// Content of `config`.
std::string SkeletonConfig(ObjectFormat format);

// Makes `directory` and the skeleton in it.
//
// Errors: kAlreadyExists when `directory` is there, else those of the file system; what was made by
// then is left. Durability: with `is_synced` everything below `directory`, and its own entries; the
// caller syncs the directory that holds it. Without, nothing.
absl::Status WriteSkeleton(storage::FileSystem& fs, const storage::StorePath& directory,
                           ObjectFormat format, absl::string_view default_branch = kDefaultBranch,
                           bool is_synced = false);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_REPOSITORY_SKELETON_H_
