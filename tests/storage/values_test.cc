// The small parts: ids, object ids, checksums, random bytes, errno translation.
#include <cerrno>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checksum.h"
#include "storage/errno_status.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "storage/random.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::SeededRandom;
using ::repotxn::testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }
std::string Hex(const std::string& bytes) {
  return Hex(absl::string_view(bytes.data(), bytes.size()));
}

TEST(Id128, HexAndBytesGoRound) {
  ASSERT_OK_AND_ASSIGN(const auto id, RepositoryId::FromHex("000102030405060708090A0b0c0d0e0f"));
  EXPECT_EQ(id.ToHex(), "000102030405060708090a0b0c0d0e0f");
  EXPECT_THAT(RepositoryId::FromBytes(id.bytes()), IsOkAndHolds(id));
  EXPECT_TRUE(RepositoryId().IsZero());
  EXPECT_FALSE(id.IsZero());
}

TEST(Id128, MalformedTextIsRefused) {
  for (const char* hex :
       {"", "00", "000102030405060708090a0b0c0d0e0g", "000102030405060708090a0b0c0d0e0",
        " 00102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f0"}) {
    EXPECT_THAT(StoreId::FromHex(hex), StatusIs(kInvalid)) << hex;
  }
  EXPECT_THAT(StoreId::FromBytes("short"), StatusIs(kInvalid));
}

TEST(ObjectId, BothFormatsGoRound) {
  const std::string sha1 = "0123456789abcdef0123456789abcdef01234567";
  const std::string sha256 = sha1 + "89abcdef0123456789abcdef";
  ASSERT_OK_AND_ASSIGN(const ObjectId short_id, ObjectId::FromHex(sha1));
  ASSERT_OK_AND_ASSIGN(const ObjectId long_id, ObjectId::FromHex(sha256));
  EXPECT_EQ(short_id.ToHex(), sha1);
  EXPECT_EQ(long_id.ToHex(), sha256);
  EXPECT_EQ(short_id.format(), ObjectFormat::kSha1);
  EXPECT_EQ(long_id.format(), ObjectFormat::kSha256);
  EXPECT_THAT(ObjectId::FromBytes(short_id.bytes()), IsOkAndHolds(short_id));
  EXPECT_THAT(ObjectId::FromBytes(long_id.bytes()), IsOkAndHolds(long_id));
}

TEST(ObjectId, WrongLengthsAndDigitsAreRefused) {
  EXPECT_THAT(ObjectId::FromHex(std::string(39, '0')), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromHex(std::string(41, '0')), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromHex(std::string(40, 'x')), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromHex(std::string(64, '0'), ObjectFormat::kSha1), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromHex(std::string(40, '0'), ObjectFormat::kSha256), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromBytes(std::string(21, '0')), StatusIs(kInvalid));
  EXPECT_THAT(ObjectId::FromBytes(""), StatusIs(kInvalid));
}

TEST(ObjectId, NoIdAndTheTwoZeroIdsAreThreeValues) {
  const ObjectId none;
  const ObjectId zero1 = ObjectId::Zero(ObjectFormat::kSha1);
  const ObjectId zero256 = ObjectId::Zero(ObjectFormat::kSha256);
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.IsZero());
  EXPECT_TRUE(zero1.IsZero());
  EXPECT_TRUE(zero256.IsZero());
  EXPECT_NE(none, zero1);
  EXPECT_NE(zero1, zero256);
  EXPECT_EQ(zero1.ToHex(), std::string(40, '0'));
}

TEST(ObjectFormat, NamesAreGitsOwn) {
  EXPECT_THAT(ParseObjectFormat("sha1"), IsOkAndHolds(ObjectFormat::kSha1));
  EXPECT_THAT(ParseObjectFormat("sha256"), IsOkAndHolds(ObjectFormat::kSha256));
  EXPECT_THAT(ParseObjectFormat("SHA1"), StatusIs(kInvalid));
  EXPECT_THAT(ParseObjectFormat(""), StatusIs(kInvalid));
}

