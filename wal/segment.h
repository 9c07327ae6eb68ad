// Format of a segment file, log/<n>.seg: this node's own frame around entries.
//
// Layout. Integers are little-endian. A header of 4 KiB, then groups from offset 4096 on, each
// group one group record followed by its entry records; every record begins at a multiple of 8 and
// is padded with zeros to one.
//
//   Segment header
//   offset  bytes  field
//        0      8  magic
//        8      4  format level (1)
//       12      4  zero
//       16      8  segment number, as in the file's name
//       24      8  salt: random, this life's own
//       32      8  epoch
//       40      8  first LSN
//       48      8  supersedes-from LSN, or 0
//       56      8  durable LSN
//       64     16  chain before the first LSN
//       80      8  number of the segment before, or 0
//       88      8  salt of the segment before, or 0
//       96      8  XXH3-64, seed 0, of bytes 0..95
//      104      -  zeros to 4096
//
//   Record frame
//   offset  bytes  field
//        0      4  magic
//        4      1  type: 1 group, 2 entry
//        5      3  zero
//        8      8  salt of this life
//       16      8  payload bytes
//       24      8  XXH3-64, seeded with the salt, of bytes 0..23 and the first part of the payload:
//                  the group header, or the entry's header
//       32      -  payload
//
//   Group header, the payload of a group record
//   offset  bytes  field
//        0      8  segment number
//        8      8  LSN of the first entry; the next one when the group is empty
//       16      4  number of entries
//       20      4  zero
//       24      8  durable_before: newest LSN whose sync had succeeded
//       32      8  newest LSN known committed
//       40      8  ordinal of the group in this life
//
//   The payload of an entry record is an entry (wal/entry_codec.h): header, body, dropped list.
//
// A record is valid when (1) frame and first part have their checksum under this life's salt, (2)
// lengths agree and stay inside the file, (3) for an entry: it is the next LSN, continues the
// chain, and its parts have their checksums. A newer level, of the segment or of an entry, is
// kUnimplemented; a new record type raises the segment's level.
//
// Lives. Files are reused without being cleared: renamed to a number never used before, and given a
// fresh random salt. A header whose number is not the file's does not count, nor does a record with
// another salt, so what an earlier life left behind never counts [A17].
//
// Writing, and what a crash leaves. A group is written with one WriteAt, and with the segment
// header in the same write when it is the first one; then the file is synced; only then is the next
// group written. So every group but the last of the log was synced whole. Sectors of an unsynced
// group persist in any order: any of its records may be bad, the others good. Therefore a bad
// record n is a torn tail exactly when nothing later in this life proves that n was durable; a
// later group does (its durable_before), and so does the durable LSN of a segment header [A16].
//
// Ordinals. Groups count from 1. Recovery gives all groups that it copies the ordinal 1, and writes
// the header after them; so in both kinds of segment a group with ordinal 2 or more is written only
// after the header was synced. That tells a header that never was from one that has been damaged.
//
// Limits: a segment has 64 KiB to 1 GiB (one made by recovery may be larger), a record at most a
// quarter of it.
#ifndef REPOTXN_WAL_SEGMENT_H_
#define REPOTXN_WAL_SEGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"

namespace repotxn::wal {

inline constexpr uint32_t kSegmentFormatLevel = 1;
inline constexpr int64_t kSegmentHeaderBytes = 4096;
inline constexpr int64_t kSegmentBytesMin = 64 << 10;
inline constexpr int64_t kSegmentBytesMax = 1 << 30;
inline constexpr int64_t kRecordFrameBytes = 32;
inline constexpr int64_t kGroupHeaderBytes = 48;
inline constexpr int64_t kGroupRecordBytes = kRecordFrameBytes + kGroupHeaderBytes;
inline constexpr int64_t kRecordBytesMax = kSegmentBytesMax / 4;
static_assert(kGroupRecordBytes % 8 == 0 && kSegmentHeaderBytes % 8 == 0);

struct SegmentHeader {
  uint64_t number = 0;
  uint64_t salt = 0;
  uint64_t epoch = 0;
  Lsn first_lsn;
  // Set in a segment made by recovery: every older segment counts only below it.
  Lsn supersedes_from;
  // Everything up to here was synced, here or in older segments, before this header was written.
  Lsn durable_lsn;
  ChainChecksum previous_chain;
  // The segment that this one continues; 0 in one made by recovery.
  uint64_t previous_number = 0;
  uint64_t previous_salt = 0;

