// The commands `verify` and `log verify`.
//
// Order of `verify`, and why:
//   1. LOCK is taken, so that nobody works on the store meanwhile.
//   2. Without CLEAN nothing more is asked: repositories lag behind the log then, which is no
//   fault.
//   3. What opening would wipe or mend is looked at before opening: staging/, snapshots/,
//   lost-found/, the log. A damaged
//      log ends it here; the store is not opened.
//   4. LOCK is given back and the store is opened; catalogue and repositories are compared with
//   what a read
//      transaction sees. Nothing is committed, so the files must equal it.
//   5. The store is closed, and CLEAN must stand there again.
//
// Single-threaded.
#ifndef REPOTXN_CLI_VERIFY_H_
#define REPOTXN_CLI_VERIFY_H_

#include <ostream>
#include <string>

#include "cli/command_line.h"
#include "cli/session.h"

namespace repotxn::cli {

Outcome RunVerify(const CommandLine& command, const std::string& root, std::ostream& out);
Outcome RunLogVerify(const CommandLine& command, const std::string& root, std::ostream& out);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_VERIFY_H_
