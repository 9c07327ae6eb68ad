// Transactions that move whole sets of objects between repositories: what an unlinked member must own, what a pool gets.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/borrowed_objects.h"
#include "objects/object_set.h"
#include "objects/pack_index.h"
#include "objects/pack_merge.h"
#include "storage/status_macros.h"
#include "txn/borrower_needs.h"
#include "txn/derived_staging.h"
#include "txn/layout.h"
#include "txn/live_objects.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack";
// A pack that stays holds so many times as many objects as all smaller ones together.
constexpr int64_t kPackGrowth = 2;

// Leaves out packs that somebody wants kept where they are, and those of unreachable objects, which stay apart with their times.
absl::Status LeaveOutKept(storage::FileSystem& fs, const storage::StorePath& directory, std::vector<std::string>* packs) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(directory));
  std::set<std::string> kept;
  for (const storage::DirectoryEntry& entry : entries) {
    absl::string_view stem = entry.name;
    if (absl::ConsumeSuffix(&stem, ".keep") || absl::ConsumeSuffix(&stem, ".mtimes")) kept.emplace(stem.data(), stem.size());
    // Of a later Git: a chain of them, which names packs as well.
    if (entry.name == "multi-pack-index.d") {
      return absl::FailedPreconditionError(absl::StrCat("stands in the way of removing packs: ", entry.name));
    }
  }
  std::erase_if(*packs, [&kept](const std::string& name) { return kept.contains(name); });
  return absl::OkStatus();
}

// All objects of the packs, and `loose`, each once.
absl::StatusOr<std::vector<ObjectId>> IdsOf(const std::map<std::string, std::unique_ptr<objects::PackIndex>>& indexes,
                                            const std::vector<std::string>& packs, std::vector<ObjectId> loose) {
  std::vector<ObjectId> all = std::move(loose);
  for (const std::string& name : packs) {
    REPOTXN_RETURN_IF_ERROR(indexes.at(name)->ForEach([&all](const ObjectId& oid, int64_t) {
      all.push_back(oid);
      return absl::OkStatus();
    }));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace

absl::Status Transaction::BringInBorrowedObjects(const RepositoryId& member, const RepositoryId& pool) {
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * borrower, Touch(changes_.get(), member));
  const std::shared_ptr<RepositoryState> live = borrower->live;
  // Whatever is added to the member after the snapshot may name more: its packs and its refs are read.
  AddReadsOfUses(member, &changes_->reads);
  objects::BorrowedObjects request;
  REPOTXN_ASSIGN_OR_RETURN(request.tips, AllTips(live.get(), changes_->snapshot_lsn));
  // Who borrows from the member reaches the pool through it, and loses it too.
  absl::Status failure;
  std::vector<storage::StorePath> lost;
  for (const RepositoryId& each : changes_->core->ChainOf(pool, changes_->snapshot_lsn, &failure)) {
    lost.push_back(layout::RepositoryDirectory(each) / "objects");
  }
  REPOTXN_RETURN_IF_ERROR(failure);
  std::map<RepositoryId, WatchedUser> borrowers;
  REPOTXN_RETURN_IF_ERROR(CollectNeedsOfBorrowers(changes_.get(), member, lost, &borrowers, &request.tips));
  for (const auto& [other, looked_at] : borrowers) AddReadsOfUses(other, &changes_->reads);
  REPOTXN_ASSIGN_OR_RETURN(auto staged,
                           changes_->core->StageObjectsOf(changes_->id, live, live->format()));
  request.snapshot = staged->directory();
  request.objects = live->directory() / "objects";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  for (const RepositoryId& other : alternates) {
    if (other == pool) continue;
    request.still_borrowed.push_back(layout::RepositoryDirectory(other) / "objects");
  }
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::PackedObjects packed,
      objects::PackBorrowedObjects(*changes_->core->file_system(), request,
                                   PackingOptions(*changes_->core, live->format())));
  return StagePacked(packed, std::move(staged), borrower);
}

