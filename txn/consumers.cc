// Reading the log for consumers. The contract is in txn/consumers.h, positions are in txn/consumer_table.h.
#include "txn/consumers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "storage/check.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr int kEntriesMax = 10'000;
constexpr int64_t kEntryOverheadBytes = 200;

using Kind = ConsumedRepositoryChange::Kind;

std::vector<ConsumedRepositoryChange> RepositoryChangesOf(const wal::Manifest& manifest) {
  std::vector<ConsumedRepositoryChange> changes;
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto* create = std::get_if<wal::CreateRepository>(&operation)) {
      changes.push_back({Kind::kCreated, create->id, create->path});
    } else if (const auto* remove = std::get_if<wal::RemoveRepository>(&operation)) {
      if (!remove->purge) changes.push_back({Kind::kRemoved, remove->id, ""});
    } else if (const auto* move = std::get_if<wal::SetPath>(&operation)) {
      changes.push_back({Kind::kMoved, move->id, move->path});
    }
  }
  return changes;
}

// About what the entry takes; bounds an answer.
int64_t BytesOf(const ConsumedEntry& entry) {
  size_t bytes = entry.actor.size() + entry.origin.size();
  for (const std::string& option : entry.push_options) bytes += option.size();
  for (const ConsumedRepositoryChange& change : entry.repository_changes) bytes += change.path.size();
  for (const ConsumedRefChange& change : entry.ref_changes) bytes += change.ref.size() + change.path.size();
  const size_t items = 1 + entry.repository_changes.size() + entry.ref_changes.size();
  return static_cast<int64_t>(bytes) + kEntryOverheadBytes * static_cast<int64_t>(items);
}

absl::Status CheckNextOptions(const NextOptions& options) {
  if (options.entries_max < 1 || options.entries_max > kEntriesMax || options.bytes_max < 1) {
    return absl::InvalidArgumentError("a bound of an answer is out of range");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConsumerName(absl::string_view name) {
  const bool is_good = !name.empty() && name.size() <= kNameBytesMax &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                                c == '_' || c == '-';
                       });
  return is_good ? absl::OkStatus()
                 : absl::InvalidArgumentError("name of a consumer has 1 to 64 of [A-Za-z0-9._-]");
}

absl::StatusOr<wal::LogPosition> StoreCore::PositionBefore(wal::Lsn from) {
  const wal::LogPosition mark = wal::LowWaterMark(consumers_->positions());
  if (from == wal::Lsn::Zero() || from > publisher_->committed_lsn().Next()) {
    return absl::InvalidArgumentError("no entry has this LSN yet");
  }
  const wal::Lsn before = from.Previous();
  if (before == mark.lsn) return mark;
  if (before < mark.lsn) return absl::OutOfRangeError("log is trimmed beyond this entry");
  REPOTXN_ASSIGN_OR_RETURN(const auto cursor, replicator_->Follow(before));
  REPOTXN_ASSIGN_OR_RETURN(const wal::DecodedEntry entry, cursor->Next());
  return wal::LogPosition{entry.lsn, entry.chain};
}

absl::Status StoreCore::CreateConsumer(absl::string_view name, const ConsumerStart& start) {
  REPOTXN_RETURN_IF_ERROR(CheckConsumerName(name));
  wal::LogPosition position = publisher_->committed_position();
  if (start.from) {
    REPOTXN_ASSIGN_OR_RETURN(position, PositionBefore(*start.from));
  }
  return consumers_->Create(name, position);
}

std::vector<ConsumerInfo> StoreCore::ListConsumers() {
  const uint64_t committed = publisher_->committed_lsn().value();
  std::vector<ConsumerInfo> list;
  for (const wal::ConsumerPosition& consumer : consumers_->positions().consumers) {
    const wal::Lsn lsn = consumer.acknowledged.lsn;
    list.push_back({consumer.name, lsn, consumer.dropped,
                    static_cast<int64_t>(committed - std::min(committed, lsn.value())), BytesHeldBy(lsn)});
  }
  return list;
}

int64_t StoreCore::BytesHeldBy(wal::Lsn acknowledged) const {
  return replicator_->BytesAbove(acknowledged) + payload_retention_.BytesAbove(acknowledged);
}

