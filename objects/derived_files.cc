#include "objects/derived_files.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/alternates.h"
#include "objects/derived_path.h"
#include "objects/error_detail.h"
#include "objects/git_child.h"
#include "objects/multi_pack_index.h"
#include "objects/trailing_checksum.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

constexpr absl::string_view kPackDirectory = "objects/pack";
constexpr int kErrorLinesMax = 5;
constexpr int64_t kChainBytesMax = 1 << 20;
constexpr size_t kPieceBytes = 256 << 10;
constexpr absl::string_view kGraphMagic = "CGPH\1";

bool IsAbsent(const absl::Status& status) {
  // ENOTDIR: a parent is a file.
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

// The trailing checksum of a file, in hex; nothing when it is absent or does not end in it.
absl::StatusOr<std::optional<std::string>> SoundChecksum(storage::FileSystem& fs, const StorePath& path,
                                                         ObjectFormat format) {
  const auto file = fs.OpenForRead(path);
  if (IsAbsent(file.status())) return std::nullopt;
  if (!file.ok()) return file.status();
  auto checksum = VerifyTrailingChecksum(**file, path.text(), format);
  if (absl::IsDataLoss(checksum.status())) return std::nullopt;
  if (!checksum.ok()) return checksum.status();
  return *std::move(checksum);
}

std::string BesidePackIndex(absl::string_view hash, absl::string_view suffix) {
  return absl::StrCat(kMultiPackIndex, "-", hash, suffix);
}

// Whether `a` and `b` are there and hold the same bytes.
absl::StatusOr<bool> AreAlike(storage::FileSystem& fs, const StorePath& a, const StorePath& b) {
  const auto file_a = fs.OpenForRead(a), file_b = fs.OpenForRead(b);
  if (IsAbsent(file_a.status()) || IsAbsent(file_b.status())) return false;
  if (!file_a.ok()) return file_a.status();
  if (!file_b.ok()) return file_b.status();
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, (*file_a)->Size());
  REPOTXN_ASSIGN_OR_RETURN(const int64_t other_size, (*file_b)->Size());
  if (size != other_size) return false;
  std::string piece_a(kPieceBytes, '\0'), piece_b(kPieceBytes, '\0');
  for (int64_t at = 0; at < size; at += static_cast<int64_t>(kPieceBytes)) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t got_a, (*file_a)->ReadAt(at, absl::MakeSpan(&piece_a[0], kPieceBytes)));
    REPOTXN_ASSIGN_OR_RETURN(const size_t got_b, (*file_b)->ReadAt(at, absl::MakeSpan(&piece_b[0], kPieceBytes)));
    if (absl::string_view(piece_a).substr(0, got_a) != absl::string_view(piece_b).substr(0, got_b)) return false;
  }
  return true;
}

// One writing.
class Writer {
 public:
  Writer(storage::FileSystem& fs, const DerivedFilesRequest& request) : fs_(fs), request_(request) {}

  absl::StatusOr<DerivedFiles> Write() {
    REPOTXN_ASSIGN_OR_RETURN(absolute_, fs_.AbsolutePath(request_.snapshot));
    REPOTXN_RETURN_IF_ERROR(Prepare());
    if (request_.has_commit_graph) REPOTXN_RETURN_IF_ERROR(WriteCommitGraph());
    REPOTXN_RETURN_IF_ERROR(WritePackIndex());
    REPOTXN_RETURN_IF_ERROR(Compare());
    return std::move(result_);
  }

