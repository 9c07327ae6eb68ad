// The parts of an open store and how they are wired: private to txn/.
//
// Opening, in this order, each step idempotent
//   1  lock the root; make or read STORE; wipe staging/ and snapshots/. If we die here: the same again.
//   2  open the metadata store; read the applied position.
//   3  recover the log behind it (wal/recovery.h): the tail is durable before any of it is believed.
//   4  load the tail: validate each entry wholly, put its versions into the overlay. In memory only.
//   5  directory work of the tail, in LSN order: repositories created, packs linked. If we die here: the same again.
//   6  remove payload of transactions that are not in the log; remove CLEAN, synced.
//   7  serve. Refs, files and rows follow by the materializer, which writes each final state once.
//
// Closing: no more transactions; materialize, sync, advance the applied position; an empty group; CLEAN, synced; LOCK.
// When a step fails there is no CLEAN, LOCK is held until the core is destroyed, and opening recovers.
//
// Thread-safe.
#ifndef REPOTXN_TXN_STORE_CORE_H_
#define REPOTXN_TXN_STORE_CORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "locks/intent_queue.h"
#include "storage/metadata_store.h"
#include "txn/committer.h"
#include "txn/condemned_files.h"
#include "txn/consumer_table.h"
#include "txn/consumers.h"
#include "txn/housekeeping.h"
#include "txn/live_transactions.h"
#include "txn/materializer.h"
#include "txn/pack_pressure.h"
#include "txn/partition.h"
#include "txn/payload_retention.h"
#include "txn/publisher.h"
#include "txn/repository_table.h"
#include "txn/row_space.h"
#include "txn/snapshot_maker.h"
#include "txn/snapshot_registry.h"
#include "txn/staged_changes.h"
#include "txn/store.h"
#include "txn/transaction_payload.h"
#include "wal/local_replicator.h"
#include "wal/log_queue.h"
#include "wal/payload_store.h"
#include "wal/positions.h"

namespace repotxn::txn {

class StoreCore {
 public:
  // `owned_file_system` may be null when the environment's file system is the caller's.
  static absl::StatusOr<std::unique_ptr<StoreCore>> Open(const Environment& environment,
                                                         std::unique_ptr<storage::FileSystem> owned_file_system,
                                                         const StoreOptions& options);
  ~StoreCore();

  // Transactions (txn/transaction.cc, txn/commit_builder.cc).
  absl::StatusOr<std::unique_ptr<Transaction>> Begin(const BeginOptions& options, bool is_attempt);
  void End(StagedChanges* changes, bool outcome_unknown);
  // Lets a transaction go that was ended from outside during its last call.
  void LetGo(TransactionLife* life);
  CommitResult CommitChanges(StagedChanges* changes);
  absl::Status DryRunChanges(const StagedChanges& changes);
  absl::Status ExtendSnapshot(StagedChanges* changes);
  // kAborted with the conflict when something of `reads` was written after `since`, a snapshot in use.
  absl::Status CheckReadsSince(const locks::DeclaredReads& reads, wal::Lsn since);
  // The live repository with this id at `at`; kNotFound.
  absl::StatusOr<std::shared_ptr<RepositoryState>> StateOf(const RepositoryId& id, wal::Lsn at);
  absl::StatusOr<std::optional<PathRow>> LookUpPath(absl::string_view path, wal::Lsn at);
  absl::StatusOr<RepositoryInfo> Describe(const RepositoryId& id, wal::Lsn at);
  // The row of a repository, removed ones included; nullopt when it never was or is purged.
  absl::StatusOr<std::optional<RepositoryRow>> RowOf(const RepositoryId& id, wal::Lsn at);
  std::shared_ptr<RepositoryState> OpenState(const RepositoryId& id, const RepositoryRow& row) {
    return repositories_->Get(id, row);
  }
  // The state if it is open, else nullptr.
  std::shared_ptr<RepositoryState> FindState(const RepositoryId& id) const { return repositories_->Find(id); }
  absl::StatusOr<std::vector<RepositoryId>> AlternatesOf(const RepositoryId& id, wal::Lsn at);
  // The repository and all that it borrows from; what cannot be read is left out, and `*failure` says why.
  std::vector<RepositoryId> ChainOf(const RepositoryId& id, wal::Lsn at, absl::Status* failure);
  // All that borrow from it, at any distance, those that are removed and may come back included.
  absl::StatusOr<std::set<RepositoryId>> BorrowersOf(const RepositoryId& id, wal::Lsn at);
  // kFailedPrecondition when objects were removed from `id`, or what it borrows from, after `since`, or are still lying about:
  // what was seen there then does not count.
  absl::Status CheckNoObjectsRemoved(const RepositoryId& id, wal::Lsn since);
  // Whether a removed pack of the chain still lies about from which a Git child may be answered though objects are gone.
  bool HasRemovedObjectsOnDisk(const RepositoryId& id);
  TransactionId NewTransactionId();

