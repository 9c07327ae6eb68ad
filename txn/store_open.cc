// Opening a store: the steps are in txn/store_core.h.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/lock_holders.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/set_aside.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kFormatLine = "repotxn store, format 1";
constexpr absl::Duration kLockPoll = absl::Milliseconds(20);

// STORE: the format line, then "id <32 hex digits>" and "incarnation <32 hex digits>", each ended by a newline. Written
// to staging/ and renamed, so it is there whole or not at all.
std::string StoreFileContent(const StoreId& id, const StoreId& incarnation) {
  return absl::StrCat(kFormatLine, "\nid ", id.ToHex(), "\nincarnation ", incarnation.ToHex(), "\n");
}

// Id and incarnation.
absl::StatusOr<std::pair<StoreId, StoreId>> ParseStoreFile(const std::string& content) {
  const std::vector<std::string> lines = absl::StrSplit(content, '\n');
  if (!absl::StartsWith(lines[0], "repotxn store, format ")) {
    return absl::DataLossError("STORE is damaged");
  }
  if (lines[0] != kFormatLine) return absl::UnimplementedError("store has a newer format level");
  if (lines.size() != 4 || !absl::StartsWith(lines[1], "id ") ||
      !absl::StartsWith(lines[2], "incarnation ")) {
    return absl::DataLossError("STORE is damaged");
  }
  const auto id = StoreId::FromHex(absl::string_view(lines[1]).substr(3));
  const auto incarnation = StoreId::FromHex(absl::string_view(lines[2]).substr(12));
  if (!id.ok() || !incarnation.ok()) return absl::DataLossError("STORE is damaged");
  return std::make_pair(*id, *incarnation);
}

std::vector<storage::StorePath> TopDirectories() {
  return {layout::Repositories(), layout::Repositories() / "@id", layout::Log(),
          layout::Payload(),      layout::Staging(),              layout::Snapshots(),
          layout::PendingDelete(), layout::LostFound(),           layout::Metadata()};
}

}  // namespace

StoreCore::StoreCore(const Environment& environment, std::unique_ptr<storage::FileSystem> owned,
                     const StoreOptions& options)
    : owned_file_system_(std::move(owned)),
      environment_(environment),
      options_(options),
      fs_(environment.file_system),
      housekeeper_(std::make_unique<Housekeeper>(this)) {}

StoreCore::~StoreCore() {
  if (absl::Status closed = Close(); !closed.ok()) {
    storage::LogError(absl::StrCat("store was not closed cleanly: ", closed.message()));
  }
}

absl::StatusOr<std::unique_ptr<StoreCore>> StoreCore::Open(
    const Environment& environment, std::unique_ptr<storage::FileSystem> owned_file_system,
    const StoreOptions& options) {
  std::unique_ptr<StoreCore> core(
      new StoreCore(environment, std::move(owned_file_system), options));
  core->is_closed_ = true;  // nothing to close until everything is there
  REPOTXN_RETURN_IF_ERROR(core->OpenRoot());
  REPOTXN_RETURN_IF_ERROR(core->OpenLog());
  core->is_closed_ = false;
  core->StartBackground();
  return core;
}

absl::Status StoreCore::LockRoot() {
  storage::Mutex mutex(storage::MutexRank::kLeaf);
  storage::CondVar never;
  const absl::Duration until = environment_.clock->Monotonic() + options_.lock_wait;
  while (true) {
    auto lock = fs_->Lock(layout::LockFile(), absl::StrCat(storage::CurrentProcessId(), "\n"));
    if (lock.ok()) {
      lock_ = *std::move(lock);
      lock_descriptor_.store(lock_->descriptor());
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(lock.status()) || environment_.clock->Monotonic() >= until) {
      return lock.status();
    }
    // A process that ends, or its last Git child, gives no signal: look again.
    const storage::MutexLock wait(&mutex);
    never.WaitFor(&mutex, kLockPoll);
  }
}

void StoreCore::ReleaseLock() {
  lock_descriptor_.store(-1);
  lock_.reset();
}

