// New objects that children left in a write snapshot, on their way to one pack of the transaction.
//
// A single pack is taken as it is; several, or loose objects, go through `git pack-objects`. Either way `git index-pack`
// reads the result into a staging (txn/object_staging.h): it hashes every object again and proves that whatever it names
// is there, in the pack or in the repository. So nothing is believed of what a child wrote.
//
// Thread-safe (no state).
#ifndef REPOTXN_TXN_CAPTURED_OBJECTS_H_
#define REPOTXN_TXN_CAPTURED_OBJECTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "objects/git_child.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "txn/staged_objects.h"

namespace repotxn::txn {

struct NewObjects {
  std::vector<std::string> loose;  // "aa/bb…", below objects/
  std::vector<std::string> packs;  // stems, below objects/pack/

  bool empty() const { return loose.empty() && packs.empty(); }
};

// Stages the objects of `directory`, a write snapshot. `command` is a command in that directory whose arguments are
// replaced. Returns their number.
//
// Errors: those of ObjectStaging::IndexPack; kDataLoss for a damaged pack index; kInvalidArgument when pack-objects
// cannot read them.
absl::StatusOr<int64_t> StageNewObjects(storage::FileSystem* fs, const storage::StorePath& directory,
                                        ObjectFormat format, const NewObjects& found,
                                        const objects::GitCommand& command, StagedObjects* staging);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CAPTURED_OBJECTS_H_
