// Command line of `repotxn` as a value.
//
//   repotxn --store DIR init
//   repotxn --store DIR | --server URL [--token-file FILE] VERB   (cli/admin_verbs.h)
//   repotxn --store DIR adopt [--dry-run] SOURCE PATH
//   repotxn --store DIR adopt [--dry-run] --tree SOURCE [GROUP]
//   repotxn --store DIR unadopt TARGET PATH
//   repotxn --store DIR reconcile [--dry-run]
//   repotxn --store DIR log verify
//   repotxn --store DIR log list [--from LSN] [--limit N]
//   repotxn --store DIR log show LSN
//   repotxn --store DIR recover
//   repotxn --store DIR verify [PATH]
//   repotxn --store DIR consumers list
//   repotxn --store DIR consumers drop NAME
//   repotxn --help | --version
//
// `--json` turns the answer into one JSON document on standard output. Options may stand before,
// between or behind the words of a command, as `--name value` or `--name=value`; `--` ends them.
// Pure: looks at nothing but its arguments.
#ifndef REPOTXN_CLI_COMMAND_LINE_H_
#define REPOTXN_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/admin_verbs.h"
#include "txn/repository_path.h"

namespace repotxn::cli {

enum class Verb : uint8_t {
  kHelp,
  kVersion,
  kInit,
  kAdmin,
  kLogVerify,
  kLogList,
  kLogShow,
  kRecover,
  kVerify,
  kConsumersList,
  kConsumersDrop,
  kAdopt,
  kUnadopt,
  kReconcile,
};

struct CommandLine {
  Verb verb = Verb::kHelp;
  // Root of the store as it was typed; relative to the working directory. Empty for help and
  // version, and with a server.
  std::string store;
  // URL of a server, and the file with the token for it; only of kAdmin.
  std::string server;
  std::string token_file;
  // Of kAdmin. A flag among the options has an empty value.
  const AdminVerb* admin = nullptr;
  AdminArguments arguments;
  // Of `log list` (first LSN, most entries; 0: all) and `log show` (the LSN).
  uint64_t from_lsn = 0;
  size_t limit = 0;
  // Repository of `unadopt` and, optionally, `verify`; where `adopt` puts what it takes: with `--tree` a group, optionally.
  txn::RepositoryPath repository;
  bool has_repository = false;
  std::string consumer;  // of `consumers drop`
  // Directory of `adopt` (taken from) and `unadopt` (given to), below the store's root.
  std::string directory;
  bool dry_run = false;
  bool tree = false;
  bool json = false;
};

// Parses the arguments behind the program's name.
//
// Errors: kInvalidArgument with a message for people that names the argument; UsageText() tells the
// rest.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// What --help prints, newline at the end.
std::string UsageText();
// What --version prints, newline at the end.
std::string VersionText();

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_COMMAND_LINE_H_
