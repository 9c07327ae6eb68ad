#include "txn/reconciler.h"

#include <algorithm>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/alternates.h"
#include "objects/error_detail.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/catalogue.h"
#include "txn/layout.h"
#include "txn/store.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

using storage::StorePath;

constexpr int kRowsAtOnce = 1000;

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

// What the catalogue says at one LSN.
struct Catalogue {
  std::set<RepositoryId> repositories;  // removed ones included
  std::map<std::string, std::optional<RepositoryId>> paths;
};

absl::StatusOr<Catalogue> ReadCatalogue(RowSpace& rows, wal::Lsn at) {
  Catalogue catalogue;
  const auto scan = [&](absl::string_view prefix, const auto& visit) -> absl::Status {
    std::string after;
    for (;;) {
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<Row> found, rows.Scan(prefix, after, at, kRowsAtOnce));
      if (found.empty()) return absl::OkStatus();
      for (const Row& row : found) REPOTXN_RETURN_IF_ERROR(visit(row));
      after = found.back().key;
    }
  };
  REPOTXN_RETURN_IF_ERROR(scan("r/", [&](const Row& row) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, RepositoryId::FromBytes(row.key.substr(2)));
    catalogue.repositories.insert(id);
    return absl::OkStatus();
  }));
  REPOTXN_RETURN_IF_ERROR(scan("p/", [&](const Row& row) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const PathRow path, DecodePathRow(row.value));
    catalogue.paths[row.key.substr(2)] = path.repository;
    return absl::OkStatus();
  }));
  return catalogue;
}

// One look at the disk.
class Look {
 public:
  Look(storage::FileSystem* fs, const Catalogue* catalogue) : fs_(fs), catalogue_(catalogue) {}

  absl::StatusOr<std::vector<Discrepancy>> Run() {
    REPOTXN_RETURN_IF_ERROR(LookAtDirectories());
    REPOTXN_RETURN_IF_ERROR(LookForRegistered());
    REPOTXN_RETURN_IF_ERROR(LookAtPaths());
    REPOTXN_RETURN_IF_ERROR(LookForStale(layout::Repositories()));
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  void Note(DiscrepancyKind kind, const StorePath& path, absl::string_view detail = "") {
    found_.push_back({kind, path.text(), Text(detail)});
  }
  absl::StatusOr<std::vector<storage::DirectoryEntry>> List(const StorePath& directory) {
    auto entries = fs_->List(directory);
    if (absl::IsNotFound(entries.status())) return std::vector<storage::DirectoryEntry>();
    return entries;
  }

  absl::Status LookAtDirectories() {
    REPOTXN_ASSIGN_OR_RETURN(const auto shelves, List(layout::RepositoryDirectories()));
    for (const storage::DirectoryEntry& shelf : shelves) {
      REPOTXN_ASSIGN_OR_RETURN(const StorePath path, layout::RepositoryDirectories().Child(shelf.name));
      if (shelf.kind != storage::FileKind::kDirectory) {
        Note(DiscrepancyKind::kUnregisteredDirectory, path);
        continue;
      }
      REPOTXN_ASSIGN_OR_RETURN(const auto directories, List(path));
      for (const storage::DirectoryEntry& entry : directories) {
        REPOTXN_ASSIGN_OR_RETURN(const StorePath directory, path.Child(entry.name));
        const auto id = RepositoryId::FromHex(absl::StripSuffix(entry.name, ".git"));
        const bool is_registered = id.ok() && layout::RepositoryDirectory(*id) == directory &&
                                   catalogue_->repositories.count(*id) > 0;
        if (!is_registered) Note(DiscrepancyKind::kUnregisteredDirectory, directory);
      }
    }
    return absl::OkStatus();
  }

  absl::Status LookForRegistered() {
    for (const RepositoryId& id : catalogue_->repositories) {
      const StorePath directory = layout::RepositoryDirectory(id);
      const auto info = fs_->Stat(directory);
      if (!info.ok() && !absl::IsNotFound(info.status())) return info.status();
      if (!info.ok() || info->kind != storage::FileKind::kDirectory) {
        Note(DiscrepancyKind::kMissingDirectory, directory);
        continue;
      }
      const absl::Status chain = objects::ResolveChain(*fs_, directory / "objects").status();
      if (absl::IsInvalidArgument(chain) || absl::IsFailedPrecondition(chain)) {
        Note(DiscrepancyKind::kDanglingLink, directory / "objects/info/alternates",
             absl::StrCat(chain.message(), " ", objects::ErrorDetail(chain, "path")));
      } else {
        REPOTXN_RETURN_IF_ERROR(chain);
      }
    }
    return absl::OkStatus();
  }

  absl::Status LookAtPaths() {
    for (const auto& [path, repository] : catalogue_->paths) {
      if (!repository) continue;
      const StorePath link = layout::RepositoryLink(path);
      const std::string target = layout::RepositoryLinkTarget(path, *repository);
      const auto said = fs_->ReadLink(link);
      if (absl::IsNotFound(said.status())) {
        Note(DiscrepancyKind::kMissingSymlink, link, target);
      } else if (!said.ok() || *said != target) {
        Note(DiscrepancyKind::kWrongSymlink, link, target);
      }
    }
    return absl::OkStatus();
  }

  // Symlinks `<path>.git` without a row, below the directories of groups.
  absl::Status LookForStale(const StorePath& directory) {
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, List(directory));
    for (const storage::DirectoryEntry& entry : entries) {
      REPOTXN_ASSIGN_OR_RETURN(const StorePath path, directory.Child(entry.name));
      if (entry.kind == storage::FileKind::kDirectory && !(path == layout::RepositoryDirectories()) &&
          !absl::EndsWith(entry.name, ".git")) {
        REPOTXN_RETURN_IF_ERROR(LookForStale(path));
      }
      if (entry.kind != storage::FileKind::kSymlink || !absl::EndsWith(entry.name, ".git")) continue;
      const std::string name = path.text().substr(layout::Repositories().text().size() + 1);
      const auto row = catalogue_->paths.find(name.substr(0, name.size() - 4));
      if (row == catalogue_->paths.end() || !row->second) Note(DiscrepancyKind::kStaleSymlink, path);
    }
    return absl::OkStatus();
  }

