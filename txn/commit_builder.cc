// From what a transaction staged to an entry on its way: everything that is done outside the critical section.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "refs/ref_operations.h"
#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/object_looks.h"
#include "txn/store_core.h"
#include "wal/manifest_codec.h"

namespace repotxn::txn {
namespace {

// Says where an operator has to look.
absl::Status Located(const absl::Status& status, const RepositoryId& id) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(layout::RepositoryDirectory(id).text(), ": ", status.message()));
}

bool ChangesNothing(const StagedChanges& changes) {
  if (!changes.groups.empty() || !changes.removed_groups.empty() || !changes.keys.empty() ||
      changes.fences_request) {
    return false;
  }
  for (const auto& [id, repository] : changes.repositories) {
    if (repository.created || !repository.operations.empty() || !repository.packs.empty() ||
        !repository.files.empty() || repository.objects != nullptr ||
        !repository.refs.Changes(id).empty()) {
      return false;
    }
  }
  return true;
}

CommitResult NotCommitted(const TransactionId& id, absl::Status why) {
  CommitResult result;
  result.transaction_id = id;
  result.status = std::move(why);
  return result;
}

// Content above the inline bound becomes a payload file.
absl::StatusOr<wal::FileContent> ContentOf(const std::string& bytes, TransactionPayload* payload) {
  wal::FileContent content;
  if (static_cast<int64_t>(bytes.size()) <= wal::kInlineContentBytesMax) {
    content.inline_bytes = bytes;
    return content;
  }
  REPOTXN_ASSIGN_OR_RETURN(content.payload, payload->AddBytes(bytes));
  return content;
}

