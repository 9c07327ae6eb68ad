#include "storage/rocksdb_file_system.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "rocksdb/file_system.h"
#include "storage/rocksdb_status.h"
#include "storage/status_macros.h"
#include "storage/sync.h"

namespace repotxn::storage {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

absl::string_view View(const Slice& slice) { return absl::string_view(slice.data(), slice.size()); }

// RocksDB joins directory and name with a slash of its own, so empty components are usual.
absl::StatusOr<StorePath> PathOf(const std::string& name) {
  StorePath path;
  for (const absl::string_view component :
       absl::StrSplit(absl::string_view(name.data(), name.size()), '/', absl::SkipEmpty())) {
    REPOTXN_ASSIGN_OR_RETURN(path, path.Child(component));
  }
  return path;
}

absl::Status Observed(absl::Status sync_status, const FailedSyncObserver& observer) {
  if (!sync_status.ok()) observer(sync_status);
  return sync_status;
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    const absl::StatusOr<size_t> got = file_->ReadAt(offset_, absl::MakeSpan(scratch, n));
    *result = Slice(scratch, got.ok() ? *got : 0);
    offset_ += static_cast<int64_t>(result->size());
    return ToRocksdb(got.status());
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += static_cast<int64_t>(n);
    return IOStatus::OK();
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
  int64_t offset_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    const absl::StatusOr<size_t> got =
        file_->ReadAt(static_cast<int64_t>(offset), absl::MakeSpan(scratch, n));
    *result = Slice(scratch, got.ok() ? *got : 0);
    return ToRocksdb(got.status());
  }

 private:
  const std::unique_ptr<ReadableFile> file_;
};

// Locked, because RocksDB syncs its log while another thread appends to it, which our files do not
// promise to allow.
class LockedWritableFile final : public rocksdb::FSWritableFile {
 public:
  LockedWritableFile(std::unique_ptr<WritableFile> file, int64_t size, FailedSyncObserver observer)
      : observer_(std::move(observer)), file_(std::move(file)), size_(size) {}

  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    const MutexLock lock(&mutex_);
    const absl::Status status = file_->Append(View(data));
    if (status.ok()) size_ += static_cast<int64_t>(data.size());
    return ToRocksdb(status);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    const MutexLock lock(&mutex_);
    const absl::Status status = file_->Truncate(static_cast<int64_t>(size));
    if (status.ok()) size_ = static_cast<int64_t>(size);
    return ToRocksdb(status);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return ToRocksdb(Observed(SyncLocked(), observer_));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    const MutexLock lock(&mutex_);
    return ToRocksdb(file_->Close());
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    const MutexLock lock(&mutex_);
    return static_cast<uint64_t>(size_);
  }

 private:
  // Ends before the observer is called: nothing is acquired below a leaf.
  absl::Status SyncLocked() {
    const MutexLock lock(&mutex_);
    return file_->Sync();
  }

  const FailedSyncObserver observer_;
  Mutex mutex_{MutexRank::kLeaf};
  const std::unique_ptr<WritableFile> file_ ABSL_PT_GUARDED_BY(mutex_);
  int64_t size_ ABSL_GUARDED_BY(mutex_);
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(FileSystem* fs, StorePath path, FailedSyncObserver observer)
      : fs_(fs), path_(std::move(path)), observer_(std::move(observer)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return ToRocksdb(Observed(fs_->SyncDirectory(path_), observer_));
  }

 private:
  FileSystem* const fs_;
  const StorePath path_;
  const FailedSyncObserver observer_;
};

class LockHolder final : public rocksdb::FileLock {
 public:
  explicit LockHolder(std::unique_ptr<storage::FileLock> lock) : lock_(std::move(lock)) {}

 private:
  const std::unique_ptr<storage::FileLock> lock_;
};

class SeamFileSystem final : public rocksdb::FileSystem {
 public:
  SeamFileSystem(storage::FileSystem* fs, FailedSyncObserver observer)
      : fs_(fs), observer_(std::move(observer)) {}
  const char* Name() const override { return "repotxn"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    auto file = OpenForRead(name);
    if (file.ok()) *result = std::make_unique<SequentialFile>(*std::move(file));
    return ToRocksdb(file.status());
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    auto file = OpenForRead(name);
    if (file.ok()) *result = std::make_unique<RandomAccessFile>(*std::move(file));
    return ToRocksdb(file.status());
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    return ToRocksdb(OpenForWrite(name, OpenMode::kCreateTruncate, result));
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions&,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext*) override {
    return ToRocksdb(OpenForWrite(name, OpenMode::kCreateOrKeep, result));
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    absl::StatusOr<StorePath> path = PathOf(name);
    if (path.ok()) *result = std::make_unique<Directory>(fs_, *std::move(path), observer_);
    return ToRocksdb(path.status());
  }

