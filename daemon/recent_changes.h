// Remembers which push last changed a ref, to tell a loser what it raced with.
//
// A push that lost at its commit learns its rival from the library's verdict. This is for the others: those that find the
// ref changed when they begin, and met nobody. Keyed by the value as well: whoever finds a ref at an unexpected value asks
// who gave it that one. A bounded memory of this process: a hint for messages, never a base of decisions.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_RECENT_CHANGES_H_
#define REPOTXN_DAEMON_RECENT_CHANGES_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::daemon {

class RecentChanges {
 public:
  struct Change {
    TransactionId transaction_id;
    wal::Lsn lsn;  // zero while the commit is under way
  };

  explicit RecentChanges(size_t entries_max = 4096) : entries_max_(entries_max) {}

  // A change that gave `ref` the value `value`. Replaces an older one of the same value.
  void Note(const RepositoryId& repository, absl::string_view ref, const ObjectId& value,
            const Change& change) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Change> Find(const RepositoryId& repository, absl::string_view ref,
                             const ObjectId& value) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::tuple<RepositoryId, std::string, ObjectId>;
  struct Entry {
    Key key;
    Change change;
  };

  const size_t entries_max_;
  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  std::list<Entry> order_ ABSL_GUARDED_BY(mutex_);  // newest first
  absl::flat_hash_map<Key, std::list<Entry>::iterator> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_RECENT_CHANGES_H_
