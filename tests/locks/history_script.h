// Bytes as a script of transactions, run against the conflict history and the naive oracle side by side.
//
// A step is a transaction (snapshot, locks, commit), a move of the oldest snapshot, or an eviction. Names come from a
// small universe, so that keys meet often; ref writes are valid at their own snapshot, which the history relies on.
// Every byte string is a script: the property test feeds random ones, the fuzzer its own.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_LOCKS_HISTORY_SCRIPT_H_
#define REPOTXN_TESTS_LOCKS_HISTORY_SCRIPT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "locks/conflict_history.h"
#include "tests/locks/oracle.h"

namespace repotxn::locks {

class HistoryScript {
 public:
  HistoryScript(const uint8_t* data, size_t size)
      : data_(data), size_(size), history_(kFirstLsn), oracle_(kFirstLsn) {}

  // Runs to the end; empty, or what differs from the oracle.
  std::string Run() {
    while (position_ < size_ && fault_.empty()) {
      const unsigned step = Next();
      if (step % 8 == 6) {
        history_.SetOldestSnapshot(SnapshotOf(Next()));
        oracle_.SetFloor(history_.floor());
      } else if (step % 8 == 7) {
        history_.Evict(Next() % 8);
      } else {
        RunTransaction();
      }
    }
    if (fault_.empty()) CheckThatEvictionFreesEverything();
    return fault_;
  }

  size_t commits() const { return commits_; }
  size_t conflicts() const { return conflicts_; }

 private:
  static constexpr wal::Lsn kFirstLsn = wal::Lsn(10);

  unsigned Next() { return position_ < size_ ? data_[position_++] : 0; }

  // A snapshot between the floor and the newest LSN.
  wal::Lsn SnapshotOf(unsigned byte) const {
    const uint64_t floor = oracle_.floor().value();
    return wal::Lsn(floor + byte % (newest_.value() - floor + 1));
  }
  static RepositoryId IdOf(unsigned byte) {
    std::array<uint8_t, RepositoryId::kBytes> bytes{};
    bytes[0] = static_cast<uint8_t>(1 + byte % 2);
    return RepositoryId(bytes);
  }
  template <size_t kCount>
  static std::string OneOf(const std::array<const char*, kCount>& names, unsigned byte) {
    return names[byte % kCount];
  }

  static std::string PathOf(unsigned byte) {
    return OneOf<8>({"", "a", "a/b", "a/b/c", "ab", "b", "a/c", "b/a"}, byte);
  }
  static std::string RefOf(unsigned byte) {
    return OneOf<9>({"HEAD", "r/a", "r/a/b", "r/a/b/c", "r/ab", "r/b", "r/b/a", "r/a/c", "r"}, byte);
  }
  static std::string PrefixOf(unsigned byte) {
    return OneOf<9>({"", "r/", "r/a", "r/a/", "r/a/b", "r/a/b/", "r/b", "q/", "H"}, byte);
  }
  static std::string KeyOf(unsigned byte) {
    return OneOf<6>({"", "a", "aa", "b", "ba", "c"}, byte);
  }

  Lock PathLock(unsigned variant, LockKey entry, LockKey children, LockKey subtree) const {
    switch (variant % 8) {
      case 0:
        return Lock::Shared(std::move(entry));
      case 1:
        return Lock::Passed(std::move(entry));
      case 2:
        return Lock::Exclusive(std::move(entry));
      case 3:
        return Lock::Ensured(std::move(entry));
      case 4:
        return Lock::Announced(std::move(entry));
      case 5:
        return Lock::Shared(std::move(children));
      case 6:
        return Lock::Shared(std::move(subtree));
      default:
        return Lock::Exclusive(std::move(subtree), Effect::kDelete);
    }
  }

