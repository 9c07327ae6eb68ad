#include "txn/adoption.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/borrowed_objects.h"
#include "objects/git_child.h"
#include "objects/pack_index.h"
#include "objects/quarantine.h"
#include "storage/status_macros.h"
#include "txn/adoption_survey.h"
#include "txn/layout.h"
#include "txn/staged_changes.h"
#include "txn/store.h"
#include "txn/store_core.h"

namespace repotxn::txn {

// A repository on its way into the store.
struct Store::Adoptee {
  RepositoryPath path;
  Survey survey;
  wal::Lsn surveyed_at;  // before the survey
  // A new pack, when packs are split, and those that get a reverse index; ids are filled in by the transaction.
  std::vector<wal::AddPack> packs;
  // Number of its group: all that borrow from one another.
  size_t group = 0;
};

namespace {

using storage::StorePath;

// The path below the root that `source` means.
absl::StatusOr<StorePath> BelowRoot(storage::FileSystem& fs, absl::string_view source) {
  if (absl::StartsWith(source, "/")) {
    REPOTXN_ASSIGN_OR_RETURN(const std::string root, fs.AbsolutePath(StorePath()));
    if (!absl::ConsumePrefix(&source, root) || !absl::ConsumePrefix(&source, "/")) {
      return absl::InvalidArgumentError(
          "directory is not below the store's root; move it there first, on the same file system");
    }
  }
  while (absl::ConsumeSuffix(&source, "/")) {
  }
  return StorePath::Parse(source);
}

// The id of an adopted repository's directory; none when `directory` is another.
std::optional<RepositoryId> IdOfDirectory(const StorePath& directory) {
  absl::string_view name = directory.Name();
  if (!absl::ConsumeSuffix(&name, ".git")) return std::nullopt;
  const auto id = RepositoryId::FromHex(name);
  if (!id.ok() || !(layout::RepositoryDirectory(*id) == directory)) return std::nullopt;
  return *id;
}

// All objects of the packs to be split but the open ones, each once.
absl::StatusOr<std::vector<ObjectId>> ClosedObjects(storage::FileSystem& fs, const Survey& survey) {
  const std::vector<ObjectId>& open = survey.report.open_objects;
  absl::flat_hash_set<ObjectId> closed;
  for (const std::string& stem : survey.split_packs) {
    const StorePath path = survey.source / absl::StrCat("objects/pack/", stem, ".idx");
    REPOTXN_ASSIGN_OR_RETURN(const auto index, objects::PackIndex::Open(fs, path, survey.report.format));
    REPOTXN_RETURN_IF_ERROR(index->ForEach([&](const ObjectId& oid, int64_t) {
      if (!std::binary_search(open.begin(), open.end(), oid)) closed.insert(oid);
      return absl::OkStatus();
    }));
  }
  std::vector<ObjectId> sorted(closed.begin(), closed.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Packs them anew in `snapshot` and stages the files.
absl::StatusOr<std::optional<wal::AddPack>> StageClosedObjects(storage::FileSystem& fs, const Survey& survey,
                                                               const StorePath& snapshot, absl::Duration timeout,
                                                               int lock_descriptor, TransactionPayload* payload) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> ids, ClosedObjects(fs, survey));
  objects::ObjectPackingOptions packing;
  packing.format = survey.report.format;
  packing.timeout = timeout;
  packing.lock_fd = lock_descriptor;
  REPOTXN_ASSIGN_OR_RETURN(const objects::PackedObjects packed, objects::PackObjects(fs, snapshot, ids, packing));
  if (packed.pack_name.empty()) return std::optional<wal::AddPack>();
  wal::AddPack pack;
  pack.name = packed.pack_name;
  const StorePath stem = snapshot / absl::StrCat("objects/pack/", packed.pack_name);
  const std::pair<wal::PayloadFile*, absl::string_view> files[] = {
      {&pack.pack, ".pack"}, {&pack.reverse_index, ".rev"}, {&pack.index, ".idx"}};
  for (const auto& [file, suffix] : files) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, StorePath::Parse(absl::StrCat(stem.text(), suffix)));
    REPOTXN_ASSIGN_OR_RETURN(*file, payload->AddLinked(path));
  }
  return std::optional<wal::AddPack>(std::move(pack));
}

