// The one seam through which everything touches a disk.
//
// A FileSystem is a directory tree below one root; paths are StorePath and never leave it. The POSIX implementation
// opens beneath the root without following symlinks (openat2); tests/support has an in-memory twin that can be cloned
// as after a crash, and a wrapper that injects faults.
//
// Durability model, the same for every implementation and what crash tests assume:
//   * file data is durable only after Sync() on the file (or SyncFile on its path, or SyncAll);
//   * a name (create, link, rename, remove, mkdir) is durable only after SyncDirectory on the directory that holds it
//     (or SyncAll); a rename is atomic: old or new, never half;
//   * syncing a file does not make its name durable, syncing a directory does not make file contents durable.
//
// Errors, for every call: errno is translated at the call site (storage/errno_status.h) with operation and StorePath,
// never the absolute path. kNotFound ENOENT; kAlreadyExists EEXIST; kResourceExhausted ENOSPC EDQUOT EMFILE ENFILE
// EMLINK; kFailedPrecondition ENOTEMPTY ENOTDIR EISDIR EXDEV; kInvalidArgument ELOOP (a symlink in the way) ENAMETOOLONG;
// kPermissionDenied EACCES EPERM EROFS; everything else kUnavailable. EINTR and short transfers are handled inside.
// A failed Sync*() is never followed by a second one that is believed: callers stop (poison).
//
// Thread-safe, all of them. WritableFile is externally synchronised by its owner.
#ifndef REPOTXN_STORAGE_FILE_SYSTEM_H_
#define REPOTXN_STORAGE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/store_path.h"

namespace repotxn::storage {

enum class FileKind : uint8_t { kRegular, kDirectory, kSymlink, kOther };

// What lstat tells. Symlinks are never followed.
struct FileInfo {
  FileKind kind = FileKind::kOther;
  int64_t size = 0;        // bytes
  uint32_t mode = 0;       // permission bits only
  int64_t link_count = 0;
  uint64_t inode = 0;
  absl::Time modified;
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kOther;

  friend bool operator==(const DirectoryEntry&, const DirectoryEntry&) = default;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Reads up to out.size() bytes at `offset`; returns the number read, less only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const = 0;
  virtual absl::StatusOr<int64_t> Size() const = 0;
};

class WritableFile {
 public:
  // A destructor without Close() closes and drops errors.
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view data) = 0;
  virtual absl::Status WriteAt(int64_t offset, absl::string_view data) = 0;
  virtual absl::Status Truncate(int64_t size) = 0;
  virtual absl::StatusOr<int64_t> Size() const = 0;
  // Makes the content durable (fdatasync). Not the name: see SyncDirectory.
  virtual absl::Status Sync() = 0;
  virtual absl::Status Close() = 0;
};

enum class OpenMode : uint8_t {
  kCreateNew,       // kAlreadyExists when there
  kCreateTruncate,  // new or emptied
  kExisting,        // kNotFound when absent; content kept, Append() goes to the end
  kCreateOrKeep,    // new, or content kept
};

// An exclusive lock on a file, held until destroyed or the process (and every child that inherited it) is gone.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Descriptor that children may inherit to keep the lock; -1 where there is none (in-memory).
  virtual int descriptor() const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const StorePath& path) = 0;
  // The same, but what the page cache holds is not trusted: reads come from the device. For a log whose sync failed.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenPastCache(const StorePath& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWrite(const StorePath& path, OpenMode mode,
                                                                     uint32_t permissions = 0644) = 0;
  virtual absl::StatusOr<FileInfo> Stat(const StorePath& path) = 0;
  // Entries without "." and "..", sorted by name.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(const StorePath& path) = 0;

  virtual absl::Status MakeDirectory(const StorePath& path, uint32_t permissions = 0755) = 0;
  // Removes a file, symlink or other non-directory.
  virtual absl::Status Remove(const StorePath& path) = 0;
  virtual absl::Status RemoveDirectory(const StorePath& path) = 0;
  // Replaces `to` when it exists (files; a directory only replaces an empty directory).
  virtual absl::Status Rename(const StorePath& from, const StorePath& to) = 0;
  // Hard link; never follows a symlink at `from`. kAlreadyExists when `to` is there.
  virtual absl::Status Link(const StorePath& from, const StorePath& to) = 0;
  // `target` is stored as it is (relative text), not interpreted.
  virtual absl::Status Symlink(absl::string_view target, const StorePath& path) = 0;
  virtual absl::StatusOr<std::string> ReadLink(const StorePath& path) = 0;
  virtual absl::Status SetModified(const StorePath& path, absl::Time time) = 0;
  virtual absl::Status SetPermissions(const StorePath& path, uint32_t permissions) = 0;

  virtual absl::Status SyncFile(const StorePath& path) = 0;
  virtual absl::Status SyncDirectory(const StorePath& path) = 0;
  // Makes everything in the tree durable (syncfs on a descriptor held since the file system was opened).
  virtual absl::Status SyncAll() = 0;

  // kUnavailable when somebody else holds it. The content of the file is set to `holder_note` (pid, for people).
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const StorePath& path, absl::string_view holder_note) = 0;
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;
  // Absolute path for a child process; kUnimplemented where the tree is not on a real disk.
  virtual absl::StatusOr<std::string> AbsolutePath(const StorePath& path) = 0;
};

// Whole small files and trees, composed of the calls above (storage/file_util.cc).

// kOutOfRange when larger than `bytes_max`.
absl::StatusOr<std::string> ReadFile(FileSystem& fs, const StorePath& path, int64_t bytes_max = 1 << 30);
// Creates or truncates; not synced.
absl::Status WriteFile(FileSystem& fs, const StorePath& path, absl::string_view data, uint32_t permissions = 0644);
// The same, with the file (not its directory) synced.
absl::Status WriteFileSynced(FileSystem& fs, const StorePath& path, absl::string_view data,
                             uint32_t permissions = 0644);
// Makes missing ancestors and the directory itself; what exists as a directory is fine.
absl::Status MakeDirectories(FileSystem& fs, const StorePath& path, uint32_t permissions = 0755);
// Removes whatever is at `path`, with everything below; absent is fine.
absl::Status RemoveTree(FileSystem& fs, const StorePath& path);
// Removes `path` and then each ancestor below `stop` that has become empty. Absent is fine.
absl::Status RemoveEmptyParents(FileSystem& fs, const StorePath& path, const StorePath& stop);
absl::StatusOr<bool> Exists(FileSystem& fs, const StorePath& path);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_FILE_SYSTEM_H_
