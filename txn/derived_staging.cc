#include "txn/derived_staging.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "objects/derived_path.h"
#include "objects/multi_pack_index.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

bool IsOfPackIndex(absl::string_view path) { return absl::StartsWith(path, objects::kMultiPackIndex); }

void StageRemoval(StagedRepository* repository, const std::string& path) {
  wal::ReplaceDerived removal;
  removal.id = repository->id;
  removal.path = path;
  removal.remove = true;
  repository->operations.push_back(std::move(removal));
}

// Whether the multi-pack-index names one of the packs, or nobody can tell.
absl::StatusOr<bool> NamesOneOf(storage::FileSystem& fs, const RepositoryState& live,
                                const std::set<std::string>& packs) {
  const storage::StorePath path = live.directory() / objects::kMultiPackIndex;
  const auto file = fs.OpenForRead(path);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return file.status();
  const auto names = objects::ReadPackNames(**file, path.text(), live.format());
  if (!names.ok()) return true;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) { return packs.contains(name); });
}

}  // namespace

void DeclareDerivedRead(StagedChanges* changes, const RepositoryId& id, absl::string_view index,
                        const std::vector<std::string>& there) {
  const auto declare = [&](absl::string_view path) {
    changes->reads.files.push_back({id, std::string(path.data(), path.size())});
  };
  const bool is_pack_index = index == objects::kMultiPackIndex;
  declare(index);
  if (!is_pack_index) declare(objects::kCommitGraphChain);
  for (const std::string& path : there) {
    if (IsOfPackIndex(path) == is_pack_index && objects::DerivedKindOf(path) == objects::DerivedKind::kPart) declare(path);
  }
}

absl::Status StageDropOfPackIndexes(StagedChanges* changes, StagedRepository* repository,
                                    const std::set<std::string>& removed_packs) {
  storage::FileSystem& fs = *changes->core->file_system();
  const RepositoryState& live = *repository->live;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> there, objects::ListDerivedFiles(fs, live.directory()));
  DeclareDerivedRead(changes, repository->id, objects::kMultiPackIndex, there);
  REPOTXN_ASSIGN_OR_RETURN(const bool is_stale, NamesOneOf(fs, live, removed_packs));
  if (!is_stale) return absl::OkStatus();
  for (const std::string& path : there) {
    if (IsOfPackIndex(path)) StageRemoval(repository, path);
  }
  return absl::OkStatus();
}

absl::Status StageDropOfCommitGraph(StagedChanges* changes, StagedRepository* repository) {
  REPOTXN_ASSIGN_OR_RETURN(
      const std::vector<std::string> there,
      objects::ListDerivedFiles(*changes->core->file_system(), repository->live->directory()));
  DeclareDerivedRead(changes, repository->id, objects::kCommitGraph, there);
  for (const std::string& path : there) {
    if (!IsOfPackIndex(path)) StageRemoval(repository, path);
  }
  return absl::OkStatus();
}

absl::Status StageDerivedFiles(StagedChanges* changes, StagedRepository* repository,
                               const objects::DerivedFiles& written) {
  for (const objects::DerivedChange& change : written.changes) {
    if (change.is_removal) {
      StageRemoval(repository, change.path);
      continue;
    }
    if (changes->payload == nullptr) changes->payload = changes->core->payloads()->Of(changes->id);
    wal::ReplaceDerived put;
    put.id = repository->id;
    put.path = change.path;
    REPOTXN_ASSIGN_OR_RETURN(put.content.payload, changes->payload->AddLinked(change.source));
    repository->operations.push_back(std::move(put));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::txn
