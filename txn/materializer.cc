#include "txn/materializer.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/alternates.h"
#include "objects/derived_path.h"
#include "objects/repository_skeleton.h"
#include "refs/loose_refs.h"
#include "refs/packed_refs.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "wal/payload_store.h"

namespace repotxn::txn {
namespace {

// Hard-linked into snapshots and never written in place: read-only for everyone.
constexpr uint32_t kRefFilePermissions = 0444;
constexpr uint32_t kSkeletonPermissions = 0644;
constexpr int kObstaclesMax = 16;

storage::StorePath SkeletonPath(const RepositoryId& id) {
  return layout::Staging() / absl::StrCat("skeleton-", id.ToHex());
}

// Whether a failed rename or mkdir means that something else stands in the way.
bool IsObstructed(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) ||
         absl::IsInvalidArgument(status);
}

// The directory above a ref's file that stays when it is emptied: every repository has these.
absl::string_view KeptRefDirectory(absl::string_view name) {
  if (absl::StartsWith(name, "refs/heads/")) return "refs/heads";
  if (absl::StartsWith(name, "refs/tags/")) return "refs/tags";
  return "refs";
}

// What a batch does to the ref files of a repository.
struct RefPlan {
  std::vector<wal::PackedRef> set;
  std::vector<std::string> unpack;
  std::vector<std::string> remove_loose;
  std::vector<std::pair<std::string, refs::RefValue>> put_loose;
};

RefPlan PlanRefs(const RepositoryState::Batch& batch) {
  RefPlan plan;
  auto changes = batch.refs;
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, version] : changes) {
    const RefState& state = version.state;
    if (!state.value.is_absent() && !state.is_packed) {
      plan.put_loose.emplace_back(name, state.value);
      continue;
    }
    plan.remove_loose.push_back(name);
    if (state.value.is_absent()) {
      plan.unpack.push_back(name);
    } else {
      const wal::LoggedRefValue logged = state.value.ToLogged();
      plan.set.push_back(wal::PackedRef{name, logged.bytes, logged.peeled});
    }
  }
  return plan;
}

}  // namespace

storage::StorePath Materializer::TemporaryPath() {
  return layout::Staging() / absl::StrCat("materialize-", temporary_count_.fetch_add(1));
}

absl::Status Materializer::ClearObstacle(const storage::StorePath& path) {
  const auto info = fs_->Stat(path);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  if (info.ok() && info->kind == storage::FileKind::kDirectory &&
      fs_->RemoveDirectory(path).ok()) {
    return absl::OkStatus();
  }
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, layout::LostFound()));
  for (int i = 0;; ++i) {
    const storage::StorePath kept =
        layout::LostFound() / absl::StrCat(path.Name().empty() ? "root" : path.Name(), ".",
                                           temporary_count_.fetch_add(1));
    const auto there = storage::Exists(*fs_, kept);
    if (!there.ok()) return there.status();
    if (*there) continue;
    REPOTXN_RETURN_IF_ERROR(fs_->Rename(path, kept));
    const std::string report = absl::StrCat(path.text(), " -> ", kept.text());
    storage::LogWarning(absl::StrCat("moved an unknown file out of the way: ", report));
    const storage::MutexLock lock(&reports_mutex_);
    lost_found_.push_back(report);
    return absl::OkStatus();
  }
}

absl::Status Materializer::EnsureDirectory(const storage::StorePath& root,
                                           const storage::StorePath& directory) {
  for (int i = 0; i < kObstaclesMax; ++i) {
    const absl::Status made = storage::MakeDirectories(*fs_, directory);
    if (made.ok() || !IsObstructed(made)) return made;
    // Find the component that is no directory.
    storage::StorePath at = directory;
    while (!(at == root) && !at.IsRoot()) {
      const auto info = fs_->Stat(at);
      if (info.ok() && info->kind != storage::FileKind::kDirectory) {
        REPOTXN_RETURN_IF_ERROR(ClearObstacle(at));
        break;
      }
      at = at.Parent();
    }
    if (at == root || at.IsRoot()) return made;
  }
  return absl::UnavailableError("too many obstacles below a directory");
}

absl::Status Materializer::MoveInto(const storage::StorePath& root, const storage::StorePath& from,
                                    const storage::StorePath& target) {
  absl::Status moved = fs_->Rename(from, target);
  if (moved.ok()) return moved;
  REPOTXN_RETURN_IF_ERROR(EnsureDirectory(root, target.Parent()));
  moved = fs_->Rename(from, target);
  if (moved.ok() || !IsObstructed(moved)) return moved;
  REPOTXN_RETURN_IF_ERROR(ClearObstacle(target));
  return fs_->Rename(from, target);
}

