// Transactions over what repositories borrow from one another: links, forks, members of a pool.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "locks/derivation.h"
#include "storage/status_macros.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

constexpr int kLinksAtOnce = 1000;

bool Contains(const std::vector<RepositoryId>& ids, const RepositoryId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Longest chain of links that begins at `id`. `own` must not be on it: it would borrow from itself.
absl::StatusOr<int> DepthBelow(StagedChanges* changes, const RepositoryId& id, const RepositoryId& own,
                               int limit) {
  if (id == own) return absl::FailedPreconditionError("repository would borrow from itself");
  if (limit < 0) return absl::FailedPreconditionError("chain of alternates would be too deep");
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* repository, Touch(changes, id));
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> pools, AlternatesOf(*changes, *repository));
  int depth = 0;
  for (const RepositoryId& pool : pools) {
    REPOTXN_ASSIGN_OR_RETURN(const int below, DepthBelow(changes, pool, own, limit - 1));
    depth = std::max(depth, below + 1);
  }
  return depth;
}

}  // namespace

// Live members of `pool` in the snapshot with the transaction's own changes; declares nothing.
absl::StatusOr<std::vector<RepositoryId>> Transaction::MembersOf(const RepositoryId& pool) {
  std::set<RepositoryId> members;
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                             changes_->core->rows()->Scan(LinksToPoolPrefix(pool), after,
                                                          changes_->snapshot_lsn, kLinksAtOnce));
    if (rows.empty()) break;
    for (const Row& row : rows) {
      REPOTXN_ASSIGN_OR_RETURN(const LinkRow link, DecodeLinkRow(row.key, row.value));
      if (!link.member_is_removed) members.insert(link.member);
    }
    after = rows.back().key;
  }
  for (const auto& [id, repository] : changes_->repositories) {
    if (repository.is_removed || (repository.alternates && !Contains(*repository.alternates, pool))) {
      members.erase(id);
    } else if (repository.alternates) {
      members.insert(id);
    }
  }
  return std::vector<RepositoryId>(members.begin(), members.end());
}

absl::StatusOr<std::vector<RepositoryId>> Transaction::Members(const RepositoryId& pool) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_RETURN_IF_ERROR(Touch(changes_.get(), pool).status());
  changes_->reads.links_to_pools.push_back(pool);
  return MembersOf(pool);
}

absl::StatusOr<std::vector<RepositoryId>> Transaction::Alternates(const RepositoryId& id) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* repository, Touch(changes_.get(), id));
  changes_->reads.files.push_back({id, "objects/info/alternates"});
  return AlternatesOf(*changes_, *repository);
}

absl::StatusOr<int> Transaction::DepthAbove(const RepositoryId& id, int limit) {
  if (limit < 0) return absl::FailedPreconditionError("chain of alternates would be too deep");
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> members, MembersOf(id));
  int depth = 0;
  for (const RepositoryId& member : members) {
    REPOTXN_ASSIGN_OR_RETURN(const int above, DepthAbove(member, limit - 1));
    depth = std::max(depth, above + 1);
  }
  return depth;
}

absl::Status Transaction::LinkAlternate(const RepositoryId& member, const RepositoryId& pool) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * borrower, Touch(changes_.get(), member));
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* lender, Touch(changes_.get(), pool));
  if (borrower->format() != lender->format()) {
    return absl::FailedPreconditionError("repositories have different object formats");
  }
  REPOTXN_ASSIGN_OR_RETURN(std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  if (Contains(alternates, pool)) return absl::AlreadyExistsError("repository borrows from it already");
  REPOTXN_ASSIGN_OR_RETURN(const int below,
                           DepthBelow(changes_.get(), pool, member, locks::kAlternatesDepthMax - 1));
  REPOTXN_RETURN_IF_ERROR(DepthAbove(member, locks::kAlternatesDepthMax - 1 - below).status());
  alternates.push_back(pool);
  borrower->alternates = alternates;
  borrower->operations.push_back(wal::LinkAlternate{member, pool, std::move(alternates)});
  return absl::OkStatus();
}

absl::Status Transaction::UnlinkAlternate(const RepositoryId& member, const RepositoryId& pool) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * borrower, Touch(changes_.get(), member));
  REPOTXN_ASSIGN_OR_RETURN(std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  const auto link = std::find(alternates.begin(), alternates.end(), pool);
  if (link == alternates.end()) {
    changes_->reads.files.push_back({member, "objects/info/alternates"});
    return absl::NotFoundError("repository does not borrow from it");
  }
  if (borrower->live == nullptr || borrower->alternates) {
    return absl::FailedPreconditionError("alternates were changed by the same transaction");
  }
  REPOTXN_RETURN_IF_ERROR(BringInBorrowedObjects(member, pool));
  alternates.erase(link);
  borrower->alternates = alternates;
  borrower->operations.push_back(wal::UnlinkAlternate{member, pool, std::move(alternates)});
  return absl::OkStatus();
}

absl::StatusOr<RepositoryId> Transaction::ForkRepository(const RepositoryId& source,
                                                         const RepositoryPath& path,
                                                         const ForkOptions& options) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* original, Touch(changes_.get(), source));
  if (original->live == nullptr) {
    return absl::FailedPreconditionError("repository is created by the same transaction");
  }
  const std::shared_ptr<RepositoryState> live = original->live;
  // Read, and not declared: the fork is what the source was at the snapshot, and nobody can have seen it since.
  const absl::StatusOr<refs::RefValue> head = live->ReadRef(refs::RefName::Head(), changes_->snapshot_lsn);
  REPOTXN_RETURN_IF_ERROR(head.status());
  CreateOptions create;
  create.format = live->format();
  if (head->is_symbolic()) create.head_target = head->target().text();
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, CreateIn(path, create, live->partition()));
  changes_->repositories[id].is_fork = true;
  REPOTXN_RETURN_IF_ERROR(LinkAlternate(id, source));
  for (const std::string& prefix : options.ref_prefixes) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<refs::NamedRef> refs,
                             live->ListRefs(prefix, changes_->snapshot_lsn));
    for (const refs::NamedRef& ref : refs) {
      refs::RefUpdate update{.name = ref.name, .value = ref.value};
      update.no_deref = true;
      REPOTXN_RETURN_IF_ERROR(UpdateRef(id, update));
    }
  }
  return id;
}

}  // namespace repotxn::txn
