#include "txn/transaction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/closure_check.h"
#include "objects/error_detail.h"
#include "refs/directory_file_rule.h"
#include "storage/status_macros.h"
#include "txn/live_objects.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

// Content that a transaction may give to one file, in bytes: it waits in memory until it is materialized.
constexpr int64_t kFileBytesMax = 64 << 20;

// A ref in the snapshot, declared as read.
absl::StatusOr<refs::RefValue> ReadSnapshotRef(StagedChanges* changes, const StagedRepository& repository,
                                               const refs::RefName& name) {
  if (repository.live == nullptr) {
    if (!name.IsHead()) return refs::RefValue::Absent();
    REPOTXN_ASSIGN_OR_RETURN(refs::RefName target, refs::RefName::Parse(repository.created->head_target));
    return refs::RefValue::Symbolic(std::move(target));
  }
  changes->reads.refs.push_back({repository.id, name.text()});
  return repository.live->ReadRef(name, changes->snapshot_lsn);
}

// The refs as the transaction sees them: its snapshot with its own changes. For the D/F rule, whose answers need no
// read keys: the history counts live refs above and below every created name.
class TransactionView final : public refs::ExistingRefs {
 public:
  TransactionView(const StagedRepository* repository, wal::Lsn at) : repository_(repository), at_(at) {}

  absl::StatusOr<bool> Exists(absl::string_view name) override {
    const std::string text(name.data(), name.size());
    if (repository_->present.count(text) > 0) return true;
    if (repository_->absent.count(text) > 0 || repository_->live == nullptr) return false;
    const auto parsed = refs::RefName::Parse(name);
    if (!parsed.ok()) return false;  // a prefix like "refs/heads" is no name and cannot exist
    const auto value = repository_->live->ReadRef(*parsed, at_);
    if (absl::IsDataLoss(value.status())) return false;  // a file without a value is moved out of the way
    if (!value.ok()) return value.status();
    return !value->is_absent();
  }

  absl::StatusOr<std::optional<std::string>> NextBelow(absl::string_view name,
                                                       absl::string_view after) override {
    const std::string prefix = absl::StrCat(name, "/");
    std::optional<std::string> staged;
    const auto it = repository_->present.upper_bound(
        std::max(prefix, std::string(after.data(), after.size())));
    if (it != repository_->present.end() && absl::StartsWith(*it, prefix)) staged = *it;
    std::string from(after.data(), after.size());
    while (repository_->live != nullptr) {
      REPOTXN_ASSIGN_OR_RETURN(const std::optional<std::string> found,
                               repository_->live->NextRefBelow(name, from, at_));
      if (!found) break;
      if (repository_->absent.count(*found) == 0) {
        return staged && *staged < *found ? staged : found;
      }
      from = *found;
    }
    return staged;
  }

 private:
  const StagedRepository* const repository_;
  const wal::Lsn at_;
};

// The value to stage for a ref: checked to exist, and peeled when it is an annotated tag.
absl::StatusOr<refs::RefValue> CheckTip(StagedChanges* changes, const StagedRepository& repository,
                                        const refs::RefName& name, const refs::RefValue& value) {
  if (!value.is_object()) return value;
  REPOTXN_ASSIGN_OR_RETURN(const auto objects, ObjectsOf(changes, repository));
  if (objects == nullptr) {
    return absl::FailedPreconditionError(objects::TipFaultReason(objects::TipFaultKind::kMissing));
  }
  if (!name.IsBranch()) {
    // Any type will do, and to peel it is to find it: one look proves both.
    const auto peeled = objects->Peel(value.oid());
    if (absl::IsNotFound(peeled.status()) &&
        objects::ErrorDetail(peeled.status(), "oid") == value.oid().ToHex()) {
      return absl::FailedPreconditionError(objects::TipFaultReason(objects::TipFaultKind::kMissing));
    }
    if (!peeled.ok()) return peeled.status();
    return refs::RefValue::Object(value.oid(), peeled->tags > 0 ? peeled->oid : ObjectId());
  }
  const objects::Tip tip{name.text(), value.oid()};
  REPOTXN_ASSIGN_OR_RETURN(const auto faults, objects::CheckTips(*objects, absl::MakeConstSpan(&tip, 1)));
  if (!faults.empty()) {
    return absl::FailedPreconditionError(objects::TipFaultReason(faults[0].kind));
  }
  return refs::RefValue::Object(value.oid());  // a commit: nothing to peel
}

