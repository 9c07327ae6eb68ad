// Reads single entries of a pack.
//
// Layout of version 2 (3 is the same to a reader), numbers big-endian unless said otherwise:
//
//   offset        bytes  field
//   0             4      "PACK"
//   4             4      version, 2 or 3
//   8             4      number of entries
//   12            ...    entries
//   end - h       h      hash of everything before (h = 20 or 32)
//
// An entry: first byte = more(1 bit) type(3) size(4 low bits); while `more`, 7 further size bits a
// byte, low bits first. Type 1 commit, 2 tree, 3 blob, 4 tag: zlib stream of `size` bytes. Type 6
// (base by distance): a varint, 7 bits a byte, high bits first, one added for each further byte =
// distance back to the base's entry; then the zlib stream of a delta of `size` bytes. Type 7 (base
// by id): h bytes of id, then the delta. 0 and 5: damage.
//
// A delta: two little-endian varints, size of base and of result; then instructions. 1xxxxxxx:
// copy; bits 0-3 say which offset bytes follow, 4-6 which length bytes, low bytes first, length 0 =
// 65,536. 0xxxxxxx: insert the next x bytes; x = 0 is damage. The result must come out at exactly
// its size, copies inside the base.
//
// Crash argument: a pack is synced whole before its name is linked into an object directory, and
// never changed there.
//
// Thread-compatible: const calls may be concurrent.
#ifndef REPOTXN_OBJECTS_PACK_FILE_H_
#define REPOTXN_OBJECTS_PACK_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Bytes before the first entry.
inline constexpr int64_t kPackHeaderBytes = 12;

// Number of entries that a pack says it has, from its first 12 bytes.
//
// Errors
//   kInvalidArgument  fewer than 12 bytes or another magic.
//   kUnimplemented    a version other than 2 and 3.
absl::StatusOr<int64_t> PackHeaderCount(absl::string_view bytes);

enum class PackEntryKind : uint8_t {
  kCommit = 1,
  kTree = 2,
  kBlob = 3,
  kTag = 4,
  kOffsetDelta = 6,
  kIdDelta = 7,
};

struct PackEntryHeader {
  PackEntryKind kind = PackEntryKind::kBlob;
  int64_t size = 0;          // bytes of the inflated stream: object or delta
  int64_t header_bytes = 0;  // from the entry's start to its zlib stream
  int64_t distance = 0;      // kOffsetDelta: bytes back to the base
  ObjectId base;             // kIdDelta

  bool IsDelta() const { return kind >= PackEntryKind::kOffsetDelta; }
};

// Decodes the header at the start of `bytes`. kDataLoss when malformed or cut short.
absl::StatusOr<PackEntryHeader> ParsePackEntryHeader(absl::string_view bytes, ObjectFormat format);

// Result size that a delta announces. `prefix` needs only the first 20 bytes. kDataLoss when
// malformed.
absl::StatusOr<int64_t> DeltaResultSize(absl::string_view prefix);
// Applies `delta` to `base`. kDataLoss when malformed, kOutOfRange when the result is larger than
// `bytes_max`.
absl::StatusOr<std::string> ApplyDelta(absl::string_view base, absl::string_view delta,
                                       int64_t bytes_max);

class PackFile {
 public:
  // Opens the pack at `path` and checks its header.
  //
  // Errors
  //   kNotFound       no such file.
  //   kUnimplemented  another version.
  //   kDataLoss       not a pack, or too short.
  static absl::StatusOr<std::unique_ptr<PackFile>> Open(storage::FileSystem& fs,
                                                        const storage::StorePath& path,
                                                        ObjectFormat format);
  // The same on an open file; `name` is used in errors.
  static absl::StatusOr<std::unique_ptr<PackFile>> FromFile(
      std::unique_ptr<storage::ReadableFile> file, std::string name, ObjectFormat format);

  // Header of the entry at `offset`. kDataLoss outside the entries or malformed; a delta's base
  // lies inside the pack.
  absl::StatusOr<PackEntryHeader> ReadHeader(int64_t offset) const;
  // Inflates the first `bytes` bytes (at most header.size) of the entry at `offset`. Inflating all
  // of it also proves that the stream ends there. kDataLoss when damaged.
  absl::StatusOr<std::string> Inflate(int64_t offset, const PackEntryHeader& header,
                                      int64_t bytes) const;

  int64_t count() const { return count_; }
  int64_t size() const { return size_; }
  ObjectFormat format() const { return format_; }
  const std::string& name() const { return name_; }

 private:
  PackFile() = default;
  int64_t EntriesEnd() const;

  // Constant after construction.
  std::unique_ptr<storage::ReadableFile> file_;
  std::string name_;
  ObjectFormat format_ = ObjectFormat::kSha1;
  int64_t size_ = 0;
  int64_t count_ = 0;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_FILE_H_
