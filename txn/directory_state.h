// What stands in a repository's directory, by path: kinds and identities, not contents.
//
// Taken when a write snapshot has been made and again when its children have ended; the difference is what they did
// (txn/capture.h). A file that Git replaces has another inode afterwards, so the cost of both looks does not depend on
// how large the files are.
//
// Thread-compatible.
#ifndef REPOTXN_TXN_DIRECTORY_STATE_H_
#define REPOTXN_TXN_DIRECTORY_STATE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/file_system.h"
#include "storage/store_path.h"

namespace repotxn::txn {

struct DirectoryItem {
  storage::FileKind kind = storage::FileKind::kRegular;
  // Of regular files only; zero for everything else.
  uint32_t mode = 0;       // permission bits
  int64_t size = 0;        // bytes
  uint64_t inode = 0;
  int64_t link_count = 0;
  absl::Time modified;
};

// Whether two looks saw one file that nobody wrote between them. A link more or less is no difference.
bool IsUntouched(const DirectoryItem& before, const DirectoryItem& after);

// By path inside the directory, "a/b"; the directory itself is not listed.
using DirectoryState = std::map<std::string, DirectoryItem>;

// Walks the directory; symlinks are listed, never followed. Nobody changes it meanwhile.
//
// Errors: those of the file system; kInvalidArgument for a path that is longer than a store path may be.
absl::StatusOr<DirectoryState> ReadDirectoryState(storage::FileSystem& fs, const storage::StorePath& directory);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_DIRECTORY_STATE_H_