  // A write of a ref that is possible at the snapshot, else a read.
  Lock RefLock(unsigned variant, const RepositoryId& id, const std::string& name,
               const std::vector<Lock>& mine, wal::Lsn snapshot_lsn) const {
    const LockKey key = LockKey::Ref(id, absl::string_view(name.data(), name.size()));
    auto refs = oracle_.RefsAt(snapshot_lsn);
    for (const Lock& lock : mine) {
      if (lock.key.kind != KeyKind::kRef || lock.mode != LockMode::kExclusive) continue;
      if (lock.key == key) return Lock::Shared(key);
      refs[{lock.key.id, lock.key.bytes}] = lock.effect != Effect::kDelete;
    }
    if (variant % 4 == 0) return Lock::Shared(key);
    if (refs[{id, name}]) {
      return Lock::Exclusive(key, variant % 2 == 0 ? Effect::kChange : Effect::kDelete);
    }
    for (const auto& [ref, is_live] : refs) {
      const bool is_in_the_way = ConflictOracle::IsBelow(ref.second, name) ||
                                 ConflictOracle::IsBelow(name, ref.second);
      if (is_live && ref.first == id && is_in_the_way) return Lock::Shared(key);
    }
    return Lock::Exclusive(key, Effect::kCreate);
  }

  Lock OtherLock(unsigned kind, unsigned variant, unsigned name) const {
    const bool is_write = variant % 2 != 0;
    const std::string key = KeyOf(name);
    const absl::string_view view(key.data(), key.size());
    switch (kind) {
      case 0: {
        LockKey one = LockKey::Key(0, view);
        if (variant % 3 == 0) return Lock::Shared(std::move(one));
        return variant % 3 == 1 ? Lock::Blind(std::move(one)) : Lock::Exclusive(std::move(one));
      }
      case 1: {
        const std::string end = KeyOf(variant / 2);
        LockKey range = LockKey::KeyRange(0, view, absl::string_view(end.data(), end.size()));
        return variant % 16 == 15 ? Lock::Exclusive(std::move(range))
                                  : Lock::Shared(std::move(range));
      }
      case 2: {
        LockKey link = LockKey::Link(IdOf(name), IdOf(name / 2));
        return is_write ? Lock::Exclusive(std::move(link)) : Lock::Shared(std::move(link));
      }
      case 3:
        return Lock::Shared(is_write ? LockKey::LinksOfMember(IdOf(name))
                                     : LockKey::LinksToPool(IdOf(name)));
      case 4: {
        LockKey request = LockKey::Request(view);
        return is_write ? Lock::Exclusive(std::move(request)) : Lock::Shared(std::move(request));
      }
      default: {
        LockKey objects = LockKey::Objects(IdOf(name));
        return is_write ? Lock::Announced(std::move(objects)) : Lock::Shared(std::move(objects));
      }
    }
  }

  Lock NextLock(const std::vector<Lock>& mine, wal::Lsn snapshot_lsn) {
    const unsigned kind = Next();
    const unsigned variant = Next();
    const unsigned name = Next();
    const RepositoryId id = IdOf(name / 16);
    const std::string path = PathOf(name);
    const absl::string_view view(path.data(), path.size());
    switch (kind % 16) {
      case 0:
      case 1:
      case 2:
        return PathLock(variant, LockKey::Entry(id, view), LockKey::Children(id, view),
                        LockKey::Subtree(id, view));
      case 3:
      case 4:
        return PathLock(variant, LockKey::PathEntry(view), LockKey::PathChildren(view),
                        LockKey::PathSubtree(view));
      case 5:
      case 6: {
        const std::string prefix = PrefixOf(name);
        LockKey key = LockKey::RefPrefix(id, absl::string_view(prefix.data(), prefix.size()));
        return variant % 8 == 7 ? Lock::Exclusive(std::move(key)) : Lock::Shared(std::move(key));
      }
      case 7:
      case 8:
      case 9:
        return OtherLock(variant % 6, variant / 6, name);
      default:
        return RefLock(variant, id, RefOf(name), mine, snapshot_lsn);
    }
  }

