// Catalogue rows against what stands below repositories/: one directory and one symlink for each
// row, nothing else.
//
// Read-only.
#ifndef REPOTXN_CLI_CATALOGUE_CHECK_H_
#define REPOTXN_CLI_CATALOGUE_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "cli/findings.h"
#include "storage/file_system.h"
#include "txn/transaction.h"

namespace repotxn::cli {

// Compares both ways: every row has its directory and its symlink; every directory below @id and
// every symlink belongs to a row; a directory outside @id is a group, so it holds only groups and
// symlinks.
//
// Errors: those of reading the tree, for what is not simply absent.
absl::Status CheckCatalogue(storage::FileSystem& fs, const std::vector<txn::RepositoryInfo>& rows,
                            Findings& findings);

}  // namespace repotxn::cli

#endif  // REPOTXN_CLI_CATALOGUE_CHECK_H_
