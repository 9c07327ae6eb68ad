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

IntentQueue::Turn IntentQueue::LineUp(std::vector<Claim> claims, const storage::WaitLimit& limit,
                                      absl::Duration patience) {
  // Of two claims of one key the one that does not only pass comes first, and counts.
  std::sort(claims.begin(), claims.end());
  claims.erase(std::unique(claims.begin(), claims.end(),
                           [](const Claim& a, const Claim& b) { return a.key == b.key; }),
               claims.end());
  if (claims.empty() || turns_held > 0) return Turn();
  auto place = std::make_unique<Place>();
  place->claims = std::move(claims);
  const absl::Duration until = limit.clock->Monotonic() + patience;
  const storage::CancellationWaker waker(limit, &mutex_, &place->moved);
  const storage::MutexLock lock(&mutex_);
  for (const Claim& claim : place->claims) lines_[claim.key].push_back({place.get(), claim.passes});
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
  for (const Claim& claim : place.claims) {
    // Whoever passes has before him at most others who do.
    const Line& line = lines_.at(claim.key);
    auto standing = line.begin();
    while (claim.passes && standing->passes && standing->place != &place) ++standing;
    if (standing->place != &place) return false;
  }
  return true;
}

void IntentQueue::Remove(Place* place) {
  for (const Claim& claim : place->claims) {
    const auto it = lines_.find(claim.key);
    REPOTXN_DCHECK(it != lines_.end());
    Line& line = it->second;
    line.remove_if([place](const Standing& standing) { return standing.place == place; });
    if (line.empty()) {
      lines_.erase(it);
      continue;
    }
    // The first, and with it all who pass as he does.
    for (auto standing = line.begin(); standing != line.end(); ++standing) {
      standing->place->moved.Signal();
      if (!standing->passes) break;
    }
  }
  size_.fetch_sub(1);
}

std::vector<IntentQueue::Claim> IntentQueue::Contended(const Footprint& footprint) const {
  std::vector<Claim> contended;
  if (size_.load() == 0) return contended;
  const storage::MutexLock lock(&mutex_);
  for (const Lock& held : footprint.locks()) {
    const bool passes = IsRoot(held.key);
    if (!passes && held.mode != LockMode::kExclusive) continue;
    const auto line = lines_.find(held.key);
    if (line == lines_.end()) continue;
    const bool is_line = std::any_of(line->second.begin(), line->second.end(),
                                     [](const Standing& standing) { return !standing.passes; });
    if (is_line) contended.push_back({held.key, passes});
  }
  return contended;
}

std::optional<IntentQueue::Claim> IntentQueue::LineFor(const LockKey& key) {
  switch (key.kind) {
    case KeyKind::kRef:
    case KeyKind::kKey: return Claim{key};
    case KeyKind::kEntry: return IsRoot(key) ? std::nullopt : std::optional<Claim>(Claim{key});
    case KeyKind::kChildren:
    case KeyKind::kSubtree:
    case KeyKind::kRefPrefix: return Claim{LockKey::Root(key.id)};
    default: return std::nullopt;
  }
}

}  // namespace repotxn::locks
