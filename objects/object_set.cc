#include "objects/object_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "objects/object_type.h"
#include "objects/pack_list.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::FileKind;
using storage::StorePath;

constexpr int64_t kIdsAtOnce = 1024;

// Entries of a directory; none when it is not there.
absl::StatusOr<std::vector<storage::DirectoryEntry>> ListIfThere(storage::FileSystem& fs,
                                                                 const StorePath& directory) {
  auto entries = fs.List(directory);
  if (absl::IsNotFound(entries.status())) return std::vector<storage::DirectoryEntry>();
  return entries;
}

bool IsFanOut(const storage::DirectoryEntry& entry) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return entry.kind == FileKind::kDirectory && entry.name.size() == 2 && is_hex(entry.name[0]) &&
         is_hex(entry.name[1]);
}

}  // namespace

absl::Status VisitLooseObjects(storage::FileSystem& fs, const StorePath& objects, ObjectFormat format,
                               absl::FunctionRef<absl::Status(const ObjectId&)> visit) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListIfThere(fs, objects));
  for (const storage::DirectoryEntry& entry : entries) {
    if (!IsFanOut(entry)) continue;
    REPOTXN_ASSIGN_OR_RETURN(const auto files, ListIfThere(fs, objects / entry.name));
    for (const storage::DirectoryEntry& file : files) {
      const auto oid = ObjectId::FromHex(absl::StrCat(entry.name, file.name), format);
      if (!oid.ok() || file.kind != FileKind::kRegular) continue;
      REPOTXN_RETURN_IF_ERROR(visit(*oid));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ObjectId>> ListLooseObjects(
    storage::FileSystem& fs, const StorePath& objects, ObjectFormat format,
    const ObjectLookup::CondemnedPredicate& is_condemned) {
  std::vector<ObjectId> loose;
  REPOTXN_RETURN_IF_ERROR(VisitLooseObjects(fs, objects, format, [&](const ObjectId& oid) -> absl::Status {
    if (is_condemned && is_condemned(objects / LooseObjectName(oid))) return absl::OkStatus();
    if (loose.size() >= kLooseObjectsMax) {
      return absl::ResourceExhaustedError("too many loose objects; pack them first");
    }
    loose.push_back(oid);
    return absl::OkStatus();
  }));
  return loose;
}

absl::StatusOr<std::unique_ptr<ObjectSet>> ObjectSet::Open(
    storage::FileSystem& fs, const std::vector<StorePath>& directories, ObjectFormat format,
    const ObjectLookup::CondemnedPredicate& is_condemned) {
  std::unique_ptr<ObjectSet> set(new ObjectSet);
  set->format_ = format;
  for (const StorePath& directory : directories) {
    // Loose ones first: they may go once they are in a pack.
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose,
                             ListLooseObjects(fs, directory, format, is_condemned));
    set->loose_.insert(loose.begin(), loose.end());
    REPOTXN_RETURN_IF_ERROR(set->AddPacks(fs, directory / "pack", is_condemned));
  }
  return set;
}

absl::Status ObjectSet::AddPacks(storage::FileSystem& fs, const StorePath& directory,
                                 const ObjectLookup::CondemnedPredicate& is_condemned) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListPackNames(fs, directory, [&](absl::string_view name) {
                             return is_condemned && is_condemned(directory / absl::StrCat(name, ".pack"));
                           }));
  for (const std::string& name : names) {
    REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<PackIndex> index,
                             PackIndex::Open(fs, directory / absl::StrCat(name, ".idx"), format_));
    packs_.push_back(std::move(index));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ObjectSet::Contains(const ObjectId& oid) const {
  if (oid.format() != format_) return absl::InvalidArgumentError("id of the other object format");
  if (oid == EmptyTree(format_) || loose_.contains(oid)) return true;
  for (const std::unique_ptr<PackIndex>& pack : packs_) {
    REPOTXN_ASSIGN_OR_RETURN(const auto offset, pack->Find(oid));
    if (offset) return true;
  }
  return false;
}

int64_t ObjectSet::count() const {
  int64_t count = static_cast<int64_t>(loose_.size());
  for (const std::unique_ptr<PackIndex>& pack : packs_) count += pack->count();
  return count;
}

ObjectSet::Cursor::Cursor(const ObjectSet* set) : set_(set), loose_(set->loose_.begin()) {}

absl::StatusOr<std::vector<ObjectId>> ObjectSet::Cursor::Next(int64_t n) {
  while (pack_ < set_->packs_.size()) {
    const PackIndex& pack = *set_->packs_[pack_];
    if (row_ == pack.count()) {
      ++pack_;
      row_ = 0;
      continue;
    }
    REPOTXN_ASSIGN_OR_RETURN(std::vector<ObjectId> ids, pack.Ids(row_, n));
    if (ids.empty()) return absl::DataLossError("pack index ends early");
    row_ += static_cast<int64_t>(ids.size());
    return ids;
  }
  std::vector<ObjectId> ids;
  while (loose_ != set_->loose_.end() && static_cast<int64_t>(ids.size()) < n) {
    ids.push_back(*loose_++);
  }
  return ids;
}

InputSource ObjectSet::HexLines() const {
  const auto cursor = std::make_shared<Cursor>(this);
  const auto text = std::make_shared<std::string>();
  const auto used = std::make_shared<size_t>(0);
  return [cursor, text, used](absl::Span<char> out) -> absl::StatusOr<size_t> {
    if (*used == text->size()) {
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> ids, cursor->Next(kIdsAtOnce));
      text->clear();
      *used = 0;
      for (const ObjectId& oid : ids) absl::StrAppend(text.get(), oid.ToHex(), "\n");
    }
    const size_t n = text->copy(out.data(), out.size(), *used);
    *used += n;
    return n;
  };
}

bool RecentIds::Insert(const ObjectId& oid) {
  ObjectId& slot = slots_[absl::Hash<ObjectId>()(oid) % kSlots];
  if (slot == oid) return false;
  slot = oid;
  return true;
}

}  // namespace repotxn::objects
