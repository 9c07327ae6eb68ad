#include "cli/layout_check.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;

// What a store's root may hold (docs/operating.md, store layout).
const std::set<std::string>& RootNames() {
  static const std::set<std::string>* const names = new std::set<std::string>{
      "STORE",     "CLEAN",   "LOCK",           "repositories", "log", "payload",
      "snapshots", "staging", "pending-delete", "lost-found",   "meta"};
  return *names;
}

absl::Status CheckEmpty(storage::FileSystem& fs, absl::string_view directory,
                        absl::string_view text, Findings& findings) {
  findings.Looked("left-over");
  auto entries = fs.List(StorePath::Literal(directory));
  // Absent is as good as empty: opening makes it.
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(entries.status());
  for (const storage::DirectoryEntry& entry : *entries) {
    const std::string subject = absl::StrCat(directory, "/", entry.name);
    if (absl::StartsWith(subject, "lost-found/adopt-")) {
      findings.AddNote("left-over", subject, "set aside by an adoption; remove it when all is well");
      continue;
    }
    findings.Add("left-over", subject, text);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> WasClosedCleanly(storage::FileSystem& fs) {
  return storage::Exists(fs, txn::layout::CleanMarker());
}

absl::Status CheckLayout(storage::FileSystem& fs, Findings& findings) {
  REPOTXN_ASSIGN_OR_RETURN(const auto root, fs.List(StorePath()));
  for (const storage::DirectoryEntry& entry : root) {
    findings.Looked("layout");
    if (RootNames().count(entry.name) == 0) {
      findings.Add("layout", entry.name, "does not belong to a store");
    }
  }
  REPOTXN_RETURN_IF_ERROR(
      CheckEmpty(fs, "staging", "left behind by a transaction that has ended", findings));
  REPOTXN_RETURN_IF_ERROR(
      CheckEmpty(fs, "snapshots", "left behind by a snapshot nobody holds", findings));
  REPOTXN_RETURN_IF_ERROR(CheckEmpty(
      fs, "lost-found", "stood in the way of a committed change and was moved aside", findings));
  return absl::OkStatus();
}

}  // namespace repotxn::cli
