#include "txn/consumer_table.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPositionsKey = "m/positions";
constexpr absl::string_view kAcknowledgedUrl = "repotxn/acknowledged_lsn";

absl::Status Dropped(const wal::ConsumerPosition& consumer) {
  absl::Status status =
      absl::OutOfRangeError("consumer lagged beyond its limit of bytes and was dropped");
  status.SetPayload(kAcknowledgedUrl, absl::Cord(absl::StrCat(consumer.acknowledged.lsn.value())));
  return status;
}

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

}  // namespace

ConsumerTable::ConsumerTable(storage::MetadataStore* metadata, wal::Positions stored)
    : metadata_(metadata), positions_(std::move(stored)) {}

absl::StatusOr<wal::Positions> ConsumerTable::Load(storage::MetadataStore* metadata) {
  const auto stored = metadata->Get(kPositionsKey);
  if (absl::IsNotFound(stored.status())) return wal::Positions();
  if (!stored.ok()) return stored.status();
  return wal::DecodePositions(*stored);
}

wal::Positions ConsumerTable::positions() const {
  const storage::MutexLock lock(&mutex_);
  return positions_;
}

absl::Status ConsumerTable::Write(const wal::Positions& positions, storage::MetadataSync sync,
                                  storage::MetadataBatch batch) {
  batch.Put(kPositionsKey, wal::EncodePositions(positions));
  return metadata_->Write(batch, sync);
}

absl::Status ConsumerTable::Create(absl::string_view name, const wal::LogPosition& acknowledged) {
  const storage::MutexLock lock(&mutex_);
  if (is_closed_) return absl::UnavailableError("store is closing");
  if (wal::FindConsumer(positions_, name) != nullptr) {
    return absl::AlreadyExistsError("there is a consumer of this name");
  }
  if (acknowledged.lsn < wal::LowWaterMark(positions_).lsn) {
    return absl::OutOfRangeError("log is trimmed beyond this entry");
  }
  wal::Positions next = positions_;
  REPOTXN_RETURN_IF_ERROR(wal::Acknowledge(&next, name, acknowledged));
  REPOTXN_RETURN_IF_ERROR(Write(next, storage::MetadataSync::kSynced));
  positions_ = std::move(next);
  return absl::OkStatus();
}

