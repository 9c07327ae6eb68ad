// What a store does behind the commits: materialize, pack loose refs, checkpoint, forget; and how it closes.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "refs/ref_operations.h"
#include "storage/check.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/set_aside.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// Nanoseconds since 1970: outcomes of transactions before it may have been forgotten.
constexpr absl::string_view kForgottenKey = "m/forgotten";
// An opening that redid at least so many entries is followed by a checkpoint.
constexpr uint64_t kRedoneMax = 256;
// Rounds of background work for which a snapshot that nobody uses is kept, for the next who asks.
constexpr int kIdleRoundsMax = 20;
// Outcomes that one checkpoint forgets at most; the rest waits for the next.
constexpr int kForgottenMax = 10'000;

}  // namespace

void StoreCore::StartBackground() {
  if (!options_.background_thread) return;
  background_ = std::thread([this] { BackgroundLoop(); });
  housekeeper_->Start();
}

void StoreCore::StopBackground() {
  {
    const storage::MutexLock lock(&background_mutex_);
    stop_background_ = true;
    background_wake_.Signal();
  }
  if (background_.joinable()) background_.join();
  housekeeper_->Stop();
}

void StoreCore::WakeBackground() {
  const storage::MutexLock lock(&background_mutex_);
  background_is_wanted_ = true;
  background_wake_.Signal();
}

void StoreCore::BackgroundLoop() {
  while (true) {
    {
      const storage::MutexLock lock(&background_mutex_);
      const absl::Duration until =
          environment_.clock->Monotonic() + options_.materialize_interval;
      while (!stop_background_ && !background_is_wanted_) {
        const absl::Duration left = until - environment_.clock->Monotonic();
        if (left <= absl::ZeroDuration() || background_wake_.WaitFor(&background_mutex_, left)) break;
      }
      background_is_wanted_ = false;
      if (stop_background_) return;
    }
    if (absl::Status status = RunBackgroundWork(); !status.ok()) {
      storage::LogError(absl::StrCat("background work failed: ", status.message()));
    }
  }
}

absl::Status StoreCore::RunBackgroundWork() {
  committer_->AdvanceDetached(committer_->newest_detached());
  if (!replicator_->HasSpareSpace()) REPOTXN_RETURN_IF_ERROR(replicator_->PrepareSpace());
  const bool owes = !DoOwedWork(Materializer::Try::kWhatIsWorthIt).ok();
  const wal::Lsn committed = publisher_->committed_lsn();
  if (committed == idle_since_ && queue_->poison().ok()) {
    // Nothing came since the last round: make the newest entry provable. A no-op when it is already.
    REPOTXN_RETURN_IF_ERROR(queue_->WriteEmptyGroup(wal::LogQueue::WhenBusy::kGiveUp));
  }
  idle_since_ = committed;
  REPOTXN_RETURN_IF_ERROR(MaterializeTo(PackCrowdedRepositories(), Materializer::Try::kWhatIsWorthIt).status());
  REPOTXN_RETURN_IF_ERROR(UnlinkCondemned());
  snapshots_->DropUnused(kIdleRoundsMax);
  EndIdleTransactions();
  TrimToOldestReader();
  EndOldestTransactionsBeyondBounds();
  REPOTXN_RETURN_IF_ERROR(PurgeRemoved());
  if (queue_->poison().ok()) REPOTXN_RETURN_IF_ERROR(TrimBehindConsumers());
  if (!owes && CheckpointIsDue()) REPOTXN_RETURN_IF_ERROR(Checkpoint());
  // Last: what it meets must not hold a checkpoint back.
  return ReconcileWhenDue();
}

absl::Status StoreCore::Materialize() {
  REPOTXN_ASSIGN_OR_RETURN(const Behind behind, MaterializeTo(publisher_->committed_lsn(), Materializer::Try::kAll));
  return behind.empty() ? absl::OkStatus() : behind.front()->fault();
}

absl::StatusOr<StoreCore::Behind> StoreCore::MaterializeTo(wal::Lsn target, Materializer::Try which) {
  Materializer::Round round = materializer_->MaterializeAll(target, environment_.clock->Monotonic(), which);
  // I3: nothing is retried into success, whoever asked for the batch whose sync failed.
  if (materializer_->has_failed_sync() && queue_->poison().ok()) {
    committer_->Poison(absl::UnavailableError("sync of a materialized file failed"));
  }
  REPOTXN_RETURN_IF_ERROR(round.status);
  uint64_t shown = materialized_lsn_.load();
  while (shown < target.value() && !materialized_lsn_.compare_exchange_weak(shown, target.value())) {
  }
  return std::move(round.behind);
}

