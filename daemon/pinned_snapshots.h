// Keeps the snapshots that clients were shown for a while, so that what they then ask for is there.
//
// Over HTTP the advertisement and the request that follows are two exchanges; in between a ref may
// be forced away and its objects removed. A pinned snapshot keeps them on disk, and serves the
// request of a version-0 client whose want is no tip any more.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_PINNED_SNAPSHOTS_H_
#define REPOTXN_DAEMON_PINNED_SNAPSHOTS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "storage/clock.h"
#include "storage/sync.h"
#include "txn/snapshot.h"

namespace repotxn::daemon {

class PinnedSnapshots {
 public:
  using Snapshot = std::shared_ptr<const txn::SnapshotDirectory>;

  // Each pin lasts `duration` from the last time it was shown; at most `count_max` in all, the
  // oldest goes first. `clock` must outlive it.
  PinnedSnapshots(storage::Clock* clock, absl::Duration duration, size_t count_max)
      : clock_(clock), duration_(duration), count_max_(count_max) {}

  void Pin(const std::string& repository, Snapshot snapshot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of a repository that are still pinned, youngest first.
  std::vector<Snapshot> Of(const std::string& repository) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets go of everything; before the store closes.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string repository;
    Snapshot snapshot;
    absl::Duration until;  // on the monotonic clock
  };

  // Moves what has expired or is too much to `dropped`, to be destroyed outside the mutex.
  void DropExpired(std::vector<Snapshot>* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::Clock* const clock_;
  const absl::Duration duration_;
  const size_t count_max_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PINNED_SNAPSHOTS_H_
