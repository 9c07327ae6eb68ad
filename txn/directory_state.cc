#include "txn/directory_state.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"

namespace repotxn::txn {

bool IsUntouched(const DirectoryItem& before, const DirectoryItem& after) {
  return before.kind == after.kind && before.mode == after.mode && before.size == after.size &&
         before.inode == after.inode && before.modified == after.modified;
}

absl::StatusOr<DirectoryState> ReadDirectoryState(storage::FileSystem& fs,
                                                  const storage::StorePath& directory) {
  DirectoryState state;
  // Directories still to be listed, by path inside `directory`: no recursion, a child may nest as deep as it likes.
  std::vector<std::string> waiting = {""};
  while (!waiting.empty()) {
    const std::string at = std::move(waiting.back());
    waiting.pop_back();
    storage::StorePath listed = directory;
    if (!at.empty()) {
      REPOTXN_ASSIGN_OR_RETURN(listed, directory.Child(at));
    }
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, fs.List(listed));
    for (const storage::DirectoryEntry& entry : entries) {
      const std::string path = at.empty() ? entry.name : absl::StrCat(at, "/", entry.name);
      DirectoryItem item;
      item.kind = entry.kind;
      if (entry.kind == storage::FileKind::kDirectory) {
        waiting.push_back(path);
      } else if (entry.kind == storage::FileKind::kRegular) {
        REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath file, listed.Child(entry.name));
        REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(file));
        item = DirectoryItem{info.kind, info.mode, info.size, info.inode, info.link_count, info.modified};
      }
      state.emplace(path, item);
    }
  }
  return state;
}

}  // namespace repotxn::txn
