// The large files of entries: payload/<transaction id>/<n>.
//
// Named by transaction, not by LSN, so that nothing has to be renamed once the LSN is known.
// Staging writes them with no lock held, syncs the files, their directory *and* payload/, and only
// then may the entry that names them be committed. They are removed when a checkpoint covers the
// entry, or at open when the transaction is not in the log.
//
// Protocol of a StagedPayload
//   1. Create() makes the directory.
//        Die here: an unknown transaction's directory, removed at open.
//   2. AddBytes(), AddLinked().
//        Die here: the same.
//   3. Seal() syncs files, directory, payload/.
//        Die here: the same, whatever of it survived.
//   4. The entry is committed. From here on the files are durable and belong to the log.
//   Or Discard(), when it is known that the entry never will be.
//
// Errors of all calls: those of storage::FileSystem. kFailedPrecondition when called in the wrong
// state. A failed Seal() is final: the payload may only be discarded.
#ifndef REPOTXN_WAL_PAYLOAD_STORE_H_
#define REPOTXN_WAL_PAYLOAD_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/id128.h"
#include "storage/store_path.h"
#include "wal/operation.h"

namespace repotxn::wal {

// payload/<hex>/<index> below `root`.
storage::StorePath PayloadPath(const storage::StorePath& root, const TransactionId& id,
                               uint32_t index);

// The payload of one transaction while it is staged. Externally synchronised by the transaction.
// Dropping it without Seal() leaves the files to Discard() or to the next open; the destructor does
// no I/O.
class StagedPayload {
 public:
  StagedPayload(const StagedPayload&) = delete;
  StagedPayload& operator=(const StagedPayload&) = delete;

  const TransactionId& id() const { return id_; }
  // Writes `content` as the next file. Digest and size are those of the argument.
  absl::StatusOr<PayloadFile> AddBytes(absl::string_view content);
  // Hard-links a finished file of the store (a pack in a snapshot) as the next file and reads it
  // once for its digest. The source must not be written any more; it may be removed.
  absl::StatusOr<PayloadFile> AddLinked(const storage::StorePath& source);

  const std::vector<PayloadFile>& files() const { return files_; }
  storage::StorePath path(const PayloadFile& file) const;

  // Durability: on OK the files added so far and their names survive a power failure. More may be
  // added afterwards and need another Seal(). With nothing new it does nothing. Cost: one sync a
  // new file, two of directories.
  absl::Status Seal();
  // Removes what was staged. May be called in any state, also after Seal() when the entry is known
  // not to be in the log.
  absl::Status Discard();

 private:
  friend class PayloadStore;
  enum class State : uint8_t { kOpen, kSealed, kFailed, kDiscarded };
  StagedPayload(storage::FileSystem* file_system, storage::StorePath root, const TransactionId& id)
      : file_system_(file_system), root_(std::move(root)), id_(id) {}
  storage::StorePath Directory() const;
  absl::Status SealFiles();
  // A sealed payload takes more files until it is sealed again; a failed or discarded one does not.
  absl::Status Reopen();

  storage::FileSystem* const file_system_;
  const storage::StorePath root_;
  const TransactionId id_;
  State state_ = State::kOpen;
  std::vector<PayloadFile> files_;
  size_t synced_files_ = 0;
};

// Thread-safe. Lifetime: `file_system` must outlive the store and what it stages.
class PayloadStore {
 public:
  explicit PayloadStore(storage::FileSystem* file_system,
                        storage::StorePath root = storage::StorePath::Literal("payload"))
      : file_system_(file_system), root_(std::move(root)) {}

  // Makes payload/ itself, durably; what exists is fine. At open, before anything is staged.
  absl::Status Initialize();
  // kAlreadyExists when a payload of this transaction is there.
  absl::StatusOr<std::unique_ptr<StagedPayload>> Create(const TransactionId& id);
  // Transactions that have a directory here, sorted. Other names are left alone and not listed.
  absl::StatusOr<std::vector<TransactionId>> List();
  // Removes a transaction's directory; absent is fine. Not synced: what comes back after a crash is
  // removed again.
  absl::Status Remove(const TransactionId& id);
  // Reads a file and compares size and SHA-256. kDataLoss when they differ, kNotFound when it is
  // absent.
  absl::StatusOr<std::string> Read(const TransactionId& id, const PayloadFile& file);
  // The same comparison, without keeping the bytes.
  absl::Status Verify(const TransactionId& id, const PayloadFile& file);

  storage::StorePath path(const TransactionId& id, uint32_t index) const {
    return PayloadPath(root_, id, index);
  }
  const storage::StorePath& root() const { return root_; }

 private:
  storage::FileSystem* const file_system_;
  const storage::StorePath root_;
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_PAYLOAD_STORE_H_
