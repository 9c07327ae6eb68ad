// Whole small files and trees, composed of the calls of a FileSystem.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/file_system.h"
#include "storage/status_macros.h"

namespace repotxn::storage {
namespace {

// Bytes read beyond a file's size first, to notice a file that grows.
constexpr size_t kGrowBytes = 4096;

absl::Status WriteWhole(FileSystem& fs, const StorePath& path, absl::string_view data,
                        uint32_t permissions, bool sync) {
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                           fs.OpenForWrite(path, OpenMode::kCreateTruncate, permissions));
  REPOTXN_RETURN_IF_ERROR(file->Append(data));
  if (sync) REPOTXN_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Empties `directory`, whose entries may be made or removed by nobody else.
absl::Status RemoveEntries(FileSystem& fs, const StorePath& directory) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, fs.List(directory));
  for (const DirectoryEntry& entry : entries) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, directory.Child(entry.name));
    REPOTXN_RETURN_IF_ERROR(RemoveTree(fs, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(FileSystem& fs, const StorePath& path, int64_t bytes_max) {
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, fs.OpenForRead(path));
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file->Size());
  std::string data;
  // The size is a hint: the loop ends where the file does.
  size_t chunk = static_cast<size_t>(std::min(size, bytes_max)) + 1;
  while (true) {
    const size_t old_size = data.size();
    data.resize(old_size + chunk);
    REPOTXN_ASSIGN_OR_RETURN(const size_t read,
                             file->ReadAt(static_cast<int64_t>(old_size),
                                          absl::MakeSpan(data.data() + old_size, chunk)));
    data.resize(old_size + read);
    if (static_cast<int64_t>(data.size()) > bytes_max) {
      return absl::OutOfRangeError(absl::StrCat("file is larger than ", bytes_max, " bytes"));
    }
    if (read < chunk) return data;
    chunk = kGrowBytes;
  }
}

absl::Status WriteFile(FileSystem& fs, const StorePath& path, absl::string_view data,
                       uint32_t permissions) {
  return WriteWhole(fs, path, data, permissions, /*sync=*/false);
}

absl::Status WriteFileSynced(FileSystem& fs, const StorePath& path, absl::string_view data,
                             uint32_t permissions) {
  return WriteWhole(fs, path, data, permissions, /*sync=*/true);
}

absl::Status MakeDirectories(FileSystem& fs, const StorePath& path, uint32_t permissions) {
  if (path.IsRoot()) return absl::OkStatus();
  absl::Status made = fs.MakeDirectory(path, permissions);
  if (absl::IsNotFound(made)) {
    REPOTXN_RETURN_IF_ERROR(MakeDirectories(fs, path.Parent(), permissions));
    made = fs.MakeDirectory(path, permissions);
  }
  if (!absl::IsAlreadyExists(made)) return made;
  REPOTXN_ASSIGN_OR_RETURN(const FileInfo info, fs.Stat(path));
  if (info.kind == FileKind::kDirectory) return absl::OkStatus();
  return absl::FailedPreconditionError("something that is no directory stands in the way");
}

absl::Status RemoveTree(FileSystem& fs, const StorePath& path) {
  const absl::StatusOr<FileInfo> info = fs.Stat(path);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(info.status());
  if (info->kind != FileKind::kDirectory) return fs.Remove(path);
  REPOTXN_RETURN_IF_ERROR(RemoveEntries(fs, path));
  return fs.RemoveDirectory(path);
}

absl::Status RemoveEmptyParents(FileSystem& fs, const StorePath& path, const StorePath& stop) {
  const absl::StatusOr<FileInfo> info = fs.Stat(path);
  if (info.ok()) {
    REPOTXN_RETURN_IF_ERROR(info->kind == FileKind::kDirectory ? fs.RemoveDirectory(path)
                                                               : fs.Remove(path));
  } else if (!absl::IsNotFound(info.status())) {
    return info.status();
  }
  for (StorePath parent = path.Parent(); parent.IsWithin(stop) && !(parent == stop);
       parent = parent.Parent()) {
    // Tried, not listed: with one listing a file, the removal of all files of a directory takes the square of their number.
    const absl::Status removed = fs.RemoveDirectory(parent);
    if (absl::IsFailedPrecondition(removed)) return absl::OkStatus();  // not empty
    if (!absl::IsNotFound(removed)) REPOTXN_RETURN_IF_ERROR(removed);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Exists(FileSystem& fs, const StorePath& path) {
  const absl::Status status = fs.Stat(path).status();
  if (status.ok()) return true;
  if (absl::IsNotFound(status)) return false;
  return status;
}

}  // namespace repotxn::storage
