// One open repository in memory: its committed refs and files as of any snapshot in use, and what its disk shows.
//
// Refs are answered from memory alone: the image of the disk (packed-refs and loose files at one LSN, replaced by the
// materializer at the end of a batch) under the versions that are newer. Image and versions are looked at under one
// mutex, so a read cannot fall between a version that left and an image that has not come. Files are read overlay, disk,
// overlay again [hard case A13].
//
// Thread-safe. Two locks: the *latch*, held by the materializer for a batch, by whoever lists a directory, links a
// snapshot, or loads the image; and a mutex held for an instant. The disk equals exactly one LSN
// (materialized_lsn()) whenever the latch is free.
#ifndef REPOTXN_TXN_REPOSITORY_STATE_H_
#define REPOTXN_TXN_REPOSITORY_STATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "objects/object_lookup.h"
#include "refs/packed_refs.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/file_system.h"
#include "storage/sync.h"
#include "txn/condemned_files.h"
#include "txn/entry_effects.h"
#include "txn/transaction.h"
#include "txn/version_table.h"
#include "wal/lsn.h"

namespace repotxn::txn {

// The refs that the disk shows at materialized_lsn. Immutable. `loose` holds HEAD too.
struct DiskRefs {
  std::shared_ptr<const refs::PackedRefs> packed;
  std::map<std::string, refs::RefValue> loose;
  // Files that hold no value: damaged, or torn by a crash and about to be overwritten.
  std::map<std::string, absl::Status> faults;
};

class RepositoryState {
 public:
  // `fs` and `condemned` must outlive it.
  RepositoryState(storage::FileSystem* fs, const CondemnedFiles* condemned, const RepositoryId& id,
                  wal::PartitionId partition, ObjectFormat format);

  const RepositoryId& id() const { return id_; }
  wal::PartitionId partition() const { return partition_; }
  ObjectFormat format() const { return format_; }
  const storage::StorePath& directory() const { return directory_; }

  // Reads at `at`, a snapshot in use. Errors: those of the disk; kDataLoss damaged refs.
  absl::StatusOr<refs::RefValue> ReadRef(const refs::RefName& name, wal::Lsn at);
  absl::StatusOr<std::vector<refs::NamedRef>> ListRefs(absl::string_view prefix, wal::Lsn at);
  // The first ref below directory `name` whose name is greater than `after`.
  absl::StatusOr<std::optional<std::string>> NextRefBelow(absl::string_view name, absl::string_view after,
                                                          wal::Lsn at);
  absl::StatusOr<FileState> ReadFile(absl::string_view path, wal::Lsn at);
  // Entries of a directory, files and directories, without what belongs to refs and objects.
  absl::StatusOr<std::vector<std::string>> ListDirectory(absl::string_view path, wal::Lsn at);

  // Objects of the repository and its alternates; opened at first use.
  absl::StatusOr<std::shared_ptr<objects::ObjectLookup>> Objects() ABSL_LOCKS_EXCLUDED(mutex_);

  // The alternates file of `objects`, an object directory, changed: whoever has it on its chain looks again.
  absl::Status NoteAlternatesChanged(const storage::StorePath& objects) ABSL_LOCKS_EXCLUDED(mutex_);

