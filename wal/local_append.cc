// LocalReplicator: appending groups. One thread at a time; the only I/O that a commit waits for.
#include <algorithm>
#include <string>
#include <utility>

#include "storage/check.h"
#include "storage/status_macros.h"
#include "wal/local_replicator.h"

namespace repotxn::wal {
namespace {

using storage::MutexLock;

int64_t RecordBytesOf(const SealedEntry& entry) {
  return EntryRecordBytes(static_cast<int64_t>(entry.body.size()),
                          static_cast<int64_t>(entry.dropped.size()));
}

}  // namespace

// A group on its way: nothing happens before somebody waits for it.
class LocalReplicator::Pending : public PendingAppend {
 public:
  Pending(LocalReplicator* replicator, std::vector<SealedEntry> group)
      : replicator_(replicator), group_(std::move(group)) {}

  AppendOutcome Wait(absl::Status* status) override {
    return replicator_->WriteGroup(group_, status);
  }

 private:
  LocalReplicator* const replicator_;
  const std::vector<SealedEntry> group_;
};

std::unique_ptr<PendingAppend> LocalReplicator::Append(std::vector<SealedEntry> group) {
  return std::make_unique<Pending>(this, std::move(group));
}

AppendOutcome LocalReplicator::WriteGroup(const std::vector<SealedEntry>& group,
                                          absl::Status* status) {
  {
    MutexLock lock(&mutex_);
    *status = AppendRefusal();
    if (!status->ok()) return AppendOutcome::kNotCommitted;
  }
  if (!group.empty() && REPOTXN_NEVER(group.front().lsn != written_.lsn.Next())) {
    *status = PoisonWith(absl::InternalError("group does not continue the log"));
    return AppendOutcome::kNotCommitted;
  }
  *status = WriteParts(group);
  if (status->ok()) return AppendOutcome::kCommitted;
  IgnoreBecause(PoisonWith(*status), "the caller gets the first error");
  MutexLock lock(&mutex_);
  for (const SealedEntry& entry : group) {
    if (entry.lsn > committed_) unknown_.insert(entry.transaction_id);
  }
  return AppendOutcome::kUnknown;
}

// Most groups are one part. One that crosses the end of a segment is two: the first must be synced
// before the second segment's header says so.
absl::Status LocalReplicator::WriteParts(absl::Span<const SealedEntry> entries) {
  do {
    const int64_t fit = EntriesThatFit(entries);
    if (fit < 0) {
      REPOTXN_RETURN_IF_ERROR(TakeNextSegment());
      continue;
    }
    const absl::Span<const SealedEntry> part = entries.subspan(0, static_cast<size_t>(fit));
    REPOTXN_RETURN_IF_ERROR(WritePart(part));
    REPOTXN_RETURN_IF_ERROR(SyncPart());
    PublishPart(part);
    entries.remove_prefix(static_cast<size_t>(fit));
    if (entries.empty()) return absl::OkStatus();
  } while (true);
}

// How many of `entries` the current segment takes as one group; -1 when it has no room for the
// first one, or for a group record.
int64_t LocalReplicator::EntriesThatFit(absl::Span<const SealedEntry> entries) const {
  int64_t offset = end_offset_ + kGroupRecordBytes;
  if (offset > file_bytes_) return -1;
  int64_t fit = 0;
  for (const SealedEntry& entry : entries) {
    offset += RecordBytesOf(entry);
    if (offset > file_bytes_) break;
    ++fit;
  }
  return fit == 0 && !entries.empty() ? -1 : fit;
}

absl::Status LocalReplicator::TakeNextSegment() {
  SegmentHeader header;
  header.salt = options_.random_salt();
  header.epoch = current_.epoch;
  header.first_lsn = written_.lsn.Next();
  header.durable_lsn = written_.lsn;
  header.previous_chain = written_.chain;
  header.previous_number = current_.number;
  header.previous_salt = current_.salt;
  Spare spare;
  {
    MutexLock lock(&mutex_);
    // L2. Not reached through ReserveSpace(); entries that were never reserved end here.
    if (spares_.empty()) return absl::InternalError("no segment for a reserved entry");
    spare = std::move(spares_.front());
    spares_.pop_front();
    header.number = spare.number;
    Segment segment;
    segment.header = header;
    segment.file_bytes = options_.segment_bytes;
    segment.last_lsn = written_.lsn;
    segments_.push_back(std::move(segment));
    if (planned_.segment > 0) {
      --planned_.segment;
    } else {
      planned_ = Place{0, kSegmentHeaderBytes};
    }
  }
  current_ = header;
  file_ = std::move(spare.file);
  file_bytes_ = options_.segment_bytes;
  end_offset_ = kSegmentHeaderBytes;
  ordinal_ = 0;
  header_pending_ = true;
  return absl::OkStatus();
}

absl::Status LocalReplicator::WritePart(absl::Span<const SealedEntry> entries) {
  GroupHeader group;
  group.segment_number = current_.number;
  group.first_lsn = written_.lsn.Next();
  group.entries = static_cast<uint32_t>(entries.size());
  group.durable_before = written_.lsn;
  group.known_committed = written_.lsn;
  group.ordinal = ordinal_ + 1;
  std::string bytes = header_pending_ ? EncodeSegmentHeader(current_) : std::string();
  const int64_t offset = header_pending_ ? 0 : end_offset_;
  int64_t group_bytes = kGroupRecordBytes;
  for (const SealedEntry& entry : entries) group_bytes += RecordBytesOf(entry);
  bytes.reserve(bytes.size() + static_cast<size_t>(group_bytes));
  AppendGroupRecord(current_.salt, group, &bytes);
  for (const SealedEntry& entry : entries) AppendEntryRecord(current_.salt, entry, &bytes);
  REPOTXN_DCHECK(end_offset_ + group_bytes <= file_bytes_);
  REPOTXN_DCHECK(offset + static_cast<int64_t>(bytes.size()) == end_offset_ + group_bytes);
  REPOTXN_RETURN_IF_ERROR(file_->WriteAt(offset, absl::string_view(bytes.data(), bytes.size())));
  header_pending_ = false;
  end_offset_ += group_bytes;
  ordinal_ = group.ordinal;
  return absl::OkStatus();
}

absl::Status LocalReplicator::SyncPart() {
  if (REPOTXN_PLANT("wal.skip_sync")) return absl::OkStatus();
  absl::Status synced = file_->Sync();
  if (!synced.ok() && REPOTXN_PLANT("wal.retry_failed_sync")) synced = file_->Sync();
  return synced;
}

void LocalReplicator::PublishPart(absl::Span<const SealedEntry> entries) {
  if (entries.empty()) return;
  written_ = LogPosition{entries.back().lsn, entries.back().chain};
  MutexLock lock(&mutex_);
  Segment& segment = segments_.back();
  REPOTXN_DCHECK(committed_ < entries.front().lsn);  // L3
  for (const SealedEntry& entry : entries) {
    segment.ids.emplace(entry.transaction_id, entry.lsn);
  }
  segment.last_lsn = written_.lsn;
  segment.used_bytes = end_offset_;
  committed_ = written_.lsn;
}

}  // namespace repotxn::wal
