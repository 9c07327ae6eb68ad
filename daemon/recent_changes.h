// Remembers which push last changed a ref, to tell a loser what it raced with.
//
// A bounded memory of this process: a hint for messages, never a base of decisions.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_RECENT_CHANGES_H_
#define REPOTXN_DAEMON_RECENT_CHANGES_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "storage/sync.h"
#include "wal/lsn.h"

namespace repotxn::daemon {

class RecentChanges {
 public:
  struct Change {
    TransactionId transaction_id;
    wal::Lsn lsn;
  };

  explicit RecentChanges(size_t entries_max = 4096) : entries_max_(entries_max) {}

  // An older change of the same ref is forgotten; a newer one stays.
  void Note(const RepositoryId& repository, absl::string_view ref, const Change& change)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Change> Find(const RepositoryId& repository, absl::string_view ref) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<RepositoryId, std::string>;
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