absl::Status AppendFileOperations(const StagedRepository& repository, TransactionPayload* payload,
                                  std::vector<wal::Operation>* operations) {
  for (const auto& [path, state] : repository.files) {
    switch (state.kind) {
      case FileState::Kind::kFile: {
        REPOTXN_ASSIGN_OR_RETURN(wal::FileContent content, ContentOf(*state.content, payload));
        operations->push_back(wal::PutFile{repository.id, path, state.mode, std::move(content)});
        break;
      }
      case FileState::Kind::kDirectory:
        operations->push_back(wal::MakeDirectory{repository.id, path});
        break;
      case FileState::Kind::kAbsent:
        // A removed directory is staged with its mode cleared (Transaction::RemoveDirectory).
        if (state.mode == 0) {
          operations->push_back(wal::RemoveDirectory{repository.id, path});
        } else {
          operations->push_back(wal::RemoveFile{repository.id, path});
        }
        break;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<wal::Manifest> StoreCore::BuildManifest(const StagedChanges& changes,
                                                       TransactionPayload* payload) {
  wal::Manifest manifest;
  manifest.transaction_id = changes.id;
  manifest.request_id = changes.request_id;
  manifest.created_at = environment_.clock->Now();
  manifest.note.actor = changes.actor;
  manifest.note.origin = changes.origin;
  manifest.note.push_options = changes.push_options;
  manifest.note.fences_request = changes.fences_request;
  for (const std::string& group : changes.removed_groups) {
    manifest.operations.push_back(wal::RemoveGroup{group});
  }
  for (const std::string& group : changes.groups) {
    manifest.operations.push_back(wal::EnsureGroup{group});
  }
  // Refs of a fork go straight to packed-refs: they are many, and alike in many forks.
  refs::RefOperationOptions options, fork_options;
  options.packed_threshold = static_cast<size_t>(options_.direct_pack_refs_min);
  fork_options.packed_threshold = 0;
  std::vector<wal::Operation> of_refs;
  for (const auto& [id, repository] : changes.repositories) {
    if (repository.created) manifest.operations.push_back(*repository.created);
    manifest.operations.insert(manifest.operations.end(), repository.operations.begin(), repository.operations.end());
    REPOTXN_RETURN_IF_ERROR(AppendFileOperations(repository, payload, &manifest.operations));
    if (repository.objects != nullptr && repository.objects->has_pack()) {
      manifest.operations.push_back(repository.objects->AddPackTo(id));
    }
    manifest.operations.insert(manifest.operations.end(), repository.packs.begin(), repository.packs.end());
    if (!repository.removed_objects.empty()) {
      wal::ObjectsRemoved& removed = manifest.note.objects_removed.emplace_back();
      removed.id = id;
      for (const ObjectId& oid : repository.removed_objects) removed.oids.emplace_back(oid.bytes());
    }
    std::vector<wal::RefChange> changed = repository.refs.Changes(id);
    std::vector<wal::Operation> derived =
        refs::DeriveRefOperations(changed, {}, repository.is_fork ? fork_options : options);
    std::move(changed.begin(), changed.end(), std::back_inserter(manifest.note.ref_changes));
    std::move(derived.begin(), derived.end(), std::back_inserter(of_refs));
  }
  for (const auto& [key, value] : changes.keys) {
    if (value) {
      manifest.operations.push_back(wal::PutKey{key.first, key.second, *value});
    } else {
      manifest.operations.push_back(wal::DeleteKey{key.first, key.second});
    }
  }
  std::move(of_refs.begin(), of_refs.end(), std::back_inserter(manifest.operations));
  return manifest;
}

absl::Status StoreCore::SplitFootprint(const wal::Manifest& manifest,
                                       const locks::DeclaredReads& reads, PendingCommit* commit) {
  absl::flat_hash_map<RepositoryId, wal::PartitionId> created;
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto* create = std::get_if<wal::CreateRepository>(&operation)) {
      created[create->id] = create->partition;
    }
  }
  absl::Status unknown_repository;
  const wal::Lsn at = commit->snapshot_lsn;
  locks::RepositoryFacts facts;
  facts.path_of = [&](const RepositoryId& id) -> std::optional<std::string> {
    const auto row = RowOf(id, at);
    unknown_repository.Update(row.status());
    if (!row.ok() || !*row || (*row)->is_removed()) return std::nullopt;
    return (*row)->path;
  };
  facts.alternates_of = [&](const RepositoryId& id) {
    if (created.contains(id)) return std::vector<RepositoryId>();
    auto alternates = AlternatesOf(id, at);
    unknown_repository.Update(alternates.status());
    return alternates.ok() ? *std::move(alternates) : std::vector<RepositoryId>();
  };
  auto split = locks::SplitByPartition(
      locks::DeriveLocks(manifest, reads, facts), [&](const RepositoryId& id) {
        const auto it = created.find(id);
        if (it != created.end()) return it->second;
        if (const auto state = repositories_->Find(id)) return state->partition();
        const auto row = RowOf(id, at);
        if (row.ok() && *row) return (*row)->partition;
        unknown_repository.Update(row.ok() ? absl::InternalError("footprint names an unknown repository")
                                           : row.status());
        return wal::kNameSpacePartition;
      });
  for (auto& [id, footprint] : split) {
    commit->parts.push_back(PendingCommit::Part{partitions_->Get(id), std::move(footprint)});
  }
  return unknown_repository;
}

absl::Status StoreCore::PrepareManifest(const wal::Manifest& manifest,
                                        const locks::DeclaredReads& reads,
                                        TransactionPayload* payload, PendingCommit* commit) {
  if (absl::Status valid = ValidateManifest(manifest); !valid.ok()) {
    return absl::InternalError(absl::StrCat("staged a malformed manifest: ", valid.message()));
  }
  auto prepared = wal::PrepareEntry(manifest);
  if (absl::IsResourceExhausted(prepared.status())) {
    // Too large to stand in the record: the manifest itself travels as a payload file.
    REPOTXN_ASSIGN_OR_RETURN(const wal::PayloadFile body,
                             payload->AddBytes(wal::EncodeManifest(manifest)));
    prepared = wal::PreparePayloadEntry(manifest.transaction_id, body);
  }
  if (!prepared.ok()) return prepared.status();
  commit->id = manifest.transaction_id;
  commit->prepared = *std::move(prepared);
  REPOTXN_RETURN_IF_ERROR(SplitFootprint(manifest, reads, commit));
  REPOTXN_RETURN_IF_ERROR(payload->Seal());
  std::vector<wal::PayloadFile> files = payload->files();
  return files.empty() ? absl::OkStatus() : replicator_->StagePayload(manifest.transaction_id, files);
}

absl::Status StoreCore::Prepare(const StagedChanges& changes, wal::Manifest manifest,
                                TransactionPayload* payload, PendingCommit* commit) {
  commit->snapshot_lsn = changes.snapshot_lsn;
  commit->limit = changes.limit;
  REPOTXN_RETURN_IF_ERROR(PrepareManifest(manifest, changes.reads, payload, commit));
  absl::flat_hash_map<std::string, std::string> contents;  // of payload files, by digest
  for (const auto& [id, repository] : changes.repositories) {
    for (const auto& [path, state] : repository.files) {
      if (state.content != nullptr &&
          static_cast<int64_t>(state.content->size()) > wal::kInlineContentBytesMax) {
        contents.emplace(storage::Sha256(*state.content), *state.content);
      }
    }
  }
  REPOTXN_ASSIGN_OR_RETURN(
      commit->effects,
      MakeEffects(manifest, [&](const wal::PayloadFile& file) -> absl::StatusOr<std::string> {
        return contents.at(file.sha256);
      }));
  for (const wal::CreateRepository& created : commit->effects.created) {
    if (created.is_adopted()) continue;
    REPOTXN_RETURN_IF_ERROR(materializer_->StageSkeleton(created));
  }
  return absl::OkStatus();
}

CommitResult StoreCore::CommitChanges(StagedChanges* changes) {
  if (absl::Status open = CheckNotClosed(); !open.ok()) return NotCommitted(changes->id, std::move(open));
  if (!changes->request_id.empty() && !changes->fences_request) {
    auto recorded = RecordedRequest(changes->request_id, changes->snapshot_lsn);
    if (!recorded.ok()) return NotCommitted(changes->id, recorded.status());
    if (*recorded) return **std::move(recorded);
  }
  if (ChangesNothing(*changes) && changes->request_id.empty()) {
    CommitResult result;
    result.outcome = CommitOutcome::kCommitted;
    result.transaction_id = changes->id;
    return result;
  }
  if (OverlayBytes() > options_.overlay_bytes_max) {
    return NotCommitted(changes->id, absl::ResourceExhaustedError("too much waits to be materialized"));
  }
  const std::shared_ptr<TransactionPayload> payload = payloads_->Of(changes->id);
  auto commit = std::make_unique<PendingCommit>();
  auto manifest = BuildManifest(*changes, payload.get());
  if (!manifest.ok()) return NotCommitted(changes->id, manifest.status());
  std::vector<RepositoryId> created;
  const absl::Status prepared = Prepare(*changes, *std::move(manifest), payload.get(), commit.get());
  for (const wal::CreateRepository& operation : commit->effects.created) created.push_back(operation.id);
  // What is left to do once the outcome is known, by whoever gets to know it.
  const auto conclude = [this, payload, created = std::move(created), id = changes->id,
                         manifest_bytes = commit->prepared.body_payload.size](const CommitResult& result) {
    if (result.outcome == CommitOutcome::kNotCommitted) {
      for (const RepositoryId& repository : created) materializer_->DiscardSkeleton(repository);
      return;
    }
    payload->ReleaseToLog();
    if (result.committed() && !payload->files().empty()) payload_retention_.Note(result.lsn, id, manifest_bytes);
  };
  const auto refuse = [&conclude, changes](absl::Status why) {
    CommitResult result = NotCommitted(changes->id, std::move(why));
    conclude(result);
    return result;
  };
  if (!prepared.ok()) return refuse(prepared);
  if (absl::Status set_aside = CheckNotSetAside(commit->effects); !set_aside.ok()) return refuse(std::move(set_aside));
  if (!changes->has_turn) {
    for (const PendingCommit::Part& part : commit->parts) {
      for (locks::IntentQueue::Claim& claim : intents_.Contended(part.footprint)) {
        changes->lines_to_stand_in.push_back(std::move(claim));
      }
    }
    if (!changes->lines_to_stand_in.empty()) {
      changes->was_put_off = true;
      return refuse(absl::AbortedError("others stand in line for a key"));
    }
  }
  commit->settle = [this, conclude, id = changes->id](const CommitResult& result) {
    conclude(result);
    live_.Leave(id, result.outcome == CommitOutcome::kUnknown);
  };
  AwaitPackMerge(commit->effects, changes->limit);
  ObjectLooks looks(this, changes, commit.get());
  CommitResult result;
  do {
    if (absl::Status looked = looks.Take(); !looked.ok()) return refuse(std::move(looked));
    result = committer_->Commit(&commit);
  } while (commit != nullptr && commit->is_look_stale);
  if (commit == nullptr) {
    changes->is_detached = true;
    // Nobody may come by: then the background carries it on.
    WakeBackground();
    return result;
  }
  if (commit->lost_on) {
    if (auto line = locks::IntentQueue::LineFor(*commit->lost_on)) changes->lines_to_stand_in.push_back(*std::move(line));
  }
  conclude(result);
  return result;
}

wal::Manifest StoreCore::NewOwnManifest() {
  wal::Manifest manifest;
  manifest.transaction_id = NewTransactionId();
  manifest.created_at = environment_.clock->Now();
  manifest.note.actor = "repotxn";
  return manifest;
}

CommitResult StoreCore::CommitOwn(const wal::Manifest& manifest, std::unique_ptr<PendingCommit> commit) {
  TransactionPayload payload(payload_store_.get(), manifest.transaction_id);
  const auto prepare = [&]() -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(PrepareManifest(manifest, locks::DeclaredReads(), &payload, commit.get()));
    REPOTXN_ASSIGN_OR_RETURN(commit->effects, MakeEffects(manifest, nullptr));
    return absl::OkStatus();
  };
  if (absl::Status prepared = prepare(); !prepared.ok()) {
    return NotCommitted(manifest.transaction_id, std::move(prepared));
  }
  commit->is_of_store = true;
  const int64_t manifest_bytes = commit->prepared.body_payload.size;
  CommitResult result = committer_->Commit(&commit);
  if (result.outcome == CommitOutcome::kNotCommitted) return result;
  payload.ReleaseToLog();
  if (result.committed() && !payload.files().empty()) {
    payload_retention_.Note(result.lsn, manifest.transaction_id, manifest_bytes);
  }
  return result;
}

