// Transaction::OpenWriteSnapshot and Transaction::Capture: from directories to staged operations.
//
// Capturing
//   1  look at every directory: which paths were touched
//   2  if the snapshot moved on since the directories were made, nothing of these may have been written meanwhile; so what
//      stands at the snapshot is what the children began with
//   3  compare refs by value and read files; anything foreign in one of the directories ends it here
//   4  stage: objects, then refs (deletions first, so that a name may make room for another), then files and
//      directories, as the calls of the API would; the first error puts back what was staged before
// Payload is sealed last. If we die at any step: nothing was promised; staging/ and snapshots/ are wiped at open, payload
// without an entry is removed.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "refs/ref_reader.h"
#include "storage/status_macros.h"
#include "txn/capture.h"
#include "txn/captured_objects.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"
#include "txn/write_directories.h"

namespace repotxn::txn {
namespace {

// As Transaction::PutFile.
constexpr int64_t kFileBytesMax = 64 << 20;

// One directory as it was found.
struct FoundChanges {
  const WriteDirectories::Part* part = nullptr;
  DirectoryState after;
  DirectoryDifference difference;
  std::map<std::string, FileValue> put;  // replaced files, perhaps by the same content
  CapturedChanges changes;
};

// Its creation is none: the directory then looks as the repository will.
bool HasStagedChanges(const StagedRepository& repository) {
  return !repository.refs.empty() || !repository.files.empty() || repository.objects != nullptr ||
         !repository.operations.empty() || !repository.packs.empty() || repository.is_fork ||
         repository.alternates.has_value();
}

bool IsConfiguration(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return path == "config" || name == "config.worktree";
}

// Compares the refs that may have changed, by value.
class RefComparison {
 public:
  RefComparison(storage::FileSystem& fs, const WriteDirectories::Part& part, wal::Lsn at)
      : part_(part), at_(at), reader_(fs, part.path, part.format) {}

  absl::StatusOr<std::vector<CapturedRef>> Compare(const DirectoryDifference& difference,
                                                   std::vector<ForeignChange>* foreign) {
    RefValues before, after;
    if (difference.packed_refs_touched) {
      REPOTXN_RETURN_IF_ERROR(AddAll(difference, &before, &after, foreign));
    }
    for (const std::string& text : difference.touched_refs) {
      if (difference.packed_refs_touched && text != "HEAD") continue;
      REPOTXN_ASSIGN_OR_RETURN(const refs::RefName name, refs::RefName::Parse(text));
      REPOTXN_ASSIGN_OR_RETURN(before[text], Before(name));
      auto value = reader_.Read(name);
      if (absl::IsDataLoss(value.status()) || (value.ok() && name.IsHead() && value->is_absent())) {
        foreign->push_back({part_.id, ForeignKind::kUnreadableRef, text});
        continue;
      }
      if (!value.ok()) return value.status();
      after[text] = *std::move(value);
    }
    return DiffRefs(before, after);
  }

 private:
  absl::StatusOr<refs::RefValue> Before(const refs::RefName& name) {
    if (part_.live == nullptr) {
      if (!name.IsHead()) return refs::RefValue::Absent();
      REPOTXN_ASSIGN_OR_RETURN(refs::RefName target, refs::RefName::Parse(part_.created_head));
      return refs::RefValue::Symbolic(std::move(target));
    }
    auto value = part_.live->ReadRef(name, at_);
    // A damaged file holds no value: writing the ref is what repairs it.
    return absl::IsDataLoss(value.status()) ? refs::RefValue::Absent() : value;
  }

  absl::Status AddAll(const DirectoryDifference& difference, RefValues* before, RefValues* after,
                      std::vector<ForeignChange>* foreign) {
    auto listing = reader_.List("refs/");
    if (absl::IsDataLoss(listing.status())) {
      foreign->push_back({part_.id, ForeignKind::kUnreadableRef, "packed-refs"});
      return absl::OkStatus();
    }
    if (!listing.ok()) return listing.status();
    for (const refs::RefFault& fault : listing->faults) {
      if (difference.touched_refs.count(fault.name) > 0) {
        foreign->push_back({part_.id, ForeignKind::kUnreadableRef, fault.name});
      }
    }
    for (refs::NamedRef& ref : listing->refs) after->emplace(ref.name.text(), std::move(ref.value));
    if (part_.live == nullptr) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(auto old, part_.live->ListRefs("", at_));
    for (refs::NamedRef& ref : old) before->emplace(ref.name.text(), std::move(ref.value));
    return absl::OkStatus();
  }

