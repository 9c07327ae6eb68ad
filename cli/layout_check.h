// Checks of a closed store's own files: what a clean close must have left behind, and nothing else.
//
// Read-only. Works on a store that nobody has open; the caller holds its LOCK.
#ifndef REPOTXN_CLI_LAYOUT_CHECK_H_
#define REPOTXN_CLI_LAYOUT_CHECK_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/findings.h"
#include "storage/file_system.h"

namespace repotxn::cli {

// Whether the store was closed cleanly. Without that its repositories lag behind the log, and
// comparing anything else would report as wrong what the next open puts right.
absl::StatusOr<bool> WasClosedCleanly(storage::FileSystem& fs);

// staging/ and snapshots/ are empty; lost-found/ holds nothing that nobody has looked at; the root
// holds no stranger.
absl::Status CheckLayout(storage::FileSystem& fs, Findings& findings);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_LAYOUT_CHECK_H_