// Makes the reverse index of a pack of the source in `snapshot`, which also hashes the pack anew, and stages it with the
// pack's own files, by link.
absl::StatusOr<wal::AddPack> StageReverseIndex(storage::FileSystem& fs, const Survey& survey, const std::string& name,
                                               const StorePath& snapshot, absl::Duration timeout,
                                               int lock_descriptor, TransactionPayload* payload) {
  const StorePath packs = survey.source / "objects/pack";
  const StorePath staged = snapshot / "objects/pack";
  REPOTXN_ASSIGN_OR_RETURN(const std::string pack_file, fs.AbsolutePath(packs / absl::StrCat(name, ".pack")));
  REPOTXN_ASSIGN_OR_RETURN(const std::string index_file, fs.AbsolutePath(staged / absl::StrCat(name, ".idx")));
  objects::GitCommand command;
  REPOTXN_ASSIGN_OR_RETURN(command.repository, fs.AbsolutePath(snapshot));
  command.arguments = {"index-pack", "--rev-index", "-o", index_file, pack_file};
  command.is_check = true;
  command.lock_fd = lock_descriptor;
  objects::RunLimits limits;
  limits.timeout = timeout;
  REPOTXN_ASSIGN_OR_RETURN(const objects::GitResult result, objects::RunGit(command, nullptr, limits));
  if (result.exit_code != 0) return absl::DataLossError(absl::StrCat("a pack is damaged: ", name));
  wal::AddPack pack;
  pack.name = name;
  REPOTXN_ASSIGN_OR_RETURN(pack.pack, payload->AddLinked(packs / absl::StrCat(name, ".pack")));
  REPOTXN_ASSIGN_OR_RETURN(pack.reverse_index, payload->AddLinked(staged / absl::StrCat(name, ".rev")));
  REPOTXN_ASSIGN_OR_RETURN(pack.index, payload->AddLinked(packs / absl::StrCat(name, ".idx")));
  const StorePath times = packs / absl::StrCat(name, ".mtimes");
  REPOTXN_ASSIGN_OR_RETURN(const bool is_cruft, storage::Exists(fs, times));
  if (is_cruft) {
    REPOTXN_ASSIGN_OR_RETURN(pack.cruft_times, payload->AddLinked(times));
  }
  return pack;
}

absl::Status RefusalOf(const AdoptionReport& report) {
  const AdoptionFinding& first = report.refusals.front();
  return absl::FailedPreconditionError(
      absl::StrCat("repository cannot be adopted: ", first.path.empty() ? report.source : first.path, ": ",
                   first.reason, report.refusals.size() > 1
                                     ? absl::StrCat(" (and ", report.refusals.size() - 1, " more)")
                                     : ""));
}

}  // namespace