  storage::FileSystem* const fs_;
  const Catalogue* const catalogue_;
  std::vector<Discrepancy> found_;
};

}  // namespace

absl::string_view DiscrepancyName(DiscrepancyKind kind) {
  switch (kind) {
    case DiscrepancyKind::kUnregisteredDirectory:
      return "unregistered directory";
    case DiscrepancyKind::kMissingDirectory:
      return "missing directory";
    case DiscrepancyKind::kDanglingLink:
      return "dangling link";
    case DiscrepancyKind::kMissingSymlink:
      return "missing symlink";
    case DiscrepancyKind::kWrongSymlink:
      return "wrong symlink";
    case DiscrepancyKind::kStaleSymlink:
      return "stale symlink";
  }
  return "discrepancy";
}

bool IsReconcilable(DiscrepancyKind kind) {
  return kind != DiscrepancyKind::kMissingDirectory && kind != DiscrepancyKind::kDanglingLink;
}

std::vector<Discrepancy> Reconciler::Decide(const std::vector<Discrepancy>& found, absl::Time now,
                                            const ReconcileOptions& options) {
  // What this round did not see is forgotten: only consecutive misses count.
  std::map<Discrepancy, Seen> seen;
  std::vector<Discrepancy> due;
  for (const Discrepancy& discrepancy : found) {
    const auto earlier = seen_.find(discrepancy);
    Seen now_seen = earlier != seen_.end() ? earlier->second : Seen{0, now};
    ++now_seen.rounds;
    seen.emplace(discrepancy, now_seen);
    const bool is_due = IsReconcilable(discrepancy.kind) && now_seen.rounds >= options.misses_min &&
                        now - now_seen.first >= options.grace;
    if (is_due && static_cast<int>(due.size()) < options.acts_max) due.push_back(discrepancy);
  }
  seen_ = std::move(seen);
  if (options.dry_run) due.clear();
  return due;
}

absl::StatusOr<bool> StoreCore::ActOn(const Discrepancy& discrepancy) {
  REPOTXN_ASSIGN_OR_RETURN(const StorePath path, StorePath::Parse(discrepancy.path));
  const wal::Lsn at = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
  if (discrepancy.kind == DiscrepancyKind::kUnregisteredDirectory) {
    const auto id = RepositoryId::FromHex(absl::StripSuffix(path.Name(), ".git"));
    if (id.ok()) {
      REPOTXN_ASSIGN_OR_RETURN(const auto row, RowOf(*id, at));
      if (row) return false;  // it has come meanwhile
    }
    return materializer_->MoveToLostFound(path).ok();
  }
  absl::string_view name = discrepancy.path;
  if (!absl::ConsumePrefix(&name, absl::StrCat(layout::Repositories().text(), "/")) ||
      !absl::ConsumeSuffix(&name, ".git")) {
    return false;
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(PathKey(name), at));
  std::optional<std::string> value;
  if (row) value = row->value;
  return materializer_->RepairPath(name, value).ok();
}

absl::StatusOr<ReconcileReport> StoreCore::Reconcile(const ReconcileOptions& options) {
  const storage::MutexLock lock(&reconcile_mutex_);
  // What lags is no discrepancy.
  REPOTXN_RETURN_IF_ERROR(MaterializeTo(publisher_->committed_lsn(), Materializer::Try::kWhatIsWorthIt).status());
  Catalogue catalogue;
  {
    const wal::Lsn at = registry_->Enter();
    const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
    REPOTXN_ASSIGN_OR_RETURN(catalogue, ReadCatalogue(*rows_, at));
  }
  ReconcileReport report;
  REPOTXN_ASSIGN_OR_RETURN(report.found, Look(fs_, &catalogue).Run());
  discrepancies_.store(static_cast<int64_t>(report.found.size()), std::memory_order_relaxed);
  for (const Discrepancy& discrepancy : reconciler_.Decide(report.found, clock()->Now(), options)) {
    REPOTXN_ASSIGN_OR_RETURN(const bool has_acted, ActOn(discrepancy));
    if (!has_acted) continue;
    storage::LogWarning(absl::StrCat("reconciled ", DiscrepancyName(discrepancy.kind), ": ", discrepancy.path));
    reconciled_.fetch_add(1, std::memory_order_relaxed);
    report.acted.push_back(discrepancy);
  }
  return report;
}

absl::Status StoreCore::ReconcileWhenDue() {
  if (options_.reconcile_interval == absl::ZeroDuration() || !queue_->poison().ok()) return absl::OkStatus();
  const int64_t now = absl::ToInt64Nanoseconds(clock()->Monotonic());
  int64_t last = reconciled_at_ns_.load();
  if (last == 0) {
    reconciled_at_ns_.store(now);
    return absl::OkStatus();
  }
  if (now - last < absl::ToInt64Nanoseconds(options_.reconcile_interval)) return absl::OkStatus();
  reconciled_at_ns_.store(now);
  return Reconcile({}).status();
}

absl::StatusOr<ReconcileReport> Store::Reconcile(const ReconcileOptions& options) {
  return core_->Reconcile(options);
}

}  // namespace repotxn::txn
