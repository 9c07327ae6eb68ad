// The replicator of a store on one node: durable means written to a segment and synced.
//
// Acquire() recovers the log (wal/recovery.h): what it holds above `base` is durable when it
// returns and is read with Follow(base.lsn.Next()). From then on each group is one write and one
// sync, done by the thread that waits. A group that crosses the end of a segment is written in two
// parts, each with its own sync.
//
// Space. Reservations are laid out as if every entry were a group of its own, in segments that
// exist; the true layout never needs more, so a reserved entry always finds its place and only
// writing and syncing can fail. Segments are made ahead by PrepareSpace(), zero-filled and synced;
// retired ones are renamed and used again.
//
// Failure. After the first failed write or sync the replicator is poisoned for ever: that group is
// *unknown*, later ones are not committed, nothing is retried. The next Acquire(), in a new object,
// reads past the page cache and decides.
//
// Invariants
//   L1  Only the current segment is written; it is never retired.
//   L2  A reserved entry has its place in a segment that exists.
//   L3  committed LSN and what Follow() shows cover an entry only after its sync succeeded.
//   L4  Poison is sticky.
//
// Limitations: epochs are counted here (old epoch + 1 at each Acquire) and fence nothing; the
// store's LOCK keeps a second process out. Resolve() knows what the log retains; for transactions
// whose entry may have been trimmed the caller asks the applied outcomes first [A24].
//
// Thread-safe, apart from one group being under way at a time. Its mutex is a leaf (rank kLeaf); no
// I/O under it.
//
// Lifetime: `file_system` must outlive it, and it its cursors and pending appends.
#ifndef REPOTXN_WAL_LOCAL_REPLICATOR_H_
#define REPOTXN_WAL_LOCAL_REPLICATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/file_system.h"
#include "storage/store_path.h"
#include "storage/sync.h"
#include "wal/recovery.h"
#include "wal/replicator.h"
#include "wal/segment.h"

namespace repotxn::wal {

class LocalReplicator : public Replicator {
 public:
  struct Options {
    // Bytes of a segment. Range [64 KiB, 1 GiB], a multiple of 4 KiB. A record has at most a
    // quarter of it.
    int64_t segment_bytes = 64 << 20;
    // Segments kept ready ahead of need. Range [1, 64].
    int spare_segments = 1;
    storage::StorePath directory = storage::StorePath::Literal("log");
    storage::StorePath payload_directory = storage::StorePath::Literal("payload");
    // Source of salts; random when empty.
    std::function<uint64_t()> random_salt;
    // The applied position, when a reader of the log holds `base` below it: the log reaches it.
    LogPosition durable;
  };

  // `base`: the position above which entries are needed, durable outside the log: the low-water
  // mark, at most the applied position. kInvalidArgument when an option is out of range; touches
  // nothing.
  static absl::StatusOr<std::unique_ptr<LocalReplicator>> Create(storage::FileSystem* file_system,
                                                                 const LogPosition& base,
                                                                 Options options);
  ~LocalReplicator() override;

  absl::StatusOr<LogTail> Acquire() override;
  absl::Status Release() override;
  absl::Status StagePayload(const TransactionId& id, absl::Span<const PayloadFile> files) override;
  absl::Status ReserveSpace(int64_t bytes) override;
  absl::Status PrepareSpace() override;
  bool HasSpareSpace() const override;
  std::unique_ptr<PendingAppend> Append(std::vector<SealedEntry> group) override;
  absl::StatusOr<Resolution> Resolve(const TransactionId& id) override;
  absl::StatusOr<std::unique_ptr<EntryCursor>> Follow(Lsn from) override;
  absl::Status Applied(Lsn lsn) override;
  absl::Status ReadBarrier() override;

