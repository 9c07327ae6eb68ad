#include "locks/footprint.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "storage/check.h"

namespace repotxn::locks {
namespace {

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

// "a/b" of "a/b/c", "" of "a" and of "".
absl::string_view ParentOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
}

// The first `depth` components.
absl::string_view FirstComponents(absl::string_view path, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    const size_t slash = path.find('/', end);
    if (slash == absl::string_view::npos) return path;
    end = slash + 1;
  }
  return path.substr(0, end == 0 ? 0 : end - 1);
}

// For an assertion alone.
[[maybe_unused]] bool CanBeExclusive(KeyKind kind) {
  switch (kind) {
    case KeyKind::kChildren:
    case KeyKind::kPathChildren:
    case KeyKind::kLinksOfMember:
    case KeyKind::kLinksToPool:
      return false;
    default:
      return true;
  }
}

// An exclusive range has to be one that the history can hold.
void WidenExclusive(Lock* lock) {
  if (lock->mode != LockMode::kExclusive) return;
  if (lock->key.kind == KeyKind::kRefPrefix) {
    const size_t slash = lock->key.bytes.rfind('/');
    lock->key.bytes.resize(slash == std::string::npos ? 0 : slash + 1);
  } else if (lock->key.kind == KeyKind::kKeyRange) {
    lock->key.bytes.clear();
    lock->key.end.clear();
  }
}

bool IsCommuting(Effect effect) {
  return effect == Effect::kEnsure || effect == Effect::kAnnounce;
}

void Merge(const Lock& from, Lock* into) {
  into->meets = std::max(into->meets, from.meets);
  if (from.mode == LockMode::kShared) return;
  if (into->mode == LockMode::kShared) {
    into->mode = LockMode::kExclusive;
    into->effect = from.effect;
    return;
  }
  if (into->effect == from.effect) return;
  if (IsCommuting(into->effect) && IsCommuting(from.effect)) {
    into->effect = Effect::kEnsure;
    return;
  }
  // Made and removed, or made and changed, in one transaction: a change is what both are at least.
  into->effect = Effect::kChange;
  into->meets = Meets::kAll;
}

void SortAndMerge(std::vector<Lock>* locks) {
  std::stable_sort(locks->begin(), locks->end(),
                   [](const Lock& a, const Lock& b) { return a.key < b.key; });
  size_t kept = 0;
  for (size_t i = 0; i < locks->size(); ++i) {
    if (kept > 0 && (*locks)[kept - 1].key == (*locks)[i].key) {
      Merge((*locks)[i], &(*locks)[kept - 1]);
      continue;
    }
    if (kept != i) (*locks)[kept] = std::move((*locks)[i]);
    ++kept;
  }
  locks->resize(kept);
}

// S entry(root) of every repository that is named.
void AddRoots(std::vector<Lock>* locks) {
  std::vector<RepositoryId> ids;
  for (const Lock& lock : *locks) {
    if (lock.key.IsOfRepository() && (ids.empty() || ids.back() != lock.key.id)) {
      ids.push_back(lock.key.id);
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const RepositoryId& id : ids) locks->push_back(Lock::Passed(LockKey::Root(id)));
}

// How far up a level of escalation goes: to the directory, to two components, to one, to the whole.
enum class Level { kDirectory, kTwoComponents, kOneComponent, kWhole };

std::string EscalatedDirectory(const std::string& name, Level level) {
  const absl::string_view parent = ParentOf(ViewOf(name));
  switch (level) {
    case Level::kDirectory:
      return std::string(parent.data(), parent.size());
    case Level::kTwoComponents:
    case Level::kOneComponent: {
      const absl::string_view first =
          FirstComponents(parent, level == Level::kOneComponent ? 1 : 2);
      return std::string(first.data(), first.size());
    }
    case Level::kWhole:
      return std::string();
  }
  return std::string();
}

// Whether a level leaves a lock alone: what stands at the top (HEAD, config) would turn into the whole repository, and
// a lock that commutes would cease to.
bool IsSpared(const Lock& lock, Level level) {
  const LockKey& key = lock.key;
  const bool is_entry = key.kind == KeyKind::kEntry;
  if (is_entry && key.bytes.empty()) return true;  // what a deletion is met by
  if (level == Level::kWhole) return false;
  if (lock.meets != Meets::kAll && key.kind != KeyKind::kKey) return true;
  return (is_entry || key.kind == KeyKind::kRef) && key.bytes.find('/') == std::string::npos;
}

// The same lock on the directory that holds its key.
Lock Escalate(Lock lock, Level level) {
  if (IsSpared(lock, level)) return lock;
  LockKey& key = lock.key;
  switch (key.kind) {
    case KeyKind::kRef:
    case KeyKind::kRefPrefix:
      key.kind = KeyKind::kRefPrefix;
      key.bytes = EscalatedDirectory(key.bytes, level);
      if (!key.bytes.empty()) key.bytes.push_back('/');
      break;
    case KeyKind::kEntry:
    case KeyKind::kChildren:
    case KeyKind::kSubtree:
      key.kind = KeyKind::kSubtree;
      key.bytes = EscalatedDirectory(key.bytes, level);
      break;
    case KeyKind::kPathEntry:
    case KeyKind::kPathChildren:
    case KeyKind::kPathSubtree:
      key.kind = KeyKind::kPathSubtree;
      key.bytes = EscalatedDirectory(key.bytes, level);
      break;
    case KeyKind::kKey:
    case KeyKind::kKeyRange:
      key.kind = KeyKind::kKeyRange;
      key.bytes.clear();
      key.end.clear();
      break;
    default:
      return lock;
  }
  lock.meets = Meets::kAll;
  if (lock.mode == LockMode::kExclusive) lock.effect = Effect::kChange;
  return lock;
}

}  // namespace