absl::Status StoreCore::CreateRoot() {
  // Only an empty root, or what a creation that died left: empty directories of ours.
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs_->List(storage::StorePath()));
  for (const storage::DirectoryEntry& entry : entries) {
    const auto ours = TopDirectories();
    const bool is_ours = std::any_of(ours.begin(), ours.end(), [&](const storage::StorePath& path) {
      return path.text() == entry.name;
    });
    if (!is_ours && entry.name != layout::LockFile().text() && entry.name != "lost+found") {
      return absl::FailedPreconditionError("directory is neither empty nor a store");
    }
  }
  for (const storage::StorePath& directory : TopDirectories()) {
    REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, directory));
  }
  store_id_ = storage::NewId<StoreId>(*environment_.random);
  const storage::StorePath temporary = layout::Staging() / "STORE";
  REPOTXN_RETURN_IF_ERROR(storage::WriteFileSynced(
      *fs_, temporary, StoreFileContent(store_id_, storage::NewId<StoreId>(*environment_.random))));
  REPOTXN_RETURN_IF_ERROR(fs_->SyncDirectory(layout::Repositories()));
  REPOTXN_RETURN_IF_ERROR(fs_->SyncDirectory(storage::StorePath()));
  REPOTXN_RETURN_IF_ERROR(fs_->Rename(temporary, layout::StoreFile()));
  return fs_->SyncDirectory(storage::StorePath());
}

absl::Status StoreCore::WipeTemporary() {
  // Renamed first, so that a child that outlived its daemon loses the names it knows before anything is removed.
  for (const storage::StorePath& directory : {layout::Staging(), layout::Snapshots()}) {
    REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, directory));
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs_->List(directory));
    int number = 0;
    for (const storage::DirectoryEntry& entry : entries) {
      const storage::StorePath path = directory / entry.name;
      storage::StorePath wiped = path;
      if (!absl::StartsWith(entry.name, "wiped-")) {
        do {
          wiped = directory / absl::StrCat("wiped-", number++);
        } while (fs_->Stat(wiped).ok());
        REPOTXN_RETURN_IF_ERROR(fs_->Rename(path, wiped));
      }
      REPOTXN_RETURN_IF_ERROR(storage::RemoveTree(*fs_, wiped));
    }
  }
  return absl::OkStatus();
}

absl::Status StoreCore::OpenRoot() {
  REPOTXN_ASSIGN_OR_RETURN(const bool is_store, storage::Exists(*fs_, layout::StoreFile()));
  if (!is_store && !options_.create_if_missing) return absl::NotFoundError("no store here");
  REPOTXN_RETURN_IF_ERROR(LockRoot());
  if (!is_store) REPOTXN_RETURN_IF_ERROR(CreateRoot());
  REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(*fs_, layout::StoreFile(), 4096));
  REPOTXN_ASSIGN_OR_RETURN(const auto ids, ParseStoreFile(content));
  store_id_ = ids.first;
  incarnation_ = ids.second;
  for (const storage::StorePath& directory : TopDirectories()) {
    REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, directory));
  }
  REPOTXN_RETURN_IF_ERROR(WipeTemporary());
  REPOTXN_ASSIGN_OR_RETURN(recovery_report_.was_clean, storage::Exists(*fs_, layout::CleanMarker()));
  REPOTXN_ASSIGN_OR_RETURN(metadata_, storage::MetadataStore::Open(fs_, layout::Metadata()));
  payload_store_ = std::make_unique<wal::PayloadStore>(fs_, layout::Payload());
  payloads_ = std::make_unique<TransactionPayloads>(payload_store_.get());
  return payload_store_->Initialize();
}

