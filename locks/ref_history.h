// The part of the conflict history that knows refs.
//
// Internal to locks/. A write of ref n sets the newest LSN of n, with whether it left n live, and of "a ref below" for
// every directory prefix of n; and it moves the count of live refs below each prefix when n became live or ceased to
// be. The counts speak of refs whose newest write is in the history: a ref that is older than all of it was seen by
// every open transaction and is no news to any.
//
// An exclusive ref_prefix (an escalated footprint) may have done anything below it: it conflicts with every ref and
// prefix it holds, and with every creation above it.
//
// Externally synchronised by the mutex of the partition.
#ifndef REPOTXN_LOCKS_REF_HISTORY_H_
#define REPOTXN_LOCKS_REF_HISTORY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "locks/footprint.h"
#include "locks/lsn_table.h"
#include "locks/path_history.h"
#include "locks/prefix_hash.h"
#include "locks/record_log.h"
#include "wal/lsn.h"

namespace repotxn::locks {

// Value of Domain::kRefWrite: LSN shifted left by one, and whether the ref is live.
struct RefState {
  wal::Lsn lsn;
  bool is_live = false;

  static RefState Of(const LsnTable& table, const PrefixHash& ref) {
    const uint64_t value = table.Get(Domain::kRefWrite, ref);
    return RefState{wal::Lsn(value >> 1), (value & 1) != 0};
  }
  uint64_t Encoded() const { return lsn.value() << 1 | (is_live ? 1 : 0); }
};

// Finds a write after `snapshot_lsn` that lock `i` of `footprint`, a kRef, meets.
Met CheckRef(const LsnTable& table, const Footprint& footprint, size_t i, wal::Lsn snapshot_lsn);
// The same for a kRefPrefix. `records` answers for prefixes that end inside a component.
Met CheckRefPrefix(const LsnTable& table, const RecordLog& records, const Lock& lock,
                   absl::Span<const PrefixHash> hashes, wal::Lsn snapshot_lsn);

void RecordRef(Effect effect, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table);
void EvictRef(Effect effect, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table);
void RecordRefPrefix(absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table);
void EvictRefPrefix(absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_REF_HISTORY_H_
