#include "wal/segment.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/status_macros.h"
#include "wal/byte_order.h"
#include "wal/segment_window.h"

namespace repotxn::wal {
namespace {

constexpr uint64_t kSegmentMagic = 0x676573'6e787472;  // "rtxnseg"
constexpr uint32_t kRecordMagic = 0x63657254;          // "Trec"
constexpr uint8_t kGroupType = 1;
constexpr uint8_t kEntryType = 2;
constexpr size_t kHeaderChecksumAt = 96;
constexpr size_t kFrameChecksumAt = 24;
constexpr size_t kFrameBytes = static_cast<size_t>(kRecordFrameBytes);
constexpr size_t kGroupBytes = static_cast<size_t>(kGroupHeaderBytes);
constexpr size_t kEntryBytes = static_cast<size_t>(kEntryHeaderBytes);
static_assert(kFrameChecksumAt + 8 == kFrameBytes);

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

int64_t Aligned(int64_t bytes) { return (bytes + 7) / 8 * 8; }

// Checksum over the frame without its own field, and the first part of the payload.
uint64_t FrameChecksum(absl::string_view frame, absl::string_view first_part, uint64_t salt) {
  char input[kFrameChecksumAt + kEntryBytes];
  REPOTXN_DCHECK(first_part.size() <= kEntryBytes);
  std::memcpy(input, frame.data(), kFrameChecksumAt);
  std::memcpy(input + kFrameChecksumAt, first_part.data(), first_part.size());
  return storage::Xxh3Seeded(absl::string_view(input, kFrameChecksumAt + first_part.size()), salt);
}

void AppendFrame(uint8_t type, uint64_t salt, int64_t payload_bytes, absl::string_view first_part,
                 std::string* out) {
  const size_t start = out->size();
  Append32(kRecordMagic, out);
  AppendLittle(type, 4, out);
  Append64(salt, out);
  Append64(static_cast<uint64_t>(payload_bytes), out);
  const absl::string_view frame(out->data() + start, kFrameChecksumAt);
  Append64(FrameChecksum(frame, first_part, salt), out);
}

void Pad(std::string* out) { out->resize((out->size() + 7) / 8 * 8, '\0'); }

GroupHeader LoadGroup(absl::string_view bytes) {
  GroupHeader group;
  group.segment_number = Load64(bytes, 0);
  group.first_lsn = Lsn(Load64(bytes, 8));
  group.entries = Load32(bytes, 16);
  group.durable_before = Lsn(Load64(bytes, 24));
  group.known_committed = Lsn(Load64(bytes, 32));
  group.ordinal = Load64(bytes, 40);
  return group;
}

// Whether a frame of this kind of record stands at the beginning of `bytes`.
bool HasFrame(absl::string_view bytes, uint64_t salt) {
  return bytes.size() >= kFrameBytes && Load32(bytes, 0) == kRecordMagic &&
         Load64(bytes, 8) == salt;
}

// Reads what stands at `offset`. A record that is not valid is kNone.
absl::StatusOr<RecordAt> RecordIn(SegmentWindow* window, uint64_t salt, int64_t offset) {
  RecordAt record;
  REPOTXN_ASSIGN_OR_RETURN(const absl::string_view bytes,
                           window->View(offset, kFrameBytes + kEntryBytes));
  if (!HasFrame(bytes, salt)) return record;
  const uint64_t type = LoadLittle(bytes, 4, 4);
  const size_t first_bytes = type == kGroupType ? kGroupBytes : kEntryBytes;
  if ((type != kGroupType && type != kEntryType) || bytes.size() < kFrameBytes + first_bytes) {
    return record;
  }
  const absl::string_view first_part = bytes.substr(kFrameBytes, first_bytes);
  if (FrameChecksum(bytes, first_part, salt) != Load64(bytes, kFrameChecksumAt)) return record;
  const uint64_t payload_bytes = Load64(bytes, 16);
  if (payload_bytes < first_bytes || payload_bytes > static_cast<uint64_t>(kRecordBytesMax) ||
      offset + kRecordFrameBytes + static_cast<int64_t>(payload_bytes) > window->file_bytes()) {
    return record;
  }
  if (type == kGroupType) {
    if (payload_bytes != first_bytes || Load32(first_part, 20) != 0) return record;
    record.group = LoadGroup(first_part);
    record.kind = RecordAt::Kind::kGroup;
  } else {
    absl::StatusOr<EntryHeader> entry = DecodeEntryHeader(first_part);
    if (absl::IsUnimplemented(entry.status())) return entry.status();
    if (!entry.ok()) return record;
    if (payload_bytes != kEntryBytes + entry->body_bytes + entry->dropped_bytes) return record;
    record.entry = *std::move(entry);
    record.kind = RecordAt::Kind::kEntry;
  }
  record.record_bytes = Aligned(kRecordFrameBytes + static_cast<int64_t>(payload_bytes));
  return record;
}

// One pass over a segment; see ScanSegment.
class Scanner {
 public:
  Scanner(const SegmentHeader& header, SegmentWindow* window) : header_(header), window_(window) {
    scan_.next_lsn = header.first_lsn;
    scan_.chain = header.previous_chain;
    scan_.end_offset = kSegmentHeaderBytes;
    // Ordinal 1 is that of copies, of which there may be none or many.
    last_ordinal_ = header.is_recovered() ? 1 : 0;
  }

