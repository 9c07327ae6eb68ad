// The conflict rules stated naively: a list of what was committed, compared pair by pair with string operations.
//
// Shares no code with locks/ but the value types. Slow, remembers everything, knows no hashes, counts or eviction.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_LOCKS_ORACLE_H_
#define REPOTXN_TESTS_LOCKS_ORACLE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "locks/footprint.h"
#include "locks/lock_key.h"
#include "locks/verdict.h"
#include "wal/lsn.h"

namespace repotxn::locks {

class ConflictOracle {
 public:
  struct Committed {
    wal::Lsn lsn;
    Lock lock;
  };

  explicit ConflictOracle(wal::Lsn floor) : floor_(floor) {}

  void SetFloor(wal::Lsn lsn) { floor_ = std::max(floor_, lsn); }
  wal::Lsn floor() const { return floor_; }

  void Record(const std::vector<Lock>& locks, wal::Lsn lsn) {
    for (const Lock& lock : locks) {
      if (lock.mode == LockMode::kExclusive) committed_.push_back({lsn, Widened(lock)});
    }
  }

  Verdict Check(const std::vector<Lock>& locks, wal::Lsn snapshot_lsn) const {
    if (snapshot_lsn < floor_) return Verdict::kTooOld;
    for (const Committed& written : committed_) {
      if (written.lsn <= snapshot_lsn) continue;
      for (const Lock& mine : locks) {
        if (Meets(Widened(mine), written.lock)) return Verdict::kConflict;
      }
    }
    return DirectoryFileConflict(locks, snapshot_lsn) ? Verdict::kConflict : Verdict::kCommit;
  }

  const std::vector<Committed>& committed() const { return committed_; }

  // Whether a ref is live at `lsn`, by the writes alone.
  std::map<std::pair<RepositoryId, std::string>, bool> RefsAt(wal::Lsn lsn) const {
    std::map<std::pair<RepositoryId, std::string>, bool> refs;
    for (const Committed& written : committed_) {
      if (written.lsn > lsn || written.lock.key.kind != KeyKind::kRef) continue;
      refs[{written.lock.key.id, written.lock.key.bytes}] = written.lock.effect != Effect::kDelete;
    }
    return refs;
  }

  static bool IsBelow(const std::string& name, const std::string& directory) {
    if (directory.empty()) return !name.empty();
    return name.compare(0, directory.size() + 1, directory + "/") == 0;
  }

 private:
  static bool StartsWith(const std::string& text, const std::string& prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
  }
  static void CutToDirectory(std::string* prefix) {
    while (!prefix->empty() && prefix->back() != '/') prefix->pop_back();
  }
  // An exclusive range is held as its directory, or as all keys.
  static Lock Widened(Lock lock) {
    if (lock.mode == LockMode::kShared) return lock;
    if (lock.key.kind == KeyKind::kKeyRange) lock.key.bytes = lock.key.end = "";
    if (lock.key.kind == KeyKind::kRefPrefix) CutToDirectory(&lock.key.bytes);
    return lock;
  }
  static bool IsAtOrBelow(const std::string& name, const std::string& directory) {
    return name == directory || IsBelow(name, directory);
  }
  static std::string Parent(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
  }
  static bool Commutes(const Lock& lock) {
    return lock.effect == Effect::kEnsure || lock.effect == Effect::kAnnounce;
  }
  // Files and name-space paths obey the same rules.
  static int PathRole(KeyKind kind, KeyKind first) {
    const int role = static_cast<int>(kind) - static_cast<int>(first);
    return role >= 0 && role <= 2 ? role : -1;
  }

  static bool PathsMeet(const Lock& mine, const Lock& written, KeyKind first) {
    const int my_role = PathRole(mine.key.kind, first);
    const int role = PathRole(written.key.kind, first);
    if (my_role < 0 || role < 0) return false;
    const std::string& p = mine.key.bytes;
    const std::string& w = written.key.bytes;
    if (role == 2 && IsAtOrBelow(p, w)) return true;
    if (my_role == 1) return !w.empty() && Parent(w) == p;
    if (my_role == 2) return IsAtOrBelow(w, p);
    if (role != 0 || p != w) return false;
    return mine.meets == locks::Meets::kAll || !Commutes(written);
  }

