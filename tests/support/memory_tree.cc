#include "tests/support/memory_tree.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "storage/checksum.h"
#include "storage/critical_section.h"
#include "storage/errno_status.h"
#include "storage/status_macros.h"
#include "tests/support/memory_crash.h"

namespace repotxn::testing {

using storage::DirectoryEntry;
using storage::ErrnoStatus;
using storage::FileInfo;
using storage::FileKind;
using storage::OpenMode;
using storage::StorePath;

namespace {

// Status for opening what is no file; OK for a file.
absl::Status CheckIsFile(const MemoryInode& inode, const StorePath& path) {
  if (inode.kind == FileKind::kDirectory) return ErrnoStatus(EISDIR, "open", path);
  if (inode.kind == FileKind::kSymlink) return ErrnoStatus(ELOOP, "open", path);
  return absl::OkStatus();
}

int64_t ContentBytes(const MemoryInode& inode) {
  return static_cast<int64_t>(inode.kind == FileKind::kSymlink ? inode.target.size()
                                                               : inode.data.size());
}

// As the kernel counts: a directory has its name, its own "." and the ".." of each subdirectory.
int64_t LinkCount(const MemoryInode& inode) {
  if (inode.kind != FileKind::kDirectory) return inode.link_count;
  return 2 + std::count_if(inode.children.begin(), inode.children.end(), [](const auto& child) {
           return child.second->kind == FileKind::kDirectory;
         });
}

absl::string_view KindName(FileKind kind) {
  switch (kind) {
    case FileKind::kRegular:
      return "file";
    case FileKind::kDirectory:
      return "dir";
    case FileKind::kSymlink:
      return "symlink";
    case FileKind::kOther:
      break;
  }
  return "other";
}

void DumpBelow(const MemoryInode& inode, const std::string& path, std::string* out) {
  if (inode.kind == FileKind::kDirectory) {
    absl::StrAppendFormat(out, "\"%s\" dir %04o\n", absl::CEscape(path), inode.mode);
    for (const auto& [name, child] : inode.children) {
      DumpBelow(*child, path.empty() ? name : absl::StrCat(path, "/", name), out);
    }
    return;
  }
  const std::string& content = inode.kind == FileKind::kSymlink ? inode.target : inode.data;
  absl::StrAppendFormat(out, "\"%s\" %s %04o size %d links %d xxh3 %016x\n", absl::CEscape(path),
                        KindName(inode.kind), inode.mode, content.size(), inode.link_count,
                        storage::Xxh3(absl::string_view(content.data(), content.size())));
}

bool IsDescendant(const MemoryInode* directory, const MemoryInode* of) {
  if (directory == of) return true;
  return std::any_of(of->children.begin(), of->children.end(), [&](const auto& child) {
    return child.second->kind == FileKind::kDirectory &&
           IsDescendant(directory, child.second.get());
  });
}

void ApplyDurably(const PendingChange& change) {
  MemoryInode& directory = *change.directory;
  switch (change.kind) {
    case PendingChange::Kind::kAddName:
      directory.durable_children[change.name] = change.inode;
      break;
    case PendingChange::Kind::kRemoveName:
      directory.durable_children.erase(change.name);
      break;
    case PendingChange::Kind::kRenameName: {
      NameMap& source = change.source->durable_children;
      const auto it = source.find(change.source_name);
      if (it != source.end() && it->second == change.inode) source.erase(it);
      directory.durable_children[change.name] = change.inode;
      break;
    }
    case PendingChange::Kind::kWrite:
    case PendingChange::Kind::kTruncate:
      break;
  }
}

}  // namespace

MemoryFileSystem::Tree::Tree() : root_(std::make_shared<MemoryInode>()) {
  root_->id = 1;
  root_->kind = FileKind::kDirectory;
  root_->mode = 0755;
  root_->link_count = 1;
  root_->modified = absl::Now();
}

MemoryFileSystem::Tree::~Tree() = default;

void MemoryFileSystem::Tree::Mutating(absl::string_view op, const StorePath& path) {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  MutationHook hook;
  int64_t index = 0;
  {
    const storage::MutexLock lock(&mutex_);
    index = mutations_++;
    hook = hook_;
  }
  if (hook) hook(index, op, path);
}

void MemoryFileSystem::Tree::SetHook(MutationHook hook) {
  const storage::MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

int64_t MemoryFileSystem::Tree::mutation_count() const {
  const storage::MutexLock lock(&mutex_);
  return mutations_;
}

void MemoryFileSystem::Tree::SetFreeBytes(int64_t bytes) {
  const storage::MutexLock lock(&mutex_);
  free_bytes_ = bytes;
}

int64_t MemoryFileSystem::Tree::free_bytes() const {
  const storage::MutexLock lock(&mutex_);
  return free_bytes_;
}

void MemoryFileSystem::Tree::SetLinkCountMax(int64_t count) {
  const storage::MutexLock lock(&mutex_);
  link_count_max_ = count;
}

std::shared_ptr<MemoryFileSystem::Tree> MemoryFileSystem::Tree::CrashClone(
    const CrashOptions& options) const {
  auto clone = std::make_shared<Tree>();
  const storage::MutexLock lock(&mutex_);
  CrashState state(options);
  const InodePtr root = state.Build(root_, pending_);
  const storage::MutexLock clone_lock(&clone->mutex_);
  clone->root_ = root;
  clone->next_inode_ = next_inode_;
  clone->free_bytes_ = free_bytes_;
  clone->link_count_max_ = link_count_max_;
  return clone;
}

int64_t MemoryFileSystem::Tree::PendingChangeCount() const {
  const storage::MutexLock lock(&mutex_);
  return static_cast<int64_t>(pending_.size());
}

std::string MemoryFileSystem::Tree::Dump(const StorePath& prefix) const {
  const storage::MutexLock lock(&mutex_);
  const absl::StatusOr<Place> place = Locate(prefix, "dump");
  std::string out;
  if (place.ok() && place->inode != nullptr) DumpBelow(*place->inode, prefix.text(), &out);
  return out;
}

absl::Status MemoryFileSystem::Tree::FlipBit(const StorePath& path, int64_t offset, int bit) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "flip bit"));
  MemoryInode& inode = *place.inode;
  const auto at = static_cast<size_t>(offset);
  if (at >= inode.data.size()) return absl::OutOfRangeError("no such byte");
  const char mask = static_cast<char>(1 << bit);
  inode.data[at] = static_cast<char>(inode.data[at] ^ mask);
  if (at < inode.durable_data.size()) {
    inode.durable_data[at] = static_cast<char>(inode.durable_data[at] ^ mask);
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryFileSystem::Tree::Place> MemoryFileSystem::Tree::Locate(
    const StorePath& path, absl::string_view operation) const {
  if (path.IsRoot()) return Place{nullptr, "", root_};
  InodePtr directory = root_;
  const StorePath parent = path.Parent();
  for (const absl::string_view name : absl::StrSplit(
           absl::string_view(parent.text().data(), parent.text().size()), '/', absl::SkipEmpty())) {
    const auto it = directory->children.find(std::string(name));
    if (it == directory->children.end()) return ErrnoStatus(ENOENT, operation, path);
    if (it->second->kind == FileKind::kSymlink) return ErrnoStatus(ELOOP, operation, path);
    if (it->second->kind != FileKind::kDirectory) return ErrnoStatus(ENOTDIR, operation, path);
    directory = it->second;
  }
  Place place{directory, std::string(path.Name().data(), path.Name().size()), nullptr};
  const auto it = directory->children.find(place.name);
  if (it != directory->children.end()) place.inode = it->second;
  return place;
}

absl::StatusOr<MemoryFileSystem::Tree::Place> MemoryFileSystem::Tree::LocateExisting(
    const StorePath& path, absl::string_view operation) const {
  REPOTXN_ASSIGN_OR_RETURN(Place place, Locate(path, operation));
  if (place.inode == nullptr) return ErrnoStatus(ENOENT, operation, path);
  return place;
}

InodePtr MemoryFileSystem::Tree::NewInode(FileKind kind, uint32_t mode) {
  auto inode = std::make_shared<MemoryInode>();
  inode->id = next_inode_++;
  inode->kind = kind;
  inode->mode = mode & 07777;
  inode->modified = absl::Now();
  return inode;
}

void MemoryFileSystem::Tree::AddName(const Place& place, const InodePtr& inode) {
  place.directory->children[place.name] = inode;
  place.directory->modified = absl::Now();
  ++inode->link_count;
  PendingChange change;
  change.kind = PendingChange::Kind::kAddName;
  change.inode = inode;
  change.directory = place.directory;
  change.name = place.name;
  pending_.push_back(std::move(change));
}

absl::StatusOr<InodePtr> MemoryFileSystem::Tree::OpenExisting(const StorePath& path) const {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "open"));
  REPOTXN_RETURN_IF_ERROR(CheckIsFile(*place.inode, path));
  return place.inode;
}

