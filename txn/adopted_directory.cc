// Directory work of adoption: a directory that stood elsewhere below the root becomes a repository's own.
//
// Done after the entry is durable, and again by recovery; each step looks at what is there first.
//   1. The directory is renamed to its id directory, whose parents are durable first. If we die before, recovery renames it; after, there is nothing left
//      to rename. It is never copied: at each moment it is whole, at one place or the other.
//   2. Each path that the entry sets aside is renamed into lost-found/adopt-<id>/, whose directories are synced before. If we die between two of them,
//      recovery moves the rest; what was moved is not found any more.
//   3. Directories that every repository has are made when they are missing.
// Giving one back is the reverse, in an order that recovery can repeat: what was set aside goes back into the directory,
// then the directory gets the name that the entry says. If we die before the rename it is found at its id directory, and
// all is looked at again; after, it is not found there, and nothing is left to do.
//
// An entry whose directory is at neither place is kDataLoss: somebody took it away, and a new empty one in its place
// would hide that.
#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/materializer.h"

namespace repotxn::txn {
namespace {

// Makes `directory` and its parents, durably: what is renamed into a directory that a crash takes away would be in
// neither place.
absl::Status MakeDurableDirectory(storage::FileSystem& fs, const storage::StorePath& directory) {
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(fs, directory));
  for (storage::StorePath at = directory; !at.IsRoot(); at = at.Parent()) {
    REPOTXN_RETURN_IF_ERROR(fs.SyncDirectory(at.Parent()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Materializer::SetAside(const storage::StorePath& directory, const storage::StorePath& trash,
                                    absl::string_view path) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath from, directory.Child(path));
  const auto info = fs_->Stat(from);
  if (absl::IsNotFound(info.status()) || absl::IsFailedPrecondition(info.status())) return absl::OkStatus();
  if (!info.ok()) return info.status();
  REPOTXN_ASSIGN_OR_RETURN(storage::StorePath to, trash.Child(path));
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, to.Parent()));
  REPOTXN_ASSIGN_OR_RETURN(const bool is_taken, storage::Exists(*fs_, to));
  if (is_taken) to = to.Parent() / absl::StrCat(to.Name(), ".", temporary_count_.fetch_add(1));
  return fs_->Rename(from, to);
}

absl::Status Materializer::AdoptRepositoryDirectory(const wal::CreateRepository& created) {
  const storage::StorePath directory = layout::RepositoryDirectory(created.id);
  REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, directory));
  if (!is_there) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath source, storage::StorePath::Parse(created.adopted_from));
    REPOTXN_ASSIGN_OR_RETURN(const bool is_waiting, storage::Exists(*fs_, source));
    if (!is_waiting) return absl::DataLossError("directory of an adopted repository is gone");
    REPOTXN_RETURN_IF_ERROR(EnsureDirectory(layout::Repositories(), directory.Parent()));
    REPOTXN_RETURN_IF_ERROR(MakeDurableDirectory(*fs_, directory.Parent()));
    REPOTXN_RETURN_IF_ERROR(MoveInto(layout::Repositories(), source, directory));
  }
  const storage::StorePath trash = layout::AdoptionTrash(created.id);
  for (const std::string& path : created.set_aside) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath to, trash.Child(path));
    REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, to.Parent()));
  }
  // What is renamed into a directory that a crash takes away would be in neither.
  if (!created.set_aside.empty()) REPOTXN_RETURN_IF_ERROR(fs_->SyncAll());
  for (const std::string& path : created.set_aside) {
    REPOTXN_RETURN_IF_ERROR(SetAside(directory, trash, path));
  }
  for (const absl::string_view name : {"objects/info", "objects/pack", "refs/heads", "refs/tags"}) {
    REPOTXN_RETURN_IF_ERROR(EnsureDirectory(directory, directory / name));
  }
  return absl::OkStatus();
}

absl::Status Materializer::PutBack(const storage::StorePath& directory, const storage::StorePath& trash) {
  const auto entries = fs_->List(trash);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  for (const storage::DirectoryEntry& entry : *entries) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath from, trash.Child(entry.name));
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath to, directory.Child(entry.name));
    const auto there = fs_->Stat(to);
    if (absl::IsNotFound(there.status())) {
      REPOTXN_RETURN_IF_ERROR(fs_->Rename(from, to));
    } else if (there.ok() && there->kind == storage::FileKind::kDirectory &&
               entry.kind == storage::FileKind::kDirectory) {
      REPOTXN_RETURN_IF_ERROR(PutBack(to, from));
    }
    // What is taken meanwhile stays in lost-found/.
  }
  return absl::OkStatus();
}

absl::Status Materializer::RemoveEmptyTree(const storage::StorePath& directory) {
  const auto entries = fs_->List(directory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  for (const storage::DirectoryEntry& entry : *entries) {
    if (entry.kind != storage::FileKind::kDirectory) continue;
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath below, directory.Child(entry.name));
    REPOTXN_RETURN_IF_ERROR(RemoveEmptyTree(below));
  }
  const auto left = fs_->List(directory);
  return left.ok() && left->empty() ? fs_->RemoveDirectory(directory) : left.status();
}

absl::Status Materializer::ReleaseDirectory(const RepositoryId& id, absl::string_view target,
                                            RepositoryState* state) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath to, storage::StorePath::Parse(target));
  const auto release = [&]() -> absl::Status {
    const storage::StorePath directory = layout::RepositoryDirectory(id);
    REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, directory));
    if (!is_there) return absl::OkStatus();  // given already
    REPOTXN_RETURN_IF_ERROR(PutBack(directory, layout::AdoptionTrash(id)));
    // Once the directory has gone nothing is put back any more; and a removal of the emptied trash must not come to the
    // disk before what was in it has its new name.
    REPOTXN_RETURN_IF_ERROR(fs_->SyncAll());
    REPOTXN_RETURN_IF_ERROR(RemoveEmptyTree(layout::AdoptionTrash(id)));
    if (!to.Parent().IsRoot()) REPOTXN_RETURN_IF_ERROR(MakeDurableDirectory(*fs_, to.Parent()));
    return MoveInto(storage::StorePath(), directory, to);
  };
  if (state == nullptr) return release();
  // Nobody lists or links it half moved.
  const storage::MutexLock latch(state->latch());
  return release();
}

}  // namespace repotxn::txn
