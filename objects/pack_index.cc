#include "objects/pack_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "objects/big_endian.h"
#include "objects/error_detail.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr uint32_t kMagic = 0xff744f63;
constexpr int64_t kFanoutStart = 8;
constexpr int64_t kIdsStart = kFanoutStart + 256 * 4;
constexpr uint32_t kLargeOffsetFlag = 0x80000000;
static_assert(kIdsStart == 1032);

// Rows read at once at the end of a search: fewer calls than going on halving.
constexpr int64_t kBlockRows = 64;
constexpr int64_t kIdsAtOnce = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<PackIndex>> PackIndex::Open(storage::FileSystem& fs,
                                                           const storage::StorePath& path,
                                                           ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadableFile> file, fs.OpenForRead(path));
  return FromFile(std::move(file), path.text(), format);
}

absl::StatusOr<std::unique_ptr<PackIndex>> PackIndex::FromFile(
    std::unique_ptr<storage::ReadableFile> file, std::string name, ObjectFormat format,
    int64_t resident_bytes_max) {
  std::unique_ptr<PackIndex> index(new PackIndex());
  index->file_ = std::move(file);
  index->name_ = std::move(name);
  index->format_ = format;
  index->hash_bytes_ = static_cast<int64_t>(ObjectIdBytes(format));
  REPOTXN_RETURN_IF_ERROR(index->Load(resident_bytes_max));
  return index;
}

absl::Status PackIndex::Load(int64_t resident_bytes_max) {
  REPOTXN_ASSIGN_OR_RETURN(size_, file_->Size());
  if (size_ < kIdsStart + 2 * hash_bytes_) return Damage("pack index is too short", size_);
  if (size_ <= resident_bytes_max) {
    std::string whole(static_cast<size_t>(size_), '\0');
    REPOTXN_RETURN_IF_ERROR(Read(0, whole.size(), whole.data()));
    resident_ = std::move(whole);
    file_.reset();
  }
  REPOTXN_ASSIGN_OR_RETURN(const uint32_t magic, ReadU32(0));
  if (magic != kMagic) {
    return WithDetail(absl::UnimplementedError("pack index is not of version 2"), "file", name_);
  }
  REPOTXN_ASSIGN_OR_RETURN(const uint32_t version, ReadU32(4));
  if (version != 2) {
    return WithDetail(
        WithDetail(absl::UnimplementedError("pack index is not of version 2"), "file", name_),
        "found", absl::StrCat(version));
  }
  REPOTXN_RETURN_IF_ERROR(LoadFanout());

  // The size fixes the number of large offsets, and must leave no remainder.
  const int64_t rest = size_ - LargeOffsetsStart() - 2 * hash_bytes_;
  if (rest < 0 || rest % 8 != 0) return Damage("pack index has the wrong size", size_);
  large_count_ = rest / 8;
  if (large_count_ > std::max<int64_t>(0, count_ - 1)) {
    return Damage("pack index has too many large offsets", LargeOffsetsStart());
  }
  return absl::OkStatus();
}

absl::Status PackIndex::LoadFanout() {
  std::array<char, 256 * 4> bytes;
  REPOTXN_RETURN_IF_ERROR(Read(kFanoutStart, bytes.size(), bytes.data()));
  uint32_t previous = 0;
  for (size_t i = 0; i < fanout_.size(); ++i) {
    fanout_[i] = LoadBigEndian32(bytes.data() + 4 * i);
    if (fanout_[i] < previous) {
      return Damage("pack index fanout falls", kFanoutStart + static_cast<int64_t>(4 * i));
    }
    previous = fanout_[i];
  }
  count_ = fanout_[255];
  return absl::OkStatus();
}

int64_t PackIndex::IdsStart() const { return kIdsStart; }
int64_t PackIndex::OffsetsStart() const { return kIdsStart + count_ * (hash_bytes_ + 4); }
int64_t PackIndex::LargeOffsetsStart() const { return OffsetsStart() + count_ * 4; }

absl::Status PackIndex::Damage(absl::string_view what, int64_t offset) const {
  return Damaged(what, name_, offset);
}

