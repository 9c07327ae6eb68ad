#include "wal/entry_codec.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/status_macros.h"
#include "wal/byte_order.h"
#include "wal/manifest_codec.h"

namespace repotxn::wal {
namespace {

// Offsets of the header's fields; the table stands in the header file.
constexpr size_t kLevelAt = 0;
constexpr size_t kFlagsAt = 4;
constexpr size_t kLsnAt = 8;
constexpr size_t kEpochAt = 16;
constexpr size_t kTransactionAt = 24;
constexpr size_t kBodyBytesAt = 40;
constexpr size_t kDroppedBytesAt = 44;
constexpr size_t kBodyXxh3At = 48;
constexpr size_t kDroppedXxh3At = 56;
constexpr size_t kBodySha256At = 64;
constexpr size_t kPayloadSizeAt = 96;
constexpr size_t kPayloadIndexAt = 104;
constexpr size_t kReservedAt = 108;
constexpr size_t kChainAt = 112;
static_assert(kTransactionAt + TransactionId::kBytes == kBodyBytesAt);
static_assert(kBodySha256At + storage::kSha256Bytes == kPayloadSizeAt);
static_assert(kChainAt + sizeof(ChainChecksum) == kEntryHeaderBytes);
static_assert(kManifestInlineBytesMax < UINT32_MAX);

constexpr uint32_t kBodyIsPayload = 1;

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

}  // namespace

absl::StatusOr<ChainChecksum> ChainChecksum::FromBytes(absl::string_view bytes) {
  ChainChecksum chain;
  if (bytes.size() != chain.bytes.size()) {
    return absl::InvalidArgumentError("chain checksum has not 16 bytes");
  }
  std::memcpy(chain.bytes.data(), bytes.data(), bytes.size());
  return chain;
}

std::string ChainChecksum::ToHex() const { return absl::BytesToHexString(view()); }

absl::StatusOr<PreparedEntry> PrepareEntry(const Manifest& manifest) {
  return PrepareEncodedEntry(manifest.transaction_id, EncodeManifest(manifest));
}

absl::StatusOr<PreparedEntry> PrepareEncodedEntry(const TransactionId& id,
                                                  std::string encoded_manifest) {
  if (static_cast<int64_t>(encoded_manifest.size()) > kManifestInlineBytesMax) {
    return absl::ResourceExhaustedError("manifest is too large to travel inline");
  }
  PreparedEntry prepared;
  prepared.transaction_id = id;
  prepared.body = std::move(encoded_manifest);
  prepared.body_xxh3 = storage::Xxh3(ViewOf(prepared.body));
  const std::string digest = storage::Sha256(ViewOf(prepared.body));
  std::memcpy(prepared.body_sha256.data(), digest.data(), prepared.body_sha256.size());
  return prepared;
}

absl::StatusOr<PreparedEntry> PreparePayloadEntry(const TransactionId& id,
                                                  const PayloadFile& body_payload) {
  if (body_payload.sha256.size() != storage::kSha256Bytes || body_payload.size <= 0) {
    return absl::InvalidArgumentError("payload file of a manifest without digest or content");
  }
  PreparedEntry prepared;
  prepared.transaction_id = id;
  prepared.body_xxh3 = storage::Xxh3("");
  prepared.body_payload = body_payload;
  std::memcpy(prepared.body_sha256.data(), body_payload.sha256.data(), prepared.body_sha256.size());
  return prepared;
}

SealedEntry SealEntry(PreparedEntry prepared, Lsn lsn, uint64_t epoch,
                      const ChainChecksum& previous, std::string dropped) {
  REPOTXN_DCHECK(lsn > Lsn::Zero());
  REPOTXN_DCHECK(!prepared.body_is_payload() || prepared.body.empty());
  SealedEntry sealed;
  sealed.lsn = lsn;
  sealed.epoch = epoch;
  sealed.transaction_id = prepared.transaction_id;
  sealed.body = std::move(prepared.body);
  sealed.dropped = std::move(dropped);
  char* const header = sealed.header.data();
  StoreLittle(kEntryFormatLevel, 4, header + kLevelAt);
  StoreLittle(prepared.body_is_payload() ? kBodyIsPayload : 0, 4, header + kFlagsAt);
  StoreLittle(lsn.value(), 8, header + kLsnAt);
  StoreLittle(epoch, 8, header + kEpochAt);
  std::memcpy(header + kTransactionAt, sealed.transaction_id.bytes().data(), TransactionId::kBytes);
  StoreLittle(sealed.body.size(), 4, header + kBodyBytesAt);
  StoreLittle(sealed.dropped.size(), 4, header + kDroppedBytesAt);
  StoreLittle(prepared.body_xxh3, 8, header + kBodyXxh3At);
  StoreLittle(storage::Xxh3(ViewOf(sealed.dropped)), 8, header + kDroppedXxh3At);
  std::memcpy(header + kBodySha256At, prepared.body_sha256.data(), prepared.body_sha256.size());
  if (prepared.body_is_payload()) {
    StoreLittle(static_cast<uint64_t>(prepared.body_payload.size), 8, header + kPayloadSizeAt);
    StoreLittle(prepared.body_payload.index, 4, header + kPayloadIndexAt);
  }
  sealed.chain = ContinueChain(previous, absl::string_view(header, kEntryHeaderBytes));
  std::memcpy(header + kChainAt, sealed.chain.bytes.data(), sealed.chain.bytes.size());
  return sealed;
}

std::string EntryBytes(const SealedEntry& entry) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(entry.size()));
  bytes.append(entry.header.data(), entry.header.size());
  bytes.append(entry.body);
  bytes.append(entry.dropped);
  return bytes;
}

