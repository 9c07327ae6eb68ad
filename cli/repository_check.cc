#include "cli/repository_check.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "objects/git_child.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

constexpr int kDifferencesMax = 20;
constexpr int kFsckLinesMax = 20;

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

class GitRunner {
 public:
  GitRunner(std::string repository, int lock_fd)
      : repository_(std::move(repository)), lock_fd_(lock_fd) {}

  absl::StatusOr<objects::GitResult> Run(std::vector<std::string> arguments) const {
    objects::GitCommand command;
    command.repository = repository_;
    command.arguments = std::move(arguments);
    command.is_check = true;
    command.lock_fd = lock_fd_;
    objects::RunLimits limits;
    limits.timeout = absl::Hours(6);
    limits.output_bytes_max = int64_t{1} << 30;
    limits.error_bytes_max = int64_t{1} << 20;
    return objects::RunGit(command, objects::TextSource(""), limits);
  }

 private:
  const std::string repository_;
  const int lock_fd_;
};

absl::Status CheckFsck(const GitRunner& git, const std::string& path, Findings& findings) {
  findings.Looked("fsck");
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::GitResult result,
      git.Run({"fsck", "--full", "--strict", "--no-dangling", "--no-progress"}));
  const std::string text = absl::StrCat(result.output, "\n", result.errors);
  const std::vector<std::string> damage = DamageInFsckOutput(text);
  int told = 0;
  for (const std::string& line : damage) {
    if (++told > kFsckLinesMax) break;
    findings.Add("fsck", path, line);
  }
  if (result.exit_code == 0 || !damage.empty()) return absl::OkStatus();
  if (absl::StrContains(text, "error in ")) {
    findings.AddNote("fsck", path, "holds objects whose content stock Git's strict check refuses");
  } else {
    findings.Add("fsck", path, absl::StrCat("git fsck ended with ", result.exit_code));
  }
  return absl::OkStatus();
}

// HEAD and refs as stock Git reads them, one "name value" a line.
absl::StatusOr<std::string> ListingOfGit(const GitRunner& git) {
  std::string listing;
  REPOTXN_ASSIGN_OR_RETURN(objects::GitResult head, git.Run({"symbolic-ref", "-q", "HEAD"}));
  if (head.exit_code == 0) {
    listing = absl::StrCat("HEAD ref: ", head.output);
  } else {
    REPOTXN_ASSIGN_OR_RETURN(head, git.Run({"rev-parse", "--verify", "-q", "HEAD"}));
    listing = absl::StrCat("HEAD ", head.output);
  }
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::GitResult refs,
      git.Run(
          {"for-each-ref",
           "--format=%(refname) %(if)%(symref)%(then)ref: %(symref)%(else)%(objectname)%(end)"}));
  if (refs.exit_code != 0) {
    return absl::DataLossError(absl::StrCat("git for-each-ref ended with ", refs.exit_code));
  }
  return absl::StrCat(listing, refs.output);
}

// The same as a read transaction sees them. Symbolic refs that lead nowhere are left out below
// refs/, as Git does.
absl::StatusOr<std::string> ListingOfTransaction(txn::Store& store,
                                                 const txn::RepositoryInfo& row) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path,
                           txn::RepositoryPath::Parse(View(row.path)));
  txn::BeginOptions options;
  options.repositories = {path};
  options.access = txn::Access::kReadOnly;
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, store.Begin(options));
  REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue head,
                           transaction->ReadRef(row.id, refs::RefName::Head()));
  std::string listing = absl::StrCat("HEAD ", head.ToString(), "\n");
  REPOTXN_ASSIGN_OR_RETURN(const auto refs, transaction->ListRefs(row.id, ""));
  std::map<std::string, const refs::RefValue*> by_name;
  for (const auto& [name, value] : refs) by_name[name.text()] = &value;
  for (const auto& [name, value] : refs) {
    const refs::RefValue* target = &value;
    // Git follows five hops and calls the rest dangling.
    for (int hop = 0; hop < 5 && target != nullptr && target->is_symbolic(); ++hop) {
      const auto found = by_name.find(target->target().text());
      target = found == by_name.end() ? nullptr : found->second;
    }
    if (target == nullptr || target->is_symbolic()) continue;
    absl::StrAppend(&listing, name.text(), " ", value.ToString(), "\n");
  }
  return listing;
}

std::map<std::string, std::string> ByName(const std::string& listing) {
  std::map<std::string, std::string> values;
  for (const absl::string_view line : absl::StrSplit(View(listing), '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    values[std::string(parts.first)] = std::string(parts.second);
  }
  return values;
}

}  // namespace

std::vector<std::string> DamageInFsckOutput(const std::string& output) {
  static constexpr absl::string_view kHarmless[] = {
      "error in commit ", "error in tree ",     "error in tag ",
      "error in blob ",   "warning in commit ", "warning in tree ",
      "warning in tag ",  "warning in blob ",   "notice: ",
      "dangling ",        "unreachable ",       "root ",
      "tagged ",          "Checking ",          "hint: "};
  std::vector<std::string> damage;
  for (absl::string_view line : absl::StrSplit(View(output), '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty()) continue;
    bool harmless = false;
    for (const absl::string_view prefix : kHarmless)
      harmless = harmless || absl::StartsWith(line, prefix);
    if (!harmless) damage.push_back(std::string(line));
  }
  return damage;
}

void CompareRefListings(const std::string& repository, const std::string& seen_by_git,
                        const std::string& seen_by_transaction, Findings& findings) {
  const std::map<std::string, std::string> git = ByName(seen_by_git);
  std::map<std::string, std::string> transaction = ByName(seen_by_transaction);
  findings.Looked("refs", static_cast<int64_t>(transaction.size()));
  int told = 0;
  const auto tell = [&](const std::string& name, const std::string& text) {
    if (++told <= kDifferencesMax) findings.Add("refs", repository, absl::StrCat(name, ": ", text));
  };
  for (const auto& [name, value] : git) {
    const auto found = transaction.find(name);
    if (found == transaction.end()) {
      tell(name, absl::StrCat("git sees ", value, ", a transaction does not see it"));
      continue;
    }
    if (found->second != value) {
      tell(name, absl::StrCat("git sees ", value, ", a transaction sees ", found->second));
    }
    transaction.erase(found);
  }
  for (const auto& [name, value] : transaction) {
    tell(name, absl::StrCat("a transaction sees ", value, ", git does not see it"));
  }
}

absl::Status CheckRepository(storage::FileSystem& fs, txn::Store& store,
                             const txn::RepositoryInfo& row, Findings& findings) {
  REPOTXN_RETURN_IF_ERROR(CheckRepositoryFiles(fs, row, findings));
  REPOTXN_ASSIGN_OR_RETURN(std::string absolute,
                           fs.AbsolutePath(txn::layout::RepositoryDirectory(row.id)));
  const GitRunner git(std::move(absolute), store.lock_descriptor());
  REPOTXN_RETURN_IF_ERROR(CheckFsck(git, row.path, findings));
  const auto seen_by_git = ListingOfGit(git);
  if (!seen_by_git.ok()) {
    findings.Add("refs", row.path, seen_by_git.status().message());
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::string seen_by_transaction, ListingOfTransaction(store, row));
  CompareRefListings(row.path, *seen_by_git, seen_by_transaction, findings);
  return absl::OkStatus();
}

}  // namespace repotxn::cli
