#include "txn/object_looks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "objects/error_detail.h"
#include "objects/object_reader.h"
#include "objects/object_set.h"
#include "objects/pack_links.h"
#include "storage/check.h"
#include "storage/status_macros.h"
#include "txn/live_objects.h"
#include "txn/store_core.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack";
// Rounds of a removal before it takes a turn, and at all. A round beside pushes is over before the next few of them.
constexpr int kRoundsBeforeTurn = 3;
constexpr int kRoundsMax = 64;
// Largest object that is read for its links.
constexpr int64_t kLinkingBytesMax = int64_t{256} << 20;
constexpr absl::Duration kTurnPatience = absl::Seconds(2);

std::vector<StagedObjects*> StagingsOf(const StagedRepository& repository) {
  std::vector<StagedObjects*> all;
  if (repository.objects != nullptr && repository.objects->has_pack()) all.push_back(repository.objects.get());
  for (const auto& more : repository.more_objects) all.push_back(more.get());
  return all;
}

// New values of refs.
absl::StatusOr<std::vector<ObjectId>> TipsOf(const StagedRepository& repository) {
  std::vector<ObjectId> tips;
  for (const wal::RefChange& change : repository.refs.Changes(repository.id)) {
    if (change.new_value.kind != wal::LoggedRefValue::Kind::kObject) continue;
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId tip, ObjectId::FromBytes(change.new_value.bytes));
    tips.push_back(tip);
  }
  return tips;
}

// Its objects were looked at before there was a transaction, and it borrows.
bool IsAdoptedBorrower(const StagedRepository& repository) {
  return repository.created && repository.created->is_adopted() && repository.alternates;
}

bool UsesObjects(const StagedRepository& repository, const std::vector<StagedObjects*>& stagings,
                 const std::vector<ObjectId>& tips) {
  return IsAdoptedBorrower(repository) || !stagings.empty() || !tips.empty() || !repository.needed_objects.empty() ||
         !repository.given_up_objects.empty();
}

// What goes is judged at the snapshot: what the transaction changes itself would not be looked at.
bool IsRepackAlone(const StagedChanges& changes) {
  const auto loses = [](const auto& entry) {
    return !entry.second.given_up_objects.empty() || !entry.second.removed_objects.empty();
  };
  if (std::none_of(changes.repositories.begin(), changes.repositories.end(), loses)) return true;
  for (const auto& [id, repository] : changes.repositories) {
    const bool is_changed = repository.created || repository.is_removed || repository.alternates ||
                            repository.objects != nullptr || !repository.files.empty() || !repository.refs.Changes(id).empty();
    if (is_changed) return false;
    for (const wal::Operation& operation : repository.operations) {
      if (!std::holds_alternative<wal::RemovePack>(operation) && !std::holds_alternative<wal::ReplaceDerived>(operation)) {
        return false;
      }
    }
  }
  return true;
}

absl::Status Gone(const ObjectId& oid) {
  return objects::WithDetail(absl::AbortedError("an object was removed meanwhile"), "oid", oid.ToHex());
}

// Gives `commit` a part for a partition in which it has nothing to check, so that its history can be asked.
void TakePartition(Partition* partition, PendingCommit* commit) {
  const auto at = std::lower_bound(
      commit->parts.begin(), commit->parts.end(), partition,
      [](const PendingCommit::Part& part, const Partition* other) { return part.partition->id < other->id; });
  if (at != commit->parts.end() && at->partition == partition) return;
  commit->parts.insert(at, PendingCommit::Part{partition, locks::Footprint()});
}

// Shows `check` what each loose object names.
absl::Status CheckLooseLinks(storage::FileSystem* fs, const RepositoryState& live,
                             absl::FunctionRef<absl::Status(const ObjectId&)> check) {
  const storage::StorePath objects = live.directory() / "objects";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose, objects::ListLooseObjects(*fs, objects, live.format()));
  for (const ObjectId& oid : loose) {
    const storage::StorePath file = objects / objects::LooseObjectName(oid);
    REPOTXN_ASSIGN_OR_RETURN(const objects::ObjectInfo info, objects::LooseObjectInfo(*fs, file));
    if (info.type == objects::ObjectType::kBlob) continue;
    REPOTXN_ASSIGN_OR_RETURN(const objects::ObjectContent object, objects::ReadLooseObject(*fs, file, kLinkingBytesMax));
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> links,
                             objects::ParseObjectLinks(object.type, object.content, live.format()));
    for (const ObjectId& link : links) REPOTXN_RETURN_IF_ERROR(check(link));
  }
  return absl::OkStatus();
}

std::set<std::string> Without(const std::set<std::string>& all, const std::set<std::string>& taken) {
  std::set<std::string> left;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::inserter(left, left.end()));
  return left;
}

}  // namespace

ObjectLooks::~ObjectLooks() {
  if (is_entered_) core_->registry()->Leave(entered_);
}