storage::MetadataBatch StoreCore::SetAsideRows(const Behind& behind, wal::Lsn applied, std::set<RepositoryId>* now) {
  storage::MetadataBatch rows;
  if (REPOTXN_PLANT("txn.pass_without_setting_aside")) return rows;
  // All of them first: one that has fewer rows now must not keep the others.
  for (const RepositoryId& id : set_aside_) {
    const std::string prefix = SetAsidePrefix(id);
    rows.DeleteRange(prefix, storage::PrefixEnd(prefix));
  }
  for (const std::shared_ptr<RepositoryState>& repository : behind) {
    const RepositoryState::Changes changes = repository->DirtyAt(applied);
    // A snapshot has written it meanwhile.
    if (changes.refs.empty() && changes.files.empty()) continue;
    now->insert(repository->id());
    for (auto& [key, value] : EncodeSetAside(repository->id(), changes, NewTransactionId(), environment_.clock->Now())) {
      rows.Put(key, value);
    }
  }
  return rows;
}

wal::Lsn StoreCore::PackCrowdedRepositories() {
  const wal::Lsn judged = publisher_->committed_lsn();
  const int64_t before = ref_packings_.load();
  // Without a log that takes entries, or while closing, files are written as they are.
  if (queue_->poison().ok() && !committer_->is_draining()) {
    for (const auto& repository : repositories_->Dirty()) {
      // One that cannot be packed must not stand in the way of the others.
      // Aborted: the next round looks again.
      const absl::Status packed = PackLooseRefs(repository.get(), options_.loose_refs_max).status();
      if (!packed.ok() && !absl::IsAborted(packed)) {
        storage::LogWarning(absl::StrCat("refs of repository ", repository->id().ToHex(),
                                         " are not packed: ", packed.message()));
      }
    }
  }
  // Not beyond: refs that were created since would become files just before the next round packs them.
  return ref_packings_.load() == before ? judged : publisher_->committed_lsn();
}

absl::StatusOr<int64_t> StoreCore::PackLooseRefs(RepositoryState* repository, int loose_max) {
  // The snapshot first: whatever is written after it is dropped from the packing by the critical section.
  const wal::Lsn snapshot = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(snapshot); });
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<refs::NamedRef> loose, repository->NewestLooseRefs());
  if (loose.size() <= static_cast<size_t>(loose_max)) return 0;
  REPOTXN_ASSIGN_OR_RETURN(const auto objects, repository->Objects());

  wal::Manifest manifest = NewOwnManifest();
  wal::RefsPacked packing;
  packing.id = repository->id();
  auto commit = std::make_unique<PendingCommit>();
  commit->snapshot_lsn = snapshot;
  PendingCommit::Packing names;
  names.id = repository->id();
  names.partition = partitions_->Get(repository->partition());
  for (const refs::NamedRef& ref : loose) {
    const auto peeled = objects->Peel(ref.value.oid());
    if (!peeled.ok()) {
      // A damaged ref stays as it is; it must not stop the others.
      storage::LogWarning(absl::StrCat("ref is not packed: ", peeled.status().message()));
      continue;
    }
    const refs::RefValue value =
        refs::RefValue::Object(ref.value.oid(), peeled->tags > 0 ? peeled->oid : ObjectId());
    const wal::LoggedRefValue logged = value.ToLogged();
    packing.refs.push_back(wal::PackedRef{ref.name.text(), logged.bytes, logged.peeled});
    names.names.push_back(ref.name.text());
  }
  if (packing.refs.empty()) return 0;
  const int64_t count = static_cast<int64_t>(packing.refs.size());
  manifest.note.refs_packed.push_back(std::move(packing));
  manifest.operations = refs::DeriveRefOperations({}, manifest.note.refs_packed);
  commit->packings.push_back(std::move(names));

  const CommitResult result = CommitOwn(manifest, std::move(commit));
  if (!result.committed()) return result.status;
  ref_packings_.fetch_add(1, std::memory_order_relaxed);
  return count;
}

bool StoreCore::CheckpointIsDue() {
  if (publisher_->committed_lsn().value() == applied_lsn_.load()) return false;
  // A store that dies again and again must not redo more each time.
  if (recovery_report_.entries_redone >= kRedoneMax && checkpoints_.load() == 0) return true;
  // Not what is retained: a consumer may hold that, and no checkpoint would free it.
  if (replicator_->BytesAbove(wal::Lsn(applied_lsn_.load())) >= options_.checkpoint_log_bytes) return true;
  const storage::MutexLock lock(&checkpoint_mutex_);
  return environment_.clock->Monotonic() - checkpointed_at_ >= options_.checkpoint_interval;
}

