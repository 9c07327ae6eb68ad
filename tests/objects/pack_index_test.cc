#include "objects/pack_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/error_detail.h"
#include "tests/objects/pack_builder.h"
#include "tests/objects/text_file.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::BigEndian;
using repotxn::testing::BuildIndex;
using repotxn::testing::IsOk;
using repotxn::testing::SeededRandom;
using repotxn::testing::StatusIs;
using repotxn::testing::TextFile;

// Goal: the index reader answers as the rows it was built from, in memory or not, and refuses
// damage by type. Method: indexes built by a second implementation, whole and damaged. A wrong
// offset, a false hit or a crash fails.
class PackIndexTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  using Rows = std::vector<std::pair<ObjectId, int64_t>>;

  Rows RandomRows(uint64_t seed, int n) {
    SeededRandom random(seed);
    Rows rows;
    for (int i = 0; i < n; ++i) {
      std::string bytes(ObjectIdBytes(GetParam()), '\0');
      random.Fill(&bytes[0], bytes.size());
      rows.emplace_back(*ObjectId::FromBytes(bytes), 12 + i);
    }
    return rows;
  }
  std::string Built(const Rows& rows) {
    return BuildIndex(rows, GetParam(), std::string(ObjectIdBytes(GetParam()), 'p'));
  }
  absl::StatusOr<std::unique_ptr<PackIndex>> Parse(
      std::string bytes, int64_t resident_bytes_max = PackIndex::kResidentBytesMax) {
    return PackIndex::FromFile(std::make_unique<TextFile>(std::move(bytes)), "pack-x.idx",
                               GetParam(), resident_bytes_max);
  }
};

TEST_P(PackIndexTest, FindsEveryRowInMemoryAndOnDisk) {
  const Rows rows = RandomRows(1, 40'000);
  for (const int64_t resident_bytes_max : {int64_t{0}, PackIndex::kResidentBytesMax}) {
    ASSERT_OK_AND_ASSIGN(const auto index, Parse(Built(rows), resident_bytes_max));

    EXPECT_EQ(index->count(), 40'000);
    for (const auto& [oid, offset] : rows) {
      ASSERT_OK_AND_ASSIGN(const auto found, index->Find(oid));
      ASSERT_EQ(found, offset) << oid.ToHex();
    }
    for (const auto& [oid, offset] : RandomRows(2, 5'000)) {
      ASSERT_OK_AND_ASSIGN(const auto found, index->Find(oid));
      ASSERT_FALSE(found.has_value());
    }
  }
}

TEST_P(PackIndexTest, WalksIdsInOrderAndClipsAtTheEnd) {
  Rows rows = RandomRows(3, 1'000);
  ASSERT_OK_AND_ASSIGN(const auto index, Parse(Built(rows)));
  std::sort(rows.begin(), rows.end());

  std::vector<ObjectId> walked;
  for (int64_t at = 0; at < index->count(); at += 300) {
    ASSERT_OK_AND_ASSIGN(const auto ids, index->Ids(at, 300));
    walked.insert(walked.end(), ids.begin(), ids.end());
  }

  ASSERT_EQ(walked.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(walked[i], rows[i].first);
    ASSERT_OK_AND_ASSIGN(const int64_t offset, index->OffsetAt(static_cast<int64_t>(i)));
    EXPECT_EQ(offset, rows[i].second);
  }
  EXPECT_THAT(index->IdAt(1'000), StatusIs(absl::StatusCode::kOutOfRange));
  ASSERT_OK_AND_ASSIGN(const std::string checksum, index->PackChecksum());
  EXPECT_EQ(checksum, std::string(ObjectIdBytes(GetParam()), 'p'));
}

TEST_P(PackIndexTest, FollowsOffsetsBeyondTwoGibibytes) {
  Rows rows = RandomRows(4, 10);
  rows[3].second = int64_t{5} << 32;
  rows[7].second = int64_t{1} << 31;
  ASSERT_OK_AND_ASSIGN(const auto index, Parse(Built(rows)));

  for (const auto& [oid, offset] : rows) {
    ASSERT_OK_AND_ASSIGN(const auto found, index->Find(oid));
    EXPECT_EQ(found, offset);
  }
}

TEST_P(PackIndexTest, HoldsNothingWhenEmpty) {
  ASSERT_OK_AND_ASSIGN(const auto index, Parse(Built({})));

  EXPECT_EQ(index->count(), 0);
  ASSERT_OK_AND_ASSIGN(const auto found, index->Find(RandomRows(5, 1)[0].first));
  EXPECT_FALSE(found.has_value());
}

TEST_P(PackIndexTest, DoesNotFindIdsOfTheOtherFormat) {
  const ObjectFormat other =
      GetParam() == ObjectFormat::kSha1 ? ObjectFormat::kSha256 : ObjectFormat::kSha1;
  ASSERT_OK_AND_ASSIGN(const auto index, Parse(Built(RandomRows(6, 100))));

  ASSERT_OK_AND_ASSIGN(const auto found, index->Find(EmptyTree(other)));
  EXPECT_FALSE(found.has_value());
}

TEST_P(PackIndexTest, RefusesOtherVersionsAsUnimplemented) {
  std::string version3 = Built(RandomRows(7, 5));
  version3.replace(4, 4, BigEndian(3, 4));
  std::string version1 = Built(RandomRows(7, 5)).substr(8);

  EXPECT_THAT(Parse(version3), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(Parse(version1), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_P(PackIndexTest, RefusesFallingFanoutAndWrongSizes) {
  const std::string sound = Built(RandomRows(8, 20));
  std::string falling = sound;
  falling.replace(8 + 4 * 10, 4, BigEndian(1'000, 4));

  const auto refused = Parse(falling);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(ErrorDetail(refused.status(), "offset"), "52");
  EXPECT_EQ(ErrorDetail(refused.status(), "file"), "pack-x.idx");
  for (size_t size = 0; size < sound.size(); ++size) {
    ASSERT_THAT(Parse(sound.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
  EXPECT_THAT(Parse(sound + "x"), StatusIs(absl::StatusCode::kDataLoss));
  // Room for twenty large offsets, where nineteen is the most that can be.
  EXPECT_THAT(Parse(sound + std::string(8 * 19, 'x')), IsOk());
  EXPECT_THAT(Parse(sound + std::string(8 * 20, 'x')), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_P(PackIndexTest, RefusesRowsOfTheLargeTableThatAreNotThere) {
  const Rows rows = RandomRows(9, 1);
  std::string bytes = Built(rows);
  bytes.replace(1032 + ObjectIdBytes(GetParam()) + 4, 4, BigEndian(0x80000000, 4));
  ASSERT_OK_AND_ASSIGN(const auto index, Parse(bytes));

  EXPECT_THAT(index->Find(rows[0].first), StatusIs(absl::StatusCode::kDataLoss));
}

INSTANTIATE_TEST_SUITE_P(Formats, PackIndexTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& suite) {
                           return suite.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256";
                         });

}  // namespace
}  // namespace repotxn::objects
