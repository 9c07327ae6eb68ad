// The entry: the part of a log record that is byte-identical on every node.
//
// Layout. Integers are little-endian. An entry is header, body, dropped list, without gaps:
//
//   offset  bytes  field
//        0      4  format level (1)
//        4      4  flags; bit 0: the body is a payload file and no body bytes stand here
//        8      8  LSN
//       16      8  epoch
//       24     16  transaction id
//       40      4  body bytes in this record; 0 with flag bit 0
//       44      4  dropped bytes
//       48      8  XXH3-64, seed 0, of the body bytes in this record
//       56      8  XXH3-64, seed 0, of the dropped bytes
//       64     32  SHA-256 of the body, wherever it stands
//       96      8  size of the body's payload file; 0 without flag bit 0
//      104      4  index of the body's payload file; 0 without flag bit 0
//      108      4  zero
//      112     16  chain = XXH3-128 of (chain of the previous entry, bytes 0..111 of this header)
//      128      -  body: an encoded manifest (wal/manifest.proto)
//        -      -  dropped list (EncodeDropped), usually empty
//
// Valid when (1) the level is known, (2) flags, lengths and reserved bytes obey the table, (3) the
// chain is that of its predecessor continued, (4) both parts have their checksums. Rule 1 comes
// first: a newer level is kUnimplemented, never a guess. The chain covers the checksums of the
// parts, so it vouches for the whole entry.
//
// The parts are hashed while staging, outside every lock: what remains for the leader is the fixed
// header. XXH3 guards against accident; SHA-256 is what decides whether bytes travel between nodes.
//
// How it is kept in a file, and what a crash leaves of it: wal/segment.h.
#ifndef REPOTXN_WAL_ENTRY_CODEC_H_
#define REPOTXN_WAL_ENTRY_CODEC_H_

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "wal/lsn.h"
#include "wal/operation.h"

namespace repotxn::wal {

inline constexpr uint32_t kEntryFormatLevel = 1;
inline constexpr int64_t kEntryHeaderBytes = 128;
// An encoded manifest above this goes out as a payload file.
inline constexpr int64_t kManifestInlineBytesMax = 256 << 10;

// State of the chain after an entry: two logs with one chain at one LSN hold the same entries up to
// it. All zero before the first entry.
struct ChainChecksum {
  std::array<uint8_t, 16> bytes{};

  // kInvalidArgument unless 16 bytes.
  static absl::StatusOr<ChainChecksum> FromBytes(absl::string_view bytes);
  absl::string_view view() const {
    return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string ToHex() const;

  friend auto operator<=>(const ChainChecksum&, const ChainChecksum&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ChainChecksum& chain) {
    return H::combine(std::move(h), chain.bytes);
  }
};

// A place in the log together with the chain there; what is kept durably to find the log's
// continuation again.
struct LogPosition {
  Lsn lsn;
  ChainChecksum chain;

  friend bool operator==(const LogPosition&, const LogPosition&) = default;
};

// An entry as readers get it.
struct DecodedEntry {
  Lsn lsn;
  uint64_t epoch = 0;
  TransactionId transaction_id;
  Manifest manifest;
  std::vector<DroppedRef> dropped;
  ChainChecksum chain;
  int64_t body_payload_bytes = 0;  // of the manifest's payload file; 0 when it stood in the record
};

// What staging computes of an entry, outside every lock.
struct PreparedEntry {
  TransactionId transaction_id;
  std::string body;        // encoded manifest; empty when it is a payload file
  uint64_t body_xxh3 = 0;  // of `body`
  std::array<uint8_t, 32> body_sha256{};
  PayloadFile body_payload;  // when the body travels as a payload file
  bool body_is_payload() const { return !body_payload.sha256.empty(); }
};

// Encodes `manifest` and hashes the result.
//
// Errors: kResourceExhausted when the encoding is above kManifestInlineBytesMax: the caller writes
// EncodeManifest()'s bytes to a payload file and calls PreparePayloadEntry().
absl::StatusOr<PreparedEntry> PrepareEntry(const Manifest& manifest);
// The same from bytes that EncodeManifest() made of a manifest with this transaction id.
absl::StatusOr<PreparedEntry> PrepareEncodedEntry(const TransactionId& id,
                                                  std::string encoded_manifest);
// An entry whose body is `body_payload`, already staged. kInvalidArgument unless the digest has 32
// bytes.
absl::StatusOr<PreparedEntry> PreparePayloadEntry(const TransactionId& id,
                                                  const PayloadFile& body_payload);

// The fields of an entry's header, without its parts.
struct EntryHeader {
  Lsn lsn;
  uint64_t epoch = 0;
  TransactionId transaction_id;
  uint32_t body_bytes = 0;
  uint32_t dropped_bytes = 0;
  uint64_t body_xxh3 = 0;
  uint64_t dropped_xxh3 = 0;
  std::array<uint8_t, 32> body_sha256{};
  bool body_is_payload = false;
  int64_t payload_size = 0;
  uint32_t payload_index = 0;
  ChainChecksum chain;

  friend bool operator==(const EntryHeader&, const EntryHeader&) = default;
};

// An entry that has its LSN and may be appended. Move-only in spirit: `body` may be large.
struct SealedEntry {
  Lsn lsn;
  uint64_t epoch = 0;
  TransactionId transaction_id;
  std::string body;
  std::string dropped;
  ChainChecksum chain;
  std::array<char, kEntryHeaderBytes> header{};

  // Bytes of the whole entry.
  int64_t size() const {
    return kEntryHeaderBytes + static_cast<int64_t>(body.size()) +
           static_cast<int64_t>(dropped.size());
  }
};

// Gives a prepared entry its place. Hashes only the fixed header and `dropped`, never the body.
SealedEntry SealEntry(PreparedEntry prepared, Lsn lsn, uint64_t epoch,
                      const ChainChecksum& previous, std::string dropped);

// The whole entry as bytes, as another node gets it.
std::string EntryBytes(const SealedEntry& entry);

// Reads a header of exactly kEntryHeaderBytes and checks rules 1 and 2.
// Errors: kUnimplemented a newer level; kDataLoss anything else.
absl::StatusOr<EntryHeader> DecodeEntryHeader(absl::string_view bytes);
// Rule 3: the chain that an entry with these header bytes must carry after `previous`.
ChainChecksum ContinueChain(const ChainChecksum& previous, absl::string_view header_bytes);
// Rule 4. `parts` is body and dropped list.
bool PartsMatch(const EntryHeader& header, absl::string_view parts);

// Makes the readers' form of an entry. `body` is the manifest's bytes, inline or read from the
// payload file (whose SHA-256 is then checked here), `dropped` the list. Errors: kDataLoss digest
// or form is wrong, or the manifest is another transaction's; kUnimplemented a newer form.
absl::StatusOr<DecodedEntry> DecodeEntry(const EntryHeader& header, absl::string_view body,
                                         absl::string_view dropped);

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_ENTRY_CODEC_H_
