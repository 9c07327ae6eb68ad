// Transactions over the name space: repositories, their paths and groups.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

// Rows read at once from a group that is listed. Few: whatever is below another group is skipped, and was read in vain.
constexpr int kListedRows = 64;

bool IsOwnCreation(const StagedRepository& repository) { return repository.created.has_value(); }

// The operation that brings the repository back in this transaction, or nullptr.
wal::SetPath* Undeletion(StagedRepository* repository) {
  for (wal::Operation& op : repository->operations) {
    auto* const back = std::get_if<wal::SetPath>(&op);
    if (back != nullptr && back->old_path.empty()) return back;
  }
  return nullptr;
}

// The path that a repository has in this transaction.
absl::StatusOr<std::string> PathOf(const StagedChanges& changes, const StagedRepository& repository) {
  for (auto op = repository.operations.rbegin(); op != repository.operations.rend(); ++op) {
    if (const auto* move = std::get_if<wal::SetPath>(&*op)) return move->path;
  }
  if (repository.created) return repository.created->path;
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryInfo info,
                           changes.core->Describe(repository.id, changes.snapshot_lsn));
  return info.path;
}

absl::StatusOr<wal::RowFacts> FactsOf(const StagedChanges& changes, const StagedRepository& repository) {
  wal::RowFacts facts;
  facts.partition = repository.live->partition();
  facts.format = repository.live->format();
  REPOTXN_ASSIGN_OR_RETURN(facts.alternates, AlternatesOf(changes, repository));
  return facts;
}

// Names directly below `group` in the name space, as the transaction has it.
absl::StatusOr<std::vector<GroupEntry>> EntriesBelow(const StagedChanges& changes,
                                                     const std::string& group) {
  const std::string prefix = group.empty() ? "" : absl::StrCat(group, "/");
  std::map<std::string, PathRow> found;
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                             changes.core->rows()->Scan(PathKey(prefix), after, changes.snapshot_lsn,
                                                        kListedRows));
    if (rows.empty()) break;
    for (const Row& row : rows) {
      after = row.key;
      const std::string path = row.key.substr(PathKey("").size());
      const size_t slash = path.find('/', prefix.size());
      if (slash != std::string::npos) {
        // Below another group: on to what comes behind all of it.
        after = absl::StrCat(PathKey(path.substr(0, slash)), "/\xff");
        break;
      }
      REPOTXN_ASSIGN_OR_RETURN(const PathRow decoded, DecodePathRow(row.value));
      found.emplace(path, decoded);
    }
  }
  for (const auto& [path, row] : changes.paths) {
    if (!absl::StartsWith(path, prefix) || path.find('/', prefix.size()) != std::string::npos) continue;
    found.erase(path);
    if (row) found.emplace(path, *row);
  }
  std::vector<GroupEntry> entries;
  for (const auto& [path, row] : found) {
    entries.push_back(GroupEntry{path.substr(prefix.size()), row.repository});
  }
  return entries;
}

}  // namespace

absl::StatusOr<RepositoryInfo> Transaction::Describe(const RepositoryId& id) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  REPOTXN_ASSIGN_OR_RETURN(const std::string path, PathOf(*changes_, *repository));
  if (IsOwnCreation(*repository)) {
    return RepositoryInfo{id, path, repository->created->format, wal::Lsn(), repository->created->partition};
  }
  if (Undeletion(repository) != nullptr) {
    return RepositoryInfo{id, path, repository->format(), wal::Lsn(), repository->live->partition()};
  }
  REPOTXN_ASSIGN_OR_RETURN(RepositoryInfo info,
                           changes_->core->Describe(id, changes_->snapshot_lsn));
  changes_->reads.repository_paths.push_back(info.path);
  info.path = path;
  return info;
}

absl::Status Transaction::EnsureGroup(absl::string_view text) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryPath path, RepositoryPath::Parse(text));
  std::vector<std::string> groups = path.Ancestors();
  groups.push_back(path.text());
  for (const std::string& group : groups) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes_, group));
    if (row && row->repository) {
      changes_->reads.repository_paths.push_back(group);
      return absl::AlreadyExistsError("a repository stands at a path of the group");
    }
  }
  for (const std::string& group : groups) {
    changes_->groups.insert(group);
    changes_->removed_groups.erase(group);
    changes_->paths[group] = PathRow{};
  }
  return absl::OkStatus();
}

absl::Status Transaction::RemoveGroup(absl::string_view text) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryPath path, RepositoryPath::Parse(text));
  REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes_, path.text()));
  if (!row || row->repository) {
    changes_->reads.repository_paths.push_back(path.text());
    return absl::NotFoundError("group does not exist");
  }
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, EntriesBelow(*changes_, path.text()));
  if (!entries.empty()) {
    changes_->reads.groups.push_back(path.text());
    return absl::FailedPreconditionError("group is not empty");
  }
  changes_->groups.erase(path.text());
  changes_->removed_groups.insert(path.text());
  changes_->paths[path.text()] = std::nullopt;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GroupEntry>> Transaction::ListGroup(absl::string_view text) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  std::string group(text.data(), text.size());
  if (!group.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryPath path, RepositoryPath::Parse(text));
    group = path.text();
    REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes_, group));
    changes_->reads.groups.push_back(group);
    if (!row || row->repository) return absl::NotFoundError("group does not exist");
  } else {
    changes_->reads.groups.push_back(group);
  }
  return EntriesBelow(*changes_, group);
}

