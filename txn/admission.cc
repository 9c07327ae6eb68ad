#include "txn/admission.h"

#include <algorithm>
#include <iterator>

#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::txn {
namespace {

// The partitions in whose queues a commit stands.
std::vector<wal::PartitionId> QueuesOf(const std::vector<wal::PartitionId>& partitions) {
  if (partitions.empty()) return {wal::kNameSpacePartition};
  std::vector<wal::PartitionId> queues = partitions;
  if (queues.size() > 1) {
    queues.erase(std::remove(queues.begin(), queues.end(), wal::kNameSpacePartition), queues.end());
  }
  return queues;
}

}  // namespace

bool Admission::TakeRoom() {
  int taken = in_flight_.load();
  while (taken < room_.load()) {
    if (in_flight_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

absl::Status Admission::Enter(const std::vector<wal::PartitionId>& partitions, const storage::WaitLimit& limit) {
  REPOTXN_RETURN_IF_ERROR(limit.Check());
  if (waiting_.load() == 0 && TakeRoom()) {
    // The closing one looks at in_flight() after it has closed: one of the two sees the other.
    if (!is_closed_.load()) return absl::OkStatus();
    Leave();
    return absl::UnavailableError("store is closing");
  }
  Waiter waiter;
  waiter.partitions = QueuesOf(partitions);
  return Wait(&waiter, limit);
}

absl::Status Admission::EnterOwn() {
  in_flight_.fetch_add(1);
  if (!is_closed_.load()) return absl::OkStatus();
  Leave();
  return absl::UnavailableError("store is closing");
}

absl::Status Admission::Wait(Waiter* waiter, const storage::WaitLimit& limit) {
  const storage::CancellationWaker waker(limit, &mutex_, &waiter->answered);
  const storage::MutexLock lock(&mutex_);
  if (is_closed_.load()) return absl::UnavailableError("store is closing");
  for (const wal::PartitionId id : waiter->partitions) {
    const auto it = queues_.find(id);
    const size_t standing = it == queues_.end() ? 0 : it->second.size();
    if (standing >= static_cast<size_t>(options_.queue_max)) {
      return absl::ResourceExhaustedError("admission queue of a partition is full");
    }
  }
  // Known to wait before there is a look for room: who leaves after that look sees it (I3).
  waiting_.fetch_add(1);
  for (const wal::PartitionId id : waiter->partitions) {
    Queue& queue = queues_[id];
    if (queue.empty()) turns_.push_back(id);
    queue.push_back(waiter);
  }
  AdmitNext();
  while (waiter->answer == Answer::kNone) {
    if (absl::Status over = limit.Check(); !over.ok()) {
      Remove(waiter);
      AdmitNext();  // who stood behind may be the head now
      return over;
    }
    storage::WaitWithin(limit, &waiter->answered, &mutex_);
  }
  if (waiter->answer == Answer::kClosed) return absl::UnavailableError("store is closing");
  return absl::OkStatus();
}

bool Admission::HeadsAllQueues(const Waiter& waiter) const {
  for (const wal::PartitionId id : waiter.partitions) {
    if (queues_.at(id).front() != &waiter) return false;
  }
  return true;
}

void Admission::Remove(Waiter* waiter) {
  for (const wal::PartitionId id : waiter->partitions) {
    const auto it = queues_.find(id);
    it->second.remove(waiter);
    if (!it->second.empty()) continue;
    queues_.erase(it);
    turns_.remove(id);
  }
  waiting_.fetch_sub(1);
}

void Admission::AdmitNext() {
  // The oldest of all heads all its queues, so a round without anybody admitted means that there is no room or nobody.
  for (size_t passed = 0; passed < turns_.size();) {
    Waiter* const head = queues_.at(turns_.front()).front();
    turns_.splice(turns_.end(), turns_, turns_.begin());
    if (!HeadsAllQueues(*head)) {
      ++passed;
      continue;
    }
    if (!TakeRoom()) {
      turns_.splice(turns_.begin(), turns_, std::prev(turns_.end()));  // still its turn
      return;
    }
    passed = 0;
    Remove(head);
    head->answer = Answer::kAdmitted;
    head->answered.Signal();
  }
}

void Admission::Leave() {
  [[maybe_unused]] const int before = in_flight_.fetch_sub(1);
  REPOTXN_DCHECK(before > 0);
  if (waiting_.load() == 0) return;
  const storage::MutexLock lock(&mutex_);
  AdmitNext();
}

void Admission::SetRoom(int room) {
  room_.store(std::clamp(room, 1, options_.in_flight_max));
  if (waiting_.load() == 0) return;
  const storage::MutexLock lock(&mutex_);
  AdmitNext();
}

void Admission::Close() {
  is_closed_.store(true);
  const storage::MutexLock lock(&mutex_);
  for (auto& [id, queue] : queues_) {
    for (Waiter* waiter : queue) {
      waiter->answer = Answer::kClosed;
      waiter->answered.Signal();
    }
  }
  queues_.clear();
  turns_.clear();
  waiting_.store(0);
}

}  // namespace repotxn::txn
