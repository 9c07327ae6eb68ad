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

constexpr int kErrorLinesMax = 5;

GitCommand Command(const std::string& snapshot, std::vector<std::string> arguments,
                   const ObjectPackingOptions& options) {
  GitCommand command;
  command.repository = snapshot;
  command.arguments = std::move(arguments);
  command.is_check = true;
  command.lock_fd = options.lock_fd;
  command.program = options.program;
  return command;
}

// What a child that walks or packs says when it fails: its business is only to read.
absl::Status Failed(const GitResult& result, absl::string_view what, absl::string_view snapshot) {
  absl::Status status = absl::DataLossError(what);
  if (result.exit_code > 128) {
    status = absl::UnavailableError("a Git child was ended by a signal");
  } else if (result.errors.find("No space left on device") != std::string::npos ||
             result.errors.find("Out of memory") != std::string::npos) {
    status = absl::ResourceExhaustedError("no resources to pack objects");
  }
  return WithDetail(status, "stderr", SanitisedErrors(result.errors, kErrorLinesMax, snapshot));
}

// Puts objects/pack of a snapshot back to what it was, unless Keep() is called.
class PackDirectoryGuard {
 public:
  static absl::StatusOr<std::unique_ptr<PackDirectoryGuard>> Watch(storage::FileSystem* fs,
                                                                   const StorePath& snapshot) {
    std::unique_ptr<PackDirectoryGuard> guard(new PackDirectoryGuard);
    guard->fs_ = fs;
    guard->directory_ = snapshot / "objects/pack";
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs->List(guard->directory_));
    for (const storage::DirectoryEntry& entry : entries) guard->before_.insert(entry.name);
    return guard;
  }
  ~PackDirectoryGuard() {
    if (is_kept_) return;
    const auto entries = fs_->List(directory_);
    if (!entries.ok()) return;
    for (const storage::DirectoryEntry& entry : *entries) {
      const auto path = directory_.Child(entry.name);
      // Staging is wiped at open: what cannot be removed now goes then.
      if (before_.count(entry.name) == 0 && path.ok()) static_cast<void>(fs_->Remove(*path).ok());
    }
  }
  void Keep() { is_kept_ = true; }

 private:
  PackDirectoryGuard() = default;
  storage::FileSystem* fs_ = nullptr;
  StorePath directory_;
  std::set<std::string> before_;
  bool is_kept_ = false;
};

// Proves that the finished pack holds exactly the ids asked for.
absl::Status VerifyPack(storage::FileSystem& fs, const StorePath& snapshot,
                        const std::string& pack_name, const IdFile& ids, ObjectFormat format) {
  const StorePath path = snapshot / "objects/pack" / absl::StrCat(pack_name, ".idx");
  REPOTXN_ASSIGN_OR_RETURN(const auto index, PackIndex::Open(fs, path, format));
  const auto look_up = [&index](const ObjectId& oid) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const auto offset, index->Find(oid));
    if (offset) return absl::OkStatus();
    return WithDetail(absl::DataLossError("an object is damaged"), "oid", oid.ToHex());
  };
  REPOTXN_RETURN_IF_ERROR(ids.ForEach(format, look_up));
  if (index->count() == ids.count()) return absl::OkStatus();
  return absl::InternalError("pack holds other objects than were asked for");
}

// Writes the objects of `ids`, each listed once, as one pack.
absl::StatusOr<PackedObjects> PackIds(storage::FileSystem& fs, const StorePath& snapshot,
                                      const IdFile& ids, const ObjectPackingOptions& options) {
  PackedObjects packed;
  if (ids.count() == 0) return packed;
  REPOTXN_ASSIGN_OR_RETURN(const std::string absolute, fs.AbsolutePath(snapshot));
  REPOTXN_ASSIGN_OR_RETURN(const auto guard, PackDirectoryGuard::Watch(&fs, snapshot));
  REPOTXN_ASSIGN_OR_RETURN(InputSource lines, ids.Lines());
  GitCommand command =
      Command(absolute, {"pack-objects", "-q", "--stdout", "--delta-base-offset"}, options);
  command.settings = {"pack.threads=1", "pack.windowMemory=256m"};
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<GitStream> packer,
                           GitStream::Start(command, std::move(lines), options.timeout));
  // The packer's failure is told apart from a bad pack: it is asked how it ended before the indexer
  // sees the end of its output.
  const auto source = [&](absl::Span<char> out) -> absl::StatusOr<size_t> {
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, packer->Read(out));
    if (got > 0) return got;
    REPOTXN_ASSIGN_OR_RETURN(const GitResult result, packer->Finish());
    if (result.exit_code != 0) return Failed(result, "objects cannot be packed", absolute);
    return size_t{0};
  };
  PackIndexer::Options indexer;
  indexer.timeout = options.timeout;
  indexer.lock_fd = options.lock_fd;
  indexer.program = options.program;
  REPOTXN_ASSIGN_OR_RETURN(const PackIndexer::Result indexed,
                           PackIndexer(indexer).Index(absolute, options.format, source));
  if (indexed.is_empty) return absl::InternalError("pack of some objects is empty");
  REPOTXN_RETURN_IF_ERROR(VerifyPack(fs, snapshot, indexed.pack_name, ids, options.format));
  packed.pack_name = indexed.pack_name;
  packed.objects = ids.count();
  guard->Keep();
  return packed;
}

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
  REPOTXN_ASSIGN_OR_RETURN(
      const std::unique_ptr<GitStream> walk,
      GitStream::Start(
          Command(snapshot, {"rev-list", "--objects", "--no-object-names", "--stdin"}, options),
          std::move(lines), options.timeout));
  std::string line;
  for (;;) {
    REPOTXN_ASSIGN_OR_RETURN(const bool has_line, walk->ReadLine(&line));
    if (!has_line) break;
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid, ObjectId::FromHex(line, options.format));
    REPOTXN_ASSIGN_OR_RETURN(const bool is_kept, kept.Contains(oid));
    if (!is_kept) REPOTXN_RETURN_IF_ERROR(borrowed.Append(oid));
  }
  REPOTXN_ASSIGN_OR_RETURN(const GitResult result, walk->Finish());
  if (result.exit_code != 0) {
    return Failed(result, "an object that the repository needs is missing or damaged", snapshot);
  }
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
  return PackIds(fs, request.snapshot, *borrowed, options);
}

absl::StatusOr<PackedObjects> PackObjects(storage::FileSystem& fs, const StorePath& snapshot,
                                          const std::vector<ObjectId>& ids,
                                          const ObjectPackingOptions& options) {
  REPOTXN_ASSIGN_OR_RETURN(const auto list, IdFile::Create(&fs, snapshot / "listed-objects"));
  for (const ObjectId& oid : ids) REPOTXN_RETURN_IF_ERROR(list->Append(oid));
  REPOTXN_RETURN_IF_ERROR(list->Finish());
  return PackIds(fs, snapshot, *list, options);
}

absl::StatusOr<PackedObjects> PackLooseObjects(storage::FileSystem& fs, const StorePath& snapshot,
                                               const StorePath& objects,
                                               const ObjectPackingOptions& options) {
  REPOTXN_ASSIGN_OR_RETURN(const auto loose,
                           ListLooseObjects(fs, objects, options.format, options.is_condemned));
  return PackObjects(fs, snapshot, loose, options);
}

}  // namespace repotxn::objects
