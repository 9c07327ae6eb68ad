#include "tests/support/fault_file_system.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "storage/status_macros.h"

namespace repotxn::testing {

using storage::DirectoryEntry;
using storage::FileInfo;
using storage::FileLock;
using storage::OpenMode;
using storage::ReadableFile;
using storage::StorePath;
using storage::WritableFile;

namespace {

constexpr std::array<absl::string_view, kFileOperations> kNames = {
    "open-for-read",  "open-past-cache",
    "open-for-write", "read",
    "read-size",      "append",
    "write-at",       "truncate",
    "write-size",     "sync",
    "close",          "stat",
    "list",           "mkdir",
    "remove",         "rmdir",
    "rename",         "link",
    "symlink",        "readlink",
    "set-modified",   "set-permissions",
    "sync-file",      "sync-directory",
    "sync-all",       "lock",
    "free-bytes",     "absolute-path"};

bool IsSyncOfData(FileOperation operation) {
  return operation == FileOperation::kSync || operation == FileOperation::kSyncFile ||
         operation == FileOperation::kSyncAll;
}

}  // namespace

absl::string_view FileOperationName(FileOperation operation) {
  return kNames[static_cast<size_t>(operation)];
}

bool IsMutating(FileOperation operation) {
  switch (operation) {
    case FileOperation::kOpenForRead:
    case FileOperation::kOpenPastCache:
    case FileOperation::kReadAt:
    case FileOperation::kReadSize:
    case FileOperation::kWriteSize:
    case FileOperation::kClose:
    case FileOperation::kStat:
    case FileOperation::kList:
    case FileOperation::kReadLink:
    case FileOperation::kFreeBytes:
    case FileOperation::kAbsolutePath:
      return false;
    default:
      return true;
  }
}

class FaultReadableFile final : public ReadableFile {
 public:
  FaultReadableFile(FaultFileSystem* fs, StorePath path, std::unique_ptr<ReadableFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    REPOTXN_RETURN_IF_ERROR(fs_->Decide(FileOperation::kReadAt, path_).status);
    return base_->ReadAt(offset, out);
  }
  absl::StatusOr<int64_t> Size() const override {
    REPOTXN_RETURN_IF_ERROR(fs_->Decide(FileOperation::kReadSize, path_).status);
    return base_->Size();
  }

 private:
  FaultFileSystem* const fs_;
  const StorePath path_;
  const std::unique_ptr<ReadableFile> base_;
};

class FaultWritableFile final : public WritableFile {
 public:
  FaultWritableFile(FaultFileSystem* fs, StorePath path, std::unique_ptr<WritableFile> base)
      : fs_(fs), path_(std::move(path)), base_(std::move(base)) {}

  absl::Status Append(absl::string_view data) override {
    const auto decision = fs_->Decide(FileOperation::kAppend, path_);
    if (decision.status.ok()) return base_->Append(data);
    return Partly(decision.status, decision.partial_bytes, data,
                  [this](absl::string_view part) { return base_->Append(part); });
  }
  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    const auto decision = fs_->Decide(FileOperation::kWriteAt, path_);
    if (decision.status.ok()) return base_->WriteAt(offset, data);
    return Partly(decision.status, decision.partial_bytes, data,
                  [&](absl::string_view part) { return base_->WriteAt(offset, part); });
  }
  absl::Status Truncate(int64_t size) override {
    REPOTXN_RETURN_IF_ERROR(fs_->Decide(FileOperation::kTruncate, path_).status);
    return base_->Truncate(size);
  }
  absl::StatusOr<int64_t> Size() const override {
    REPOTXN_RETURN_IF_ERROR(fs_->Decide(FileOperation::kWriteSize, path_).status);
    return base_->Size();
  }
  absl::Status Sync() override {
    const auto decision = fs_->Decide(FileOperation::kSync, path_);
    if (!decision.status.ok() || decision.lie) return decision.status;
    return base_->Sync();
  }
  absl::Status Close() override {
    const absl::Status fault = fs_->Decide(FileOperation::kClose, path_).status;
    const absl::Status closed = base_->Close();  // A failed close closes too.
    return fault.ok() ? closed : fault;
  }

 private:
  template <typename Write>
  static absl::Status Partly(const absl::Status& fault, int64_t bytes, absl::string_view data,
                             const Write& write) {
    const absl::string_view part = data.substr(0, static_cast<size_t>(bytes));
    if (!part.empty()) REPOTXN_RETURN_IF_ERROR(write(part));
    return fault;
  }

  FaultFileSystem* const fs_;
  const StorePath path_;
  const std::unique_ptr<WritableFile> base_;
};

FaultFileSystem::FaultFileSystem(storage::FileSystem* base) : base_(base) {}
FaultFileSystem::~FaultFileSystem() = default;

void FaultFileSystem::AddRule(FaultRule rule) {
  const storage::MutexLock lock(&mutex_);
  rules_.push_back({std::move(rule), 0});
}

void FaultFileSystem::ClearRules() {
  const storage::MutexLock lock(&mutex_);
  rules_.clear();
  lying_paths_.clear();
}

int64_t FaultFileSystem::fault_count() const {
  const storage::MutexLock lock(&mutex_);
  return faults_;
}

int64_t FaultFileSystem::CallCount(FileOperation operation) const {
  const storage::MutexLock lock(&mutex_);
  return calls_[static_cast<size_t>(operation)];
}

