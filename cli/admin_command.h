// Runs a verb of cli/admin_verbs.h and shows its answer.
//
// Lists are read page by page to their end, or to --limit. An answer of the administration that is a
// refusal is shown as it is with --json, else told on `err`; the exit code is kRefused, kUnknown when
// nobody knows yet whether the write was done, kCannotOpen when the store or the server is not there.
//
// Single-threaded.
#ifndef REPOTXN_CLI_ADMIN_COMMAND_H_
#define REPOTXN_CLI_ADMIN_COMMAND_H_

#include <ostream>

#include "cli/command_line.h"
#include "cli/session.h"

namespace repotxn::cli {

// `root` is the absolute path of command.store. Reads the file that --content-of names, relative to the working
// directory. A status that is not OK is still to be told.
Outcome RunAdminVerb(CommandLine command, const std::string& root, std::ostream& out, std::ostream& err);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_ADMIN_COMMAND_H_
