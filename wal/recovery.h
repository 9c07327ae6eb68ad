// Finds out what the log holds, and makes it durable again before anybody believes it.
//
// Two parts: a pure decision over what was scanned, and the steps that carry it out.
//
// Decision (PlanRecovery). `base` is the position above which the log is needed (the low-water
// mark; durable by itself).
//   R1  Files count in the order of their numbers, from the newest segment made by recovery on;
//       older ones are superseded. Of these the scan starts at the last that begins at or below
//       base + 1.
//   R2  Each following segment names its predecessor by number and salt, begins where that ended,
//       and continues its chain. One that does not is kDataLoss: something between is missing.
//   R3  The log ends at the first bad or missing record n. It is a *torn tail* when nothing proves
//       that n was durable, and kDataLoss when something does. Proof: a later group of this life
//       with durable_before >= n, or any later group when the bad record is a group's own (one
//       group at a time is on its way); a segment header with durable LSN >= n; base or `durable`
//       >= n. [A16, C106, C107]
//   R4  At base the chain is base's, at `durable` it is durable's; otherwise kDataLoss.
//   R5  Without any valid header the log is empty, which is right for base = 0 only, and only when
//       no file shows traces that a header was there.
//   R6  A read error is neither an end nor damage: it is returned, nothing is changed, and the call
//       may be repeated [C108]. So is kUnimplemented.
//
// Steps (RecoverLog). The valid tail is what is above base.
//   1. Scan, past the page cache (an earlier process may have seen a sync fail), and decide.
//        Die here: nothing has changed.
//   2. Take a file with a number above all others, a fresh salt, and no valid header; sync the
//      directory.
//        Die here: a file without a header; it does not exist.
//   3. Copy the valid tail into it; sync it.
//        Die here: the same.
//   4. Write its header, which supersedes everything from base + 1 on; sync it.
//        Die here: header not whole, the old segments count; whole, the new one counts. Both hold
//        the same entries.
//   5. Retire the older files: rename them to spare numbers or remove them; sync the directory.
//        Die here: they are superseded already.
// So each LSN has exactly one record that counts at every moment, running it again changes no
// entry, and a cut tail is never appended to. A failure in 2 to 4 leaves the old segments as they
// were; the caller gives up (after a failed sync there is never a second one).
#ifndef REPOTXN_WAL_RECOVERY_H_
#define REPOTXN_WAL_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/file_system.h"
#include "storage/store_path.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"
#include "wal/segment.h"

namespace repotxn::wal {

// A file of the log directory after step 1.
struct ScannedFile {
  uint64_t number = 0;
  int64_t size = 0;                     // bytes
  std::optional<SegmentHeader> header;  // when valid
  SegmentScan scan;                     // with a valid header
  OrphanTraces traces;                  // without one
};

struct RecoveryPlan {
  struct Source {
    uint64_t number = 0;
    std::vector<ScannedEntry> entries;  // above base, in order
  };
  std::vector<Source> tail;
  uint64_t first_needed = 0;  // files of a smaller number hold nothing that counts
  LogPosition end;            // newest entry; base when there is none above it
  uint64_t newest_epoch = 0;  // of any valid header
  int64_t torn_bytes = 0;     // cut; 0 for a clean end
};

// `files` sorted by number. Pure. Errors: kDataLoss, by the rules above.
// `durable`, at or above base: the log is known to reach it with this chain, though what is up to it
// is needed by readers of the log alone. An end below it is damage, never a torn tail.
absl::StatusOr<RecoveryPlan> PlanRecovery(const LogPosition& base, const LogPosition& durable,
                                          absl::Span<const ScannedFile> files);
// The same when nothing above base is known to be durable.
inline absl::StatusOr<RecoveryPlan> PlanRecovery(const LogPosition& base,
                                                 absl::Span<const ScannedFile> files) {
  return PlanRecovery(base, base, files);
}

struct RecoveryOptions {
  storage::StorePath directory;
  int64_t segment_bytes = 64 << 20;
  int spare_segments = 1;
  std::function<uint64_t()> random_salt;
  LogPosition durable;  // see PlanRecovery; base when it is below base
};

// The log as recovery leaves it: one segment, open for appending, and spares.
struct RecoveredLog {
  SegmentHeader header;
  int64_t file_bytes = 0;
  int64_t end_offset = 0;             // the next group goes here
  uint64_t groups = 0;                // ordinal of the last group
  std::vector<ScannedEntry> entries;  // above base, by their place in the new segment
  LogPosition end;
  std::vector<uint64_t> spares;  // files of segment_bytes without a valid header, ascending
  uint64_t number_max = 0;       // newest number in use, spares included
  int64_t torn_bytes = 0;        // reported, not an error
};

// Makes the directory when it is absent. Errors: kDataLoss, kUnimplemented, those of the file
// system.
absl::StatusOr<RecoveredLog> RecoverLog(storage::FileSystem* file_system, const LogPosition& base,
                                        const RecoveryOptions& options);

// Step 1 alone, changing nothing: for `verify` and for tests.
absl::StatusOr<std::vector<ScannedFile>> ScanLog(storage::FileSystem* file_system,
                                                 const storage::StorePath& directory);

// Makes a zero-filled, synced file of `bytes`; the directory is the caller's to sync. Appending
// with fdatasync is three times as fast in a file whose blocks have been written before.
absl::Status MakeZeroFilled(storage::FileSystem* file_system, const storage::StorePath& path,
                            int64_t bytes);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_RECOVERY_H_