  const WriteDirectories::Part& part_;
  const wal::Lsn at_;
  refs::RefReader reader_;
};

absl::Status ReadPutFiles(storage::FileSystem& fs, FoundChanges* found,
                          std::vector<ForeignChange>* foreign) {
  for (const std::string& path : found->difference.put_files) {
    const DirectoryItem& item = found->after.at(path);
    if (item.size > kFileBytesMax) {
      foreign->push_back({found->part->id, ForeignKind::kTooLarge, path});
      continue;
    }
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath file, found->part->path.Child(path));
    REPOTXN_ASSIGN_OR_RETURN(std::string content, storage::ReadFile(fs, file, kFileBytesMax));
    if (IsConfiguration(path) && !objects::CheckRepositoryConfig(content).ok()) {
      foreign->push_back({found->part->id, ForeignKind::kConfiguration, path});
    }
    found->put.emplace(path, FileValue{std::move(content), item.mode & 0777});
  }
  return absl::OkStatus();
}

// Step 1 for one repository.
absl::StatusOr<FoundChanges> Look(storage::FileSystem& fs, const WriteDirectories::Part& part) {
  FoundChanges found;
  found.part = &part;
  found.changes.id = part.id;
  REPOTXN_ASSIGN_OR_RETURN(found.after, ReadDirectoryState(fs, part.path));
  found.difference = DiffDirectories(part.before, found.after, part.format);
  return found;
}

// For step 2.
locks::DeclaredReads Touched(const std::vector<FoundChanges>& all) {
  locks::DeclaredReads reads;
  for (const FoundChanges& found : all) {
    const RepositoryId& id = found.part->id;
    const DirectoryDifference& difference = found.difference;
    for (const std::string& name : difference.touched_refs) reads.refs.push_back({id, name});
    if (difference.packed_refs_touched) reads.ref_prefixes.push_back({id, ""});
    for (const std::string& path : difference.put_files) reads.files.push_back({id, path});
    for (const std::string& path : difference.removed_files) reads.files.push_back({id, path});
    for (const std::string& path : difference.removed_directories) {
      reads.directories.push_back({id, path});
    }
  }
  return reads;
}

// Step 3 for one repository. `at` is the transaction's snapshot.
absl::Status CompareValues(storage::FileSystem& fs, wal::Lsn at, FoundChanges* found,
                           std::vector<ForeignChange>* foreign) {
  for (ForeignChange change : found->difference.foreign) {
    change.id = found->part->id;
    foreign->push_back(std::move(change));
  }
  REPOTXN_ASSIGN_OR_RETURN(found->changes.refs,
                           RefComparison(fs, *found->part, at).Compare(found->difference, foreign));
  REPOTXN_RETURN_IF_ERROR(ReadPutFiles(fs, found, foreign));
  found->changes.removed_files = found->difference.removed_files;
  found->changes.made_directories = found->difference.made_directories;
  found->changes.removed_directories = found->difference.removed_directories;
  return absl::OkStatus();
}

std::set<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Step 4 for one repository.
class Stager {
 public:
  Stager(Transaction* transaction, StagedChanges* staged, const WriteDirectories& directories,
         FoundChanges* found)
      : transaction_(transaction), staged_(staged), directories_(directories), found_(found),
        id_(found->part->id) {}

  absl::Status Stage() {
    REPOTXN_RETURN_IF_ERROR(StageObjects());
    REPOTXN_RETURN_IF_ERROR(CheckDeepened());
    REPOTXN_RETURN_IF_ERROR(StageRefs(true));
    REPOTXN_RETURN_IF_ERROR(StageRefs(false));
    return StageFiles();
  }

 private:
  storage::FileSystem& fs() { return *staged_->core->file_system(); }

  absl::StatusOr<std::string> Shallow() {
    auto text = storage::ReadFile(fs(), found_->part->path / "shallow");
    return absl::IsNotFound(text.status()) ? std::string() : text;
  }

  absl::Status StageObjects() {
    NewObjects objects{found_->difference.loose_objects, found_->difference.packs};
    if (objects.empty()) return absl::OkStatus();
    StagedRepository& repository = staged_->repositories.at(id_);
    if (repository.objects != nullptr) {
      return absl::FailedPreconditionError("repository has a staged pack already");
    }
    REPOTXN_ASSIGN_OR_RETURN(std::string shallow, Shallow());
    REPOTXN_ASSIGN_OR_RETURN(auto staging,
                             staged_->core->StageObjectsOf(staged_->id, repository.live, repository.format(),
                                                           std::move(shallow)));
    REPOTXN_ASSIGN_OR_RETURN(
        found_->changes.new_objects,
        StageNewObjects(&fs(), found_->part->path, repository.format(), objects,
                        directories_.Command(id_, {}), staging.get()));
    if (staging->has_pack()) repository.objects = std::move(staging);
    return absl::OkStatus();
  }