// Vectors of FIPS 180 and of the XXH3 definition.
TEST(Checksum, Sha256EqualsItsPublishedVectors) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Checksum, Sha256InPiecesEqualsTheWholeAndBeginsAgain) {
  Sha256Stream stream;
  for (int round = 0; round < 2; ++round) {
    std::string whole;
    for (int i = 0; i < 300; ++i) {
      const std::string piece(static_cast<size_t>(i), static_cast<char>(i));
      stream.Update(piece);
      whole += piece;
    }
    EXPECT_EQ(Hex(stream.Finish()), Hex(Sha256(whole)));
  }
  EXPECT_EQ(Hex(stream.Finish()), Hex(Sha256("")));
}

TEST(Checksum, Xxh3EqualsItsPublishedVectors) {
  EXPECT_EQ(Xxh3(""), 0x2d06800538d394c2u);
  EXPECT_EQ(Xxh3("abc"), 0x78af5f94892f3950u);
  EXPECT_EQ(Hex(Xxh3Wide("").view()), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Hex(Xxh3Wide("abc").view()), "06b05ab6733a618578af5f94892f3950");
}

TEST(Checksum, ASeedChangesTheSum) {
  EXPECT_EQ(Xxh3Seeded("abc", 0), Xxh3("abc"));
  EXPECT_NE(Xxh3Seeded("abc", 1), Xxh3Seeded("abc", 2));
}

TEST(Random, IdsAreFreshAndSeedsRepeat) {
  std::set<TransactionId> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewId<TransactionId>(*SystemRandom()));
  EXPECT_EQ(ids.size(), 1000u);
  SeededRandom a(1);
  SeededRandom b(1);
  SeededRandom c(2);
  const uint64_t first = NextUint64(a);
  EXPECT_EQ(first, NextUint64(b));
  EXPECT_NE(first, NextUint64(c));
  EXPECT_NE(first, NextUint64(a));
  for (int i = 0; i < 1000; ++i) EXPECT_LT(a.Below(7), 7u);
}

TEST(ErrnoStatus, EachErrnoHasTheCodeOfTheTable) {
  struct Case {
    int error;
    absl::StatusCode code;
  };
  const Case cases[] = {{ENOENT, absl::StatusCode::kNotFound},
                        {EEXIST, absl::StatusCode::kAlreadyExists},
                        {ENOSPC, absl::StatusCode::kResourceExhausted},
                        {EDQUOT, absl::StatusCode::kResourceExhausted},
                        {EMFILE, absl::StatusCode::kResourceExhausted},
                        {ENFILE, absl::StatusCode::kResourceExhausted},
                        {EMLINK, absl::StatusCode::kResourceExhausted},
                        {ENOTEMPTY, absl::StatusCode::kFailedPrecondition},
                        {ENOTDIR, absl::StatusCode::kFailedPrecondition},
                        {EISDIR, absl::StatusCode::kFailedPrecondition},
                        {EXDEV, absl::StatusCode::kFailedPrecondition},
                        {ELOOP, absl::StatusCode::kInvalidArgument},
                        {ENAMETOOLONG, absl::StatusCode::kInvalidArgument},
                        {EACCES, absl::StatusCode::kPermissionDenied},
                        {EPERM, absl::StatusCode::kPermissionDenied},
                        {EROFS, absl::StatusCode::kPermissionDenied},
                        {EIO, absl::StatusCode::kUnavailable},
                        {EBUSY, absl::StatusCode::kUnavailable},
                        {EWOULDBLOCK, absl::StatusCode::kUnavailable}};
  for (const Case& c : cases) {
    const absl::Status status = ErrnoStatus(c.error, "call", StorePath::Literal("a"));
    EXPECT_THAT(status, StatusIs(c.code)) << c.error;
    EXPECT_EQ(ErrnoOf(status), c.error);
    EXPECT_EQ(ErrnoCode(c.error), c.code);
  }
  EXPECT_EQ(ErrnoOf(absl::OkStatus()), 0);
  EXPECT_EQ(ErrnoOf(absl::UnavailableError("other")), 0);
  EXPECT_EQ(ErrnoStatus(EIO, "pipe").message(), "pipe: EIO");
}

}  // namespace
}  // namespace repotxn::storage
