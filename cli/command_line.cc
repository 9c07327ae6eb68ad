#include "cli/command_line.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "storage/status_macros.h"

namespace repotxn::cli {
namespace {

constexpr absl::string_view kVersion = "0.1.0";

absl::Status Usage(absl::string_view text) { return absl::InvalidArgumentError(text); }

// Options as they were typed, before anybody knows which command they belong to.
struct Options {
  std::optional<std::string> store;
  std::optional<std::string> server;
  std::optional<std::string> token_file;
  std::optional<std::string> from;
  // Those of AdminVerb::options, without dashes.
  std::map<std::string, std::optional<std::string>> admin;
  bool json = false;
  bool dry_run = false;
  bool tree = false;
  bool all = false;
  bool help = false;
  bool version = false;
};

// Where an option's value is stored; null for an option without value, which sets a flag.
std::optional<std::string>* ValueOption(absl::string_view name, Options& options) {
  if (name == "--store") return &options.store;
  if (name == "--server") return &options.server;
  if (name == "--token-file") return &options.token_file;
  if (name == "--from") return &options.from;
  if (absl::ConsumePrefix(&name, "--") && IsAdminOption(std::string(name))) {
    return &options.admin[std::string(name)];
  }
  return nullptr;
}

bool* FlagOption(absl::string_view name, Options& options) {
  if (name == "--json") return &options.json;
  if (name == "--dry-run") return &options.dry_run;
  if (name == "--tree") return &options.tree;
  if (name == "--all") return &options.all;
  if (name == "--help" || name == "-h") return &options.help;
  if (name == "--version") return &options.version;
  return nullptr;
}

// Takes one option at `index`, and its value, which may be the next argument; `index` ends at the
// last one taken.
absl::Status TakeOption(const std::vector<std::string>& arguments, size_t& index,
                        Options& options) {
  const std::string& argument = arguments[index];
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  if (bool* flag = FlagOption(name, options); flag != nullptr) {
    if (equals != std::string::npos) return Usage(absl::StrCat(name, " takes no value"));
    *flag = true;
    return absl::OkStatus();
  }
  std::optional<std::string>* value = ValueOption(name, options);
  if (value == nullptr) return Usage(absl::StrCat("unknown option ", name));
  if (value->has_value()) return Usage(absl::StrCat(name, " is given twice"));
  if (equals != std::string::npos) {
    *value = argument.substr(equals + 1);
  } else if (index + 1 < arguments.size()) {
    *value = arguments[++index];
  } else {
    return Usage(absl::StrCat(name, " needs a value"));
  }
  if ((*value)->empty()) return Usage(absl::StrCat(name, " needs a value that is not empty"));
  return absl::OkStatus();
}

struct VerbRule {
  Verb verb;
  std::vector<std::string> words;
  // Operands behind the words: at least, at most.
  size_t operands_min;
  size_t operands_max;
  bool takes_consumer = false;   // its operand, not a repository
  bool takes_directory = false;  // as the first operand
  bool takes_dry_run = false;
};

const std::vector<VerbRule>& Rules() {
  static const std::vector<VerbRule>* const rules = new std::vector<VerbRule>{
      {Verb::kInit, {"init"}, 0, 0},
      {Verb::kLogVerify, {"log", "verify"}, 0, 0},
      {Verb::kLogList, {"log", "list"}, 0, 0},
      {Verb::kLogShow, {"log", "show"}, 1, 1},
      {Verb::kRecover, {"recover"}, 0, 0},
      {Verb::kVerify, {"verify"}, 0, 1},
      {Verb::kConsumersList, {"consumers", "list"}, 0, 0},
      {Verb::kConsumersDrop, {"consumers", "drop"}, 1, 1, true},
      {Verb::kAdopt, {"adopt"}, 1, 2, false, true, true},
      {Verb::kUnadopt, {"unadopt"}, 2, 2, false, true},
      {Verb::kReconcile, {"reconcile"}, 0, 0, false, false, true},
  };
  return *rules;
}

bool BeginsWith(const std::vector<std::string>& words, const std::vector<std::string>& prefix) {
  if (words.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (words[i] != prefix[i]) return false;
  }
  return true;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) absl::StrAppend(&text, text.empty() ? "" : " ", word);
  return text;
}

absl::StatusOr<const VerbRule*> FindRule(const std::vector<std::string>& words) {
  for (const VerbRule& rule : Rules()) {
    if (!BeginsWith(words, rule.words)) continue;
    const size_t operands = words.size() - rule.words.size();
    if (operands < rule.operands_min)
      return Usage(absl::StrCat(Joined(rule.words), rule.takes_consumer    ? " needs the name of a consumer"
                                                    : rule.takes_directory ? " needs a directory and a repository path"
                                                    : rule.verb == Verb::kLogShow ? " needs an LSN"
                                                                                  : " needs a repository path"));
    if (operands > rule.operands_max) {
      return Usage(absl::StrCat("unexpected argument ",
                                words[rule.words.size() + rule.operands_max], " behind ",
                                Joined(rule.words)));
    }
    return &rule;
  }
  return Usage(absl::StrCat("unknown command ", Joined(words)));
}

// Options of the administration that were given.
std::map<std::string, std::string> GivenOptions(const Options& options) {
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : options.admin) {
    if (value.has_value()) given[name] = *value;
  }
  if (options.all) given["all"] = "";
  return given;
}