absl::StatusOr<FileState> ReadStagedFile(StagedChanges* changes, const StagedRepository& repository,
                                         const std::string& path) {
  const auto staged = repository.files.find(path);
  if (staged != repository.files.end()) return staged->second;
  if (repository.live == nullptr) {
    return FileState{};
  }
  changes->reads.files.push_back({repository.id, path});
  return repository.live->ReadFile(path, changes->snapshot_lsn);
}

}  // namespace

Transaction::Transaction(std::unique_ptr<StagedChanges> changes) : changes_(std::move(changes)) {}

Transaction::~Transaction() { Abort(); }

const TransactionId& Transaction::id() const { return changes_->id; }
wal::Lsn Transaction::snapshot_lsn() const { return changes_->snapshot_lsn; }

const absl::Status& Transaction::previous_conflict() const { return changes_->previous_conflict; }

absl::Status Transaction::Extend() {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  return changes_->core->ExtendSnapshot(changes_.get());
}

absl::StatusOr<RepositoryId> Transaction::OpenRepository(const RepositoryPath& path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  if (changes_->paths.count(path.text()) == 0) {
    changes_->reads.repository_paths.push_back(path.text());
  }
  REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUp(*changes_, path.text()));
  if (!row || !row->repository) return absl::NotFoundError("repository does not exist");
  REPOTXN_RETURN_IF_ERROR(Touch(changes_.get(), *row->repository).status());
  return *row->repository;
}

absl::StatusOr<refs::RefValue> Transaction::ReadRef(const RepositoryId& id, const refs::RefName& name) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  if (auto staged = repository->refs.Staged(name)) return *std::move(staged);
  return ReadSnapshotRef(changes_.get(), *repository, name);
}

absl::StatusOr<std::vector<std::pair<refs::RefName, refs::RefValue>>> Transaction::ListRefs(
    const RepositoryId& id, absl::string_view prefix) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  std::map<std::string, std::pair<refs::RefName, refs::RefValue>> listed;
  if (repository->live != nullptr) {
    changes_->reads.ref_prefixes.push_back({id, std::string(prefix.data(), prefix.size())});
    REPOTXN_ASSIGN_OR_RETURN(auto refs, repository->live->ListRefs(prefix, changes_->snapshot_lsn));
    if (repository->refs.empty()) {
      std::vector<std::pair<refs::RefName, refs::RefValue>> all;
      all.reserve(refs.size());
      for (refs::NamedRef& ref : refs) all.emplace_back(std::move(ref.name), std::move(ref.value));
      return all;
    }
    for (refs::NamedRef& ref : refs) {
      std::string text = ref.name.text();
      listed.emplace(std::move(text), std::make_pair(std::move(ref.name), std::move(ref.value)));
    }
  }
  for (const refs::RefName& name : repository->refs.StagedNames()) {
    if (name.IsHead() || !absl::StartsWith(name.view(), prefix)) continue;
    const refs::RefValue value = *repository->refs.Staged(name);
    listed.erase(name.text());
    if (!value.is_absent()) listed.emplace(name.text(), std::make_pair(name, value));
  }
  std::vector<std::pair<refs::RefName, refs::RefValue>> all;
  for (auto& [text, ref] : listed) all.push_back(std::move(ref));
  return all;
}

absl::Status Transaction::UpdateRef(const RepositoryId& id, const refs::RefUpdate& update) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  if (update.value.is_object() && update.value.oid().format() != repository->format()) {
    return absl::InvalidArgumentError("object id of another object format");
  }
  const auto lookup = [&](const refs::RefName& name) {
    auto value = ReadSnapshotRef(changes_.get(), *repository, name);
    // A damaged file holds no value: writing the ref is what repairs it.
    return absl::IsDataLoss(value.status()) ? refs::RefValue::Absent() : value;
  };
  // The checks come first and staging last, so that an error stages nothing. They judge the name that is written.
  refs::RefName target = update.name;
  if (!update.no_deref && !update.value.is_symbolic()) {
    REPOTXN_ASSIGN_OR_RETURN(refs::ResolvedRef resolved,
                             refs::ResolveSymbolic(update.name, [&](const refs::RefName& name) {
                               auto staged = repository->refs.Staged(name);
                               return staged ? absl::StatusOr<refs::RefValue>(*std::move(staged))
                                             : lookup(name);
                             }));
    target = std::move(resolved.name);
  }
  refs::RefUpdate checked = update;
  REPOTXN_ASSIGN_OR_RETURN(checked.value, CheckTip(changes_.get(), *repository, target, update.value));
  TransactionView view(repository, changes_->snapshot_lsn);
  if (!update.value.is_absent() && !target.IsHead()) {
    REPOTXN_ASSIGN_OR_RETURN(const bool exists, view.Exists(target.view()));
    if (!exists) {
      REPOTXN_ASSIGN_OR_RETURN(
          const auto conflict,
          refs::FindDirectoryFileConflict(absl::MakeConstSpan(&target, 1), {}, view));
      if (conflict) {
        // Whoever goes on without this ref relies on what stood in its way.
        changes_->reads.refs.push_back({id, conflict->blocked_by});
        return refs::DirectoryFileError(*conflict);
      }
    }
  }
  REPOTXN_ASSIGN_OR_RETURN(const refs::RefName written, repository->refs.Stage(checked, lookup));
  const bool is_absent = repository->refs.Staged(written)->is_absent();
  repository->present.erase(written.text());
  repository->absent.erase(written.text());
  (is_absent ? repository->absent : repository->present).insert(written.text());
  return absl::OkStatus();
}

