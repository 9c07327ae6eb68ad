#include "txn/write_directories.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "objects/repository_skeleton.h"
#include "storage/check.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// Holds the latches of the repositories that exist, in id order.
class Latches {
 public:
  explicit Latches(const std::vector<WriteDirectories::Part>& parts) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : parts_(parts) {
    for (const WriteDirectories::Part& part : parts_) {
      if (part.live != nullptr) part.live->latch()->Lock();
    }
  }
  ~Latches() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      if (part->live != nullptr) part->live->latch()->Unlock();
    }
  }
  Latches(const Latches&) = delete;
  Latches& operator=(const Latches&) = delete;

 private:
  const std::vector<WriteDirectories::Part>& parts_;
};

// Copies a file, or a directory with the files below it; absent is fine.
absl::Status CopyTree(storage::FileSystem& fs, const storage::StorePath& from,
                      const storage::StorePath& to) {
  const auto info = fs.Stat(from);
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  if (!info.ok()) return info.status();
  if (info->kind == storage::FileKind::kRegular) {
    REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(fs, from));
    return storage::WriteFile(fs, to, content, info->mode);
  }
  if (info->kind != storage::FileKind::kDirectory) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(fs.MakeDirectory(to));
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(from));
  for (const storage::DirectoryEntry& entry : entries) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath source, from.Child(entry.name));
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath target, to.Child(entry.name));
    REPOTXN_RETURN_IF_ERROR(CopyTree(fs, source, target));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConfigFiles(storage::FileSystem& fs, const storage::StorePath& directory) {
  for (const char* name : {"config", "config.worktree"}) {
    const auto text = storage::ReadFile(fs, directory / name);
    if (absl::IsNotFound(text.status())) continue;
    if (!text.ok()) return text.status();
    REPOTXN_RETURN_IF_ERROR(objects::CheckRepositoryConfig(*text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<WriteDirectories>> WriteDirectories::Make(
    StoreCore* core, StagedChanges* changes, const std::vector<StagedRepository*>& repositories,
    const WriteSnapshotOptions& options) {
  std::unique_ptr<WriteDirectories> made(new WriteDirectories(core, changes->id));
  for (const StagedRepository* repository : repositories) {
    REPOTXN_RETURN_IF_ERROR(made->AddPart(*repository));
  }
  REPOTXN_RETURN_IF_ERROR(made->LinkAtOneLsn(changes));
  for (Part& part : made->parts_) {
    REPOTXN_RETURN_IF_ERROR(CheckConfigFiles(*core->file_system(), part.path));
    if (options.with_copied_logs && part.live != nullptr) {
      for (const char* name : {"logs", "FETCH_HEAD"}) {
        REPOTXN_RETURN_IF_ERROR(
            CopyTree(*core->file_system(), part.live->directory() / name, part.path / name));
      }
    }
    REPOTXN_ASSIGN_OR_RETURN(part.before, ReadDirectoryState(*core->file_system(), part.path));
  }
  return made;
}

WriteDirectories::WriteDirectories(StoreCore* core, const TransactionId& id)
    : core_(core), transaction_id_(id), kept_(core->registry()->EnterDirectory()) {}

WriteDirectories::~WriteDirectories() {
  for (const Part& part : parts_) {
    if (absl::Status removed = storage::RemoveTree(*core_->file_system(), part.path); !removed.ok()) {
      // It is wiped at the next open.
      storage::LogWarning(absl::StrCat("write snapshot is not removed: ", removed.message()));
    }
  }
  core_->registry()->LeaveDirectory(kept_);
}

absl::Status WriteDirectories::AddPart(const StagedRepository& repository) {
  Part part;
  part.id = repository.id;
  part.live = repository.live;
  part.format = repository.format();
  if (repository.created) part.created_head = repository.created->head_target;
  part.path = core_->snapshots()->NewPath();
  REPOTXN_ASSIGN_OR_RETURN(part.absolute_path, core_->file_system()->AbsolutePath(part.path));
  ids_.push_back(part.id);
  parts_.push_back(part);  // from here on the destructor removes it
  if (part.live != nullptr) return core_->snapshots()->MakeObjectsOnly(*part.live, part.path);
  return objects::WriteSkeleton(*core_->file_system(), part.path, part.format, part.created_head);
}

absl::Status WriteDirectories::LinkAtOneLsn(StagedChanges* changes) {
  const Latches latches(parts_);
  SnapshotRegistry* const registry = core_->registry();
  const wal::Lsn target = registry->Enter();
  if (absl::Status linked = LinkAll(changes, target); !linked.ok()) {
    registry->Leave(target);
    return linked;
  }
  registry->Move(changes->life.get(), target);
  changes->snapshot_lsn = target;
  lsn_ = target;
  return absl::OkStatus();
}

// The latches are held, which the analysis cannot see of a list.
absl::Status WriteDirectories::LinkAll(StagedChanges* changes, wal::Lsn target) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  REPOTXN_RETURN_IF_ERROR(core_->CheckReadsSince(changes->reads, changes->snapshot_lsn));
  for (const Part& part : parts_) {
    if (part.live == nullptr) continue;
    REPOTXN_RETURN_IF_ERROR(core_->snapshots()->LinkAt(part.live.get(), target, part.path));
    REPOTXN_DCHECK(part.live->materialized_lsn() == target);
  }
  return absl::OkStatus();
}

const WriteDirectories::Part& WriteDirectories::PartOf(const RepositoryId& id) const {
  const auto part = std::find_if(parts_.begin(), parts_.end(),
                                 [&id](const Part& each) { return each.id == id; });
  REPOTXN_DCHECK(part != parts_.end());
  return *part;
}

objects::GitCommand WriteDirectories::Command(const RepositoryId& id,
                                              std::vector<std::string> arguments) const {
  objects::GitCommand command;
  command.repository = PartOf(id).absolute_path;
  command.arguments = std::move(arguments);
  command.lock_fd = core_->lock_descriptor();
  return command;
}

absl::StatusOr<objects::GitResult> WriteDirectories::Run(const objects::GitCommand& command,
                                                         std::string input,
                                                         const objects::RunLimits& limits) {
  const auto part = std::find_if(parts_.begin(), parts_.end(), [&command](const Part& each) {
    return each.absolute_path == command.repository;
  });
  if (part == parts_.end()) {
    return absl::InvalidArgumentError("command runs outside of the write snapshot");
  }
  REPOTXN_RETURN_IF_ERROR(CheckConfigFiles(*core_->file_system(), part->path));
  // A transaction is not idle while its child works.
  core_->registry()->EnterChild(transaction_id_);
  const auto leave = absl::MakeCleanup([this] {
    core_->registry()->LeaveChild(transaction_id_, core_->clock()->Monotonic());
  });
  return objects::RunGit(command, objects::TextSource(std::move(input)), limits);
}

}  // namespace repotxn::txn
