#include "txn/repository_state.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refs/loose_refs.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::txn {
namespace {

// Between two tries of a directory that cannot be written.
constexpr absl::Duration kFirstPatience = absl::Milliseconds(200);
constexpr absl::Duration kLastPatience = absl::Minutes(1);

// Walks the image's refs whose names begin with `prefix` and are not below `from`, in order, loose over packed.
// `visit` returns false to stop.
void WalkImage(const DiskRefs& disk, absl::string_view prefix, absl::string_view from,
               const std::function<bool(absl::string_view, const refs::RefValue&)>& visit) {
  const absl::string_view start = std::max(prefix, from);
  auto loose = disk.loose.lower_bound(std::string(start.data(), start.size()));
  size_t packed = disk.packed->LowerBound(start);
  const size_t packed_end = disk.packed->PrefixRange(prefix).end;
  while (true) {
    const bool has_loose =
        loose != disk.loose.end() && absl::StartsWith(loose->first, prefix);
    const bool has_packed = packed < packed_end;
    if (!has_loose && !has_packed) return;
    if (has_loose) {
      const int order = has_packed ? absl::string_view(loose->first).compare(disk.packed->At(packed).name) : -1;
      if (order <= 0) {
        if (!visit(loose->first, loose->second)) return;
        if (order == 0) ++packed;
        ++loose;
        continue;
      }
    }
    const refs::PackedRefs::Entry entry = disk.packed->At(packed++);
    if (!visit(entry.name, entry.value())) return;
  }
}

// What belongs to refs, objects or Git itself and is no file of the API.
bool IsHiddenFromListing(absl::string_view directory, absl::string_view name) {
  return directory.empty() && !CheckWritablePath(name).ok();
}

}  // namespace

RepositoryState::RepositoryState(storage::FileSystem* fs, const CondemnedFiles* condemned, const RepositoryId& id,
                                 wal::PartitionId partition, ObjectFormat format)
    : fs_(fs),
      condemned_(condemned),
      id_(id),
      partition_(partition),
      format_(format),
      directory_(layout::RepositoryDirectory(id)) {}

absl::Status RepositoryState::EnsureImage() {
  {
    const storage::MutexLock lock(&mutex_);
    if (disk_ != nullptr) return absl::OkStatus();
  }
  const storage::MutexLock latch(&latch_);
  return LoadImage();
}

absl::Status RepositoryState::LoadImage() {
  {
    const storage::MutexLock lock(&mutex_);
    if (disk_ != nullptr) return absl::OkStatus();
  }
  // The latch is held: nobody writes the directory meanwhile.
  auto disk = std::make_shared<DiskRefs>();
  refs::PackedRefs packed(format_);
  auto content = storage::ReadFile(*fs_, directory_ / refs::kPackedRefsPath, refs::kPackedRefsBytesMax);
  if (content.ok()) {
    REPOTXN_ASSIGN_OR_RETURN(packed, refs::PackedRefs::Parse(*std::move(content), format_));
  } else if (!absl::IsNotFound(content.status())) {
    return content.status();
  }
  disk->packed = std::make_shared<const refs::PackedRefs>(std::move(packed));
  REPOTXN_ASSIGN_OR_RETURN(const refs::LooseRefListing listing,
                           refs::ListLooseRefs(*fs_, directory_, "refs/", format_));
  for (const refs::NamedRef& ref : listing.refs) disk->loose.emplace(ref.name.text(), ref.value);
  for (const refs::RefFault& fault : listing.faults) {
    storage::LogWarning(absl::StrCat("unreadable ref in repository ", id_.ToHex(), ": ",
                                     fault.status.message()));
    disk->faults.emplace(fault.name, fault.status);
  }
  const auto head = refs::ReadLooseRef(*fs_, directory_, refs::RefName::Head(), format_);
  if (absl::IsDataLoss(head.status())) {
    disk->faults.emplace("HEAD", head.status());
  } else if (!head.ok()) {
    return head.status();
  } else if (!head->is_absent()) {
    disk->loose.emplace("HEAD", *head);
  }
  const storage::MutexLock lock(&mutex_);
  disk_ = std::move(disk);
  return absl::OkStatus();
}

