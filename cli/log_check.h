// Reads the write-ahead log of a closed store from its first retained entry to its last, without
// opening the store.
//
// Every frame checksum, every part checksum and the chain are verified, and every manifest is
// decoded. A torn tail is no damage: it is what a power failure leaves behind the last answered
// entry, and the next open cuts it off.
//
// Read-only.
#ifndef REPOTXN_CLI_LOG_CHECK_H_
#define REPOTXN_CLI_LOG_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/findings.h"
#include "storage/file_system.h"
#include "wal/entry_codec.h"

namespace repotxn::cli {

struct LogSummary {
  int64_t segments = 0;        // segment files with a valid header
  int64_t spare_segments = 0;  // files without one: made ahead or being recycled
  int64_t entries = 0;
  uint64_t first_lsn = 0;  // 0 when no entry is retained
  uint64_t last_lsn = 0;
  wal::LogPosition end;    // newest entry, retained or not
  int64_t torn_bytes = 0;  // bytes behind the last valid group that a torn write left
};

// Damage goes to `findings` under "log"; the summary covers what could be read.
//
// Errors: only those of reading the files.
absl::StatusOr<LogSummary> CheckLog(storage::FileSystem& fs, Findings& findings);

// Whether the log of a cleanly closed store ends where CLEAN says. A log that ends earlier has lost
// answered entries, however whole it looks; a torn tail cannot be there either.
absl::Status CheckLogEnd(storage::FileSystem& fs, const LogSummary& log, Findings& findings);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_LOG_CHECK_H_
