// Committed versions of named things (refs, files, rows) that are newer than the disk or needed by an older snapshot.
//
// A name has a chain of versions in ascending LSN order. A read at S takes the newest version at or below S; when there
// is none the disk answers. Before the disk is overwritten while a snapshot older than every version is open, the
// value on disk is captured as the chain's *base* (LSN zero or the LSN it was written at), so that a read at any open S finds
// its answer either in the chain or, unchanged, on disk [hard case A13].
//
// Invariants
//   I1  LSNs of a chain ascend strictly.
//   I2  A name is dirty exactly while its newest version is not on disk.
//   I3  A version is dropped only when a newer one, or the disk, answers every open snapshot.
//
// Externally synchronised by the owner's mutex.
#ifndef REPOTXN_TXN_VERSION_TABLE_H_
#define REPOTXN_TXN_VERSION_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "storage/check.h"
#include "wal/lsn.h"

namespace repotxn::txn {

template <typename State>
class VersionTable {
 public:
  struct Version {
    wal::Lsn lsn;
    State state;
  };
  using Chain = absl::InlinedVector<Version, 1>;
  using Map = absl::btree_map<std::string, Chain>;

  // Adds a committed version. LSNs arrive in order (I1).
  void Publish(const std::string& name, wal::Lsn lsn, State state) {
    Chain& chain = chains_[name];
    if (!chain.empty() && chain.back().lsn == lsn) {
      // An entry that names a thing twice: its last word counts.
      bytes_ += StateBytes(state) - StateBytes(chain.back().state);
      chain.back().state = std::move(state);
    } else {
      REPOTXN_DCHECK(chain.empty() || chain.back().lsn < lsn);
      bytes_ += Cost(name, state);
      chain.push_back(Version{lsn, std::move(state)});
    }
    dirty_.insert(name);
  }

  // The newest version at or below `at`, or nullptr: the disk answers.
  const Version* FindAt(absl::string_view name, wal::Lsn at) const {
    const auto it = chains_.find(name);
    return it == chains_.end() ? nullptr : NewestAt(it->second, at);
  }
  static const Version* NewestAt(const Chain& chain, wal::Lsn at) {
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      if (it->lsn <= at) return &*it;
    }
    return nullptr;
  }

  // Whether a read at `oldest` would miss in the chain, so that the value on disk must be captured before it changes.
  bool NeedsBase(absl::string_view name, wal::Lsn oldest) const {
    const auto it = chains_.find(name);
    return it != chains_.end() && it->second.front().lsn > oldest;
  }
  void CaptureBase(const std::string& name, wal::Lsn lsn, State state) {
    Chain& chain = chains_[name];
    REPOTXN_DCHECK(chain.empty() || lsn < chain.front().lsn);
    bytes_ += Cost(name, state);
    chain.insert(chain.begin(), Version{lsn, std::move(state)});
  }

  // Names whose newest version at or below `target` is to be written, with it.
  std::vector<std::pair<std::string, Version>> DirtyAt(wal::Lsn target) const {
    std::vector<std::pair<std::string, Version>> found;
    for (const std::string& name : dirty_) {
      const auto it = chains_.find(name);
      const Version* version = NewestAt(it->second, target);
      if (version != nullptr) found.emplace_back(name, *version);
    }
    return found;
  }

  // The disk now shows `name` as of `target`; drops what no snapshot at or above `oldest` needs.
  void Materialized(const std::string& name, wal::Lsn target, wal::Lsn oldest) {
    const auto it = chains_.find(name);
    if (it == chains_.end()) return;
    if (it->second.back().lsn <= target) {
      dirty_.erase(name);  // I2
      clean_.insert(name);
    }
    Trim(it, oldest);
  }
  // Drops what snapshots kept and no longer need.
  void TrimClean(wal::Lsn oldest) {
    std::vector<std::string> names(clean_.begin(), clean_.end());
    for (const std::string& name : names) {
      const auto it = chains_.find(name);
      if (it != chains_.end()) Trim(it, oldest);
    }
  }

  const Map& chains() const { return chains_; }
  bool has_dirty() const { return !dirty_.empty(); }
  bool empty() const { return chains_.empty(); }
  int64_t bytes() const { return bytes_; }
  // Of them, the newest versions that are not on disk yet: kept whoever reads. A walk over what is dirty.
  int64_t dirty_bytes() const {
    int64_t bytes = 0;
    for (const std::string& name : dirty_) {
      const auto it = chains_.find(name);
      if (it != chains_.end()) bytes += Cost(name, it->second.back().state);
    }
    return bytes;
  }

 private:
  // Bytes held for one version; StateBytes() of the state's type is found beside it.
  static int64_t Cost(const std::string& name, const State& state) {
    return static_cast<int64_t>(name.size() + sizeof(Version) + 64) + StateBytes(state);
  }
  void Trim(typename Map::iterator it, wal::Lsn oldest) {
    Chain& chain = it->second;
    size_t first = 0;
    while (first + 1 < chain.size() && chain[first + 1].lsn <= oldest) ++first;
    for (size_t i = 0; i < first; ++i) bytes_ -= Cost(it->first, chain[i].state);
    chain.erase(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(first));
    if (chain.size() == 1 && chain.front().lsn <= oldest && !dirty_.contains(it->first)) {
      bytes_ -= Cost(it->first, chain.front().state);  // the disk shows it to everyone (I3)
      clean_.erase(it->first);
      chains_.erase(it);
    }
  }

  Map chains_;
  absl::flat_hash_set<std::string> dirty_;  // I2
  absl::flat_hash_set<std::string> clean_;  // on disk, kept for older snapshots
  int64_t bytes_ = 0;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_VERSION_TABLE_H_