absl::Status Store::AdoptGroup(const std::vector<Adoptee*>& group, const AdoptOptions& options) {
  storage::FileSystem& fs = *core_->file_system();
  RunOptions run;
  run.begin.transaction_id = core_->NewTransactionId();
  const std::shared_ptr<TransactionPayload> payload = core_->payloads()->Of(run.begin.transaction_id);
  const StorePath staging =
      layout::Staging() / absl::StrCat("adopt-", run.begin.transaction_id.ToHex());
  const auto wipe = absl::MakeCleanup([&] {
    // Staging is wiped at open: what cannot be removed now goes then.
    static_cast<void>(storage::RemoveTree(fs, staging).ok());
  });
  REPOTXN_RETURN_IF_ERROR(fs.MakeDirectory(staging));
  for (size_t i = 0; i < group.size(); ++i) {
    const Survey& survey = group[i]->survey;
    if (survey.split_packs.empty() && survey.packs_without_rev.empty()) continue;
    const StorePath snapshot = staging / absl::StrCat(i);
    objects::ObjectSnapshotOptions make;
    make.format = survey.report.format;
    make.live_repository = survey.source;
    REPOTXN_RETURN_IF_ERROR(objects::MakeObjectSnapshot(fs, snapshot, make));
    for (const std::string& name : survey.packs_without_rev) {
      REPOTXN_ASSIGN_OR_RETURN(wal::AddPack pack, StageReverseIndex(fs, survey, name, snapshot, options.timeout,
                                                                    lock_descriptor(), payload.get()));
      group[i]->packs.push_back(std::move(pack));
    }
    if (survey.split_packs.empty()) continue;
    REPOTXN_ASSIGN_OR_RETURN(std::optional<wal::AddPack> pack,
                             StageClosedObjects(fs, survey, snapshot, options.timeout, lock_descriptor(),
                                                payload.get()));
    if (pack) group[i]->packs.push_back(*std::move(pack));
  }
  REPOTXN_RETURN_IF_ERROR(payload->Seal());
  // What was judged is what a crash leaves: from now on only names change.
  REPOTXN_RETURN_IF_ERROR(fs.SyncAll());

  std::map<StorePath, RepositoryId> ids;
  const auto body = [&](Transaction& txn) -> absl::Status {
    ids.clear();
    for (Adoptee* adoptee : group) {
      const Survey& survey = adoptee->survey;
      REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(survey.source));
      if (info.kind != storage::FileKind::kDirectory) return absl::NotFoundError("source is gone");
      CreateOptions create;
      create.format = survey.report.format;
      create.head_target = survey.head_target;
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.CreateRepository(adoptee->path, create));
      ids[survey.source] = id;
      StagedRepository& staged = txn.changes_->repositories[id];
      staged.created->adopted_from = survey.source.text();
      staged.created->set_aside.clear();
      for (const AdoptionFinding& finding : survey.report.set_aside) {
        staged.created->set_aside.push_back(finding.path);
      }
      for (const wal::AddPack& pack : adoptee->packs) {
        staged.packs.push_back(pack);
        staged.packs.back().id = id;
      }
    }
    for (const Adoptee* adoptee : group) {
      for (const StorePath& lender : adoptee->survey.lenders) {
        const auto sibling = ids.find(lender);
        const RepositoryId pool = sibling != ids.end() ? sibling->second : *IdOfDirectory(lender);
        if (sibling == ids.end()) REPOTXN_RETURN_IF_ERROR(core_->CheckNoObjectsRemoved(pool, adoptee->surveyed_at));
        REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(ids.at(adoptee->survey.source), pool));
      }
    }
    return absl::OkStatus();
  };
  const CommitResult result = Run(run, body);
  if (!result.committed()) return result.status;
  for (Adoptee* adoptee : group) {
    adoptee->survey.report.id = ids.at(adoptee->survey.source);
    adoptee->survey.report.lsn = result.lsn;
    adoptee->survey.report.trash = layout::AdoptionTrash(adoptee->survey.report.id).text();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AdoptionReport>> Store::AdoptAll(std::vector<Adoptee> adoptees,
                                                            const AdoptOptions& options) {
  std::map<StorePath, size_t> by_source;
  for (size_t i = 0; i < adoptees.size(); ++i) {
    adoptees[i].group = i;
    by_source[adoptees[i].survey.source] = i;
  }
  const auto join = [&](size_t from, size_t to) {
    for (Adoptee& adoptee : adoptees) {
      if (adoptee.group == from) adoptee.group = to;
    }
  };
  for (Adoptee& adoptee : adoptees) {
    for (const StorePath& lender : adoptee.survey.lenders) {
      const auto sibling = by_source.find(lender);
      if (sibling != by_source.end()) {
        join(adoptees[sibling->second].group, adoptee.group);
      } else if (!IdOfDirectory(lender)) {
        adoptee.survey.report.refusals.push_back(
            {"objects/info/alternates",
             absl::StrCat("borrows from ", lender.text(), ", which is not adopted; adopt both at once")});
      }
    }
  }
  std::map<size_t, std::vector<Adoptee*>> groups;
  for (Adoptee& adoptee : adoptees) groups[adoptee.group].push_back(&adoptee);
  bool has_adopted = false;
  for (auto& [number, group] : groups) {
    const auto refused = std::find_if(group.begin(), group.end(), [](const Adoptee* adoptee) {
      return !adoptee->survey.report.refusals.empty();
    });
    if (refused != group.end()) {
      const std::string reason =
          absl::StrCat("shares objects with ", (*refused)->survey.source.text(), ", which cannot be adopted");
      for (Adoptee* adoptee : group) {
        if (adoptee->survey.report.refusals.empty()) adoptee->survey.report.refusals.push_back({"", reason});
      }
    } else if (!options.dry_run) {
      const absl::Status adopted = AdoptGroup(group, options);
      // A path that is taken, a chain too deep: nothing was changed, and the next group is not concerned.
      const bool is_refusal = absl::IsAlreadyExists(adopted) || absl::IsFailedPrecondition(adopted);
      if (!adopted.ok() && (!is_refusal || adoptees.size() == 1)) return adopted;
      for (Adoptee* adoptee : group) {
        if (!adopted.ok()) adoptee->survey.report.refusals.push_back({"", std::string(adopted.message())});
      }
      has_adopted = has_adopted || adopted.ok();
    }
  }
  if (has_adopted) REPOTXN_RETURN_IF_ERROR(core_->Checkpoint());
  std::vector<AdoptionReport> reports;
  for (Adoptee& adoptee : adoptees) {
    adoptee.survey.report.path = adoptee.path.text();
    reports.push_back(std::move(adoptee.survey.report));
  }
  return reports;
}

absl::StatusOr<AdoptionReport> Store::Adopt(absl::string_view source, const RepositoryPath& path,
                                            const AdoptOptions& options) {
  storage::FileSystem& fs = *core_->file_system();
  REPOTXN_ASSIGN_OR_RETURN(const StorePath directory, BelowRoot(fs, source));
  REPOTXN_RETURN_IF_ERROR(CheckAdoptable(directory.text()));
  Adoptee adoptee;
  adoptee.path = path;
  adoptee.surveyed_at = core_->publisher()->committed_lsn();
  REPOTXN_ASSIGN_OR_RETURN(adoptee.survey, SurveyRepository(fs, directory, core_->clock()->Now(), options,
                                                            lock_descriptor()));
  std::vector<Adoptee> adoptees;
  adoptees.push_back(std::move(adoptee));
  REPOTXN_ASSIGN_OR_RETURN(std::vector<AdoptionReport> reports, AdoptAll(std::move(adoptees), options));
  if (!options.dry_run && !reports[0].refusals.empty()) return RefusalOf(reports[0]);
  return std::move(reports[0]);
}

absl::StatusOr<std::vector<AdoptionReport>> Store::AdoptTree(absl::string_view root, absl::string_view prefix,
                                                             const AdoptOptions& options) {
  storage::FileSystem& fs = *core_->file_system();
  REPOTXN_ASSIGN_OR_RETURN(const StorePath top, BelowRoot(fs, root));
  REPOTXN_RETURN_IF_ERROR(CheckAdoptable(top.text()));
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<StorePath> sources, FindRepositories(fs, top));
  std::vector<Adoptee> adoptees;
  for (const StorePath& source : sources) {
    Adoptee adoptee;
    absl::string_view below = source.text();
    below.remove_prefix(top.text().size());
    absl::ConsumePrefix(&below, "/");
    if (below.empty()) below = source.Name();
    const std::string text = prefix.empty() ? std::string(below.data(), below.size()) : absl::StrCat(prefix, "/", below);
    const auto path = RepositoryPath::ParseUrl(text);
    adoptee.surveyed_at = core_->publisher()->committed_lsn();
    REPOTXN_ASSIGN_OR_RETURN(adoptee.survey, SurveyRepository(fs, source, core_->clock()->Now(), options,
                                                              lock_descriptor()));
    if (path.ok()) {
      adoptee.path = *path;
    } else {
      adoptee.survey.report.refusals.push_back(
          {"", absl::StrCat("is no path of a repository: ", text, ": ", path.status().message())});
    }
    adoptees.push_back(std::move(adoptee));
  }
  return AdoptAll(std::move(adoptees), options);
}

