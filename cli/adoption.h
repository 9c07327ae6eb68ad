// The commands that take repositories in, give them back, and mend what differs.
//
// Single-threaded.
#ifndef REPOTXN_CLI_ADOPTION_H_
#define REPOTXN_CLI_ADOPTION_H_

#include <ostream>
#include <string>

#include "cli/command_line.h"
#include "cli/session.h"

namespace repotxn::cli {

// ExitCode::kFoundWrong when something of a tree, or of a dry run, cannot be adopted.
Outcome RunAdopt(const CommandLine& command, const std::string& root, std::ostream& out);
Outcome RunUnadopt(const CommandLine& command, const std::string& root, std::ostream& out);
// ExitCode::kFoundWrong when something was found, mended or not. Nobody else has the store open, so one look is enough.
Outcome RunReconcile(const CommandLine& command, const std::string& root, std::ostream& out);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_ADOPTION_H_
