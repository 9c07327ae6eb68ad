#include "objects/pack_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "objects/big_endian.h"
#include "objects/error_detail.h"
#include "objects/zlib_stream.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr uint32_t kMagic = 0x5041434b;  // "PACK"
// Longest entry header: 10 bytes of type and size, then 10 of distance or 32 of id.
constexpr size_t kEntryHeaderBytesMax = 42;
constexpr size_t kReadBytes = 16 << 10;

uint8_t ByteAt(absl::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// Takes the low-bits-first varint at `*at`; `shift` bits of `value` are there already.
bool TakeVarint(absl::string_view bytes, size_t* at, int shift, uint64_t* value) {
  for (;;) {
    if (*at >= bytes.size() || shift > 56) return false;
    const uint8_t byte = ByteAt(bytes, (*at)++);
    *value |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if ((byte & 0x80) == 0) return true;
  }
}

// Takes the distance of a base: high bits first, one added for each further byte.
bool TakeDistance(absl::string_view bytes, size_t* at, int64_t* distance) {
  uint64_t value = 0;
  for (bool is_first = true;; is_first = false) {
    if (*at >= bytes.size() || value >= uint64_t{1} << 54) return false;
    const uint8_t byte = ByteAt(bytes, (*at)++);
    value = is_first ? byte & 0x7fu : ((value + 1) << 7) | (byte & 0x7fu);
    if ((byte & 0x80) == 0) break;
  }
  *distance = static_cast<int64_t>(value);
  return true;
}

struct CopyInstruction {
  size_t offset = 0;
  size_t length = 0;
};

// Takes the operands of the copy instruction `op`.
bool TakeCopy(absl::string_view delta, size_t* at, uint8_t op, CopyInstruction* copy) {
  for (int i = 0; i < 7; ++i) {
    if ((op & (1u << i)) == 0) continue;
    if (*at >= delta.size()) return false;
    const size_t byte = ByteAt(delta, (*at)++);
    if (i < 4) {
      copy->offset |= byte << (8 * i);
    } else {
      copy->length |= byte << (8 * (i - 4));
    }
  }
  if (copy->length == 0) copy->length = 0x10000;
  return true;
}

absl::Status BadDelta() { return absl::DataLossError("delta is malformed"); }

}  // namespace

absl::StatusOr<int64_t> PackHeaderCount(absl::string_view bytes) {
  if (bytes.size() < static_cast<size_t>(kPackHeaderBytes) ||
      LoadBigEndian32(bytes.data()) != kMagic) {
    return absl::InvalidArgumentError("not a pack");
  }
  const uint32_t version = LoadBigEndian32(bytes.data() + 4);
  if (version != 2 && version != 3) {
    return WithDetail(absl::UnimplementedError("unknown pack version"), "found",
                      absl::StrCat(version));
  }
  return int64_t{LoadBigEndian32(bytes.data() + 8)};
}

absl::StatusOr<PackEntryHeader> ParsePackEntryHeader(absl::string_view bytes, ObjectFormat format) {
  const absl::Status bad = absl::DataLossError("pack entry header is malformed");
  if (bytes.empty()) return bad;
  PackEntryHeader header;
  size_t at = 1;
  const uint8_t first = ByteAt(bytes, 0);
  uint64_t size = first & 0x0fu;
  if ((first & 0x80) != 0 && !TakeVarint(bytes, &at, 4, &size)) return bad;
  if (size > uint64_t{1} << 62) return bad;
  header.size = static_cast<int64_t>(size);
  const uint8_t kind = (first >> 4) & 7;
  if (kind == 0 || kind == 5) return bad;
  header.kind = static_cast<PackEntryKind>(kind);
  if (header.kind == PackEntryKind::kOffsetDelta) {
    if (!TakeDistance(bytes, &at, &header.distance) || header.distance == 0) return bad;
  } else if (header.kind == PackEntryKind::kIdDelta) {
    const size_t hash_bytes = ObjectIdBytes(format);
    if (bytes.size() - at < hash_bytes) return bad;
    REPOTXN_ASSIGN_OR_RETURN(header.base, ObjectId::FromBytes(bytes.substr(at, hash_bytes)));
    at += hash_bytes;
  }
  header.header_bytes = static_cast<int64_t>(at);
  return header;
}

absl::StatusOr<int64_t> DeltaResultSize(absl::string_view prefix) {
  size_t at = 0;
  uint64_t base_size = 0;
  uint64_t result_size = 0;
  if (!TakeVarint(prefix, &at, 0, &base_size) || !TakeVarint(prefix, &at, 0, &result_size) ||
      result_size > uint64_t{1} << 62) {
    return BadDelta();
  }
  return static_cast<int64_t>(result_size);
}