absl::Status Materializer::MoveTemporaryInto(const storage::StorePath& root, const storage::StorePath& temporary,
                                             const storage::StorePath& target) {
  const absl::Status moved = MoveInto(root, temporary, target);
  if (!moved.ok()) IgnoreBecause(fs_->Remove(temporary), "staging/ is wiped at open");
  return moved;
}

absl::Status Materializer::ReplaceFile(const storage::StorePath& root,
                                       const storage::StorePath& target, absl::string_view content,
                                       uint32_t permissions) {
  const storage::StorePath temporary = TemporaryPath();
  REPOTXN_RETURN_IF_ERROR(storage::WriteFile(*fs_, temporary, content, permissions));
  return MoveTemporaryInto(root, temporary, target);
}

absl::Status Materializer::ReplacePackedRefs(const storage::StorePath& directory,
                                             const std::string& content) {
  const storage::StorePath temporary = TemporaryPath();
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<storage::WritableFile> file,
                           fs_->OpenForWrite(temporary, storage::OpenMode::kCreateTruncate,
                                             kRefFilePermissions));
  REPOTXN_RETURN_IF_ERROR(file->Append(content));
  if (absl::Status synced = file->Sync(); !synced.ok()) {
    // A full disk is no damaged one: the file is given up and written anew.
    if (!absl::IsResourceExhausted(synced)) has_failed_sync_.store(true, std::memory_order_relaxed);
    return synced;
  }
  REPOTXN_RETURN_IF_ERROR(file->Close());
  const absl::Status moved = MoveInto(directory, temporary, directory / refs::kPackedRefsPath);
  if (!moved.ok()) IgnoreBecause(fs_->Remove(temporary), "staging/ is wiped at open");
  return moved;
}

absl::Status Materializer::RemoveFile(const storage::StorePath& stop,
                                      const storage::StorePath& target) {
  const auto info = fs_->Stat(target);
  // A directory at the name of a removed file is no obstacle: what belongs in it was written by a later entry. ENOTDIR:
  // a parent is a file, so the target is absent.
  if (info.ok() && info->kind == storage::FileKind::kDirectory) {
    IgnoreBecause(fs_->RemoveDirectory(target), "a directory that is not empty stays");
    return absl::OkStatus();
  }
  if (absl::IsFailedPrecondition(info.status())) return absl::OkStatus();
  return storage::RemoveEmptyParents(*fs_, target, stop);
}

absl::StatusOr<std::shared_ptr<const DiskRefs>> Materializer::WriteRefs(
    const RepositoryState& repository, const RepositoryState::Batch& batch) {
  const RefPlan plan = PlanRefs(batch);
  const storage::StorePath& directory = repository.directory();
  auto disk = std::make_shared<DiskRefs>(*batch.disk);
  REPOTXN_ASSIGN_OR_RETURN(refs::PackedRefsEdit edit,
                           refs::EditPackedRefs(*disk->packed, plan.set, plan.unpack));
  if (edit.changed || batch.is_rewrite) {
    REPOTXN_RETURN_IF_ERROR(
        ReplacePackedRefs(directory, edit.changed ? edit.content : disk->packed->content()));
  }
  if (edit.changed) {
    REPOTXN_ASSIGN_OR_RETURN(refs::PackedRefs packed,
                             refs::PackedRefs::Parse(std::move(edit.content), repository.format()));
    disk->packed = std::make_shared<const refs::PackedRefs>(std::move(packed));
  }
  for (const std::string& name : plan.remove_loose) {
    REPOTXN_RETURN_IF_ERROR(RemoveFile(directory / KeptRefDirectory(name), directory / name));
    disk->loose.erase(name);
    disk->faults.erase(name);
  }
  for (const auto& [name, value] : plan.put_loose) {
    const auto shown = disk->loose.find(name);
    if (!batch.is_rewrite && shown != disk->loose.end() && shown->second.SameAs(value)) continue;
    REPOTXN_RETURN_IF_ERROR(ReplaceFile(directory, directory / name, refs::EncodeLooseRef(value),
                                        kRefFilePermissions));
    disk->loose.insert_or_assign(name, value);
    disk->faults.erase(name);
  }
  // Git takes a directory without refs/heads for a repository, but people expect both.
  REPOTXN_RETURN_IF_ERROR(EnsureDirectory(directory, directory / "refs/heads"));
  REPOTXN_RETURN_IF_ERROR(EnsureDirectory(directory, directory / "refs/tags"));
  return std::shared_ptr<const DiskRefs>(std::move(disk));
}