absl::StatusOr<InodePtr> MemoryFileSystem::Tree::OpenForWrite(const StorePath& path, OpenMode mode,
                                                              uint32_t permissions) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, "open"));
  if (place.inode == nullptr) {
    if (mode == OpenMode::kExisting) return ErrnoStatus(ENOENT, "open", path);
    InodePtr inode = NewInode(FileKind::kRegular, permissions);
    AddName(place, inode);
    return inode;
  }
  if (mode == OpenMode::kCreateNew && !path.IsRoot()) return ErrnoStatus(EEXIST, "create", path);
  REPOTXN_RETURN_IF_ERROR(CheckIsFile(*place.inode, path));
  if (mode == OpenMode::kCreateTruncate && !place.inode->data.empty()) {
    TruncateLocked(place.inode, 0);
  }
  return place.inode;
}

absl::StatusOr<FileInfo> MemoryFileSystem::Tree::Stat(const StorePath& path) const {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "stat"));
  const MemoryInode& inode = *place.inode;
  FileInfo info;
  info.kind = inode.kind;
  info.size = ContentBytes(inode);
  info.mode = inode.mode;
  info.link_count = LinkCount(inode);
  info.inode = inode.id;
  info.modified = inode.modified;
  return info;
}

absl::StatusOr<std::vector<DirectoryEntry>> MemoryFileSystem::Tree::List(
    const StorePath& path) const {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "list"));
  if (place.inode->kind == FileKind::kSymlink) return ErrnoStatus(ELOOP, "list", path);
  if (place.inode->kind != FileKind::kDirectory) return ErrnoStatus(ENOTDIR, "list", path);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : place.inode->children) {
    entries.push_back({name, child->kind});
  }
  return entries;
}

