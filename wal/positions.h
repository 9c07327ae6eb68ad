// How far the log has been used, and from where on it is still needed.
//
// Three kinds of position: *materialized* (in the repositories, perhaps not synced; never stored),
// *applied* (durable outside the log) and one for each named consumer (durable, acknowledged by
// it). The low-water mark is the highest LSN that no one needs any more. It is computed from
// durable positions only, and the caller has synced them before it gives the mark to
// Replicator::Applied() [B15]: a mark taken from memory would let the log go where a consumer comes
// back to after a crash.
//
// A consumer that lags past its limit is dropped, marked, and told so; it never fills the disk.
//
// Stored form, little-endian: level (4 bytes, 1), applied LSN (8), applied chain (16), number of
// consumers (4); each consumer: name length (2), name, LSN (8), chain (16), flags (1; bit 0
// dropped); last XXH3-64 of all before (8). Consumers are sorted by name, strictly.
//
// Values and pure functions. Thread-compatible.
#ifndef REPOTXN_WAL_POSITIONS_H_
#define REPOTXN_WAL_POSITIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"

namespace repotxn::wal {

inline constexpr int kConsumersMax = 1024;
inline constexpr int kConsumerNameBytesMax = 255;

struct ConsumerPosition {
  std::string name;
  LogPosition acknowledged;  // newest entry it has acknowledged
  bool dropped = false;  // lagged past its limit; pins nothing, and must be told so when it asks

  friend bool operator==(const ConsumerPosition&, const ConsumerPosition&) = default;
};

// What is durable. Invariant P1: no position moves back; P2: consumers are sorted by name,
// strictly.
struct Positions {
  LogPosition applied;
  std::vector<ConsumerPosition> consumers;

  friend bool operator==(const Positions&, const Positions&) = default;
};

// The oldest of applied and of every consumer that is not dropped.
LogPosition LowWaterMark(const Positions& durable);

// The consumer of this name, or nullptr.
const ConsumerPosition* FindConsumer(const Positions& positions, absl::string_view name);
// Adds a consumer at `from`, or moves an existing one forward; never back (P1: an older
// acknowledgement changes nothing). Errors: kInvalidArgument name empty or too long;
// kResourceExhausted too many consumers; kFailedPrecondition it has been dropped (RemoveConsumer
// and start again from a new position).
absl::Status Acknowledge(Positions* positions, absl::string_view name, const LogPosition& position);
// kNotFound when absent.
absl::Status RemoveConsumer(Positions* positions, absl::string_view name);
// Drops every consumer that `lags`, unless it has been dropped before; returns their names.
std::vector<std::string> DropConsumers(Positions* positions,
                                       absl::FunctionRef<bool(const ConsumerPosition&)> lags);

std::string EncodePositions(const Positions& positions);
// Errors: kUnimplemented a newer level; kDataLoss anything else.
absl::StatusOr<Positions> DecodePositions(absl::string_view bytes);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_POSITIONS_H_
