#include "wal/entry_codec.h"

#include <string>

#include "storage/checksum.h"
#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

absl::string_view HeaderOf(const SealedEntry& entry) {
  return absl::string_view(entry.header.data(), entry.header.size());
}

// Goal: an entry says the same on every node, and neither its header nor its parts can change
// unnoticed.
TEST(EntryCodecTest, KeepsEntryWithDroppedList) {
  const std::vector<DroppedRef> dropped = {{IdOf<RepositoryId>(3), "refs/heads/a"}};
  const SealedEntry sealed =
      SealEntry(Prepared(5), Lsn(5), 7, ChainChecksum{}, EncodeDropped(dropped));

  ASSERT_OK_AND_ASSIGN(const EntryHeader header, DecodeEntryHeader(HeaderOf(sealed)));
  ASSERT_OK_AND_ASSIGN(const DecodedEntry entry,
                       DecodeEntry(header, View(sealed.body), View(sealed.dropped)));

  EXPECT_TRUE(PartsMatch(header, View(sealed.body + sealed.dropped)));
  EXPECT_EQ(entry.lsn, Lsn(5));
  EXPECT_EQ(entry.epoch, 7u);
  EXPECT_EQ(entry.transaction_id, IdOf<TransactionId>(5));
  EXPECT_EQ(entry.manifest, ManifestOf(5));
  EXPECT_EQ(entry.dropped, dropped);
  EXPECT_EQ(entry.chain, sealed.chain);
  EXPECT_EQ(static_cast<int64_t>(EntryBytes(sealed).size()), sealed.size());
}

// LOG-16
TEST(EntryCodecTest, SealsTheSameBytesEachTime) {
  const ChainChecksum previous = SealRun({}, 1).back().chain;

  EXPECT_EQ(EntryBytes(SealEntry(Prepared(2), Lsn(2), 1, previous, "d")),
            EntryBytes(SealEntry(Prepared(2), Lsn(2), 1, previous, "d")));
}

TEST(EntryCodecTest, ChainDependsOnPredecessorAndOnEveryHeaderByteBeforeIt) {
  const SealedEntry sealed = SealRun({}, 1).back();
  const ChainChecksum other_previous = SealRun({}, 3).back().chain;

  EXPECT_NE(ContinueChain(other_previous, HeaderOf(sealed)), sealed.chain);
  for (size_t i = 0; i < 112; ++i) {
    std::string header(sealed.header.data(), sealed.header.size());
    header[i] = static_cast<char>(header[i] ^ 1);
    EXPECT_NE(ContinueChain(ChainChecksum{}, View(header)), sealed.chain) << "offset " << i;
  }
}

TEST(EntryCodecTest, NoticesDamageInEitherPart) {
  const SealedEntry sealed = SealEntry(Prepared(1), Lsn(1), 1, ChainChecksum{}, "dropped");
  ASSERT_OK_AND_ASSIGN(const EntryHeader header, DecodeEntryHeader(HeaderOf(sealed)));
  const std::string parts = sealed.body + sealed.dropped;

  for (size_t i = 0; i < parts.size(); ++i) {
    std::string damaged = parts;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(PartsMatch(header, View(damaged))) << "offset " << i;
  }
  EXPECT_FALSE(PartsMatch(header, View(parts + "x")));
}

TEST(EntryCodecTest, RefusesNewerLevelAsUnimplementedAndReservedBitsAsDamage) {
  const SealedEntry sealed = SealRun({}, 1).back();
  std::string newer(sealed.header.data(), sealed.header.size());
  std::string flags = newer;
  std::string reserved = newer;
  newer[0] = 2;
  flags[4] = 2;
  reserved[108] = 1;

  EXPECT_THAT(DecodeEntryHeader(View(newer)), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(DecodeEntryHeader(View(flags)), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeEntryHeader(View(reserved)), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeEntryHeader(HeaderOf(sealed).substr(1)), StatusIs(absl::StatusCode::kDataLoss));
}

// Hard case B5: a manifest too large for a record travels as a payload file.
TEST(EntryCodecTest, SendsLargeManifestAsPayloadFile) {
  const Manifest large = ManifestOf(1, static_cast<size_t>(kManifestInlineBytesMax));
  EXPECT_THAT(PrepareEntry(large), StatusIs(absl::StatusCode::kResourceExhausted));
  const std::string body = EncodeManifest(large);
  PayloadFile file{2, static_cast<int64_t>(body.size()), storage::Sha256(View(body))};

  ASSERT_OK_AND_ASSIGN(PreparedEntry prepared, PreparePayloadEntry(large.transaction_id, file));
  const SealedEntry sealed = SealEntry(std::move(prepared), Lsn(1), 1, ChainChecksum{}, "");
  ASSERT_OK_AND_ASSIGN(const EntryHeader header, DecodeEntryHeader(HeaderOf(sealed)));

  EXPECT_EQ(sealed.size(), kEntryHeaderBytes);
  EXPECT_TRUE(header.body_is_payload);
  EXPECT_EQ(header.payload_index, 2u);
  ASSERT_OK_AND_ASSIGN(const DecodedEntry entry, DecodeEntry(header, View(body), ""));
  EXPECT_EQ(entry.manifest, large);
  std::string other = body;
  other.back() = static_cast<char>(other.back() ^ 1);
  EXPECT_THAT(DecodeEntry(header, View(other), ""), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(EntryCodecTest, RefusesManifestOfAnotherTransaction) {
  const SealedEntry sealed = SealRun({}, 1).back();
  ASSERT_OK_AND_ASSIGN(const EntryHeader header, DecodeEntryHeader(HeaderOf(sealed)));

  EXPECT_THAT(DecodeEntry(header, View(EncodeManifest(ManifestOf(9))), ""),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace repotxn::wal