absl::Status StoreCore::AcknowledgeEntries(absl::string_view name, wal::Lsn lsn) {
  return consumers_->Acknowledge(name, lsn);
}

absl::Status StoreCore::DropConsumer(absl::string_view name) {
  REPOTXN_RETURN_IF_ERROR(consumers_->Remove(name));
  publisher_->WakeWaiters();
  return absl::OkStatus();
}

absl::Status StoreCore::InterruptConsumer(absl::string_view name) {
  REPOTXN_RETURN_IF_ERROR(consumers_->Interrupt(name));
  publisher_->WakeWaiters();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ConsumedEntry>> StoreCore::NextEntries(absl::string_view name,
                                                                  const NextOptions& options) {
  REPOTXN_RETURN_IF_ERROR(CheckNextOptions(options));
  wal::LogPosition acknowledged;
  REPOTXN_ASSIGN_OR_RETURN(const std::shared_ptr<ConsumerReader> reader,
                           consumers_->BeginRead(name, &acknowledged));
  std::vector<wal::LogPosition> delivered;
  auto entries = ReadEntries(name, reader.get(), acknowledged.lsn.Next(), options, &delivered);
  if (!entries.ok()) delivered.clear();
  consumers_->EndRead(reader.get(), delivered);
  if (entries.ok() && !entries->empty() && REPOTXN_PLANT("txn.acknowledge_before_delivery")) {
    REPOTXN_RETURN_IF_ERROR(consumers_->Acknowledge(name, entries->back().lsn));
  }
  return entries;
}

absl::StatusOr<bool> StoreCore::AwaitEntry(absl::string_view name, ConsumerReader* reader, wal::Lsn lsn,
                                           absl::Duration wait) {
  const absl::Duration until = environment_.clock->Monotonic() + wait;
  while (true) {
    if (reader->is_interrupted.exchange(false)) {
      // Dropped, removed, or the store closes: say so rather than "interrupted".
      REPOTXN_RETURN_IF_ERROR(consumers_->Check(name));
      return absl::CancelledError("wait of a consumer was interrupted");
    }
    if (publisher_->committed_lsn() >= lsn) return true;
    const absl::Duration left = until - environment_.clock->Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    switch (publisher_->AwaitChange(lsn, left, reader->is_interrupted)) {
      case Publisher::Wake::kChanged: break;
      case Publisher::Wake::kTimedOut: return publisher_->committed_lsn() >= lsn;
      case Publisher::Wake::kFailed: return absl::UnavailableError("store takes no more entries");
    }
  }
}

absl::StatusOr<std::vector<ConsumedEntry>> StoreCore::ReadEntries(absl::string_view name,
                                                                  ConsumerReader* reader, wal::Lsn from,
                                                                  const NextOptions& options,
                                                                  std::vector<wal::LogPosition>* delivered) {
  std::vector<ConsumedEntry> entries;
  REPOTXN_ASSIGN_OR_RETURN(const bool is_there, AwaitEntry(name, reader, from, options.wait));
  if (!is_there) return entries;
  if (reader->cursor == nullptr || reader->cursor_at != from) {
    REPOTXN_ASSIGN_OR_RETURN(reader->cursor, replicator_->Follow(from));
    reader->cursor_at = from;
  }
  // Never beyond what is committed: the log may hold entries that are not visible yet.
  const wal::Lsn committed = publisher_->committed_lsn();
  int64_t bytes = 0;
  while (reader->cursor_at <= committed && static_cast<int>(entries.size()) < options.entries_max &&
         bytes < options.bytes_max) {
    auto entry = reader->cursor->Next();
    if (!entry.ok()) {
      reader->cursor = nullptr;
      // Trimmed under our eyes: it has been dropped, which says more.
      REPOTXN_RETURN_IF_ERROR(consumers_->Check(name));
      return entry.status();
    }
    reader->cursor_at = entry->lsn.Next();
    REPOTXN_ASSIGN_OR_RETURN(ConsumedEntry consumed, Consume(*entry));
    bytes += BytesOf(consumed);
    entries.push_back(std::move(consumed));
    delivered->push_back({entry->lsn, entry->chain});
  }
  return entries;
}

absl::StatusOr<ConsumedEntry> StoreCore::Consume(const wal::DecodedEntry& entry) {
  const wal::Manifest& manifest = entry.manifest;
  ConsumedEntry consumed;
  consumed.lsn = entry.lsn;
  consumed.transaction_id = entry.transaction_id;
  consumed.created_at = manifest.created_at;
  consumed.actor = manifest.note.actor;
  consumed.origin = manifest.note.origin;
  consumed.push_options = manifest.note.push_options;
  consumed.repository_changes = RepositoryChangesOf(manifest);
  std::map<RepositoryId, std::string> paths;
  for (const ConsumedRepositoryChange& change : consumed.repository_changes) {
    if (change.kind != Kind::kRemoved) paths[change.repository] = change.path;
  }
  const wal::Lsn at = registry_->Enter();
  const auto leave = absl::MakeCleanup([&] { registry_->Leave(at); });
  for (const wal::RefChange& change : manifest.note.ref_changes) {
    ConsumedRefChange ref;
    ref.repository = change.id;
    ref.ref = change.name;
    REPOTXN_ASSIGN_OR_RETURN(ref.old_value, refs::RefValue::FromLogged(change.old_value));
    REPOTXN_ASSIGN_OR_RETURN(ref.new_value, refs::RefValue::FromLogged(change.new_value));
    if (const auto known = paths.find(change.id); known != paths.end()) {
      ref.path = known->second;
    } else {
      auto row = Describe(change.id, at);
      if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
      ref.path = row.ok() ? row->path : "";
      paths.emplace(change.id, ref.path);
    }
    consumed.ref_changes.push_back(std::move(ref));
  }
  return consumed;
}

bool StoreCore::IsConsumerLagging(const wal::ConsumerPosition& consumer) const {
  return BytesHeldBy(consumer.acknowledged.lsn) > options_.consumer_bytes_max;
}

absl::Status StoreCore::TrimBehindConsumers() {
  const wal::Positions positions = consumers_->positions();
  const bool has_laggard =
      std::any_of(positions.consumers.begin(), positions.consumers.end(),
                  [this](const auto& consumer) { return !consumer.dropped && IsConsumerLagging(consumer); });
  const wal::Lsn mark = wal::LowWaterMark(positions).lsn;
  const bool frees = replicator_->HasSegmentsBelow(mark) ||
                     payload_retention_.HasAny(positions.applied.lsn, mark);
  if (!has_laggard && !frees) return absl::OkStatus();
  const storage::MutexLock lock(&checkpoint_mutex_);
  const wal::Lsn applied(applied_lsn_.load());
  const auto synced = consumers_->SyncMark([this](const auto& consumer) { return IsConsumerLagging(consumer); });
  if (!synced.ok()) {
    committer_->Poison(absl::UnavailableError("write of the consumers' positions failed"));
    return synced.status();
  }
  if (has_laggard) publisher_->WakeWaiters();  // who was dropped is told
  return Trim(applied, synced->lsn);
}

absl::Status StoreCore::Trim(wal::Lsn applied, wal::Lsn low_water_mark) {
  REPOTXN_RETURN_IF_ERROR(replicator_->Applied(low_water_mark));
  for (const TransactionId& id : payload_retention_.Take(applied, low_water_mark)) {
    REPOTXN_RETURN_IF_ERROR(payload_store_->Remove(id));
  }
  return absl::OkStatus();
}

absl::Status Store::CreateConsumer(absl::string_view name, const ConsumerStart& start) {
  return core_->CreateConsumer(name, start);
}
std::vector<ConsumerInfo> Store::ListConsumers() const { return core_->ListConsumers(); }
absl::StatusOr<std::vector<ConsumedEntry>> Store::NextEntries(absl::string_view name, const NextOptions& options) {
  return core_->NextEntries(name, options);
}
absl::Status Store::AcknowledgeEntries(absl::string_view name, wal::Lsn lsn) {
  return core_->AcknowledgeEntries(name, lsn);
}
absl::Status Store::DropConsumer(absl::string_view name) { return core_->DropConsumer(name); }
absl::Status Store::InterruptConsumer(absl::string_view name) { return core_->InterruptConsumer(name); }

}  // namespace repotxn::txn