absl::Status StoreCore::Checkpoint() {
  const storage::MutexLock lock(&checkpoint_mutex_);
  REPOTXN_RETURN_IF_ERROR(queue_->poison());
  checkpointed_at_ = environment_.clock->Monotonic();
  // The applied position may pass nothing that a directory still lacks.
  REPOTXN_RETURN_IF_ERROR(DoOwedWork(Materializer::Try::kAll));
  const wal::LogPosition position = publisher_->committed_position();
  REPOTXN_ASSIGN_OR_RETURN(const Behind behind, MaterializeTo(position.lsn, Materializer::Try::kAll));
  REPOTXN_RETURN_IF_ERROR(queue_->poison());
  // Before the sync: who is not among them is on disk, and durable with it.
  std::set<RepositoryId> set_aside;
  const storage::MetadataBatch set_aside_rows = SetAsideRows(behind, position.lsn, &set_aside);
  REPOTXN_RETURN_IF_ERROR(ForgetOldOutcomes());
  // From here on a failure is final: what was synced is not known, and nothing is retried into success.
  if (REPOTXN_PLANT("txn.applied_before_sync")) {
    // Planted: the position below is durable, what it promises is not.
  } else if (absl::Status synced = fs_->SyncAll(); !synced.ok()) {
    committer_->Poison(absl::UnavailableError("sync of a checkpoint failed"));
    return synced;
  }
  // If we die before this is durable, the old applied position holds and the tail is redone.
  const auto mark = consumers_->AdvanceApplied(position, set_aside_rows);
  if (!mark.ok()) {
    committer_->Poison(absl::UnavailableError("write of the applied position failed"));
    return mark.status();
  }
  set_aside_ = std::move(set_aside);
  applied_lsn_.store(position.lsn.value());
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  return Trim(position.lsn, mark->lsn);
}

absl::Status StoreCore::LoadForgotten() {
  const auto stored = metadata_->Get(kForgottenKey);
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  if (!stored.ok()) return stored.status();
  int64_t nanoseconds = 0;
  if (!absl::SimpleAtoi(*stored, &nanoseconds)) {
    return absl::DataLossError("damaged row of the metadata store: forgotten outcomes");
  }
  forgotten_before_.store(nanoseconds);
  return absl::OkStatus();
}

absl::Time StoreCore::OldestKnown() const {
  return std::max(environment_.clock->Now() - options_.outcome_retention,
                  absl::FromUnixNanos(forgotten_before_.load()));
}

absl::Status StoreCore::ForgetOldOutcomes() {
  const absl::Time oldest = environment_.clock->Now() - options_.outcome_retention;
  storage::MetadataBatch batch;
  int forgotten = 0;
  absl::Status damage;
  REPOTXN_RETURN_IF_ERROR(metadata_->Scan(
      "o/", storage::PrefixEnd("o/"), [&](absl::string_view key, absl::string_view value) {
        auto split = SplitVersion(value);
        absl::StatusOr<OutcomeRow> row =
            split.ok() ? DecodeOutcomeRow(split->second) : absl::StatusOr<OutcomeRow>(split.status());
        if (!row.ok()) {
          damage = row.status();
          return false;
        }
        if (row->created_at >= oldest || ++forgotten > kForgottenMax) return false;
        batch.Delete(key);
        batch.Delete(TransactionKey(row->transaction_id));
        if (!row->request_id.empty()) batch.Delete(RequestKey(row->request_id));
        return true;
      }));
  REPOTXN_RETURN_IF_ERROR(damage);
  if (batch.empty()) return absl::OkStatus();
  // Kept with the rows' removal: a clock that is set back must not make them look as if they had never been.
  forgotten_before_.store(std::max(forgotten_before_.load(), absl::ToUnixNanos(oldest)));
  batch.Put(kForgottenKey, absl::StrCat(forgotten_before_.load()));
  return metadata_->Write(batch, storage::MetadataSync::kUnsynced);
}

int64_t StoreCore::OverlayBytes() const { return overlay_bytes_.load(std::memory_order_relaxed); }

absl::Status StoreCore::Close() {
  if (is_closed_.exchange(true)) {
    const storage::MutexLock lock(&checkpoint_mutex_);
    return close_status_;
  }
  live_.Close();
  consumers_->Close();
  publisher_->WakeWaiters();
  pack_pressure_.Release();
  StopBackground();
  committer_->Drain();
  snapshots_->DropUnused(0);
  const auto close = [this]() -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(Checkpoint());
    REPOTXN_RETURN_IF_ERROR(UnlinkCondemned());
    REPOTXN_RETURN_IF_ERROR(queue_->WriteEmptyGroup(wal::LogQueue::WhenBusy::kWait));
    REPOTXN_RETURN_IF_ERROR(replicator_->Release());
    REPOTXN_RETURN_IF_ERROR(metadata_->Close());
    // Last: whoever finds CLEAN finds everything before it.
    const wal::LogPosition position = publisher_->committed_position();
    REPOTXN_RETURN_IF_ERROR(storage::WriteFileSynced(
        *fs_, layout::CleanMarker(),
        absl::StrCat("lsn ", position.lsn.value(), "\nchain ", position.chain.ToHex(), "\n")));
    return fs_->SyncDirectory(storage::StorePath());
  };
  absl::Status status = close();
  // Whoever takes LOCK now finds CLEAN. After a failure files may still be open: LOCK stays until the store goes.
  if (status.ok()) ReleaseLock();
  const storage::MutexLock lock(&checkpoint_mutex_);
  close_status_ = status;
  return status;
}

}  // namespace repotxn::txn