absl::StatusOr<FileValue> Transaction::ReadFile(const RepositoryId& id, absl::string_view path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  REPOTXN_ASSIGN_OR_RETURN(const FileState state,
                           ReadStagedFile(changes_.get(), *repository, std::string(path.data(), path.size())));
  if (state.kind != FileState::Kind::kFile) return absl::NotFoundError("file does not exist");
  return FileValue{*state.content, state.mode};
}

absl::Status Transaction::PutFile(const RepositoryId& id, absl::string_view path, FileValue value) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  if ((value.mode & ~uint32_t{0777}) != 0) return absl::InvalidArgumentError("mode of a file");
  if (static_cast<int64_t>(value.content.size()) > kFileBytesMax) {
    return absl::InvalidArgumentError("content of a file is larger than 64 MiB");
  }
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::string text(path.data(), path.size());
  REPOTXN_ASSIGN_OR_RETURN(const FileState before, ReadStagedFile(changes_.get(), *repository, text));
  if (before.kind == FileState::Kind::kDirectory) {
    return absl::FailedPreconditionError("path is a directory");
  }
  for (size_t slash = text.find('/'); slash != std::string::npos; slash = text.find('/', slash + 1)) {
    REPOTXN_ASSIGN_OR_RETURN(const FileState parent,
                             ReadStagedFile(changes_.get(), *repository, text.substr(0, slash)));
    if (parent.kind == FileState::Kind::kFile) {
      return absl::FailedPreconditionError("a parent of the path is a file");
    }
  }
  repository->files[text] = FileState{FileState::Kind::kFile, value.mode,
                                      std::make_shared<const std::string>(std::move(value.content))};
  return absl::OkStatus();
}

absl::Status Transaction::RemoveFile(const RepositoryId& id, absl::string_view path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::string text(path.data(), path.size());
  REPOTXN_ASSIGN_OR_RETURN(const FileState before, ReadStagedFile(changes_.get(), *repository, text));
  if (before.kind != FileState::Kind::kFile) return absl::NotFoundError("file does not exist");
  repository->files[text] = FileState{};
  return absl::OkStatus();
}

absl::Status Transaction::MakeDirectory(const RepositoryId& id, absl::string_view path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::string text(path.data(), path.size());
  // Not a declared read: making a directory that is there commutes with making it.
  FileState before;
  const auto staged = repository->files.find(text);
  if (staged != repository->files.end()) {
    before = staged->second;
  } else if (repository->live != nullptr) {
    REPOTXN_ASSIGN_OR_RETURN(before, repository->live->ReadFile(text, changes_->snapshot_lsn));
  }
  if (before.kind == FileState::Kind::kFile) return absl::FailedPreconditionError("path is a file");
  repository->files[text] = FileState{FileState::Kind::kDirectory, 0755, nullptr};
  return absl::OkStatus();
}

