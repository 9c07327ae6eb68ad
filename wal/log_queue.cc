#include "wal/log_queue.h"

#include <memory>
#include <utility>

#include "storage/check.h"
#include "storage/status_macros.h"
#include "wal/segment.h"

namespace repotxn::wal {

using storage::MutexLock;

LogQueue::LogQueue(Replicator* replicator, const LogTail& tail, Options options)
    : replicator_(replicator),
      options_(std::move(options)),
      epoch_(tail.epoch),
      next_lsn_(tail.last.Next()),
      chain_(tail.chain),
      durable_lsn_(tail.last.value()),
      reserved_lsn_(tail.last.value()) {
  REPOTXN_DCHECK(options_.group_entries_max >= 1 && options_.group_bytes_max >= 1);
}

absl::StatusOr<Lsn> LogQueue::Reserve(PreparedEntry* entry, std::string* dropped, Ticket* ticket) {
  const int64_t bytes = EntryRecordBytes(static_cast<int64_t>(entry->body.size()),
                                         static_cast<int64_t>(dropped->size()));
  MutexLock lock(&mutex_);
  REPOTXN_DCHECK(ticket->state_ == Ticket::State::kIdle);
  if (!poison_.ok()) return poison_;
  REPOTXN_RETURN_IF_ERROR(replicator_->ReserveSpace(bytes));
  // From here on nothing can fail (I4).
  ticket->entry_ = std::move(*entry);
  ticket->dropped_ = std::move(*dropped);
  ticket->record_bytes_ = bytes;
  ticket->lsn_ = next_lsn_;
  ticket->state_ = Ticket::State::kQueued;
  ticket->next_ = nullptr;
  (tail_ == nullptr ? head_ : tail_->next_) = ticket;
  tail_ = ticket;
  reserved_lsn_.store(next_lsn_.value(), std::memory_order_release);
  next_lsn_ = next_lsn_.Next();
  newest_is_provable_ = false;
  return ticket->lsn_;
}

AppendOutcome LogQueue::AwaitDurable(Ticket* ticket, absl::Status* status) {
  return *AwaitDurable(ticket, storage::WaitLimit(), status);
}

std::optional<AppendOutcome> LogQueue::AwaitDurable(Ticket* ticket, const storage::WaitLimit& limit,
                                                    absl::Status* status) {
  const storage::CancellationWaker waker(limit, &mutex_, &ticket->wake_);
  MutexLock lock(&mutex_);
  REPOTXN_DCHECK(ticket->state_ != Ticket::State::kIdle);
  ticket->is_left_ = false;
  while (ticket->state_ != Ticket::State::kDone) {
    // Leading comes before leaving: whoever was chosen to lead must not go unnoticed.
    if (!leader_active_) {
      leader_active_ = true;
      LeadGroup();
      StepDown();
      continue;
    }
    if (absl::Status over = limit.Check(); !over.ok()) {
      ticket->is_left_ = true;
      *status = std::move(over);
      return std::nullopt;
    }
    storage::WaitWithin(limit, &ticket->wake_, &mutex_);
  }
  ticket->state_ = Ticket::State::kIdle;
  *status = std::move(ticket->status_);
  return ticket->outcome_;
}

bool LogQueue::IsDecided(const Ticket& ticket) const {
  MutexLock lock(&mutex_);
  return ticket.state_ == Ticket::State::kDone;
}

LogQueue::Group LogQueue::TakeGroup() {
  Group group;
  int64_t bytes = 0;
  Ticket* last = nullptr;
  while (head_ != nullptr && group.entries < options_.group_entries_max) {
    if (group.entries > 0 && bytes + head_->record_bytes_ > options_.group_bytes_max) break;
    bytes += head_->record_bytes_;
    head_->state_ = Ticket::State::kInGroup;
    if (last == nullptr) group.first = head_;
    last = head_;
    head_ = head_->next_;
    ++group.entries;
  }
  if (last != nullptr) last->next_ = nullptr;
  if (head_ == nullptr) tail_ = nullptr;
  return group;
}

void LogQueue::LeadGroup() {
  mutex_.AssertHeld();
  REPOTXN_DCHECK(leader_active_);
  Group group = TakeGroup();
  mutex_.Unlock();
  absl::Status status;
  std::vector<SealedEntry> sealed = SealGroup(group);
  const AppendOutcome outcome = SendGroup(std::move(sealed), &group, &status);
  mutex_.Lock();
  FinishGroup(group, outcome, status);
}

std::vector<SealedEntry> LogQueue::SealGroup(const Group& group) {
  std::vector<SealedEntry> sealed;
  sealed.reserve(static_cast<size_t>(group.entries));
  for (Ticket* ticket = group.first; ticket != nullptr; ticket = ticket->next_) {
    sealed.push_back(SealEntry(std::move(ticket->entry_), ticket->lsn_, epoch_, chain_,
                               std::move(ticket->dropped_)));
    chain_ = sealed.back().chain;
    ticket->chain_ = chain_;
  }
  return sealed;
}

// The part outside the log mutex: I/O, then the observers.
AppendOutcome LogQueue::SendGroup(std::vector<SealedEntry> sealed, Group* group,
                                  absl::Status* status) {
  const Lsn newest = sealed.empty() ? durable_lsn() : sealed.back().lsn;
  REPOTXN_DCHECK(sealed.empty() || sealed.front().lsn == durable_lsn().Next());  // I1
  const std::unique_ptr<PendingAppend> pending = replicator_->Append(std::move(sealed));
  AppendOutcome outcome = AppendOutcome::kCommitted;
  if (REPOTXN_PLANT("wal.ack_before_sync")) {
    mutex_.Lock();
    FinishGroup(*group, outcome, *status);
    mutex_.Unlock();
    group->first = nullptr;  // gone with their owners
  }
  outcome = pending->Wait(status);
  if (outcome == AppendOutcome::kCommitted) {
    REPOTXN_DCHECK(newest >= durable_lsn());  // I2
    durable_lsn_.store(newest.value(), std::memory_order_release);
    if (group->entries > 0 && options_.durable_observer) options_.durable_observer(newest);
  }
  if (options_.space_observer && !replicator_->HasSpareSpace()) options_.space_observer();
  return outcome;
}

void LogQueue::FinishGroup(const Group& group, AppendOutcome outcome, const absl::Status& status) {
  for (Ticket* ticket = group.first; ticket != nullptr;) {
    Ticket* const next = ticket->next_;
    ticket->outcome_ = outcome;
    ticket->status_ = status;
    ticket->state_ = Ticket::State::kDone;
    // Its owner may destroy it as soon as the mutex is free.
    ticket->wake_.Signal();
    ticket = next;
  }
  if (outcome == AppendOutcome::kCommitted) {
    newest_is_provable_ = group.entries == 0 && next_lsn_ == durable_lsn().Next();
  } else {
    if (poison_.ok()) poison_ = absl::UnavailableError("log is poisoned: a group failed");
    FailQueued(poison_);  // I3
  }
}

// Entries that were never sent: their LSNs follow those of a group that did not commit.
void LogQueue::FailQueued(const absl::Status& why) {
  for (Ticket* ticket = head_; ticket != nullptr;) {
    Ticket* const next = ticket->next_;
    ticket->outcome_ = AppendOutcome::kNotCommitted;
    ticket->status_ = why;
    ticket->state_ = Ticket::State::kDone;
    ticket->wake_.Signal();
    ticket = next;
  }
  head_ = tail_ = nullptr;
}

void LogQueue::StepDown() {
  leader_active_ = false;
  // The owner of the oldest queued entry leads next, except who has left; if it has not come to wait
  // yet, it will lead when it comes.
  Ticket* next = head_;
  while (next != nullptr && next->is_left_) next = next->next_;
  if (next != nullptr) next->wake_.Signal();
  leader_gone_.SignalAll();
}

absl::Status LogQueue::WriteEmptyGroup(WhenBusy when_busy) {
  MutexLock lock(&mutex_);
  while (leader_active_ || head_ != nullptr) {
    if (when_busy == WhenBusy::kGiveUp) return absl::OkStatus();
    if (leader_active_) {
      leader_gone_.Wait(&mutex_);
      continue;
    }
    leader_active_ = true;
    LeadGroup();
    StepDown();
  }
  if (!poison_.ok()) return poison_;
  if (newest_is_provable_) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(replicator_->ReserveSpace(0));
  leader_active_ = true;
  LeadGroup();
  StepDown();
  if (!poison_.ok()) return poison_;
  return absl::OkStatus();
}

absl::Status LogQueue::poison() const {
  MutexLock lock(&mutex_);
  return poison_;
}

void LogQueue::Poison(const absl::Status& why) {
  REPOTXN_DCHECK(!why.ok());
  MutexLock lock(&mutex_);
  if (poison_.ok()) poison_ = why;
}

}  // namespace repotxn::wal
