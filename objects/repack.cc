#include "objects/repack.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/cruft_times.h"
#include "objects/error_detail.h"
#include "objects/id_file.h"
#include "objects/object_links.h"
#include "objects/object_set.h"
#include "objects/pack_index.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

// Of a pack's times, which are its index's in size.
constexpr int64_t kTimesBytesMax = int64_t{4} << 30;

enum class Fate : uint8_t { kUnreachable, kReachable, kBorrowed, kExpired };

uint32_t SecondsOf(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  return static_cast<uint32_t>(std::clamp<int64_t>(seconds, 0, std::numeric_limits<uint32_t>::max()));
}

struct OldPack {
  std::string name;
  std::unique_ptr<PackIndex> index;
  uint32_t time = 0;
  std::optional<std::vector<uint32_t>> times;  // of a cruft pack, by row

  uint32_t TimeOf(int64_t row) const { return times ? (*times)[static_cast<size_t>(row)] : time; }
};

absl::StatusOr<OldPack> OpenOldPack(storage::FileSystem& fs, const StorePath& packs, const std::string& name,
                                    ObjectFormat format) {
  OldPack pack;
  pack.name = name;
  REPOTXN_ASSIGN_OR_RETURN(pack.index, PackIndex::Open(fs, packs / absl::StrCat(name, ".idx"), format));
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(packs / absl::StrCat(name, ".pack")));
  pack.time = SecondsOf(info.modified);
  const auto times = storage::ReadFile(fs, packs / absl::StrCat(name, ".mtimes"), kTimesBytesMax);
  if (absl::IsNotFound(times.status())) return pack;
  REPOTXN_RETURN_IF_ERROR(times.status());
  auto parsed = ParseCruftTimes(*times, pack.index->count(), format);
  // Derived: without them its objects are as old as the pack.
  if (parsed.ok()) pack.times = *std::move(parsed);
  return pack;
}

// The repository's own objects, each once.
struct OwnObjects {
  std::vector<ObjectId> ids;  // sorted
  std::vector<Fate> fates;
  std::vector<uint32_t> times;

  std::optional<size_t> Find(const ObjectId& oid) const {
    const auto at = std::lower_bound(ids.begin(), ids.end(), oid);
    if (at == ids.end() || *at != oid) return std::nullopt;
    return static_cast<size_t>(at - ids.begin());
  }
  std::vector<ObjectId> With(Fate fate) const {
    std::vector<ObjectId> found;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (fates[i] == fate) found.push_back(ids[i]);
    }
    return found;
  }
};

absl::StatusOr<OwnObjects> CollectOwn(const std::vector<OldPack>& packs) {
  OwnObjects own;
  for (const OldPack& pack : packs) {
    REPOTXN_RETURN_IF_ERROR(pack.index->ForEach([&](const ObjectId& oid, int64_t) {
      own.ids.push_back(oid);
      return absl::OkStatus();
    }));
  }
  std::sort(own.ids.begin(), own.ids.end());
  own.ids.erase(std::unique(own.ids.begin(), own.ids.end()), own.ids.end());
  own.fates.assign(own.ids.size(), Fate::kUnreachable);
  own.times.assign(own.ids.size(), 0);
  for (const OldPack& pack : packs) {
    REPOTXN_RETURN_IF_ERROR(pack.index->ForEach([&](const ObjectId& oid, int64_t row) {
      uint32_t& time = own.times[*own.Find(oid)];
      time = std::max(time, pack.TimeOf(row));
      return absl::OkStatus();
    }));
  }
  return own;
}

// Text of revisions for a walk.
void AddRevision(const ObjectId& oid, bool is_excluded, std::string* lines) {
  absl::StrAppend(lines, is_excluded ? "^" : "", oid.ToHex(), "\n");
}

class Repacking {
 public:
  Repacking(storage::FileSystem& fs, const RepackRequest& request, const ObjectPackingOptions& options)
      : fs_(fs), request_(request), options_(options) {}