  // Removes loose objects that a pack of the repository has (txn/loose_objects.cc).
  absl::Status DropPackedLooseObjects(const RepositoryState& repository);
  PackPressure* pack_pressure() { return &pack_pressure_; }

  Partition* PartitionOf(wal::PartitionId id) { return partitions_->Get(id); }
  // Footprint of a manifest and reads at the snapshot of `commit`, split into its parts.
  absl::Status SplitFootprint(const wal::Manifest& manifest, const locks::DeclaredReads& reads, PendingCommit* commit);

  // Adoption and reconciliation (txn/adoption.cc, txn/reconciler.cc).
  absl::Status Unadopt(const RepositoryId& id, absl::string_view target);
  absl::StatusOr<ReconcileReport> Reconcile(const ReconcileOptions& options) ABSL_LOCKS_EXCLUDED(reconcile_mutex_);

  // Run (txn/store.cc).
  CommitResult Run(const RunOptions& options, absl::FunctionRef<absl::Status(Transaction&)> body);

  // Outcomes (txn/outcomes.cc).
  CommitResult OutcomeOf(const TransactionId& id);
  CommitResult OutcomeOfRequest(absl::string_view request_id, absl::Time issued_at);
  // Outcome that a row of a request id records; nullopt: none at `at`.
  absl::StatusOr<std::optional<CommitResult>> RecordedRequest(absl::string_view request_id, wal::Lsn at);

  // Consumers (txn/consumers.cc); contracts in txn/store.h.
  absl::Status CreateConsumer(absl::string_view name, const ConsumerStart& start);
  std::vector<ConsumerInfo> ListConsumers();
  absl::StatusOr<std::vector<ConsumedEntry>> NextEntries(absl::string_view name, const NextOptions& options);
  absl::Status AcknowledgeEntries(absl::string_view name, wal::Lsn lsn);
  absl::Status DropConsumer(absl::string_view name);
  absl::Status InterruptConsumer(absl::string_view name);

  // Background (txn/background.cc).
  absl::Status RunBackgroundWork();
  absl::Status Materialize();
  absl::Status Checkpoint() ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  // Packs the loose refs of the newest state when there are more than `loose_max`; returns how many. kAborted: somebody
  // else's change of the repository itself came first.
  absl::StatusOr<int64_t> PackLooseRefs(RepositoryState* repository, int loose_max);
  absl::Status Close();

  absl::StatusOr<std::shared_ptr<StagedObjects>> StageObjects(const TransactionId& id, const RepositoryPath& path,
                                                              ObjectFormat format_if_absent);
  absl::StatusOr<std::shared_ptr<StagedObjects>> StageObjectsOf(const TransactionId& id,
                                                                std::shared_ptr<RepositoryState> live,
                                                                ObjectFormat format,
                                                                std::optional<std::string> shallow = std::nullopt);
  absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> ReadSnapshot(const RepositoryPath& path);
  absl::StatusOr<std::vector<RepositoryInfo>> ListRepositories(absl::string_view prefix, absl::string_view after,
                                                              int limit);
  StoreMetrics Metrics() const;

