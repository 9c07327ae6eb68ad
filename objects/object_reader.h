// Reads one object, its type and size or its bounded content, from a pack or a loose file.
//
// Walks delta chains in a loop, never by recursion: at most kDeltaDepthMax entries. Deltas are
// inflated one at a time, so memory is one base, one delta and one result, each of at most
// `bytes_max`.
//
// A loose object is one zlib stream of "<type> <size>\0" and the content, at objects/<2 hex>/<rest
// of hex>.
//
// Errors, of every read
//   kNotFound    the file is gone (a pack unlinked, a loose object packed and pruned); look again.
//   kDataLoss    damage, detail "file", "offset"; also a delta chain that is too deep or runs in a
//   circle. kOutOfRange  content larger than `bytes_max`, or a chain whose bases and deltas are.
//
// Thread-compatible: const calls may be concurrent.
#ifndef REPOTXN_OBJECTS_OBJECT_READER_H_
#define REPOTXN_OBJECTS_OBJECT_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "objects/object_type.h"
#include "objects/pack_file.h"
#include "objects/pack_index.h"
#include "storage/file_system.h"

namespace repotxn::objects {

// Most entries of a delta chain. Git writes at most 50 by default and 4,095 at all.
inline constexpr int kDeltaDepthMax = 4096;
// Default bound on content, in bytes: commits and tags are far below it.
inline constexpr int64_t kContentBytesMax = 1 << 20;

// An open pack with its index.
class Pack {
 public:
  // Opens `pack-….idx` and `pack-….pack` below `directory` (objects/pack); `name` is the common
  // stem without suffix.
  static absl::StatusOr<std::shared_ptr<const Pack>> Open(storage::FileSystem& fs,
                                                          const storage::StorePath& directory,
                                                          absl::string_view name,
                                                          ObjectFormat format);
  // From parts; the index must be the pack's (same number of objects, else kDataLoss).
  static absl::StatusOr<std::shared_ptr<const Pack>> FromParts(std::unique_ptr<PackIndex> index,
                                                               std::unique_ptr<PackFile> file);

  const PackIndex& index() const { return *index_; }
  const PackFile& file() const { return *file_; }

  // Type and size of the object at `offset`, from headers alone.
  absl::StatusOr<ObjectInfo> Info(int64_t offset) const;
  // The object at `offset`.
  absl::StatusOr<ObjectContent> Read(int64_t offset, int64_t bytes_max = kContentBytesMax) const;

 private:
  // One entry of a delta chain, from the object wanted to the one stored whole.
  struct Link {
    int64_t offset;
    PackEntryHeader header;
  };
  Pack(std::unique_ptr<PackIndex> index, std::unique_ptr<PackFile> file);
  absl::StatusOr<std::vector<Link>> Chain(int64_t offset) const;
  absl::StatusOr<int64_t> BaseOffset(const Link& link) const;

  const std::unique_ptr<PackIndex> index_;
  const std::unique_ptr<PackFile> file_;
};

// Path of a loose object relative to its object directory: "ab/cdef…".
std::string LooseObjectName(const ObjectId& oid);

// Type and size of the loose object file at `path`.
absl::StatusOr<ObjectInfo> LooseObjectInfo(storage::FileSystem& fs, const storage::StorePath& path);
// The loose object file at `path`, whole.
absl::StatusOr<ObjectContent> ReadLooseObject(storage::FileSystem& fs,
                                              const storage::StorePath& path,
                                              int64_t bytes_max = kContentBytesMax);
// The two above on the bytes of the file.
absl::StatusOr<ObjectInfo> ParseLooseInfo(absl::string_view file_prefix);
absl::StatusOr<ObjectContent> ParseLooseObject(absl::string_view file, int64_t bytes_max);

// Object that an annotated tag names, and its declared type. kDataLoss when `content` is no tag.
struct TagTarget {
  ObjectId oid;
  ObjectType type = ObjectType::kCommit;
};
absl::StatusOr<TagTarget> ParseTagTarget(absl::string_view content, ObjectFormat format);
// Parents of a commit, in order. kDataLoss when `content` is no commit.
absl::StatusOr<std::vector<ObjectId>> ParseCommitParents(absl::string_view content,
                                                         ObjectFormat format);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_READER_H_
