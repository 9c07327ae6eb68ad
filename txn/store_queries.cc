// Questions about repositories at a snapshot, and what Git children get.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "locks/derivation.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr int kLinksAtOnce = 1000;

}  // namespace

absl::StatusOr<std::optional<PathRow>> StoreCore::LookUpPath(absl::string_view path, wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(PathKey(path), at));
  if (!row) return std::optional<PathRow>();
  REPOTXN_ASSIGN_OR_RETURN(const PathRow decoded, DecodePathRow(row->value));
  return std::optional<PathRow>(decoded);
}

absl::StatusOr<std::optional<RepositoryRow>> StoreCore::RowOf(const RepositoryId& id, wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(RepositoryKey(id), at));
  if (!row) return std::optional<RepositoryRow>();
  REPOTXN_ASSIGN_OR_RETURN(RepositoryRow decoded, DecodeRepositoryRow(row->value));
  return std::optional<RepositoryRow>(std::move(decoded));
}

absl::StatusOr<std::shared_ptr<RepositoryState>> StoreCore::StateOf(const RepositoryId& id,
                                                                    wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<RepositoryRow> row, RowOf(id, at));
  if (!row || row->is_removed()) return absl::NotFoundError("repository does not exist");
  return repositories_->Get(id, *row);
}

absl::StatusOr<RepositoryInfo> StoreCore::Describe(const RepositoryId& id, wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(RepositoryKey(id), at));
  if (!row) return absl::NotFoundError("repository does not exist");
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryRow decoded, DecodeRepositoryRow(row->value));
  if (decoded.is_removed()) return absl::NotFoundError("repository does not exist");
  return RepositoryInfo{id, decoded.path, decoded.format, row->version, decoded.partition};
}

absl::StatusOr<std::vector<RepositoryId>> StoreCore::AlternatesOf(const RepositoryId& id, wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(AlternatesKey(id), at));
  if (!row) return std::vector<RepositoryId>();
  return DecodeIds(row->value);
}

std::vector<RepositoryId> StoreCore::ChainOf(const RepositoryId& id, wal::Lsn at, absl::Status* failure) {
  locks::RepositoryFacts facts;
  facts.alternates_of = [&](const RepositoryId& each) {
    auto alternates = AlternatesOf(each, at);
    failure->Update(alternates.status());
    return alternates.ok() ? *std::move(alternates) : std::vector<RepositoryId>();
  };
  return locks::AlternatesChain(id, facts);
}

absl::StatusOr<std::set<RepositoryId>> StoreCore::BorrowersOf(const RepositoryId& id, wal::Lsn at) {
  std::set<RepositoryId> borrowers;
  std::vector<RepositoryId> to_ask = {id};
  while (!to_ask.empty()) {
    const RepositoryId pool = to_ask.back();
    to_ask.pop_back();
    std::string after;
    while (true) {
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                               rows_->Scan(LinksToPoolPrefix(pool), after, at, kLinksAtOnce));
      if (rows.empty()) break;
      for (const Row& row : rows) {
        REPOTXN_ASSIGN_OR_RETURN(const LinkRow link, DecodeLinkRow(row.key, row.value));
        if (borrowers.insert(link.member).second) to_ask.push_back(link.member);
      }
      after = rows.back().key;
    }
  }
  return borrowers;
}

bool StoreCore::HasRemovedObjectsOnDisk(const RepositoryId& id) {
  if (condemned_.size() == 0) return false;
  absl::Status failure;
  const std::vector<RepositoryId> chain = ChainOf(id, publisher_->committed_lsn(), &failure);
  // What cannot be read is looked at again at the commit.
  if (!failure.ok()) return true;
  return std::any_of(chain.begin(), chain.end(), [&](const RepositoryId& each) {
    const auto state = repositories_->Find(each);
    return state != nullptr && condemned_.HasRemovedUpTo(each, state->objects_removed());
  });
}

