#include "objects/repository_skeleton.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

SkeletonEntry Directory(absl::string_view path) {
  return {std::string(path.data(), path.size()), true, ""};
}

SkeletonEntry File(absl::string_view path, std::string content) {
  return {std::string(path.data(), path.size()), false, std::move(content)};
}

}  // namespace

std::string SkeletonConfig(ObjectFormat format) {
  // Format version 1 exists for extensions; without one, version 0 is what every Git reads.
  if (format == ObjectFormat::kSha1) {
    return "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";
  }
  return "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n"
         "[extensions]\n\tobjectformat = sha256\n";
}

std::vector<SkeletonEntry> RepositorySkeleton(ObjectFormat format,
                                              absl::string_view default_branch) {
  return {
      File("HEAD", absl::StrCat("ref: ", default_branch, "\n")),
      File("config", SkeletonConfig(format)),
      Directory("objects"),
      Directory("objects/info"),
      Directory("objects/pack"),
      Directory("refs"),
      Directory("refs/heads"),
      Directory("refs/tags"),
  };
}

absl::Status WriteSkeleton(storage::FileSystem& fs, const storage::StorePath& directory,
                           ObjectFormat format, absl::string_view default_branch, bool is_synced) {
  REPOTXN_RETURN_IF_ERROR(fs.MakeDirectory(directory));
  const std::vector<SkeletonEntry> entries = RepositorySkeleton(format, default_branch);
  for (const SkeletonEntry& entry : entries) {
    const storage::StorePath path = directory / entry.path;
    if (entry.is_directory) {
      REPOTXN_RETURN_IF_ERROR(fs.MakeDirectory(path));
    } else if (is_synced) {
      REPOTXN_RETURN_IF_ERROR(storage::WriteFileSynced(fs, path, entry.content));
    } else {
      REPOTXN_RETURN_IF_ERROR(storage::WriteFile(fs, path, entry.content));
    }
  }
  if (!is_synced) return absl::OkStatus();
  // Only directories that hold names: the innermost ones are empty.
  for (const char* holder : {"objects", "refs"}) {
    REPOTXN_RETURN_IF_ERROR(fs.SyncDirectory(directory / holder));
  }
  return fs.SyncDirectory(directory);
}

}  // namespace repotxn::objects
