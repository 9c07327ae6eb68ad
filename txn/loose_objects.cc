// The end of loose objects: a repository gets new objects in packs alone, so what lies loose came with it when it was adopted,
// and goes once a merge has taken it into a pack.
//
// No entry says so, since nothing changes: each object is in a pack that a committed entry has added. If we die here: some loose
// files are left, and go with the next merge.
#include <set>
#include <utility>
#include <vector>

#include "objects/object_reader.h"
#include "objects/object_set.h"
#include "storage/status_macros.h"
#include "txn/live_objects.h"
#include "txn/store_core.h"

namespace repotxn::txn {

absl::Status StoreCore::DropPackedLooseObjects(const RepositoryState& repository) {
  const storage::StorePath objects = repository.directory() / "objects";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<ObjectId> loose,
                           objects::ListLooseObjects(*fs_, objects, repository.format()));
  if (loose.empty()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> names, ListPacks(*this, repository.id()));
  PacksOf packs(fs_, repository, std::move(names));
  std::set<std::string> changed;
  for (const ObjectId& oid : loose) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_packed, packs.Contains(oid));
    if (!is_packed) continue;
    REPOTXN_RETURN_IF_ERROR(fs_->Remove(objects / objects::LooseObjectName(oid)));
    changed.insert(oid.ToHex().substr(0, 2));
  }
  // What comes back after a power cut may name objects that are removed by then.
  for (const std::string& directory : changed) REPOTXN_RETURN_IF_ERROR(fs_->SyncDirectory(objects / directory));
  return absl::OkStatus();
}

}  // namespace repotxn::txn