  // A pack was linked into the live object directory. packs_added() counts them, until a merge has looked at all.
  int packs_added() const { return packs_added_.load(std::memory_order_relaxed); }
  void NotePacksMerged() { packs_added_.store(0, std::memory_order_relaxed); }
  // `lsn`: of the entry, which may not be published yet. `before`: what stood there under the same name.
  enum class PackBefore : uint8_t { kNone, kLive, kCondemned };
  void NotePackAdded(absl::string_view name, wal::Lsn lsn, PackBefore before) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a pack that lies in the directory was there at `at`, a snapshot in use [hard case A7]. kAborted: it may have been,
  // and was removed and added again since.
  absl::StatusOr<bool> HadPackAt(absl::string_view name, wal::Lsn at) const ABSL_LOCKS_EXCLUDED(mutex_);
  // A pack was unlinked there.
  void NotePackRemoved(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Newest published entry that removed objects, since the store was opened; zero: none.
  wal::Lsn objects_removed() const { return wal::Lsn(objects_removed_.load(std::memory_order_relaxed)); }
  void NoteObjectsRemoved(wal::Lsn lsn) { objects_removed_.store(lsn.value(), std::memory_order_relaxed); }

  // Adds the versions of an entry. In LSN order, by the publisher. Returns the bytes that they take.
  int64_t Publish(const RepositoryEffects& effects, wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is not on disk as of one LSN, each name with its version there.
  struct Changes {
    std::vector<std::pair<std::string, VersionTable<RefState>::Version>> refs;
    std::vector<std::pair<std::string, VersionTable<FileState>::Version>> files;
  };
  Changes DirtyAt(wal::Lsn target) const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the materializer, which holds the latch.
  struct Batch : Changes {
    wal::Lsn target;
    std::shared_ptr<const DiskRefs> disk;
    // The batch before failed half way: the disk may differ from `disk`, so nothing is taken to be there already.
    bool is_rewrite = false;
  };
  storage::Mutex* latch() ABSL_LOCK_RETURNED(latch_) { return &latch_; }
  // What has to be written so that the disk equals `target`. Loads the image when it is not there.
  absl::StatusOr<Batch> CollectBatch(wal::Lsn target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_);
  // Captures a file's content from disk before it is overwritten, when a snapshot older than its versions is in use.
  absl::Status CaptureFileBases(const Batch& batch, wal::Lsn oldest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_);
  // The disk now equals batch.target and shows `disk`.
  void FinishBatch(const Batch& batch, std::shared_ptr<const DiskRefs> disk, wal::Lsn oldest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_);

  // Why the directory could not be written the last time somebody tried: the repository is *set aside*, and takes no
  // commits until a batch succeeds. OK otherwise.
  absl::Status fault() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether it was not set aside before. For whoever holds the latch, so that a fault never comes after the batch
  // that has mended it. `now` is monotonic: IsWorthATry() says when to try again, later and later up to a minute.
  bool SetAside(const absl::Status& fault, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_);
  // Nothing is materialized while it does (txn/owed_work.cc).
  void SetOwesDirectoryWork(bool owes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_);
  bool IsWorthATry(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Loose object refs of the newest state (HEAD and symbolic refs do not count), and their values.
  absl::StatusOr<std::vector<refs::NamedRef>> NewestLooseRefs() ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops versions that were kept for snapshots below `oldest`.
  void Trim(wal::Lsn oldest) ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_dirty() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t overlay_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of them, what is not on disk yet.
  int64_t dirty_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Newest entry that changed refs or files here, and newest that the disk shows.
  wal::Lsn changed_lsn() const ABSL_LOCKS_EXCLUDED(mutex_);
  wal::Lsn materialized_lsn() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Makes sure that the image is there; takes the latch when it is not.
  absl::Status EnsureImage() ABSL_LOCKS_EXCLUDED(mutex_, latch_);
  absl::Status LoadImage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(latch_) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<FileState> ReadFileOnDisk(absl::string_view path);

  // Constant after construction.
  storage::FileSystem* const fs_;
  const CondemnedFiles* const condemned_;
  const RepositoryId id_;
  const wal::PartitionId partition_;
  const ObjectFormat format_;
  const storage::StorePath directory_;

  std::atomic<int> packs_added_{0};
  std::atomic<uint64_t> objects_removed_{0};

  storage::Mutex latch_{storage::MutexRank::kMaterializer};

  mutable storage::Mutex mutex_{storage::MutexRank::kOverlay};
  std::shared_ptr<const DiskRefs> disk_ ABSL_GUARDED_BY(mutex_);
  VersionTable<RefState> refs_ ABSL_GUARDED_BY(mutex_);
  VersionTable<FileState> files_ ABSL_GUARDED_BY(mutex_);
  wal::Lsn changed_lsn_ ABSL_GUARDED_BY(mutex_);
  wal::Lsn materialized_lsn_ ABSL_GUARDED_BY(mutex_);
  // Target of a batch that was begun and not finished, else zero. The disk may show anything up to it, so that only a batch
  // that reaches it puts the disk right.
  wal::Lsn unfinished_target_ ABSL_GUARDED_BY(mutex_);
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  bool owes_directory_work_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration next_try_ ABSL_GUARDED_BY(mutex_), patience_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<objects::ObjectLookup> objects_ ABSL_GUARDED_BY(mutex_);
  // Packs added after the oldest snapshot in use.
  struct YoungPack {
    wal::Lsn lsn;
    bool was_condemned = false;
  };
  std::map<std::string, YoungPack, std::less<>> young_packs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_REPOSITORY_STATE_H_