 private:
  // The object directory in which Git writes.
  absl::Status Prepare() {
    const StorePath objects = request_.snapshot / "objects";
    std::string alternates;
    for (const StorePath& directory : request_.alternates) {
      REPOTXN_ASSIGN_OR_RETURN(const std::string absolute, fs_.AbsolutePath(directory));
      alternates += AbsoluteAlternateLine(absolute);
    }
    REPOTXN_RETURN_IF_ERROR(storage::WriteFile(fs_, objects / "info/alternates", alternates));
    for (const std::string& pack : request_.packs) {
      // A cruft pack has times, and a pack made elsewhere has no reverse index.
      for (const absl::string_view suffix : {".pack", ".rev", ".mtimes", ".idx"}) {
        const std::string name = absl::StrCat(kPackDirectory, "/", pack, suffix);
        absl::Status linked = fs_.Link(request_.live / name, request_.snapshot / name);
        if (absl::IsResourceExhausted(linked)) {  // EMLINK: whoever keeps the snapshot keeps the file as well
          REPOTXN_ASSIGN_OR_RETURN(const std::string target, fs_.AbsolutePath(request_.live / name));
          linked = fs_.Symlink(target, request_.snapshot / name);
        }
        const bool is_optional = suffix == ".rev" || suffix == ".mtimes";
        if (!linked.ok() && !(is_optional && absl::IsNotFound(linked))) return linked;
      }
    }
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs_.List(request_.live / "objects"));
    for (const storage::DirectoryEntry& entry : entries) {
      if (entry.name.size() != 2 || entry.kind != storage::FileKind::kDirectory) continue;
      REPOTXN_ASSIGN_OR_RETURN(const StorePath loose, (request_.live / "objects").Child(entry.name));
      REPOTXN_ASSIGN_OR_RETURN(const std::string target, fs_.AbsolutePath(loose));
      REPOTXN_RETURN_IF_ERROR(fs_.Symlink(target, objects / entry.name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<GitResult> Run(std::vector<std::string> arguments, std::string input) {
    GitCommand command;
    command.repository = absolute_;
    command.arguments = std::move(arguments);
    command.environment = {{"GIT_NO_REPLACE_OBJECTS", "1"}};
    command.lock_fd = request_.lock_fd;
    command.program = request_.program;
    RunLimits limits;
    limits.timeout = request_.timeout;
    return RunGit(command, TextSource(std::move(input)), limits);
  }

  absl::Status Failed(const GitResult& result, absl::string_view what) {
    absl::Status status = absl::DataLossError(what);
    if (result.exit_code > 128) {
      status = absl::UnavailableError("a Git child was ended by a signal");
    } else if (absl::StrContains(result.errors, "No space left on device") ||
               absl::StrContains(result.errors, "Out of memory")) {
      status = absl::ResourceExhaustedError("no resources to write derived files");
    }
    return WithDetail(status, "stderr", SanitisedErrors(result.errors, kErrorLinesMax, absolute_));
  }

  std::string TipLines() const {
    std::string lines;
    for (const ObjectId& tip : request_.tips) absl::StrAppend(&lines, tip.ToHex(), "\n");
    return lines;
  }

  // Hashes of the layers that the chain of `repository` names; nothing when it or one of them is damaged or absent.
  absl::StatusOr<std::optional<std::vector<std::string>>> SoundLayers(const StorePath& repository) {
    const auto chain = storage::ReadFile(fs_, repository / kCommitGraphChain, kChainBytesMax);
    if (IsAbsent(chain.status()) || absl::IsOutOfRange(chain.status())) return std::nullopt;
    if (!chain.ok()) return chain.status();
    std::optional<std::vector<std::string>> hashes = ParseCommitGraphChain(*chain);
    if (!hashes) return std::nullopt;
    for (const std::string& hash : *hashes) {
      REPOTXN_ASSIGN_OR_RETURN(const bool is_sound, IsLayerSound(repository / LayerPath(hash), hash));
      if (!is_sound) return std::nullopt;
    }
    return hashes;
  }

  absl::StatusOr<bool> IsLayerSound(const StorePath& path, const std::string& hash) {
    REPOTXN_ASSIGN_OR_RETURN(const auto checksum, SoundChecksum(fs_, path, request_.format));
    if (checksum != hash) return false;
    REPOTXN_ASSIGN_OR_RETURN(const auto file, fs_.OpenForRead(path));
    std::string head(kGraphMagic.size() + 1, '\0');
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, absl::MakeSpan(&head[0], head.size())));
    return got == head.size() && absl::StartsWith(head, kGraphMagic) &&
           head.back() == (request_.format == ObjectFormat::kSha1 ? '\1' : '\2');
  }

  absl::Status LinkLayers(const std::vector<std::string>& hashes) {
    REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(fs_, request_.snapshot / kCommitGraphs));
    for (const std::string& hash : hashes) {
      REPOTXN_RETURN_IF_ERROR(fs_.Link(request_.live / LayerPath(hash), request_.snapshot / LayerPath(hash)));
    }
    return fs_.Link(request_.live / kCommitGraphChain, request_.snapshot / kCommitGraphChain);
  }