absl::Status ObjectLooks::Take() {
  if (rounds_ == 0) REPOTXN_RETURN_IF_ERROR(TakeFirst());
  ObjectRemoval* const removal = changes_->removal.get();
  if (rounds_++ == 0 && removal == nullptr && !must_prove_) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(changes_->limit.Check());
  if (rounds_ > kRoundsMax) return absl::AbortedError("objects are removed or used all the time");
  if (removal != nullptr && rounds_ > kRoundsBeforeTurn && !turn_.is_held()) TakeTurn(*removal);
  // Later files stay and later writes are remembered; those before are looked at.
  const wal::Lsn at = core_->registry()->Enter();
  if (is_entered_) core_->registry()->Leave(entered_);
  entered_ = at;
  is_entered_ = true;
  if (rounds_ > 1 || must_prove_) {
    REPOTXN_RETURN_IF_ERROR(ProveUses(at));
    commit_->objects_checked = at;
  }
  if (removal == nullptr) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(LookForUses(removal, at));
  return Watch(*removal, at);
}

absl::Status ObjectLooks::TakeFirst() {
  commit_->objects_checked = changes_->snapshot_lsn;
  if (!IsRepackAlone(*changes_)) {
    return absl::FailedPreconditionError(
        "a transaction in which objects are removed or given up may change nothing else of repositories");
  }
  std::set<RepositoryId> used;
  for (const auto& [id, repository] : changes_->repositories) {
    const std::vector<StagedObjects*> stagings = StagingsOf(repository);
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> tips, TipsOf(repository));
    if (!UsesObjects(repository, stagings, tips)) continue;
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> chain, ChainOf(repository));
    used.insert(chain.begin(), chain.end());
    for (StagedObjects* staging : stagings) {
      commit_->objects_checked = std::min(commit_->objects_checked, staging->links_checked());
      // Staged for another repository, or for a chain that has lost a link since.
      const std::vector<RepositoryId>& from = staging->links_from();
      if (!std::includes(chain.begin(), chain.end(), from.begin(), from.end())) must_prove_ = true;
    }
  }
  for (const RepositoryId& id : used) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, core_->RowOf(id, changes_->snapshot_lsn));
    if (!row) continue;  // created by this transaction
    const std::shared_ptr<RepositoryState> live = core_->OpenState(id, *row);
    Partition* const partition = core_->PartitionOf(live->partition());
    TakePartition(partition, commit_);
    commit_->object_uses.push_back({partition, locks::LockKey::Objects(id), live});
  }
  return absl::OkStatus();
}

// The repository, when it is there already, and all that it borrows from after the transaction; sorted.
absl::StatusOr<std::vector<RepositoryId>> ObjectLooks::ChainOf(const StagedRepository& repository) {
  std::set<RepositoryId> all;
  absl::Status failure;
  const auto add = [&](const RepositoryId& id) {
    const std::vector<RepositoryId> chain = core_->ChainOf(id, changes_->snapshot_lsn, &failure);
    all.insert(chain.begin(), chain.end());
  };
  if (repository.alternates) {
    if (repository.live != nullptr) all.insert(repository.id);
    for (const RepositoryId& pool : *repository.alternates) add(pool);
  } else if (repository.live != nullptr) {
    add(repository.id);
  }
  REPOTXN_RETURN_IF_ERROR(failure);
  return std::vector<RepositoryId>(all.begin(), all.end());
}

absl::Status ObjectLooks::ProveUses(wal::Lsn at) {
  if (REPOTXN_PLANT("txn.trust_stale_looks")) return absl::OkStatus();
  for (auto& [id, repository] : changes_->repositories) {
    REPOTXN_RETURN_IF_ERROR(ProveUsesOf(&repository));
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> chain, ChainOf(repository));
    for (StagedObjects* staging : StagingsOf(repository)) staging->NoteLinksChecked(at, chain);
  }
  return absl::OkStatus();
}

absl::Status ObjectLooks::ProveUsesOf(StagedRepository* repository) {
  const std::vector<StagedObjects*> stagings = StagingsOf(*repository);
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> tips, TipsOf(*repository));
  if (!UsesObjects(*repository, stagings, tips)) return absl::OkStatus();
  // Too much to prove again here; who adopts looks again.
  if (IsAdoptedBorrower(*repository)) return absl::AbortedError("objects that are borrowed were removed meanwhile");
  REPOTXN_PROBE("txn.objects_proved_again");
  REPOTXN_ASSIGN_OR_RETURN(const auto objects, ObjectsOf(changes_, *repository));
  const auto exists = [&](const ObjectId& oid) {
    return objects != nullptr ? objects->Exists(oid) : absl::StatusOr<bool>(false);
  };
  storage::FileSystem& fs = *core_->file_system();
  for (StagedObjects* staging : stagings) {
    REPOTXN_ASSIGN_OR_RETURN(const objects::ShallowCommits shallow,
                             objects::ReadShallow(fs, staging->directory(), staging->format()));
    objects::RecentIds recent;
    REPOTXN_RETURN_IF_ERROR(objects::VisitPackLinks(
        fs, staging->directory() / kPackDirectory, staging->pack_name(), staging->format(), shallow,
        [&](const ObjectId&, objects::ObjectType, absl::Span<const ObjectId> links) -> absl::Status {
          for (const ObjectId& link : links) {
            if (!recent.Insert(link)) continue;
            REPOTXN_ASSIGN_OR_RETURN(const bool is_there, exists(link));
            if (is_there) continue;
            // What this transaction has packed itself it packs anew.
            if (staging != repository->objects.get()) return Gone(link);
            return objects::WithDetail(
                absl::FailedPreconditionError("an object that the pack builds on was removed meanwhile; send it again with it"),
                "oid", link.ToHex());
          }
          return absl::OkStatus();
        }));
  }
  std::vector<ObjectId> needed = tips;
  needed.insert(needed.end(), repository->needed_objects.begin(), repository->needed_objects.end());
  for (const ObjectId& oid : needed) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_there, exists(oid));
    if (!is_there) return Gone(oid);
  }
  if (repository->given_up_objects.empty()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const auto live, repository->live->Objects());
  REPOTXN_ASSIGN_OR_RETURN(const auto borrowed, objects::ObjectSet::Open(fs, live->alternates(), repository->format(),
                                                                         PackingOptions(*core_, repository->format()).is_condemned));
  for (const ObjectId& oid : repository->given_up_objects) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_there, borrowed->Contains(oid));
    if (!is_there) return Gone(oid);
  }
  return absl::OkStatus();
}

