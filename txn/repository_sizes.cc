#include "txn/repository_sizes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "objects/cruft_times.h"
#include "objects/object_set.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::txn {
namespace {

using storage::StorePath;

constexpr int64_t kTimesBytesMax = int64_t{1} << 30;
// Levels of directories below refs/.
constexpr int kRefDepthMax = 64;

// What is gone meanwhile is an empty directory.
absl::StatusOr<std::vector<storage::DirectoryEntry>> ListIfThere(storage::FileSystem& fs, const StorePath& path) {
  auto entries = fs.List(path);
  if (absl::IsNotFound(entries.status())) return std::vector<storage::DirectoryEntry>();
  return entries;
}

absl::Status CountFiles(storage::FileSystem& fs, const StorePath& directory, int64_t max, int depth, int64_t* count) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListIfThere(fs, directory));
  for (const storage::DirectoryEntry& entry : entries) {
    if (*count > max) return absl::OkStatus();
    if (entry.kind != storage::FileKind::kDirectory) {
      ++*count;
    } else if (depth < kRefDepthMax) {
      REPOTXN_ASSIGN_OR_RETURN(const StorePath below, directory.Child(entry.name));
      REPOTXN_RETURN_IF_ERROR(CountFiles(fs, below, max, depth + 1, count));
    }
  }
  return absl::OkStatus();
}

// Oldest time of a cruft pack; nothing of a file that is damaged, which a repack replaces.
absl::StatusOr<absl::Time> OldestCruft(storage::FileSystem& fs, const StorePath& file, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(fs, file, kTimesBytesMax));
  absl::Time oldest = absl::InfiniteFuture();
  const auto times = objects::ParseCruftTimes(content, objects::CruftTimesCount(content, format), format);
  if (!times.ok()) return oldest;
  for (const uint32_t seconds : *times) oldest = std::min(oldest, absl::FromUnixSeconds(seconds));
  return oldest;
}

// Of the files that Git derives from objects; the newest.
absl::StatusOr<absl::Time> IndexedAt(storage::FileSystem& fs, const StorePath& objects) {
  absl::Time newest = absl::InfinitePast();
  for (const char* name : {"pack/multi-pack-index", "info/commit-graph", "info/commit-graphs/commit-graph-chain"}) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath file, StorePath::Parse(objects.text() + "/" + name));
    const auto info = fs.Stat(file);
    if (info.ok()) {
      newest = std::max(newest, info->modified);
    } else if (!absl::IsNotFound(info.status())) {
      return info.status();
    }
  }
  return newest;
}

absl::Status CountPack(storage::FileSystem& fs, const CondemnedFiles& condemned, const RepositoryId& id,
                       ObjectFormat format, absl::string_view name, std::vector<absl::Time>* added,
                       RepositorySizes* sizes) {
  const auto info = fs.Stat(layout::PackFile(id, name, ".pack"));
  if (absl::IsNotFound(info.status())) return absl::OkStatus();
  if (!info.ok()) return info.status();
  if (condemned.Contains(id, name)) {
    ++sizes->condemned_packs;
    sizes->condemned_bytes += info->size;
    return absl::OkStatus();
  }
  ++sizes->packs;
  sizes->pack_bytes += info->size;
  sizes->oldest_pack = std::min(sizes->oldest_pack, info->modified);
  const auto oldest = OldestCruft(fs, layout::PackFile(id, name, ".mtimes"), format);
  if (oldest.ok()) {
    ++sizes->cruft_packs;
    sizes->oldest_cruft = std::min(sizes->oldest_cruft, *oldest);
  } else if (!absl::IsNotFound(oldest.status())) {
    return oldest.status();
  }
  added->push_back(info->modified);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RepositorySizes> MeasureRepository(storage::FileSystem& fs, const CondemnedFiles& condemned,
                                                  const RepositoryId& id, ObjectFormat format,
                                                  int64_t loose_refs_max) {
  const StorePath directory = layout::RepositoryDirectory(id);
  const StorePath object_directory = directory / "objects";
  RepositorySizes sizes;
  REPOTXN_RETURN_IF_ERROR(objects::VisitLooseObjects(fs, object_directory, format, [&sizes](const ObjectId&) {
    ++sizes.loose_objects;
    return absl::OkStatus();
  }));
  REPOTXN_RETURN_IF_ERROR(CountFiles(fs, directory / "refs", loose_refs_max, 0, &sizes.loose_refs));
  std::vector<absl::Time> added;
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListIfThere(fs, object_directory / "pack"));
  for (const storage::DirectoryEntry& entry : entries) {
    if (absl::EndsWith(entry.name, ".keep")) ++sizes.keep_files;
    absl::string_view name = entry.name;
    if (!absl::ConsumeSuffix(&name, ".idx")) continue;
    REPOTXN_RETURN_IF_ERROR(CountPack(fs, condemned, id, format, name, &added, &sizes));
  }
  REPOTXN_ASSIGN_OR_RETURN(sizes.indexed_at, IndexedAt(fs, object_directory));
  for (const absl::Time time : added) {
    if (time <= sizes.indexed_at) continue;
    ++sizes.packs_since_indexes;
    sizes.oldest_unindexed_pack = std::min(sizes.oldest_unindexed_pack, time);
  }
  const auto shallow = fs.Stat(directory / "shallow");
  if (!shallow.ok() && !absl::IsNotFound(shallow.status())) return shallow.status();
  sizes.is_shallow = shallow.ok() && shallow->size > 0;
  return sizes;
}

}  // namespace repotxn::txn
