// The part of the conflict history that knows the key space, link rows, request ids and removals of objects.
//
// Internal to locks/. These names have no hierarchy: the table holds the newest LSN of each. Ranges of keys are
// answered by the ordered index; link ranges by one LSN a member and a pool. An exclusive key_range arises from
// escalation alone and stands for all keys of the partition.
//
// Externally synchronised by the mutex of the partition.
#ifndef REPOTXN_LOCKS_KEY_HISTORY_H_
#define REPOTXN_LOCKS_KEY_HISTORY_H_

#include "absl/types/span.h"
#include "locks/footprint.h"
#include "locks/key_index.h"
#include "locks/lsn_table.h"
#include "locks/path_history.h"
#include "locks/prefix_hash.h"
#include "wal/lsn.h"

namespace repotxn::locks {

// Finds a write after `snapshot_lsn` that `lock` meets.
Met CheckKey(const LsnTable& table, const KeyIndex& index, const Lock& lock,
             absl::Span<const PrefixHash> hashes, wal::Lsn snapshot_lsn);

// Enters an exclusive key, with its `node` when its kind is kKey; takes it out when it is still the newest.
void RecordKey(KeyKind kind, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, KeyNode* node,
               LsnTable* table, KeyIndex* index);
void EvictKey(KeyKind kind, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, KeyNode* node,
              LsnTable* table, KeyIndex* index);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_KEY_HISTORY_H_
