#include "locks/path_history.h"

#include "storage/check.h"

namespace repotxn::locks {
namespace {

bool IsSubtree(KeyKind kind) {
  return kind == KeyKind::kSubtree || kind == KeyKind::kPathSubtree;
}
bool IsChildren(KeyKind kind) {
  return kind == KeyKind::kChildren || kind == KeyKind::kPathChildren;
}

// How many of the hashes are of the path and its prefixes; see ForEachPrefixHash().
size_t OwnHashCount(KeyKind kind, absl::string_view path, absl::Span<const PrefixHash> hashes) {
  return kind == KeyKind::kSubtree && path.empty() ? 1 : hashes.size();
}

// An exclusive subtree at any of the prefixes.
Met CheckAncestors(const LsnTable& table, absl::Span<const PrefixHash> prefixes,
                   wal::Lsn snapshot_lsn) {
  if (!table.Has(Domain::kSubtreeWrite) || REPOTXN_PLANT("locks.ignore_ancestor_removal")) {
    return Met{};
  }
  for (const PrefixHash& prefix : prefixes) {
    const wal::Lsn lsn = table.GetLsn(Domain::kSubtreeWrite, prefix);
    if (lsn > snapshot_lsn) return Met{ConflictRule::kAncestorRemoved, lsn};
  }
  return Met{};
}

// The hashes that follow the path's own in a subtree of a whole repository: all refs, objects.
Met CheckRestOfRepository(const LsnTable& table, absl::Span<const PrefixHash> rest,
                          wal::Lsn snapshot_lsn) {
  if (rest.empty()) return Met{};
  REPOTXN_DCHECK(rest.size() == 2);
  for (const wal::Lsn lsn : {table.GetLsn(Domain::kRefBelow, rest[0]),
                             table.GetLsn(Domain::kObjectsWrite, rest[1])}) {
    if (lsn > snapshot_lsn) return Met{ConflictRule::kSubtreeWritten, lsn};
  }
  return Met{};
}

// Calls `put` with every (domain, hash) that a write of this kind and effect has an LSN in.
template <typename Put>
void ForEachPlace(const WrittenKey& key, absl::Span<const PrefixHash> hashes, Put put) {
  const Effect effect = key.effect;
  // The hashes of refs and objects behind a root are for checks alone.
  hashes = hashes.first(OwnHashCount(key.kind, key.name(), hashes));
  if (IsSubtree(key.kind)) {
    put(Domain::kSubtreeWrite, hashes.back());
  } else if (effect == Effect::kEnsure || effect == Effect::kAnnounce) {
    put(Domain::kEntryEnsure, hashes.back());
  } else {
    put(Domain::kEntryWrite, hashes.back());
  }
  if (hashes.size() < 2) return;
  put(Domain::kChildrenWrite, hashes[hashes.size() - 2]);
  for (const PrefixHash& above : hashes.first(hashes.size() - 1)) put(Domain::kBelowWrite, above);
}

}  // namespace

Met CheckPath(const LsnTable& table, const Lock& lock, absl::Span<const PrefixHash> hashes,
              wal::Lsn snapshot_lsn) {
  const KeyKind kind = lock.key.kind;
  const size_t own_count = OwnHashCount(
      kind, absl::string_view(lock.key.bytes.data(), lock.key.bytes.size()), hashes);
  const PrefixHash& own = hashes[own_count - 1];
  const auto newer = [&table, &own, snapshot_lsn](Domain domain, ConflictRule rule) {
    const wal::Lsn lsn = table.GetLsn(domain, own);
    return lsn > snapshot_lsn ? Met{rule, lsn} : Met{};
  };
  Met met;
  if (IsChildren(kind)) {
    met = newer(Domain::kChildrenWrite, ConflictRule::kChildrenWritten);
  } else {
    const bool is_passed = lock.mode == LockMode::kShared && lock.meets == Meets::kAllButEnsures;
    met = newer(Domain::kEntryWrite,
                is_passed ? ConflictRule::kAncestorRemoved : ConflictRule::kEntryWritten);
    if (met.rule == ConflictRule::kNone && lock.meets == Meets::kAll) {
      met = newer(Domain::kEntryEnsure, ConflictRule::kEntryWritten);
    }
  }
  if (met.rule == ConflictRule::kNone && IsSubtree(kind)) {
    met = newer(Domain::kBelowWrite, ConflictRule::kSubtreeWritten);
    if (met.rule == ConflictRule::kNone) {
      met = CheckRestOfRepository(table, hashes.subspan(own_count), snapshot_lsn);
    }
  }
  if (met.rule != ConflictRule::kNone) return met;
  return CheckAncestors(table, hashes.first(own_count), snapshot_lsn);
}

void RecordPath(const WrittenKey& key, absl::Span<const PrefixHash> hashes, wal::Lsn lsn,
                LsnTable* table) {
  ForEachPlace(key, hashes, [lsn, table](Domain domain, const PrefixHash& hash) {
    table->Set(domain, hash, lsn.value());
  });
}

void EvictPath(const WrittenKey& key, absl::Span<const PrefixHash> hashes, wal::Lsn lsn,
               LsnTable* table) {
  ForEachPlace(key, hashes, [lsn, table](Domain domain, const PrefixHash& hash) {
    table->EraseIfIs(domain, hash, lsn.value());
  });
}

}  // namespace repotxn::locks