absl::Status ReadAdminVerb(const AdminVerb& verb, const std::vector<std::string>& words,
                           const Options& options, CommandLine& command) {
  command.verb = Verb::kAdmin;
  command.admin = &verb;
  if (command.store.empty() && command.server.empty()) {
    return Usage("--store is missing (or --server)");
  }
  if (options.token_file.has_value() && command.server.empty()) {
    return Usage("--token-file makes no sense without --server");
  }
  if (options.from.has_value()) {
    return Usage(absl::StrCat("--from makes no sense for ", Joined(verb.words)));
  }
  if (options.dry_run || options.tree) {
    return Usage(absl::StrCat(options.dry_run ? "--dry-run" : "--tree", " makes no sense for ", Joined(verb.words)));
  }
  command.token_file = options.token_file.value_or("");
  REPOTXN_ASSIGN_OR_RETURN(command.arguments,
                           ReadAdminArguments(verb, words, GivenOptions(options)));
  // What only the call's own reading can find.
  return verb.call(command.arguments).status();
}

// Of a verb that is none of the administration's.
absl::Status CheckOptions(const VerbRule& rule, const Options& options) {
  const bool is_list = rule.verb == Verb::kLogList;
  std::map<std::string, std::string> given = GivenOptions(options);
  if (is_list) given.erase("limit");
  if (options.from.has_value() && !is_list) given["from"] = "";
  if (options.token_file.has_value()) given["token-file"] = "";
  if (given.empty()) return absl::OkStatus();
  return Usage(
      absl::StrCat("--", given.begin()->first, " makes no sense for ", Joined(rule.words)));
}

absl::Status ReadLogBounds(const VerbRule& rule, const std::vector<std::string>& words,
                           const Options& options, CommandLine& command) {
  const std::string lsn = rule.verb == Verb::kLogShow ? words.back() : options.from.value_or("1");
  if (!absl::SimpleAtoi(lsn, &command.from_lsn) || command.from_lsn == 0) {
    return Usage(absl::StrCat("no LSN: ", lsn));
  }
  const std::map<std::string, std::string> given = GivenOptions(options);
  const auto limit = given.find("limit");
  if (limit == given.end()) return absl::OkStatus();
  uint64_t number = 0;
  if (!absl::SimpleAtoi(limit->second, &number) || number == 0) {
    return Usage("--limit is a positive number");
  }
  command.limit = number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> words;
  bool only_words = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_words && argument == "--") {
      only_words = true;
    } else if (!only_words && argument.size() > 1 && argument[0] == '-') {
      REPOTXN_RETURN_IF_ERROR(TakeOption(arguments, i, options));
    } else {
      words.push_back(argument);
    }
  }

  CommandLine command;
  command.json = options.json;
  if (options.help || options.version) {
    command.verb = options.help ? Verb::kHelp : Verb::kVersion;
    return command;
  }
  if (words.empty()) return Usage("no command is given");
  if (options.server.has_value() && options.store.has_value()) {
    return Usage("--store and --server exclude one another");
  }
  command.store = options.store.value_or("");
  command.server = options.server.value_or("");
  if (const AdminVerb* verb = FindAdminVerb(words); verb != nullptr) {
    REPOTXN_RETURN_IF_ERROR(ReadAdminVerb(*verb, words, options, command));
    return command;
  }
  REPOTXN_ASSIGN_OR_RETURN(const VerbRule* rule, FindRule(words));
  command.verb = rule->verb;
  if (!options.store.has_value()) return Usage("--store is missing");
  REPOTXN_RETURN_IF_ERROR(CheckOptions(*rule, options));
  if (rule->verb == Verb::kLogList || rule->verb == Verb::kLogShow) {
    REPOTXN_RETURN_IF_ERROR(ReadLogBounds(*rule, words, options, command));
    return command;
  }
  if (options.dry_run && !rule->takes_dry_run) {
    return Usage(absl::StrCat("--dry-run makes no sense for ", Joined(rule->words)));
  }
  if (options.tree && rule->verb != Verb::kAdopt) {
    return Usage(absl::StrCat("--tree makes no sense for ", Joined(rule->words)));
  }
  command.dry_run = options.dry_run;
  command.tree = options.tree;
  size_t operands = words.size() - rule->words.size();
  if (rule->takes_directory) {
    command.directory = words[rule->words.size()];
    if (--operands == 0 && !command.tree) return Usage("adopt needs a repository path");
  }
  if (rule->takes_consumer) {
    command.consumer = words.back();
  } else if (operands > 0) {
    const std::string& path = words.back();
    auto parsed = txn::RepositoryPath::ParseUrl(absl::string_view(path.data(), path.size()));
    if (!parsed.ok())
      return Usage(absl::StrCat("no repository path: ", path, ": ", parsed.status().message()));
    command.repository = *std::move(parsed);
    command.has_repository = true;
  }
  return command;
}

