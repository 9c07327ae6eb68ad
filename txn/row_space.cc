#include "txn/row_space.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::txn {

namespace {

// Rows that Materialize() alone writes; outcomes are also forgotten behind its back.
bool IsRemembered(absl::string_view key, const std::optional<Row>& row, size_t value_bytes_max) {
  if (!row) return absl::StartsWith(key, "a/");
  return (absl::StartsWith(key, "r/") || absl::StartsWith(key, "p/") || absl::StartsWith(key, "a/")) &&
         row->value.size() <= value_bytes_max;
}

}  // namespace

absl::StatusOr<std::optional<Row>> RowSpace::GetStored(absl::string_view key) {
  stored_reads_.fetch_add(1, std::memory_order_relaxed);
  const auto stored = metadata_->Get(key);
  if (absl::IsNotFound(stored.status())) return std::optional<Row>();
  if (!stored.ok()) return stored.status();
  REPOTXN_ASSIGN_OR_RETURN(auto split, SplitVersion(*stored));
  return std::optional<Row>(
      Row{std::string(key.data(), key.size()), split.first, std::move(split.second)});
}

absl::StatusOr<std::optional<Row>> RowSpace::Get(absl::string_view key, wal::Lsn at) {
  bool found = false;
  std::optional<Row> row;
  const auto find_version = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto* version = rows_.FindAt(key, at);
    if (version == nullptr) return;
    found = true;
    row.reset();
    if (version->state.value) {
      row = Row{std::string(key.data(), key.size()), version->lsn, *version->state.value};
    }
  };
  uint64_t round = 0;
  {
    const storage::MutexLock lock(&mutex_);
    find_version();
    if (found) return row;
    if (const std::optional<Row>* remembered = stored_.Find(key)) return *remembered;
    round = rounds_;
  }
  auto stored = GetStored(key);
  const storage::MutexLock lock(&mutex_);
  find_version();  // overwritten meanwhile: the base was captured first
  if (found) return row;
  if (stored.ok() && IsRemembered(key, *stored, kCachedRowBytes) &&
      (round == rounds_ || REPOTXN_PLANT("txn.remember_overtaken_row")) &&
      !rows_.chains().contains(key)) {
    stored_.Put(key, *stored);
  }
  return stored;
}

absl::StatusOr<std::vector<Row>> RowSpace::Scan(absl::string_view prefix, absl::string_view after,
                                                wal::Lsn at, int limit) {
  // Versions may move to the store, never the other way, while we look; so they are read before and after, and what
  // either look shows wins over the store.
  std::map<std::string, std::optional<Row>> merged;
  const auto look = [&] {
    const storage::MutexLock lock(&mutex_);
    const auto& chains = rows_.chains();
    for (auto it = chains.lower_bound(std::max(prefix, after));
         it != chains.end() && absl::StartsWith(it->first, prefix); ++it) {
      if (absl::string_view(it->first) <= after) continue;
      const auto* version = VersionTable<RowState>::NewestAt(it->second, at);
      if (version == nullptr) continue;
      std::optional<Row>& row = merged[it->first];
      row.reset();
      if (version->state.value) row = Row{it->first, version->lsn, *version->state.value};
    }
  };
  look();
  const size_t wanted = static_cast<size_t>(limit) + merged.size();
  std::vector<Row> stored;
  absl::Status damage;
  REPOTXN_RETURN_IF_ERROR(metadata_->Scan(
      std::max(prefix, after), storage::PrefixEnd(prefix),
      [&](absl::string_view key, absl::string_view value) {
        if (key <= after) return true;
        auto split = SplitVersion(value);
        if (!split.ok()) {
          damage = split.status();
          return false;
        }
        stored.push_back(
            Row{std::string(key.data(), key.size()), split->first, std::move(split->second)});
        return stored.size() < wanted;
      }));
  REPOTXN_RETURN_IF_ERROR(damage);
  look();
  const std::string last = stored.empty() ? std::string() : stored.back().key;
  for (Row& row : stored) {
    std::string key = row.key;
    merged.try_emplace(std::move(key), std::move(row));
  }
  std::vector<Row> rows;
  for (auto& [key, row] : merged) {
    if (static_cast<int>(rows.size()) >= limit) break;
    // Beyond the last stored row of a cut-off scan the store was not asked.
    if (stored.size() >= wanted && key > last) break;
    if (row) rows.push_back(*std::move(row));
  }
  return rows;
}

int64_t RowSpace::Publish(const KeyChanges& changes, wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  const int64_t before = rows_.bytes();
  for (const auto& [key, value] : changes) rows_.Publish(key, lsn, RowState{value});
  return rows_.bytes() - before;
}

absl::Status RowSpace::Materialize(wal::Lsn target, wal::Lsn oldest, const RowVisitor& on_row) {
  std::vector<std::pair<std::string, VersionTable<RowState>::Version>> dirty;
  std::vector<std::string> without_base;
  {
    const storage::MutexLock lock(&mutex_);
    dirty = rows_.DirtyAt(target);
    for (const auto& [key, version] : dirty) {
      if (rows_.NeedsBase(key, oldest)) without_base.push_back(key);
    }
  }
  for (const std::string& key : without_base) {
    REPOTXN_ASSIGN_OR_RETURN(auto stored, GetStored(key));
    const storage::MutexLock lock(&mutex_);
    if (stored) {
      rows_.CaptureBase(key, stored->version, RowState{std::move(stored->value)});
    } else {
      rows_.CaptureBase(key, wal::Lsn::Zero(), RowState{});
    }
  }
  // Parents before children: a group's directory before the links in it.
  std::sort(dirty.begin(), dirty.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, version] : dirty) REPOTXN_RETURN_IF_ERROR(on_row(key, version.state.value));
  storage::MetadataBatch batch;
  for (const auto& [key, version] : dirty) {
    if (!version.state.value) {
      batch.Delete(key);
      continue;
    }
    const std::string value = WithVersion(version.lsn, *version.state.value);
    batch.Put(key, value);
    if (absl::StartsWith(key, "t/")) batch.Put(OutcomeKey(version.lsn), value);
  }
  if (!batch.empty()) {
    REPOTXN_RETURN_IF_ERROR(metadata_->Write(batch, storage::MetadataSync::kUnsynced));
  }
  const storage::MutexLock lock(&mutex_);
  for (const auto& [key, version] : dirty) {
    rows_.Materialized(key, target, oldest);
    stored_.Erase(key);
  }
  if (!dirty.empty()) ++rounds_;
  rows_.TrimClean(oldest);
  return absl::OkStatus();
}

void RowSpace::Trim(wal::Lsn oldest) {
  const storage::MutexLock lock(&mutex_);
  rows_.TrimClean(oldest);
}

int64_t RowSpace::dirty_bytes() const {
  const storage::MutexLock lock(&mutex_);
  return rows_.dirty_bytes();
}

int64_t RowSpace::bytes() const {
  const storage::MutexLock lock(&mutex_);
  return rows_.bytes();
}

}  // namespace repotxn::txn
