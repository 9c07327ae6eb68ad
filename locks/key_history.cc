#include "locks/key_history.h"

#include <algorithm>

#include "storage/check.h"

namespace repotxn::locks {
namespace {

// Where a write of this kind stands, and what its conflict is called.
struct Place {
  Domain domain;
  ConflictRule rule;
};

Place PlaceOf(KeyKind kind) {
  switch (kind) {
    case KeyKind::kObjects:
      return {Domain::kObjectsWrite, ConflictRule::kEntryWritten};
    case KeyKind::kKey:
      return {Domain::kKeyWrite, ConflictRule::kKeyWritten};
    case KeyKind::kKeyRange:
      return {Domain::kAllKeysWrite, ConflictRule::kKeyRangeWritten};
    case KeyKind::kRequest:
      return {Domain::kRequestWrite, ConflictRule::kRequestUsed};
    default:
      return {Domain::kLinkWrite, ConflictRule::kLinkWritten};
  }
}

// A link row stands under its member and its pool too; of a key, the hash of all keys is for checks alone.
absl::Span<const PrefixHash> Written(KeyKind kind, absl::Span<const PrefixHash> hashes) {
  return kind == KeyKind::kLink ? hashes : hashes.last(1);
}

}  // namespace

Met CheckKey(const LsnTable& table, const KeyIndex& index, const Lock& lock,
             absl::Span<const PrefixHash> hashes, wal::Lsn snapshot_lsn) {
  const KeyKind kind = lock.key.kind;
  const Place place = PlaceOf(kind);
  wal::Lsn lsn = table.GetLsn(place.domain, hashes.back());
  if (kind == KeyKind::kKey && table.Has(Domain::kAllKeysWrite)) {
    lsn = std::max(lsn, table.GetLsn(Domain::kAllKeysWrite, hashes.front()));
  }
  if (kind == KeyKind::kKeyRange) {
    const LockKey& key = lock.key;
    lsn = std::max(lsn, index.NewestIn(absl::string_view(key.bytes.data(), key.bytes.size()),
                                       absl::string_view(key.end.data(), key.end.size())));
  }
  return lsn > snapshot_lsn ? Met{place.rule, lsn} : Met{};
}

void RecordKey(KeyKind kind, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, KeyNode* node,
               LsnTable* table, KeyIndex* index) {
  for (const PrefixHash& hash : Written(kind, hashes)) {
    table->Set(PlaceOf(kind).domain, hash, lsn.value());
  }
  if (node != nullptr) index->Insert(node);
}

void EvictKey(KeyKind kind, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, KeyNode* node,
              LsnTable* table, KeyIndex* index) {
  for (const PrefixHash& hash : Written(kind, hashes)) {
    table->EraseIfIs(PlaceOf(kind).domain, hash, lsn.value());
  }
  if (node != nullptr) index->Erase(node);
}

}  // namespace repotxn::locks