absl::Status StoreCore::DryRunChanges(const StagedChanges& changes) {
  if (ChangesNothing(changes)) return absl::OkStatus();
  // A payload of its own: nothing of a trial is kept.
  const TransactionId trial = NewTransactionId();
  TransactionPayload payload(payload_store_.get(), trial);
  REPOTXN_ASSIGN_OR_RETURN(const wal::Manifest manifest, BuildManifest(changes, &payload));
  PendingCommit commit;
  commit.snapshot_lsn = changes.snapshot_lsn;
  REPOTXN_RETURN_IF_ERROR(SplitFootprint(manifest, changes.reads, &commit));
  return committer_->DryRun(commit);
}

absl::Status StoreCore::CheckReadsSince(const locks::DeclaredReads& reads, wal::Lsn since) {
  PendingCommit check;
  check.snapshot_lsn = since;
  REPOTXN_RETURN_IF_ERROR(SplitFootprint(wal::Manifest(), reads, &check));
  return committer_->DryRun(check);
}

absl::Status StoreCore::ExtendSnapshot(StagedChanges* changes) {
  // The new snapshot first: what is checked below then covers everything up to it, and more.
  const wal::Lsn extended = registry_->Enter();
  const absl::Status checked = CheckReadsSince(changes->reads, changes->snapshot_lsn);
  if (!checked.ok()) {
    registry_->Leave(extended);
    return checked;
  }
  registry_->Move(changes->life.get(), extended);
  changes->snapshot_lsn = extended;
  return absl::OkStatus();
}

