#include "objects/object_packing.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "objects/error_detail.h"
#include "objects/git_stream.h"
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

}  // namespace

absl::StatusOr<PackedObjects> PackIdFile(storage::FileSystem& fs, const StorePath& snapshot,
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

absl::Status WalkObjects(const std::string& snapshot, InputSource revisions, const ObjectPackingOptions& options,
                         const WalkVisitor& visit) {
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<GitStream> walk,
                           GitStream::Start(Command(snapshot, {"rev-list", "--objects", "--stdin"}, options),
                                            std::move(revisions), options.timeout));
  const size_t hex_bytes = 2 * ObjectIdBytes(options.format);
  std::string line;
  for (;;) {
    REPOTXN_ASSIGN_OR_RETURN(const bool has_line, walk->ReadLine(&line));
    if (!has_line) break;
    const absl::string_view text = line;
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid, ObjectId::FromHex(text.substr(0, hex_bytes), options.format));
    REPOTXN_RETURN_IF_ERROR(visit(oid, text.size() > hex_bytes ? text.substr(hex_bytes + 1) : ""));
  }
  REPOTXN_ASSIGN_OR_RETURN(const GitResult result, walk->Finish());
  if (result.exit_code == 0) return absl::OkStatus();
  return Failed(result, "an object that the repository needs is missing or damaged", snapshot);
}

absl::StatusOr<PackedObjects> PackObjects(storage::FileSystem& fs, const StorePath& snapshot,
                                          const std::vector<ObjectId>& ids,
                                          const ObjectPackingOptions& options) {
  REPOTXN_ASSIGN_OR_RETURN(const auto list, IdFile::Create(&fs, snapshot / "listed-objects"));
  for (const ObjectId& oid : ids) REPOTXN_RETURN_IF_ERROR(list->Append(oid));
  REPOTXN_RETURN_IF_ERROR(list->Finish());
  return PackIdFile(fs, snapshot, *list, options);
}

}  // namespace repotxn::objects