  // Bytes that the last recovery cut as a torn tail; for a warning and a counter.
  int64_t torn_bytes() const;
  // Oldest LSN that Follow() can start at.
  Lsn retained_from() const;
  // Bytes of the segments in use (spares excluded): what a checkpoint would free.
  int64_t retained_bytes() const;
  // About how many bytes the records above `lsn` take: exact at the bounds of segments, in between
  // in proportion to the LSNs. What is trimmed already counts nothing.
  int64_t BytesAbove(Lsn lsn) const;
  // Whether Applied(lsn) would free a segment.
  bool HasSegmentsBelow(Lsn lsn) const;
  Lsn committed_lsn() const;

 private:
  class Pending;
  class Cursor;
  // A segment in use.
  struct Segment {
    SegmentHeader header;
    int64_t file_bytes = 0;
    int64_t used_bytes = 0;  // up to the end of its newest group
    Lsn last_lsn;  // newest committed entry in it; first_lsn - 1 when there is none
    absl::flat_hash_map<TransactionId, Lsn> ids;
  };
  // Where the next record goes: in segments that exist, numbered from the current one (0), then the
  // spares.
  struct Place {
    size_t segment = 0;
    int64_t offset = 0;
  };
  // A file made ahead, opened ahead too: taking it into use needs no system call that could fail.
  struct Spare {
    uint64_t number = 0;
    std::unique_ptr<storage::WritableFile> file;
  };

  LocalReplicator(storage::FileSystem* file_system, const LogPosition& base, Options options);
  storage::StorePath PathOf(uint64_t number) const;
  absl::StatusOr<Spare> OpenSpare(uint64_t number);
  LogTail Adopt(RecoveredLog recovered, std::unique_ptr<storage::WritableFile> file,
                std::deque<Spare> spares);

  // Appending, by the one thread that has a group under way.
  AppendOutcome WriteGroup(const std::vector<SealedEntry>& group, absl::Status* status);
  absl::Status WriteParts(absl::Span<const SealedEntry> entries);
  int64_t EntriesThatFit(absl::Span<const SealedEntry> entries) const;
  absl::Status TakeNextSegment();
  absl::Status WritePart(absl::Span<const SealedEntry> entries);
  absl::Status SyncPart();
  void PublishPart(absl::Span<const SealedEntry> entries);
  absl::Status PoisonWith(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendRefusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Making and retiring files; one thread at a time between Begin and End.
  void BeginMaintenance() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndMaintenance() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AddSpare() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Retire(const std::vector<uint64_t>& numbers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the oldest segment holds nothing above `lsn`, and is not the one in use or about to be.
  bool OldestIsBelow(Lsn lsn) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSpareSpaceLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Segment* SegmentHolding(Lsn lsn) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  storage::FileSystem* const file_system_;
  const LogPosition base_;
  const Options options_;

  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar maintenance_done_;
  bool acquired_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  bool maintenance_ ABSL_GUARDED_BY(mutex_) = false;  // files are being made or renamed
  absl::Status poison_ ABSL_GUARDED_BY(mutex_);       // L4
  std::deque<Segment> segments_
      ABSL_GUARDED_BY(mutex_);  // in use, oldest first; the last is current (L1)
  std::deque<Spare> spares_ ABSL_GUARDED_BY(mutex_);  // in the order in which they will be used
  uint64_t number_max_ ABSL_GUARDED_BY(mutex_) = 0;
  Place planned_ ABSL_GUARDED_BY(mutex_);  // behind the last reservation (L2)
  Lsn committed_ ABSL_GUARDED_BY(mutex_);  // L3
  absl::flat_hash_set<TransactionId> unknown_ ABSL_GUARDED_BY(mutex_);  // of the group that failed
  int64_t torn_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  // The appending thread's alone.
  SegmentHeader current_;
  std::unique_ptr<storage::WritableFile> file_;
  int64_t file_bytes_ = 0;
  int64_t end_offset_ = 0;       // the next group goes here
  uint64_t ordinal_ = 0;         // of the newest group in the current segment
  bool header_pending_ = false;  // the current segment's header goes out with its first group
  LogPosition written_;          // newest entry whose sync succeeded
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_LOCAL_REPLICATOR_H_