std::string UsageText() {
  return R"(usage: repotxn --store DIR COMMAND [--json]
       repotxn --server URL [--token-file FILE] COMMAND [--json]

Works on a repotxn store that no daemon has open, or, where it says so, on a running server.

on both
  repo create PATH [--object-format sha1|sha256] [--head REF]
                             create a repository, and the groups above it
  repo list [--prefix P]     all repositories: id, object format, path
  repo show PATH             one repository: id, format, partition, HEAD, links, refs
  repo delete PATH           its path is free at once; prints the id to bring it back with
  repo undelete ID PATH      bring a deleted repository back
  repo move PATH NEW         give it another path
  repo fork PATH NEW         a new repository that borrows its objects and begins with its refs
  repo pool PATH NEW         a new repository with all its objects, from which it borrows from then on
  repo link PATH POOL        borrow the objects of POOL
  repo unlink PATH POOL      copy what is borrowed, then borrow no more
  refs list PATH [--prefix P]
  refs get PATH NAME
  refs set PATH NAME VALUE [--old VALUE]
  refs delete PATH NAME [--old VALUE]
                             a value is an object id, 'ref: NAME', or 'absent'
  head get PATH
  head set PATH NAME [--old VALUE]
  file list PATH [DIRECTORY] config, hooks, description and whatever else is no ref and no object
  file get PATH FILE         its content, byte for byte
  file put PATH FILE CONTENT [--mode 0755]
  file put PATH FILE --content-of LOCAL-FILE [--mode 0755]
  file delete PATH FILE
  group list [GROUP]
  group remove GROUP         an empty one
  key get KEY                key space of the store, of --partition N or of --repository PATH
  key put KEY VALUE
  key delete KEY
  key list [--first KEY] [--end KEY]
  housekeeping plan [PATH]   what a repository needs, or what all of them do: tasks and reasons
  housekeeping run [PATH] [--all | --task NAMES] [--expire now|TIME]
                             does now what is needed, or all tasks, or those with these names, with commas between: pack-refs,
                             merge-packs, repack, indexes. A repack removes unreachable objects that are older than
                             TIME (14d, 36h, ...; 14 days when not given)
  housekeeping status [PATH] what is needed since when, what runs, and how each task ended the last time
  housekeeping pause, housekeeping resume
                             the work in the background, until the server is started again
  outcome ID                 what became of a transaction; if nobody knows it, it never will be done
  outcome --request ID --issued-at TIME
                             the same of a request id
  Lists take --limit N, and repo list and refs list --after. Writes take --request-id ID: the same
  command with the same id is done once.

on a store only
  init                       make an empty store at DIR
  adopt [--dry-run] SOURCE PATH
                             take the bare repository at SOURCE, a directory below DIR, into the store, by a rename
  adopt [--dry-run] --tree SOURCE [GROUP]
                             the same for all bare repositories below SOURCE
  unadopt TARGET PATH        give a repository back: its directory moves to TARGET, below DIR
  reconcile [--dry-run]      find what differs between catalogue and disk, and mend what can be
  log verify                 read the write-ahead log and check every entry; opens nothing
  log list [--from LSN] [--limit N]
                             entries of the log: LSN, transaction, size, what they do
  log show LSN               one entry, decoded
  recover                    open the store, apply what its log holds, close it cleanly
  verify [PATH]              check a cleanly closed store, or one repository of it, in depth: log, catalogue,
                             left-over files, git fsck, refs as Git and as a transaction see them
  consumers list             readers of the log: how far each is, and what it holds back
  consumers drop NAME        remove one; what it had not acknowledged it will never get

  --json                     answer as one JSON document
  --help, --version

exit codes: 0 fine, 1 something is wrong (see output), 2 usage, 3 the store cannot be opened or the server gives no
answer, 4 refused, 5 not known whether it was done
)";
}

std::string VersionText() { return absl::StrCat("repotxn ", kVersion, "\n"); }

}  // namespace repotxn::cli