void StoreCore::AwaitPackMerge(const EntryEffects& effects, const storage::WaitLimit& limit) {
  // Who removes packs makes them fewer; and without a thread that merges there is nothing to wait for.
  if (effects.packs.empty() || !effects.removed_packs.empty()) return;
  if (options_.packs_added_max == 0 || !options_.background_thread) return;
  for (const wal::AddPack& pack : effects.packs) {
    const auto state = repositories_->Find(pack.id);
    if (state != nullptr) pack_pressure_.Await(limit, environment_.clock, [&state] { return state->packs_added(); });
  }
}

absl::Status StoreCore::DoAlternatesWork(const EntryEffects& effects) {
  for (const ChangedAlternates& changed : effects.alternates) {
    REPOTXN_RETURN_IF_ERROR(Located(materializer_->WriteAlternates(changed), changed.id));
  }
  for (const ChangedAlternates& changed : effects.alternates) {
    const storage::StorePath objects = layout::RepositoryDirectory(changed.id) / "objects";
    for (const auto& state : repositories_->All()) {
      REPOTXN_RETURN_IF_ERROR(state->NoteAlternatesChanged(objects));
    }
  }
  return absl::OkStatus();
}

absl::Status StoreCore::DoPurgeWork(const EntryEffects& effects) {
  for (const auto& [id, target] : effects.released) {
    REPOTXN_RETURN_IF_ERROR(materializer_->ReleaseDirectory(id, target, repositories_->Find(id).get()));
  }
  for (const RepositoryId& id : effects.purged) {
    if (absl::Status moved = materializer_->CondemnDirectory(id, repositories_->Find(id).get()); !moved.ok()) {
      // No row names it any more: reconciliation finds it.
      storage::LogError(absl::StrCat("directory of purged repository ", id.ToHex(), " stays: ", moved.message()));
    }
    has_pending_delete_.store(true);
  }
  return absl::OkStatus();
}

