#include "txn/repository_sizes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::txn {
namespace {

using storage::StorePath;

// Of a file with the times of a cruft pack: header (signature, version, hash), a big-endian time for each object, trailer.
constexpr size_t kTimesHeaderBytes = 12;
constexpr int64_t kTimesBytesMax = int64_t{1} << 30;
// Levels of directories below refs/.
constexpr int kRefDepthMax = 64;

bool IsFanOut(const storage::DirectoryEntry& entry) {
  return entry.kind == storage::FileKind::kDirectory && entry.name.size() == 2 &&
         absl::ascii_isxdigit(static_cast<unsigned char>(entry.name[0])) &&
         absl::ascii_isxdigit(static_cast<unsigned char>(entry.name[1]));
}

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

absl::Status CountLooseObjects(storage::FileSystem& fs, const StorePath& objects, RepositorySizes* sizes) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(objects));
  for (const storage::DirectoryEntry& entry : entries) {
    if (!IsFanOut(entry)) continue;
    REPOTXN_ASSIGN_OR_RETURN(const auto files, ListIfThere(fs, objects / entry.name));
    for (const storage::DirectoryEntry& file : files) {
      if (!absl::StartsWith(file.name, "tmp_")) ++sizes->loose_objects;
    }
  }
  return absl::OkStatus();
}

// Oldest time of a cruft pack. Not verified: a wrong one begins a repack, which reads the file with its checksum.
absl::StatusOr<absl::Time> OldestOf(storage::FileSystem& fs, const StorePath& file, size_t hash_bytes) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string content, storage::ReadFile(fs, file, kTimesBytesMax));
  absl::Time oldest = absl::InfiniteFuture();
  for (size_t at = kTimesHeaderBytes; at + 4 + 2 * hash_bytes <= content.size(); at += 4) {
    uint32_t seconds = 0;
    for (size_t i = 0; i < 4; ++i) seconds = seconds << 8 | static_cast<unsigned char>(content[at + i]);
    oldest = std::min(oldest, absl::FromUnixSeconds(seconds));
  }
  return oldest;
}

// The format is told by the file itself: 1 is SHA-1, 2 is SHA-256, in the last byte of its header.
absl::StatusOr<absl::Time> OldestCruft(storage::FileSystem& fs, const StorePath& file) {
  REPOTXN_ASSIGN_OR_RETURN(const auto open, fs.OpenForRead(file));
  char header[kTimesHeaderBytes];
  REPOTXN_ASSIGN_OR_RETURN(const size_t size, open->ReadAt(0, absl::MakeSpan(header)));
  if (size != kTimesHeaderBytes) return absl::InfiniteFuture();
  return OldestOf(fs, file, header[kTimesHeaderBytes - 1] == 1 ? 20 : 32);
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
                       absl::string_view name, std::vector<absl::Time>* added, RepositorySizes* sizes) {
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
  const auto oldest = OldestCruft(fs, layout::PackFile(id, name, ".mtimes"));
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
                                                  const RepositoryId& id, int64_t loose_refs_max) {
  const StorePath directory = layout::RepositoryDirectory(id);
  const StorePath objects = directory / "objects";
  RepositorySizes sizes;
  REPOTXN_RETURN_IF_ERROR(CountLooseObjects(fs, objects, &sizes));
  REPOTXN_RETURN_IF_ERROR(CountFiles(fs, directory / "refs", loose_refs_max, 0, &sizes.loose_refs));
  std::vector<absl::Time> added;
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListIfThere(fs, objects / "pack"));
  for (const storage::DirectoryEntry& entry : entries) {
    if (absl::EndsWith(entry.name, ".keep")) ++sizes.keep_files;
    absl::string_view name = entry.name;
    if (!absl::ConsumeSuffix(&name, ".idx")) continue;
    REPOTXN_RETURN_IF_ERROR(CountPack(fs, condemned, id, name, &added, &sizes));
  }
  REPOTXN_ASSIGN_OR_RETURN(sizes.indexed_at, IndexedAt(fs, objects));
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
