// Reads the index (.idx) of a pack: which objects it holds, and where.
//
// Layout of version 2, all numbers big-endian, n = number of objects, h = 20 (SHA-1) or 32
// (SHA-256):
//
//   offset          bytes   field
//   0               4       magic ff 74 4f 63
//   4               4       version, 2
//   8               1024    fanout: entry b = number of ids whose first byte is <= b; entry 255 = n
//   1032            n * h   ids, strictly ascending
//   ...             n * 4   CRC-32 of each packed entry (not used here)
//   ...             n * 4   offset in the pack, or 2^31 + row of the next table
//   ...             m * 8   offsets of 2^31 and more; m <= n - 1
//   ...             h       checksum of the pack
//   ...             h       checksum of the index
//
// Valid when: (1) magic and version are right; (2) the fanout never falls; (3) the size equals the
// sum above for some m in [0, max(0, n - 1)]; (4) each row read lies inside its table and the id
// found is in the fanout bucket of its first byte. (1) to (3) are checked by Open, (4) by each
// look-up. Neither checksum is recomputed here: indexes are made by index-pack and synced before
// anybody can see them; `verify` reads them whole. Version 1 (no magic) and versions above 2:
// kUnimplemented, never a guess.
//
// Crash argument: a pack's .idx is linked into its place after its .pack and .rev, whole and
// synced; a reader sees all of it or none.
//
// Thread-compatible: const calls may be concurrent.
#ifndef REPOTXN_OBJECTS_PACK_INDEX_H_
#define REPOTXN_OBJECTS_PACK_INDEX_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

class PackIndex {
 public:
  // An index of at most this many bytes is kept in memory whole; a larger one is read piece by
  // piece.
  static constexpr int64_t kResidentBytesMax = 8 << 20;

  // Opens and validates the index at `path`.
  //
  // Errors
  //   kNotFound       no such file.
  //   kUnimplemented  another version.
  //   kDataLoss       the file breaks a rule above; detail "file", "offset".
  static absl::StatusOr<std::unique_ptr<PackIndex>> Open(storage::FileSystem& fs,
                                                         const storage::StorePath& path,
                                                         ObjectFormat format);
  // The same on an open file; `name` is used in errors. `resident_bytes_max` as kResidentBytesMax.
  static absl::StatusOr<std::unique_ptr<PackIndex>> FromFile(
      std::unique_ptr<storage::ReadableFile> file, std::string name, ObjectFormat format,
      int64_t resident_bytes_max = kResidentBytesMax);

  // Number of objects.
  int64_t count() const { return count_; }
  ObjectFormat format() const { return format_; }

  // Offset of `oid` in the pack, in bytes; nothing when the pack does not hold it or the format is
  // another. Cost: one binary search; at most 21 small reads when the index is not in memory.
  absl::StatusOr<std::optional<int64_t>> Find(const ObjectId& oid) const;
  // Id and offset of row `row`, in [0, count()). Rows are in the order of ids.
  absl::StatusOr<ObjectId> IdAt(int64_t row) const;
  absl::StatusOr<int64_t> OffsetAt(int64_t row) const;
  // Ids of rows [first, first + n), clipped at count(). For walking all ids in bounded memory.
  absl::StatusOr<std::vector<ObjectId>> Ids(int64_t first, int64_t n) const;
  // Calls `visit` with each id and its row, in order, until it gives an error. Memory as Ids() of a few thousand.
  absl::Status ForEach(absl::FunctionRef<absl::Status(const ObjectId&, int64_t)> visit) const;
  // The pack's checksum as recorded here, which is also the last bytes of the pack.
  absl::StatusOr<std::string> PackChecksum() const;

 private:
  PackIndex() = default;
  absl::Status Load(int64_t resident_bytes_max);
  absl::Status LoadFanout();
  absl::Status Read(int64_t offset, size_t bytes, char* out) const;
  absl::StatusOr<uint32_t> ReadU32(int64_t offset) const;
  absl::Status Damage(absl::string_view what, int64_t offset) const;
  int64_t IdsStart() const;
  int64_t OffsetsStart() const;
  int64_t LargeOffsetsStart() const;

  // Constant after Load().
  std::unique_ptr<storage::ReadableFile> file_;
  std::string name_;
  ObjectFormat format_ = ObjectFormat::kSha1;
  int64_t hash_bytes_ = 20;
  int64_t size_ = 0;
  int64_t count_ = 0;
  int64_t large_count_ = 0;
  std::array<uint32_t, 256> fanout_{};
  std::string resident_;  // the whole file, or empty
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_INDEX_H_
