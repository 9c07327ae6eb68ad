#include "txn/live_objects.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack";
constexpr int kReadingsMax = 100;

}  // namespace

objects::ObjectPackingOptions PackingOptions(const StoreCore& core, ObjectFormat format) {
  objects::ObjectPackingOptions options;
  options.format = format;
  options.is_condemned = [&core](const storage::StorePath& file) { return core.condemned().Contains(file); };
  options.lock_fd = core.lock_descriptor();
  return options;
}

absl::StatusOr<std::vector<std::string>> ListPacks(const StoreCore& core, const RepositoryId& id) {
  storage::FileSystem& fs = *core.file_system();
  const storage::StorePath directory = layout::RepositoryDirectory(id) / kPackDirectory;
  std::vector<std::string> before;
  for (int reading = 0; reading < kReadingsMax; ++reading) {
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(directory));
    std::vector<std::string> packs;
    for (const storage::DirectoryEntry& entry : entries) {
      absl::string_view name = entry.name;
      if (!absl::ConsumeSuffix(&name, ".idx") || core.condemned().Contains(id, name)) continue;
      packs.emplace_back(name.data(), name.size());
    }
    std::sort(packs.begin(), packs.end());
    if (reading > 0 && packs == before) return packs;
    before = std::move(packs);
  }
  return absl::UnavailableError("packs of the repository change all the time");
}

absl::StatusOr<std::vector<std::string>> ListPacksAt(const StoreCore& core, const RepositoryState& live, wal::Lsn at) {
  REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> packs, ListPacks(core, live.id()));
  std::erase_if(packs, [&](const std::string& name) { return !live.HadPackAt(name, at); });
  return packs;
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
