#include "objects/object_lookup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/alternates.h"
#include "objects/error_detail.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

// Looks for one object while the packs change under them.
constexpr int kLooksMax = 100;

using storage::StorePath;

absl::Status NoSuchObject() { return absl::NotFoundError("no such object"); }

// The first fault is what the caller sees when no copy is sound; absence is no fault.
void Remember(const absl::Status& status, absl::Status* fault) {
  if (fault->ok() && !status.ok() && !absl::IsNotFound(status)) *fault = status;
}

// Whether a search ends with this result of a visit.
bool IsFinal(const absl::Status& status) { return status.ok() || absl::IsOutOfRange(status); }

}  // namespace

ObjectLookup::ObjectLookup(storage::FileSystem* fs, StorePath objects, Options options)
    : fs_(fs), objects_(std::move(objects)), options_(std::move(options)) {}

absl::StatusOr<std::shared_ptr<ObjectLookup>> ObjectLookup::Open(storage::FileSystem* fs,
                                                                 const StorePath& objects,
                                                                 Options options) {
  if (options.open_packs_max < 1 || options.open_packs_max > 4096) {
    return absl::InvalidArgumentError("open_packs_max is out of range");
  }
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs->Stat(objects));
  if (info.kind != storage::FileKind::kDirectory) {
    return WithDetail(absl::NotFoundError("no such object directory"), "path", objects.text());
  }
  std::shared_ptr<ObjectLookup> lookup(new ObjectLookup(fs, objects, std::move(options)));
  REPOTXN_RETURN_IF_ERROR(lookup->Refresh().status());
  return lookup;
}

std::shared_ptr<ObjectLookup> ObjectLookup::WithQuarantine(std::shared_ptr<ObjectLookup> live,
                                                           storage::FileSystem* fs,
                                                           const StorePath& quarantine,
                                                           Options options) {
  if (live != nullptr) options.format = live->format();
  std::shared_ptr<ObjectLookup> lookup(new ObjectLookup(fs, quarantine, std::move(options)));
  lookup->live_ = std::move(live);
  lookup->follows_alternates_ = false;
  return lookup;
}

absl::Status ObjectLookup::CheckFormat(const ObjectId& oid) const {
  if (!oid.empty() && oid.format() == options_.format) return absl::OkStatus();
  return WithDetail(absl::InvalidArgumentError("object id of another format"), "oid", oid.ToHex());
}

absl::StatusOr<bool> ObjectLookup::Exists(const ObjectId& oid) {
  REPOTXN_RETURN_IF_ERROR(CheckFormat(oid));
  if (oid == EmptyTree(options_.format)) return true;
  const absl::Status visited = Visit(oid, [](const Found&) { return absl::OkStatus(); });
  if (absl::IsNotFound(visited)) return false;
  if (!visited.ok()) return visited;
  return true;
}

absl::StatusOr<ObjectInfo> ObjectLookup::Info(const ObjectId& oid) {
  REPOTXN_RETURN_IF_ERROR(CheckFormat(oid));
  ObjectInfo info{ObjectType::kTree, 0};
  if (oid == EmptyTree(options_.format)) return info;
  REPOTXN_RETURN_IF_ERROR(Visit(oid, [this, &info](const Found& found) -> absl::Status {
    auto read =
        found.pack != nullptr ? found.pack->Info(found.offset) : LooseObjectInfo(*fs_, found.file);
    if (read.ok()) info = *read;
    return read.status();
  }));
  return info;
}

absl::StatusOr<ObjectType> ObjectLookup::Type(const ObjectId& oid) {
  REPOTXN_ASSIGN_OR_RETURN(const ObjectInfo info, Info(oid));
  return info.type;
}

absl::StatusOr<ObjectContent> ObjectLookup::Read(const ObjectId& oid) {
  REPOTXN_RETURN_IF_ERROR(CheckFormat(oid));
  ObjectContent object{ObjectType::kTree, ""};
  if (oid == EmptyTree(options_.format)) return object;
  const int64_t bytes_max = options_.content_bytes_max;
  REPOTXN_RETURN_IF_ERROR(Visit(oid, [this, bytes_max, &object](const Found& found) {
    auto read = found.pack != nullptr ? found.pack->Read(found.offset, bytes_max)
                                      : ReadLooseObject(*fs_, found.file, bytes_max);
    if (read.ok()) object = *std::move(read);
    return read.status();
  }));
  return object;
}

absl::StatusOr<ObjectLookup::Peeled> ObjectLookup::Peel(const ObjectId& oid) {
  Peeled peeled;
  peeled.oid = oid;
  REPOTXN_ASSIGN_OR_RETURN(peeled.type, Type(oid));
  while (peeled.type == ObjectType::kTag) {
    if (peeled.tags++ >= kTagChainMax) {
      return WithDetail(absl::ResourceExhaustedError("chain of tags is too long"), "oid",
                        oid.ToHex());
    }
    REPOTXN_ASSIGN_OR_RETURN(const ObjectContent tag, Read(peeled.oid));
    const auto target = ParseTagTarget(tag.content, options_.format);
    if (!target.ok()) return WithDetail(target.status(), "oid", peeled.oid.ToHex());
    REPOTXN_ASSIGN_OR_RETURN(peeled.type, Type(target->oid));
    if (peeled.type != target->type) {
      return WithDetail(absl::DataLossError("tag tells another type than its object has"), "oid",
                        peeled.oid.ToHex());
    }
    peeled.oid = target->oid;
  }
  return peeled;
}

