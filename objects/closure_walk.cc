#include "objects/closure_walk.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "objects/alternates.h"
#include "objects/object_links.h"
#include "objects/object_lookup.h"
#include "objects/object_set.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

constexpr int64_t kIdsAtOnce = 1024;
constexpr int64_t kContentMax = int64_t{256} << 20;

// One walk over all own objects.
class Walker {
 public:
  static absl::StatusOr<std::unique_ptr<Walker>> Open(storage::FileSystem* fs,
                                                      const StorePath& repository,
                                                      const ClosureWalkOptions& options) {
    std::unique_ptr<Walker> walker(new Walker(fs, repository, options));
    const StorePath objects = repository / "objects";
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<StorePath> chain, ResolveChain(*fs, objects));
    REPOTXN_ASSIGN_OR_RETURN(walker->own_, ObjectSet::Open(*fs, {objects}, options.format));
    REPOTXN_ASSIGN_OR_RETURN(walker->borrowed_, ObjectSet::Open(*fs, chain, options.format));
    REPOTXN_ASSIGN_OR_RETURN(walker->shallow_, ReadShallow(*fs, repository, options.format));
    return walker;
  }

  const ObjectSet& own() const { return *own_; }
  absl::StatusOr<bool> Exists(const ObjectId& oid) const {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_own, own_->Contains(oid));
    if (is_own) return true;
    return borrowed_->Contains(oid);
  }

  absl::Status Walk(const LinkVisitor& visit) const {
    // Without objects there is nothing to ask a child.
    if (own_->count() == 0) return absl::OkStatus();
    const auto absolute = fs_->AbsolutePath(repository_);
    if (absl::IsUnimplemented(absolute.status())) return WalkNatively(visit);
    if (!absolute.ok()) return absolute.status();
    LinkScan scan;
    scan.repository = *absolute;
    scan.format = options_.format;
    scan.shallow = shallow_;
    scan.timeout = options_.timeout;
    scan.lock_fd = options_.lock_fd;
    scan.program = options_.program;
    return ScanLinks(scan, own_->HexLines(), visit);
  }

 private:
  Walker(storage::FileSystem* fs, StorePath repository, ClosureWalkOptions options)
      : fs_(fs), repository_(std::move(repository)), options_(std::move(options)) {}

  absl::Status WalkNatively(const LinkVisitor& visit) const {
    ObjectLookup::Options lookup;
    lookup.format = options_.format;
    lookup.content_bytes_max = kContentMax;
    REPOTXN_ASSIGN_OR_RETURN(const auto objects,
                             ObjectLookup::Open(fs_, repository_ / "objects", lookup));
    ObjectSet::Cursor cursor(own_.get());
    for (;;) {
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> ids, cursor.Next(kIdsAtOnce));
      if (ids.empty()) return absl::OkStatus();
      for (const ObjectId& oid : ids) REPOTXN_RETURN_IF_ERROR(VisitOne(*objects, oid, visit));
    }
  }
  absl::Status VisitOne(ObjectLookup& objects, const ObjectId& oid,
                        const LinkVisitor& visit) const {
    REPOTXN_ASSIGN_OR_RETURN(const ObjectType type, objects.Type(oid));
    if (type == ObjectType::kBlob) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const ObjectContent object, objects.Read(oid));
    REPOTXN_ASSIGN_OR_RETURN(std::vector<ObjectId> links,
                             ParseObjectLinks(type, object.content, options_.format));
    if (type == ObjectType::kCommit && shallow_.contains(oid)) links.resize(1);
    return visit(oid, type, links);
  }

  storage::FileSystem* const fs_;
  const StorePath repository_;
  const ClosureWalkOptions options_;
  std::unique_ptr<ObjectSet> own_;
  std::unique_ptr<ObjectSet> borrowed_;
  ShallowCommits shallow_;
};

