#include "objects/quarantine.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/alternates.h"
#include "objects/repository_skeleton.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

// `shallow` of a repository is a list of commits; this is some 800,000 of them.
constexpr int64_t kShallowBytesMax = 32 << 20;

absl::Status WriteShallow(storage::FileSystem& fs, const StorePath& directory,
                          const ObjectSnapshotOptions& options) {
  if (options.shallow) {
    if (options.shallow->empty()) return absl::OkStatus();
    return storage::WriteFile(fs, directory / "shallow", *options.shallow);
  }
  if (!options.live_repository) return absl::OkStatus();
  const auto text = storage::ReadFile(fs, *options.live_repository / "shallow", kShallowBytesMax);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  return storage::WriteFile(fs, directory / "shallow", *text);
}

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

absl::Status MakeObjectSnapshot(storage::FileSystem& fs, const StorePath& directory,
                                const ObjectSnapshotOptions& options) {
  REPOTXN_RETURN_IF_ERROR(WriteSkeleton(fs, directory, options.format));
  REPOTXN_RETURN_IF_ERROR(WriteShallow(fs, directory, options));
  if (!options.live_repository) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const std::string live,
                           fs.AbsolutePath(*options.live_repository / "objects"));
  return storage::WriteFile(fs, directory / "objects/info/alternates", AbsoluteAlternateLine(live));
}

absl::StatusOr<std::vector<StagedPack>> ListStagedPacks(storage::FileSystem& fs,
                                                        const StorePath& directory) {
  const StorePath pack_directory = directory / "objects/pack";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries,
                           fs.List(pack_directory));
  std::map<std::string, std::vector<std::string>> suffixes;  // by stem
  for (const storage::DirectoryEntry& entry : entries) {
    const size_t dot = entry.name.rfind('.');
    if (dot == std::string::npos || entry.kind != storage::FileKind::kRegular) continue;
    if (!absl::StartsWith(entry.name, "pack-")) continue;
    suffixes[entry.name.substr(0, dot)].push_back(entry.name.substr(dot));
  }
  std::vector<StagedPack> packs;
  for (const auto& [stem, found] : suffixes) {
    const auto has = [&found = found](const char* suffix) {
      return std::find(found.begin(), found.end(), suffix) != found.end();
    };
    if (!has(".pack") || !has(".idx")) continue;
    StagedPack pack;
    pack.name = stem;
    pack.files.push_back(pack_directory / absl::StrCat(stem, ".pack"));
    for (const std::string& suffix : found) {
      if (suffix == ".pack" || suffix == ".idx") continue;
      pack.files.push_back(pack_directory / absl::StrCat(stem, suffix));
    }
    pack.files.push_back(pack_directory / absl::StrCat(stem, ".idx"));
    packs.push_back(std::move(pack));
  }
  return packs;
}

absl::StatusOr<std::vector<std::string>> ListStagedLooseObjects(storage::FileSystem& fs,
                                                                const StorePath& directory) {
  const StorePath objects = directory / "objects";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, fs.List(objects));
  std::vector<std::string> names;
  for (const storage::DirectoryEntry& entry : entries) {
    if (entry.kind != storage::FileKind::kDirectory || entry.name.size() != 2 ||
        !IsLowerHex(entry.name)) {
      continue;
    }
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> files,
                             fs.List(objects / entry.name));
    for (const storage::DirectoryEntry& file : files) {
      const bool is_object = file.kind == storage::FileKind::kRegular && IsLowerHex(file.name) &&
                             (file.name.size() == 38 || file.name.size() == 62);
      if (is_object) names.push_back(absl::StrCat(entry.name, "/", file.name));
    }
  }
  return names;
}

}  // namespace repotxn::objects
