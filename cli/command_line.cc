#include "cli/command_line.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/status_macros.h"

namespace repotxn::cli {
namespace {

constexpr absl::string_view kVersion = "0.1.0";

absl::Status Usage(absl::string_view text) { return absl::InvalidArgumentError(text); }

// Options as they were typed, before anybody knows which command they belong to.
struct Options {
  std::optional<std::string> store;
  std::optional<std::string> object_format;
  bool json = false;
  bool dry_run = false;
  bool tree = false;
  bool help = false;
  bool version = false;
};

// Where an option's value is stored; null for an option without value, which sets a flag.
std::optional<std::string>* ValueOption(absl::string_view name, Options& options) {
  if (name == "--store") return &options.store;
  if (name == "--object-format") return &options.object_format;
  return nullptr;
}

bool* FlagOption(absl::string_view name, Options& options) {
  if (name == "--json") return &options.json;
  if (name == "--dry-run") return &options.dry_run;
  if (name == "--tree") return &options.tree;
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
  bool takes_object_format = false;
  bool takes_consumer = false;   // its operand, not a repository
  bool takes_directory = false;  // as the first operand
  bool takes_dry_run = false;
};

const std::vector<VerbRule>& Rules() {
  static const std::vector<VerbRule>* const rules = new std::vector<VerbRule>{
      {Verb::kInit, {"init"}, 0, 0},
      {Verb::kRepoCreate, {"repo", "create"}, 1, 1, true},
      {Verb::kRepoList, {"repo", "list"}, 0, 0},
      {Verb::kRepoShow, {"repo", "show"}, 1, 1},
      {Verb::kLogVerify, {"log", "verify"}, 0, 0},
      {Verb::kRecover, {"recover"}, 0, 0},
      {Verb::kVerify, {"verify"}, 0, 1},
      {Verb::kConsumersList, {"consumers", "list"}, 0, 0},
      {Verb::kConsumersDrop, {"consumers", "drop"}, 1, 1, false, true},
      {Verb::kAdopt, {"adopt"}, 1, 2, false, false, true, true},
      {Verb::kUnadopt, {"unadopt"}, 2, 2, false, false, true},
      {Verb::kReconcile, {"reconcile"}, 0, 0, false, false, false, true},
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
  REPOTXN_ASSIGN_OR_RETURN(const VerbRule* rule, FindRule(words));
  command.verb = rule->verb;
  if (!options.store.has_value()) return Usage("--store is missing");
  command.store = *options.store;
  if (options.object_format.has_value()) {
    if (!rule->takes_object_format) {
      return Usage(absl::StrCat("--object-format makes no sense for ", Joined(rule->words)));
    }
    auto format = ParseObjectFormat(
        absl::string_view(options.object_format->data(), options.object_format->size()));
    if (!format.ok()) return Usage("--object-format is sha1 or sha256");
    command.object_format = *format;
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

Works on a repotxn store that no daemon has open.

  init                       make an empty store at DIR
  repo create PATH [--object-format sha1|sha256]
                             create a repository, and the groups above it
  repo list                  all repositories: id, object format, path
  repo show PATH             one repository: id, format, HEAD, refs
  adopt [--dry-run] SOURCE PATH
                             take the bare repository at SOURCE, a directory below DIR, into the store, by a rename
  adopt [--dry-run] --tree SOURCE [GROUP]
                             the same for all bare repositories below SOURCE
  unadopt TARGET PATH        give a repository back: its directory moves to TARGET, below DIR
  reconcile [--dry-run]      find what differs between catalogue and disk, and mend what can be
  log verify                 read the write-ahead log and check every entry; opens nothing
  recover                    open the store, apply what its log holds, close it cleanly
  verify [PATH]              check a cleanly closed store, or one repository of it, in depth: log, catalogue,
                             left-over files, git fsck, refs as Git and as a transaction see them
  consumers list             readers of the log: how far each is, and what it holds back
  consumers drop NAME        remove one; what it had not acknowledged it will never get

  --json                     answer as one JSON document
  --help, --version

exit codes: 0 fine, 1 something is wrong (see output), 2 usage, 3 the store cannot be opened, 4 refused
)";
}

std::string VersionText() { return absl::StrCat("repotxn ", kVersion, "\n"); }

}  // namespace repotxn::cli
