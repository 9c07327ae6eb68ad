#include "cli/verify.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/answer.h"
#include "cli/catalogue_check.h"
#include "cli/findings.h"
#include "cli/layout_check.h"
#include "cli/log_check.h"
#include "cli/repository_check.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;

void AddLogTo(Json& document, const LogSummary& log) {
  document["log"] = {{"segments", log.segments}, {"spare_segments", log.spare_segments},
                     {"entries", log.entries},   {"first_lsn", log.first_lsn},
                     {"last_lsn", log.last_lsn}, {"torn_bytes", log.torn_bytes}};
}

void WriteLog(std::ostream& out, const LogSummary& log) {
  out << "log: " << log.entries << " entries retained";
  if (log.entries > 0) out << ", LSN " << log.first_lsn << " to " << log.last_lsn;
  out << ", in " << log.segments << " segments (" << log.spare_segments << " spare)\n";
  if (log.torn_bytes > 0) {
    out << "log: " << log.torn_bytes
        << " bytes of a torn write behind the last entry; nobody was answered for them, "
        << "and the next open cuts them off\n";
  }
}

Outcome Answer(const CommandLine& command, const Findings& findings,
               const std::optional<LogSummary>& log, std::ostream& out) {
  if (command.json) {
    Json document = FindingsToJson(findings);
    if (log.has_value()) AddLogTo(document, *log);
    WriteJson(out, document);
  } else {
    if (log.has_value()) WriteLog(out, *log);
    WriteFindings(out, findings);
  }
  return {findings.empty() ? ExitCode::kOk : ExitCode::kFoundWrong, absl::OkStatus()};
}

// Step 4 inside the open store.
absl::Status CheckOpenStore(const CommandLine& command, storage::FileSystem& fs, txn::Store& store,
                            Findings& findings) {
  REPOTXN_ASSIGN_OR_RETURN(std::vector<txn::RepositoryInfo> rows, AllRepositories(store));
  REPOTXN_RETURN_IF_ERROR(CheckCatalogue(fs, rows, findings));
  if (command.has_repository) {
    std::erase_if(rows, [&](const txn::RepositoryInfo& row) {
      return row.path != command.repository.text();
    });
    if (rows.empty())
      return absl::NotFoundError(absl::StrCat("no repository ", command.repository.text()));
  }
  for (const txn::RepositoryInfo& row : rows) {
    findings.Looked("repositories");
    const absl::Status status = CheckRepository(fs, store, row, findings);
    if (!status.ok()) findings.Add("repositories", row.path, status.message());
  }
  return absl::OkStatus();
}

}  // namespace

Outcome RunVerify(const CommandLine& command, const std::string& root, std::ostream& out) {
  auto fs = OpenRoot(root);
  if (!fs.ok()) return Outcome::CannotOpen(fs.status());
  auto lock = TakeLock(**fs);
  if (!lock.ok()) return Outcome::CannotOpen(lock.status());

  Findings findings;
  findings.Looked("clean-marker");
  const auto clean = WasClosedCleanly(**fs);
  if (!clean.ok()) return Outcome::CannotOpen(clean.status());
  if (!*clean) {
    findings.Add("clean-marker", "CLEAN",
                 "the store was not closed cleanly, so its repositories may lag: run `repotxn "
                 "recover` first");
    return Answer(command, findings, std::nullopt, out);
  }
  if (const absl::Status status = CheckLayout(**fs, findings); !status.ok())
    return Outcome::CannotOpen(status);
  const auto log = CheckLog(**fs, findings);
  if (!log.ok()) return Outcome::CannotOpen(log.status());
  if (const absl::Status status = CheckLogEnd(**fs, *log, findings); !status.ok()) {
    return Outcome::CannotOpen(status);
  }
  for (const Finding& finding : findings.list()) {
    if (finding.check == "log") return Answer(command, findings, *log, out);
  }

  lock->reset();
  txn::StoreOptions options;
  // Nothing runs beside the checks: what they see is what was there.
  options.background_thread = false;
  options.lock_wait = absl::Seconds(3);
  const Outcome outcome = WithStore(root, options, [&](txn::Store& store) -> Outcome {
    const absl::Status status = CheckOpenStore(command, **fs, store, findings);
    return status.ok() ? Outcome{} : Outcome::Refused(status);
  });
  if (outcome.code != ExitCode::kOk) return outcome;
  const auto clean_again = WasClosedCleanly(**fs);
  if (!clean_again.ok() || !*clean_again) {
    findings.Add("clean-marker", "CLEAN", "is missing after a close that reported success");
  }
  return Answer(command, findings, *log, out);
}

Outcome RunLogVerify(const CommandLine& command, const std::string& root, std::ostream& out) {
  auto fs = OpenRoot(root);
  if (!fs.ok()) return Outcome::CannotOpen(fs.status());
  auto lock = TakeLock(**fs);
  if (!lock.ok()) return Outcome::CannotOpen(lock.status());
  Findings findings;
  const auto log = CheckLog(**fs, findings);
  if (!log.ok()) return Outcome::CannotOpen(log.status());
  return Answer(command, findings, *log, out);
}

}  // namespace repotxn::cli
