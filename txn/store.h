// A store: one root directory with one log, holding many bare Git repositories whose every change is a transaction.
//
// The critical section of a commit is short and does no I/O; durability is one shared sync of the write-ahead log. Refs
// and files reach the repositories later, written by a background materializer; reads through transactions see them at
// once, and Git children get snapshot directories that are current.
//
// Durability: see Transaction::Commit. Opening recovers: every acknowledged transaction is there, no other is half there.
//
// Invariants
//   I1  committed_lsn() never decreases, and every entry up to it is durable and visible to a transaction begun later.
//   I2  Nothing touches a live repository before its entry is durable.
//   I3  After a failed sync (of the log, of a checkpoint, of a materialized file) or failed directory work the store takes
//       no more writes until it is opened again.
//   I4  An answer "not committed" is never followed by the transaction appearing.
//
// Caveats: one process per root (LOCK). While a store is open, or after it was not closed cleanly, repositories on disk
// lag behind; stock Git may read them directly only after Close() or `repotxn recover`, and must never write them.
// Storage that reports a sync it did not do is beyond what can be promised.
//
// Thread-safe.
#ifndef REPOTXN_TXN_STORE_H_
#define REPOTXN_TXN_STORE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/clock.h"
#include "storage/file_system.h"
#include "storage/random.h"
#include "storage/wait_limit.h"
#include "txn/consumers.h"
#include "txn/adoption.h"
#include "txn/housekeeping_status.h"
#include "txn/object_staging.h"
#include "txn/outcome.h"
#include "txn/reconciler.h"
#include "txn/repository_path.h"
#include "txn/snapshot.h"
#include "txn/transaction.h"

