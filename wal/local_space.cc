// LocalReplicator: record space, files made ahead, and trimming.
#include <algorithm>
#include <utility>

#include "storage/check.h"
#include "storage/status_macros.h"
#include "wal/local_replicator.h"

namespace repotxn::wal {

using storage::MutexLock;

absl::Status LocalReplicator::ReserveSpace(int64_t bytes) {
  REPOTXN_DCHECK(bytes >= 0);
  if (bytes > options_.segment_bytes / 4) {
    return absl::ResourceExhaustedError("log record exceeds a quarter of a segment");
  }
  const int64_t needed = kGroupRecordBytes + (bytes + 7) / 8 * 8;
  MutexLock lock(&mutex_);
  REPOTXN_RETURN_IF_ERROR(AppendRefusal());
  Place place = planned_;
  const int64_t capacity =
      place.segment == 0 ? segments_.back().file_bytes : options_.segment_bytes;
  if (place.offset + needed > capacity) {
    place = Place{place.segment + 1, kSegmentHeaderBytes};
    if (place.segment > spares_.size()) {
      REPOTXN_PROBE("wal.no_space");
      return absl::ResourceExhaustedError("no space in the log's segments");
    }
  }
  place.offset += needed;
  planned_ = place;
  return absl::OkStatus();
}

bool LocalReplicator::HasSpareSpaceLocked() const {
  REPOTXN_DCHECK(planned_.segment <= spares_.size());
  return spares_.size() - planned_.segment >= static_cast<size_t>(options_.spare_segments);
}

bool LocalReplicator::HasSpareSpace() const {
  MutexLock lock(&mutex_);
  return HasSpareSpaceLocked();
}

void LocalReplicator::BeginMaintenance() {
  MutexLock lock(&mutex_);
  while (maintenance_) maintenance_done_.Wait(&mutex_);
  maintenance_ = true;
}

void LocalReplicator::EndMaintenance() {
  MutexLock lock(&mutex_);
  maintenance_ = false;
  maintenance_done_.Signal();
}

absl::Status LocalReplicator::PrepareSpace() {
  BeginMaintenance();
  absl::Status status;
  while (true) {
    {
      MutexLock lock(&mutex_);
      status = AppendRefusal();
      if (!status.ok() || HasSpareSpaceLocked()) break;
    }
    status = AddSpare();
    if (!status.ok()) break;
  }
  EndMaintenance();
  return status;
}

// Die here: a file without a valid header, which does not exist for recovery.
absl::Status LocalReplicator::AddSpare() {
  uint64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++number_max_;
  }
  const storage::StorePath path = PathOf(number);
  const absl::Status made = MakeZeroFilled(file_system_, path, options_.segment_bytes);
  if (!made.ok()) {
    // A full disk must not be kept full by half a segment.
    IgnoreBecause(file_system_->Remove(path), "recovery removes it as well");
    return made;
  }
  const absl::Status synced = file_system_->SyncDirectory(options_.directory);
  if (!synced.ok()) return PoisonWith(synced);
  REPOTXN_ASSIGN_OR_RETURN(Spare spare, OpenSpare(number));
  MutexLock lock(&mutex_);
  spares_.push_back(std::move(spare));
  return absl::OkStatus();
}

bool LocalReplicator::OldestIsBelow(Lsn lsn) const {
  if (segments_.size() <= 1 || segments_.front().last_lsn > lsn) return false;
  // A segment without a committed group may be the one that is being begun: its predecessor stays
  // until then.
  return segments_[1].header.first_lsn <= committed_;
}

bool LocalReplicator::HasSegmentsBelow(Lsn lsn) const {
  MutexLock lock(&mutex_);
  return OldestIsBelow(lsn);
}

int64_t LocalReplicator::BytesAbove(Lsn lsn) const {
  MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Segment& segment : segments_) {
    if (segment.last_lsn <= lsn) continue;
    const uint64_t first = segment.header.first_lsn.value();
    const uint64_t entries = segment.last_lsn.value() - first + 1;
    const uint64_t above = segment.last_lsn.value() - std::max(lsn.value(), first - 1);
    const double share = static_cast<double>(above) / static_cast<double>(entries);
    bytes += static_cast<int64_t>(static_cast<double>(segment.used_bytes) * share);
  }
  return bytes;
}

// The low-water mark is durable by now [B15]. Die between the steps: the older segments still count
// or are gone one by one; recovery starts at the last segment that begins at or below its base, and
// that one is never among them.
absl::Status LocalReplicator::Applied(Lsn lsn) {
  BeginMaintenance();
  std::vector<uint64_t> numbers;
  {
    MutexLock lock(&mutex_);
    while (OldestIsBelow(lsn)) {
      numbers.push_back(segments_.front().header.number);
      segments_.pop_front();
    }
  }
  const absl::Status status = numbers.empty() ? absl::OkStatus() : Retire(numbers);
  EndMaintenance();
  return status;
}

absl::Status LocalReplicator::Retire(const std::vector<uint64_t>& numbers) {
  std::vector<uint64_t> spares;
  for (const uint64_t number : numbers) {
    uint64_t spare = 0;
    {
      MutexLock lock(&mutex_);
      const size_t ahead = spares_.size() - planned_.segment + spares.size();
      if (ahead < static_cast<size_t>(options_.spare_segments)) spare = ++number_max_;
    }
    REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, file_system_->Stat(PathOf(number)));
    if (spare != 0 && info.size == options_.segment_bytes) {
      REPOTXN_RETURN_IF_ERROR(file_system_->Rename(PathOf(number), PathOf(spare)));
      spares.push_back(spare);
    } else {
      REPOTXN_RETURN_IF_ERROR(file_system_->Remove(PathOf(number)));
    }
  }
  // A name that may vanish must not carry entries: used only after this.
  const absl::Status synced = file_system_->SyncDirectory(options_.directory);
  if (!synced.ok()) return PoisonWith(synced);
  for (const uint64_t number : spares) {
    REPOTXN_ASSIGN_OR_RETURN(Spare spare, OpenSpare(number));
    MutexLock lock(&mutex_);
    spares_.push_back(std::move(spare));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::wal