absl::StatusOr<PackMerge> Transaction::MergePacks(const RepositoryId& id, const PackMergeOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::shared_ptr<RepositoryState> live = repository->live;
  if (live == nullptr) return absl::FailedPreconditionError("repository is created by the same transaction");
  if (repository->removes_packs()) return absl::FailedPreconditionError("transaction packs a repository anew already");
  storage::FileSystem* const fs = changes_->core->file_system();
  // Whatever was there at the snapshot stays until this transaction ends; what was added since waits for the next [hard
  // case A7].
  REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> names, ListPacksAt(*changes_->core, *live, changes_->snapshot_lsn));
  const int64_t packs_before = static_cast<int64_t>(names.size());
  REPOTXN_RETURN_IF_ERROR(LeaveOutKept(*fs, live->directory() / kPackDirectory, &names));
  std::map<std::string, std::unique_ptr<objects::PackIndex>> indexes;
  std::vector<objects::PackSize> sizes;
  for (const std::string& name : names) {
    REPOTXN_ASSIGN_OR_RETURN(indexes[name], objects::PackIndex::Open(*fs, layout::PackFile(id, name, ".idx"), live->format()));
    sizes.push_back({name, indexes[name]->count()});
  }
  PackMerge merge;
  merge.packs_before = packs_before;
  const std::vector<std::string> chosen = options.all ? names : objects::PacksToMerge(sizes, kPackGrowth);
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose,
                           objects::ListLooseObjects(*fs, live->directory() / "objects", live->format()));
  merge.loose_objects = static_cast<int64_t>(loose.size());
  if (chosen.size() < 2 && loose.empty()) return merge;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> ids, IdsOf(indexes, chosen, loose));
  indexes.clear();
  REPOTXN_ASSIGN_OR_RETURN(auto staged, changes_->core->StageObjectsOf(changes_->id, live, live->format()));
  REPOTXN_ASSIGN_OR_RETURN(const objects::PackedObjects packed,
                           objects::PackObjects(*fs, staged->directory(), ids,
                                                PackingOptions(*changes_->core, live->format())));
  REPOTXN_RETURN_IF_ERROR(StagePacked(packed, std::move(staged), repository));
  std::set<std::string> removed(chosen.begin(), chosen.end());
  removed.erase(packed.pack_name);
  for (const std::string& name : removed) repository->operations.push_back(wal::RemovePack{id, name});
  REPOTXN_RETURN_IF_ERROR(StageDropOfPackIndexes(changes_.get(), repository, removed));
  merge.packs_merged = static_cast<int64_t>(chosen.size());
  merge.objects = packed.objects;
  return merge;
}

absl::StatusOr<RepositoryId> Transaction::CreatePool(const RepositoryId& member,
                                                     const RepositoryPath& path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* borrower, Touch(changes_.get(), member));
  const std::shared_ptr<RepositoryState> live = borrower->live;
  if (live == nullptr) {
    return absl::FailedPreconditionError("repository is created by the same transaction");
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  if (!alternates.empty()) {
    return absl::FailedPreconditionError("repository borrows objects itself");
  }
  CreateOptions create;
  create.format = live->format();
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, CreateIn(path, create, live->partition()));
  StagedRepository& pool = changes_->repositories[id];
  storage::FileSystem* const fs = changes_->core->file_system();
  // Loose objects first: a merge may move them into a pack meanwhile, and then they are in both lists.
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose_ids,
                           objects::ListLooseObjects(*fs, live->directory() / "objects", live->format()));
  // Its packs, by link: they are listed once the snapshot is taken, so what is pushed meanwhile may be among them, whole,
  // or not; the member keeps its own in any case.
  changes_->payload = changes_->core->payloads()->Of(changes_->id);
  const storage::StorePath packs = live->directory() / kPackDirectory;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListPacks(*changes_->core, member));
  for (const std::string& name : names) {
    wal::AddPack pack;
    pack.id = id;
    pack.name = name;
    const std::pair<wal::PayloadFile*, absl::string_view> files[] = {
        {&pack.pack, ".pack"}, {&pack.reverse_index, ".rev"}, {&pack.index, ".idx"}};
    for (const auto& [file, suffix] : files) {
      REPOTXN_ASSIGN_OR_RETURN(*file, changes_->payload->AddLinked(packs / absl::StrCat(name, suffix)));
    }
    pool.packs.push_back(std::move(pack));
  }
  REPOTXN_ASSIGN_OR_RETURN(auto staged,
                           changes_->core->StageObjectsOf(changes_->id, live, live->format()));
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::PackedObjects loose,
      objects::PackObjects(*fs, staged->directory(), loose_ids, PackingOptions(*changes_->core, live->format())));
  REPOTXN_RETURN_IF_ERROR(StagePacked(loose, std::move(staged), &pool));
  REPOTXN_RETURN_IF_ERROR(LinkAlternate(member, id));
  return id;
}

}  // namespace repotxn::txn
