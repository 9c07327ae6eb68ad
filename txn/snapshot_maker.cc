#include "txn/snapshot_maker.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/alternates.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::txn {
namespace {

// Shared snapshots kept for repositories that nobody reads just now.
constexpr size_t kKeptMax = 256;

absl::Status LinkTree(storage::FileSystem& fs, const storage::StorePath& from,
                      const storage::StorePath& to, bool is_root) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, fs.List(from));
  for (const storage::DirectoryEntry& entry : entries) {
    if (is_root ? IsLeftOutOfSnapshots(entry.name) : absl::EndsWith(entry.name, ".lock")) continue;
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath source, from.Child(entry.name));
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath target, to.Child(entry.name));
    if (entry.kind == storage::FileKind::kDirectory) {
      const absl::Status made = fs.MakeDirectory(target);
      if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
      REPOTXN_RETURN_IF_ERROR(LinkTree(fs, source, target, false));
    } else if (entry.kind == storage::FileKind::kRegular) {
      absl::Status linked = fs.Link(source, target);
      if (absl::IsAlreadyExists(linked)) {
        REPOTXN_RETURN_IF_ERROR(fs.Remove(target));
        linked = fs.Link(source, target);
      }
      if (absl::IsResourceExhausted(linked)) {  // EMLINK
        REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(fs, source));
        REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(source));
        linked = storage::WriteFile(fs, target, content, info.mode);
      }
      REPOTXN_RETURN_IF_ERROR(linked);
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Git appends to or truncates these, and a link shares the inode; locks and temporary files are nobody's state.
bool IsLeftOutOfSnapshots(absl::string_view name) {
  return name == "objects" || name == "logs" || name == "FETCH_HEAD" || name == "gc.pid" ||
         absl::EndsWith(name, ".lock") || absl::StartsWith(name, "tmp_");
}

class SnapshotMaker::Directory final : public SnapshotDirectory {
 public:
  Directory(SnapshotMaker* maker, storage::StorePath path, std::string absolute_path, const RepositoryState& repository)
      : maker_(maker),
        path_(std::move(path)),
        absolute_path_(std::move(absolute_path)),
        format_(repository.format()),
        objects_(repository.directory() / "objects") {
    registered_ = maker_->registry_->EnterDirectory();
    maker_->live_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Directory() override {
    IgnoreBecause(storage::RemoveTree(*maker_->fs_, path_), "snapshots/ is wiped at open");
    maker_->registry_->LeaveDirectory(registered_);
    maker_->live_.fetch_sub(1, std::memory_order_relaxed);
  }

  const std::string& absolute_path() const override { return absolute_path_; }
  const storage::StorePath& path() const override { return path_; }
  wal::Lsn lsn() const override { return lsn_; }
  ObjectFormat format() const override { return format_; }
  std::vector<std::string> GitSettings() const override { return maker_->derived_.SettingsFor(objects_, format_); }
  void set_lsn(wal::Lsn lsn) { lsn_ = lsn; }

 private:
  SnapshotMaker* const maker_;
  const storage::StorePath path_;
  const std::string absolute_path_;
  const ObjectFormat format_;
  const storage::StorePath objects_;  // of the live repository
  wal::Lsn registered_;
  wal::Lsn lsn_;
};

SnapshotMaker::SnapshotMaker(storage::FileSystem* fs, Materializer* materializer,
                             const Publisher* publisher, SnapshotRegistry* registry,
                             uint64_t opening)
    : fs_(fs),
      materializer_(materializer),
      publisher_(publisher),
      registry_(registry),
      opening_(opening),
      derived_(fs) {}

SnapshotMaker::~SnapshotMaker() = default;

absl::StatusOr<wal::Lsn> SnapshotMaker::LinkInto(RepositoryState* repository,
                                                 const storage::StorePath& directory) {
  const storage::MutexLock latch(repository->latch());
  const wal::Lsn target = publisher_->committed_lsn();
  REPOTXN_RETURN_IF_ERROR(LinkAt(repository, target, directory));
  return target;
}

absl::Status SnapshotMaker::LinkAt(RepositoryState* repository, wal::Lsn target,
                                   const storage::StorePath& directory) {
  REPOTXN_RETURN_IF_ERROR(materializer_->MaterializeRepository(repository, target));
  // The disk equals `target` until the latch is released.
  return LinkTree(*fs_, repository->directory(), directory, true);
}

storage::StorePath SnapshotMaker::NewPath() {
  return layout::Snapshots() /
         absl::StrCat(absl::Hex(opening_, absl::kZeroPad16), "-", count_.fetch_add(1));
}

absl::Status SnapshotMaker::MakeObjectsOnly(const RepositoryState& repository,
                                            const storage::StorePath& directory) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string live,
                           fs_->AbsolutePath(repository.directory() / "objects"));
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*fs_, directory / "objects/info"));
  return storage::WriteFile(*fs_, directory / "objects/info/alternates",
                            objects::AbsoluteAlternateLine(live));
}

absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> SnapshotMaker::Make(
    RepositoryState* repository) {
  const storage::StorePath path = NewPath();
  REPOTXN_ASSIGN_OR_RETURN(const std::string absolute, fs_->AbsolutePath(path));
  auto directory = std::make_shared<Directory>(this, path, absolute, *repository);
  REPOTXN_RETURN_IF_ERROR(MakeObjectsOnly(*repository, path));
  REPOTXN_ASSIGN_OR_RETURN(const wal::Lsn lsn, LinkInto(repository, path));
  directory->set_lsn(lsn);
  made_.fetch_add(1, std::memory_order_relaxed);
  return std::shared_ptr<const SnapshotDirectory>(std::move(directory));
}

absl::StatusOr<std::shared_ptr<const SnapshotDirectory>> SnapshotMaker::Share(
    RepositoryState* repository) {
  {
    const storage::MutexLock lock(&mutex_);
    const auto it = newest_.find(repository->id());
    if (it != newest_.end() && repository->changed_lsn() <= it->second.directory->lsn()) {
      shared_.fetch_add(1, std::memory_order_relaxed);
      it->second.idle_rounds = 0;
      return it->second.directory;
    }
  }
  REPOTXN_ASSIGN_OR_RETURN(auto made, Make(repository));
  std::vector<std::shared_ptr<const SnapshotDirectory>> dropped;  // removed outside the mutex
  const storage::MutexLock lock(&mutex_);
  Shared& newest = newest_[repository->id()];
  if (newest.directory == nullptr || newest.directory->lsn() < made->lsn()) {
    dropped.push_back(std::exchange(newest.directory, made));
    newest.idle_rounds = 0;
  }
  if (newest_.size() > kKeptMax) {
    for (auto it = newest_.begin(); it != newest_.end() && newest_.size() > kKeptMax / 2;) {
      if (it->second.directory.use_count() == 1) {
        dropped.push_back(std::move(it->second.directory));
        newest_.erase(it++);
      } else {
        ++it;
      }
    }
  }
  return made;
}

void SnapshotMaker::DropUnused(int idle_rounds_max) {
  std::vector<std::shared_ptr<const SnapshotDirectory>> dropped;
  const storage::MutexLock lock(&mutex_);
  for (auto it = newest_.begin(); it != newest_.end();) {
    if (it->second.directory.use_count() == 1 && ++it->second.idle_rounds > idle_rounds_max) {
      dropped.push_back(std::move(it->second.directory));
      newest_.erase(it++);
    } else {
      ++it;
    }
  }
}

}  // namespace repotxn::txn