absl::StatusOr<std::vector<ObjectId>> ObjectLookup::CommitParents(const ObjectId& oid) {
  REPOTXN_ASSIGN_OR_RETURN(const ObjectType type, Type(oid));
  if (type != ObjectType::kCommit) {
    return WithDetail(absl::FailedPreconditionError("object is no commit"), "oid", oid.ToHex());
  }
  REPOTXN_ASSIGN_OR_RETURN(const ObjectContent commit, Read(oid));
  auto parents = ParseCommitParents(commit.content, options_.format);
  if (!parents.ok()) return WithDetail(parents.status(), "oid", oid.ToHex());
  return parents;
}

absl::Status ObjectLookup::Visit(const ObjectId& oid, const Visitor& visit) {
  absl::Status fault;
  // First with the packs as they were last listed; a miss is believed only after a new look. When a condemned pack has the
  // object, another that was linked since may have it too: then the new look has to say the same twice.
  DirectoryList before;
  for (int look = 0; look < kLooksMax; ++look) {
    DirectoryList directories;
    if (look > 0) {
      REPOTXN_ASSIGN_OR_RETURN(directories, Refresh());
    } else {
      directories = Directories();
    }
    fault = absl::OkStatus();
    bool is_in_condemned = false;
    for (const auto& directory : directories) {
      const absl::Status visited = VisitDirectory(*directory, oid, visit, &is_in_condemned);
      if (IsFinal(visited)) return visited;
      Remember(visited, &fault);
    }
    if (look > 0 && (!is_in_condemned || AreAlike(before, directories))) break;
    before = std::move(directories);
  }
  if (live_ != nullptr) {
    const absl::Status visited = live_->Visit(oid, visit);
    if (IsFinal(visited)) return visited;
    Remember(visited, &fault);
  }
  if (!fault.ok()) return fault;
  return WithDetail(NoSuchObject(), "oid", oid.ToHex());
}

bool ObjectLookup::AreAlike(const DirectoryList& a, const DirectoryList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one->path == other->path && one->packs == other->packs;
  });
}

absl::Status ObjectLookup::VisitDirectory(const Directory& directory, const ObjectId& oid,
                                          const Visitor& visit, bool* is_in_condemned) {
  absl::Status fault;
  for (const std::string& name : directory.packs) {
    const absl::Status visited = VisitPack(directory, name, oid, visit, is_in_condemned);
    if (IsFinal(visited)) return visited;
    Remember(visited, &fault);
  }
  const absl::Status visited = VisitLoose(directory, oid, visit);
  if (IsFinal(visited)) return visited;
  Remember(visited, &fault);
  return fault.ok() ? NoSuchObject() : fault;
}

absl::Status ObjectLookup::VisitPack(const Directory& directory, const std::string& name,
                                     const ObjectId& oid, const Visitor& visit,
                                     bool* is_in_condemned) {
  REPOTXN_ASSIGN_OR_RETURN(const std::shared_ptr<const Pack> pack, UsePack(directory, name));
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<int64_t> offset, pack->index().Find(oid));
  if (!offset) return NoSuchObject();
  REPOTXN_ASSIGN_OR_RETURN(const StorePath file,
                           directory.path.Child(absl::StrCat("pack/", name, ".pack")));
  if (IsCondemned(file)) {
    *is_in_condemned = true;
    return NoSuchObject();
  }
  // A handle outlives its name; only what still has one counts.
  const auto info = fs_->Stat(file);
  if (!info.ok()) {
    if (absl::IsNotFound(info.status())) DropPack(directory.path / absl::StrCat("pack/", name));
    return info.status();
  }
  return visit({pack, *offset, file});
}

absl::Status ObjectLookup::VisitLoose(const Directory& directory, const ObjectId& oid,
                                      const Visitor& visit) {
  const StorePath file = directory.path / LooseObjectName(oid);
  const auto info = fs_->Stat(file);
  if (!info.ok()) return info.status();
  if (info->kind != storage::FileKind::kRegular) {
    return Damaged("loose object is no file", file.text(), 0);
  }
  if (IsCondemned(file)) return NoSuchObject();
  return visit({nullptr, 0, file});
}

bool ObjectLookup::IsCondemned(const StorePath& file) const {
  if (REPOTXN_PLANT("lookup answers from condemned files")) return false;
  return options_.is_condemned && options_.is_condemned(file);  // I1
}

