// The directories of one write snapshot, and what they looked like before any child ran: private to txn/.
//
// Made under the latches of all repositories, in id order [hard case A26]
//   1  latches. Nobody materializes these repositories now.
//   2  F = the newest committed LSN, registered as in use; at or above what any of the disks shows.
//   3  everything the transaction has declared to have read is checked against (S, F]. A conflict: S stays.
//   4  each repository is materialized to F and linked: the directories show exactly F, all of them.
//   5  S = F for the whole transaction, then the latches are released.
//   6  the look that Capture() compares with.
// If we die at any step: snapshots/ is wiped at open; materializing ahead of time is what the materializer does anyway.
#ifndef REPOTXN_TXN_WRITE_DIRECTORIES_H_
#define REPOTXN_TXN_WRITE_DIRECTORIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file_system.h"
#include "txn/directory_state.h"
#include "txn/repository_state.h"
#include "txn/write_snapshot.h"
#include "wal/operation.h"

namespace repotxn::txn {

class StoreCore;
struct StagedChanges;
struct StagedRepository;

class WriteDirectories final : public WriteSnapshot {
 public:
  // One repository.
  struct Part {
    RepositoryId id;
    std::shared_ptr<RepositoryState> live;  // nullptr: the transaction creates it
    ObjectFormat format = ObjectFormat::kSha1;
    std::string created_head;  // what HEAD names in a created one
    storage::StorePath path;
    std::string absolute_path;
    DirectoryState before;
  };

  // Moves the transaction's snapshot. `repositories` are its own, sorted by id.
  static absl::StatusOr<std::unique_ptr<WriteDirectories>> Make(StoreCore* core, StagedChanges* changes,
                                                                const std::vector<StagedRepository*>& repositories,
                                                                const WriteSnapshotOptions& options);
  ~WriteDirectories() override;

  wal::Lsn lsn() const override { return lsn_; }
  const std::vector<RepositoryId>& repositories() const override { return ids_; }
  const std::string& absolute_path(const RepositoryId& id) const override { return PartOf(id).absolute_path; }
  const storage::StorePath& path(const RepositoryId& id) const override { return PartOf(id).path; }
  objects::GitCommand Command(const RepositoryId& id, std::vector<std::string> arguments) const override;
  absl::StatusOr<objects::GitResult> Run(const objects::GitCommand& command, std::string input,
                                         const objects::RunLimits& limits) override;

  const std::vector<Part>& parts() const { return parts_; }
  bool is_captured() const { return is_captured_; }
  void set_captured() { is_captured_ = true; }

 private:
  WriteDirectories(StoreCore* core, const TransactionId& id);

  const Part& PartOf(const RepositoryId& id) const;
  absl::Status AddPart(const StagedRepository& repository);
  // Steps 1 to 5.
  absl::Status LinkAtOneLsn(StagedChanges* changes);
  absl::Status LinkAll(StagedChanges* changes, wal::Lsn target);

  StoreCore* const core_;
  const TransactionId transaction_id_;
  const wal::Lsn kept_;      // registered: object files that were there then stay on disk
  std::vector<Part> parts_;  // sorted by id
  std::vector<RepositoryId> ids_;
  wal::Lsn lsn_;
  bool is_captured_ = false;
};

// Whether the configuration files in a directory may be used by our children; errors of objects::CheckRepositoryConfig.
absl::Status CheckConfigFiles(storage::FileSystem& fs, const storage::StorePath& directory);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_WRITE_DIRECTORIES_H_