absl::StatusOr<refs::RefValue> RepositoryState::ReadRef(const refs::RefName& name, wal::Lsn at) {
  REPOTXN_RETURN_IF_ERROR(EnsureImage());
  const storage::MutexLock lock(&mutex_);
  if (const auto* version = refs_.FindAt(name.view(), at)) return version->state.value;
  const auto loose = disk_->loose.find(name.text());
  if (loose != disk_->loose.end()) return loose->second;
  const auto fault = disk_->faults.find(name.text());
  if (fault != disk_->faults.end()) return fault->second;
  if (const auto entry = disk_->packed->Find(name.view())) return entry->value();
  return refs::RefValue::Absent();
}

absl::StatusOr<std::vector<refs::NamedRef>> RepositoryState::ListRefs(absl::string_view prefix,
                                                                     wal::Lsn at) {
  REPOTXN_RETURN_IF_ERROR(EnsureImage());
  std::map<std::string, refs::RefValue> newer;
  std::shared_ptr<const DiskRefs> disk;
  {
    const storage::MutexLock lock(&mutex_);
    disk = disk_;
    const auto& chains = refs_.chains();
    for (auto it = chains.lower_bound(prefix);
         it != chains.end() && absl::StartsWith(it->first, prefix); ++it) {
      if (const auto* version = VersionTable<RefState>::NewestAt(it->second, at)) {
        newer.emplace(it->first, version->state.value);
      }
    }
  }
  std::vector<refs::NamedRef> listed;
  absl::Status status;
  const auto add = [&](absl::string_view name, const refs::RefValue& value) {
    if (value.is_absent() || name == refs::kHeadText) return;
    auto parsed = refs::RefName::Parse(name);
    if (REPOTXN_NEVER(!parsed.ok())) return;
    listed.push_back(refs::NamedRef{*std::move(parsed), value});
  };
  auto next = newer.begin();
  WalkImage(*disk, prefix, "", [&](absl::string_view name, const refs::RefValue& value) {
    for (; next != newer.end() && absl::string_view(next->first) < name; ++next) {
      add(next->first, next->second);
    }
    if (next != newer.end() && absl::string_view(next->first) == name) {
      add(next->first, next->second);
      ++next;
    } else if (disk->faults.count(std::string(name.data(), name.size())) == 0) {
      add(name, value);  // a damaged file hides what is packed
    }
    return true;
  });
  for (; next != newer.end(); ++next) add(next->first, next->second);
  return listed;
}

absl::StatusOr<std::optional<std::string>> RepositoryState::NextRefBelow(absl::string_view name,
                                                                         absl::string_view after,
                                                                         wal::Lsn at) {
  REPOTXN_RETURN_IF_ERROR(EnsureImage());
  const std::string prefix = absl::StrCat(name, "/");
  const storage::MutexLock lock(&mutex_);
  std::optional<std::string> best;
  const auto& chains = refs_.chains();
  for (auto it = chains.lower_bound(std::max<absl::string_view>(prefix, after));
       it != chains.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (absl::string_view(it->first) <= after) continue;
    const auto* version = VersionTable<RefState>::NewestAt(it->second, at);
    if (version != nullptr && !version->state.value.is_absent()) {
      best = it->first;
      break;
    }
  }
  // By pointer: the analysis does not see that the mutex is held while the visitor runs.
  const VersionTable<RefState>* const newer = &refs_;
  WalkImage(*disk_, prefix, after, [&](absl::string_view found, const refs::RefValue&) {
    if (found <= after) return true;
    if (best && absl::string_view(*best) <= found) return false;
    if (newer->FindAt(found, at) != nullptr) return true;  // decided by its version, above
    best = std::string(found.data(), found.size());
    return false;
  });
  return best;
}