absl::StatusOr<std::shared_ptr<const Pack>> ObjectLookup::UsePack(const Directory& directory,
                                                                  const std::string& name) {
  const StorePath pack_directory = directory.path / "pack";
  REPOTXN_ASSIGN_OR_RETURN(const StorePath stem, pack_directory.Child(name));
  {
    storage::MutexLock lock(&mutex_);
    const auto it = open_packs_.find(stem);
    if (it != open_packs_.end()) {
      it->second.last_use = ++uses_;
      return it->second.pack;
    }
  }
  REPOTXN_ASSIGN_OR_RETURN(std::shared_ptr<const Pack> pack,
                           Pack::Open(*fs_, pack_directory, name, options_.format));
  std::shared_ptr<const Pack> evicted;  // closed after the latch is released
  storage::MutexLock lock(&mutex_);
  const size_t packs_max = static_cast<size_t>(options_.open_packs_max);
  if (open_packs_.size() >= packs_max && !open_packs_.contains(stem)) {
    const auto oldest = std::min_element(
        open_packs_.begin(), open_packs_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    evicted = std::move(oldest->second.pack);
    open_packs_.erase(oldest);
    REPOTXN_PROBE("object lookup evicts an open pack");
  }
  open_packs_[stem] = {pack, ++uses_};
  REPOTXN_DCHECK(open_packs_.size() <= packs_max);  // I2
  return pack;
}

void ObjectLookup::DropPack(const StorePath& stem) {
  std::shared_ptr<const Pack> dropped;
  storage::MutexLock lock(&mutex_);
  const auto it = open_packs_.find(stem);
  if (it == open_packs_.end()) return;
  dropped = std::move(it->second.pack);
  open_packs_.erase(it);
}

ObjectLookup::DirectoryList ObjectLookup::Directories() const {
  storage::MutexLock lock(&mutex_);
  return directories_;
}

absl::StatusOr<std::shared_ptr<const ObjectLookup::Directory>> ObjectLookup::ListPacks(
    const StorePath& path) {
  auto directory = std::make_shared<Directory>();
  directory->path = path;
  const auto entries = fs_->List(path / "pack");
  if (absl::IsNotFound(entries.status())) return std::shared_ptr<const Directory>(directory);
  if (!entries.ok()) return entries.status();
  const auto has = [&entries](const std::string& name) {
    return std::binary_search(entries->begin(), entries->end(), storage::DirectoryEntry{name, {}},
                              [](const auto& a, const auto& b) { return a.name < b.name; });
  };
  for (const storage::DirectoryEntry& entry : *entries) {
    // The index comes last, so a pack without one is not finished yet.
    if (!absl::EndsWith(entry.name, ".idx")) continue;
    std::string stem = entry.name.substr(0, entry.name.size() - 4);
    if (has(stem + ".pack")) directory->packs.push_back(std::move(stem));
  }
  return std::shared_ptr<const Directory>(directory);
}

absl::StatusOr<ObjectLookup::DirectoryList> ObjectLookup::Refresh() {
  std::vector<StorePath> paths = {objects_};
  if (follows_alternates_) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<StorePath> chain, ResolveChain(*fs_, objects_));
    paths.insert(paths.end(), chain.begin(), chain.end());
  }
  DirectoryList directories;
  for (const StorePath& path : paths) {
    REPOTXN_ASSIGN_OR_RETURN(auto directory, ListPacks(path));
    directories.push_back(std::move(directory));
  }
  storage::MutexLock lock(&mutex_);
  directories_ = directories;
  return directories;
}

void ObjectLookup::NotePackAdded(absl::string_view name) {
  const std::string stem(name.data(), name.size());
  storage::MutexLock lock(&mutex_);
  if (directories_.empty()) return;
  auto directory = std::make_shared<Directory>(*directories_.front());
  auto& packs = directory->packs;
  if (std::find(packs.begin(), packs.end(), stem) != packs.end()) return;
  // In front: what was just added is asked for soon.
  packs.insert(packs.begin(), stem);
  directories_.front() = std::move(directory);
}

void ObjectLookup::NotePackRemoved(absl::string_view name) {
  const std::string stem(name.data(), name.size());
  {
    storage::MutexLock lock(&mutex_);
    if (directories_.empty()) return;
    auto directory = std::make_shared<Directory>(*directories_.front());
    auto& packs = directory->packs;
    packs.erase(std::remove(packs.begin(), packs.end(), stem), packs.end());
    directories_.front() = std::move(directory);
  }
  const auto path = objects_.Child(absl::StrCat("pack/", stem));
  if (path.ok()) DropPack(*path);
}

absl::Status ObjectLookup::NoteAlternatesChanged() { return Refresh().status(); }

std::vector<StorePath> ObjectLookup::alternates() const {
  const DirectoryList directories = Directories();
  std::vector<StorePath> paths;
  for (size_t i = 1; i < directories.size(); ++i) paths.push_back(directories[i]->path);
  return paths;
}

int ObjectLookup::open_packs() const {
  storage::MutexLock lock(&mutex_);
  return static_cast<int>(open_packs_.size());
}

}  // namespace repotxn::objects
