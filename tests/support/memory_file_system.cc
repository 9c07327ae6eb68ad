#include "tests/support/memory_file_system.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "storage/errno_status.h"
#include "storage/status_macros.h"
#include "tests/support/memory_tree.h"

namespace repotxn::testing {

using storage::DirectoryEntry;
using storage::ErrnoStatus;
using storage::FileInfo;
using storage::FileKind;
using storage::FileLock;
using storage::OpenMode;
using storage::ReadableFile;
using storage::StorePath;
using storage::WritableFile;

namespace {

using Tree = MemoryFileSystem::Tree;

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::shared_ptr<Tree> tree, InodePtr inode)
      : tree_(std::move(tree)), inode_(std::move(inode)) {}

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    return tree_->ReadAt(*inode_, offset, out);
  }
  absl::StatusOr<int64_t> Size() const override { return tree_->SizeOf(*inode_); }

 private:
  const std::shared_ptr<Tree> tree_;
  const InodePtr inode_;
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<Tree> tree, InodePtr inode, StorePath path)
      : tree_(std::move(tree)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        end_(tree_->SizeOf(*inode_)) {}

  absl::Status Append(absl::string_view data) override { return Write("append", end_, data); }
  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    return Write("write", offset, data);
  }
  absl::Status Truncate(int64_t size) override {
    if (is_closed_) return ErrnoStatus(EBADF, "truncate", path_);
    tree_->Mutating("truncate", path_);
    tree_->Truncate(inode_, size);
    end_ = size;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> Size() const override { return tree_->SizeOf(*inode_); }
  absl::Status Sync() override {
    if (is_closed_) return ErrnoStatus(EBADF, "sync", path_);
    tree_->Mutating("sync", path_);
    tree_->SyncData(inode_);
    return absl::OkStatus();
  }
  absl::Status Close() override {
    if (is_closed_) return ErrnoStatus(EBADF, "close", path_);
    is_closed_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Write(absl::string_view operation, int64_t offset, absl::string_view data) {
    if (is_closed_) return ErrnoStatus(EBADF, operation, path_);
    tree_->Mutating(operation, path_);
    tree_->WriteAt(inode_, offset, data);
    end_ = std::max(end_, offset + static_cast<int64_t>(data.size()));
    return absl::OkStatus();
  }

  const std::shared_ptr<Tree> tree_;
  const InodePtr inode_;
  const StorePath path_;
  int64_t end_;  // where Append() goes
  bool is_closed_ = false;
};

class MemoryFileLock final : public FileLock {
 public:
  MemoryFileLock(std::shared_ptr<Tree> tree, InodePtr inode)
      : tree_(std::move(tree)), inode_(std::move(inode)) {}
  ~MemoryFileLock() override { tree_->Unlock(inode_); }
  int descriptor() const override { return -1; }

 private:
  const std::shared_ptr<Tree> tree_;
  const InodePtr inode_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() : tree_(std::make_shared<Tree>()) {}
MemoryFileSystem::MemoryFileSystem(std::shared_ptr<Tree> tree) : tree_(std::move(tree)) {}
MemoryFileSystem::~MemoryFileSystem() = default;

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::CrashClone(const CrashOptions& options) const {
  return std::unique_ptr<MemoryFileSystem>(new MemoryFileSystem(tree_->CrashClone(options)));
}

int64_t MemoryFileSystem::PendingChangeCount() const { return tree_->PendingChangeCount(); }
void MemoryFileSystem::SetMutationHook(MutationHook hook) { tree_->SetHook(std::move(hook)); }
int64_t MemoryFileSystem::mutation_count() const { return tree_->mutation_count(); }
std::string MemoryFileSystem::DumpTree() const { return tree_->Dump(StorePath()); }
std::string MemoryFileSystem::DumpTree(const StorePath& prefix) const {
  return tree_->Dump(prefix);
}
void MemoryFileSystem::SetFreeBytes(int64_t bytes) { tree_->SetFreeBytes(bytes); }
absl::Status MemoryFileSystem::FlipBit(const StorePath& path, int64_t offset, int bit) {
  return tree_->FlipBit(path, offset, bit);
}
void MemoryFileSystem::SetLinkCountMax(int64_t count) { tree_->SetLinkCountMax(count); }

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenForRead(const StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(InodePtr inode, tree_->OpenExisting(path));
  return std::make_unique<MemoryReadableFile>(tree_, std::move(inode));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenPastCache(
    const StorePath& path) {
  // There is no cache that could differ: a test clones first and reads the clone.
  return OpenForRead(path);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::OpenForWrite(const StorePath& path,
                                                                             OpenMode mode,
                                                                             uint32_t permissions) {
  // An opening that changes nothing is no mutation.
  const bool exists = tree_->OpenExisting(path).ok();
  if (!exists && mode != OpenMode::kExisting) tree_->Mutating("create", path);
  if (exists && mode == OpenMode::kCreateTruncate) tree_->Mutating("truncate", path);
  REPOTXN_ASSIGN_OR_RETURN(InodePtr inode, tree_->OpenForWrite(path, mode, permissions));
  return std::make_unique<MemoryWritableFile>(tree_, std::move(inode), path);
}

absl::StatusOr<FileInfo> MemoryFileSystem::Stat(const StorePath& path) { return tree_->Stat(path); }

absl::StatusOr<std::vector<DirectoryEntry>> MemoryFileSystem::List(const StorePath& path) {
  return tree_->List(path);
}

absl::Status MemoryFileSystem::MakeDirectory(const StorePath& path, uint32_t permissions) {
  tree_->Mutating("mkdir", path);
  return tree_->Add(path, FileKind::kDirectory, permissions, "", "mkdir");
}

absl::Status MemoryFileSystem::Remove(const StorePath& path) {
  tree_->Mutating("remove", path);
  return tree_->Remove(path, /*is_directory=*/false);
}

absl::Status MemoryFileSystem::RemoveDirectory(const StorePath& path) {
  tree_->Mutating("rmdir", path);
  return tree_->Remove(path, /*is_directory=*/true);
}

absl::Status MemoryFileSystem::Rename(const StorePath& from, const StorePath& to) {
  tree_->Mutating("rename", to);
  return tree_->Rename(from, to);
}

absl::Status MemoryFileSystem::Link(const StorePath& from, const StorePath& to) {
  tree_->Mutating("link", to);
  return tree_->Link(from, to);
}

absl::Status MemoryFileSystem::Symlink(absl::string_view target, const StorePath& path) {
  tree_->Mutating("symlink", path);
  if (target.empty()) return ErrnoStatus(ENOENT, "symlink", path);
  return tree_->Add(path, FileKind::kSymlink, 0777, target, "symlink");
}

absl::StatusOr<std::string> MemoryFileSystem::ReadLink(const StorePath& path) {
  return tree_->ReadLink(path);
}

absl::Status MemoryFileSystem::SetModified(const StorePath& path, absl::Time time) {
  tree_->Mutating("set-modified", path);
  return tree_->SetModified(path, time);
}

absl::Status MemoryFileSystem::SetPermissions(const StorePath& path, uint32_t permissions) {
  tree_->Mutating("set-permissions", path);
  return tree_->SetPermissions(path, permissions);
}

absl::Status MemoryFileSystem::SyncFile(const StorePath& path) {
  tree_->Mutating("sync", path);
  REPOTXN_ASSIGN_OR_RETURN(const InodePtr inode, tree_->OpenExisting(path));
  tree_->SyncData(inode);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(const StorePath& path) {
  tree_->Mutating("sync-directory", path);
  return tree_->SyncDirectory(path);
}

absl::Status MemoryFileSystem::SyncAll() {
  tree_->Mutating("sync-all", StorePath());
  tree_->SyncAll();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::Lock(const StorePath& path,
                                                                 absl::string_view holder_note) {
  tree_->Mutating("lock", path);
  REPOTXN_ASSIGN_OR_RETURN(InodePtr inode,
                           tree_->OpenForWrite(path, OpenMode::kCreateOrKeep, 0644));
  if (!tree_->TryLock(inode)) return ErrnoStatus(EWOULDBLOCK, "lock", path);
  tree_->Truncate(inode, 0);
  tree_->WriteAt(inode, 0, holder_note);
  return std::make_unique<MemoryFileLock>(tree_, std::move(inode));
}

absl::StatusOr<int64_t> MemoryFileSystem::FreeBytes() { return tree_->free_bytes(); }

absl::StatusOr<std::string> MemoryFileSystem::AbsolutePath(const StorePath& /*path*/) {
  return absl::UnimplementedError("the tree is not on a real disk");
}

}  // namespace repotxn::testing
