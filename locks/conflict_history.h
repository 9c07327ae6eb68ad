// The writes of one partition since the oldest snapshot, and the check against them.
//
// Only exclusive keys of committed entries enter. A transaction that read at S conflicts when a key written after S
// meets any key of its own, shared or exclusive; a committed reader never conflicts with anybody, because commit order
// is the serial order. The history trusts a footprint to be valid at its own snapshot (who creates a ref has seen that
// none stood in the way at S) and answers only what changed since.
//
// Two structures: a table from 80-bit hashes of names and their prefixes to the newest LSN (LsnTable), so that a check
// costs O(components of my own footprint) whatever the history holds; and the records in LSN order (RecordLog) with the
// names, an ordered index of the written keys of the key space among them. One thing costs more: a ref_prefix that
// ends inside a component, when something in its directory was written after S, walks the records since S.
//
// D/F: creating ref n conflicts with a ref created after S, and still live, at a prefix of n or below n. Live refs are
// counted below every prefix, so create and delete cancel out; refs that my footprint deletes do not count.
//
// Memory: about 120 bytes for an entry of one new ref; chunks and table pages of constant size, so that Record()
// allocates nothing that grows with the history except the directory of the table (8 bytes for each 4 KiB of it).
//
// Invariants
//   I1  floor() never decreases; LSNs are recorded in strictly increasing order, each above floor().
//   I2  For a snapshot at or above floor() the verdict does not depend on what was evicted.
//   I3  When the last record is evicted the table is empty.
//
// Externally synchronised by the mutex of the partition; const calls may be concurrent.
#ifndef REPOTXN_LOCKS_CONFLICT_HISTORY_H_
#define REPOTXN_LOCKS_CONFLICT_HISTORY_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "locks/footprint.h"
#include "locks/key_index.h"
#include "locks/lsn_table.h"
#include "locks/record_log.h"
#include "locks/verdict.h"
#include "storage/id128.h"
#include "wal/lsn.h"

namespace repotxn::locks {

class ConflictHistory {
 public:
  // `floor`: newest committed LSN when the history begins; nothing at or before it can be checked against.
  explicit ConflictHistory(wal::Lsn floor) : floor_(floor) {}
  ConflictHistory(const ConflictHistory&) = delete;
  ConflictHistory& operator=(const ConflictHistory&) = delete;

  // Whether a transaction that read at `snapshot_lsn` may commit now. kTooOld when snapshot_lsn < floor().
  // Allocates nothing.
  CheckResult Check(const Footprint& footprint, wal::Lsn snapshot_lsn) const;

  // Enters the exclusive keys of a committed entry, and evicts a few old ones. Footprints without exclusive keys leave
  // no trace. `lsn` is above every one recorded before.
  void Record(const Footprint& footprint, wal::Lsn lsn, const TransactionId& transaction_id);

  // No open transaction reads below `lsn` any more; what was written at or before it may go. Smaller values than
  // before are ignored. Constant time.
  void SetOldestSnapshot(wal::Lsn lsn);

  // Evicts at most `keys_max` keys (never less than one record, when one may go) and tells whether more may go. For
  // partitions in which nobody commits, and for tests.
  bool Evict(size_t keys_max);

  // What a packing that read at `snapshot_lsn` must leave out: calls `visit` in LSN order with every ref of `id`
  // written after it, or, for an entry that escalated, with a prefix (`is_prefix`) under which any ref may have been.
  struct WrittenRef {
    absl::string_view name;
    bool is_prefix = false;
    wal::Lsn lsn;
  };
  void ForEachRefWrittenSince(const RepositoryId& id, wal::Lsn snapshot_lsn,
                              absl::FunctionRef<void(const WrittenRef&)> visit) const;

  // Newest write of exactly this key that is still in the history (kEntry, kRef, kObjects, kKey, kPathEntry, kLink,
  // kRequest), else Lsn::Zero().
  wal::Lsn NewestWrite(const LockKey& key) const;

  wal::Lsn floor() const { return floor_; }
  // Entries, keys and bytes held; bytes include unused space of chunks and pages.
  size_t record_count() const { return records_.record_count(); }
  size_t key_count() const { return records_.key_count(); }
  size_t slot_count() const { return table_.size(); }
  size_t bytes() const { return table_.bytes() + records_.bytes(); }

 private:
  CheckResult Conflict(wal::Lsn snapshot_lsn, size_t lock_index, ConflictRule rule,
                       wal::Lsn lsn) const;

  wal::Lsn floor_;       // I1
  wal::Lsn newest_;      // last recorded
  LsnTable table_;
  KeyIndex key_index_;   // nodes live in records_
  RecordLog records_;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_CONFLICT_HISTORY_H_
