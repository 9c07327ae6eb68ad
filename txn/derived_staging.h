// Stages changes of the files that Git derives from objects and refs (objects/derived_path.h): private to txn/.
//
// A removal of packs or objects takes along, in its own entry, what would go on naming them: Git believes a commit-graph
// about commits that are gone, and fails on a multi-pack-index whose packs are. Each function reads what is on disk now,
// which is never older than the transaction's snapshot, and declares it as read, absent files included: whoever changes
// it meanwhile is met by the conflict check.
//
// Externally synchronised by the owner of the transaction.
#ifndef REPOTXN_TXN_DERIVED_STAGING_H_
#define REPOTXN_TXN_DERIVED_STAGING_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "objects/derived_files.h"
#include "txn/staged_changes.h"

namespace repotxn::txn {

// Removes the multi-pack-index of `repository`, with its bitmap, when it names one of `removed_packs` ("pack-<hex>") or cannot
// be read. Requires a live repository.
absl::Status StageDropOfPackIndexes(StagedChanges* changes, StagedRepository* repository,
                                    const std::set<std::string>& removed_packs);

// Removes the commit-graph of `repository`, in whatever form. Requires a live repository.
absl::Status StageDropOfCommitGraph(StagedChanges* changes, StagedRepository* repository);

// Stages what was written: new files become payload.
absl::Status StageDerivedFiles(StagedChanges* changes, StagedRepository* repository,
                               const objects::DerivedFiles& written);

// Declares all files of one kind as read, those that are not there included: `index` is objects::kMultiPackIndex, or
// objects::kCommitGraph for all of its forms.
void DeclareDerivedRead(StagedChanges* changes, const RepositoryId& id, absl::string_view index,
                        const std::vector<std::string>& there);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_DERIVED_STAGING_H_