absl::Status ConsumerTable::Remove(absl::string_view name) {
  const storage::MutexLock lock(&mutex_);
  if (is_closed_) return absl::UnavailableError("store is closing");
  wal::Positions next = positions_;
  REPOTXN_RETURN_IF_ERROR(wal::RemoveConsumer(&next, name));
  REPOTXN_RETURN_IF_ERROR(Write(next, storage::MetadataSync::kSynced));
  positions_ = std::move(next);
  const auto reader = readers_.find(Text(name));
  if (reader == readers_.end()) return absl::OkStatus();
  // Whoever waits with it finds no consumer any more; a new one of this name gets a reader of its own.
  reader->second->is_interrupted = true;
  readers_.erase(reader);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ConsumerReader>> ConsumerTable::Usable(absl::string_view name) {
  if (is_closed_) return absl::UnavailableError("store is closing");
  const wal::ConsumerPosition* found = wal::FindConsumer(positions_, name);
  if (found == nullptr) return absl::NotFoundError("no such consumer");
  if (found->dropped) return Dropped(*found);
  std::shared_ptr<ConsumerReader>& reader = readers_[found->name];
  if (reader == nullptr) reader = std::make_shared<ConsumerReader>();
  return reader;
}

absl::Status ConsumerTable::Acknowledge(absl::string_view name, wal::Lsn lsn) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(const std::shared_ptr<ConsumerReader> reader, Usable(name));
  if (lsn <= wal::FindConsumer(positions_, name)->acknowledged.lsn) return absl::OkStatus();  // I3
  std::deque<wal::LogPosition>& delivered = reader->delivered;
  if (delivered.empty() || lsn > delivered.back().lsn) {
    return absl::FailedPreconditionError("entry has not been delivered to this consumer");
  }
  REPOTXN_DCHECK(lsn >= delivered.front().lsn);
  const size_t index = static_cast<size_t>(lsn.value() - delivered.front().lsn.value());
  wal::Positions next = positions_;
  REPOTXN_RETURN_IF_ERROR(wal::Acknowledge(&next, name, delivered[index]));
  REPOTXN_RETURN_IF_ERROR(Write(next, storage::MetadataSync::kUnsynced));
  positions_ = std::move(next);
  delivered.erase(delivered.begin(), delivered.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ConsumerReader>> ConsumerTable::BeginRead(absl::string_view name,
                                                                         wal::LogPosition* acknowledged) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_ASSIGN_OR_RETURN(std::shared_ptr<ConsumerReader> reader, Usable(name));
  if (reader->is_taken) {
    return absl::FailedPreconditionError("somebody else reads for this consumer");
  }
  reader->is_taken = true;
  *acknowledged = wal::FindConsumer(positions_, name)->acknowledged;
  return reader;
}

void ConsumerTable::EndRead(ConsumerReader* reader, const std::vector<wal::LogPosition>& delivered) {
  const storage::MutexLock lock(&mutex_);
  reader->is_taken = false;
  for (const wal::LogPosition& position : delivered) {
    std::deque<wal::LogPosition>& known = reader->delivered;
    // Acknowledged while the reader was out, or delivered before.
    if (!known.empty() && position.lsn <= known.back().lsn) continue;
    known.push_back(position);
  }
}

absl::Status ConsumerTable::Check(absl::string_view name) {
  const storage::MutexLock lock(&mutex_);
  return Usable(name).status();
}

absl::Status ConsumerTable::Interrupt(absl::string_view name) {
  const storage::MutexLock lock(&mutex_);
  const wal::ConsumerPosition* found = wal::FindConsumer(positions_, name);
  if (found == nullptr) return absl::NotFoundError("no such consumer");
  std::shared_ptr<ConsumerReader>& reader = readers_[found->name];
  if (reader == nullptr) reader = std::make_shared<ConsumerReader>();
  reader->is_interrupted = true;
  return absl::OkStatus();
}

absl::StatusOr<wal::LogPosition> ConsumerTable::AdvanceApplied(const wal::LogPosition& applied,
                                                               storage::MetadataBatch batch) {
  const storage::MutexLock lock(&mutex_);
  wal::Positions next = positions_;
  next.applied = applied;
  REPOTXN_RETURN_IF_ERROR(Write(next, storage::MetadataSync::kSynced, std::move(batch)));
  positions_ = std::move(next);
  return wal::LowWaterMark(positions_);
}

absl::StatusOr<wal::LogPosition> ConsumerTable::SyncMark(
    absl::FunctionRef<bool(const wal::ConsumerPosition&)> lags) {
  const storage::MutexLock lock(&mutex_);
  wal::Positions next = positions_;
  const std::vector<std::string> dropped = wal::DropConsumers(&next, lags);
  if (!REPOTXN_PLANT("txn.low_water_from_memory")) {
    REPOTXN_RETURN_IF_ERROR(Write(next, storage::MetadataSync::kSynced));  // I1
  }
  positions_ = std::move(next);
  for (const std::string& name : dropped) {
    storage::LogWarning(absl::StrCat("consumer ", name, " lagged beyond its limit and was dropped"));
    if (const auto reader = readers_.find(name); reader != readers_.end()) {
      reader->second->is_interrupted = true;
    }
  }
  return wal::LowWaterMark(positions_);
}

void ConsumerTable::Close() {
  const storage::MutexLock lock(&mutex_);
  is_closed_ = true;
  for (const auto& [name, reader] : readers_) reader->is_interrupted = true;
}

}  // namespace repotxn::txn