Lock Lock::Shared(LockKey key) {
  return Lock{std::move(key), LockMode::kShared, Effect::kNone, Meets::kAll};
}
Lock Lock::Passed(LockKey key) {
  return Lock{std::move(key), LockMode::kShared, Effect::kNone, Meets::kAllButEnsures};
}
Lock Lock::Exclusive(LockKey key, Effect effect) {
  return Lock{std::move(key), LockMode::kExclusive, effect, Meets::kAll};
}
Lock Lock::Ensured(LockKey key) {
  return Lock{std::move(key), LockMode::kExclusive, Effect::kEnsure, Meets::kAllButEnsures};
}
Lock Lock::Blind(LockKey key) {
  return Lock{std::move(key), LockMode::kExclusive, Effect::kChange, Meets::kNothing};
}
Lock Lock::Announced(LockKey key) {
  return Lock{std::move(key), LockMode::kExclusive, Effect::kAnnounce, Meets::kNothing};
}

Footprint::Footprint(std::vector<Lock> locks) : locks_(std::move(locks)) {
  for (Lock& lock : locks_) {
    REPOTXN_DCHECK(lock.mode == LockMode::kShared || CanBeExclusive(lock.key.kind));
    WidenExclusive(&lock);
  }
  AddRoots(&locks_);
  SortAndMerge(&locks_);
  for (const Level level : {Level::kDirectory, Level::kTwoComponents, Level::kOneComponent,
                            Level::kWhole}) {
    if (locks_.size() <= kKeysMax) break;
    REPOTXN_PROBE("locks.footprint_escalates");
    escalated_ = true;
    for (Lock& lock : locks_) {
      lock = Escalate(std::move(lock), level);
      WidenExclusive(&lock);
    }
    SortAndMerge(&locks_);
  }
  Hash();
}

void Footprint::Hash() {
  spans_.resize(locks_.size());
  for (size_t i = 0; i < locks_.size(); ++i) {
    const LockKey& key = locks_[i].key;
    spans_[i].first_hash = static_cast<uint32_t>(hashes_.size());
    ForEachPrefixHash(HashedName{key.kind, key.id, ViewOf(key.bytes)},
                      [this](const PrefixHash& hash) { hashes_.push_back(hash); });
    spans_[i].hash_count = static_cast<uint32_t>(hashes_.size()) - spans_[i].first_hash;
    if (locks_[i].mode == LockMode::kExclusive) ++exclusive_count_;
    if (key.kind != KeyKind::kRef || locks_[i].effect != Effect::kCreate) continue;
    LockKey bound = key;
    const auto less = [](const Lock& a, const LockKey& b) { return a.key < b; };
    bound.bytes.push_back('/');
    const auto begin = std::lower_bound(locks_.begin(), locks_.end(), bound, less);
    bound.bytes.back() = '/' + 1;
    const auto end = std::lower_bound(begin, locks_.end(), bound, less);
    spans_[i].below = Below{static_cast<uint32_t>(std::distance(locks_.begin(), begin)),
                            static_cast<uint32_t>(std::distance(locks_.begin(), end))};
  }
}

absl::btree_map<wal::PartitionId, Footprint> SplitByPartition(
    std::vector<Lock> locks,
    absl::FunctionRef<wal::PartitionId(const RepositoryId&)> partition_of) {
  absl::btree_map<RepositoryId, wal::PartitionId> known;
  absl::btree_map<wal::PartitionId, std::vector<Lock>> grouped;
  for (Lock& lock : locks) {
    wal::PartitionId partition = lock.key.partition;
    if (lock.key.IsOfRepository()) {
      const auto found = known.find(lock.key.id);
      partition = found != known.end()
                      ? found->second
                      : known.emplace(lock.key.id, partition_of(lock.key.id)).first->second;
    }
    grouped[partition].push_back(std::move(lock));
  }
  absl::btree_map<wal::PartitionId, Footprint> footprints;
  for (auto& [partition, group] : grouped) {
    footprints.emplace(partition, Footprint(std::move(group)));
  }
  return footprints;
}

}  // namespace repotxn::locks
