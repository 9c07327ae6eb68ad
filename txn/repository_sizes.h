// Counts what is in the directory of a repository, for housekeeping_plan.h: native, a few listings, no object is read.
//
// Thread-safe.
#ifndef REPOTXN_TXN_REPOSITORY_SIZES_H_
#define REPOTXN_TXN_REPOSITORY_SIZES_H_

#include "absl/status/statusor.h"
#include "storage/file_system.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "txn/condemned_files.h"
#include "txn/housekeeping_plan.h"

namespace repotxn::txn {

// Fills in what the disk tells; loose_refs are files below refs/, counted up to `loose_refs_max` and one more. Files that
// come or go meanwhile may be counted or not. Errors: those of the file system; kNotFound no such directory.
absl::StatusOr<RepositorySizes> MeasureRepository(storage::FileSystem& fs, const CondemnedFiles& condemned,
                                                  const RepositoryId& id, ObjectFormat format, int64_t loose_refs_max);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_REPOSITORY_SIZES_H_