  void RunTransaction() {
    const unsigned how = Next();
    const wal::Lsn snapshot_lsn =
        how == 255 ? oracle_.floor().Previous() : SnapshotOf(how);
    std::vector<Lock> locks;
    for (unsigned count = 1 + Next() % 5; count > 0; --count) {
      locks.push_back(NextLock(locks, snapshot_lsn));
    }
    const Footprint footprint(locks);
    const CheckResult result = history_.Check(footprint, snapshot_lsn);
    const Verdict expected = oracle_.Check(locks, snapshot_lsn);
    if (result.verdict != expected) {
      fault_ = absl::StrCat("verdict ", static_cast<int>(result.verdict), " but the oracle says ",
                            static_cast<int>(expected), "; ", ConflictRuleText(result.rule), " at ",
                            result.conflicting_lsn.value(), "; snapshot ", snapshot_lsn.value(),
                            " for", Describe(locks), "; committed:", DescribeCommitted());
      return;
    }
    if (result.verdict == Verdict::kConflict) {
      ++conflicts_;
      CheckEvidence(result, locks);
    }
    if (!result.ok()) return;
    ++commits_;
    newest_ = newest_.Next();
    history_.Record(footprint, newest_, TransactionOf(newest_));
    oracle_.Record(locks, newest_);
    CheckRefWalk(snapshot_lsn);
  }

  // The named lock alone must meet what was committed, and the transaction must be the one that wrote it.
  void CheckEvidence(const CheckResult& result, const std::vector<Lock>& locks) {
    if (result.conflicting_lsn <= result.snapshot_lsn ||
        result.conflicting_transaction != TransactionOf(result.conflicting_lsn)) {
      fault_ = absl::StrCat("evidence names LSN ", result.conflicting_lsn.value(), " for",
                            Describe(locks));
    }
  }

  void CheckRefWalk(wal::Lsn snapshot_lsn) {
    using Written = std::tuple<uint64_t, std::string, bool>;
    std::vector<Written> expected;
    std::vector<Written> walked;
    const RepositoryId id = IdOf(0);
    for (const auto& written : oracle_.committed()) {
      const LockKey& key = written.lock.key;
      const bool is_prefix = key.kind == KeyKind::kRefPrefix;
      if (written.lsn <= snapshot_lsn || key.id != id) continue;
      if (is_prefix || key.kind == KeyKind::kRef) {
        expected.emplace_back(written.lsn.value(), key.bytes, is_prefix);
      }
    }
    bool is_ordered = true;
    history_.ForEachRefWrittenSince(id, snapshot_lsn, [&](const ConflictHistory::WrittenRef& ref) {
      is_ordered = is_ordered && (walked.empty() || std::get<0>(walked.back()) <= ref.lsn.value());
      walked.emplace_back(ref.lsn.value(), std::string(ref.name.data(), ref.name.size()),
                          ref.is_prefix);
    });
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    std::sort(walked.begin(), walked.end());
    if (!is_ordered || walked != expected) {
      fault_ = absl::StrCat("walk since ", snapshot_lsn.value(), " gives ", walked.size(), " refs, not ",
                            expected.size());
    }
  }

  void CheckThatEvictionFreesEverything() {
    history_.SetOldestSnapshot(newest_);
    while (history_.Evict(1)) {
    }
    if (history_.record_count() + history_.key_count() + history_.slot_count() + history_.bytes() != 0) {
      fault_ = absl::StrCat("after the last eviction there are ", history_.record_count(), " records, ",
                            history_.slot_count(), " slots, ", history_.bytes(), " bytes");
    }
  }

  static TransactionId TransactionOf(wal::Lsn lsn) {
    std::array<uint8_t, TransactionId::kBytes> bytes{};
    bytes[0] = static_cast<uint8_t>(lsn.value());
    bytes[1] = static_cast<uint8_t>(lsn.value() >> 8);
    return TransactionId(bytes);
  }
  static std::string Describe(const std::vector<Lock>& locks) {
    std::string text;
    for (const Lock& lock : locks) {
      absl::StrAppend(&text, " [", lock.mode == LockMode::kShared ? "S " : "X ",
                      lock.key.ToString(), " effect ", static_cast<int>(lock.effect), " meets ",
                      static_cast<int>(lock.meets), "]");
    }
    return text;
  }
  std::string DescribeCommitted() const {
    std::string text;
    for (const auto& written : oracle_.committed()) {
      absl::StrAppend(&text, " @", written.lsn.value(), Describe({written.lock}));
    }
    return text;
  }

  const uint8_t* data_;
  size_t size_;
  size_t position_ = 0;
  ConflictHistory history_;
  ConflictOracle oracle_;
  wal::Lsn newest_ = kFirstLsn;
  size_t commits_ = 0;
  size_t conflicts_ = 0;
  std::string fault_;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_TESTS_LOCKS_HISTORY_SCRIPT_H_
