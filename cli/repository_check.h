// Checks of one repository: its files, its packs, what stock Git says of it, and whether a
// transaction sees the same.
//
// Read-only. The repository is current on disk (the store was closed cleanly and nothing was
// committed since).
#ifndef REPOTXN_CLI_REPOSITORY_CHECK_H_
#define REPOTXN_CLI_REPOSITORY_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/findings.h"
#include "storage/file_system.h"
#include "txn/store.h"

namespace repotxn::cli {

// Files: no `*.lock`, no temporary file, no special file; every pack has idx and rev, every idx a
// pack; alternates are relative, stay in the store and exist. CheckRepository does this too.
absl::Status CheckRepositoryFiles(storage::FileSystem& fs, const txn::RepositoryInfo& row,
                                  Findings& findings);

// Everything: files; `git fsck --full --strict` (content errors of old histories are told as notes,
// not as findings: pushing them is allowed); HEAD and `git for-each-ref` equal to what a read
// transaction sees.
absl::Status CheckRepository(storage::FileSystem& fs, txn::Store& store,
                             const txn::RepositoryInfo& row, Findings& findings);

// Compares two listings "name value" (sorted lines), reporting each name on one side only and each
// differing value, at most 20. Pure.
void CompareRefListings(const std::string& repository, const std::string& seen_by_git,
                        const std::string& seen_by_transaction, Findings& findings);

// Lines of `git fsck` output that mean damage: missing, broken, corrupt or mismatching objects, bad
// refs. Dangling and unreachable objects are no damage; content warnings and errors of one object's
// own format are not either. Pure.
std::vector<std::string> DamageInFsckOutput(const std::string& output);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_REPOSITORY_CHECK_H_
