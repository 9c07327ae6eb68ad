#include "objects/borrowed_objects.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "objects/alternates.h"
#include "objects/error_detail.h"
#include "objects/git_stream.h"
#include "objects/id_file.h"
#include "objects/object_links.h"
#include "objects/object_set.h"
#include "objects/pack_index.h"
#include "objects/pack_indexer.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

// Own objects, and all that stays within reach.
struct Kept {
  std::unique_ptr<ObjectSet> own;
  std::unique_ptr<ObjectSet> borrowed;

  absl::StatusOr<bool> Contains(const ObjectId& oid) const {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_own, own->Contains(oid));
    if (is_own) return true;
    return borrowed->Contains(oid);
  }
};

absl::StatusOr<Kept> OpenKept(storage::FileSystem& fs, const BorrowedObjects& request,
                              const ObjectPackingOptions& options) {
  std::vector<StorePath> directories;
  for (const StorePath& directory : request.still_borrowed) {
    directories.push_back(directory);
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<StorePath> chain, ResolveChain(fs, directory));
    directories.insert(directories.end(), chain.begin(), chain.end());
  }
  std::sort(directories.begin(), directories.end());
  directories.erase(std::unique(directories.begin(), directories.end()), directories.end());
  Kept kept;
  REPOTXN_ASSIGN_OR_RETURN(
      kept.own, ObjectSet::Open(fs, {request.objects, request.snapshot / "objects"}, options.format,
                                options.is_condemned));
  REPOTXN_ASSIGN_OR_RETURN(kept.borrowed,
                           ObjectSet::Open(fs, directories, options.format, options.is_condemned));
  return kept;
}

// Step 1: writes the roots to `roots`, some of them more than once.
absl::Status FindRoots(storage::FileSystem& fs, const BorrowedObjects& request, const Kept& kept,
                       const std::string& snapshot, const ObjectPackingOptions& options,
                       IdFile& roots) {
  RecentIds recent;
  const auto consider = [&](const ObjectId& oid) -> absl::Status {
    if (!recent.Insert(oid)) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const bool is_kept, kept.Contains(oid));
    return is_kept ? absl::OkStatus() : roots.Append(oid);
  };
  for (const ObjectId& tip : request.tips) REPOTXN_RETURN_IF_ERROR(consider(tip));
  LinkScan scan;
  scan.repository = snapshot;
  scan.format = options.format;
  scan.timeout = options.timeout;
  scan.lock_fd = options.lock_fd;
  scan.program = options.program;
  REPOTXN_ASSIGN_OR_RETURN(scan.shallow, ReadShallow(fs, request.snapshot, options.format));
  const auto visit = [&](const ObjectId&, ObjectType, absl::Span<const ObjectId> links) {
    absl::Status status;
    for (auto link = links.begin(); link != links.end() && status.ok(); ++link) {
      status = consider(*link);
    }
    return status;
  };
  REPOTXN_RETURN_IF_ERROR(ScanLinks(scan, kept.own->HexLines(), visit));
  return roots.Finish();
}

// Step 2: writes what the roots reach and is not kept, each id once.
absl::Status FindBorrowed(const IdFile& roots, const Kept& kept, const std::string& snapshot,
                          const ObjectPackingOptions& options, IdFile& borrowed) {
  REPOTXN_ASSIGN_OR_RETURN(InputSource lines, roots.Lines());
  REPOTXN_RETURN_IF_ERROR(WalkObjects(
      snapshot, std::move(lines), options, [&](const ObjectId& oid, absl::string_view name) -> absl::Status {
        REPOTXN_ASSIGN_OR_RETURN(const bool is_kept, kept.Contains(oid));
        return is_kept ? absl::OkStatus() : borrowed.Append(oid, name);
      }));
  return borrowed.Finish();
}

}  // namespace

absl::StatusOr<PackedObjects> PackBorrowedObjects(storage::FileSystem& fs,
                                                  const BorrowedObjects& request,
                                                  const ObjectPackingOptions& options) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string snapshot, fs.AbsolutePath(request.snapshot));
  REPOTXN_ASSIGN_OR_RETURN(const Kept kept, OpenKept(fs, request, options));
  REPOTXN_ASSIGN_OR_RETURN(const auto roots,
                           IdFile::Create(&fs, request.snapshot / "borrowed-roots"));
  REPOTXN_RETURN_IF_ERROR(FindRoots(fs, request, kept, snapshot, options, *roots));
  if (roots->count() == 0) return PackedObjects();
  REPOTXN_ASSIGN_OR_RETURN(const auto borrowed,
                           IdFile::Create(&fs, request.snapshot / "borrowed-objects"));
  REPOTXN_RETURN_IF_ERROR(FindBorrowed(*roots, kept, snapshot, options, *borrowed));
  return PackIdFile(fs, request.snapshot, *borrowed, options);
}

}  // namespace repotxn::objects