  IOStatus FileExists(const std::string& name, const IOOptions&, IODebugContext*) override {
    const absl::Status status = Stat(name).status();
    // RocksDB tells "absent" from "failed" by this code here, and by another one in the other
    // calls.
    return absl::IsNotFound(status) ? IOStatus::NotFound(name) : ToRocksdb(status);
  }
  IOStatus GetChildren(const std::string& name, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    return ToRocksdb(Children(name, result));
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions&, IODebugContext*) override {
    return OnPath(name, [this](const StorePath& path) { return fs_->Remove(path); });
  }
  IOStatus Truncate(const std::string& name, size_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const absl::Status status = OpenForWrite(name, OpenMode::kExisting, &file);
    return status.ok() ? file->Truncate(size, options, debug) : ToRocksdb(status);
  }
  IOStatus CreateDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return OnPath(name, [this](const StorePath& path) { return fs_->MakeDirectory(path); });
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions&, IODebugContext*) override {
    return OnPath(name, [this](const StorePath& path) {
      const absl::Status status = fs_->MakeDirectory(path);
      return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
    });
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions&, IODebugContext*) override {
    return OnPath(name, [this](const StorePath& path) { return fs_->RemoveDirectory(path); });
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions&, uint64_t* result,
                       IODebugContext*) override {
    const absl::StatusOr<FileInfo> info = Stat(name);
    if (info.ok()) *result = static_cast<uint64_t>(info->size);
    return ToRocksdb(info.status());
  }
  IOStatus GetFileModificationTime(const std::string& name, const IOOptions&, uint64_t* result,
                                   IODebugContext*) override {
    const absl::StatusOr<FileInfo> info = Stat(name);
    if (info.ok()) *result = static_cast<uint64_t>(absl::ToUnixSeconds(info->modified));
    return ToRocksdb(info.status());
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    return OnPaths(from, to, &SeamFileSystem::RenameAfterItsNeighbours);
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&,
                    IODebugContext*) override {
    return OnPaths(from, to, &SeamFileSystem::LinkPath);
  }
  IOStatus NumFileLinks(const std::string& name, const IOOptions&, uint64_t* result,
                        IODebugContext*) override {
    const absl::StatusOr<FileInfo> info = Stat(name);
    if (info.ok()) *result = static_cast<uint64_t>(info->link_count);
    return ToRocksdb(info.status());
  }
  IOStatus AreFilesSame(const std::string& first, const std::string& second, const IOOptions&,
                        bool* result, IODebugContext*) override {
    const absl::StatusOr<FileInfo> a = Stat(first);
    const absl::StatusOr<FileInfo> b = Stat(second);
    if (a.ok() && b.ok()) *result = a->inode == b->inode;
    return ToRocksdb(a.ok() ? b.status() : a.status());
  }
  IOStatus LockFile(const std::string& name, const IOOptions&, rocksdb::FileLock** result,
                    IODebugContext*) override {
    return OnPath(name, [this, result](const StorePath& path) {
      auto lock = fs_->Lock(path, "");
      if (lock.ok()) *result = new LockHolder(*std::move(lock));
      return lock.status();
    });
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override {
    return IOStatus::NotSupported("test directory");
  }
  IOStatus GetAbsolutePath(const std::string& name, const IOOptions&, std::string* result,
                           IODebugContext*) override {
    *result = name;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* result,
                        IODebugContext*) override {
    const absl::StatusOr<int64_t> free = fs_->FreeBytes();
    if (free.ok()) *result = static_cast<uint64_t>(*free);
    return ToRocksdb(free.status());
  }
  IOStatus IsDirectory(const std::string& name, const IOOptions&, bool* result,
                       IODebugContext*) override {
    const absl::StatusOr<FileInfo> info = Stat(name);
    if (info.ok()) *result = info->kind == FileKind::kDirectory;
    return ToRocksdb(info.status());
  }

 private:
  template <typename Call>
  IOStatus OnPath(const std::string& name, const Call& call) {
    const absl::StatusOr<StorePath> path = PathOf(name);
    return ToRocksdb(path.ok() ? call(*path) : path.status());
  }
  IOStatus OnPaths(const std::string& from, const std::string& to,
                   absl::Status (SeamFileSystem::*call)(const StorePath&, const StorePath&)) {
    const absl::StatusOr<StorePath> source = PathOf(from);
    const absl::StatusOr<StorePath> target = PathOf(to);
    if (!source.ok()) return ToRocksdb(source.status());
    return ToRocksdb(target.ok() ? (this->*call)(*source, *target) : target.status());
  }
  // RocksDB makes a manifest and then renames a file that names it to CURRENT, with one sync of the
  // directory after both. A crash before it may keep the second name and lose the first, and
  // nothing would open again; so all earlier names are made durable before a rename.
  absl::Status RenameAfterItsNeighbours(const StorePath& from, const StorePath& to) {
    REPOTXN_RETURN_IF_ERROR(Observed(fs_->SyncDirectory(to.Parent()), observer_));
    return fs_->Rename(from, to);
  }
  absl::Status LinkPath(const StorePath& from, const StorePath& to) { return fs_->Link(from, to); }
  absl::StatusOr<FileInfo> Stat(const std::string& name) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, PathOf(name));
    return fs_->Stat(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForRead(const std::string& name) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, PathOf(name));
    return fs_->OpenForRead(path);
  }
  absl::Status OpenForWrite(const std::string& name, OpenMode mode,
                            std::unique_ptr<rocksdb::FSWritableFile>* result) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, PathOf(name));
    REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs_->OpenForWrite(path, mode));
    REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file->Size());
    *result = std::make_unique<LockedWritableFile>(std::move(file), size, observer_);
    return absl::OkStatus();
  }
  absl::Status Children(const std::string& name, std::vector<std::string>* result) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, PathOf(name));
    REPOTXN_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, fs_->List(path));
    result->clear();
    for (DirectoryEntry& entry : entries) result->push_back(std::move(entry.name));
    return absl::OkStatus();
  }

  storage::FileSystem* const fs_;
  const FailedSyncObserver observer_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewRocksdbFileSystem(FileSystem* fs,
                                                          FailedSyncObserver on_failed_sync) {
  return std::make_shared<SeamFileSystem>(fs, std::move(on_failed_sync));
}

}  // namespace repotxn::storage