  // A commit that is cut off no longer names its parents again: they must be there.
  absl::Status CheckDeepened() {
    const StagedRepository& repository = staged_->repositories.at(id_);
    if (repository.live == nullptr) return absl::OkStatus();
    const bool is_removed = std::count(found_->changes.removed_files.begin(),
                                       found_->changes.removed_files.end(), "shallow") > 0;
    if (found_->put.count("shallow") == 0 && !is_removed) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const FileState before,
                             repository.live->ReadFile("shallow", staged_->snapshot_lsn));
    if (before.content == nullptr) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const std::string after, Shallow());
    const std::set<std::string> kept = LinesOf(after);
    REPOTXN_ASSIGN_OR_RETURN(const auto objects, ObjectsOf(staged_, repository));
    for (const std::string& line : LinesOf(*before.content)) {
      if (kept.count(line) > 0) continue;
      REPOTXN_ASSIGN_OR_RETURN(const ObjectId commit, ObjectId::FromHex(line, repository.format()));
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> parents, objects->CommitParents(commit));
      for (const ObjectId& parent : parents) {
        REPOTXN_ASSIGN_OR_RETURN(const bool exists, objects->Exists(parent));
        if (!exists) return absl::FailedPreconditionError("parent of a commit that was shallow is missing");
      }
    }
    return absl::OkStatus();
  }

  absl::Status StageRefs(bool deletions) {
    for (const CapturedRef& ref : found_->changes.refs) {
      if (ref.after.is_absent() != deletions) continue;
      REPOTXN_RETURN_IF_ERROR(transaction_->UpdateRef(
          id_, {.name = ref.name, .expected = ref.before, .value = ref.after, .no_deref = true}));
    }
    return absl::OkStatus();
  }

  absl::Status StageFiles() {
    CapturedChanges& changes = found_->changes;
    for (const std::string& path : changes.removed_files) {
      REPOTXN_RETURN_IF_ERROR(transaction_->RemoveFile(id_, path));
    }
    for (auto path = changes.removed_directories.rbegin(); path != changes.removed_directories.rend(); ++path) {
      REPOTXN_RETURN_IF_ERROR(transaction_->RemoveDirectory(id_, *path));
    }
    for (const std::string& path : changes.made_directories) {
      REPOTXN_RETURN_IF_ERROR(transaction_->MakeDirectory(id_, path));
    }
    for (auto& [path, value] : found_->put) {
      const auto before = transaction_->ReadFile(id_, path);
      if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
      if (before.ok() && *before == value) continue;
      changes.put_files.push_back(path);
      REPOTXN_RETURN_IF_ERROR(transaction_->PutFile(id_, path, std::move(value)));
    }
    return absl::OkStatus();
  }

  Transaction* const transaction_;
  StagedChanges* const staged_;
  const WriteDirectories& directories_;
  FoundChanges* const found_;
  const RepositoryId id_;
};

}  // namespace

absl::StatusOr<WriteSnapshot*> Transaction::OpenWriteSnapshot(std::vector<RepositoryId> ids,
                                                              const WriteSnapshotOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  if (ids.empty()) return absl::InvalidArgumentError("write snapshot of no repository");
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<StagedRepository*> repositories;
  for (const RepositoryId& id : ids) {
    REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
    if (HasStagedChanges(*repository)) {
      return absl::FailedPreconditionError("repository has staged changes, which a child would not see");
    }
    repositories.push_back(repository);
  }
  REPOTXN_ASSIGN_OR_RETURN(
      auto made, WriteDirectories::Make(changes_->core, changes_.get(), repositories, options));
  if (options.tracking == ReadTracking::kWholeRepository) {
    for (const StagedRepository* repository : repositories) {
      if (repository->live != nullptr) changes_->reads.whole_repositories.push_back(repository->id);
    }
  }
  changes_->write_snapshots.push_back(std::move(made));
  return changes_->write_snapshots.back().get();
}

absl::StatusOr<std::vector<CapturedChanges>> Transaction::Capture(WriteSnapshot* snapshot) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  const auto own = std::find_if(changes_->write_snapshots.begin(), changes_->write_snapshots.end(),
                                [snapshot](const auto& each) { return each.get() == snapshot; });
  if (own == changes_->write_snapshots.end()) {
    return absl::InvalidArgumentError("write snapshot of another transaction");
  }
  WriteDirectories& directories = **own;
  if (directories.is_captured()) return absl::FailedPreconditionError("write snapshot was captured already");

  storage::FileSystem& fs = *changes_->core->file_system();
  std::vector<FoundChanges> all;
  for (const WriteDirectories::Part& part : directories.parts()) {
    REPOTXN_ASSIGN_OR_RETURN(FoundChanges found, Look(fs, part));
    all.push_back(std::move(found));
  }
  if (changes_->snapshot_lsn != directories.lsn()) {
    REPOTXN_RETURN_IF_ERROR(changes_->core->CheckReadsSince(Touched(all), directories.lsn()));
  }
  std::vector<ForeignChange> foreign;
  for (FoundChanges& found : all) {
    REPOTXN_RETURN_IF_ERROR(CompareValues(fs, changes_->snapshot_lsn, &found, &foreign));
  }
  if (!foreign.empty()) return ForeignChangesError(foreign);

  const std::map<RepositoryId, StagedRepository> staged_before = changes_->repositories;
  absl::Status staged;
  for (FoundChanges& found : all) {
    if (staged.ok()) staged = Stager(this, changes_.get(), directories, &found).Stage();
  }
  for (FoundChanges& found : all) {
    const auto& objects = changes_->repositories.at(found.part->id).objects;
    if (staged.ok() && objects != nullptr) staged = objects->Seal();
  }
  if (!staged.ok()) {
    changes_->repositories = staged_before;
    return staged;
  }
  directories.set_captured();
  std::vector<CapturedChanges> captured;
  for (FoundChanges& found : all) captured.push_back(std::move(found.changes));
  return captured;
}

}  // namespace repotxn::txn