  absl::Status WriteCommitGraph() {
    if (request_.tips.empty() && !request_.has_all_commits) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const auto layers, SoundLayers(request_.live));
    if (layers) REPOTXN_RETURN_IF_ERROR(LinkLayers(*layers));
    std::vector<std::string> arguments = {"commit-graph", "write", "--split", "--no-progress"};
    if (!request_.has_all_commits) arguments.push_back("--stdin-commits");
    const std::string input = request_.has_all_commits ? "" : TipLines();
    REPOTXN_ASSIGN_OR_RETURN(GitResult written, Run(arguments, input));
    if (written.exit_code != 0 && layers) {
      // Whatever is wrong with those that were there: from nothing.
      REPOTXN_RETURN_IF_ERROR(storage::RemoveTree(fs_, request_.snapshot / kCommitGraphs));
      REPOTXN_ASSIGN_OR_RETURN(written, Run(arguments, input));
    }
    if (written.exit_code != 0) return Failed(written, "a commit-graph cannot be written");
    REPOTXN_ASSIGN_OR_RETURN(const auto now, SoundLayers(request_.snapshot));
    // None: there is no commit. Or its base is a layer that a pool has got meanwhile, and may lose again.
    if (!now) return absl::OkStatus();
    for (const std::string& hash : *now) wanted_.insert(LayerPath(hash));
    wanted_.insert(std::string(kCommitGraphChain));
    result_.has_commit_graph = true;
    return absl::OkStatus();
  }

  // Whether the multi-pack-index of the repository may stay; it is wanted then.
  absl::StatusOr<bool> KeepPackIndex() {
    const StorePath path = request_.live / kMultiPackIndex;
    REPOTXN_ASSIGN_OR_RETURN(const auto checksum, SoundChecksum(fs_, path, request_.format));
    if (!checksum) return false;
    REPOTXN_ASSIGN_OR_RETURN(const auto file, fs_.OpenForRead(path));
    const auto names = ReadPackNames(*file, path.text(), request_.format);
    std::vector<std::string> packs = request_.packs;
    std::sort(packs.begin(), packs.end());
    if (!names.ok() || *names != packs) return false;
    const std::string bitmap = BesidePackIndex(*checksum, ".bitmap");
    if (request_.has_bitmap) {
      REPOTXN_ASSIGN_OR_RETURN(const auto sound, SoundChecksum(fs_, request_.live / bitmap, request_.format));
      if (!sound) return false;
      wanted_.insert(bitmap);
      const std::string reverse = BesidePackIndex(*checksum, ".rev");
      REPOTXN_ASSIGN_OR_RETURN(const bool has_reverse, storage::Exists(fs_, request_.live / reverse));
      if (has_reverse) {
        REPOTXN_ASSIGN_OR_RETURN(const auto is_sound, SoundChecksum(fs_, request_.live / reverse, request_.format));
        if (!is_sound) return false;
        wanted_.insert(reverse);
      }
    }
    wanted_.insert(std::string(kMultiPackIndex));
    result_.has_multi_pack_index = true;
    result_.has_bitmap = request_.has_bitmap;
    return true;
  }

  absl::StatusOr<bool> HasBitmapOfItsOwn(const std::string& pack) {
    return storage::Exists(fs_, request_.live / absl::StrCat(kPackDirectory, "/", pack, ".bitmap"));
  }

  absl::Status WritePackIndex() {
    if (request_.packs.empty()) return absl::OkStatus();
    if (request_.packs.size() == 1) {
      REPOTXN_ASSIGN_OR_RETURN(const bool has_bitmap, HasBitmapOfItsOwn(request_.packs[0]));
      result_.has_bitmap = has_bitmap;
      if (has_bitmap || !request_.has_bitmap) return absl::OkStatus();
    }
    REPOTXN_ASSIGN_OR_RETURN(const bool is_kept, KeepPackIndex());
    if (is_kept) return absl::OkStatus();
    std::vector<std::string> arguments = {"multi-pack-index", "write", "--no-progress"};
    if (request_.has_bitmap) {
      const std::string name = "tips-of-bitmap";
      REPOTXN_RETURN_IF_ERROR(storage::WriteFile(fs_, request_.snapshot / name, TipLines()));
      std::vector<std::string> with_bitmap = arguments;
      with_bitmap.push_back("--bitmap");
      with_bitmap.push_back(absl::StrCat("--refs-snapshot=", absolute_, "/", name));
      REPOTXN_ASSIGN_OR_RETURN(const GitResult written, Run(std::move(with_bitmap), ""));
      if (written.exit_code == 0) return NotePackIndex();
      // Tips reach objects that lie loose: there can be no bitmap until they are packed.
      REPOTXN_RETURN_IF_ERROR(RemoveWrittenPackIndex());
      if (request_.packs.size() == 1) return absl::OkStatus();
    }
    REPOTXN_ASSIGN_OR_RETURN(const GitResult written, Run(std::move(arguments), ""));
    if (written.exit_code != 0) return Failed(written, "a multi-pack-index cannot be written");
    return NotePackIndex();
  }

  absl::StatusOr<std::vector<std::string>> WrittenPackIndex() {
    REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> all, ListDerivedFiles(fs_, request_.snapshot));
    std::erase_if(all, [](const std::string& path) { return !absl::StartsWith(path, kMultiPackIndex); });
    return all;
  }

  absl::Status RemoveWrittenPackIndex() {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> written, WrittenPackIndex());
    for (const std::string& path : written) REPOTXN_RETURN_IF_ERROR(fs_.Remove(request_.snapshot / path));
    return absl::OkStatus();
  }

  absl::Status NotePackIndex() {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> written, WrittenPackIndex());
    for (const std::string& path : written) {
      wanted_.insert(path);
      result_.has_multi_pack_index |= path == kMultiPackIndex;
      result_.has_bitmap |= absl::EndsWith(path, ".bitmap");
    }
    return absl::OkStatus();
  }

  absl::Status Compare() {
    for (const std::string& path : wanted_) {
      const StorePath source = request_.snapshot / path;
      REPOTXN_ASSIGN_OR_RETURN(const bool is_written, storage::Exists(fs_, source));
      if (!is_written) continue;  // kept as it is
      REPOTXN_ASSIGN_OR_RETURN(const bool is_alike, AreAlike(fs_, source, request_.live / path));
      if (!is_alike) result_.changes.push_back({path, source, false});
    }
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> there, ListDerivedFiles(fs_, request_.live));
    for (const std::string& path : there) {
      if (wanted_.count(path) == 0) result_.changes.push_back({path, StorePath(), true});
    }
    return absl::OkStatus();
  }

  storage::FileSystem& fs_;
  const DerivedFilesRequest& request_;
  std::string absolute_;
  std::set<std::string> wanted_;  // derived files of the repository afterwards
  DerivedFiles result_;
};

}  // namespace

absl::StatusOr<DerivedFiles> WriteDerivedFiles(storage::FileSystem& fs, const DerivedFilesRequest& request) {
  return Writer(fs, request).Write();
}

absl::StatusOr<std::vector<std::string>> ListDerivedFiles(storage::FileSystem& fs, const StorePath& live) {
  std::vector<std::string> found;
  for (const absl::string_view directory : {absl::string_view("objects/info"), kCommitGraphs, kPackDirectory}) {
    const auto entries = fs.List(live / directory);
    if (IsAbsent(entries.status())) continue;
    if (!entries.ok()) return entries.status();
    for (const storage::DirectoryEntry& entry : *entries) {
      std::string path = absl::StrCat(directory, "/", entry.name);
      if (entry.kind != storage::FileKind::kDirectory && DerivedKindOf(path)) found.push_back(std::move(path));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace repotxn::objects
