#include "txn/borrower_needs.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "objects/object_links.h"
#include "objects/object_set.h"
#include "storage/status_macros.h"
#include "txn/live_objects.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// What a borrower needs of `own`, the objects of the repository: named by an object or a ref of its, and not its own.
class NeedsOfBorrower {
 public:
  NeedsOfBorrower(StagedChanges* changes, const objects::ObjectSet& own) : changes_(changes), own_(own) {}

  absl::Status Collect(const std::shared_ptr<RepositoryState>& borrower, WatchedUser* watched,
                       std::vector<ObjectId>* needs) {
    StoreCore& core = *changes_->core;
    storage::FileSystem& fs = *core.file_system();
    const storage::StorePath objects = borrower->directory() / "objects";
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> packs, ListPacks(core, borrower->id()));
    watched->live = borrower;
    watched->packs.insert(packs.begin(), packs.end());
    watched->refs_seen = changes_->snapshot_lsn;
    const objects::ObjectPackingOptions options = PackingOptions(core, borrower->format());
    REPOTXN_ASSIGN_OR_RETURN(const auto theirs,
                             objects::ObjectSet::Open(fs, {objects}, borrower->format(), options.is_condemned));
    objects::RecentIds recent;
    const auto consider = [&](const ObjectId& oid) -> absl::Status {
      if (!recent.Insert(oid)) return absl::OkStatus();
      REPOTXN_ASSIGN_OR_RETURN(const bool is_ours, own_.Contains(oid));
      if (!is_ours) return absl::OkStatus();
      REPOTXN_ASSIGN_OR_RETURN(const bool is_theirs, theirs->Contains(oid));
      if (!is_theirs) needs->push_back(oid);
      return absl::OkStatus();
    };
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> tips, AllTips(borrower.get(), changes_->snapshot_lsn));
    for (const ObjectId& tip : tips) REPOTXN_RETURN_IF_ERROR(consider(tip));
    if (theirs->count() == 0) return absl::OkStatus();
    // Git reads there, in a directory of the transaction's own.
    REPOTXN_ASSIGN_OR_RETURN(const auto staged, core.StageObjectsOf(changes_->id, borrower, borrower->format()));
    objects::LinkScan scan;
    REPOTXN_ASSIGN_OR_RETURN(scan.repository, fs.AbsolutePath(staged->directory()));
    scan.format = borrower->format();
    scan.lock_fd = options.lock_fd;
    return objects::ScanLinks(scan, theirs->HexLines(),
                              [&](const ObjectId&, objects::ObjectType, absl::Span<const ObjectId> links) {
                                absl::Status status;
                                for (auto link = links.begin(); link != links.end() && status.ok(); ++link) {
                                  status = consider(*link);
                                }
                                return status;
                              });
  }

 private:
  StagedChanges* const changes_;
  const objects::ObjectSet& own_;
};

}  // namespace

absl::Status CollectNeedsOfBorrowers(StagedChanges* changes, const RepositoryId& id,
                                     const std::vector<storage::StorePath>& directories,
                                     std::map<RepositoryId, WatchedUser>* watched, std::vector<ObjectId>* tips) {
  StoreCore& core = *changes->core;
  REPOTXN_ASSIGN_OR_RETURN(const std::set<RepositoryId> borrowers, core.BorrowersOf(id, changes->snapshot_lsn));
  if (borrowers.empty()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryInfo info, core.Describe(id, changes->snapshot_lsn));
  REPOTXN_ASSIGN_OR_RETURN(const auto own, objects::ObjectSet::Open(*core.file_system(), directories, info.format,
                                                                    PackingOptions(core, info.format).is_condemned));
  for (const RepositoryId& borrower : borrowers) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, core.RowOf(borrower, changes->snapshot_lsn));
    if (!row) continue;  // purged
    REPOTXN_RETURN_IF_ERROR(
        NeedsOfBorrower(changes, *own).Collect(core.OpenState(borrower, *row), &(*watched)[borrower], tips));
  }
  std::sort(tips->begin(), tips->end());
  tips->erase(std::unique(tips->begin(), tips->end()), tips->end());
  return absl::OkStatus();
}

}  // namespace repotxn::txn
