#include "locks/ref_history.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "storage/check.h"

namespace repotxn::locks {
namespace {

absl::Span<const PrefixHash> Above(absl::Span<const PrefixHash> hashes) {
  return hashes.first(hashes.size() - 1);
}

// An exclusive ref_prefix at one of the directories.
Met CheckPrefixWrites(const LsnTable& table, absl::Span<const PrefixHash> directories,
                      wal::Lsn snapshot_lsn) {
  if (!table.Has(Domain::kRefPrefixWrite)) return Met{};
  for (const PrefixHash& directory : directories) {
    const wal::Lsn lsn = table.GetLsn(Domain::kRefPrefixWrite, directory);
    if (lsn > snapshot_lsn) return Met{ConflictRule::kRefPrefixWritten, lsn};
  }
  return Met{};
}

// A ref, created since, that stands where one of the directories would have to be.
Met CheckLiveAt(const LsnTable& table, absl::Span<const PrefixHash> directories,
                wal::Lsn snapshot_lsn) {
  for (const PrefixHash& directory : directories) {
    const RefState state = RefState::Of(table, directory);
    if (state.is_live && state.lsn > snapshot_lsn) {
      return Met{ConflictRule::kRefAbove, state.lsn};
    }
  }
  return Met{};
}

// Refs in the history that are live below the created ref `i` and that the footprint does not delete itself.
int64_t LiveBelow(const LsnTable& table, const Footprint& footprint, size_t i) {
  auto live = static_cast<int64_t>(table.Get(Domain::kRefLive, footprint.hashes(i).back()));
  const Footprint::Below below = footprint.below(i);
  for (size_t j = below.begin; live > 0 && j < below.end; ++j) {
    if (footprint.locks()[j].effect != Effect::kDelete) continue;
    if (RefState::Of(table, footprint.hashes(j).back()).is_live) --live;
  }
  return live;
}

Met CheckCreation(const LsnTable& table, const Footprint& footprint, size_t i,
                  wal::Lsn snapshot_lsn) {
  const absl::Span<const PrefixHash> hashes = footprint.hashes(i);
  const PrefixHash& own = hashes.back();
  if (REPOTXN_NEVER(hashes.size() < 2)) return Met{};  // a ref has a name
  // The empty prefix is no ref.
  const Met above = CheckLiveAt(table, Above(hashes).subspan(1), snapshot_lsn);
  if (above.rule != ConflictRule::kNone) return above;
  // An escalated entry may have created anything below; the counts do not know.
  const wal::Lsn prefix_lsn = table.GetLsn(Domain::kRefPrefixBelow, own);
  if (prefix_lsn > snapshot_lsn) return Met{ConflictRule::kRefBelow, prefix_lsn};
  const wal::Lsn below_lsn = table.GetLsn(Domain::kRefBelow, own);
  if (below_lsn > snapshot_lsn && LiveBelow(table, footprint, i) > 0) {
    return Met{ConflictRule::kRefBelow, below_lsn};
  }
  return Met{};
}

// Whether a written key lies under a prefix that ends inside a component.
bool IsUnder(const WrittenKey& key, const RepositoryId& id, absl::string_view prefix) {
  return (key.kind == KeyKind::kRef || key.kind == KeyKind::kRefPrefix) && key.id == id &&
         absl::StartsWith(key.name(), prefix);
}

}  // namespace

Met CheckRef(const LsnTable& table, const Footprint& footprint, size_t i, wal::Lsn snapshot_lsn) {
  const absl::Span<const PrefixHash> hashes = footprint.hashes(i);
  const RefState state = RefState::Of(table, hashes.back());
  if (state.lsn > snapshot_lsn) return Met{ConflictRule::kRefWritten, state.lsn};
  const Met met = CheckPrefixWrites(table, Above(hashes), snapshot_lsn);
  if (met.rule != ConflictRule::kNone) return met;
  if (footprint.locks()[i].effect != Effect::kCreate) return Met{};
  return CheckCreation(table, footprint, i, snapshot_lsn);
}

Met CheckRefPrefix(const LsnTable& table, const RecordLog& records, const Lock& lock,
                   absl::Span<const PrefixHash> hashes, wal::Lsn snapshot_lsn) {
  const absl::string_view prefix(lock.key.bytes.data(), lock.key.bytes.size());
  Met met = CheckPrefixWrites(table, hashes, snapshot_lsn);
  if (met.rule != ConflictRule::kNone) return met;
  if (lock.mode == LockMode::kExclusive) {
    // Something below may be a creation, for which the refs above would be in the way.
    met = CheckLiveAt(table, hashes.subspan(1), snapshot_lsn);
    if (met.rule != ConflictRule::kNone) return met;
  }
  const wal::Lsn below_lsn = table.GetLsn(Domain::kRefBelow, hashes.back());
  if (below_lsn <= snapshot_lsn) return Met{};
  if (prefix.empty() || prefix.back() == '/') {
    return Met{ConflictRule::kRefPrefixWritten, below_lsn};
  }
  REPOTXN_PROBE("locks.odd_prefix_walk");
  records.ForEachAfter(snapshot_lsn, [&](wal::Lsn lsn, const WrittenKey& key) {
    if (!IsUnder(key, lock.key.id, prefix)) return true;
    met = Met{ConflictRule::kRefPrefixWritten, lsn};
    return false;
  });
  return met;
}

void RecordRef(Effect effect, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table) {
  const RefState before = RefState::Of(*table, hashes.back());
  const RefState now{lsn, effect != Effect::kDelete};
  table->Set(Domain::kRefWrite, hashes.back(), now.Encoded());
  const int live_delta = (now.is_live ? 1 : 0) - (before.is_live ? 1 : 0);
  for (const PrefixHash& directory : Above(hashes)) {
    table->Set(Domain::kRefBelow, directory, lsn.value());
    if (live_delta != 0) table->Add(Domain::kRefLive, directory, live_delta);
  }
}

void EvictRef(Effect effect, absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table) {
  const RefState written{lsn, effect != Effect::kDelete};
  const bool was_newest = table->EraseIfIs(Domain::kRefWrite, hashes.back(), written.Encoded());
  for (const PrefixHash& directory : Above(hashes)) {
    table->EraseIfIs(Domain::kRefBelow, directory, lsn.value());
    if (was_newest && written.is_live) table->Add(Domain::kRefLive, directory, -1);
  }
}

void RecordRefPrefix(absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table) {
  table->Set(Domain::kRefPrefixWrite, hashes.back(), lsn.value());
  for (const PrefixHash& directory : hashes) {
    table->Set(Domain::kRefBelow, directory, lsn.value());
    table->Set(Domain::kRefPrefixBelow, directory, lsn.value());
  }
}

void EvictRefPrefix(absl::Span<const PrefixHash> hashes, wal::Lsn lsn, LsnTable* table) {
  table->EraseIfIs(Domain::kRefPrefixWrite, hashes.back(), lsn.value());
  for (const PrefixHash& directory : hashes) {
    table->EraseIfIs(Domain::kRefBelow, directory, lsn.value());
    table->EraseIfIs(Domain::kRefPrefixBelow, directory, lsn.value());
  }
}

}  // namespace repotxn::locks