absl::Status Materializer::WriteFiles(const RepositoryState& repository,
                                      const RepositoryState::Batch& batch) {
  auto changes = batch.files;
  // Removals from the leaves up, then directories and files from the root down.
  std::sort(changes.begin(), changes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const storage::StorePath& directory = repository.directory();
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (change->second.state.kind != FileState::Kind::kAbsent) continue;
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath path, directory.Child(change->first));
    const auto info = fs_->Stat(path);
    if (!info.ok()) continue;  // absent, or below a file: nothing to remove
    if (info->kind == storage::FileKind::kDirectory) {
      REPOTXN_RETURN_IF_ERROR(ClearObstacle(path));
    } else {
      REPOTXN_RETURN_IF_ERROR(fs_->Remove(path));
    }
  }
  for (const auto& [name, version] : changes) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath path, directory.Child(name));
    if (version.state.kind == FileState::Kind::kDirectory) {
      REPOTXN_RETURN_IF_ERROR(EnsureDirectory(directory, path));
    } else if (version.state.kind == FileState::Kind::kFile) {
      REPOTXN_RETURN_IF_ERROR(
          ReplaceFile(directory, path, *version.state.content, version.state.mode));
    }
  }
  return absl::OkStatus();
}

absl::Status Materializer::MaterializeRepository(RepositoryState* repository, wal::Lsn target) {
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryState::Batch batch, repository->CollectBatch(target));
  std::shared_ptr<const DiskRefs> disk = batch.disk;
  if (!batch.files.empty()) {
    REPOTXN_RETURN_IF_ERROR(repository->CaptureFileBases(batch, registry_->OldestReader()));
    REPOTXN_RETURN_IF_ERROR(WriteFiles(*repository, batch));
  }
  if (!batch.refs.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(disk, WriteRefs(*repository, batch));
  }
  repository->FinishBatch(batch, std::move(disk), registry_->OldestReader());
  if (!batch.files.empty() || !batch.refs.empty()) batches_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Materializer::RemoveLink(absl::string_view path) {
  const storage::StorePath link = layout::RepositoryLink(path);
  const auto info = fs_->Stat(link);
  if (!info.ok() || info->kind != storage::FileKind::kSymlink) return absl::OkStatus();
  return fs_->Remove(link);
}

absl::Status Materializer::RemoveGroupDirectory(absl::string_view path) {
  const storage::StorePath directory = layout::Repositories() / path;
  const auto info = fs_->Stat(directory);
  if (!info.ok() || info->kind != storage::FileKind::kDirectory) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs_->List(directory));
  return entries.empty() ? fs_->RemoveDirectory(directory) : absl::OkStatus();
}

absl::Status Materializer::RemovePath(absl::string_view path) {
  REPOTXN_RETURN_IF_ERROR(RemoveLink(path));
  return RemoveGroupDirectory(path);
}

absl::Status Materializer::WritePath(absl::string_view path, const std::string& row) {
  REPOTXN_ASSIGN_OR_RETURN(const PathRow decoded, DecodePathRow(row));
  if (!decoded.repository) {
    REPOTXN_RETURN_IF_ERROR(RemoveLink(path));
    return EnsureDirectory(layout::Repositories(), layout::Repositories() / path);
  }
  const storage::StorePath link = layout::RepositoryLink(path);
  const std::string target = layout::RepositoryLinkTarget(path, *decoded.repository);
  const auto existing = fs_->ReadLink(link);
  if (existing.ok() && *existing == target) return absl::OkStatus();
  const storage::StorePath temporary = TemporaryPath();
  REPOTXN_RETURN_IF_ERROR(fs_->Symlink(target, temporary));
  return MoveInto(layout::Repositories(), temporary, link);
}

absl::Status Materializer::RepairPath(absl::string_view path, const std::optional<std::string>& row) {
  const storage::MutexLock round(&mutex_);
  return row ? WritePath(path, *row) : RemovePath(path);
}

absl::Status Materializer::PassOver(absl::string_view path, const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  storage::LogError(absl::StrCat("path ", path, " is not written: ", status.message()));
  return absl::OkStatus();
}

