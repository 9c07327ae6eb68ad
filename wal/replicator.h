// The seam between the commit pipeline and what makes a group of entries durable.
//
// On one node that is a file (LocalReplicator: append and sync of a segment); on several it will be a sequencer and a
// majority of payload copies. The pipeline above is the same, and nothing in it assumes that an answer comes at once or
// comes at all: *unknown* is a normal answer, resolved later by transaction id and never followed by a silent second
// commit.
//
// Contract (one conformance suite for every implementation)
//   C1  kCommitted is reported only when entry and payload are durable; one proposal an LSN; no gaps.
//   C2  LSNs are ours and carried in the entry.
//   C3  kUnknown can be resolved by transaction id (Resolve) after recovery.
//   C4  Ownership is a hint until an append or a barrier succeeded.
//   C5  Bytes and entries in flight are bounded.
//   C6  What is above the committed LSN is invisible everywhere.
//
// Thread-safe. One group is under way at a time (the caller, LogQueue, sees to it).
#ifndef REPOTXN_WAL_REPLICATOR_H_
#define REPOTXN_WAL_REPLICATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/id128.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"
#include "wal/operation.h"

namespace repotxn::wal {

using Epoch = uint64_t;

// Where the log ends: what Acquire() hands to the pipeline.
struct LogTail {
  Lsn last;            // newest entry; Zero for an empty log
  ChainChecksum chain; // of that entry
  Epoch epoch = 0;     // to be stamped on every entry of this ownership
};

enum class AppendOutcome : uint8_t {
  kCommitted,      // durable
  kNotCommitted,   // never sent, never will be
  kUnknown,        // may or may not be there after recovery
};

// Handle of a group on its way.
class PendingAppend {
 public:
  virtual ~PendingAppend() = default;
  // Waits for the group. For a local log the calling thread does the write and the sync here. `status` says why when
  // the outcome is not kCommitted. Called exactly once.
  virtual AppendOutcome Wait(absl::Status* status) = 0;
};

enum class ProposalState : uint8_t { kCommitted, kNotCommitted, kUnknown };
struct Resolution {
  ProposalState state = ProposalState::kUnknown;
  Lsn lsn;  // when committed
};

// Reads committed entries in LSN order, from a position. Single-threaded.
class EntryCursor {
 public:
  virtual ~EntryCursor() = default;
  // The next entry, or kOutOfRange when the cursor stands at the committed end (call again later).
  virtual absl::StatusOr<DecodedEntry> Next() = 0;
};

class Replicator {
 public:
  virtual ~Replicator() = default;

  // Becomes the log's owner; recovers what is needed for it. Call once before anything else.
  // Errors: kDataLoss damage before the tail; kUnavailable somebody else owns it or a sync failed.
  virtual absl::StatusOr<LogTail> Acquire() = 0;
  // Gives ownership up after the last group; no append may follow.
  virtual absl::Status Release() = 0;

  // Makes the payload files of a transaction as durable as a commit needs them, before its critical section. They are
  // already in payload/<transaction id>/, synced with their directory. Nothing to do on one node.
  virtual absl::Status StagePayload(const TransactionId& id, absl::Span<const PayloadFile> files) = 0;

  // Sets `bytes` of record space aside for an entry about to be enqueued. No system call: only space that exists.
  // kResourceExhausted: nothing was set aside, the caller has published nothing.
  virtual absl::Status ReserveSpace(int64_t bytes) = 0;
  // Makes more space ahead of need (background thread; may do I/O). Called when HasSpareSpace() is false.
  virtual absl::Status PrepareSpace() = 0;
  virtual bool HasSpareSpace() const = 0;

  // Starts a group of entries with dense LSNs directly behind the last one. An empty group makes the newest committed
  // entry provable (idle and closing logs write one).
  virtual std::unique_ptr<PendingAppend> Append(std::vector<SealedEntry> group) = 0;

  virtual absl::StatusOr<Resolution> Resolve(const TransactionId& id) = 0;
  // Entries from `from` on. kOutOfRange when trimmed.
  virtual absl::StatusOr<std::unique_ptr<EntryCursor>> Follow(Lsn from) = 0;
  // Tells that everything up to `lsn` is applied here (durable outside the log): it may be trimmed.
  virtual absl::Status Applied(Lsn lsn) = 0;
  // Returns when this node is known to have been the owner at some time after the call.
  virtual absl::Status ReadBarrier() = 0;
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_REPLICATOR_H_
