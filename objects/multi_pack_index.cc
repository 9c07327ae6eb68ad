#include "objects/multi_pack_index.h"

#include <cstdint>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "objects/big_endian.h"
#include "objects/error_detail.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int64_t kHeaderBytes = 12;
constexpr int64_t kRowBytes = 12;
constexpr uint32_t kMagic = 0x4d494458;          // MIDX
constexpr uint32_t kPackNames = 0x504e414d;      // PNAM
constexpr uint32_t kFanout = 0x4f494446;         // OIDF
constexpr uint32_t kIds = 0x4f49444c;            // OIDL
constexpr uint32_t kOffsets = 0x4f4f4646;        // OOFF
// Some 200,000 packs.
constexpr int64_t kPackNamesBytesMax = 16 << 20;

class Reader {
 public:
  Reader(const storage::ReadableFile& file, absl::string_view name, ObjectFormat format)
      : file_(file), name_(name), format_(format) {}

  absl::StatusOr<std::vector<std::string>> Read() {
    REPOTXN_ASSIGN_OR_RETURN(size_, file_.Size());
    REPOTXN_RETURN_IF_ERROR(ReadHeader());
    REPOTXN_RETURN_IF_ERROR(ReadTable());
    for (const uint32_t wanted : {kPackNames, kFanout, kIds, kOffsets}) {
      if (chunks_.count(wanted) == 0) return Damage("multi-pack-index lacks a chunk", kHeaderBytes);
    }
    return ReadNames();
  }

 private:
  struct Extent {
    int64_t begin = 0, end = 0;
  };

  absl::Status Damage(absl::string_view what, int64_t offset) const { return Damaged(what, name_, offset); }

  absl::StatusOr<std::string> Bytes(int64_t offset, int64_t bytes) const {
    std::string out(static_cast<size_t>(bytes), '\0');
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(offset, absl::MakeSpan(&out[0], out.size())));
    if (got != out.size()) return Damage("multi-pack-index ends too early", offset);
    return out;
  }

  absl::Status ReadHeader() {
    const int64_t hash_bytes = static_cast<int64_t>(ObjectIdBytes(format_));
    if (size_ < kHeaderBytes + kRowBytes + hash_bytes) return Damage("multi-pack-index is too short", size_);
    REPOTXN_ASSIGN_OR_RETURN(const std::string header, Bytes(0, kHeaderBytes));
    if (LoadBigEndian32(header.data()) != kMagic) return Damage("not a multi-pack-index", 0);
    if (header[4] != 1) {
      return WithDetail(absl::UnimplementedError("multi-pack-index is not of version 1"), "file", name_);
    }
    if (header[5] != (format_ == ObjectFormat::kSha1 ? 1 : 2)) return Damage("multi-pack-index has another hash", 5);
    if (header[7] != 0) return Damage("multi-pack-index has base files", 7);
    chunk_count_ = static_cast<uint8_t>(header[6]);
    pack_count_ = LoadBigEndian32(header.data() + 8);
    checksum_ = size_ - hash_bytes;
    return absl::OkStatus();
  }

  absl::Status ReadTable() {
    const int64_t table_bytes = (chunk_count_ + 1) * kRowBytes;
    const int64_t chunks_begin = kHeaderBytes + table_bytes;
    if (chunks_begin > checksum_) return Damage("multi-pack-index ends in its table", size_);
    REPOTXN_ASSIGN_OR_RETURN(const std::string table, Bytes(kHeaderBytes, table_bytes));
    uint64_t before = static_cast<uint64_t>(chunks_begin);
    uint32_t id = 0;
    for (int64_t row = 0; row <= chunk_count_; ++row) {
      const char* const bytes = table.data() + row * kRowBytes;
      const uint64_t begin = LoadBigEndian64(bytes + 4);
      const int64_t where = kHeaderBytes + row * kRowBytes;
      if (begin < before || begin > static_cast<uint64_t>(checksum_)) {
        return Damage("chunk of a multi-pack-index lies outside", where);
      }
      if (row > 0) {
        const Extent extent{static_cast<int64_t>(before), static_cast<int64_t>(begin)};
        if (!chunks_.emplace(id, extent).second) return Damage("multi-pack-index has a chunk twice", where);
      }
      before = begin;
      id = LoadBigEndian32(bytes);
      if ((id == 0) != (row == chunk_count_)) return Damage("table of a multi-pack-index ends elsewhere", where);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> ReadNames() const {
    const Extent extent = chunks_.at(kPackNames);
    if (extent.end - extent.begin > kPackNamesBytesMax) return Damage("too many pack names", extent.begin);
    REPOTXN_ASSIGN_OR_RETURN(const std::string bytes, Bytes(extent.begin, extent.end - extent.begin));
    std::vector<std::string> names;
    absl::string_view rest = bytes, before;
    while (names.size() < pack_count_) {
      const size_t end = rest.find('\0');
      absl::string_view stem = rest.substr(0, end);
      if (end == absl::string_view::npos || !absl::ConsumeSuffix(&stem, ".idx") || stem.empty() ||
          absl::StrContains(stem, "/") || (!names.empty() && stem <= before)) {
        return Damage("name of a pack in a multi-pack-index", extent.end - static_cast<int64_t>(rest.size()));
      }
      names.emplace_back(stem.data(), stem.size());
      before = stem;
      rest.remove_prefix(end + 1);
    }
    if (rest.find_first_not_of('\0') != absl::string_view::npos) {
      return Damage("more names in a multi-pack-index than packs", extent.end - static_cast<int64_t>(rest.size()));
    }
    return names;
  }

  const storage::ReadableFile& file_;
  const absl::string_view name_;
  const ObjectFormat format_;
  int64_t size_ = 0, checksum_ = 0;  // bytes; where the checksum begins
  int64_t chunk_count_ = 0;
  uint32_t pack_count_ = 0;
  std::map<uint32_t, Extent> chunks_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadPackNames(const storage::ReadableFile& file, absl::string_view name,
                                                       ObjectFormat format) {
  return Reader(file, name, format).Read();
}

}  // namespace repotxn::objects