  absl::StatusOr<RepackedObjects> Run() {
    REPOTXN_ASSIGN_OR_RETURN(snapshot_, fs_.AbsolutePath(request_.snapshot));
    for (const std::string& name : request_.packs) {
      REPOTXN_ASSIGN_OR_RETURN(OldPack pack, OpenOldPack(fs_, request_.objects / "pack", name, options_.format));
      packs_.push_back(std::move(pack));
    }
    REPOTXN_ASSIGN_OR_RETURN(own_, CollectOwn(packs_));
    REPOTXN_RETURN_IF_ERROR(MarkBorrowed());
    REPOTXN_RETURN_IF_ERROR(MarkReachable());
    REPOTXN_RETURN_IF_ERROR(MarkExpired());
    RepackedObjects result;
    result.borrowed = own_.With(Fate::kBorrowed);
    result.expired = own_.With(Fate::kExpired);
    REPOTXN_RETURN_IF_ERROR(PackReachable(&result));
    REPOTXN_RETURN_IF_ERROR(PackCruft(&result));
    REPOTXN_RETURN_IF_ERROR(ProveClosure(result));
    return result;
  }

 private:
  absl::Status MarkBorrowed() {
    if (request_.alternates.empty()) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(borrowed_,
                             ObjectSet::Open(fs_, request_.alternates, options_.format, options_.is_condemned));
    for (size_t i = 0; i < own_.ids.size(); ++i) {
      REPOTXN_ASSIGN_OR_RETURN(const bool is_borrowed, borrowed_->Contains(own_.ids[i]));
      if (is_borrowed) own_.fates[i] = Fate::kBorrowed;
    }
    return absl::OkStatus();
  }

  // Step 1; the names go with the ids to the packer.
  absl::Status MarkReachable() {
    REPOTXN_ASSIGN_OR_RETURN(reachable_, IdFile::Create(&fs_, request_.snapshot / "reachable-objects"));
    std::string lines;
    for (const ObjectId& tip : request_.tips) {
      const auto at = own_.Find(tip);
      if (borrowed_ != nullptr) {
        REPOTXN_ASSIGN_OR_RETURN(const bool is_borrowed, borrowed_->Contains(tip));
        if (is_borrowed) continue;
      }
      if (!at) return WithDetail(absl::DataLossError("an object that is named is missing"), "oid", tip.ToHex());
      AddRevision(tip, /*is_excluded=*/false, &lines);
      roots_.push_back(tip);
    }
    if (lines.empty()) return reachable_->Finish();
    REPOTXN_RETURN_IF_ERROR(WalkObjects(snapshot_, TextSource(std::move(lines)), options_,
                                        [&](const ObjectId& oid, absl::string_view name) -> absl::Status {
                                          const auto at = own_.Find(oid);
                                          if (!at || own_.fates[*at] != Fate::kUnreachable) return absl::OkStatus();
                                          own_.fates[*at] = Fate::kReachable;
                                          return reachable_->Append(oid, name);
                                        }));
    return reachable_->Finish();
  }

  // Steps 2 and 3.
  absl::Status MarkExpired() {
    if (request_.expire_before == absl::InfinitePast()) return absl::OkStatus();
    const bool expires_all = request_.expire_before == absl::InfiniteFuture();
    const uint32_t cut_off = SecondsOf(request_.expire_before);
    std::string young;
    bool has_old = false;
    for (size_t i = 0; i < own_.ids.size(); ++i) {
      if (own_.fates[i] != Fate::kUnreachable) continue;
      if (expires_all || own_.times[i] < cut_off) {
        own_.fates[i] = Fate::kExpired;
        has_old = true;
      } else {
        AddRevision(own_.ids[i], /*is_excluded=*/false, &young);
      }
    }
    if (!has_old || young.empty()) return absl::OkStatus();
    for (const ObjectId& root : roots_) AddRevision(root, /*is_excluded=*/true, &young);
    return WalkObjects(snapshot_, TextSource(std::move(young)), options_,
                       [&](const ObjectId& oid, absl::string_view) {
                         const auto at = own_.Find(oid);
                         if (at && own_.fates[*at] == Fate::kExpired) own_.fates[*at] = Fate::kUnreachable;
                         return absl::OkStatus();
                       });
  }

  // The old pack that holds just the `count` objects of `fate`, cruft or not, with their times; null: none.
  absl::StatusOr<const OldPack*> FindSame(Fate fate, int64_t count) const {
    for (const OldPack& pack : packs_) {
      if (pack.index->count() != count || pack.times.has_value() != (fate == Fate::kUnreachable)) continue;
      bool is_same = true;
      REPOTXN_RETURN_IF_ERROR(pack.index->ForEach([&](const ObjectId& oid, int64_t row) {
        const size_t at = *own_.Find(oid);
        is_same = is_same && own_.fates[at] == fate && (!pack.times || pack.TimeOf(row) == own_.times[at]);
        return absl::OkStatus();
      }));
      if (is_same) return &pack;
    }
    return nullptr;
  }

