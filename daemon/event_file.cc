#include "daemon/event_file.h"

#include <algorithm>
#include <utility>

#include "storage/posix_file_system.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;

// Bytes up to and including the last newline.
absl::StatusOr<int64_t> WholeLines(storage::FileSystem& fs, const storage::StorePath& name, int64_t size) {
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(name));
  for (int64_t end = size; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kBlockBytes);
    std::string block(static_cast<size_t>(end - begin), '\0');
    REPOTXN_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(begin, absl::MakeSpan(&block[0], block.size())));
    if (read != block.size()) return absl::UnavailableError("file of events changes under us");
    const size_t newline = block.rfind('\n');
    if (newline != std::string::npos) return begin + static_cast<int64_t>(newline) + 1;
    end = begin;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Open(storage::FileSystem* fs, const storage::StorePath& name,
                                                           const StoreId& incarnation) {
  REPOTXN_ASSIGN_OR_RETURN(auto file, fs->OpenForWrite(name, storage::OpenMode::kCreateOrKeep));
  REPOTXN_ASSIGN_OR_RETURN(const int64_t found, file->Size());
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, WholeLines(*fs, name, found));
  if (size != found) REPOTXN_RETURN_IF_ERROR(file->Truncate(size));
  REPOTXN_RETURN_IF_ERROR(file->Sync());
  REPOTXN_RETURN_IF_ERROR(fs->SyncDirectory(name.Parent()));
  return std::unique_ptr<EventFile>(new EventFile(std::move(file), size, incarnation));
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::OpenPath(const std::string& path,
                                                               const StoreId& incarnation) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath name,
                           storage::StorePath::Parse(slash == std::string::npos ? path : path.substr(slash + 1)));
  REPOTXN_ASSIGN_OR_RETURN(auto fs, storage::OpenPosixFileSystem(directory));
  REPOTXN_ASSIGN_OR_RETURN(auto file, Open(fs.get(), name, incarnation));
  file->owned_fs_ = std::move(fs);
  return file;
}

absl::Status EventFile::Deliver(const txn::ConsumedEntry& entry) {
  REPOTXN_RETURN_IF_ERROR(poison_);
  const std::string line = EventJson(incarnation_, entry) + "\n";
  if (absl::Status written = file_->WriteAt(size_, line); !written.ok()) {
    // What stands there now is half a line; without the cut nothing may follow it.
    if (absl::Status cut = file_->Truncate(size_); !cut.ok()) poison_ = cut;
    return written;
  }
  if (absl::Status synced = file_->Sync(); !synced.ok()) {
    poison_ = absl::UnavailableError("file of events takes no more: a sync failed");
    return synced;
  }
  size_ += static_cast<int64_t>(line.size());
  return absl::OkStatus();
}

}  // namespace repotxn::daemon