namespace repotxn::txn {

class StoreCore;

struct StoreOptions {
  // Make a new store in an empty (or absent) root; otherwise opening one that is not there is kNotFound.
  bool create_if_missing = false;
  // Bytes of a log segment. [64 KiB, 1 GiB].
  int64_t segment_bytes = 64 << 20;
  // Log bytes and time after which a checkpoint is taken.
  int64_t checkpoint_log_bytes = 256 << 20;
  absl::Duration checkpoint_interval = absl::Minutes(5);
  // Period of the background materializer.
  absl::Duration materialize_interval = absl::Milliseconds(50);
  // A repository with more loose refs than this in its newest state is packed.
  int loose_refs_max = 16;
  // After so many packs were added to a repository its packs are merged (Transaction::MergePacks) in the background;
  // 0: never. With it a repository has about twice as many packs at most, however many pushes it gets.
  int packs_added_max = 16;
  // What the background keeps in order, and when; rules in txn/housekeeping_plan.h. Period of the rounds over all
  // repositories, the first one after the opening; zero: none.
  absl::Duration housekeeping_interval = absl::Hours(1);
  // Repositories on which the background works at once. [1, 64].
  int housekeeping_concurrency = 1;
  // A repack removes unreachable objects that came longer ago.
  absl::Duration unreachable_grace = absl::Hours(14 * 24);
  // Least time between two repacks of a repository; and that packs may be younger than its indexes.
  absl::Duration repack_interval = absl::Hours(24);
  absl::Duration indexes_interval = absl::Hours(24);
  // A transaction with more ref changes than this in a repository writes them straight to packed-refs.
  int direct_pack_refs_min = 64;
  // Commits between admission and their answers; who comes later waits in the queues of his partitions, in the order of
  // coming, and partitions take turns. [1, 65535].
  int commits_in_flight_max = 4096;
  // Commits that may wait so for one partition; beyond it kResourceExhausted at once. 0: nobody waits.
  int admission_queue_max = 4096;
  // Writers of a key on which one of them has lost line up in Run (locks/intent_queue.h) instead of racing. Off, results
  // are the same; hot keys burn more retries, and may run out of them.
  bool intent_queue = true;
  // Bytes of unmaterialized versions: past the first bound batches run back to back, past the second commits are
  // refused with kResourceExhausted.
  int64_t overlay_bytes_high = 256 << 20;
  int64_t overlay_bytes_max = 1 << 30;
  // Bytes that are kept only for the snapshots of open transactions: versions that are on disk already, and the
  // conflict history. Past one of these bounds the transactions with the oldest snapshot are ended (kAborted, "too
  // old"), so that one that was forgotten does not fill the memory of all. Checked by the background work.
  int64_t old_versions_bytes_max = 512 << 20;
  int64_t history_bytes_max = 512 << 20;
  // A transaction that nobody has called for so long, and for which no Git child works, is ended (kAborted) by the
  // background work. Its id is fenced. InfiniteDuration: never.
  absl::Duration idle_lease = absl::Minutes(10);
  // How long outcomes of transactions and request ids can be asked for.
  absl::Duration outcome_retention = absl::Hours(24);
  // Period of reconciliation in the background (txn/reconciler.h); zero: none.
  absl::Duration reconcile_interval = absl::Minutes(10);
  // How long a deleted repository can be brought back. Its files take space until then.
  absl::Duration undelete_retention = absl::Hours(24);
  // Bytes of log and large manifests that one consumer may hold back; a consumer that lags further is dropped.
  int64_t consumer_bytes_max = 1 << 30;
  // How long opening waits for the LOCK of a process (or its children) that is going away.
  absl::Duration lock_wait = absl::Seconds(10);
  // Without background threads the embedder calls RunBackgroundWork() and RunHousekeeping(); for deterministic tests.
  bool background_thread = true;
};

// Seams a store stands on; all must outlive it. Defaults are the machine's.
struct Environment {
  storage::FileSystem* file_system = nullptr;  // rooted at the store
  storage::Clock* clock = nullptr;
  storage::Random* random = nullptr;
};

struct BeginOptions {
  // Opened at begin; kNotFound when one is absent.
  std::vector<RepositoryPath> repositories;
  Access access = Access::kReadWrite;
  // A commit that is not admitted by then is kDeadlineExceeded, not committed. One that is admitted goes on whatever
  // happens; its caller may get kDeadlineExceeded with outcome *unknown*, and OutcomeOf() tells (pending, then what it
  // became). A committer that just writes the log for others and itself answers when that is done.
  absl::Time deadline = absl::InfiniteFuture();
  // The same with kCancelled, from the moment in which its source is told to stop.
  storage::CancellationToken cancellation;
  // At most 200 bytes. A second commit with it finds the first and returns its outcome.
  std::string request_id;
  // From Store::NewTransactionId; zero: drawn at begin. An id whose outcome is known is refused.
  TransactionId transaction_id;
};

struct RunOptions {
  BeginOptions begin;
  // Replays of the body after kAborted.
  int retries_max = 3;
};

// Counters since open, and levels now; all for /metrics.
struct StoreMetrics {
  int64_t commits = 0;
  int64_t conflicts = 0;
  int64_t retries = 0;
  int64_t log_syncs = 0;
  int64_t materialized_batches = 0;
  int64_t pack_merges = 0;
  int64_t packs_condemned = 0;  // removed, and kept on disk for older readers
  int64_t condemned_bytes = 0;   // of them
  // Tasks of housekeeping that ended, by HousekeepingTask and TaskOutcome.
  std::array<std::array<int64_t, kTaskOutcomes>, kHousekeepingTasks> housekeeping_results = {};
  int64_t repositories_needing_housekeeping = 0;  // as far as somebody has looked
  absl::Duration housekeeping_oldest_need;        // how long one of them has been waiting
  bool housekeeping_is_paused = false;
  int64_t ref_packings = 0;
  int64_t checkpoints = 0;
  int64_t discrepancies = 0;  // that the last round of reconciliation found
  int64_t reconciled = 0;     // acts of reconciliation
  int64_t snapshots_made = 0;
  int64_t snapshots_shared = 0;
  int64_t snapshots_live = 0;
  int64_t writers_in_line = 0;    // for hot keys
  int64_t commits_waiting = 0;    // in admission queues
  int64_t commits_in_flight = 0;  // admitted, without an outcome yet
  int64_t commits_detached = 0;   // of them, under way without their callers
  int64_t open_transactions = 0;
  int64_t transactions_ended_idle = 0;
  int64_t transactions_ended_too_old = 0;
  int64_t overlay_bytes = 0;
  int64_t history_bytes = 0;
  int64_t repositories = 0;
  uint64_t committed_lsn = 0;
  uint64_t materialized_lsn = 0;
  uint64_t applied_lsn = 0;
  uint64_t oldest_snapshot_lsn = 0;
  int64_t repositories_set_aside = 0;  // whose directories cannot be written
  bool poisoned = false;
};

// What opening found and did.
struct RecoveryReport {
  bool was_clean = false;
  uint64_t entries_redone = 0;
  int64_t torn_bytes_cut = 0;
  std::vector<std::string> lost_found;
};

class Store {
 public:
  // Opens the store at an absolute directory of the machine.
  //
  // Errors
  //   kNotFound            no store there and create_if_missing is off.
  //   kUnavailable         another process holds it after lock_wait (detail "pid"), or a sync failed.
  //   kDataLoss            damage before the log's tail, or in its own tables; nothing was changed.
  //   kUnimplemented       written by a newer format level.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& root, const StoreOptions& options);
  // The same over given seams.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const Environment& environment, const StoreOptions& options);
  // Closes when Close() was not called; errors are logged.
  ~Store();