  absl::Status PackReachable(RepackedObjects* result) {
    result->reachable = reachable_->count();
    if (result->reachable == 0) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const OldPack* const same, FindSame(Fate::kReachable, result->reachable));
    if (same != nullptr) {
      result->kept_packs.push_back(same->name);
      return absl::OkStatus();
    }
    REPOTXN_ASSIGN_OR_RETURN(const PackedObjects packed, PackIdFile(fs_, request_.snapshot, *reachable_, options_));
    result->reachable_pack = packed.pack_name;
    return absl::OkStatus();
  }

  absl::Status PackCruft(RepackedObjects* result) {
    const std::vector<ObjectId> ids = own_.With(Fate::kUnreachable);
    result->cruft = static_cast<int64_t>(ids.size());
    if (ids.empty()) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const OldPack* const same, FindSame(Fate::kUnreachable, result->cruft));
    if (same != nullptr) {
      result->kept_packs.push_back(same->name);
      return absl::OkStatus();
    }
    REPOTXN_ASSIGN_OR_RETURN(const PackedObjects packed, PackObjects(fs_, request_.snapshot, ids, options_));
    const StorePath packs = request_.snapshot / "objects/pack";
    REPOTXN_ASSIGN_OR_RETURN(
        const auto index, PackIndex::Open(fs_, packs / absl::StrCat(packed.pack_name, ".idx"), options_.format));
    REPOTXN_ASSIGN_OR_RETURN(const std::string checksum, index->PackChecksum());
    std::vector<uint32_t> times;
    times.reserve(ids.size());
    for (const ObjectId& oid : ids) times.push_back(own_.times[*own_.Find(oid)]);
    REPOTXN_RETURN_IF_ERROR(storage::WriteFile(fs_, packs / absl::StrCat(packed.pack_name, ".mtimes"),
                                               FormatCruftTimes(times, checksum, options_.format), 0444));
    result->cruft_pack = packed.pack_name;
    return absl::OkStatus();
  }

  // Step 5.
  absl::Status ProveClosure(const RepackedObjects& result) {
    if (result.expired.empty()) return absl::OkStatus();
    const auto kept = IdFile::Create(&fs_, request_.snapshot / "kept-objects");
    REPOTXN_RETURN_IF_ERROR(kept.status());
    for (size_t i = 0; i < own_.ids.size(); ++i) {
      if (own_.fates[i] == Fate::kReachable || own_.fates[i] == Fate::kUnreachable) {
        REPOTXN_RETURN_IF_ERROR((*kept)->Append(own_.ids[i]));
      }
    }
    REPOTXN_RETURN_IF_ERROR((*kept)->Finish());
    LinkScan scan;
    scan.repository = snapshot_;
    scan.format = options_.format;
    scan.timeout = options_.timeout;
    scan.lock_fd = options_.lock_fd;
    scan.program = options_.program;
    REPOTXN_ASSIGN_OR_RETURN(scan.shallow, ReadShallow(fs_, request_.snapshot, options_.format));
    REPOTXN_ASSIGN_OR_RETURN(InputSource lines, (*kept)->Lines());
    return ScanLinks(scan, std::move(lines), [&](const ObjectId& oid, ObjectType, absl::Span<const ObjectId> links) {
      for (const ObjectId& link : links) {
        const auto at = own_.Find(link);
        if (at && own_.fates[*at] == Fate::kExpired) {
          return WithDetail(absl::InternalError("an object that stays names one that would be removed"), "oid",
                            oid.ToHex());
        }
      }
      return absl::OkStatus();
    });
  }

  storage::FileSystem& fs_;
  const RepackRequest& request_;
  const ObjectPackingOptions& options_;
  std::string snapshot_;
  std::vector<OldPack> packs_;
  OwnObjects own_;
  std::unique_ptr<ObjectSet> borrowed_;  // null: nothing is
  std::vector<ObjectId> roots_;          // tips that were walked from
  std::unique_ptr<IdFile> reachable_;
};

}  // namespace

absl::StatusOr<RepackedObjects> RepackObjects(storage::FileSystem& fs, const RepackRequest& request,
                                              const ObjectPackingOptions& options) {
  return Repacking(fs, request, options).Run();
}

}  // namespace repotxn::objects