absl::StatusOr<FileState> RepositoryState::ReadFileOnDisk(absl::string_view path) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath file, directory_.Child(path));
  const auto info = fs_->Stat(file);
  if (absl::IsNotFound(info.status()) || absl::IsFailedPrecondition(info.status())) return FileState{};
  if (!info.ok()) return info.status();
  if (info->kind == storage::FileKind::kDirectory) {
    return FileState{FileState::Kind::kDirectory, 0755, nullptr};
  }
  if (info->kind != storage::FileKind::kRegular) {
    return absl::InvalidArgumentError("symlink or special file in a repository");
  }
  auto content = storage::ReadFile(*fs_, file);
  if (absl::IsNotFound(content.status())) return FileState{};
  if (!content.ok()) return content.status();
  return FileState{FileState::Kind::kFile, info->mode,
                   std::make_shared<const std::string>(*std::move(content))};
}

absl::StatusOr<FileState> RepositoryState::ReadFile(absl::string_view path, wal::Lsn at) {
  const auto find = [&]() -> std::optional<FileState> {
    const storage::MutexLock lock(&mutex_);
    const auto* version = files_.FindAt(path, at);
    return version == nullptr ? std::nullopt : std::optional<FileState>(version->state);
  };
  if (auto state = find()) return *std::move(state);
  absl::StatusOr<FileState> on_disk = ReadFileOnDisk(path);
  // Overwritten meanwhile: the materializer has captured what stood there.
  if (auto state = find()) return *std::move(state);
  return on_disk;
}

absl::StatusOr<std::vector<std::string>> RepositoryState::ListDirectory(absl::string_view path,
                                                                       wal::Lsn at) {
  storage::StorePath directory = directory_;
  if (!path.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(directory, directory_.Child(path));
  }
  const std::string prefix = path.empty() ? "" : absl::StrCat(path, "/");
  const storage::MutexLock latch(&latch_);  // the disk equals one LSN
  auto listed = fs_->List(directory);
  if (!listed.ok() && !absl::IsNotFound(listed.status()) &&
      !absl::IsFailedPrecondition(listed.status())) {
    return listed.status();
  }
  std::set<std::string> names;
  if (listed.ok()) {
    for (const storage::DirectoryEntry& entry : *listed) names.insert(entry.name);
  }
  std::set<std::string> present, absent;
  {
    const storage::MutexLock lock(&mutex_);
    const auto& chains = files_.chains();
    for (auto it = chains.lower_bound(prefix);
         it != chains.end() && absl::StartsWith(it->first, prefix); ++it) {
      const auto* version = VersionTable<FileState>::NewestAt(it->second, at);
      if (version == nullptr) continue;
      const std::string rest = it->first.substr(prefix.size());
      const size_t slash = rest.find('/');
      if (version->state.kind != FileState::Kind::kAbsent) {
        present.insert(rest.substr(0, slash));
      } else if (slash == std::string::npos) {
        absent.insert(rest);
      }
    }
  }
  for (const std::string& name : absent) names.erase(name);
  names.insert(present.begin(), present.end());
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (!IsHiddenFromListing(path, name)) result.push_back(name);
  }
  return result;
}

absl::StatusOr<std::shared_ptr<objects::ObjectLookup>> RepositoryState::Objects() {
  {
    const storage::MutexLock lock(&mutex_);
    if (objects_ != nullptr) return objects_;
  }
  objects::ObjectLookup::Options options;
  options.format = format_;
  options.is_condemned = [condemned = condemned_](const storage::StorePath& file) { return condemned->Contains(file); };
  REPOTXN_ASSIGN_OR_RETURN(auto opened,
                           objects::ObjectLookup::Open(fs_, directory_ / "objects", options));
  const storage::MutexLock lock(&mutex_);
  if (objects_ == nullptr) objects_ = std::move(opened);
  return objects_;
}

absl::Status RepositoryState::NoteAlternatesChanged(const storage::StorePath& objects) {
  std::shared_ptr<objects::ObjectLookup> open;
  {
    const storage::MutexLock lock(&mutex_);
    open = objects_;
  }
  if (open == nullptr) return absl::OkStatus();
  const std::vector<storage::StorePath> chain = open->alternates();
  if (directory_ / "objects" != objects &&
      std::find(chain.begin(), chain.end(), objects) == chain.end()) {
    return absl::OkStatus();
  }
  return open->NoteAlternatesChanged();
}