  storage::FileSystem* file_system() const { return fs_; }
  const CondemnedFiles& condemned() const { return condemned_; }
  RowSpace* rows() const { return rows_.get(); }
  TransactionPayloads* payloads() const { return payloads_.get(); }
  SnapshotMaker* snapshots() { return snapshots_.get(); }
  storage::Random* random() const { return environment_.random; }
  storage::Clock* clock() const { return environment_.clock; }
  const StoreOptions& options() const { return options_; }
  Publisher* publisher() { return publisher_.get(); }
  const Publisher& publisher() const { return *publisher_; }
  Committer* committer() { return committer_.get(); }
  LiveTransactions* live() { return &live_; }
  Housekeeper* housekeeper() { return housekeeper_.get(); }
  SnapshotRegistry* registry() { return registry_.get(); }
  locks::IntentQueue* intents() { return &intents_; }
  const StoreId& incarnation() const { return incarnation_; }
  const RecoveryReport& recovery_report() const { return recovery_report_; }
  int lock_descriptor() const { return lock_descriptor_.load(); }
  // kUnavailable once Close() was called.
  absl::Status CheckNotClosed() const;

 private:
  StoreCore(const Environment& environment, std::unique_ptr<storage::FileSystem> owned,
            const StoreOptions& options);

  // What lives as long as a call of Run.
  struct RunCall {
    BeginOptions begin;
    storage::WaitLimit limit;
    std::shared_ptr<RunMemo> memo = std::make_shared<RunMemo>();
    absl::Status previous_conflict;
    bool is_detached = false;
    // Lines of what the body lost on or was put off for, and the turn in them.
    std::vector<locks::IntentQueue::Claim> lines;
    locks::IntentQueue::Turn turn;
    bool was_put_off = false;
    bool is_impatient = false;  // waited long enough: stands in no line any more
  };
  // Before a body is played again: waits for what it lost against, and for its turn or a moment.
  void AwaitRetry(RunCall* call, const CommitResult& lost, absl::Duration backoff);
  // One transaction: the body, then the commit.
  CommitResult PlayOnce(RunCall* call, absl::FunctionRef<absl::Status(Transaction&)> body);
  // Waits before a retry, about as long as `backoff`; closing or cancelling ends it.
  void Pause(absl::Duration backoff, const storage::WaitLimit& limit) ABSL_LOCKS_EXCLUDED(pause_mutex_);
  storage::WaitLimit LimitOf(const BeginOptions& options) const;

  // Opening (txn/store_open.cc).
  absl::Status LockRoot();
  void ReleaseLock();
  absl::Status OpenRoot();
  absl::Status CreateRoot();
  absl::Status WipeTemporary();
  absl::Status OpenLog();
  absl::Status LoadTail(wal::Lsn last);
  absl::Status LoadEntry(const wal::DecodedEntry& entry);
  absl::Status LoadCondemned();
  absl::Status LoadSetAside(wal::Lsn applied) ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  absl::Status RemoveDeadPayload();
  // Keeps a covered entry's payload when it holds the manifest and a consumer has yet to read that.
  absl::StatusOr<bool> KeepManifestPayload(const TransactionId& id, wal::Lsn low_water_mark);
  void StartBackground();
  void StopBackground() ABSL_LOCKS_EXCLUDED(background_mutex_);