  absl::StatusOr<std::unique_ptr<Transaction>> Begin(const BeginOptions& options);

  // Runs `body` in a transaction and commits, replaying the body against a fresh snapshot on kAborted: retries_max
  // times, after 10, 20, 40 ms with jitter, each when the conflicting entry is committed or failed. A body that returns
  // an error ends the call: not committed, with that status. The transaction id is the same in every attempt. Deadline
  // and cancellation of `options.begin` hold for the whole call, its pauses included.
  CommitResult Run(const RunOptions& options, absl::FunctionRef<absl::Status(Transaction&)> body);

  // Asks for the outcome of a transaction or request. kPending while it lives. kNotCommitted only after the id was
  // fenced, so that a late commit is refused. kOutOfRange status (outcome unknown) beyond the retention time.
  CommitResult OutcomeOf(const TransactionId& id);
  // `issued_at`: when the caller used the request id; it decides whether the outcome can still be known. The fence of a
  // request id is durable.
  CommitResult OutcomeOfRequest(absl::string_view request_id, absl::Time issued_at);

  TransactionId NewTransactionId();
  // Staging for new objects of transaction `id` for a repository at `path`; when there is none, for a new one of
  // `format_if_absent` that the same transaction creates.
  absl::StatusOr<std::shared_ptr<ObjectStaging>> StageObjects(const TransactionId& id, const RepositoryPath& path,
                                                              ObjectFormat format_if_absent);

  // A shared directory that shows the repository at the newest committed LSN or later. kNotFound when absent.
  absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> ReadSnapshot(const RepositoryPath& path);

  // Repositories at the newest committed LSN whose paths begin with `prefix`, sorted by path, after `after`.
  absl::StatusOr<std::vector<RepositoryInfo>> ListRepositories(absl::string_view prefix, absl::string_view after,
                                                              int limit);

  // Consumers of committed entries: txn/consumers.h has the contract.
  //
  // Makes a consumer, durably. Errors: kAlreadyExists, also while a dropped one of this name waits for DropConsumer();
  // kOutOfRange its first entry is trimmed; kInvalidArgument its first entry lies in the future, or the name is bad;
  // kResourceExhausted too many.
  absl::Status CreateConsumer(absl::string_view name, const ConsumerStart& start);
  // All of them, by name, the dropped ones too.
  std::vector<ConsumerInfo> ListConsumers() const;
  // The entries behind what the consumer has acknowledged, in LSN order without gaps; waits for the first one. Empty when
  // options.wait passed first. One call at a time for each consumer.
  //
  // Errors
  //   kOutOfRange          it lagged too far and was dropped, durably; payload "acknowledged_lsn" tells where it stood.
  //   kNotFound            no such consumer, or removed meanwhile.
  //   kCancelled           InterruptConsumer().
  //   kUnavailable         the store closes, or takes no more entries after a fault.
  //   kFailedPrecondition  another call for it is under way.
  //   kDataLoss            the log is damaged there.
  absl::StatusOr<std::vector<ConsumedEntry>> NextEntries(absl::string_view name, const NextOptions& options);
  // The owner has done with every entry up to `lsn`. Durable at the next checkpoint at the latest; until then a crash may
  // bring entries again. Errors: kFailedPrecondition not delivered since the store was opened; kNotFound; kOutOfRange
  // dropped; kUnavailable closing.
  absl::Status AcknowledgeEntries(absl::string_view name, wal::Lsn lsn);
  // Removes a consumer, durably, whatever its state: the owner's word that it knows of a drop as well. kNotFound.
  absl::Status DropConsumer(absl::string_view name);
  // Ends the wait of NextEntries() that is under way for this consumer, or else the next call, once. kNotFound.
  absl::Status InterruptConsumer(absl::string_view name);
  // Takes the bare repository at `source` (below the root, relative to it or absolute) into the store, by a rename; see
  // txn/adoption.h. Checkpointed when it returns OK.
  //
  // Errors
  //   kInvalidArgument     `source` is outside the root, or one of the store's own directories.
  //   kNotFound            there is no such directory.
  //   kFailedPrecondition  it cannot be adopted; the message names the first reason and their number, a dry run all.
  //   kAlreadyExists       `path` is taken.
  // After these the repository is untouched. After any other the adoption may have happened: look `path` up.
  absl::StatusOr<AdoptionReport> Adopt(absl::string_view source, const RepositoryPath& path,
                                       const AdoptOptions& options);
  // The same for every bare repository at or below `root`; each gets its path below `root`, behind `prefix` (empty, or a
  // group). One report each, by source: those with refusals, and all that borrow from one another with them, are
  // untouched. An error ends the work; what was adopted by then stays.
  absl::StatusOr<std::vector<AdoptionReport>> AdoptTree(absl::string_view root, absl::string_view prefix,
                                                        const AdoptOptions& options);

