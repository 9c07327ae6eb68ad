#include "locks/conflict_history.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "locks/key_history.h"
#include "locks/path_history.h"
#include "locks/ref_history.h"
#include "storage/check.h"

namespace repotxn::locks {
namespace {

using Hashes = absl::InlinedVector<PrefixHash, 16>;

Hashes HashesOf(KeyKind kind, const RepositoryId& id, absl::string_view bytes) {
  Hashes hashes;
  ForEachPrefixHash(HashedName{kind, id, bytes},
                    [&hashes](const PrefixHash& hash) { hashes.push_back(hash); });
  return hashes;
}

bool IsPath(KeyKind kind) {
  switch (kind) {
    case KeyKind::kEntry:
    case KeyKind::kChildren:
    case KeyKind::kSubtree:
    case KeyKind::kPathEntry:
    case KeyKind::kPathChildren:
    case KeyKind::kPathSubtree:
      return true;
    default:
      return false;
  }
}

bool IsIgnoredByPlant(const Lock& lock) {
  if (lock.mode == LockMode::kShared) return REPOTXN_PLANT("locks.ignore_reads");
  return REPOTXN_PLANT("locks.ignore_writes");
}

}  // namespace

CheckResult ConflictHistory::Check(const Footprint& footprint, wal::Lsn snapshot_lsn) const {
  if (snapshot_lsn < floor_ && !REPOTXN_PLANT("locks.ignore_too_old")) {
    CheckResult result;
    result.verdict = Verdict::kTooOld;
    result.rule = ConflictRule::kTooOld;
    result.snapshot_lsn = snapshot_lsn;
    result.conflicting_lsn = floor_;
    return result;
  }
  CheckResult result;
  result.snapshot_lsn = snapshot_lsn;
  if (newest_ <= snapshot_lsn) return result;  // nobody wrote since
  const absl::Span<const Lock> locks = footprint.locks();
  for (size_t i = 0; i < locks.size(); ++i) table_.Prefetch(footprint.hashes(i).back());
  for (size_t i = 0; i < locks.size(); ++i) {
    const Lock& lock = locks[i];
    if (lock.meets == Meets::kNothing || IsIgnoredByPlant(lock)) continue;
    const absl::Span<const PrefixHash> hashes = footprint.hashes(i);
    Met met;
    if (IsPath(lock.key.kind)) {
      met = CheckPath(table_, lock, hashes, snapshot_lsn);
    } else if (lock.key.kind == KeyKind::kRef) {
      met = CheckRef(table_, footprint, i, snapshot_lsn);
    } else if (lock.key.kind == KeyKind::kRefPrefix) {
      met = CheckRefPrefix(table_, records_, lock, hashes, snapshot_lsn);
    } else {
      met = CheckKey(table_, key_index_, lock, hashes, snapshot_lsn);
    }
    if (met.rule != ConflictRule::kNone) return Conflict(snapshot_lsn, i, met.rule, met.lsn);
  }
  return result;
}

CheckResult ConflictHistory::Conflict(wal::Lsn snapshot_lsn, size_t lock_index, ConflictRule rule,
                                      wal::Lsn lsn) const {
  REPOTXN_DCHECK(lsn > snapshot_lsn && lsn <= newest_);
  CheckResult result;
  result.verdict = Verdict::kConflict;
  result.rule = rule;
  result.lock_index = static_cast<uint32_t>(lock_index);
  result.snapshot_lsn = snapshot_lsn;
  result.conflicting_lsn = lsn;
  result.conflicting_transaction = records_.TransactionAt(lsn);
  return result;
}

void ConflictHistory::Record(const Footprint& footprint, wal::Lsn lsn,
                             const TransactionId& transaction_id) {
  REPOTXN_DCHECK(lsn > newest_ && lsn > floor_);                // I1
  REPOTXN_DCHECK(lsn.value() <= LsnTable::kValueMax >> 1);
  if (!footprint.has_exclusive()) return;
  newest_ = lsn;
  records_.Append(footprint, lsn, transaction_id, [&](size_t i, WrittenKey* key) {
    const absl::Span<const PrefixHash> hashes = footprint.hashes(i);
    if (IsPath(key->kind)) {
      RecordPath(*key, hashes, lsn, &table_);
    } else if (key->kind == KeyKind::kRef) {
      RecordRef(key->effect, hashes, lsn, &table_);
    } else if (key->kind == KeyKind::kRefPrefix) {
      RecordRefPrefix(hashes, lsn, &table_);
    } else {
      RecordKey(key->kind, hashes, lsn, key->node(), &table_, &key_index_);
    }
  });
  // Twice what came in, so that a backlog shrinks however small the entries are.
  Evict(2 * footprint.exclusive_count());
}

void ConflictHistory::SetOldestSnapshot(wal::Lsn lsn) { floor_ = std::max(floor_, lsn); }

bool ConflictHistory::Evict(size_t keys_max) {
  for (size_t evicted = 0; !records_.empty() && records_.front().lsn <= floor_;) {
    if (evicted >= keys_max && evicted > 0) return true;
    const wal::Lsn lsn = records_.front().lsn;
    records_.PopFront([&](WrittenKey* key) {
      ++evicted;
      const Hashes hashes = HashesOf(key->kind, key->id, key->name());
      if (IsPath(key->kind)) {
        EvictPath(*key, hashes, lsn, &table_);
      } else if (key->kind == KeyKind::kRef) {
        EvictRef(key->effect, hashes, lsn, &table_);
      } else if (key->kind == KeyKind::kRefPrefix) {
        EvictRefPrefix(hashes, lsn, &table_);
      } else {
        EvictKey(key->kind, hashes, lsn, key->node(), &table_, &key_index_);
      }
    });
  }
  // I3
  REPOTXN_DCHECK(!records_.empty() || (table_.size() == 0 && key_index_.empty()));
  return false;
}

void ConflictHistory::ForEachRefWrittenSince(
    const RepositoryId& id, wal::Lsn snapshot_lsn,
    absl::FunctionRef<void(const WrittenRef&)> visit) const {
  records_.ForEachAfter(snapshot_lsn, [&](wal::Lsn lsn, const WrittenKey& key) {
    const bool is_prefix = key.kind == KeyKind::kRefPrefix;
    if ((is_prefix || key.kind == KeyKind::kRef) && key.id == id) {
      visit(WrittenRef{key.name(), is_prefix, lsn});
    }
    return true;
  });
}

wal::Lsn ConflictHistory::NewestWrite(const LockKey& key) const {
  const Hashes hashes =
      HashesOf(key.kind, key.id, absl::string_view(key.bytes.data(), key.bytes.size()));
  const PrefixHash& own = hashes.back();
  switch (key.kind) {
    case KeyKind::kEntry:
    case KeyKind::kPathEntry:
      return std::max(table_.GetLsn(Domain::kEntryWrite, own),
                      table_.GetLsn(Domain::kEntryEnsure, own));
    case KeyKind::kRef:
      return RefState::Of(table_, own).lsn;
    case KeyKind::kObjects:
      return table_.GetLsn(Domain::kObjectsWrite, own);
    case KeyKind::kKey:
      return table_.GetLsn(Domain::kKeyWrite, own);
    case KeyKind::kLink:
      return table_.GetLsn(Domain::kLinkWrite, own);
    case KeyKind::kRequest:
      return table_.GetLsn(Domain::kRequestWrite, own);
    default:
      REPOTXN_DCHECK(false);
      return wal::Lsn::Zero();
  }
}

}  // namespace repotxn::locks
