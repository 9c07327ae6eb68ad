#include "txn/snapshot_registry.h"

#include <algorithm>
#include <iterator>

#include "storage/check.h"

namespace repotxn::txn {

wal::Lsn SnapshotRegistry::Take(Counts* counts) {
  const wal::Lsn lsn(committed_->load(std::memory_order_acquire));
  ++(*counts)[lsn];
  return lsn;
}

void SnapshotRegistry::Drop(wal::Lsn lsn, Counts* counts) {
  const auto it = counts->find(lsn);
  REPOTXN_DCHECK(it != counts->end());
  if (it != counts->end() && --it->second == 0) counts->erase(it);
}

wal::Lsn SnapshotRegistry::Enter() {
  const storage::MutexLock lock(&mutex_);
  return Take(&readers_);
}

void SnapshotRegistry::Leave(wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  Drop(lsn, &readers_);
}

wal::Lsn SnapshotRegistry::EnterDirectory() {
  const storage::MutexLock lock(&mutex_);
  return Take(&directories_);
}

void SnapshotRegistry::LeaveDirectory(wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  Drop(lsn, &directories_);
}

wal::Lsn SnapshotRegistry::Open(TransactionLife* life) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_DCHECK(!life->is_registered_);
  life->registered_lsn_ = Take(&readers_);
  life->is_registered_ = true;
  life->place_ = open_.insert(open_.end(), life);
  return life->registered_lsn_;
}

void SnapshotRegistry::Unlink(TransactionLife* life) {
  open_.erase(life->place_);
  life->is_registered_ = false;
  Drop(life->registered_lsn_, &readers_);
}

bool SnapshotRegistry::Close(TransactionLife* life) {
  const storage::MutexLock lock(&mutex_);
  if (!life->is_registered_) return false;  // I2
  Unlink(life);
  return true;
}

void SnapshotRegistry::Move(TransactionLife* life, wal::Lsn entered) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_DCHECK(life->is_registered_ && life->registered_lsn_ <= entered);
  Drop(life->registered_lsn_, &readers_);
  life->registered_lsn_ = entered;
  // Others may have come meanwhile with a newer one: back from the end, past a few.
  auto place = open_.end();
  while (place != open_.begin() && (*std::prev(place))->registered_lsn_ > entered) --place;
  open_.splice(place, open_, life->place_);  // I1
}

void SnapshotRegistry::EnterChild(const TransactionId& id) {
  const storage::MutexLock lock(&mutex_);
  ++children_[id];
}

void SnapshotRegistry::LeaveChild(const TransactionId& id, absl::Duration now) {
  const storage::MutexLock lock(&mutex_);
  const auto it = children_.find(id);
  REPOTXN_DCHECK(it != children_.end());
  if (it != children_.end() && --it->second == 0) children_.erase(it);
  for (TransactionLife* life : open_) {
    if (life->id() == id) life->NoteUse(now);
  }
}

std::vector<SnapshotRegistry::Ended> SnapshotRegistry::EndIdle(absl::Duration since,
                                                               const absl::Status& why) {
  std::vector<Ended> ended;
  const storage::MutexLock lock(&mutex_);
  for (auto it = open_.begin(); it != open_.end();) {
    TransactionLife* const life = *it++;
    if (children_.contains(life->id()) || !life->EndIfIdleSince(since, why)) continue;
    ended.push_back(Ended{life->id(), life->is_attempt()});
    Unlink(life);
  }
  return ended;
}

std::vector<SnapshotRegistry::Ended> SnapshotRegistry::EndOldest(
    absl::FunctionRef<absl::Status(wal::Lsn snapshot)> why) {
  std::vector<Ended> ended;
  const storage::MutexLock lock(&mutex_);
  if (open_.empty()) return ended;
  const wal::Lsn oldest = open_.front()->registered_lsn_;
  if (oldest.value() >= committed_->load(std::memory_order_acquire)) return ended;
  const absl::Status reason = why(oldest);
  for (auto it = open_.begin(); it != open_.end() && (*it)->registered_lsn_ == oldest;) {
    TransactionLife* const life = *it++;
    if (!life->End(reason)) continue;
    ended.push_back(Ended{life->id(), life->is_attempt()});
    Unlink(life);
  }
  return ended;
}

wal::Lsn SnapshotRegistry::OldestReaderLocked() const {
  return readers_.empty() ? wal::Lsn(committed_->load(std::memory_order_acquire)) : readers_.begin()->first;
}

wal::Lsn SnapshotRegistry::OldestReader() const {
  const storage::MutexLock lock(&mutex_);
  return OldestReaderLocked();
}

wal::Lsn SnapshotRegistry::OldestInUse() const {
  const storage::MutexLock lock(&mutex_);
  const wal::Lsn reader = OldestReaderLocked();
  return directories_.empty() ? reader : std::min(reader, directories_.begin()->first);
}

}  // namespace repotxn::txn
