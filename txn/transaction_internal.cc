#include "txn/transaction_internal.h"

#include <algorithm>
#include <utility>

#include "storage/metadata_store.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store_core.h"

namespace repotxn::txn {

ActiveCall::ActiveCall(StagedChanges* changes)
    : changes_(changes),
      entered_(changes->has_ended ? absl::FailedPreconditionError("transaction has ended")
                                  : changes->life->EnterCall()) {}

ActiveCall::~ActiveCall() {
  if (entered_.ok() && changes_->life->LeaveCall(changes_->core->clock()->Monotonic())) {
    changes_->core->LetGo(changes_->life.get());
  }
}

absl::Status ActiveCall::CheckWritable() const {
  REPOTXN_RETURN_IF_ERROR(entered_);
  return changes_->access == Access::kReadOnly
             ? absl::PermissionDeniedError("write in a read-only transaction")
             : absl::OkStatus();
}

absl::StatusOr<StagedRepository*> Touch(StagedChanges* changes, const RepositoryId& id) {
  const auto it = changes->repositories.find(id);
  if (it != changes->repositories.end()) {
    if (it->second.is_removed) return absl::NotFoundError("repository does not exist");
    return &it->second;
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<RepositoryRow> row,
                           changes->core->RowOf(id, changes->snapshot_lsn));
  // Its root is read, whatever is done next: seen to be there, it meets its deletion; seen to be removed, its return. An
  // id that never was cannot come.
  if (row) changes->reads.files.push_back({id, ""});
  if (!row || row->is_removed()) return absl::NotFoundError("repository does not exist");
  auto live = changes->core->OpenState(id, *row);
  StagedRepository& repository = changes->repositories[id];
  repository.id = id;
  repository.live = std::move(live);
  return &repository;
}

absl::StatusOr<std::optional<PathRow>> LookUp(const StagedChanges& changes, const std::string& path) {
  const auto staged = changes.paths.find(path);
  if (staged != changes.paths.end()) return staged->second;
  return changes.core->LookUpPath(path, changes.snapshot_lsn);
}

void DeclareAllKeysRead(StagedChanges* changes, const StagedRepository& repository, const RepositoryId& id) {
  const wal::PartitionId partition =
      repository.live != nullptr ? repository.live->partition() : repository.created->partition;
  std::string prefix = KeyPrefixOfRepository(id);
  std::string end = storage::PrefixEnd(prefix);
  changes->reads.key_ranges.push_back({partition, std::move(prefix), std::move(end)});
}

absl::Status CheckPathIsFree(StagedChanges* changes, const RepositoryPath& path) {
  for (const std::string& ancestor : path.Ancestors()) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes, ancestor));
    if (row && row->repository) {
      changes->reads.repository_paths.push_back(ancestor);
      return absl::AlreadyExistsError("a repository stands at an ancestor of the path");
    }
  }
  REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes, path.text()));
  if (!row) return absl::OkStatus();
  changes->reads.repository_paths.push_back(path.text());
  return absl::AlreadyExistsError("path is taken");
}

void StagePath(const RepositoryPath& path, const RepositoryId& id, StagedChanges* changes) {
  for (const std::string& ancestor : path.Ancestors()) {
    changes->groups.insert(ancestor);
    changes->removed_groups.erase(ancestor);
    changes->paths[ancestor] = PathRow{};
  }
  changes->paths[path.text()] = PathRow{id};
}

absl::StatusOr<std::vector<RepositoryId>> AlternatesOf(const StagedChanges& changes,
                                                       const StagedRepository& repository) {
  if (repository.alternates) return *repository.alternates;
  if (repository.live == nullptr) return std::vector<RepositoryId>();
  return changes.core->AlternatesOf(repository.id, changes.snapshot_lsn);
}

absl::StatusOr<std::shared_ptr<objects::ObjectLookup>> ObjectsOf(StagedChanges* changes,
                                                                 const StagedRepository& repository) {
  std::shared_ptr<objects::ObjectLookup> live;
  if (!repository.alternates) {
    if (repository.live != nullptr) {
      REPOTXN_ASSIGN_OR_RETURN(live, repository.live->Objects());
    }
  } else {
    // Its alternates file says something else until the commit: its own objects in front of each pool's.
    objects::ObjectLookup::Options options;
    options.format = repository.format();
    const auto in_front = [&](const storage::StorePath& directory) {
      live = objects::ObjectLookup::WithQuarantine(std::move(live), changes->core->file_system(), directory,
                                                   options);
    };
    for (const RepositoryId& pool : *repository.alternates) {
      REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* borrowed, Touch(changes, pool));
      REPOTXN_ASSIGN_OR_RETURN(auto theirs, ObjectsOf(changes, *borrowed));
      if (live == nullptr) {
        live = std::move(theirs);
      } else if (borrowed->live != nullptr) {
        for (const storage::StorePath& directory : theirs->alternates()) in_front(directory);
        in_front(borrowed->live->directory() / "objects");
      }
    }
    if (repository.live != nullptr) in_front(repository.live->directory() / "objects");
  }
  for (const auto& more : repository.more_objects) live = more->Lookup(std::move(live));
  return repository.objects == nullptr ? live : repository.objects->Lookup(std::move(live));
}

}  // namespace repotxn::txn
