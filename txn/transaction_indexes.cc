// Transactions that write what Git derives from objects and refs: commit-graph, multi-pack-index, bitmap.
//
// Nobody waits for one, and none of it can make an answer wrong: the packs that are named are declared as read, so that
// whoever removes one meanwhile aborts it, and what is replaced is exclusive to it. Pushes and refs go on: what they add is
// not covered until the next time.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "objects/derived_files.h"
#include "objects/derived_path.h"
#include "storage/status_macros.h"
#include "txn/derived_staging.h"
#include "txn/layout.h"
#include "txn/live_objects.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
absl::StatusOr<DerivedIndexes> Transaction::WriteDerivedIndexes(const RepositoryId& id) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * repository, Touch(changes_.get(), id));
  const std::shared_ptr<RepositoryState> live = repository->live;
  if (live == nullptr) return absl::FailedPreconditionError("repository is created by the same transaction");
  StoreCore& core = *changes_->core;
  // From here on what is there stays, removed or not.
  REPOTXN_ASSIGN_OR_RETURN(const auto staged, core.StageObjectsOf(changes_->id, live, live->format()));
  // What was pushed since the transaction began is covered too.
  REPOTXN_RETURN_IF_ERROR(core.ExtendSnapshot(changes_.get()));
  objects::DerivedFilesRequest request;
  REPOTXN_ASSIGN_OR_RETURN(request.packs, ListPacksAt(core, *live, changes_->snapshot_lsn));
  request.format = live->format();
  request.snapshot = staged->directory();
  request.live = live->directory();
  request.lock_fd = core.lock_descriptor();
  REPOTXN_ASSIGN_OR_RETURN(request.tips, AllTips(live.get(), changes_->snapshot_lsn));
  // A graph must not tell of commits that are removed meanwhile; with its tips all the rest is there.
  repository->needed_objects.insert(repository->needed_objects.end(), request.tips.begin(), request.tips.end());
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, Alternates(id));
  for (const RepositoryId& pool : alternates) {
    request.alternates.push_back(layout::RepositoryDirectory(pool) / "objects");
  }
  const auto shallow = ReadFile(id, "shallow");
  if (!shallow.ok() && !absl::IsNotFound(shallow.status())) return shallow.status();
  const bool is_whole = alternates.empty() && (!shallow.ok() || shallow->content.empty());
  // A pool's objects go without regard to what a member's graph says of them; and Git reads the pool's graph and bitmap
  // through the link. One bitmap in a network of forks: of two, Git takes one and warns the client.
  request.has_commit_graph = is_whole;
  request.has_bitmap = is_whole && !request.tips.empty();
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> members, MembersOf(id));
  request.has_all_commits = !members.empty();

  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> before,
                           objects::ListDerivedFiles(*core.file_system(), request.live));
  DeclareDerivedRead(changes_.get(), id, objects::kCommitGraph, before);
  DeclareDerivedRead(changes_.get(), id, objects::kMultiPackIndex, before);
  for (const std::string& pack : request.packs) {
    changes_->reads.files.push_back({id, absl::StrCat("objects/pack/", pack, ".pack")});
  }
  REPOTXN_ASSIGN_OR_RETURN(const objects::DerivedFiles written,
                           objects::WriteDerivedFiles(*core.file_system(), request));
  REPOTXN_RETURN_IF_ERROR(StageDerivedFiles(changes_.get(), repository, written));
  DerivedIndexes indexes;
  indexes.has_commit_graph = written.has_commit_graph;
  indexes.has_multi_pack_index = written.has_multi_pack_index;
  indexes.has_bitmap = written.has_bitmap;
  indexes.is_changed = !written.changes.empty();
  return indexes;
}

}  // namespace repotxn::txn