int64_t FaultFileSystem::TotalCallCount() const {
  const storage::MutexLock lock(&mutex_);
  int64_t total = 0;
  for (const int64_t calls : calls_) total += calls;
  return total;
}

void FaultFileSystem::SetWatcher(Watcher watcher) {
  const storage::MutexLock lock(&mutex_);
  watcher_ = std::move(watcher);
}

FaultFileSystem::Decision FaultFileSystem::Decide(FileOperation operation, const StorePath& path) {
  Decision decision;
  Watcher watcher;
  {
    const storage::MutexLock lock(&mutex_);
    ++calls_[static_cast<size_t>(operation)];
    for (ActiveRule& active : rules_) {
      const FaultRule& rule = active.rule;
      if (rule.operation.has_value() && *rule.operation != operation) continue;
      if (!absl::StartsWith(path.text(), rule.path_prefix)) continue;
      if (!absl::EndsWith(path.text(), rule.path_suffix)) continue;
      ++active.matches;
      if (active.matches < rule.occurrence) continue;
      if (active.matches > rule.occurrence && !rule.is_sticky) continue;
      ++faults_;
      if (rule.later_syncs_lie && IsSyncOfData(operation)) lying_paths_.insert(path.text());
      decision.status = rule.status;
      decision.partial_bytes = rule.partial_bytes;
      return decision;
    }
    if (IsSyncOfData(operation)) {
      // A sync of everything lies when any file does: the base could not leave just that one out.
      decision.lie = operation == FileOperation::kSyncAll ? !lying_paths_.empty()
                                                          : lying_paths_.count(path.text()) > 0;
    }
    watcher = watcher_;
  }
  if (watcher && IsMutating(operation)) watcher(operation, path);
  return decision;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::OpenForRead(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kOpenForRead, path).status);
  REPOTXN_ASSIGN_OR_RETURN(auto file, base_->OpenForRead(path));
  return std::make_unique<FaultReadableFile>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FaultFileSystem::OpenPastCache(
    const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kOpenPastCache, path).status);
  REPOTXN_ASSIGN_OR_RETURN(auto file, base_->OpenPastCache(path));
  return std::make_unique<FaultReadableFile>(this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> FaultFileSystem::OpenForWrite(const StorePath& path,
                                                                            OpenMode mode,
                                                                            uint32_t permissions) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kOpenForWrite, path).status);
  REPOTXN_ASSIGN_OR_RETURN(auto file, base_->OpenForWrite(path, mode, permissions));
  return std::make_unique<FaultWritableFile>(this, path, std::move(file));
}

absl::StatusOr<FileInfo> FaultFileSystem::Stat(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kStat, path).status);
  return base_->Stat(path);
}

absl::StatusOr<std::vector<DirectoryEntry>> FaultFileSystem::List(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kList, path).status);
  return base_->List(path);
}

absl::Status FaultFileSystem::MakeDirectory(const StorePath& path, uint32_t permissions) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kMakeDirectory, path).status);
  return base_->MakeDirectory(path, permissions);
}

absl::Status FaultFileSystem::Remove(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kRemove, path).status);
  return base_->Remove(path);
}

absl::Status FaultFileSystem::RemoveDirectory(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kRemoveDirectory, path).status);
  return base_->RemoveDirectory(path);
}

absl::Status FaultFileSystem::Rename(const StorePath& from, const StorePath& to) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kRename, to).status);
  return base_->Rename(from, to);
}

absl::Status FaultFileSystem::Link(const StorePath& from, const StorePath& to) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kLink, to).status);
  return base_->Link(from, to);
}

absl::Status FaultFileSystem::Symlink(absl::string_view target, const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kSymlink, path).status);
  return base_->Symlink(target, path);
}

absl::StatusOr<std::string> FaultFileSystem::ReadLink(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kReadLink, path).status);
  return base_->ReadLink(path);
}

absl::Status FaultFileSystem::SetModified(const StorePath& path, absl::Time time) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kSetModified, path).status);
  return base_->SetModified(path, time);
}

absl::Status FaultFileSystem::SetPermissions(const StorePath& path, uint32_t permissions) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kSetPermissions, path).status);
  return base_->SetPermissions(path, permissions);
}

absl::Status FaultFileSystem::SyncFile(const StorePath& path) {
  const Decision decision = Decide(FileOperation::kSyncFile, path);
  if (!decision.status.ok() || decision.lie) return decision.status;
  return base_->SyncFile(path);
}

absl::Status FaultFileSystem::SyncDirectory(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kSyncDirectory, path).status);
  return base_->SyncDirectory(path);
}

absl::Status FaultFileSystem::SyncAll() {
  const Decision decision = Decide(FileOperation::kSyncAll, StorePath());
  if (!decision.status.ok() || decision.lie) return decision.status;
  return base_->SyncAll();
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultFileSystem::Lock(const StorePath& path,
                                                                absl::string_view holder_note) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kLock, path).status);
  return base_->Lock(path, holder_note);
}

absl::StatusOr<int64_t> FaultFileSystem::FreeBytes() {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kFreeBytes, StorePath()).status);
  return base_->FreeBytes();
}

absl::StatusOr<std::string> FaultFileSystem::AbsolutePath(const StorePath& path) {
  REPOTXN_RETURN_IF_ERROR(Decide(FileOperation::kAbsolutePath, path).status);
  return base_->AbsolutePath(path);
}

}  // namespace repotxn::testing
