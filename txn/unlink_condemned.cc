// The end of a condemned pack (txn/condemned_files.h).
#include <algorithm>
#include <memory>

#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// The index first: a reader takes a pack without one for unfinished.
constexpr absl::string_view kSuffixes[] = {".idx", ".rev", ".bitmap", ".mtimes", ".pack"};

}  // namespace

absl::Status StoreCore::UnlinkCondemned() {
  // Its row must be in the metadata store, so that it can be deleted there.
  const wal::Lsn written(materialized_lsn_.load());
  for (const CondemnedFiles::Pack& pack : condemned_.RemovedUpTo(std::min(written, registry_->OldestInUse()))) {
    if (absl::Status unlinked = UnlinkPack(pack); !unlinked.ok()) {
      // The next round tries again; it must not stand in the way of what else there is to do.
      storage::LogWarning(absl::StrCat("removed pack ", pack.name, " of repository ", pack.id.ToHex(),
                                       " is not unlinked: ", unlinked.message()));
    }
  }
  return absl::OkStatus();
}

int64_t StoreCore::CondemnedBytes() const {
  int64_t bytes = 0;
  for (const CondemnedFiles::Pack& pack : condemned_.RemovedUpTo(publisher_->committed_lsn())) {
    const auto info = fs_->Stat(layout::PackFile(pack.id, pack.name, ".pack"));
    if (info.ok()) bytes += info->size;  // else it has gone meanwhile
  }
  return bytes;
}

absl::Status StoreCore::UnlinkPack(const CondemnedFiles::Pack& pack) {
  REPOTXN_ASSIGN_OR_RETURN(const auto row, RowOf(pack.id, publisher_->committed_lsn()));
  if (row) {
    const std::shared_ptr<RepositoryState> state = repositories_->Get(pack.id, *row);
    const storage::MutexLock latch(state->latch());
    // Added again meanwhile.
    if (!condemned_.Contains(pack.id, pack.name)) return absl::OkStatus();
    for (const absl::string_view suffix : kSuffixes) {
      const absl::Status removed = fs_->Remove(layout::PackFile(pack.id, pack.name, suffix));
      if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    }
    state->NotePackRemoved(pack.name);
    condemned_.Forget(pack.id, pack.name);
  } else {
    condemned_.Forget(pack.id, pack.name);  // purged, with its directory
  }
  // If we die before this is durable: the row comes back, and the files stay absent.
  storage::MetadataBatch batch;
  batch.Delete(CondemnedKey(pack.id, pack.name));
  return metadata_->Write(batch, storage::MetadataSync::kUnsynced);
}

}  // namespace repotxn::txn