Materializer::Round Materializer::MaterializeAll(wal::Lsn target, absl::Duration now, Try which) {
  const storage::MutexLock lock(&mutex_);
  Round round;
  for (const std::shared_ptr<RepositoryState>& repository : repositories_->TakeDirty()) {
    const storage::MutexLock latch(repository->latch());
    if (which == Try::kWhatIsWorthIt && !repository->IsWorthATry(now)) {
      repositories_->MarkDirty(repository->id());
      round.behind.push_back(repository);
      continue;
    }
    const absl::Status status = MaterializeRepository(repository.get(), target);
    if (!status.ok() || repository->has_dirty()) repositories_->MarkDirty(repository->id());
    if (absl::IsResourceExhausted(status) || has_failed_sync()) {
      round.status.Update(status);
    } else if (!status.ok()) {
      round.behind.push_back(repository);
      if (repository->SetAside(status, now)) {
        storage::LogError(absl::StrCat("repository ", repository->id().ToHex(), " is set aside: ", status.message()));
      }
    }
  }
  if (round.status.ok()) round.status = MaterializeRows(target);
  return round;
}

absl::Status Materializer::MaterializeRows(wal::Lsn target) {
  // Paths that hold a repository now, and those given up: handled after the others, children before parents.
  std::vector<std::string> given_up, no_groups;
  const auto on_row = [&](absl::string_view key, const std::optional<std::string>& row) {
    if (!absl::ConsumePrefix(&key, "p/")) return absl::OkStatus();
    const std::string path(key.data(), key.size());
    if (!row) {
      given_up.push_back(path);
      return absl::OkStatus();
    }
    if (*row != Encode(PathRow{})) no_groups.push_back(path);
    return PassOver(path, WritePath(path, *row));
  };
  REPOTXN_RETURN_IF_ERROR(rows_->Materialize(target, registry_->OldestReader(), on_row));
  for (auto path = given_up.rbegin(); path != given_up.rend(); ++path) {
    REPOTXN_RETURN_IF_ERROR(PassOver(*path, RemovePath(*path)));
  }
  for (auto path = no_groups.rbegin(); path != no_groups.rend(); ++path) {
    REPOTXN_RETURN_IF_ERROR(PassOver(*path, RemoveGroupDirectory(*path)));
  }
  return absl::OkStatus();
}

absl::Status Materializer::StageSkeleton(const wal::CreateRepository& created) {
  return objects::WriteSkeleton(*fs_, SkeletonPath(created.id), created.format, created.head_target);
}

void Materializer::DiscardSkeleton(const RepositoryId& id) {
  IgnoreBecause(storage::RemoveTree(*fs_, SkeletonPath(id)), "staging/ is wiped at open");
}

absl::Status Materializer::CreateRepositoryDirectory(const wal::CreateRepository& created) {
  if (created.is_adopted()) return AdoptRepositoryDirectory(created);
  const storage::StorePath directory = layout::RepositoryDirectory(created.id);
  REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, directory));
  if (is_there) return RewriteSkeleton(created);
  REPOTXN_ASSIGN_OR_RETURN(const bool is_staged, storage::Exists(*fs_, SkeletonPath(created.id)));
  if (!is_staged) REPOTXN_RETURN_IF_ERROR(StageSkeleton(created));
  return MoveInto(layout::Repositories(), SkeletonPath(created.id), directory);
}

absl::Status Materializer::RewriteSkeleton(const wal::CreateRepository& created) {
  const storage::StorePath directory = layout::RepositoryDirectory(created.id);
  for (const objects::SkeletonEntry& entry :
       objects::RepositorySkeleton(created.format, created.head_target)) {
    const storage::StorePath path = directory / entry.path;
    REPOTXN_RETURN_IF_ERROR(entry.is_directory
                                ? EnsureDirectory(directory, path)
                                : ReplaceFile(directory, path, entry.content, kSkeletonPermissions));
  }
  return absl::OkStatus();
}

absl::Status Materializer::LinkPack(const wal::AddPack& pack, const TransactionId& transaction_id,
                                    absl::Time created_at) {
  const storage::StorePath packs = layout::RepositoryDirectory(pack.id) / "objects/pack";
  REPOTXN_RETURN_IF_ERROR(EnsureDirectory(layout::RepositoryDirectory(pack.id), packs));
  // The index last: Git takes a pack for complete when it sees one.
  const std::pair<const wal::PayloadFile*, absl::string_view> files[] = {
      {&pack.pack, ".pack"}, {&pack.reverse_index, ".rev"}, {&pack.cruft_times, ".mtimes"}, {&pack.index, ".idx"}};
  for (const auto& [file, suffix] : files) {
    if (file->sha256.empty()) {
      // The times of a cruft pack of the same name: its objects are of now again.
      const absl::Status removed = fs_->Remove(packs / absl::StrCat(pack.name, suffix));
      if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
      continue;
    }
    const storage::StorePath source =
        wal::PayloadPath(layout::Payload(), transaction_id, file->index);
    const storage::StorePath target = packs / absl::StrCat(pack.name, suffix);
    absl::Status linked = fs_->Link(source, target);
    if (absl::IsAlreadyExists(linked)) linked = RelinkPack(source, target);
    if (absl::IsResourceExhausted(linked) || absl::IsFailedPrecondition(linked)) {
      // EMLINK, EXDEV: an independent copy serves as well.
      REPOTXN_PROBE("txn.pack_copied");
      REPOTXN_ASSIGN_OR_RETURN(const std::string content,
                               storage::ReadFile(*fs_, source, file->size));
      linked = ReplaceFile(packs, target, content, kRefFilePermissions);
    }
    REPOTXN_RETURN_IF_ERROR(linked);
    REPOTXN_RETURN_IF_ERROR(fs_->SetModified(target, created_at));
  }
  return absl::OkStatus();
}