absl::Status StoreCore::OpenLog() {
  {
    const storage::MutexLock lock(&checkpoint_mutex_);
    REPOTXN_ASSIGN_OR_RETURN(wal::Positions positions, ConsumerTable::Load(metadata_.get()));
    checkpointed_at_ = environment_.clock->Monotonic();
    applied_lsn_ = positions.applied.lsn.value();
    wal::LocalReplicator::Options options;
    options.segment_bytes = options_.segment_bytes;
    options.directory = layout::Log();
    options.payload_directory = layout::Payload();
    options.random_salt = [this] { return storage::NextUint64(*environment_.random); };
    options.durable = positions.applied;
    REPOTXN_ASSIGN_OR_RETURN(
        replicator_, wal::LocalReplicator::Create(fs_, wal::LowWaterMark(positions), options));
    consumers_ = std::make_unique<ConsumerTable>(metadata_.get(), std::move(positions));
  }
  REPOTXN_RETURN_IF_ERROR(LoadForgotten());
  REPOTXN_ASSIGN_OR_RETURN(const wal::LogTail tail, replicator_->Acquire());
  recovery_report_.torn_bytes_cut = replicator_->torn_bytes();
  if (recovery_report_.torn_bytes_cut > 0) {
    storage::LogWarning(absl::StrCat("cut a torn tail of ", recovery_report_.torn_bytes_cut,
                                     " bytes off the log"));
  }

  rows_ = std::make_unique<RowSpace>(metadata_.get());
  repositories_ = std::make_unique<RepositoryTable>(fs_, &condemned_);
  publisher_ = std::make_unique<Publisher>(
      wal::LogPosition{tail.last, tail.chain},
      [this](const PendingCommit& commit) { PublishEntry(commit.effects, commit.ticket.lsn()); });
  registry_ = std::make_shared<SnapshotRegistry>(publisher_->committed_lsn_cell());
  partitions_ = std::make_unique<PartitionTable>(tail.last);
  materializer_ =
      std::make_unique<Materializer>(fs_, repositories_.get(), rows_.get(), registry_.get());
  if (absl::Status emptied = materializer_->EmptyPendingDelete(); !emptied.ok()) {
    storage::LogError(absl::StrCat("what was purged takes space still: ", emptied.message()));
  }
  REPOTXN_RETURN_IF_ERROR(LoadTail(tail.last));
  REPOTXN_RETURN_IF_ERROR(RemoveDeadPayload());

  wal::LogQueue::Options queue;
  queue.durable_observer = [this](wal::Lsn lsn) {
    log_syncs_.fetch_add(1, std::memory_order_relaxed);
    publisher_->OnDurable(lsn);
  };
  queue.space_observer = [this] { WakeBackground(); };
  queue_ = std::make_unique<wal::LogQueue>(replicator_.get(), tail, std::move(queue));
  Committer::Options committer;
  committer.admission.queue_max = options_.admission_queue_max;
  committer.admission.in_flight_max = options_.commits_in_flight_max;
  committer_ = std::make_unique<Committer>(
      queue_.get(), publisher_.get(), registry_.get(),
      [this](const PendingCommit& commit) { return DoDirectoryWork(commit.effects, commit.id, commit.ticket.lsn()); },
      [this] { return replicator_->PrepareSpace(); }, committer);
  snapshots_ = std::make_unique<SnapshotMaker>(fs_, materializer_.get(), publisher_.get(),
                                               registry_.get(),
                                               storage::NextUint64(*environment_.random));
  if (recovery_report_.was_clean) {
    REPOTXN_RETURN_IF_ERROR(fs_->Remove(layout::CleanMarker()));
    REPOTXN_RETURN_IF_ERROR(fs_->SyncDirectory(storage::StorePath()));
  }
  return replicator_->PrepareSpace();
}

absl::Status StoreCore::LoadEntry(const wal::DecodedEntry& entry) {
  REPOTXN_RETURN_IF_ERROR(ValidateManifest(entry.manifest));
  REPOTXN_ASSIGN_OR_RETURN(
      EntryEffects effects, MakeEffects(entry.manifest, [&](const wal::PayloadFile& file) {
        return payload_store_->Read(entry.transaction_id, file);
      }));
  DropPackedRefs(entry.dropped, &effects);
  PublishEntry(effects, entry.lsn);
  payload_retention_.Note(entry.lsn, entry.transaction_id, entry.body_payload_bytes);
  if (absl::Status done = DoDirectoryWorkInOrder(effects, entry.transaction_id, entry.lsn); !done.ok()) {
    // A full disk is everybody's.
    if (absl::IsResourceExhausted(done)) return done;
    effects.repositories.clear();
    Owe({entry.lsn, entry.transaction_id, std::move(effects)}, done);
  }
  ++recovery_report_.entries_redone;
  return absl::OkStatus();
}

