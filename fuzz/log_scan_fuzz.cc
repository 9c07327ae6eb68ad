// Segments: any bytes are scanned within their bounds, and every entry that a scan reports can be
// read back.
//
// The first 4 KiB may be a valid header; when they are not, the input is scanned as if a fixed one
// stood there, so that records are reached without guessing a checksum.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "wal/recovery.h"
#include "wal/segment.h"

namespace {

using repotxn::wal::SegmentHeader;

class BytesFile : public repotxn::storage::ReadableFile {
 public:
  BytesFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> out) const override {
    if (offset < 0) std::abort();
    const size_t start = std::min(static_cast<size_t>(offset), size_);
    const size_t bytes = std::min(out.size(), size_ - start);
    if (bytes > 0) std::memcpy(out.data(), data_ + start, bytes);
    return bytes;
  }
  absl::StatusOr<int64_t> Size() const override { return static_cast<int64_t>(size_); }

 private:
  const uint8_t* const data_;
  const size_t size_;
};

SegmentHeader HeaderFor(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto decoded = repotxn::wal::DecodeSegmentHeader(bytes, 1);
  if (decoded.ok()) return *decoded;
  SegmentHeader header;
  header.number = 1;
  header.salt = 42;
  header.first_lsn = header.supersedes_from = repotxn::wal::Lsn(1);
  return header;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const BytesFile file(data, size);
  repotxn::wal::ScannedFile scanned;
  scanned.number = 1;
  scanned.size = static_cast<int64_t>(size);
  scanned.header = HeaderFor(data, size);
  auto scan = repotxn::wal::ScanSegment(file, *scanned.header);
  if (!repotxn::wal::FindOrphanTraces(file, 1).ok()) std::abort();
  if (!scan.ok()) return 0;
  scanned.scan = *std::move(scan);
  repotxn::wal::Lsn lsn = scanned.header->first_lsn;
  std::string bytes;
  for (const repotxn::wal::ScannedEntry& entry : scanned.scan.entries) {
    if (entry.lsn != lsn) std::abort();
    if (!ReadEntryRecord(file, scanned.header->salt, entry.offset, lsn, &bytes).ok()) std::abort();
    lsn = lsn.Next();
  }
  const auto plan = repotxn::wal::PlanRecovery({}, {scanned});
  if (plan.ok() && plan->end.lsn >= lsn && lsn.value() > 0 && !scanned.scan.entries.empty()) {
    std::abort();
  }
  return 0;
}
