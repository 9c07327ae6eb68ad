// What a transaction read and wrote in one partition, normalised and hashed outside the critical section.
//
// A lock is a key with three properties: its mode; for exclusive ones the effect of the write, which the history
// keeps; and which committed writes it meets, which only matters at its own check. The three belong together in the
// few combinations that the factories below make:
//
//   Shared       read: meets every committed write of the key
//   Passed       a directory or group on the way to what is written: as Shared, but commutes with Ensured
//   Exclusive    write by version: meets every committed write; effect kChange, kCreate or kDelete
//   Ensured      "exists, made when missing": commutes with other Ensured; meets removals and files
//   Blind        put or delete of a key: meets nothing itself, later reads meet it
//   Announced    an added pack, objects removed: meets nothing itself; a removal and a listing meet it
//
// A footprint that names anything of a repository passes entry(root of its id): the constructor adds that lock when it
// is missing, so that a committed subtree(root) is met by all. Only kEntry, kSubtree, kRef, kRefPrefix, kObjects, kKey,
// kKeyRange, their kPath counterparts, kLink and kRequest can be exclusive; an exclusive ref_prefix widens to its
// directory, an exclusive key_range to all keys of the partition (both arise from escalation alone).
//
// Normalising sorts, merges equal keys (an exclusive mode wins; the stricter `meets` wins, so that a key both read
// and blindly put is a read), and escalates: above kKeysMax keys the refs of a repository become ref_prefix of their
// directories, its files subtree of theirs, keys one range; when that does not suffice the whole repository. Escalation
// may only widen a footprint, never narrow it.
//
// Thread-compatible. Immutable after construction.
#ifndef REPOTXN_LOCKS_FOOTPRINT_H_
#define REPOTXN_LOCKS_FOOTPRINT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "locks/lock_key.h"
#include "locks/prefix_hash.h"
#include "storage/id128.h"
#include "wal/operation.h"

namespace repotxn::locks {

// What a write does to its key. kCreate and kDelete change the number of live refs by +1 and -1.
enum class Effect : uint8_t { kNone, kChange, kCreate, kDelete, kEnsure, kAnnounce };

// Which committed writes of its key a lock meets; a later one includes those before it.
enum class Meets : uint8_t { kNothing, kAllButEnsures, kAll };

struct Lock {
  LockKey key;
  LockMode mode = LockMode::kShared;
  Effect effect = Effect::kNone;
  Meets meets = Meets::kAll;

  static Lock Shared(LockKey key);
  static Lock Passed(LockKey key);
  static Lock Exclusive(LockKey key, Effect effect = Effect::kChange);
  static Lock Ensured(LockKey key);
  static Lock Blind(LockKey key);
  static Lock Announced(LockKey key);

  friend bool operator==(const Lock&, const Lock&) = default;
};

class Footprint {
 public:
  // More keys than this escalate.
  static constexpr size_t kKeysMax = 4096;

  Footprint() = default;
  // Normalises `locks`, all of one partition.
  explicit Footprint(std::vector<Lock> locks);

  absl::Span<const Lock> locks() const { return locks_; }
  bool empty() const { return locks_.empty(); }
  bool has_exclusive() const { return exclusive_count_ > 0; }
  size_t exclusive_count() const { return exclusive_count_; }
  bool escalated() const { return escalated_; }

  // Hashes of lock i's name, in the order of ForEachPrefixHash().
  absl::Span<const PrefixHash> hashes(size_t i) const {
    return absl::MakeSpan(hashes_).subspan(spans_[i].first_hash, spans_[i].hash_count);
  }
  // Of a created ref: the locks [begin, end) whose names lie below it.
  struct Below {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  Below below(size_t i) const { return spans_[i].below; }

 private:
  struct Spans {
    uint32_t first_hash = 0;
    uint32_t hash_count = 0;
    Below below;
  };
  void Hash();

  std::vector<Lock> locks_;    // sorted by key, each key once
  std::vector<Spans> spans_;   // parallel to locks_
  std::vector<PrefixHash> hashes_;
  size_t exclusive_count_ = 0;
  bool escalated_ = false;
};

// Gives every lock to the footprint of its partition. `partition_of` is asked once a repository and must know every
// repository named.
absl::btree_map<wal::PartitionId, Footprint> SplitByPartition(
    std::vector<Lock> locks,
    absl::FunctionRef<wal::PartitionId(const RepositoryId&)> partition_of);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_FOOTPRINT_H_