  static bool RefsMeet(const Lock& mine, const Lock& written) {
    const bool is_prefix = written.key.kind == KeyKind::kRefPrefix;
    if (!is_prefix && written.key.kind != KeyKind::kRef) return false;
    const std::string& n = mine.key.bytes;
    const std::string& w = written.key.bytes;
    if (mine.key.kind == KeyKind::kRef) return is_prefix ? StartsWith(n, w) : n == w;
    if (mine.key.kind != KeyKind::kRefPrefix) return false;
    return StartsWith(w, n) || (is_prefix && StartsWith(n, w));
  }

  static bool KeysMeet(const LockKey& mine, const LockKey& written) {
    const auto holds = [](const LockKey& range, const std::string& key) {
      return key >= range.bytes && (range.end.empty() || key < range.end);
    };
    const bool my_range = mine.kind == KeyKind::kKeyRange;
    if (!my_range && mine.kind != KeyKind::kKey) return false;
    if (written.kind == KeyKind::kKeyRange) return true;  // an exclusive one holds every key
    if (written.kind != KeyKind::kKey) return false;
    return my_range ? holds(mine, written.bytes) : mine.bytes == written.bytes;
  }

  static bool LinksMeet(const LockKey& mine, const LockKey& written) {
    if (written.kind != KeyKind::kLink) return false;
    if (mine.kind == KeyKind::kLink) return mine == written;
    if (mine.kind == KeyKind::kLinksOfMember) return mine.id == written.id;
    return mine.kind == KeyKind::kLinksToPool &&
           written.bytes == std::string(mine.id.bytes().data(), mine.id.bytes().size());
  }

  static bool Meets(const Lock& mine, const Lock& written) {
    if (mine.key.IsOfRepository() && written.key.IsOfRepository()) {
      if (mine.key.id != written.key.id) return false;
      // Whatever is in a repository passes its root.
      if (written.key.bytes.empty()) {
        if (written.key.kind == KeyKind::kSubtree) return true;
        if (written.key.kind == KeyKind::kEntry && !Commutes(written)) return true;
      }
    }
    if (mine.meets == locks::Meets::kNothing) return false;
    if (mine.key.IsOfRepository() && written.key.IsOfRepository()) {
      if (mine.key.kind == KeyKind::kSubtree && mine.key.bytes.empty()) return true;
      if (mine.key.kind == KeyKind::kObjects) return written.key.kind == KeyKind::kObjects;
      return PathsMeet(mine, written, KeyKind::kEntry) || RefsMeet(mine, written);
    }
    if (mine.key.kind == KeyKind::kRequest) return mine.key == written.key;
    return PathsMeet(mine, written, KeyKind::kPathEntry) || KeysMeet(mine.key, written.key) ||
           LinksMeet(mine.key, written.key);
  }

  // A ref created since stands above or below one that I create (or may have created, under an exclusive prefix).
  bool DirectoryFileConflict(const std::vector<Lock>& locks, wal::Lsn snapshot_lsn) const {
    std::map<std::pair<RepositoryId, std::string>, bool> live_since;
    for (const Committed& written : committed_) {
      if (written.lsn <= snapshot_lsn) continue;
      const LockKey& key = written.lock.key;
      if (key.kind == KeyKind::kRef) {
        live_since[{key.id, key.bytes}] = written.lock.effect != Effect::kDelete;
      }
      for (const Lock& mine : locks) {
        if (key.kind == KeyKind::kRefPrefix && mine.key.kind == KeyKind::kRef &&
            mine.effect == Effect::kCreate && mine.key.id == key.id &&
            StartsWith(key.bytes, mine.key.bytes + "/")) {
          return true;
        }
      }
    }
    for (const auto& [ref, is_live] : live_since) {
      for (const Lock& mine : locks) {
        if (!is_live || mine.mode != LockMode::kExclusive || mine.key.id != ref.first) continue;
        std::string name = mine.key.bytes;
        if (mine.key.kind == KeyKind::kRef && mine.effect == Effect::kCreate) {
          if (IsBelow(name, ref.second) || IsBelow(ref.second, name)) return true;
        } else if (mine.key.kind == KeyKind::kRefPrefix) {
          CutToDirectory(&name);
          if (StartsWith(name, ref.second + "/")) return true;
        }
      }
    }
    return false;
  }

  wal::Lsn floor_;
  std::vector<Committed> committed_;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_TESTS_LOCKS_ORACLE_H_
