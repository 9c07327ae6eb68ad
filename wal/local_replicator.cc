#include "wal/local_replicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "storage/check.h"
#include "storage/random.h"
#include "storage/status_macros.h"
#include "wal/payload_store.h"

namespace repotxn::wal {
namespace {

using storage::MutexLock;
using storage::StorePath;

constexpr int kSpareSegmentsMax = 64;

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

}  // namespace

// Reads segments record by record. A segment may be retired under it and written anew; then its
// salt is another, the record does not match, and the look at what is retained tells that from
// damage.
class LocalReplicator::Cursor : public EntryCursor {
 public:
  Cursor(LocalReplicator* replicator, Lsn from) : replicator_(replicator), next_(from) {}

  absl::StatusOr<DecodedEntry> Next() override {
    const absl::Status located = Locate();
    absl::StatusOr<DecodedEntry> entry = located.ok() ? ReadHere() : located;
    if (entry.ok()) {
      next_ = next_.Next();
      return entry;
    }
    file_ = nullptr;  // the next call begins at a segment's start again
    if (replicator_->retained_from() > next_) return Trimmed();
    return entry;
  }

 private:
  static absl::Status Trimmed() {
    return absl::OutOfRangeError("log is trimmed beyond this entry");
  }

  // Opens the segment that holds next_, unless it is open.
  absl::Status Locate() {
    SegmentHeader header;
    {
      MutexLock lock(&replicator_->mutex_);
      if (next_ > replicator_->committed_) {
        return absl::OutOfRangeError("no entry beyond the committed end");
      }
      const Segment* const segment = replicator_->SegmentHolding(next_);
      if (segment == nullptr) return Trimmed();
      header = segment->header;
    }
    if (file_ != nullptr && header.number == number_) return absl::OkStatus();
    number_ = header.number;
    salt_ = header.salt;
    offset_ = kSegmentHeaderBytes;
    REPOTXN_ASSIGN_OR_RETURN(file_,
                             replicator_->file_system_->OpenForRead(replicator_->PathOf(number_)));
    return absl::OkStatus();
  }

  absl::StatusOr<DecodedEntry> ReadHere() {
    while (true) {
      REPOTXN_ASSIGN_OR_RETURN(const RecordAt record, ReadRecordAt(*file_, salt_, offset_));
      if (record.kind == RecordAt::Kind::kNone) return absl::DataLossError("log entry is damaged");
      const bool is_wanted = record.kind == RecordAt::Kind::kEntry && record.entry.lsn >= next_;
      if (is_wanted) break;
      offset_ += record.record_bytes;
    }
    std::string bytes;
    REPOTXN_ASSIGN_OR_RETURN(const EntryHeader header,
                             ReadEntryRecord(*file_, salt_, offset_, next_, &bytes));
    const absl::string_view parts = ViewOf(bytes).substr(kEntryHeaderBytes);
    const absl::string_view dropped = parts.substr(header.body_bytes);
    REPOTXN_ASSIGN_OR_RETURN(
        DecodedEntry entry, header.body_is_payload
                                ? DecodePayload(header, dropped)
                                : DecodeEntry(header, parts.substr(0, header.body_bytes), dropped));
    offset_ += EntryRecordBytes(header.body_bytes, header.dropped_bytes);
    return entry;
  }

  absl::StatusOr<DecodedEntry> DecodePayload(const EntryHeader& header, absl::string_view dropped) {
    PayloadFile file;
    file.index = header.payload_index;
    file.size = header.payload_size;
    file.sha256 = std::string(reinterpret_cast<const char*>(header.body_sha256.data()),
                              header.body_sha256.size());
    PayloadStore payloads(replicator_->file_system_, replicator_->options_.payload_directory);
    REPOTXN_ASSIGN_OR_RETURN(const std::string body, payloads.Read(header.transaction_id, file));
    return DecodeEntry(header, ViewOf(body), dropped);
  }