absl::StatusOr<EntryHeader> DecodeEntryHeader(absl::string_view bytes) {
  if (bytes.size() != static_cast<size_t>(kEntryHeaderBytes)) {
    return absl::DataLossError("entry header is cut short");
  }
  const uint32_t level = Load32(bytes, kLevelAt);
  if (level > kEntryFormatLevel) return absl::UnimplementedError("entry has a newer format level");
  const uint32_t flags = Load32(bytes, kFlagsAt);
  if (level != kEntryFormatLevel || (flags & ~kBodyIsPayload) != 0 ||
      Load32(bytes, kReservedAt) != 0) {
    return absl::DataLossError("entry header is malformed");
  }
  EntryHeader header;
  header.lsn = Lsn(Load64(bytes, kLsnAt));
  header.epoch = Load64(bytes, kEpochAt);
  REPOTXN_ASSIGN_OR_RETURN(header.transaction_id, TransactionId::FromBytes(bytes.substr(
                                                      kTransactionAt, TransactionId::kBytes)));
  header.body_bytes = Load32(bytes, kBodyBytesAt);
  header.dropped_bytes = Load32(bytes, kDroppedBytesAt);
  header.body_xxh3 = Load64(bytes, kBodyXxh3At);
  header.dropped_xxh3 = Load64(bytes, kDroppedXxh3At);
  std::memcpy(header.body_sha256.data(), bytes.data() + kBodySha256At, header.body_sha256.size());
  header.body_is_payload = (flags & kBodyIsPayload) != 0;
  header.payload_size = static_cast<int64_t>(Load64(bytes, kPayloadSizeAt));
  header.payload_index = Load32(bytes, kPayloadIndexAt);
  REPOTXN_ASSIGN_OR_RETURN(header.chain, ChainChecksum::FromBytes(bytes.substr(kChainAt)));
  const bool body_place_is_right = header.body_is_payload
                                       ? header.body_bytes == 0 && header.payload_size > 0
                                       : header.body_bytes <= kManifestInlineBytesMax &&
                                             header.payload_size == 0 && header.payload_index == 0;
  if (header.lsn == Lsn::Zero() || !body_place_is_right ||
      header.dropped_bytes > kDroppedBytesMax) {
    return absl::DataLossError("entry header is malformed");
  }
  return header;
}

ChainChecksum ContinueChain(const ChainChecksum& previous, absl::string_view header_bytes) {
  REPOTXN_DCHECK(header_bytes.size() >= kChainAt);
  std::array<char, sizeof(ChainChecksum) + kChainAt> input;
  std::memcpy(input.data(), previous.bytes.data(), previous.bytes.size());
  std::memcpy(input.data() + previous.bytes.size(), header_bytes.data(), kChainAt);
  ChainChecksum chain;
  chain.bytes = storage::Xxh3Wide(absl::string_view(input.data(), input.size())).bytes;
  return chain;
}

bool PartsMatch(const EntryHeader& header, absl::string_view parts) {
  if (parts.size() != static_cast<size_t>(header.body_bytes) + header.dropped_bytes) return false;
  return storage::Xxh3(parts.substr(0, header.body_bytes)) == header.body_xxh3 &&
         storage::Xxh3(parts.substr(header.body_bytes)) == header.dropped_xxh3;
}

absl::StatusOr<DecodedEntry> DecodeEntry(const EntryHeader& header, absl::string_view body,
                                         absl::string_view dropped) {
  if (header.body_is_payload) {
    const std::string digest = storage::Sha256(body);
    if (static_cast<int64_t>(body.size()) != header.payload_size ||
        std::memcmp(digest.data(), header.body_sha256.data(), header.body_sha256.size()) != 0) {
      return absl::DataLossError("payload file of a manifest has another digest");
    }
  }
  DecodedEntry entry;
  entry.lsn = header.lsn;
  entry.epoch = header.epoch;
  entry.transaction_id = header.transaction_id;
  entry.chain = header.chain;
  if (header.body_is_payload) entry.body_payload_bytes = header.payload_size;
  REPOTXN_ASSIGN_OR_RETURN(entry.manifest, DecodeManifest(body));
  REPOTXN_ASSIGN_OR_RETURN(entry.dropped, DecodeDropped(dropped));
  if (entry.manifest.transaction_id != header.transaction_id) {
    return absl::DataLossError("manifest belongs to another transaction");
  }
  return entry;
}

}  // namespace repotxn::wal