absl::Status StoreCore::CheckNotSetAside(const EntryEffects& effects) const {
  const auto check = [this](const RepositoryId& id) -> absl::Status {
    const auto state = repositories_->Find(id);
    const absl::Status fault = state == nullptr ? absl::OkStatus() : state->fault();
    if (fault.ok()) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("repository is set aside, its directory cannot be written: ", fault.message()));
  };
  for (const RepositoryEffects& changed : effects.repositories) REPOTXN_RETURN_IF_ERROR(check(changed.id));
  for (const wal::AddPack& pack : effects.packs) REPOTXN_RETURN_IF_ERROR(check(pack.id));
  for (const wal::ReplaceDerived& derived : effects.derived) REPOTXN_RETURN_IF_ERROR(check(derived.id));
  for (const ChangedAlternates& changed : effects.alternates) REPOTXN_RETURN_IF_ERROR(check(changed.id));
  return absl::OkStatus();
}

absl::Status StoreCore::DoDirectoryWork(const EntryEffects& effects, const TransactionId& id, wal::Lsn lsn) {
  for (const wal::CreateRepository& created : effects.created) {
    REPOTXN_RETURN_IF_ERROR(Located(materializer_->CreateRepositoryDirectory(created), created.id));
  }
  for (const wal::AddPack& pack : effects.packs) {
    REPOTXN_RETURN_IF_ERROR(Located(AddPackFiles(pack, id, effects.created_at, lsn), pack.id));
  }
  // After the packs that a multi-pack-index names.
  for (const wal::ReplaceDerived& derived : effects.derived) {
    REPOTXN_RETURN_IF_ERROR(Located(materializer_->ReplaceDerived(derived, id), derived.id));
  }
  // After the packs: what an unlinked repository borrowed is its own by now.
  REPOTXN_RETURN_IF_ERROR(DoAlternatesWork(effects));
  return DoPurgeWork(effects);
}

absl::Status StoreCore::AddPackFiles(const wal::AddPack& pack, const TransactionId& id, absl::Time created_at,
                                     wal::Lsn lsn) {
  const auto state = repositories_->Find(pack.id);
  if (state != nullptr) {
    auto before = RepositoryState::PackBefore::kNone;
    if (condemned_.Contains(pack.id, pack.name)) {
      // Whoever unlinks it holds the latch, and looks again under it.
      const storage::MutexLock latch(state->latch());
      condemned_.Pardon(pack.id, pack.name);
      before = RepositoryState::PackBefore::kCondemned;
    } else if (fs_->Stat(layout::PackFile(pack.id, pack.name, ".idx")).ok()) {
      before = RepositoryState::PackBefore::kLive;
    }
    // Before the file is there: who lists the directory asks since when.
    state->NotePackAdded(pack.name, lsn, before);
  }
  REPOTXN_RETURN_IF_ERROR(materializer_->LinkPack(pack, id, created_at));
  if (state == nullptr) return absl::OkStatus();
  housekeeper_->NotePackAdded(*state);
  return absl::OkStatus();
}

void StoreCore::PublishEntry(const EntryEffects& effects, wal::Lsn lsn) {
  int64_t bytes = rows_->Publish(effects.keys, lsn);
  for (const wal::CreateRepository& created : effects.created) {
    repositories_->Get(created.id, RepositoryRow{created.path, created.partition, created.format});
  }
  for (const RepositoryEffects& changed : effects.repositories) {
    std::shared_ptr<RepositoryState> state = repositories_->Find(changed.id);
    if (state == nullptr) {
      // Only in recovery: whoever commits has opened the repository. The tables may be ahead of the entry: a repository
      // without a row is purged by a later one.
      const auto row = RowOf(changed.id, lsn);
      if (REPOTXN_NEVER(!row.ok()) || !*row) continue;
      state = repositories_->Get(changed.id, **row);
    }
    bytes += state->Publish(changed, lsn);
    repositories_->MarkDirty(changed.id);
  }
  for (const wal::AddPack& pack : effects.packs) {
    if (!condemned_.Settle(pack.id, pack.name)) continue;
    bytes += rows_->Publish({{CondemnedKey(pack.id, pack.name), std::nullopt}}, lsn);
  }
  for (const wal::RemovePack& pack : effects.removed_packs) condemned_.Condemn({pack.id, pack.name, lsn});
  for (const RepositoryId& id : effects.objects_removed) {
    std::shared_ptr<RepositoryState> state = repositories_->Find(id);
    if (state == nullptr) {
      // Only in recovery; no row: purged by a later entry.
      const auto row = RowOf(id, lsn);
      if (REPOTXN_NEVER(!row.ok()) || !*row) continue;
      state = repositories_->Get(id, **row);
    }
    state->NoteObjectsRemoved(lsn);
  }
  for (const RepositoryId& id : effects.purged) repositories_->Remove(id);
  const int64_t before = overlay_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= options_.overlay_bytes_high && before + bytes > options_.overlay_bytes_high) WakeBackground();
}

}  // namespace repotxn::txn
