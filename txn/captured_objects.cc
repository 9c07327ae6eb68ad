#include "txn/captured_objects.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "objects/pack_index.h"
#include "storage/child_process.h"
#include "storage/descriptor.h"
#include "storage/status_macros.h"

namespace repotxn::txn {
namespace {

// Longest silence of pack-objects between two pieces of its output; it compresses large packs for minutes.
constexpr absl::Duration kSilenceMax = absl::Hours(1);
constexpr size_t kLinesBytesAtOnce = 64 << 10;

using PackIndexes = std::vector<std::unique_ptr<objects::PackIndex>>;

absl::StatusOr<PackIndexes> OpenIndexes(storage::FileSystem& fs, const storage::StorePath& packs,
                                        ObjectFormat format, const std::vector<std::string>& stems) {
  PackIndexes indexes;
  for (const std::string& stem : stems) {
    REPOTXN_ASSIGN_OR_RETURN(
        auto index, objects::PackIndex::Open(fs, packs / absl::StrCat(stem, ".idx"), format));
    indexes.push_back(std::move(index));
  }
  return indexes;
}

// The bytes of one file.
absl::StatusOr<ByteSource> FileSource(storage::FileSystem& fs, const storage::StorePath& path) {
  REPOTXN_ASSIGN_OR_RETURN(auto opened, fs.OpenForRead(path));
  const std::shared_ptr<storage::ReadableFile> file = std::move(opened);
  return ByteSource([file, at = int64_t{0}](absl::Span<char> out) mutable -> absl::StatusOr<size_t> {
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, file->ReadAt(at, out));
    at += static_cast<int64_t>(size);
    return size;
  });
}

// pack-objects reads all names before it writes the first byte, so feeding it first cannot stop both of us.
absl::Status FeedIds(int fd, const std::vector<std::string>& loose, const PackIndexes& indexes) {
  std::string lines;
  for (const std::string& name : loose) {
    absl::StrAppend(&lines, name.substr(0, 2), name.substr(3), "\n");
  }
  const auto write = [&]() -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(storage::WriteDescriptor(fd, lines));
    lines.clear();
    return absl::OkStatus();
  };
  for (const auto& index : indexes) {
    REPOTXN_RETURN_IF_ERROR(index->ForEach([&](const ObjectId& oid, int64_t) {
      absl::StrAppend(&lines, oid.ToHex(), "\n");
      return lines.size() < kLinesBytesAtOnce ? absl::OkStatus() : write();
    }));
  }
  return write();
}

// The pack that pack-objects makes of them; its end is only given when the child ended well.
absl::StatusOr<ByteSource> PackedSource(objects::GitCommand command, const std::vector<std::string>& loose,
                                        const PackIndexes& indexes) {
  command.arguments = {"pack-objects", "-q", "--stdout", "--delta-base-offset"};
  command.is_check = true;
  storage::ChildOptions options;
  REPOTXN_ASSIGN_OR_RETURN(options.argv, objects::ClosedArguments(command));
  REPOTXN_ASSIGN_OR_RETURN(options.environment, objects::ClosedEnvironment(command));
  options.working_directory = command.repository;
  options.stdin_stream = storage::ChildStream::NewPipe();
  options.stdout_stream = storage::ChildStream::NewPipe();
  if (command.lock_fd >= 0) options.inherited_descriptors.push_back(command.lock_fd);
  REPOTXN_ASSIGN_OR_RETURN(auto started, storage::ChildProcess::Start(options));
  const std::shared_ptr<storage::ChildProcess> child = std::move(started);
  const absl::Status fed = FeedIds(child->stdin_descriptor(), loose, indexes);
  // A child that is gone says why by its exit code, below.
  if (!fed.ok() && !absl::IsUnavailable(fed)) return fed;
  child->CloseStdin();
  return ByteSource([child](absl::Span<char> out) -> absl::StatusOr<size_t> {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_readable,
                             storage::WaitReadable(child->stdout_descriptor(), kSilenceMax));
    if (!is_readable) return absl::DeadlineExceededError("packing new objects takes too long");
    REPOTXN_ASSIGN_OR_RETURN(const size_t size, storage::ReadDescriptor(child->stdout_descriptor(), out));
    if (size > 0) return size;
    REPOTXN_ASSIGN_OR_RETURN(const storage::ExitStatus exit, child->Wait(kSilenceMax));
    if (!exit.ok()) return absl::InvalidArgumentError("new objects cannot be packed");
    return size_t{0};
  });
}

}  // namespace

absl::StatusOr<int64_t> StageNewObjects(storage::FileSystem* fs, const storage::StorePath& directory,
                                        ObjectFormat format, const NewObjects& found,
                                        const objects::GitCommand& command, StagedObjects* staging) {
  const storage::StorePath packs = directory / "objects/pack";
  REPOTXN_ASSIGN_OR_RETURN(const PackIndexes indexes, OpenIndexes(*fs, packs, format, found.packs));
  int64_t count = static_cast<int64_t>(found.loose.size());
  for (const auto& index : indexes) count += index->count();
  ByteSource source;
  if (found.loose.empty() && found.packs.size() == 1) {
    REPOTXN_ASSIGN_OR_RETURN(source, FileSource(*fs, packs / absl::StrCat(found.packs[0], ".pack")));
  } else {
    REPOTXN_ASSIGN_OR_RETURN(source, PackedSource(command, found.loose, indexes));
  }
  IndexPackOptions options;
  options.pack_bytes_max = 0;  // it is on our disk already
  REPOTXN_RETURN_IF_ERROR(staging->IndexPack(source, options));
  return count;
}

}  // namespace repotxn::txn
