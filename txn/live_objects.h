// What lies in live repositories, for transactions that pack it anew: private to txn/.
//
// Thread-safe.
#ifndef REPOTXN_TXN_LIVE_OBJECTS_H_
#define REPOTXN_TXN_LIVE_OBJECTS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "objects/object_packing.h"
#include "objects/pack_index.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "txn/staged_changes.h"
#include "wal/lsn.h"

namespace repotxn::txn {

objects::ObjectPackingOptions PackingOptions(const StoreCore& core, ObjectFormat format);

// Packs of a repository ("pack-<hex>"), sorted, as they stood at one moment (objects/pack_list.h). Removed ones are left out.
absl::StatusOr<std::vector<std::string>> ListPacks(const StoreCore& core, const RepositoryId& id);

// The packs as they were at `at`, a snapshot in use. kAborted when one of them was removed since: whoever packs them anew, or
// names them, would only lose at the commit.
absl::StatusOr<std::vector<std::string>> ListPacksAt(const StoreCore& core, const RepositoryState& live, wal::Lsn at);

// Answers from the indexes of some packs of one repository, opened at the first question.
class PacksOf {
 public:
  PacksOf(storage::FileSystem* fs, const RepositoryState& live, std::vector<std::string> names)
      : fs_(fs), id_(live.id()), format_(live.format()), names_(std::move(names)) {}
  absl::StatusOr<bool> Contains(const ObjectId& oid);

 private:
  storage::FileSystem* const fs_;
  const RepositoryId id_;
  const ObjectFormat format_;
  const std::vector<std::string> names_;
  std::vector<std::unique_ptr<objects::PackIndex>> indexes_;
};

// Objects that the refs of a repository name at `at`, HEAD included.
absl::StatusOr<std::vector<ObjectId>> AllTips(RepositoryState* live, wal::Lsn at);

// Adds to `reads` whatever a repository may come to use objects by: its packs, its refs, and who borrows from it.
void AddReadsOfUses(const RepositoryId& id, locks::DeclaredReads* reads);
// The chain of alternates of `id` as it is at the transaction's snapshot.
absl::Status AddReadsOfChain(const RepositoryId& id, StagedChanges* changes);

// Stages a pack that was made in the directory of `staged`; none when it has no name. `is_cruft`: it has a list of times.
absl::Status StagePacked(const objects::PackedObjects& packed, std::shared_ptr<StagedObjects> staged,
                         StagedRepository* repository, bool is_cruft = false);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_LIVE_OBJECTS_H_