absl::Status MemoryFileSystem::Tree::Add(const StorePath& path, FileKind kind, uint32_t permissions,
                                         absl::string_view target, absl::string_view operation) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, Locate(path, operation));
  if (place.inode != nullptr) return ErrnoStatus(EEXIST, operation, path);
  const InodePtr inode = NewInode(kind, permissions);
  inode->target = std::string(target);
  AddName(place, inode);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Tree::Remove(const StorePath& path, bool is_directory) {
  const absl::string_view operation = is_directory ? "rmdir" : "remove";
  if (path.IsRoot()) return ErrnoStatus(EBUSY, operation, path);
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, operation));
  const bool found_directory = place.inode->kind == FileKind::kDirectory;
  if (is_directory && !found_directory) return ErrnoStatus(ENOTDIR, operation, path);
  if (!is_directory && found_directory) return ErrnoStatus(EISDIR, operation, path);
  if (!place.inode->children.empty()) return ErrnoStatus(ENOTEMPTY, operation, path);
  place.directory->children.erase(place.name);
  place.directory->modified = absl::Now();
  --place.inode->link_count;
  PendingChange change;
  change.kind = PendingChange::Kind::kRemoveName;
  change.inode = place.inode;
  change.directory = place.directory;
  change.name = place.name;
  pending_.push_back(std::move(change));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Tree::Rename(const StorePath& from, const StorePath& to) {
  if (from.IsRoot() || to.IsRoot()) return ErrnoStatus(EBUSY, "rename", to);
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place source, LocateExisting(from, "rename"));
  REPOTXN_ASSIGN_OR_RETURN(const Place target, Locate(to, "rename"));
  const InodePtr& inode = source.inode;
  const bool is_directory = inode->kind == FileKind::kDirectory;
  if (is_directory && !(from == to) && to.IsWithin(from)) return ErrnoStatus(EINVAL, "rename", to);
  if (target.inode != nullptr) {
    if (target.inode == inode) return absl::OkStatus();  // Two names of one file: nothing happens.
    const bool replaces_directory = target.inode->kind == FileKind::kDirectory;
    if (is_directory && !replaces_directory) return ErrnoStatus(ENOTDIR, "rename", to);
    if (!is_directory && replaces_directory) {
      // The kernel looks at this first: an ancestor of the file is never empty.
      const bool is_ancestor = IsDescendant(source.directory.get(), target.inode.get());
      return ErrnoStatus(is_ancestor ? ENOTEMPTY : EISDIR, "rename", to);
    }
    if (!target.inode->children.empty()) return ErrnoStatus(ENOTEMPTY, "rename", to);
    --target.inode->link_count;
  }
  source.directory->children.erase(source.name);
  target.directory->children[target.name] = inode;
  source.directory->modified = target.directory->modified = absl::Now();
  PendingChange change;
  change.kind = PendingChange::Kind::kRenameName;
  change.inode = inode;
  change.directory = target.directory;
  change.name = target.name;
  change.source = source.directory;
  change.source_name = source.name;
  pending_.push_back(std::move(change));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Tree::Link(const StorePath& from, const StorePath& to) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place source, LocateExisting(from, "link"));
  REPOTXN_ASSIGN_OR_RETURN(const Place target, Locate(to, "link"));
  if (target.inode != nullptr) return ErrnoStatus(EEXIST, "link", to);
  if (source.inode->kind == FileKind::kDirectory) return ErrnoStatus(EPERM, "link", to);
  if (source.inode->link_count >= link_count_max_) return ErrnoStatus(EMLINK, "link", to);
  AddName(target, source.inode);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryFileSystem::Tree::ReadLink(const StorePath& path) const {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "readlink"));
  if (place.inode->kind != FileKind::kSymlink) return ErrnoStatus(EINVAL, "readlink", path);
  return place.inode->target;
}

