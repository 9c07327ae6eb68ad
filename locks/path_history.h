// The part of the conflict history that knows paths: files of repositories, and repository paths in partition 0.
//
// Internal to locks/. A write of path p sets, in the table, the newest LSN of p itself (one for changes, one for
// Ensured and Announced, which commute with each other), of the children of p's directory, and of "below" for every
// directory above it. A check probes its own name, and, when anybody holds an exclusive subtree, every prefix for one.
//
// Externally synchronised by the mutex of the partition.
#ifndef REPOTXN_LOCKS_PATH_HISTORY_H_
#define REPOTXN_LOCKS_PATH_HISTORY_H_

#include "absl/types/span.h"
#include "locks/footprint.h"
#include "locks/lsn_table.h"
#include "locks/prefix_hash.h"
#include "locks/record_log.h"
#include "locks/verdict.h"
#include "wal/lsn.h"

namespace repotxn::locks {

// A committed write that a lock meets; no conflict when the rule is kNone.
struct Met {
  ConflictRule rule = ConflictRule::kNone;
  wal::Lsn lsn;
};

// Finds a write after `snapshot_lsn` that `lock` (of kind entry, children or subtree, or their kPath forms) meets.
Met CheckPath(const LsnTable& table, const Lock& lock, absl::Span<const PrefixHash> hashes,
              wal::Lsn snapshot_lsn);

// Enters an exclusive entry or subtree; takes it out when it is still the newest.
void RecordPath(const WrittenKey& key, absl::Span<const PrefixHash> hashes, wal::Lsn lsn,
                LsnTable* table);
void EvictPath(const WrittenKey& key, absl::Span<const PrefixHash> hashes, wal::Lsn lsn,
               LsnTable* table);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_PATH_HISTORY_H_
