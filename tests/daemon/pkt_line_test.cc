#include "daemon/pkt_line.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

// Goal: frames survive any cutting, and a malformed length is never guessed at. Fails when a frame
// is lost, merged or invented.
class PktLineTest : public ::testing::Test {
 protected:
  // All frames of `bytes`, fed `step` bytes at a time; a malformed length ends the list.
  static std::vector<Pkt> Decode(const std::string& bytes, size_t step, bool* is_malformed) {
    PktDecoder decoder;
    std::vector<Pkt> pkts;
    *is_malformed = false;
    for (size_t at = 0; at < bytes.size(); at += step) {
      decoder.Feed(absl::string_view(bytes).substr(at, step));
      while (true) {
        absl::StatusOr<std::optional<Pkt>> pkt = decoder.Next();
        if (!pkt.ok()) {
          *is_malformed = true;
          return pkts;
        }
        if (!pkt->has_value()) break;
        pkts.push_back(**pkt);
      }
    }
    return pkts;
  }
};

TEST_F(PktLineTest, GivesTheSameFramesHoweverTheBytesAreCut) {
  std::string bytes;
  AppendPkt("hello\n", &bytes);
  AppendPkt("", &bytes);
  AppendDelimiter(&bytes);
  AppendPkt(std::string("a\0b", 3), &bytes);
  AppendFlush(&bytes);
  AppendResponseEnd(&bytes);
  const std::vector<Pkt> expected = {{PktKind::kData, "hello\n"},
                                     {PktKind::kData, ""},
                                     {PktKind::kDelimiter, ""},
                                     {PktKind::kData, std::string("a\0b", 3)},
                                     {PktKind::kFlush, ""},
                                     {PktKind::kResponseEnd, ""}};

  for (size_t step = 1; step <= bytes.size(); ++step) {
    bool is_malformed = false;
    EXPECT_EQ(Decode(bytes, step, &is_malformed), expected) << "step " << step;
    EXPECT_FALSE(is_malformed);
  }
}

TEST_F(PktLineTest, WritesTheLengthWithItsOwnFourDigits) {
  std::string bytes;
  AppendPkt("hello\n", &bytes);
  EXPECT_EQ(bytes, "000ahello\n");
}

TEST_F(PktLineTest, TakesTheLongestFrameAndRefusesALongerOne) {
  std::string longest;
  AppendPkt(std::string(kPktPayloadBytesMax, 'x'), &longest);
  ASSERT_EQ(longest.substr(0, 4), "fff0");
  bool is_malformed = false;
  EXPECT_EQ(Decode(longest, 4096, &is_malformed).size(), 1u);
  EXPECT_FALSE(is_malformed);

  Decode("fff1" + std::string(kPktPayloadBytesMax + 1, 'x'), 4096, &is_malformed);
  EXPECT_TRUE(is_malformed);
}

TEST_F(PktLineTest, RefusesMalformedLengthsForGood) {
  for (const char* bytes : {"0003", "00g0", "-001", " 004", "zzzz", "0x05"}) {
    PktDecoder decoder;
    decoder.Feed(bytes);
    EXPECT_THAT(decoder.Next(), StatusIs(absl::StatusCode::kInvalidArgument)) << bytes;
    decoder.Feed("0000");
    EXPECT_THAT(decoder.Next(), StatusIs(absl::StatusCode::kInvalidArgument)) << bytes;
  }
}

TEST_F(PktLineTest, LeavesWhatFollowsTheLastFrame) {
  PktDecoder decoder;
  decoder.Feed("0000PACK");
  ASSERT_THAT(decoder.Next(), IsOk());
  EXPECT_EQ(decoder.TakeRest(), "PACK");
  EXPECT_TRUE(decoder.empty());
}

TEST_F(PktLineTest, SplitsABandOverAsManyFramesAsItTakes) {
  const std::string data(kBandPayloadBytesMax + 7, 'd');
  std::string bytes;
  AppendBand(Band::kProgress, data, &bytes);
  AppendBand(Band::kData, "", &bytes);

  bool is_malformed = false;
  const std::vector<Pkt> pkts = Decode(bytes, bytes.size(), &is_malformed);
  ASSERT_EQ(pkts.size(), 2u);
  EXPECT_EQ(pkts[0].payload[0], '\2');
  EXPECT_EQ(pkts[0].payload.substr(1) + pkts[1].payload.substr(1), data);
}

TEST_F(PktLineTest, KeepAliveIsAnEmptyFrameOfTheDataBand) {
  std::string bytes;
  AppendKeepAlive(&bytes);
  EXPECT_EQ(bytes, std::string("0005\1"));
}

}  // namespace
}  // namespace repotxn::daemon
