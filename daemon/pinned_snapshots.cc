#include "daemon/pinned_snapshots.h"

#include <algorithm>
#include <utility>

namespace repotxn::daemon {

void PinnedSnapshots::DropExpired(std::vector<Snapshot>* dropped) {
  const absl::Duration now = clock_->Monotonic();
  while (!entries_.empty() && (entries_.front().until <= now || entries_.size() > count_max_)) {
    dropped->push_back(std::move(entries_.front().snapshot));
    entries_.pop_front();
  }
}

void PinnedSnapshots::Pin(const std::string& repository, Snapshot snapshot) {
  std::vector<Snapshot> dropped;
  storage::MutexLock lock(&mutex_);
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.snapshot == snapshot && entry.repository == repository;
  });
  if (same != entries_.end()) entries_.erase(same);
  entries_.push_back(Entry{repository, std::move(snapshot), clock_->Monotonic() + duration_});
  DropExpired(&dropped);
}

std::vector<PinnedSnapshots::Snapshot> PinnedSnapshots::Of(const std::string& repository) {
  std::vector<Snapshot> dropped;
  storage::MutexLock lock(&mutex_);
  DropExpired(&dropped);
  std::vector<Snapshot> found;
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    if (it->repository == repository) found.push_back(it->snapshot);
  }
  return found;
}

void PinnedSnapshots::Clear() {
  std::deque<Entry> dropped;
  storage::MutexLock lock(&mutex_);
  dropped.swap(entries_);
}

size_t PinnedSnapshots::size() {
  std::vector<Snapshot> dropped;
  storage::MutexLock lock(&mutex_);
  DropExpired(&dropped);
  return entries_.size();
}

}  // namespace repotxn::daemon