  bool is_recovered() const { return supersedes_from != Lsn::Zero(); }
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

struct GroupHeader {
  uint64_t segment_number = 0;
  Lsn first_lsn;
  uint32_t entries = 0;
  Lsn durable_before;
  Lsn known_committed;
  uint64_t ordinal = 1;

  friend bool operator==(const GroupHeader&, const GroupHeader&) = default;
};

// "<n>.seg" and back; 0 for any other name.
std::string SegmentFileName(uint64_t number);
uint64_t SegmentNumberOf(absl::string_view file_name);

// Bytes that an entry with these parts takes in a segment, padding included.
constexpr int64_t EntryRecordBytes(int64_t body_bytes, int64_t dropped_bytes) {
  return (kRecordFrameBytes + kEntryHeaderBytes + body_bytes + dropped_bytes + 7) / 8 * 8;
}

// Exactly kSegmentHeaderBytes.
std::string EncodeSegmentHeader(const SegmentHeader& header);
// Reads the header of the file with this number.
// Errors: kNotFound there is none (zeros, torn, damaged, or of another number); kUnimplemented a
// newer level.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(absl::string_view bytes, uint64_t number);

void AppendGroupRecord(uint64_t salt, const GroupHeader& group, std::string* out);
void AppendEntryRecord(uint64_t salt, const SealedEntry& entry, std::string* out);
// The same from an entry's bytes as they stood in another segment.
void AppendEntryRecord(uint64_t salt, absl::string_view entry_bytes, std::string* out);

// Where a valid entry stands.
struct ScannedEntry {
  Lsn lsn;
  TransactionId transaction_id;
  ChainChecksum chain;
  uint64_t epoch = 0;
  int64_t offset = 0;       // of its record
  int64_t entry_bytes = 0;  // of the entry, without frame and padding

  friend bool operator==(const ScannedEntry&, const ScannedEntry&) = default;
};

// What a scan found, up to the first place that is not a valid continuation.
struct SegmentScan {
  std::vector<ScannedEntry> entries;
  Lsn next_lsn;               // of the entry that would come next
  ChainChecksum chain;        // before it
  int64_t end_offset = 0;     // behind the last valid record
  uint64_t groups = 0;        // valid group records
  uint64_t last_ordinal = 0;  // of the last of them
  Lsn known_committed;        // newest in a valid group
  // What is behind the end, of this life.
  bool inside_group = false;  // the last group record promised more entries
  bool later_group = false;   // a valid group record stands behind the end
  Lsn later_durable_before;   // newest in those
  int64_t later_bytes = 0;  // from the end to behind the last trace of this life; 0 for a clean end
};

// Scans the groups of a segment whose header was valid. Bounded memory apart from the result.
// Errors: those of reading, never taken for an end; kUnimplemented a record of a newer form.
absl::StatusOr<SegmentScan> ScanSegment(const storage::ReadableFile& file,
                                        const SegmentHeader& header);

// Whether a file without a valid header holds groups of its own number, whatever their salt.
struct OrphanTraces {
  bool has_entries = false;  // some such group promises entries
  bool proves_header =
      false;  // some such group comes after one that was synced, and with it the header
};
absl::StatusOr<OrphanTraces> FindOrphanTraces(const storage::ReadableFile& file, uint64_t number);

// Reads and checks one entry record whose place is known. `bytes` gets the whole entry.
// Errors: kDataLoss it is not the record with this salt and LSN; those of reading.
absl::StatusOr<EntryHeader> ReadEntryRecord(const storage::ReadableFile& file, uint64_t salt,
                                            int64_t offset, Lsn lsn, std::string* bytes);

// What stands at a place of a segment, by its frame and first part alone.
struct RecordAt {
  enum class Kind : uint8_t { kNone, kGroup, kEntry };
  Kind kind = Kind::kNone;
  int64_t record_bytes = 0;  // padding included
  GroupHeader group;         // for kGroup
  EntryHeader entry;         // for kEntry; its chain and parts are not checked yet
};
absl::StatusOr<RecordAt> ReadRecordAt(const storage::ReadableFile& file, uint64_t salt,
                                      int64_t offset);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_SEGMENT_H_