absl::Status Transaction::RemoveDirectory(const RepositoryId& id, absl::string_view path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::string text(path.data(), path.size());
  REPOTXN_ASSIGN_OR_RETURN(const FileState before, ReadStagedFile(changes_.get(), *repository, text));
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(id, path));
  if (before.kind == FileState::Kind::kFile) return absl::FailedPreconditionError("path is a file");
  if (!names.empty()) return absl::FailedPreconditionError("directory is not empty");
  if (before.kind == FileState::Kind::kAbsent) return absl::NotFoundError("directory does not exist");
  repository->files[text] = FileState{FileState::Kind::kAbsent, 0, nullptr};
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Transaction::ListDirectory(const RepositoryId& id,
                                                                   absl::string_view path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  if (!path.empty()) REPOTXN_RETURN_IF_ERROR(CheckWritablePath(path));
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  std::set<std::string> names;
  if (repository->live != nullptr) {
    changes_->reads.directories.push_back({id, std::string(path.data(), path.size())});
    REPOTXN_ASSIGN_OR_RETURN(const auto listed,
                             repository->live->ListDirectory(path, changes_->snapshot_lsn));
    names.insert(listed.begin(), listed.end());
  }
  const std::string prefix = path.empty() ? "" : absl::StrCat(path, "/");
  for (const auto& [staged, state] : repository->files) {
    if (!absl::StartsWith(staged, prefix)) continue;
    const std::string rest = staged.substr(prefix.size());
    const size_t slash = rest.find('/');
    if (state.kind != FileState::Kind::kAbsent) {
      names.insert(rest.substr(0, slash));
    } else if (slash == std::string::npos) {
      names.erase(rest);
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status Transaction::ReadWholeRepository(const RepositoryId& id) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* repository, Touch(changes_.get(), id));
  changes_->reads.whole_repositories.push_back(id);
  DeclareAllKeysRead(changes_.get(), *repository, id);
  return absl::OkStatus();
}

absl::StatusOr<bool> Transaction::ObjectExists(const RepositoryId& id, const ObjectId& oid) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  REPOTXN_ASSIGN_OR_RETURN(const auto objects, ObjectsOf(changes_.get(), *repository));
  if (objects == nullptr) return false;
  REPOTXN_ASSIGN_OR_RETURN(const bool exists, objects->Exists(oid));
  if (!exists || changes_->access == Access::kReadOnly) return exists;
  repository->needed_objects.push_back(oid);
  if (repository->live == nullptr) return exists;
  // Where it looked for it.
  REPOTXN_RETURN_IF_ERROR(AddReadsOfChain(id, changes_.get()));
  return exists;
}

absl::Status Transaction::AddPack(const RepositoryId& id, std::shared_ptr<ObjectStaging> staging) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  auto staged = std::dynamic_pointer_cast<StagedObjects>(std::move(staging));
  if (staged == nullptr) return absl::InvalidArgumentError("staging of another store");
  if (staged->transaction_id() != changes_->id) {
    return absl::InvalidArgumentError("staging of another transaction");
  }
  if (staged->format() != repository->format()) {
    return absl::InvalidArgumentError("pack of another object format");
  }
  if (!staged->has_pack()) return absl::OkStatus();
  if (repository->objects != nullptr && repository->objects != staged) {
    return absl::FailedPreconditionError("repository has a staged pack already");
  }
  REPOTXN_RETURN_IF_ERROR(staged->Seal());
  repository->objects = std::move(staged);
  return absl::OkStatus();
}

void Transaction::SetActor(absl::string_view actor, absl::string_view origin) {
  changes_->actor = std::string(actor.data(), actor.size());
  changes_->origin = std::string(origin.data(), origin.size());
}

void Transaction::SetPushOptions(std::vector<std::string> options) {
  changes_->push_options = std::move(options);
}

absl::Status Transaction::RunOnceErased(absl::string_view step, absl::FunctionRef<std::any()> action,
                                        std::any* result) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  std::map<std::string, std::any>& results = changes_->memo->results;
  const std::string key(step.data(), step.size());
  auto it = results.find(key);
  // The action may have steps of its own, so nothing is held over it.
  if (it == results.end()) it = results.insert_or_assign(key, action()).first;
  *result = it->second;
  return absl::OkStatus();
}

absl::Status Transaction::DryRun() {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  return changes_->core->DryRunChanges(*changes_);
}

CommitResult Transaction::Commit() {
  CommitResult result;
  result.transaction_id = changes_->id;
  const ActiveCall call(changes_.get());
  result.status = call.CheckOpen();
  if (!result.status.ok()) return result;
  result = changes_->core->CommitChanges(changes_.get());
  changes_->core->End(changes_.get(), result.outcome == CommitOutcome::kUnknown);
  return result;
}

void Transaction::Abort() {
  if (!changes_->has_ended) changes_->core->End(changes_.get(), false);
}

}  // namespace repotxn::txn