void RepositoryState::NotePackAdded(absl::string_view name, wal::Lsn lsn, PackBefore before) {
  packs_added_.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<objects::ObjectLookup> objects;
  {
    const storage::MutexLock lock(&mutex_);
    if (before != PackBefore::kLive) {
      young_packs_.insert_or_assign(std::string(name.data(), name.size()),
                                    YoungPack{lsn, before == PackBefore::kCondemned});
    }
    objects = objects_;
  }
  if (objects != nullptr) objects->NotePackAdded(name);
}

absl::StatusOr<bool> RepositoryState::HadPackAt(absl::string_view name, wal::Lsn at) const {
  const storage::MutexLock lock(&mutex_);
  const auto young = young_packs_.find(std::string_view(name.data(), name.size()));
  if (young == young_packs_.end() || young->second.lsn <= at) return true;
  if (young->second.was_condemned) return absl::AbortedError("a pack was removed and added again meanwhile");
  return false;
}

void RepositoryState::NotePackRemoved(absl::string_view name) {
  std::shared_ptr<objects::ObjectLookup> objects;
  {
    const storage::MutexLock lock(&mutex_);
    objects = objects_;
  }
  if (objects != nullptr) objects->NotePackRemoved(name);
}

int64_t RepositoryState::Publish(const RepositoryEffects& effects, wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  const int64_t before = refs_.bytes() + files_.bytes();
  for (const auto& [name, state] : effects.refs) refs_.Publish(name, lsn, state);
  for (const auto& [path, state] : effects.files) files_.Publish(path, lsn, state);
  changed_lsn_ = lsn;
  return refs_.bytes() + files_.bytes() - before;
}

absl::StatusOr<RepositoryState::Batch> RepositoryState::CollectBatch(wal::Lsn target) {
  {
    const storage::MutexLock lock(&mutex_);
    if (owes_directory_work_) return fault_;
  }
  REPOTXN_RETURN_IF_ERROR(LoadImage());
  const storage::MutexLock lock(&mutex_);
  Batch batch;
  // A snapshot may have been ahead of a round that began before it, and may have failed half way: the disk never goes back.
  batch.target = std::max({target, materialized_lsn_, unfinished_target_});
  batch.refs = refs_.DirtyAt(batch.target);
  batch.files = files_.DirtyAt(batch.target);
  batch.disk = disk_;
  batch.is_rewrite = unfinished_target_ != wal::Lsn::Zero();
  unfinished_target_ = batch.target;
  return batch;
}

absl::Status RepositoryState::CaptureFileBases(const Batch& batch, wal::Lsn oldest) {
  for (const auto& [path, version] : batch.files) {
    {
      const storage::MutexLock lock(&mutex_);
      if (!files_.NeedsBase(path, oldest)) continue;
    }
    absl::StatusOr<FileState> base = ReadFileOnDisk(path);
    // No file of ours, and about to be moved away: there was nothing.
    if (absl::IsInvalidArgument(base.status())) base = FileState{};
    REPOTXN_RETURN_IF_ERROR(base.status());
    const storage::MutexLock lock(&mutex_);
    files_.CaptureBase(path, wal::Lsn::Zero(), *std::move(base));
  }
  return absl::OkStatus();
}

