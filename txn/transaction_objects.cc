// Transactions that move whole sets of objects between repositories: what an unlinked member must own, what a pool gets.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/borrowed_objects.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack";
constexpr int kReadingsMax = 100;

objects::ObjectPackingOptions PackingOptions(const StoreCore& core, ObjectFormat format) {
  objects::ObjectPackingOptions options;
  options.format = format;
  options.lock_fd = core.lock_descriptor();
  return options;
}

// Packs in `directory`, as they stood at one moment: a pack may need another that was linked before it, and a directory
// that changes while it is read may show the second alone. So two readings that say the same.
absl::StatusOr<std::vector<std::string>> ListPacksAtOnce(storage::FileSystem& fs,
                                                         const storage::StorePath& directory) {
  std::vector<std::string> before;
  for (int reading = 0; reading < kReadingsMax; ++reading) {
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(directory));
    std::vector<std::string> packs;
    for (const storage::DirectoryEntry& entry : entries) {
      absl::string_view name = entry.name;
      if (absl::ConsumeSuffix(&name, ".idx")) packs.emplace_back(name.data(), name.size());
    }
    std::sort(packs.begin(), packs.end());
    if (reading > 0 && packs == before) return packs;
    before = std::move(packs);
  }
  return absl::UnavailableError("packs of the repository change all the time");
}

// Adds a pack that was made in the directory of `staged`; none when it has no name.
absl::Status AddPacked(const objects::PackedObjects& packed, std::shared_ptr<StagedObjects> staged,
                       StagedRepository* repository) {
  if (packed.pack_name.empty()) return absl::OkStatus();
  staged->UsePack(packed.pack_name);
  REPOTXN_RETURN_IF_ERROR(staged->Seal());
  repository->packs.push_back(staged->AddPackTo(repository->id));
  repository->more_objects.push_back(std::move(staged));
  return absl::OkStatus();
}

}  // namespace

absl::Status Transaction::BringInBorrowedObjects(const RepositoryId& member, const RepositoryId& pool) {
  REPOTXN_ASSIGN_OR_RETURN(StagedRepository * borrower, Touch(changes_.get(), member));
  const std::shared_ptr<RepositoryState> live = borrower->live;
  // Whatever is added to the member after the snapshot may name more: its packs and its refs are read.
  changes_->reads.directories.push_back({member, std::string(kPackDirectory)});
  changes_->reads.ref_prefixes.push_back({member, ""});
  objects::BorrowedObjects request;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<refs::NamedRef> refs,
                           live->ListRefs("", changes_->snapshot_lsn));
  for (const refs::NamedRef& ref : refs) {
    if (ref.value.is_object()) request.tips.push_back(ref.value.oid());
  }
  REPOTXN_ASSIGN_OR_RETURN(auto staged,
                           changes_->core->StageObjectsOf(changes_->id, live, live->format()));
  request.snapshot = staged->directory();
  request.objects = live->directory() / "objects";
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  for (const RepositoryId& other : alternates) {
    if (other == pool) continue;
    request.still_borrowed.push_back(layout::RepositoryDirectory(other) / "objects");
  }
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::PackedObjects packed,
      objects::PackBorrowedObjects(*changes_->core->file_system(), request,
                                   PackingOptions(*changes_->core, live->format())));
  return AddPacked(packed, std::move(staged), borrower);
}

absl::StatusOr<RepositoryId> Transaction::CreatePool(const RepositoryId& member,
                                                     const RepositoryPath& path) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* borrower, Touch(changes_.get(), member));
  const std::shared_ptr<RepositoryState> live = borrower->live;
  if (live == nullptr) {
    return absl::FailedPreconditionError("repository is created by the same transaction");
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<RepositoryId> alternates, AlternatesOf(*changes_, *borrower));
  if (!alternates.empty()) {
    return absl::FailedPreconditionError("repository borrows objects itself");
  }
  CreateOptions create;
  create.format = live->format();
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, CreateIn(path, create, live->partition()));
  StagedRepository& pool = changes_->repositories[id];
  storage::FileSystem* const fs = changes_->core->file_system();
  // Its packs, by link: they are listed once the snapshot is taken, so what is pushed meanwhile may be among them, whole,
  // or not; the member keeps its own in any case.
  changes_->payload = changes_->core->payloads()->Of(changes_->id);
  const storage::StorePath packs = live->directory() / kPackDirectory;
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListPacksAtOnce(*fs, packs));
  for (const std::string& name : names) {
    wal::AddPack pack;
    pack.id = id;
    pack.name = name;
    const std::pair<wal::PayloadFile*, absl::string_view> files[] = {
        {&pack.pack, ".pack"}, {&pack.reverse_index, ".rev"}, {&pack.index, ".idx"}};
    for (const auto& [file, suffix] : files) {
      REPOTXN_ASSIGN_OR_RETURN(*file, changes_->payload->AddLinked(packs / absl::StrCat(name, suffix)));
    }
    pool.packs.push_back(std::move(pack));
  }
  REPOTXN_ASSIGN_OR_RETURN(auto staged,
                           changes_->core->StageObjectsOf(changes_->id, live, live->format()));
  REPOTXN_ASSIGN_OR_RETURN(
      const objects::PackedObjects loose,
      objects::PackLooseObjects(*fs, staged->directory(), live->directory() / "objects",
                                PackingOptions(*changes_->core, live->format())));
  REPOTXN_RETURN_IF_ERROR(AddPacked(loose, std::move(staged), &pool));
  REPOTXN_RETURN_IF_ERROR(LinkAlternate(member, id));
  return id;
}

}  // namespace repotxn::txn
