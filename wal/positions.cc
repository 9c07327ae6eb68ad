#include "wal/positions.h"

#include <algorithm>

#include "storage/checksum.h"
#include "storage/status_macros.h"
#include "wal/byte_order.h"

namespace repotxn::wal {
namespace {

constexpr uint32_t kPositionsFormatLevel = 1;
constexpr size_t kPositionBytes = 8 + 16;
constexpr size_t kHeadBytes = 4 + kPositionBytes + 4;
constexpr size_t kChecksumBytes = 8;
constexpr uint8_t kDroppedFlag = 1;

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

bool NameIsBelow(const ConsumerPosition& consumer, absl::string_view name) {
  return ViewOf(consumer.name) < name;
}

void AppendPosition(const LogPosition& position, std::string* out) {
  Append64(position.lsn.value(), out);
  AppendBytes(position.chain.view(), out);
}

LogPosition LoadPosition(absl::string_view bytes, size_t offset) {
  LogPosition position;
  position.lsn = Lsn(Load64(bytes, offset));
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset) + 8, 16,
              reinterpret_cast<char*>(position.chain.bytes.data()));
  return position;
}

}  // namespace

LogPosition LowWaterMark(const Positions& durable) {
  LogPosition mark = durable.applied;
  for (const ConsumerPosition& consumer : durable.consumers) {
    if (!consumer.dropped && consumer.acknowledged.lsn < mark.lsn) mark = consumer.acknowledged;
  }
  return mark;
}

const ConsumerPosition* FindConsumer(const Positions& positions, absl::string_view name) {
  const auto it =
      std::lower_bound(positions.consumers.begin(), positions.consumers.end(), name, NameIsBelow);
  if (it == positions.consumers.end() || ViewOf(it->name) != name) return nullptr;
  return &*it;
}

absl::Status Acknowledge(Positions* positions, absl::string_view name,
                         const LogPosition& position) {
  if (name.empty() || name.size() > static_cast<size_t>(kConsumerNameBytesMax)) {
    return absl::InvalidArgumentError("name of a consumer is empty or too long");
  }
  std::vector<ConsumerPosition>& consumers = positions->consumers;
  const auto it = std::lower_bound(consumers.begin(), consumers.end(), name, NameIsBelow);
  if (it == consumers.end() || ViewOf(it->name) != name) {
    if (consumers.size() >= static_cast<size_t>(kConsumersMax)) {
      return absl::ResourceExhaustedError("too many consumers");
    }
    consumers.insert(it, ConsumerPosition{std::string(name.data(), name.size()), position, false});
    return absl::OkStatus();
  }
  if (it->dropped) return absl::FailedPreconditionError("consumer lagged too far and was dropped");
  if (position.lsn > it->acknowledged.lsn) it->acknowledged = position;
  return absl::OkStatus();
}

absl::Status RemoveConsumer(Positions* positions, absl::string_view name) {
  const ConsumerPosition* found = FindConsumer(*positions, name);
  if (found == nullptr) return absl::NotFoundError("no such consumer");
  positions->consumers.erase(positions->consumers.begin() + (found - positions->consumers.data()));
  return absl::OkStatus();
}

std::vector<std::string> DropConsumers(Positions* positions,
                                       absl::FunctionRef<bool(const ConsumerPosition&)> lags) {
  std::vector<std::string> names;
  for (ConsumerPosition& consumer : positions->consumers) {
    if (consumer.dropped || !lags(consumer)) continue;
    consumer.dropped = true;
    names.push_back(consumer.name);
  }
  return names;
}

std::string EncodePositions(const Positions& positions) {
  std::string out;
  Append32(kPositionsFormatLevel, &out);
  AppendPosition(positions.applied, &out);
  Append32(static_cast<uint32_t>(positions.consumers.size()), &out);
  for (const ConsumerPosition& consumer : positions.consumers) {
    AppendLittle(consumer.name.size(), 2, &out);
    out.append(consumer.name);
    AppendPosition(consumer.acknowledged, &out);
    AppendLittle(consumer.dropped ? kDroppedFlag : 0, 1, &out);
  }
  Append64(storage::Xxh3(ViewOf(out)), &out);
  return out;
}

absl::StatusOr<Positions> DecodePositions(absl::string_view bytes) {
  const absl::Status malformed = absl::DataLossError("stored positions are malformed");
  if (bytes.size() < kHeadBytes + kChecksumBytes) return malformed;
  const absl::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (storage::Xxh3(body) != Load64(bytes, body.size())) return malformed;
  const uint32_t level = Load32(body, 0);
  if (level > kPositionsFormatLevel) {
    return absl::UnimplementedError("stored positions have a newer format level");
  }
  const uint32_t count = Load32(body, 4 + kPositionBytes);
  if (level != kPositionsFormatLevel || count > static_cast<uint32_t>(kConsumersMax)) {
    return malformed;
  }
  Positions positions;
  positions.applied = LoadPosition(body, 4);
  size_t offset = kHeadBytes;
  for (uint32_t i = 0; i < count; ++i) {
    if (body.size() - offset < 2) return malformed;
    const size_t name_bytes = LoadLittle(body, offset, 2);
    offset += 2;
    if (name_bytes == 0 || name_bytes > static_cast<size_t>(kConsumerNameBytesMax) ||
        body.size() - offset < name_bytes + kPositionBytes + 1) {
      return malformed;
    }
    ConsumerPosition consumer;
    consumer.name = std::string(body.data() + offset, name_bytes);
    consumer.acknowledged = LoadPosition(body, offset + name_bytes);
    const uint64_t flags = LoadLittle(body, offset + name_bytes + kPositionBytes, 1);
    offset += name_bytes + kPositionBytes + 1;
    const bool sorted =
        positions.consumers.empty() || positions.consumers.back().name < consumer.name;
    if (flags > kDroppedFlag || !sorted) return malformed;
    consumer.dropped = flags == kDroppedFlag;
    positions.consumers.push_back(std::move(consumer));
  }
  if (offset != body.size()) return malformed;
  return positions;
}

}  // namespace repotxn::wal
