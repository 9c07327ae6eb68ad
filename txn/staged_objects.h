// ObjectStaging over the store's directories.
//
//   staging/objects-<transaction id>/   the object snapshot; wiped at open if we die at any step
//   payload/<transaction id>/{0,1,2}    pack, rev, idx once sealed; removed at open when its entry is not in the log
#ifndef REPOTXN_TXN_STAGED_OBJECTS_H_
#define REPOTXN_TXN_STAGED_OBJECTS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "objects/object_lookup.h"
#include "storage/clock.h"
#include "storage/file_system.h"
#include "txn/object_staging.h"
#include "txn/repository_state.h"
#include "txn/snapshot_maker.h"
#include "txn/snapshot_registry.h"
#include "txn/transaction_payload.h"
#include "wal/operation.h"

namespace repotxn::txn {

class StagedObjects final : public ObjectStaging {
 public:
  struct Context {
    storage::FileSystem* fs = nullptr;
    TransactionPayloads* payloads = nullptr;
    SnapshotMaker* snapshots = nullptr;
    // Told while a Git child works, and that object files which are there now must stay; may be null.
    std::shared_ptr<SnapshotRegistry> registry;
    storage::Clock* clock = nullptr;
    int lock_descriptor = -1;
    // Where Git looks for what a pack names.
    std::vector<RepositoryId> links_from;
    // Whether removed packs lie about from which a child might be answered though their objects are gone; may be unset.
    std::function<bool()> are_links_doubtful;
    // Content of `shallow` in the object snapshot; unset: the live repository's.
    std::optional<std::string> shallow;
  };

  // `live` is the repository, or nullptr for one that the transaction creates.
  static absl::StatusOr<std::shared_ptr<StagedObjects>> Create(const Context& context,
                                                               const TransactionId& id,
                                                               std::shared_ptr<RepositoryState> live,
                                                               ObjectFormat format);
  ~StagedObjects() override;

  absl::Status IndexPack(const ByteSource& source, const IndexPackOptions& options) override;
  bool has_pack() const override { return !pack_name_.empty(); }
  absl::Status CompleteWithRefs() override;
  const std::string& absolute_path() const override { return absolute_path_; }
  absl::Status Seal() override;

  // Stages a pack that is indexed and known to be sound. Without a Git child: for stores that are on no disk.
  absl::Status StageIndexedPack(absl::string_view name, absl::string_view pack, absl::string_view index,
                                absl::string_view reverse_index);

  // The directory, an object snapshot (objects/quarantine.h).
  const storage::StorePath& directory() const { return directory_; }
  // Stages the pack `name` ("pack-…"), which somebody wrote to objects/pack of the directory and knows to be sound; with its
  // times, when it is a cruft pack.
  void UsePack(std::string name, bool is_cruft = false) {
    pack_name_ = std::move(name);
    is_cruft_ = is_cruft;
  }
  // The LSN up to which removals of objects were taken into account when the links of the pack were proved last; zero: in
  // doubt, since a child may have been answered from a removed file.
  wal::Lsn links_checked() const { return links_checked_; }
  // Repositories in which the links were looked for, sorted: the one that it was staged for and all that this one borrowed from.
  const std::vector<RepositoryId>& links_from() const { return links_from_; }
  void NoteLinksChecked(wal::Lsn lsn, std::vector<RepositoryId> from) {
    links_checked_ = lsn;
    links_from_ = std::move(from);
  }
  const std::string& pack_name() const { return pack_name_; }

  const TransactionId& transaction_id() const { return id_; }
  ObjectFormat format() const { return format_; }
  // The staged objects in front of the repository's. Kept, since opening a pack costs reading its index.
  std::shared_ptr<objects::ObjectLookup> Lookup(std::shared_ptr<objects::ObjectLookup> live);
  // The operation that adds the sealed pack. Requires Seal() and has_pack().
  wal::AddPack AddPackTo(const RepositoryId& repository) const;

 private:
  StagedObjects(const Context& context, const TransactionId& id, std::shared_ptr<RepositoryState> live,
                ObjectFormat format);

  const Context context_;
  const TransactionId id_;
  const std::shared_ptr<RepositoryState> live_;
  const ObjectFormat format_;
  wal::Lsn kept_;  // registered
  wal::Lsn links_checked_;
  std::vector<RepositoryId> links_from_;
  storage::StorePath directory_;
  std::string absolute_path_;
  std::string pack_name_;
  bool is_cruft_ = false;
  std::shared_ptr<objects::ObjectLookup> lookup_live_, lookup_;  // what Lookup() gave last, and for what
  std::shared_ptr<TransactionPayload> payload_;
  wal::AddPack operation_;
  bool is_sealed_ = false;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_STAGED_OBJECTS_H_