absl::Status StoreCore::LoadCondemned() {
  absl::Status damage;
  REPOTXN_RETURN_IF_ERROR(metadata_->Scan(kCondemnedPrefix, storage::PrefixEnd(kCondemnedPrefix),
                                          [&](absl::string_view key, absl::string_view value) {
                                            const auto row = DecodeCondemnedKey(key);
                                            const auto split = SplitVersion(value);
                                            damage.Update(row.status());
                                            damage.Update(split.status());
                                            if (damage.ok()) condemned_.Condemn({row->id, row->pack, split->first});
                                            return damage.ok();
                                          }));
  return damage;
}

absl::Status StoreCore::LoadSetAside(wal::Lsn applied) {
  std::vector<RepositoryEffects> all;
  absl::Status damage;
  REPOTXN_RETURN_IF_ERROR(metadata_->Scan(kSetAsidePrefix, storage::PrefixEnd(kSetAsidePrefix),
                                          [&](absl::string_view key, absl::string_view value) {
                                            auto effects = DecodeSetAside(key, value);
                                            damage = effects.status();
                                            if (effects.ok()) all.push_back(*std::move(effects));
                                            return damage.ok();
                                          }));
  REPOTXN_RETURN_IF_ERROR(damage);
  const storage::MutexLock lock(&checkpoint_mutex_);
  for (const RepositoryEffects& effects : all) {
    set_aside_.insert(effects.id);
    REPOTXN_ASSIGN_OR_RETURN(const auto row, RowOf(effects.id, applied));
    if (!row) continue;  // purged
    storage::LogWarning(absl::StrCat("repository ", effects.id.ToHex(), " was set aside; its changes are written again"));
    repositories_->Get(effects.id, *row)->Publish(effects, applied);
    repositories_->MarkDirty(effects.id);
  }
  return absl::OkStatus();
}

absl::Status StoreCore::LoadTail(wal::Lsn last) {
  wal::Lsn applied(applied_lsn_.load());
  materialized_lsn_ = applied.value();
  REPOTXN_RETURN_IF_ERROR(LoadCondemned());
  REPOTXN_RETURN_IF_ERROR(LoadSetAside(applied));
  // Nobody is older any more, and nobody may be answered from them [hard case A6]. Those of the tail go with its rows.
  REPOTXN_RETURN_IF_ERROR(UnlinkCondemned());
  // Those that could not be: whether objects went with them is not remembered.
  for (const CondemnedFiles::Pack& pack : condemned_.RemovedUpTo(applied)) {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, RowOf(pack.id, applied));
    if (row) repositories_->Get(pack.id, *row)->NoteObjectsRemoved(pack.lsn);
  }
  if (last <= applied) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(auto cursor, replicator_->Follow(applied.Next()));
  while (applied < last) {
    REPOTXN_ASSIGN_OR_RETURN(const wal::DecodedEntry entry, cursor->Next());
    REPOTXN_RETURN_IF_ERROR(LoadEntry(entry));
    applied = entry.lsn;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> StoreCore::KeepManifestPayload(const TransactionId& id, wal::Lsn low_water_mark) {
  REPOTXN_ASSIGN_OR_RETURN(const wal::Resolution found, replicator_->Resolve(id));
  if (found.state != wal::ProposalState::kCommitted || found.lsn <= low_water_mark) return false;
  REPOTXN_ASSIGN_OR_RETURN(const auto cursor, replicator_->Follow(found.lsn));
  const auto entry = cursor->Next();
  if (entry.ok() && entry->body_payload_bytes == 0) return false;
  // A manifest that cannot be read is told to the consumer that wants it; it must not keep the store shut.
  payload_retention_.Note(found.lsn, id, entry.ok() ? entry->body_payload_bytes : 1);
  return true;
}

absl::Status StoreCore::RemoveDeadPayload() {
  const wal::Lsn mark = wal::LowWaterMark(consumers_->positions()).lsn;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<TransactionId> ids, payload_store_->List());
  const absl::flat_hash_set<TransactionId> of_tail = payload_retention_.ids();
  for (const TransactionId& id : ids) {
    if (of_tail.contains(id)) continue;
    REPOTXN_ASSIGN_OR_RETURN(const bool is_kept, KeepManifestPayload(id, mark));
    if (!is_kept) REPOTXN_RETURN_IF_ERROR(payload_store_->Remove(id));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::txn