absl::StatusOr<std::vector<MissingLink>> FindHoles(const Walker& walker) {
  std::vector<MissingLink> holes;
  RecentIds present;
  absl::flat_hash_set<ObjectId> missing;
  const auto visit = [&](const ObjectId& oid, ObjectType,
                         absl::Span<const ObjectId> links) -> absl::Status {
    for (const ObjectId& link : links) {
      if (missing.contains(link)) {
        holes.push_back({oid, link});
      } else if (present.Insert(link)) {
        REPOTXN_ASSIGN_OR_RETURN(const bool exists, walker.Exists(link));
        if (exists) continue;
        missing.insert(link);
        holes.push_back({oid, link});
      }
    }
    return absl::OkStatus();
  };
  REPOTXN_RETURN_IF_ERROR(walker.Walk(visit));
  std::sort(holes.begin(), holes.end());
  holes.erase(std::unique(holes.begin(), holes.end()), holes.end());
  return holes;
}

// Who names whom among own objects, by number.
class ReverseLinks {
 public:
  uint32_t Number(const ObjectId& oid) {
    const auto [it, is_new] = numbers_.try_emplace(oid, static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(oid);
    return it->second;
  }
  void Add(uint32_t named, uint32_t by) { links_.emplace_back(named, by); }
  int64_t count() const { return static_cast<int64_t>(links_.size()); }

  // The objects of `from` and all that name them, directly or not; sorted.
  std::vector<ObjectId> Above(const std::vector<ObjectId>& from) {
    std::sort(links_.begin(), links_.end());
    std::vector<bool> is_above(ids_.size(), false);
    std::vector<uint32_t> waiting;
    const auto add = [&](uint32_t number) {
      if (is_above[number]) return;
      is_above[number] = true;
      waiting.push_back(number);
    };
    for (const ObjectId& oid : from) add(numbers_.at(oid));
    while (!waiting.empty()) {
      const uint32_t named = waiting.back();
      waiting.pop_back();
      auto link =
          std::lower_bound(links_.begin(), links_.end(), std::make_pair(named, uint32_t{0}));
      for (; link != links_.end() && link->first == named; ++link) add(link->second);
    }
    std::vector<ObjectId> above;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (is_above[i]) above.push_back(ids_[i]);
    }
    std::sort(above.begin(), above.end());
    return above;
  }

 private:
  absl::flat_hash_map<ObjectId, uint32_t> numbers_;
  std::vector<ObjectId> ids_;
  std::vector<std::pair<uint32_t, uint32_t>> links_;
};

absl::StatusOr<std::vector<ObjectId>> FindOpen(const Walker& walker,
                                               const std::vector<MissingLink>& holes,
                                               int64_t links_max) {
  ReverseLinks reverse;
  const auto visit = [&](const ObjectId& oid, ObjectType, absl::Span<const ObjectId> links) {
    const uint32_t by = reverse.Number(oid);
    for (const ObjectId& link : links) reverse.Add(reverse.Number(link), by);
    if (reverse.count() <= links_max) return absl::OkStatus();
    return absl::ResourceExhaustedError("too many links to find who names what is missing");
  };
  REPOTXN_RETURN_IF_ERROR(walker.Walk(visit));
  std::vector<ObjectId> with_holes;
  for (const MissingLink& hole : holes) with_holes.push_back(hole.referrer);
  return reverse.Above(with_holes);
}

}  // namespace

absl::StatusOr<ClosureReport> WalkClosure(storage::FileSystem& fs, const StorePath& repository,
                                          const ClosureWalkOptions& options) {
  REPOTXN_ASSIGN_OR_RETURN(const auto walker, Walker::Open(&fs, repository, options));
  ClosureReport report;
  report.objects = walker->own().count();
  REPOTXN_ASSIGN_OR_RETURN(report.missing_links, FindHoles(*walker));
  if (report.missing_links.empty()) return report;
  REPOTXN_ASSIGN_OR_RETURN(report.open_objects,
                           FindOpen(*walker, report.missing_links, options.links_max));
  return report;
}

}  // namespace repotxn::objects
