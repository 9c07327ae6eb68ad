#include "txn/publisher.h"

#include "storage/check.h"
#include "txn/committer.h"

namespace repotxn::txn {

static_assert((Publisher::kInFlightMax & (Publisher::kInFlightMax - 1)) == 0);

Publisher::Publisher(const wal::LogPosition& committed,
                     std::function<void(const PendingCommit&)> publish)
    : publish_(std::move(publish)),
      slots_(std::make_unique<std::atomic<PendingCommit*>[]>(kInFlightMax)),
      durable_lsn_(committed.lsn.value()),
      committed_lsn_(committed.lsn.value()),
      position_(committed) {}

void Publisher::Register(PendingCommit* commit) {
  SlotOf(commit->ticket.lsn().value()).store(commit, std::memory_order_release);
}

void Publisher::OnDurable(wal::Lsn lsn) {
  durable_lsn_.store(lsn.value(), std::memory_order_release);
  const storage::MutexLock lock(&mutex_);
  Pump();
}

void Publisher::Pump() {
  if (is_failed_) return;
  const uint64_t before = position_.lsn.value();
  while (position_.lsn.value() < durable_lsn_.load(std::memory_order_acquire)) {
    const uint64_t next = position_.lsn.value() + 1;
    PendingCommit* commit = SlotOf(next).load(std::memory_order_acquire);
    // Not registered yet, or its directory work is under way: its committer goes on from here.
    if (commit == nullptr || !commit->is_ready.load(std::memory_order_acquire)) break;
    REPOTXN_DCHECK(commit->ticket.lsn().value() == next);  // I1
    publish_(*commit);
    SlotOf(next).store(nullptr, std::memory_order_relaxed);
    position_ = wal::LogPosition{wal::Lsn(next), commit->ticket.position().chain};
    committed_lsn_.store(next, std::memory_order_release);
    commit->is_published = true;
    commit->published.Signal();
  }
  if (position_.lsn.value() != before && committed_waiters_ > 0) advanced_.SignalAll();
}

void Publisher::MarkReady(PendingCommit* commit) {
  commit->is_ready.store(true, std::memory_order_release);
  const storage::MutexLock lock(&mutex_);
  Pump();
}

bool Publisher::AwaitPublished(PendingCommit* commit) {
  commit->is_ready.store(true, std::memory_order_release);
  const storage::MutexLock lock(&mutex_);
  Pump();
  while (!commit->is_published && !is_failed_) commit->published.Wait(&mutex_);
  return commit->is_published;
}

bool Publisher::IsDecided(const PendingCommit& commit) const {
  const storage::MutexLock lock(&mutex_);
  return commit.is_published || is_failed_;
}

bool Publisher::AwaitCommitted(wal::Lsn lsn, const storage::WaitLimit& limit) {
  const storage::CancellationWaker waker(limit, &mutex_, &advanced_);
  const storage::MutexLock lock(&mutex_);
  ++committed_waiters_;
  while (position_.lsn < lsn && !is_failed_ && !is_log_failed_ && limit.Check().ok()) {
    storage::WaitWithin(limit, &advanced_, &mutex_);
  }
  --committed_waiters_;
  return position_.lsn >= lsn;
}

Publisher::Wake Publisher::AwaitChange(wal::Lsn lsn, absl::Duration timeout,
                                       const std::atomic<bool>& stop) {
  const storage::MutexLock lock(&mutex_);
  if (position_.lsn >= lsn || stop.load()) return Wake::kChanged;
  if (is_failed_ || is_log_failed_) return Wake::kFailed;
  ++committed_waiters_;
  const bool timed_out = advanced_.WaitFor(&mutex_, timeout);
  --committed_waiters_;
  return timed_out ? Wake::kTimedOut : Wake::kChanged;
}

void Publisher::WakeWaiters() {
  const storage::MutexLock lock(&mutex_);
  advanced_.SignalAll();
}

void Publisher::NoteLogFailed() {
  const storage::MutexLock lock(&mutex_);
  is_log_failed_ = true;
  advanced_.SignalAll();
}

void Publisher::Fail() {
  const storage::MutexLock lock(&mutex_);
  if (is_failed_) return;
  is_failed_ = true;
  // Durable entries wait in AwaitPublished(); later ones wait for the log and never come here.
  for (uint64_t lsn = position_.lsn.value() + 1;
       lsn <= durable_lsn_.load(std::memory_order_acquire); ++lsn) {
    PendingCommit* commit = SlotOf(lsn).load(std::memory_order_acquire);
    if (commit != nullptr) commit->published.SignalAll();
  }
  advanced_.SignalAll();
}

wal::LogPosition Publisher::committed_position() const {
  const storage::MutexLock lock(&mutex_);
  return position_;
}

}  // namespace repotxn::txn