absl::StatusOr<std::string> ApplyDelta(absl::string_view base, absl::string_view delta,
                                       int64_t bytes_max) {
  size_t at = 0;
  uint64_t base_size = 0;
  uint64_t result_size = 0;
  if (!TakeVarint(delta, &at, 0, &base_size) || !TakeVarint(delta, &at, 0, &result_size) ||
      base_size != base.size()) {
    return BadDelta();
  }
  if (result_size > static_cast<uint64_t>(bytes_max)) {
    return absl::OutOfRangeError("object is larger than the bound");
  }
  std::string result;
  result.reserve(static_cast<size_t>(result_size));
  while (at < delta.size()) {
    const uint8_t op = ByteAt(delta, at++);
    absl::string_view piece;
    if ((op & 0x80) != 0) {
      CopyInstruction copy;
      if (!TakeCopy(delta, &at, op, &copy) || copy.offset > base.size() ||
          copy.length > base.size() - copy.offset) {
        return BadDelta();
      }
      piece = base.substr(copy.offset, copy.length);
    } else {
      if (op == 0 || op > delta.size() - at) return BadDelta();
      piece = delta.substr(at, op);
      at += op;
    }
    if (piece.size() > result_size - result.size()) return BadDelta();
    result.append(piece.data(), piece.size());
  }
  if (result.size() != result_size) return BadDelta();
  return result;
}

absl::StatusOr<std::unique_ptr<PackFile>> PackFile::Open(storage::FileSystem& fs,
                                                         const storage::StorePath& path,
                                                         ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadableFile> file, fs.OpenForRead(path));
  return FromFile(std::move(file), path.text(), format);
}

absl::StatusOr<std::unique_ptr<PackFile>> PackFile::FromFile(
    std::unique_ptr<storage::ReadableFile> file, std::string name, ObjectFormat format) {
  std::unique_ptr<PackFile> pack(new PackFile());
  pack->file_ = std::move(file);
  pack->name_ = std::move(name);
  pack->format_ = format;
  REPOTXN_ASSIGN_OR_RETURN(pack->size_, pack->file_->Size());
  if (pack->EntriesEnd() < kPackHeaderBytes) {
    return Damaged("pack is too short", pack->name_, pack->size_);
  }
  char bytes[kPackHeaderBytes];
  REPOTXN_ASSIGN_OR_RETURN(const size_t got, pack->file_->ReadAt(0, absl::MakeSpan(bytes)));
  const auto count = PackHeaderCount(absl::string_view(bytes, got));
  if (absl::IsInvalidArgument(count.status())) return Damaged("not a pack", pack->name_, 0);
  if (!count.ok()) return WithDetail(count.status(), "file", pack->name_);
  pack->count_ = *count;
  return pack;
}

int64_t PackFile::EntriesEnd() const {
  return size_ - static_cast<int64_t>(ObjectIdBytes(format_));
}

absl::StatusOr<PackEntryHeader> PackFile::ReadHeader(int64_t offset) const {
  if (offset < kPackHeaderBytes || offset >= EntriesEnd()) {
    return Damaged("pack entry lies outside the pack", name_, offset);
  }
  char bytes[kEntryHeaderBytesMax];
  const size_t wanted = static_cast<size_t>(
      std::min<int64_t>(static_cast<int64_t>(sizeof bytes), EntriesEnd() - offset));
  REPOTXN_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, absl::MakeSpan(bytes, wanted)));
  auto header = ParsePackEntryHeader(absl::string_view(bytes, got), format_);
  if (!header.ok()) return Damaged("pack entry header is malformed", name_, offset);
  if (header->kind == PackEntryKind::kOffsetDelta && offset - header->distance < kPackHeaderBytes) {
    return Damaged("delta base lies outside the pack", name_, offset);
  }
  return header;
}

absl::StatusOr<std::string> PackFile::Inflate(int64_t offset, const PackEntryHeader& header,
                                              int64_t bytes) const {
  const bool is_whole = bytes >= header.size;
  const size_t bytes_max = static_cast<size_t>(std::min(bytes, header.size));
  ZlibStream stream;
  std::string out;
  // A short prefix needs only a short read.
  std::string input(is_whole && bytes_max > 512 ? kReadBytes : 1024, '\0');
  int64_t at = offset + header.header_bytes;
  while (!stream.is_finished() && (is_whole || out.size() < bytes_max)) {
    const int64_t left = std::max<int64_t>(0, EntriesEnd() - at);
    const size_t wanted = std::min(input.size(), static_cast<size_t>(left));
    REPOTXN_ASSIGN_OR_RETURN(const size_t got,
                             file_->ReadAt(at, absl::MakeSpan(input.data(), wanted)));
    if (got == 0) return Damaged("pack entry ends too early", name_, offset);
    size_t used = 0;
    const absl::Status fed =
        stream.Feed(absl::string_view(input.data(), got), bytes_max, &out, &used);
    // A prefix that is complete may be followed by anything.
    if (!fed.ok() && !(absl::IsDataLoss(fed) && !is_whole && out.size() == bytes_max)) {
      return absl::IsDataLoss(fed) ? Damaged(fed.message(), name_, offset) : fed;
    }
    at += static_cast<int64_t>(used);
    if (used == 0 && !stream.is_finished() && (is_whole || out.size() < bytes_max)) {
      return Damaged("zlib stream is damaged", name_, offset);
    }
  }
  if (out.size() != bytes_max)
    return Damaged("pack entry is shorter than announced", name_, offset);
  return out;
}

}  // namespace repotxn::objects
