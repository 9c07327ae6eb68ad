// Looks at a bare repository that may be adopted: everything that its adoption needs to know. Changes nothing.
//
// Thread-safe (no state).
#ifndef REPOTXN_TXN_ADOPTION_SURVEY_H_
#define REPOTXN_TXN_ADOPTION_SURVEY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/file_system.h"
#include "txn/adoption.h"

namespace repotxn::txn {

struct Survey {
  storage::StorePath source;
  AdoptionReport report;  // without path, id and LSN
  std::string head_target;
  // Repository directories whose objects it borrows, first level, in order.
  std::vector<storage::StorePath> lenders;
  // Packs (stems) that hold open objects: they are set aside, and what else they hold is packed anew.
  std::vector<std::string> split_packs;
  // Packs (stems) without a reverse index, which every pack of a store has: they get one.
  std::vector<std::string> packs_without_rev;
};

// What stands in the way of the adoption is in report.refusals; the dear steps (content, closure) are left out once
// there is one. Errors: those of the disk and of Git children; kNotFound when there is no directory `source`.
absl::StatusOr<Survey> SurveyRepository(storage::FileSystem& fs, const storage::StorePath& source,
                                        absl::Time now, const AdoptOptions& options, int lock_descriptor);

// Bare repositories at `root` and below it, parents first; what is inside one is not looked at, and neither are symbolic
// links nor the store's own directories.
absl::StatusOr<std::vector<storage::StorePath>> FindRepositories(storage::FileSystem& fs,
                                                                 const storage::StorePath& root);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ADOPTION_SURVEY_H_