absl::Status MemoryFileSystem::Tree::SetModified(const StorePath& path, absl::Time time) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "set time"));
  place.inode->modified = time;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Tree::SetPermissions(const StorePath& path, uint32_t permissions) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "chmod"));
  if (place.inode->kind == FileKind::kSymlink) return ErrnoStatus(ELOOP, "chmod", path);
  place.inode->mode = permissions & 07777;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Tree::SyncDirectory(const StorePath& path) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const Place place, LocateExisting(path, "sync directory"));
  if (place.inode->kind == FileKind::kSymlink) return ErrnoStatus(ELOOP, "sync directory", path);
  if (place.inode->kind != FileKind::kDirectory) {
    return ErrnoStatus(ENOTDIR, "sync directory", path);
  }
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (!it->IsData() && it->directory == place.inode) {
      ApplyDurably(*it);
      it = pending_.erase(it);
    } else {
      ++it;
    }
  }
  return absl::OkStatus();
}

void MemoryFileSystem::Tree::SyncAll() {
  const storage::MutexLock lock(&mutex_);
  for (const PendingChange& change : pending_) {
    if (change.IsData()) {
      change.inode->durable_data = change.inode->data;
    } else {
      ApplyDurably(change);
    }
  }
  pending_.clear();
}

size_t MemoryFileSystem::Tree::ReadAt(const MemoryInode& inode, int64_t offset,
                                      absl::Span<char> out) const {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  const storage::MutexLock lock(&mutex_);
  const auto at = static_cast<size_t>(offset);
  if (at >= inode.data.size()) return 0;
  const size_t size = std::min(out.size(), inode.data.size() - at);
  std::memcpy(out.data(), inode.data.data() + at, size);
  return size;
}

int64_t MemoryFileSystem::Tree::SizeOf(const MemoryInode& inode) const {
  const storage::MutexLock lock(&mutex_);
  return ContentBytes(inode);
}

void MemoryFileSystem::Tree::WriteLocked(const InodePtr& inode, int64_t offset,
                                         absl::string_view data) {
  if (data.empty()) return;
  const auto at = static_cast<size_t>(offset);
  if (inode->data.size() < at + data.size()) inode->data.resize(at + data.size(), '\0');
  std::memcpy(inode->data.data() + at, data.data(), data.size());
  inode->modified = absl::Now();
  PendingChange change;
  change.kind = PendingChange::Kind::kWrite;
  change.inode = inode;
  change.offset = offset;
  change.bytes = std::string(data);
  pending_.push_back(std::move(change));
}

void MemoryFileSystem::Tree::TruncateLocked(const InodePtr& inode, int64_t size) {
  inode->data.resize(static_cast<size_t>(size), '\0');
  inode->modified = absl::Now();
  PendingChange change;
  change.kind = PendingChange::Kind::kTruncate;
  change.inode = inode;
  change.offset = size;
  pending_.push_back(std::move(change));
}

void MemoryFileSystem::Tree::WriteAt(const InodePtr& inode, int64_t offset,
                                     absl::string_view data) {
  const storage::MutexLock lock(&mutex_);
  WriteLocked(inode, offset, data);
}

void MemoryFileSystem::Tree::Truncate(const InodePtr& inode, int64_t size) {
  const storage::MutexLock lock(&mutex_);
  TruncateLocked(inode, size);
}

void MemoryFileSystem::Tree::SyncData(const InodePtr& inode) {
  const storage::MutexLock lock(&mutex_);
  const size_t old_count = pending_.size();
  pending_.remove_if(
      [&](const PendingChange& change) { return change.IsData() && change.inode == inode; });
  if (pending_.size() != old_count) inode->durable_data = inode->data;
}

bool MemoryFileSystem::Tree::TryLock(const InodePtr& inode) {
  const storage::MutexLock lock(&mutex_);
  return locked_.insert(inode.get()).second;
}

void MemoryFileSystem::Tree::Unlock(const InodePtr& inode) {
  const storage::MutexLock lock(&mutex_);
  locked_.erase(inode.get());
}

}  // namespace repotxn::testing
