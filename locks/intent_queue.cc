#include "locks/intent_queue.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"

namespace repotxn::locks {
namespace {

// Turns that this thread holds. A body that runs another transaction inside must not wait for itself.
thread_local int turns_held = 0;

}  // namespace

IntentQueue::Turn& IntentQueue::Turn::operator=(Turn&& other) noexcept {
  if (this != &other) {
    GiveUp();
    queue_ = other.queue_;
    place_ = std::move(other.place_);
  }
  return *this;
}

void IntentQueue::Turn::GiveUp() {
  if (place_ == nullptr) return;
  const storage::MutexLock lock(&queue_->mutex_);
  queue_->Remove(place_.get());
  place_ = nullptr;
  --turns_held;
}

IntentQueue::Turn IntentQueue::LineUp(std::vector<LockKey> keys, const storage::WaitLimit& limit,
                                      absl::Duration patience) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.empty() || turns_held > 0) return Turn();
  auto place = std::make_unique<Place>();
  place->keys = std::move(keys);
  const absl::Duration until = limit.clock->Monotonic() + patience;
  const storage::CancellationWaker waker(limit, &mutex_, &place->moved);
  const storage::MutexLock lock(&mutex_);
  for (const LockKey& key : place->keys) lines_[key].push_back(place.get());
  size_.fetch_add(1);
  while (!HeadsAllLines(*place)) {
    const absl::Duration left = until - limit.clock->Monotonic();
    if (left <= absl::ZeroDuration() || !limit.Check().ok()) {
      Remove(place.get());
      return Turn();
    }
    storage::WaitWithin(limit, &place->moved, &mutex_, std::min(left, absl::Milliseconds(50)));
  }
  ++turns_held;
  return Turn(this, std::move(place));
}

bool IntentQueue::HeadsAllLines(const Place& place) const {
  for (const LockKey& key : place.keys) {
    if (lines_.at(key).front() != &place) return false;
  }
  return true;
}

void IntentQueue::Remove(Place* place) {
  for (const LockKey& key : place->keys) {
    const auto it = lines_.find(key);
    REPOTXN_DCHECK(it != lines_.end());
    it->second.remove(place);
    if (it->second.empty()) {
      lines_.erase(it);
    } else {
      it->second.front()->moved.Signal();
    }
  }
  size_.fetch_sub(1);
}

std::vector<LockKey> IntentQueue::Contended(const Footprint& footprint) const {
  std::vector<LockKey> contended;
  if (size_.load() == 0) return contended;
  const storage::MutexLock lock(&mutex_);
  for (const Lock& held : footprint.locks()) {
    if (held.mode == LockMode::kExclusive && lines_.contains(held.key)) contended.push_back(held.key);
  }
  return contended;
}

bool IntentQueue::IsWorthALine(const LockKey& key) {
  return key.kind == KeyKind::kRef || key.kind == KeyKind::kKey ||
         (key.kind == KeyKind::kEntry && !key.bytes.empty());
}

}  // namespace repotxn::locks