absl::Status Store::Unadopt(const RepositoryId& id, absl::string_view target) {
  REPOTXN_ASSIGN_OR_RETURN(const StorePath directory, BelowRoot(*core_->file_system(), target));
  REPOTXN_RETURN_IF_ERROR(CheckAdoptable(directory.text()));
  REPOTXN_ASSIGN_OR_RETURN(const bool is_taken, storage::Exists(*core_->file_system(), directory));
  if (is_taken) return absl::AlreadyExistsError("something stands at the target");
  const CommitResult removed = Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const auto row, core_->RowOf(id, txn.snapshot_lsn()));
    if (!row) return absl::NotFoundError("repository does not exist");
    if (row->is_removed()) return absl::OkStatus();  // by an earlier call
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> lenders, txn.Alternates(id));
    if (!lenders.empty()) return absl::FailedPreconditionError("repository borrows objects");
    return txn.DeleteRepository(id);
  });
  if (!removed.committed()) return removed.status;
  // Everything that was committed is in the directory before it goes.
  REPOTXN_RETURN_IF_ERROR(core_->Checkpoint());
  REPOTXN_RETURN_IF_ERROR(core_->Unadopt(id, directory.text()));
  return core_->Checkpoint();
}

absl::Status StoreCore::Unadopt(const RepositoryId& id, absl::string_view target) {
  const wal::Lsn snapshot = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(snapshot); });
  REPOTXN_ASSIGN_OR_RETURN(const auto row, RowOf(id, snapshot));
  if (!row || !row->is_removed()) return absl::UnavailableError("repository was brought back");
  const std::shared_ptr<RepositoryState> state = repositories_->Find(id);
  if (state != nullptr && (state->has_dirty() || !state->fault().ok())) {
    return absl::UnavailableError(
        absl::StrCat("committed changes are not in its directory yet: ", state->fault().message()));
  }
  REPOTXN_ASSIGN_OR_RETURN(const bool is_released, PurgeRepository(RemovedRow{row->removed_at_ns, id}, snapshot,
                                                                   std::string(target.data(), target.size())));
  return is_released ? absl::OkStatus() : absl::UnavailableError("somebody reads the repository");
}

}  // namespace repotxn::txn
