// Encodes and decodes manifests and dropped lists. wal/manifest.proto is the specification of the
// bytes.
//
// Encoding is deterministic: one manifest has exactly one encoding, the same on every node, and
// only that encoding is accepted: what decodes, encodes to the same bytes again. Version policy: a
// format level or an operation that this program does not know is kUnimplemented, never a guess and
// never damage.
//
// What is not checked here: meaning. Names, paths, modes and object ids are bytes; txn/ validates a
// decoded manifest wholly before its first effect.
//
// Thread-safe (pure functions).
#ifndef REPOTXN_WAL_MANIFEST_CODEC_H_
#define REPOTXN_WAL_MANIFEST_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "wal/operation.h"

namespace repotxn::wal {

inline constexpr uint32_t kManifestFormatLevel = 1;
// Limits of what is decoded; writers stay below them.
inline constexpr int64_t kManifestBytesMax = 256 << 20;
inline constexpr int64_t kDroppedBytesMax = 16 << 20;
inline constexpr int64_t kManifestOperationsMax = 4 << 20;

// `created_at` is kept to the nanosecond, rounded down.
std::string EncodeManifest(const Manifest& manifest);
// Errors: kUnimplemented a newer level or an unknown operation; kDataLoss everything else that is
// not an encoding of a manifest, limits included.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes);

// An empty list is the empty string.
std::string EncodeDropped(const std::vector<DroppedRef>& dropped);
// Errors: as DecodeManifest.
absl::StatusOr<std::vector<DroppedRef>> DecodeDropped(absl::string_view bytes);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_MANIFEST_CODEC_H_
