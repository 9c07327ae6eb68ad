#include "objects/cruft_times.h"

#include "objects/big_endian.h"
#include "storage/checksum.h"

namespace repotxn::objects {
namespace {

constexpr uint32_t kMagic = 0x4d544d45;  // "MTME"
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 12;

uint32_t HashNumber(ObjectFormat format) { return format == ObjectFormat::kSha1 ? 1 : 2; }

}  // namespace

std::string FormatCruftTimes(const std::vector<uint32_t>& times, absl::string_view pack_checksum, ObjectFormat format) {
  std::string bytes;
  bytes.reserve(kHeaderBytes + 4 * times.size() + 64);
  AppendBigEndian32(kMagic, &bytes);
  AppendBigEndian32(kVersion, &bytes);
  AppendBigEndian32(HashNumber(format), &bytes);
  for (const uint32_t time : times) AppendBigEndian32(time, &bytes);
  bytes.append(pack_checksum.data(), pack_checksum.size());
  return bytes + (format == ObjectFormat::kSha1 ? storage::Sha1(bytes) : storage::Sha256(bytes));
}

int64_t CruftTimesCount(absl::string_view bytes, ObjectFormat format) {
  const size_t others = kHeaderBytes + 2 * ObjectIdBytes(format);
  return bytes.size() < others ? 0 : static_cast<int64_t>((bytes.size() - others) / 4);
}

absl::StatusOr<std::vector<uint32_t>> ParseCruftTimes(absl::string_view bytes, int64_t count, ObjectFormat format) {
  const size_t hash_bytes = ObjectIdBytes(format);
  if (count < 0 || static_cast<uint64_t>(count) > bytes.size() ||
      bytes.size() != kHeaderBytes + 4 * static_cast<size_t>(count) + 2 * hash_bytes) {
    return absl::DataLossError("times of a cruft pack have another size than the pack asks for");
  }
  if (LoadBigEndian32(bytes.data()) != kMagic || LoadBigEndian32(bytes.data() + 4) != kVersion ||
      LoadBigEndian32(bytes.data() + 8) != HashNumber(format)) {
    return absl::DataLossError("times of a cruft pack have an unknown header");
  }
  const absl::string_view covered = bytes.substr(0, bytes.size() - hash_bytes);
  const std::string checksum = format == ObjectFormat::kSha1 ? storage::Sha1(covered) : storage::Sha256(covered);
  if (absl::string_view(checksum) != bytes.substr(covered.size())) {
    return absl::DataLossError("times of a cruft pack do not match their checksum");
  }
  std::vector<uint32_t> times;
  times.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) times.push_back(LoadBigEndian32(bytes.data() + kHeaderBytes + 4 * i));
  return times;
}

}  // namespace repotxn::objects