absl::Status StoreCore::CheckNoObjectsRemoved(const RepositoryId& id, wal::Lsn since) {
  absl::Status failure;
  const std::vector<RepositoryId> chain = ChainOf(id, publisher_->committed_lsn(), &failure);
  REPOTXN_RETURN_IF_ERROR(failure);
  for (const RepositoryId& each : chain) {
    const auto state = repositories_->Find(each);
    if (state == nullptr) continue;
    if (state->objects_removed() > since || condemned_.HasRemovedUpTo(each, state->objects_removed())) {
      return absl::FailedPreconditionError("objects of a repository that it borrows from were removed meanwhile; try again");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<StagedObjects>> StoreCore::StageObjects(
    const TransactionId& id, const RepositoryPath& path, ObjectFormat format_if_absent) {
  const wal::Lsn at = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
  REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUpPath(path.text(), at));
  std::shared_ptr<RepositoryState> live;
  if (row && row->repository) {
    REPOTXN_ASSIGN_OR_RETURN(live, StateOf(*row->repository, at));
  }
  const ObjectFormat format = live != nullptr ? live->format() : format_if_absent;
  return StageObjectsOf(id, std::move(live), format);
}

absl::StatusOr<std::shared_ptr<StagedObjects>> StoreCore::StageObjectsOf(
    const TransactionId& id, std::shared_ptr<RepositoryState> live, ObjectFormat format,
    std::optional<std::string> shallow) {
  StagedObjects::Context context;
  context.fs = fs_;
  context.payloads = payloads_.get();
  context.snapshots = snapshots_.get();
  context.registry = registry_;
  context.clock = environment_.clock;
  context.lock_descriptor = lock_descriptor();
  context.shallow = std::move(shallow);
  if (live != nullptr) {
    // Read before Git reads the files: a link that goes in between is missed here, and one that comes is not counted on.
    absl::Status failure;
    context.links_from = ChainOf(live->id(), publisher_->committed_lsn(), &failure);
    REPOTXN_RETURN_IF_ERROR(failure);
    std::sort(context.links_from.begin(), context.links_from.end());
    context.are_links_doubtful = [this, repository = live->id()] { return HasRemovedObjectsOnDisk(repository); };
  }
  return StagedObjects::Create(context, id, std::move(live), format);
}

absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> StoreCore::ReadSnapshot(
    const RepositoryPath& path) {
  const wal::Lsn at = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
  REPOTXN_ASSIGN_OR_RETURN(const auto row, LookUpPath(path.text(), at));
  if (!row || !row->repository) return absl::NotFoundError("repository does not exist");
  REPOTXN_ASSIGN_OR_RETURN(const auto live, StateOf(*row->repository, at));
  return snapshots_->Share(live.get());
}

absl::StatusOr<std::vector<RepositoryInfo>> StoreCore::ListRepositories(absl::string_view prefix,
                                                                       absl::string_view after,
                                                                       int limit) {
  const wal::Lsn at = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
  std::vector<RepositoryInfo> listed;
  std::string next = after.empty() ? std::string() : PathKey(after);
  while (static_cast<int>(listed.size()) < limit) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> rows, rows_->Scan(PathKey(prefix), next, at, limit));
    if (rows.empty()) break;
    for (const Row& row : rows) {
      REPOTXN_ASSIGN_OR_RETURN(const PathRow path, DecodePathRow(row.value));
      if (!path.repository || static_cast<int>(listed.size()) >= limit) continue;
      REPOTXN_ASSIGN_OR_RETURN(RepositoryInfo info, Describe(*path.repository, at));
      listed.push_back(std::move(info));
    }
    next = rows.back().key;
  }
  return listed;
}

StoreMetrics StoreCore::Metrics() const {
  StoreMetrics metrics;
  metrics.commits = committer_->commits();
  metrics.conflicts = committer_->conflicts();
  metrics.log_syncs = log_syncs_.load(std::memory_order_relaxed);
  metrics.retries = retries_.load(std::memory_order_relaxed);
  metrics.materialized_batches = materializer_->batches();
  housekeeper_->AddTo(&metrics);
  metrics.packs_condemned = condemned_.size();
  metrics.condemned_bytes = CondemnedBytes();
  metrics.ref_packings = ref_packings_.load(std::memory_order_relaxed);
  metrics.discrepancies = discrepancies_.load(std::memory_order_relaxed);
  metrics.reconciled = reconciled_.load(std::memory_order_relaxed);
  metrics.checkpoints = checkpoints_.load(std::memory_order_relaxed);
  metrics.snapshots_made = snapshots_->made();
  metrics.snapshots_shared = snapshots_->shared();
  metrics.snapshots_live = snapshots_->live();
  metrics.writers_in_line = intents_.size();
  metrics.commits_waiting = committer_->admission()->waiting();
  metrics.commits_in_flight = committer_->admission()->in_flight();
  metrics.commits_detached = committer_->detached();
  metrics.open_transactions = static_cast<int64_t>(live_.count());
  metrics.transactions_ended_idle = ended_idle_.load(std::memory_order_relaxed);
  metrics.transactions_ended_too_old = ended_too_old_.load(std::memory_order_relaxed);
  metrics.overlay_bytes = OverlayBytes();
  metrics.history_bytes = history_bytes_.load(std::memory_order_relaxed);
  for (const auto& repository : repositories_->All()) {
    ++metrics.repositories;
    if (!repository->fault().ok()) ++metrics.repositories_set_aside;
  }
  metrics.committed_lsn = publisher_->committed_lsn().value();
  metrics.materialized_lsn = materialized_lsn_.load();
  metrics.applied_lsn = applied_lsn_.load();
  metrics.oldest_snapshot_lsn = registry_->OldestInUse().value();
  metrics.poisoned = !committer_->poison().ok();
  return metrics;
}

}  // namespace repotxn::txn