  absl::StatusOr<SegmentScan> Run() {
    while (true) {
      REPOTXN_ASSIGN_OR_RETURN(const RecordAt record,
                               RecordIn(window_, header_.salt, scan_.end_offset));
      REPOTXN_ASSIGN_OR_RETURN(const bool continues, Continue(record));
      if (!continues) break;
      scan_.end_offset += record.record_bytes;
    }
    scan_.inside_group = open_entries_ > 0;
    REPOTXN_RETURN_IF_ERROR(LookBehindEnd());
    return std::move(scan_);
  }

 private:
  absl::StatusOr<bool> Continue(const RecordAt& record) {
    if (open_entries_ == 0) return record.kind == RecordAt::Kind::kGroup && OpenGroup(record.group);
    if (record.kind != RecordAt::Kind::kEntry) return false;
    return TakeEntry(record);
  }

  bool OpenGroup(const GroupHeader& group) {
    const bool ordinal_is_next =
        group.ordinal == last_ordinal_ + 1 ||
        (header_.is_recovered() && group.ordinal == 1 && last_ordinal_ == 1);
    if (group.segment_number != header_.number || group.first_lsn != scan_.next_lsn ||
        group.durable_before >= scan_.next_lsn || !ordinal_is_next) {
      return false;
    }
    last_ordinal_ = group.ordinal;
    open_entries_ = group.entries;
    ++scan_.groups;
    scan_.last_ordinal = group.ordinal;
    scan_.known_committed = std::max(scan_.known_committed, group.known_committed);
    return true;
  }

  absl::StatusOr<bool> TakeEntry(const RecordAt& record) {
    const EntryHeader& entry = record.entry;
    const int64_t entry_bytes = kEntryHeaderBytes + entry.body_bytes + entry.dropped_bytes;
    REPOTXN_ASSIGN_OR_RETURN(
        const absl::string_view bytes,
        window_->View(scan_.end_offset + kRecordFrameBytes, static_cast<size_t>(entry_bytes)));
    if (bytes.size() != static_cast<size_t>(entry_bytes)) return false;
    if (entry.lsn != scan_.next_lsn || entry.chain != ContinueChain(scan_.chain, bytes) ||
        !PartsMatch(entry, bytes.substr(kEntryBytes))) {
      return false;
    }
    scan_.entries.push_back(ScannedEntry{entry.lsn, entry.transaction_id, entry.chain, entry.epoch,
                                         scan_.end_offset, entry_bytes});
    scan_.next_lsn = entry.lsn.Next();
    scan_.chain = entry.chain;
    --open_entries_;
    return true;
  }