  // Gives a repository back: it leaves the store, and its directory, with what its adoption set aside, is moved to `target`
  // (below the root, not there yet). Checkpointed when it returns OK.
  //
  // Errors
  //   kNotFound            no such repository.
  //   kAlreadyExists       something stands at `target`.
  //   kFailedPrecondition  it borrows or lends objects: unlink first.
  //   kUnavailable         somebody reads it; it is removed by now (and could be brought back): call again.
  absl::Status Unadopt(const RepositoryId& id, absl::string_view target);

  // One round of making the catalogue and the disk agree; see txn/reconciler.h.
  absl::StatusOr<ReconcileReport> Reconcile(const ReconcileOptions& options);

  wal::Lsn committed_lsn() const;
  // Changes when a store is restored from a backup: LSNs of different incarnations do not compare.
  StoreId incarnation() const;
  StoreMetrics Metrics() const;
  const RecoveryReport& recovery_report() const;
  // Descriptor of LOCK, which Git children inherit; -1 in memory.
  int lock_descriptor() const;
  // Not OK once the store takes no more writes (I3).
  absl::Status Health() const;

  // Writes everything committed into the repositories (not synced).
  absl::Status Materialize();
  // Materializes, syncs, advances the applied LSN and trims the log.
  absl::Status Checkpoint();
  // One round of what the background thread does.
  absl::Status RunBackgroundWork();

  // Housekeeping (txn/housekeeping_plan.h, txn/housekeeping_status.h); what is remembered is since opening. kNotFound: no
  // repository is at `path`.
  //
  // One round over all repositories, as the background does, paused or not: what each needs. The first task that failed;
  // one that something stood in the way of is told by HousekeepingStatus() alone.
  absl::Status RunHousekeeping();
  // Looks what a repository needs.
  absl::StatusOr<HousekeepingPlan> PlanHousekeeping(const RepositoryPath& path);
  // Does tasks here and now, paused or not; one result each, look at all of them. A task that is under way already is
  // kAborted in its result; other tasks of the repository may run beside this. kInvalidArgument: the run contradicts itself.
  absl::StatusOr<std::vector<TaskResult>> RunHousekeeping(const RepositoryPath& path, const HousekeepingRun& run);
  absl::StatusOr<RepositoryHousekeeping> HousekeepingStatus(const RepositoryPath& path);
  HousekeepingOverview HousekeepingStatus();
  // While paused the background begins no task. Not remembered over restarts.
  void PauseHousekeeping(bool is_paused);

  // Admits nothing more, ends open transactions, materializes, checkpoints, writes CLEAN and lets go of LOCK: once it
  // returned OK another process may open the root. When a step fails there is no CLEAN, LOCK is kept until the store is
  // destroyed, and the status says what is left. Idempotent. Afterwards every call but Metrics(), Health(),
  // committed_lsn() and recovery_report() fails with kUnavailable, reads of transactions still open included.
  absl::Status Close();

 private:
  struct Adoptee;
  absl::StatusOr<std::vector<AdoptionReport>> AdoptAll(std::vector<Adoptee> adoptees, const AdoptOptions& options);
  absl::Status AdoptGroup(const std::vector<Adoptee*>& group, const AdoptOptions& options);
  absl::StatusOr<RepositoryId> IdOf(const RepositoryPath& path);

  explicit Store(std::unique_ptr<StoreCore> core);
  std::unique_ptr<StoreCore> core_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_STORE_H_
