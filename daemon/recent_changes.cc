#include "daemon/recent_changes.h"

namespace repotxn::daemon {

void RecentChanges::Note(const RepositoryId& repository, absl::string_view ref,
                         const ObjectId& value, const Change& change) {
  storage::MutexLock lock(&mutex_);
  Key key(repository, std::string(ref.data(), ref.size()), value);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    if (change.lsn < found->second->change.lsn) return;
    order_.erase(found->second);
    entries_.erase(found);
  }
  order_.push_front(Entry{key, change});
  entries_.emplace(std::move(key), order_.begin());
  while (entries_.size() > entries_max_) {
    entries_.erase(order_.back().key);
    order_.pop_back();
  }
}

std::optional<RecentChanges::Change> RecentChanges::Find(const RepositoryId& repository,
                                                         absl::string_view ref,
                                                         const ObjectId& value) const {
  storage::MutexLock lock(&mutex_);
  const auto found = entries_.find(Key(repository, std::string(ref.data(), ref.size()), value));
  if (found == entries_.end()) return std::nullopt;
  return found->second->change;
}

}  // namespace repotxn::daemon