  // Looks for traces of this life behind the end: only they tell damage from a clean or torn end.
  // Contents of entries cannot imitate one, since their authors do not know the salt.
  absl::Status LookBehindEnd() {
    int64_t traces_end = scan_.end_offset;
    REPOTXN_RETURN_IF_ERROR(ForEachRecordMagic(
        window_, scan_.end_offset, kRecordMagic, [&](int64_t offset) -> absl::Status {
          REPOTXN_ASSIGN_OR_RETURN(const absl::string_view bytes,
                                   window_->View(offset, kFrameBytes));
          if (!HasFrame(bytes, header_.salt)) return absl::OkStatus();
          traces_end = std::max(traces_end, offset + kRecordFrameBytes);
          REPOTXN_ASSIGN_OR_RETURN(const RecordAt record, RecordIn(window_, header_.salt, offset));
          traces_end = std::max(traces_end, offset + record.record_bytes);
          if (record.kind == RecordAt::Kind::kGroup) {
            scan_.later_group = true;
            scan_.later_durable_before =
                std::max(scan_.later_durable_before, record.group.durable_before);
          }
          return absl::OkStatus();
        }));
    scan_.later_bytes = traces_end - scan_.end_offset;
    return absl::OkStatus();
  }

  const SegmentHeader& header_;
  SegmentWindow* const window_;
  SegmentScan scan_;
  uint64_t last_ordinal_ = 0;
  uint32_t open_entries_ = 0;  // promised by the last group record and not met yet
};

}  // namespace

std::string SegmentFileName(uint64_t number) { return absl::StrCat(number, ".seg"); }

uint64_t SegmentNumberOf(absl::string_view file_name) {
  uint64_t number = 0;
  if (!absl::ConsumeSuffix(&file_name, ".seg") || !absl::SimpleAtoi(file_name, &number)) return 0;
  // One name a number: "01.seg" or "+1.seg" is not ours.
  return absl::StrCat(number) == file_name ? number : 0;
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  REPOTXN_DCHECK(header.number > 0 && header.first_lsn > Lsn::Zero());
  std::string out;
  Append64(kSegmentMagic, &out);
  Append32(kSegmentFormatLevel, &out);
  Append32(0, &out);
  Append64(header.number, &out);
  Append64(header.salt, &out);
  Append64(header.epoch, &out);
  Append64(header.first_lsn.value(), &out);
  Append64(header.supersedes_from.value(), &out);
  Append64(header.durable_lsn.value(), &out);
  AppendBytes(header.previous_chain.view(), &out);
  Append64(header.previous_number, &out);
  Append64(header.previous_salt, &out);
  REPOTXN_DCHECK(out.size() == kHeaderChecksumAt);
  Append64(storage::Xxh3(ViewOf(out)), &out);
  out.resize(static_cast<size_t>(kSegmentHeaderBytes), '\0');
  return out;
}

absl::StatusOr<SegmentHeader> DecodeSegmentHeader(absl::string_view bytes, uint64_t number) {
  const absl::Status none = absl::NotFoundError("segment has no valid header");
  if (bytes.size() < static_cast<size_t>(kSegmentHeaderBytes)) return none;
  const absl::string_view fields = bytes.substr(0, kHeaderChecksumAt);
  if (Load64(bytes, 0) != kSegmentMagic ||
      Load64(bytes, kHeaderChecksumAt) != storage::Xxh3(fields) || Load64(bytes, 16) != number) {
    return none;
  }
  if (Load32(bytes, 8) > kSegmentFormatLevel) {
    return absl::UnimplementedError("segment has a newer format level");
  }
  SegmentHeader header;
  header.number = number;
  header.salt = Load64(bytes, 24);
  header.epoch = Load64(bytes, 32);
  header.first_lsn = Lsn(Load64(bytes, 40));
  header.supersedes_from = Lsn(Load64(bytes, 48));
  header.durable_lsn = Lsn(Load64(bytes, 56));
  REPOTXN_ASSIGN_OR_RETURN(header.previous_chain, ChainChecksum::FromBytes(bytes.substr(64, 16)));
  header.previous_number = Load64(bytes, 80);
  header.previous_salt = Load64(bytes, 88);
  const bool kind_is_right =
      header.is_recovered()
          ? header.supersedes_from == header.first_lsn && header.previous_number == 0 &&
                header.previous_salt == 0
          : header.previous_number != 0 && header.durable_lsn.Next() == header.first_lsn;
  if (Load32(bytes, 8) != kSegmentFormatLevel || Load32(bytes, 12) != 0 ||
      header.first_lsn == Lsn::Zero() || !kind_is_right ||
      !IsZeroFilled(bytes, kHeaderChecksumAt + 8, static_cast<size_t>(kSegmentHeaderBytes))) {
    return none;
  }
  return header;
}

void AppendGroupRecord(uint64_t salt, const GroupHeader& group, std::string* out) {
  REPOTXN_DCHECK(group.durable_before < group.first_lsn);
  std::string payload;
  Append64(group.segment_number, &payload);
  Append64(group.first_lsn.value(), &payload);
  Append32(group.entries, &payload);
  Append32(0, &payload);
  Append64(group.durable_before.value(), &payload);
  Append64(group.known_committed.value(), &payload);
  Append64(group.ordinal, &payload);
  REPOTXN_DCHECK(payload.size() == kGroupBytes);
  AppendFrame(kGroupType, salt, kGroupHeaderBytes, ViewOf(payload), out);
  out->append(payload);
}

void AppendEntryRecord(uint64_t salt, const SealedEntry& entry, std::string* out) {
  AppendFrame(kEntryType, salt, entry.size(),
              absl::string_view(entry.header.data(), entry.header.size()), out);
  out->append(entry.header.data(), entry.header.size());
  out->append(entry.body);
  out->append(entry.dropped);
  Pad(out);
}

void AppendEntryRecord(uint64_t salt, absl::string_view entry_bytes, std::string* out) {
  AppendFrame(kEntryType, salt, static_cast<int64_t>(entry_bytes.size()),
              entry_bytes.substr(0, kEntryBytes), out);
  AppendBytes(entry_bytes, out);
  Pad(out);
}

absl::StatusOr<SegmentScan> ScanSegment(const storage::ReadableFile& file,
                                        const SegmentHeader& header) {
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  SegmentWindow window(&file, size);
  return Scanner(header, &window).Run();
}

absl::StatusOr<OrphanTraces> FindOrphanTraces(const storage::ReadableFile& file, uint64_t number) {
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  SegmentWindow window(&file, size);
  OrphanTraces traces;
  REPOTXN_RETURN_IF_ERROR(ForEachRecordMagic(
      &window, kSegmentHeaderBytes, kRecordMagic, [&](int64_t offset) -> absl::Status {
        REPOTXN_ASSIGN_OR_RETURN(const absl::string_view bytes, window.View(offset, kFrameBytes));
        if (bytes.size() < kFrameBytes) return absl::OkStatus();
        // The salt is taken from the frame itself: the header that would tell it is not there.
        absl::StatusOr<RecordAt> record = RecordIn(&window, Load64(bytes, 8), offset);
        if (absl::IsUnimplemented(record.status())) return absl::OkStatus();
        if (!record.ok()) return record.status();
        if (record->kind != RecordAt::Kind::kGroup || record->group.segment_number != number) {
          return absl::OkStatus();
        }
        traces.has_entries |= record->group.entries > 0;
        traces.proves_header |= record->group.ordinal >= 2;
        return absl::OkStatus();
      }));
  return traces;
}

absl::StatusOr<RecordAt> ReadRecordAt(const storage::ReadableFile& file, uint64_t salt,
                                      int64_t offset) {
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  SegmentWindow window(&file, size, static_cast<int64_t>(kFrameBytes + kEntryBytes));
  return RecordIn(&window, salt, offset);
}

absl::StatusOr<EntryHeader> ReadEntryRecord(const storage::ReadableFile& file, uint64_t salt,
                                            int64_t offset, Lsn lsn, std::string* bytes) {
  const absl::Status damaged = absl::DataLossError("log entry is damaged");
  REPOTXN_ASSIGN_OR_RETURN(const RecordAt record, ReadRecordAt(file, salt, offset));
  if (record.kind != RecordAt::Kind::kEntry || record.entry.lsn != lsn) return damaged;
  bytes->resize(kEntryBytes + record.entry.body_bytes + record.entry.dropped_bytes);
  REPOTXN_ASSIGN_OR_RETURN(
      const size_t read,
      file.ReadAt(offset + kRecordFrameBytes, absl::Span<char>(&(*bytes)[0], bytes->size())));
  if (read != bytes->size()) return damaged;
  // The header is read again here: what is believed is what was checked.
  absl::StatusOr<EntryHeader> header = DecodeEntryHeader(ViewOf(*bytes).substr(0, kEntryBytes));
  if (!header.ok()) return header.status();
  if (*header != record.entry || !PartsMatch(*header, ViewOf(*bytes).substr(kEntryBytes))) {
    return damaged;
  }
  return header;
}

}  // namespace repotxn::wal