  // Commit (txn/commit_builder.cc).
  absl::StatusOr<wal::Manifest> BuildManifest(const StagedChanges& changes, TransactionPayload* payload);
  absl::Status Prepare(const StagedChanges& changes, wal::Manifest manifest, TransactionPayload* payload,
                       PendingCommit* commit);
  absl::Status PrepareManifest(const wal::Manifest& manifest, const locks::DeclaredReads& reads,
                               TransactionPayload* payload, PendingCommit* commit);
  // Transactions of the store's own, which no client waits for. The first makes a manifest without operations; the second
  // prepares and commits one, whose file contents are all inline, with the rest of `commit` filled in by the caller.
  wal::Manifest NewOwnManifest();
  CommitResult CommitOwn(const wal::Manifest& manifest, std::unique_ptr<PendingCommit> commit);
  // kUnavailable when it changes a repository whose directory cannot be written.
  absl::Status CheckNotSetAside(const EntryEffects& effects) const;
  // Waits for the merging of packs when an entry adds one to too many.
  void AwaitPackMerge(const EntryEffects& effects, const storage::WaitLimit& limit);
  absl::Status DoAlternatesWork(const EntryEffects& effects);
  absl::Status DoPurgeWork(const EntryEffects& effects);
  absl::Status AddPackFiles(const wal::AddPack& pack, const TransactionId& id, absl::Time created_at, wal::Lsn lsn);
  absl::Status DoDirectoryWork(const EntryEffects& effects, const TransactionId& id, wal::Lsn lsn);
  // Owed directory work (txn/owed_work.cc).
  struct OwedWork {
    wal::Lsn lsn;
    TransactionId id;
    EntryEffects effects;
  };
  absl::Status DoDirectoryWorkInOrder(const EntryEffects& effects, const TransactionId& id, wal::Lsn lsn)
      ABSL_LOCKS_EXCLUDED(owed_mutex_);
  void Owe(OwedWork work, const absl::Status& why) ABSL_LOCKS_EXCLUDED(owed_mutex_);
  void SetAsideOwing(const RepositoryId& id, const absl::Status& why);
  // The first failure of what is still owed.
  absl::Status DoOwedWork(Materializer::Try which) ABSL_LOCKS_EXCLUDED(owed_mutex_);
  void PublishEntry(const EntryEffects& effects, wal::Lsn lsn);

  // Consumers (txn/consumers.cc).
  // The position that a consumer has acknowledged when `from` is its next entry. kOutOfRange when that is trimmed.
  absl::StatusOr<wal::LogPosition> PositionBefore(wal::Lsn from);
  // Waits until `lsn` is committed; false when `wait` passed first.
  absl::StatusOr<bool> AwaitEntry(absl::string_view name, ConsumerReader* reader, wal::Lsn lsn, absl::Duration wait);
  absl::StatusOr<std::vector<ConsumedEntry>> ReadEntries(absl::string_view name, ConsumerReader* reader, wal::Lsn from,
                                                         const NextOptions& options,
                                                         std::vector<wal::LogPosition>* delivered);
  absl::StatusOr<ConsumedEntry> Consume(const wal::DecodedEntry& entry);
  int64_t BytesHeldBy(wal::Lsn acknowledged) const;
  bool IsConsumerLagging(const wal::ConsumerPosition& consumer) const;
  // Drops consumers that lag too far and frees what acknowledgements have set free; nothing to do: no I/O.
  absl::Status TrimBehindConsumers() ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  // Frees log and payload. Both marks are durable.
  absl::Status Trim(wal::Lsn applied, wal::Lsn low_water_mark) ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);