absl::Status Materializer::LinkPayload(const storage::StorePath& root, const storage::StorePath& source, int64_t bytes,
                                       const storage::StorePath& target) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo ours, fs_->Stat(source));
  const auto there = fs_->Stat(target);
  // Done before. A rename between two links of one file would leave the temporary name.
  if (there.ok() && there->inode == ours.inode) return absl::OkStatus();
  const storage::StorePath temporary = TemporaryPath();
  const absl::Status linked = fs_->Link(source, temporary);
  if (absl::IsResourceExhausted(linked) || absl::IsFailedPrecondition(linked)) {
    // EMLINK, EXDEV: an independent copy serves as well.
    REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(*fs_, source, bytes));
    return ReplaceFile(root, target, content, kRefFilePermissions);
  }
  REPOTXN_RETURN_IF_ERROR(linked);
  return MoveTemporaryInto(root, temporary, target);
}

absl::Status Materializer::ReplaceDerived(const wal::ReplaceDerived& derived, const TransactionId& transaction_id) {
  const storage::StorePath root = layout::RepositoryDirectory(derived.id);
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath target, root.Child(derived.path));
  if (!derived.remove) {
    const wal::PayloadFile& file = derived.content.payload;
    return LinkPayload(root, wal::PayloadPath(layout::Payload(), transaction_id, file.index), file.size, target);
  }
  // commit-graphs/ goes with the last file in it.
  const bool is_layered = absl::StartsWith(derived.path, objects::kCommitGraphs);
  return RemoveFile(is_layered ? target.Parent().Parent() : target.Parent(), target);
}

absl::Status Materializer::WriteAlternates(const ChangedAlternates& changed) {
  const storage::StorePath directory = layout::RepositoryDirectory(changed.id);
  const storage::StorePath objects = directory / "objects";
  if (changed.alternates.empty()) {
    const absl::Status removed = fs_->Remove(objects / "info/alternates");
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }
  std::vector<storage::StorePath> targets;
  for (const RepositoryId& id : changed.alternates) {
    targets.push_back(layout::RepositoryDirectory(id) / "objects");
  }
  return ReplaceFile(directory, objects / "info/alternates",
                     objects::FormatAlternates(objects, targets), kSkeletonPermissions);
}

absl::Status Materializer::CondemnDirectory(const RepositoryId& id, RepositoryState* state) {
  const auto condemn = [&]() -> absl::Status {
    const storage::StorePath directory = layout::RepositoryDirectory(id);
    REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, directory));
    if (!is_there) return absl::OkStatus();
    return MoveInto(layout::PendingDelete(), directory,
                    layout::PendingDelete() /
                        absl::StrCat(id.ToHex(), ".", temporary_count_.fetch_add(1)));
  };
  if (state == nullptr) return condemn();
  // Nobody lists or links it half moved.
  const storage::MutexLock latch(state->latch());
  return condemn();
}

absl::Status Materializer::EmptyPendingDelete() {
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, layout::PendingDelete()));
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs_->List(layout::PendingDelete()));
  for (const storage::DirectoryEntry& entry : entries) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath path, layout::PendingDelete().Child(entry.name));
    REPOTXN_RETURN_IF_ERROR(storage::RemoveTree(*fs_, path));
  }
  return absl::OkStatus();
}

absl::Status Materializer::RelinkPack(const storage::StorePath& source,
                                      const storage::StorePath& target) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo ours, fs_->Stat(source));
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo there, fs_->Stat(target));
  if (ours.inode == there.inode) return absl::OkStatus();
  const storage::StorePath temporary = TemporaryPath();
  REPOTXN_RETURN_IF_ERROR(fs_->Link(source, temporary));
  return fs_->Rename(temporary, target);
}

std::vector<std::string> Materializer::lost_found() const {
  const storage::MutexLock lock(&reports_mutex_);
  return lost_found_;
}

}  // namespace repotxn::txn
