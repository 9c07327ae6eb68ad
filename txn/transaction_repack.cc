// Transactions that rewrite the packs of a repository, and with them what it keeps.
//
// What may go is judged at the snapshot, from its refs and from everything that its borrowers have; what comes in between is met
// at the commit (txn/object_looks.h).
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/object_set.h"
#include "objects/repack.h"
#include "storage/status_macros.h"
#include "txn/borrower_needs.h"
#include "txn/derived_staging.h"
#include "txn/layout.h"
#include "txn/live_objects.h"
#include "txn/object_looks.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

// Files that say that a pack must stay: somebody else's word, which nothing here may overrule.
absl::Status CheckNothingIsKept(storage::FileSystem& fs, const storage::StorePath& packs) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(packs));
  for (const storage::DirectoryEntry& entry : entries) {
    if (!absl::EndsWith(entry.name, ".keep")) continue;
    return absl::FailedPreconditionError(absl::StrCat("a pack is marked to be kept, by somebody else: ", entry.name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Repack> Transaction::RepackObjects(const RepositoryId& id, const RepackOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::shared_ptr<RepositoryState> live = repository->live;
  if (live == nullptr) return absl::FailedPreconditionError("repository is created by the same transaction");
  // One: what a second one relies on may be what the first one gives up.
  for (const auto& [other, staged] : changes_->repositories) {
    if (staged.removes_packs() || !staged.given_up_objects.empty()) {
      return absl::FailedPreconditionError("transaction packs a repository anew already");
    }
  }
  StoreCore& core = *changes_->core;
  storage::FileSystem& fs = *core.file_system();
  const storage::StorePath objects = live->directory() / "objects";
  const objects::ObjectPackingOptions packing = PackingOptions(core, live->format());
  REPOTXN_RETURN_IF_ERROR(CheckNothingIsKept(fs, objects / "pack"));
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose, objects::ListLooseObjects(fs, objects, live->format()));
  if (!loose.empty()) return absl::FailedPreconditionError("loose objects have to be packed first");

  objects::RepackRequest request;
  REPOTXN_ASSIGN_OR_RETURN(request.packs, ListPacksAt(core, *live, changes_->snapshot_lsn));  // [hard case A7]
  auto removal = std::make_unique<ObjectRemoval>();
  removal->id = id;
  removal->format = live->format();
  WatchedUser& own = removal->watched[id];
  own.live = live;
  own.packs.insert(request.packs.begin(), request.packs.end());
  own.refs_seen = changes_->snapshot_lsn;
  REPOTXN_ASSIGN_OR_RETURN(request.tips, AllTips(live.get(), changes_->snapshot_lsn));
  REPOTXN_RETURN_IF_ERROR(CollectNeedsOfBorrowers(changes_.get(), id, {objects}, &removal->watched, &request.tips));
  // The chain must not change: what it has is given up here.
  REPOTXN_RETURN_IF_ERROR(AddReadsOfChain(id, changes_.get()));
  REPOTXN_ASSIGN_OR_RETURN(const auto lookup, live->Objects());
  request.alternates = lookup->alternates();
  request.objects = objects;
  REPOTXN_ASSIGN_OR_RETURN(auto staged, core.StageObjectsOf(changes_->id, live, live->format()));
  request.snapshot = staged->directory();
  // In a shallow repository Git does not know what is reachable.
  changes_->reads.files.push_back({id, "shallow"});
  REPOTXN_ASSIGN_OR_RETURN(const FileState shallow, live->ReadFile("shallow", changes_->snapshot_lsn));
  if (shallow.kind == FileState::Kind::kAbsent) request.expire_before = options.expire_before;

  auto repacked = objects::RepackObjects(fs, request, packing);
  if (absl::IsDataLoss(repacked.status())) {
    // Nothing is missing when what it was looked for in has been packed anew meanwhile.
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> now, ListPacks(core, id));
    if (now != request.packs) return absl::AbortedError("packs of the repository changed meanwhile");
  }
  REPOTXN_RETURN_IF_ERROR(repacked.status());
  objects::RepackedObjects& packed = *repacked;
  Repack result;
  result.packs_before = static_cast<int64_t>(request.packs.size());
  result.packs_after = (packed.reachable > 0 ? 1 : 0) + (packed.cruft > 0 ? 1 : 0);
  result.reachable = packed.reachable;
  result.cruft = packed.cruft;
  result.borrowed = static_cast<int64_t>(packed.borrowed.size());
  result.removed = static_cast<int64_t>(packed.expired.size());
  std::set<std::string> stays(packed.kept_packs.begin(), packed.kept_packs.end());
  stays.insert(packed.reachable_pack);
  stays.insert(packed.cruft_pack);
  if (!packed.cruft_pack.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(auto cruft, core.StageObjectsOf(changes_->id, live, live->format()));
    for (const absl::string_view suffix : {".pack", ".rev", ".mtimes", ".idx"}) {
      const std::string name = absl::StrCat("objects/pack/", packed.cruft_pack, suffix);
      REPOTXN_RETURN_IF_ERROR(fs.Rename(staged->directory() / name, cruft->directory() / name));
    }
    REPOTXN_RETURN_IF_ERROR(StagePacked({packed.cruft_pack, packed.cruft}, std::move(cruft), repository, /*is_cruft=*/true));
  }
  REPOTXN_RETURN_IF_ERROR(StagePacked({packed.reachable_pack, packed.reachable}, std::move(staged), repository));
  for (const std::string& name : request.packs) {
    if (stays.contains(name)) continue;
    repository->operations.push_back(wal::RemovePack{id, name});
    removal->removed_packs.insert(name);
  }
  REPOTXN_RETURN_IF_ERROR(StageDropOfPackIndexes(changes_.get(), repository, removal->removed_packs));
  // Git believes it about commits that are gone; those that are given up may go elsewhere later.
  if (!packed.expired.empty() || !packed.borrowed.empty()) REPOTXN_RETURN_IF_ERROR(StageDropOfCommitGraph(changes_.get(), repository));
  repository->given_up_objects = std::move(packed.borrowed);
  if (!packed.expired.empty()) {
    removal->objects.insert(packed.expired.begin(), packed.expired.end());
    repository->removed_objects = std::move(packed.expired);
    changes_->removal = std::move(removal);
  }
  return result;
}

}  // namespace repotxn::txn