absl::Status ObjectLooks::LookForUses(ObjectRemoval* removal, wal::Lsn at) {
  if (REPOTXN_PLANT("txn.remove_without_looking")) return absl::OkStatus();
  storage::FileSystem* const fs = core_->file_system();
  REPOTXN_ASSIGN_OR_RETURN(std::set<RepositoryId> ids, core_->BorrowersOf(removal->id, at));
  ids.insert(removal->id);
  for (const RepositoryId& id : ids) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, core_->RowOf(id, at));
    if (!row) continue;  // purged
    WatchedUser& watched = removal->watched[id];
    const bool is_new = watched.live == nullptr;
    if (is_new) watched.live = core_->OpenState(id, *row);
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> listed, ListPacks(*core_, id));
    const std::set<std::string> packs(listed.begin(), listed.end());
    std::set<std::string> to_read = Without(packs, watched.packs);
    // A borrower that has packed anew may have given up what it had of its own.
    const bool has_packed_anew = id != removal->id && !Without(watched.packs, packs).empty();
    if (has_packed_anew) to_read = packs;
    const std::set<std::string> left = id == removal->id ? Without(packs, removal->removed_packs) : packs;
    PacksOf own(fs, *watched.live, std::vector<std::string>(left.begin(), left.end()));
    const auto check = [&](const ObjectId& oid) -> absl::Status {
      if (!removal->objects.contains(oid)) return absl::OkStatus();
      REPOTXN_ASSIGN_OR_RETURN(const bool is_own, own.Contains(oid));
      if (is_own) return absl::OkStatus();
      REPOTXN_PROBE("txn.removal_met_a_use");
      return objects::WithDetail(absl::AbortedError("an object that would be removed is used again"), "oid", oid.ToHex());
    };
    // Only one that was adopted has any, and it gets no more.
    if (is_new) REPOTXN_RETURN_IF_ERROR(CheckLooseLinks(fs, *watched.live, check));
    for (const std::string& name : to_read) {
      // Where a history is cut may change; with parents taken for links all the same nothing is lost by it.
      REPOTXN_RETURN_IF_ERROR(objects::VisitPackLinks(
          *fs, watched.live->directory() / kPackDirectory, name, removal->format, objects::ShallowCommits(),
          [&](const ObjectId&, objects::ObjectType, absl::Span<const ObjectId> links) {
            absl::Status status;
            for (auto link = links.begin(); link != links.end() && status.ok(); ++link) status = check(*link);
            return status;
          }));
    }
    watched.packs = packs;
    if (has_packed_anew || watched.live->changed_lsn() > watched.refs_seen) {
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> tips, AllTips(watched.live.get(), at));
      for (const ObjectId& tip : tips) REPOTXN_RETURN_IF_ERROR(check(tip));
    }
    watched.refs_seen = at;
  }
  return absl::OkStatus();
}

absl::Status ObjectLooks::Watch(const ObjectRemoval& removal, wal::Lsn at) {
  locks::DeclaredReads reads;
  for (const auto& [id, watched] : removal.watched) AddReadsOfUses(id, &reads);
  PendingCommit watch;
  watch.snapshot_lsn = at;
  REPOTXN_RETURN_IF_ERROR(core_->SplitFootprint(wal::Manifest(), reads, &watch));
  commit_->watched = std::move(watch.parts);
  commit_->watched_since = at;
  for (const PendingCommit::Part& part : commit_->watched) TakePartition(part.partition, commit_);
  return absl::OkStatus();
}

void ObjectLooks::TakeTurn(const ObjectRemoval& removal) {
  if (!core_->options().intent_queue) return;
  std::vector<locks::IntentQueue::Claim> claims;
  for (const auto& [id, watched] : removal.watched) claims.push_back({locks::LockKey::Root(id), false});
  turn_ = core_->intents()->LineUp(std::move(claims), changes_->limit, kTurnPatience);
}

}  // namespace repotxn::txn
