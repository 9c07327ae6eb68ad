// Entries of the write-ahead log of a closed store, read one by one; `log list` and `log show`.
//
// Read-only. Thread-compatible.
#ifndef REPOTXN_CLI_LOG_ENTRIES_H_
#define REPOTXN_CLI_LOG_ENTRIES_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/command_line.h"
#include "cli/session.h"
#include "storage/file_system.h"
#include "wal/entry_codec.h"
#include "wal/recovery.h"

namespace repotxn::cli {

// Where reading starts: in front of the first entry of the newest segment that recovery made, or of
// the oldest segment there is. What was trimmed before that is in the repositories and needs no
// log.
wal::LogPosition FirstPosition(const std::vector<wal::ScannedFile>& files);

struct LogRecord {
  wal::EntryHeader header;
  // Empty when the manifest was a payload file that is gone, which it is after the checkpoint that
  // covers the entry.
  std::optional<wal::DecodedEntry> entry;
};

// Reads and decodes one entry wholly. kDataLoss, kUnimplemented; those of the file system.
absl::StatusOr<LogRecord> ReadLogRecord(storage::FileSystem& fs, const storage::ReadableFile& file,
                                        uint64_t salt, const wal::ScannedEntry& entry);

// `log list [--from LSN] [--limit N]`: a line an entry, with what kinds of operations it has.
Outcome RunLogList(const CommandLine& command, const std::string& root, std::ostream& out);
// `log show LSN`: one entry with its operations and its note. kNotFound: not retained, or not there.
Outcome RunLogShow(const CommandLine& command, const std::string& root, std::ostream& out);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_LOG_ENTRIES_H_