absl::Status PackIndex::Read(int64_t offset, size_t bytes, char* out) const {
  if (offset < 0 || offset > size_ || static_cast<int64_t>(bytes) > size_ - offset) {
    return Damage("pack index ends too early", size_);
  }
  if (!resident_.empty()) {
    std::memcpy(out, resident_.data() + offset, bytes);
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(offset, absl::MakeSpan(out, bytes)));
  if (got != bytes) return Damage("pack index ends too early", offset);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> PackIndex::ReadU32(int64_t offset) const {
  char bytes[4];
  REPOTXN_RETURN_IF_ERROR(Read(offset, sizeof bytes, bytes));
  return LoadBigEndian32(bytes);
}

absl::StatusOr<std::optional<int64_t>> PackIndex::Find(const ObjectId& oid) const {
  const absl::string_view wanted = oid.bytes();
  if (static_cast<int64_t>(wanted.size()) != hash_bytes_) return std::optional<int64_t>();
  const uint8_t bucket = static_cast<uint8_t>(wanted[0]);
  int64_t low = bucket == 0 ? 0 : fanout_[bucket - 1];
  int64_t high = fanout_[bucket];
  const size_t hash_bytes = wanted.size();
  char id[32];
  while (high - low > kBlockRows) {
    const int64_t middle = low + (high - low) / 2;
    REPOTXN_RETURN_IF_ERROR(Read(IdsStart() + middle * hash_bytes_, hash_bytes, id));
    const int order = std::memcmp(wanted.data(), id, hash_bytes);
    if (order < 0) {
      high = middle;
    } else {
      low = middle;  // the row itself may be it
    }
  }
  std::array<char, kBlockRows * 32> block;
  const int64_t rows = high - low;
  REPOTXN_DCHECK(rows >= 0 && rows <= kBlockRows);
  REPOTXN_RETURN_IF_ERROR(
      Read(IdsStart() + low * hash_bytes_, static_cast<size_t>(rows) * hash_bytes, block.data()));
  for (int64_t row = 0; row < rows; ++row) {
    const char* const here = block.data() + static_cast<size_t>(row) * hash_bytes;
    if (std::memcmp(here, wanted.data(), hash_bytes) != 0) continue;
    REPOTXN_ASSIGN_OR_RETURN(const int64_t offset, OffsetAt(low + row));
    return std::optional<int64_t>(offset);
  }
  return std::optional<int64_t>();
}

absl::StatusOr<ObjectId> PackIndex::IdAt(int64_t row) const {
  if (row < 0 || row >= count_) return absl::OutOfRangeError("pack index row out of range");
  char id[32];
  const size_t hash_bytes = static_cast<size_t>(hash_bytes_);
  REPOTXN_RETURN_IF_ERROR(Read(IdsStart() + row * hash_bytes_, hash_bytes, id));
  return ObjectId::FromBytes(absl::string_view(id, hash_bytes));
}

absl::StatusOr<int64_t> PackIndex::OffsetAt(int64_t row) const {
  if (row < 0 || row >= count_) return absl::OutOfRangeError("pack index row out of range");
  REPOTXN_ASSIGN_OR_RETURN(const uint32_t offset, ReadU32(OffsetsStart() + row * 4));
  if ((offset & kLargeOffsetFlag) == 0) return int64_t{offset};
  const int64_t large_row = offset & ~kLargeOffsetFlag;
  const int64_t place = LargeOffsetsStart() + large_row * 8;
  if (large_row >= large_count_) return Damage("pack index names no such large offset", place);
  char bytes[8];
  REPOTXN_RETURN_IF_ERROR(Read(place, sizeof bytes, bytes));
  const uint64_t large = LoadBigEndian64(bytes);
  if (large > uint64_t{INT64_MAX}) return Damage("pack index offset is impossible", place);
  return static_cast<int64_t>(large);
}

absl::StatusOr<std::vector<ObjectId>> PackIndex::Ids(int64_t first, int64_t n) const {
  std::vector<ObjectId> ids;
  if (first < 0 || first >= count_ || n <= 0) return ids;
  const int64_t rows = std::min(n, count_ - first);
  std::string bytes(static_cast<size_t>(rows * hash_bytes_), '\0');
  REPOTXN_RETURN_IF_ERROR(Read(IdsStart() + first * hash_bytes_, bytes.size(), bytes.data()));
  ids.reserve(static_cast<size_t>(rows));
  const size_t hash_bytes = static_cast<size_t>(hash_bytes_);
  for (size_t at = 0; at < bytes.size(); at += hash_bytes) {
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId id,
                             ObjectId::FromBytes(absl::string_view(&bytes[at], hash_bytes)));
    ids.push_back(id);
  }
  return ids;
}

absl::Status PackIndex::ForEach(absl::FunctionRef<absl::Status(const ObjectId&, int64_t)> visit) const {
  for (int64_t first = 0; first < count_; first += kIdsAtOnce) {
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> ids, Ids(first, kIdsAtOnce));
    for (size_t i = 0; i < ids.size(); ++i) REPOTXN_RETURN_IF_ERROR(visit(ids[i], first + static_cast<int64_t>(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PackIndex::PackChecksum() const {
  std::string checksum(static_cast<size_t>(hash_bytes_), '\0');
  REPOTXN_RETURN_IF_ERROR(Read(size_ - 2 * hash_bytes_, checksum.size(), checksum.data()));
  return checksum;
}

}  // namespace repotxn::objects