  // Background (txn/background.cc).
  void WakeBackground() ABSL_LOCKS_EXCLUDED(background_mutex_);
  void BackgroundLoop() ABSL_LOCKS_EXCLUDED(background_mutex_);
  // Repositories that could not be written are set aside, and `behind`.
  using Behind = std::vector<std::shared_ptr<RepositoryState>>;
  absl::StatusOr<Behind> MaterializeTo(wal::Lsn target, Materializer::Try which);
  // What of them is not on disk at `applied` becomes rows beside that position, and rows of those that have caught up go;
  // `*now` is who has rows then.
  storage::MetadataBatch SetAsideRows(const Behind& behind, wal::Lsn applied, std::set<RepositoryId>* now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  // Packs what is crowded; returns the LSN up to which the disk may be brought now.
  wal::Lsn PackCrowdedRepositories();
  // Drops old versions and history; ends who keeps too much or lies idle too long (txn/limits.cc).
  void TrimToOldestReader();
  void SlowAdmission(int64_t overlay_bytes);
  void EndIdleTransactions();
  void EndOldestTransactionsBeyondBounds();
  bool SnapshotsKeepTooMuch() const;
  void GiveUp(const std::vector<SnapshotRegistry::Ended>& ended);
  int64_t CondemnedBytes() const;
  // Unlinks removed packs that nobody can need any more (txn/condemned_files.h).
  absl::Status UnlinkCondemned();
  absl::Status UnlinkPack(const CondemnedFiles::Pack& pack);
  // Purges removed repositories whose undelete time has passed and that no snapshot can show any more (txn/purge.cc).
  absl::Status PurgeRemoved();
  // Reconciliation (txn/reconciler.cc).
  absl::Status ReconcileWhenDue();
  // False: not needed any more, or not possible now.
  absl::StatusOr<bool> ActOn(const Discrepancy& discrepancy);
  absl::StatusOr<bool> PurgeRepository(const RemovedRow& due, wal::Lsn snapshot,
                                       const std::string& released_to = "");
  bool CheckpointIsDue();
  absl::Status ForgetOldOutcomes();
  absl::Status LoadForgotten();
  // Outcomes of transactions and requests since then can be told.
  absl::Time OldestKnown() const;
  int64_t OverlayBytes() const;

  // Constant after opening.
  std::unique_ptr<storage::FileSystem> owned_file_system_;
  const Environment environment_;
  const StoreOptions options_;
  storage::FileSystem* const fs_;
  StoreId store_id_, incarnation_;
  RecoveryReport recovery_report_;

  std::unique_ptr<storage::MetadataStore> metadata_;
  std::unique_ptr<wal::PayloadStore> payload_store_;
  std::unique_ptr<TransactionPayloads> payloads_;
  std::unique_ptr<wal::LocalReplicator> replicator_;
  std::unique_ptr<RowSpace> rows_;
  CondemnedFiles condemned_;
  std::unique_ptr<RepositoryTable> repositories_;
  std::unique_ptr<Publisher> publisher_;
  std::shared_ptr<SnapshotRegistry> registry_;  // shared with stagings
  std::unique_ptr<PartitionTable> partitions_;
  std::unique_ptr<Materializer> materializer_;
  std::unique_ptr<wal::LogQueue> queue_;
  std::unique_ptr<Committer> committer_;
  std::unique_ptr<SnapshotMaker> snapshots_;
  std::unique_ptr<ConsumerTable> consumers_;
  PayloadRetention payload_retention_;
  LiveTransactions live_;
  locks::IntentQueue intents_;
  PackPressure pack_pressure_;

  std::atomic<int64_t> log_syncs_{0}, retries_{0}, ref_packings_{0}, checkpoints_{0}, overlay_bytes_{0};
  std::atomic<int64_t> history_bytes_{0}, ended_idle_{0}, ended_too_old_{0};
  std::atomic<uint64_t> materialized_lsn_{0}, applied_lsn_{0};
  std::atomic<int64_t> forgotten_before_{0};  // nanoseconds since 1970
  std::atomic<bool> is_closed_{false};
  std::unique_ptr<storage::FileLock> lock_;  // from opening to the end of a clean close
  std::atomic<int> lock_descriptor_{-1};

  storage::Mutex checkpoint_mutex_{storage::MutexRank::kLifecycle};
  absl::Duration checkpointed_at_ ABSL_GUARDED_BY(checkpoint_mutex_);
  absl::Status close_status_ ABSL_GUARDED_BY(checkpoint_mutex_);
  std::set<RepositoryId> set_aside_ ABSL_GUARDED_BY(checkpoint_mutex_);  // those with rows (txn/set_aside.h)

  storage::Mutex owed_mutex_{storage::MutexRank::kSnapshot};
  std::vector<OwedWork> owed_ ABSL_GUARDED_BY(owed_mutex_);  // in LSN order

  storage::Mutex pause_mutex_{storage::MutexRank::kLeaf};
  storage::CondVar pause_over_;

  storage::Mutex background_mutex_{storage::MutexRank::kLeaf};
  storage::CondVar background_wake_;
  bool stop_background_ ABSL_GUARDED_BY(background_mutex_) = false;
  bool background_is_wanted_ ABSL_GUARDED_BY(background_mutex_) = false;
  wal::Lsn idle_since_;  // of the background thread
  std::atomic<bool> has_pending_delete_{false};
  // Held while a round of reconciliation runs.
  storage::Mutex reconcile_mutex_{storage::MutexRank::kLifecycle};
  Reconciler reconciler_ ABSL_GUARDED_BY(reconcile_mutex_);
  std::atomic<int64_t> discrepancies_{0}, reconciled_{0};
  std::atomic<int64_t> reconciled_at_ns_{0};  // monotonic
  std::thread background_;
  std::unique_ptr<Housekeeper> housekeeper_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_STORE_CORE_H_