  LocalReplicator* const replicator_;
  Lsn next_;
  uint64_t number_ = 0;
  uint64_t salt_ = 0;
  int64_t offset_ = 0;
  std::unique_ptr<storage::ReadableFile> file_;
};

absl::StatusOr<std::unique_ptr<LocalReplicator>> LocalReplicator::Create(
    storage::FileSystem* file_system, const LogPosition& base, Options options) {
  if (options.segment_bytes < kSegmentBytesMin || options.segment_bytes > kSegmentBytesMax ||
      options.segment_bytes % kSegmentHeaderBytes != 0) {
    return absl::InvalidArgumentError("segment size is out of range");
  }
  if (options.spare_segments < 1 || options.spare_segments > kSpareSegmentsMax) {
    return absl::InvalidArgumentError("number of spare segments is out of range");
  }
  if (!options.random_salt) {
    options.random_salt = [] { return storage::NextUint64(*storage::SystemRandom()); };
  }
  return std::unique_ptr<LocalReplicator>(
      new LocalReplicator(file_system, base, std::move(options)));
}

LocalReplicator::LocalReplicator(storage::FileSystem* file_system, const LogPosition& base,
                                 Options options)
    : file_system_(file_system), base_(base), options_(std::move(options)) {}

LocalReplicator::~LocalReplicator() = default;

StorePath LocalReplicator::PathOf(uint64_t number) const {
  const std::string name = SegmentFileName(number);
  return options_.directory / ViewOf(name);
}

absl::StatusOr<LocalReplicator::Spare> LocalReplicator::OpenSpare(uint64_t number) {
  Spare spare;
  spare.number = number;
  REPOTXN_ASSIGN_OR_RETURN(
      spare.file, file_system_->OpenForWrite(PathOf(number), storage::OpenMode::kExisting));
  return spare;
}

absl::StatusOr<LogTail> LocalReplicator::Acquire() {
  {
    MutexLock lock(&mutex_);
    if (acquired_ || !poison_.ok()) return absl::FailedPreconditionError("log was acquired before");
  }
  RecoveryOptions options;
  options.directory = options_.directory;
  options.segment_bytes = options_.segment_bytes;
  options.spare_segments = options_.spare_segments;
  options.random_salt = options_.random_salt;
  options.durable = options_.durable;
  REPOTXN_ASSIGN_OR_RETURN(RecoveredLog recovered, RecoverLog(file_system_, base_, options));
  REPOTXN_ASSIGN_OR_RETURN(Spare current, OpenSpare(recovered.header.number));
  std::deque<Spare> spares;
  for (const uint64_t number : recovered.spares) {
    REPOTXN_ASSIGN_OR_RETURN(Spare spare, OpenSpare(number));
    spares.push_back(std::move(spare));
  }
  return Adopt(std::move(recovered), std::move(current.file), std::move(spares));
}

LogTail LocalReplicator::Adopt(RecoveredLog recovered, std::unique_ptr<storage::WritableFile> file,
                               std::deque<Spare> spares) {
  current_ = recovered.header;
  file_ = std::move(file);
  file_bytes_ = recovered.file_bytes;
  end_offset_ = recovered.end_offset;
  ordinal_ = recovered.groups;
  written_ = recovered.end;
  Segment segment;
  segment.header = recovered.header;
  segment.file_bytes = recovered.file_bytes;
  segment.used_bytes = recovered.end_offset;
  segment.last_lsn = recovered.end.lsn;
  for (const ScannedEntry& entry : recovered.entries) {
    segment.ids.emplace(entry.transaction_id, entry.lsn);
  }
  MutexLock lock(&mutex_);
  segments_.push_back(std::move(segment));
  spares_ = std::move(spares);
  number_max_ = recovered.number_max;
  planned_ = Place{0, recovered.end_offset};
  committed_ = recovered.end.lsn;
  torn_bytes_ = recovered.torn_bytes;
  acquired_ = true;
  return LogTail{recovered.end.lsn, recovered.end.chain, recovered.header.epoch};
}

absl::Status LocalReplicator::Release() {
  MutexLock lock(&mutex_);
  if (!acquired_) return absl::FailedPreconditionError("log was not acquired");
  released_ = true;
  return absl::OkStatus();
}

absl::Status LocalReplicator::StagePayload(const TransactionId& /*id*/,
                                           absl::Span<const PayloadFile> /*files*/) {
  return absl::OkStatus();  // Staging synced them here, and there is no other node.
}

absl::Status LocalReplicator::AppendRefusal() const {
  if (!poison_.ok()) return poison_;
  if (!acquired_ || released_) return absl::UnavailableError("log is not owned");
  return absl::OkStatus();
}

absl::Status LocalReplicator::PoisonWith(const absl::Status& why) {
  MutexLock lock(&mutex_);
  if (poison_.ok()) {
    poison_ = absl::UnavailableError("log is poisoned: a write or sync failed");
    REPOTXN_PROBE("wal.poisoned");
  }
  return why;
}

absl::StatusOr<Resolution> LocalReplicator::Resolve(const TransactionId& id) {
  MutexLock lock(&mutex_);
  if (!acquired_) return absl::FailedPreconditionError("log was not acquired");
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    const auto found = segment->ids.find(id);
    if (found != segment->ids.end()) {
      return Resolution{ProposalState::kCommitted, found->second};
    }
  }
  if (unknown_.contains(id)) return Resolution{ProposalState::kUnknown, Lsn::Zero()};
  return Resolution{ProposalState::kNotCommitted, Lsn::Zero()};
}

const LocalReplicator::Segment* LocalReplicator::SegmentHolding(Lsn lsn) const {
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    if (segment->header.first_lsn <= lsn) return &*segment;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<EntryCursor>> LocalReplicator::Follow(Lsn from) {
  MutexLock lock(&mutex_);
  if (!acquired_) return absl::FailedPreconditionError("log was not acquired");
  if (SegmentHolding(from) == nullptr) {
    return absl::OutOfRangeError("log is trimmed beyond this entry");
  }
  return std::unique_ptr<EntryCursor>(std::make_unique<Cursor>(this, from));
}

absl::Status LocalReplicator::ReadBarrier() {
  MutexLock lock(&mutex_);
  return AppendRefusal();
}

int64_t LocalReplicator::torn_bytes() const {
  MutexLock lock(&mutex_);
  return torn_bytes_;
}

Lsn LocalReplicator::retained_from() const {
  MutexLock lock(&mutex_);
  return segments_.empty() ? base_.lsn.Next() : segments_.front().header.first_lsn;
}

int64_t LocalReplicator::retained_bytes() const {
  MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.file_bytes;
  return bytes;
}

Lsn LocalReplicator::committed_lsn() const {
  MutexLock lock(&mutex_);
  return committed_;
}

}  // namespace repotxn::wal
