// The commands of `repotxn`, behind the parsed command line.
//
// Every command works on a store that no other process has open, the verbs of cli/admin_verbs.h on a
// server too. Those, `recover`, `init` and `verify` open the store, which recovers it, and close it
// cleanly; `log` opens nothing.
//
// `verify` looks first and opens second: a store that was not closed cleanly is reported as such
// and left alone, so that nothing is repaired under the eyes of somebody who wants to know what
// happened. On a clean store it changes nothing beyond what opening and closing change (LOCK,
// CLEAN, meta/, an empty group at the log's end).
//
// Answers go to `out` (text, or one JSON document with `json`), complaints to `err`. With `json` an
// error is a document
// {"error": {"code", "message"}} on `out` as well, so that a script needs to read one stream only.
//
// Single-threaded.
#ifndef REPOTXN_CLI_COMMANDS_H_
#define REPOTXN_CLI_COMMANDS_H_

#include <ostream>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/exit_code.h"

namespace repotxn::cli {

// Runs one command to its end.
ExitCode RunCommand(const CommandLine& command, std::ostream& out, std::ostream& err);

// Parses and runs; `arguments` without the program's name.
ExitCode Main(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_COMMANDS_H_
