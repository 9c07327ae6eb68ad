#include "txn/live_objects.h"

#include <algorithm>
#include <utility>

#include "objects/pack_list.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack";

}  // namespace

objects::ObjectPackingOptions PackingOptions(const StoreCore& core, ObjectFormat format) {
  objects::ObjectPackingOptions options;
  options.format = format;
  options.is_condemned = [&core](const storage::StorePath& file) { return core.condemned().Contains(file); };
  options.lock_fd = core.lock_descriptor();
  return options;
}

absl::StatusOr<std::vector<std::string>> ListPacks(const StoreCore& core, const RepositoryId& id) {
  return objects::ListPackNames(*core.file_system(), layout::RepositoryDirectory(id) / kPackDirectory,
                                [&](absl::string_view name) { return core.condemned().Contains(id, name); });
}

absl::StatusOr<std::vector<std::string>> ListPacksAt(const StoreCore& core, const RepositoryState& live, wal::Lsn at) {
  // What was removed since is there still.
  bool is_removed_since = false;
  REPOTXN_ASSIGN_OR_RETURN(
      const std::vector<std::string> listed,
      objects::ListPackNames(*core.file_system(), live.directory() / kPackDirectory, [&](absl::string_view name) {
        const wal::Lsn removed = core.condemned().RemovalOf(live.id(), name);
        is_removed_since |= removed > at;
        return removed > wal::Lsn::Zero() && removed <= at;
      }));
  if (is_removed_since) return absl::AbortedError("packs of the repository were removed meanwhile");
  std::vector<std::string> packs;
  for (const std::string& name : listed) {
    REPOTXN_ASSIGN_OR_RETURN(const bool was_there, live.HadPackAt(name, at));
    if (was_there) packs.push_back(name);
  }
  return packs;
}

absl::StatusOr<bool> PacksOf::Contains(const ObjectId& oid) {
  if (indexes_.empty()) {
    for (const std::string& name : names_) {
      REPOTXN_ASSIGN_OR_RETURN(auto index, objects::PackIndex::Open(*fs_, layout::PackFile(id_, name, ".idx"), format_));
      indexes_.push_back(std::move(index));
    }
  }
  for (const auto& index : indexes_) {
    REPOTXN_ASSIGN_OR_RETURN(const auto offset, index->Find(oid));
    if (offset) return true;
  }
  return false;
}

void AddReadsOfUses(const RepositoryId& id, locks::DeclaredReads* reads) {
  reads->directories.push_back({id, std::string(kPackDirectory)});
  reads->ref_prefixes.push_back({id, ""});
  reads->refs.push_back({id, "HEAD"});
  reads->links_to_pools.push_back(id);
}

absl::Status AddReadsOfChain(const RepositoryId& id, StagedChanges* changes) {
  absl::Status failure;
  for (const RepositoryId& each : changes->core->ChainOf(id, changes->snapshot_lsn, &failure)) {
    changes->reads.files.push_back({each, "objects/info/alternates"});
  }
  return failure;
}

absl::StatusOr<std::vector<ObjectId>> AllTips(RepositoryState* live, wal::Lsn at) {
  std::vector<ObjectId> tips;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<refs::NamedRef> refs, live->ListRefs("", at));
  for (const refs::NamedRef& ref : refs) {
    if (ref.value.is_object()) tips.push_back(ref.value.oid());
  }
  REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue head, live->ReadRef(refs::RefName::Head(), at));
  if (head.is_object()) tips.push_back(head.oid());
  std::sort(tips.begin(), tips.end());
  tips.erase(std::unique(tips.begin(), tips.end()), tips.end());
  return tips;
}

absl::Status StagePacked(const objects::PackedObjects& packed, std::shared_ptr<StagedObjects> staged,
                         StagedRepository* repository, bool is_cruft) {
  if (packed.pack_name.empty()) return absl::OkStatus();
  staged->UsePack(packed.pack_name, is_cruft);
  REPOTXN_RETURN_IF_ERROR(staged->Seal());
  repository->packs.push_back(staged->AddPackTo(repository->id));
  repository->more_objects.push_back(std::move(staged));
  return absl::OkStatus();
}

}  // namespace repotxn::txn