void RepositoryState::FinishBatch(const Batch& batch, std::shared_ptr<const DiskRefs> disk,
                                  wal::Lsn oldest) {
  const storage::MutexLock lock(&mutex_);
  for (const auto& [name, version] : batch.refs) {
    if (refs_.NeedsBase(name, oldest)) {
      RefState base;
      const auto loose = disk_->loose.find(name);
      if (loose != disk_->loose.end()) {
        base.value = loose->second;
      } else if (const auto entry = disk_->packed->Find(name)) {
        base.value = entry->value();
      }
      refs_.CaptureBase(name, wal::Lsn::Zero(), std::move(base));
    }
  }
  disk_ = std::move(disk);
  for (const auto& [name, version] : batch.refs) refs_.Materialized(name, batch.target, oldest);
  for (const auto& [path, version] : batch.files) files_.Materialized(path, batch.target, oldest);
  materialized_lsn_ = batch.target;
  unfinished_target_ = wal::Lsn::Zero();
  fault_ = absl::OkStatus();
  patience_ = absl::ZeroDuration();
}

absl::StatusOr<std::vector<refs::NamedRef>> RepositoryState::NewestLooseRefs() {
  REPOTXN_RETURN_IF_ERROR(EnsureImage());
  std::map<std::string, refs::RefValue> loose;
  {
    const storage::MutexLock lock(&mutex_);
    loose = disk_->loose;
    for (const auto& [name, chain] : refs_.chains()) {
      const RefState& newest = chain.back().state;
      if (chain.back().lsn == wal::Lsn::Zero()) continue;
      if (newest.is_packed || newest.value.is_absent()) {
        loose.erase(name);
      } else {
        loose.insert_or_assign(name, newest.value);
      }
    }
  }
  std::vector<refs::NamedRef> refs;
  for (auto& [name, value] : loose) {
    if (!value.is_object() || name == refs::kHeadText) continue;
    auto parsed = refs::RefName::Parse(name);
    if (REPOTXN_NEVER(!parsed.ok())) continue;
    refs.push_back(refs::NamedRef{*std::move(parsed), value});
  }
  return refs;
}

void RepositoryState::Trim(wal::Lsn oldest) {
  const storage::MutexLock lock(&mutex_);
  refs_.TrimClean(oldest);
  files_.TrimClean(oldest);
  std::erase_if(young_packs_, [oldest](const auto& pack) { return pack.second.lsn <= oldest; });
}

RepositoryState::Changes RepositoryState::DirtyAt(wal::Lsn target) const {
  const storage::MutexLock lock(&mutex_);
  return Changes{refs_.DirtyAt(target), files_.DirtyAt(target)};
}

absl::Status RepositoryState::fault() const {
  const storage::MutexLock lock(&mutex_);
  return fault_;
}

bool RepositoryState::SetAside(const absl::Status& fault, absl::Duration now) {
  const storage::MutexLock lock(&mutex_);
  const bool is_new = fault_.ok();
  fault_ = fault;
  patience_ = std::clamp(2 * patience_, kFirstPatience, kLastPatience);
  next_try_ = now + patience_;
  return is_new;
}

void RepositoryState::SetOwesDirectoryWork(bool owes) {
  const storage::MutexLock lock(&mutex_);
  owes_directory_work_ = owes;
  if (owes) return;
  // What it could not show before comes with its next batch; without one there is nothing amiss any more.
  if (!refs_.has_dirty() && !files_.has_dirty()) fault_ = absl::OkStatus();
  next_try_ = absl::ZeroDuration();
}

bool RepositoryState::IsWorthATry(absl::Duration now) const {
  const storage::MutexLock lock(&mutex_);
  return fault_.ok() || now >= next_try_;
}

bool RepositoryState::has_dirty() const {
  const storage::MutexLock lock(&mutex_);
  return refs_.has_dirty() || files_.has_dirty();
}

int64_t RepositoryState::dirty_bytes() const {
  const storage::MutexLock lock(&mutex_);
  return refs_.dirty_bytes() + files_.dirty_bytes();
}

int64_t RepositoryState::overlay_bytes() const {
  const storage::MutexLock lock(&mutex_);
  return refs_.bytes() + files_.bytes();
}

wal::Lsn RepositoryState::changed_lsn() const {
  const storage::MutexLock lock(&mutex_);
  return changed_lsn_;
}

wal::Lsn RepositoryState::materialized_lsn() const {
  const storage::MutexLock lock(&mutex_);
  return materialized_lsn_;
}

}  // namespace repotxn::txn