absl::StatusOr<RepositoryId> Transaction::CreateRepository(const RepositoryPath& path,
                                                           const CreateOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  wal::PartitionId partition = wal::kNameSpacePartition;
  while (partition == wal::kNameSpacePartition) {
    partition = storage::NextUint64(*changes_->core->random());
  }
  return CreateIn(path, options, partition);
}

absl::StatusOr<RepositoryId> Transaction::CreateIn(const RepositoryPath& path, const CreateOptions& options,
                                                   uint64_t partition) {
  const auto head = refs::RefName::Parse(options.head_target);
  if (!head.ok() || head->IsHead()) return absl::InvalidArgumentError("malformed target of HEAD");
  REPOTXN_RETURN_IF_ERROR(CheckPathIsFree(changes_.get(), path));
  wal::CreateRepository created;
  created.id = storage::NewId<RepositoryId>(*changes_->core->random());
  created.path = path.text();
  created.partition = partition;
  created.format = options.format;
  created.head_target = options.head_target;
  StagePath(path, created.id, changes_.get());
  StagedRepository& repository = changes_->repositories[created.id];
  repository.id = created.id;
  repository.created = created;
  return created.id;
}

absl::StatusOr<RepositoryId> Transaction::EnsureRepository(const RepositoryPath& path,
                                                           const CreateOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  absl::StatusOr<RepositoryId> existing = OpenRepository(path);
  if (!absl::IsNotFound(existing.status())) return existing;
  return CreateRepository(path, options);
}

absl::Status Transaction::DeleteRepository(const RepositoryId& id) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  if (IsOwnCreation(*repository)) {
    return absl::FailedPreconditionError("repository is created by the same transaction");
  }
  if (Undeletion(repository) != nullptr) {
    return absl::FailedPreconditionError("repository is brought back by the same transaction");
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> members, Members(id));
  if (!members.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("repository lends objects to ", members.size(), " others"));
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::string path, PathOf(*changes_, *repository));
  REPOTXN_ASSIGN_OR_RETURN(RepositoryInfo before,
                           changes_->core->Describe(id, changes_->snapshot_lsn));
  DeclareAllKeysRead(changes_.get(), *repository, id);
  repository->alternates.reset();
  REPOTXN_ASSIGN_OR_RETURN(wal::RowFacts facts, FactsOf(*changes_, *repository));
  // What it was given before stays with it, should it be brought back; only its moves and links are no more.
  repository->operations.clear();
  repository->is_removed = true;
  changes_->paths[path] = std::nullopt;
  changes_->paths[before.path] = std::nullopt;
  repository->operations.push_back(wal::RemoveRepository{id, std::move(before.path), std::move(facts), false});
  return absl::OkStatus();
}

absl::Status Transaction::MoveRepository(const RepositoryId& id, const RepositoryPath& to) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  if (IsOwnCreation(*repository)) {
    return absl::FailedPreconditionError("repository is created by the same transaction");
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::string from, PathOf(*changes_, *repository));
  if (from == to.text()) {
    changes_->reads.repository_paths.push_back(from);
    return absl::OkStatus();
  }
  // The path that it leaves is free for it and for everybody.
  const std::optional<PathRow> left = changes_->paths.count(from) > 0 ? changes_->paths[from] : PathRow{id};
  changes_->paths[from] = std::nullopt;
  if (absl::Status free = CheckPathIsFree(changes_.get(), to); !free.ok()) {
    changes_->paths[from] = left;
    return free;
  }
  if (wal::SetPath* const back = Undeletion(repository)) {
    back->path = to.text();
    StagePath(to, id, changes_.get());
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryInfo before,
                           changes_->core->Describe(id, changes_->snapshot_lsn));
  REPOTXN_ASSIGN_OR_RETURN(wal::RowFacts facts, FactsOf(*changes_, *repository));
  StagePath(to, id, changes_.get());
  // Only the last move counts.
  std::erase_if(repository->operations, [](const wal::Operation& op) { return std::holds_alternative<wal::SetPath>(op); });
  if (before.path != to.text()) {
    repository->operations.push_back(wal::SetPath{id, to.text(), before.path, std::move(facts)});
  }
  return absl::OkStatus();
}

absl::Status Transaction::UndeleteRepository(const RepositoryId& id, const RepositoryPath& path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<RepositoryRow> row,
                           changes_->core->RowOf(id, changes_->snapshot_lsn));
  if (row) changes_->reads.files.push_back({id, ""});
  if (!row || !row->is_removed()) return absl::NotFoundError("no removed repository with this id");
  if (changes_->repositories.count(id) > 0) {
    return absl::FailedPreconditionError("repository was touched by the same transaction");
  }
  REPOTXN_RETURN_IF_ERROR(CheckPathIsFree(changes_.get(), path));
  wal::RowFacts facts;
  facts.partition = row->partition;
  facts.format = row->format;
  facts.removed_at_ns = row->removed_at_ns;
  REPOTXN_ASSIGN_OR_RETURN(facts.alternates,
                           changes_->core->AlternatesOf(id, changes_->snapshot_lsn));
  for (const RepositoryId& pool : facts.alternates) {
    if (absl::Status there = Touch(changes_.get(), pool).status(); !there.ok()) {
      return absl::IsNotFound(there) ? absl::FailedPreconditionError(
                                           "a repository that it borrowed from does not exist any more")
                                     : there;
    }
  }
  StagedRepository& repository = changes_->repositories[id];
  repository.id = id;
  repository.live = changes_->core->OpenState(id, *row);
  repository.operations.push_back(wal::SetPath{id, path.text(), "", std::move(facts)});
  StagePath(path, id, changes_.get());
  return absl::OkStatus();
}

}  // namespace repotxn::txn
