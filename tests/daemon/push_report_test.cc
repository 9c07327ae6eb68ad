#include "daemon/push_report.h"

#include <string>
#include <vector>

#include "daemon/pkt_line.h"
#include "gtest/gtest.h"

namespace repotxn::daemon {
namespace {

// Goal: a client can always read the report, and a hostile name or message can forge nothing in it.
// Fails when a refusal goes out without reason (clients crash) or with a control character.
class PushReportTest : public ::testing::Test {
 protected:
  static std::vector<Pkt> Decode(absl::string_view bytes) {
    PktDecoder decoder;
    decoder.Feed(bytes);
    std::vector<Pkt> pkts;
    while (true) {
      const absl::StatusOr<std::optional<Pkt>> pkt = decoder.Next();
      if (!pkt.ok() || !pkt->has_value()) break;
      pkts.push_back(**pkt);
    }
    EXPECT_TRUE(decoder.empty());
    return pkts;
  }
  // Lines of the report inside band 1, "" for a flush.
  static std::vector<std::string> ReportLines(const std::string& answer) {
    std::string inner;
    for (const Pkt& pkt : Decode(answer)) {
      if (pkt.kind == PktKind::kData && pkt.payload[0] == '\1') inner += pkt.payload.substr(1);
    }
    std::vector<std::string> lines;
    for (const Pkt& pkt : Decode(inner)) lines.push_back(pkt.payload);
    return lines;
  }
  static PushCapabilities Bands() {
    PushCapabilities capabilities;
    capabilities.report_status_v2 = true;
    capabilities.side_band_64k = true;
    return capabilities;
  }
};

TEST_F(PushReportTest, PutsTheReportInsideTheDataBandAndDetailsInTheOther) {
  PushReport report;
  report.refs = {{"refs/heads/a", "", ""}, {"refs/heads/b", "non-fast-forward", "b moved"}};

  const std::string answer = EncodePushReport(report, Bands());

  EXPECT_EQ(ReportLines(answer),
            (std::vector<std::string>{"unpack ok\n", "ok refs/heads/a\n",
                                      "ng refs/heads/b non-fast-forward\n", ""}));
  const std::vector<Pkt> pkts = Decode(answer);
  EXPECT_EQ(pkts.front().payload, "\2b moved\n");
  EXPECT_EQ(pkts.back().kind, PktKind::kFlush);
}

TEST_F(PushReportTest, ReportsBareWithoutSideBands) {
  PushReport report;
  report.unpack_error = "disk full";
  report.refs = {{"refs/heads/a", "unpacker error", "not for this client"}};
  PushCapabilities capabilities;
  capabilities.report_status = true;

  const std::vector<Pkt> pkts = Decode(EncodePushReport(report, capabilities));

  ASSERT_EQ(pkts.size(), 3u);
  EXPECT_EQ(pkts[0].payload, "unpack disk full\n");
  EXPECT_EQ(pkts[1].payload, "ng refs/heads/a unpacker error\n");
}

TEST_F(PushReportTest, SaysNothingToAClientThatWantsNoReport) {
  PushReport report;
  report.refs = {{"refs/heads/a", "", ""}};
  EXPECT_EQ(EncodePushReport(report, PushCapabilities()), "");
}

TEST_F(PushReportTest, StripsControlCharactersAndNeverLeavesAReasonEmpty) {
  PushReport report;
  report.refs = {{"refs/heads/a", "\x1b[31mred\nng refs/heads/z x", ""},
                 {"refs/heads/b", "  ", ""},
                 {"refs/heads/c\nok refs/heads/d", "bad", ""}};

  EXPECT_EQ(ReportLines(EncodePushReport(report, Bands())),
            (std::vector<std::string>{"unpack ok\n", "ng refs/heads/a ?[31mred?ng refs/heads/z x\n",
                                      "ng refs/heads/b unknown reason\n", "ng refs/heads/c bad\n",
                                      ""}));
}

TEST_F(PushReportTest, CleanLineKeepsUtf8AndCutsBetweenCharacters) {
  EXPECT_EQ(CleanLine("gr\xc3\xbcn"), "gr\xc3\xbcn");
  EXPECT_EQ(CleanLine("gr\xc3\xbcn", 3), "gr");
  EXPECT_EQ(CleanLine("a\xff\xc3"), "a??");
  EXPECT_EQ(CleanLine("\xc2\x9b" "31m"), "??31m");  // a terminal obeys U+009B
  EXPECT_EQ(CleanText("a\tb\nc\r"), "a\tb\nc?");
}

TEST_F(PushReportTest, RefusesOnlyWhatIsNotRefusedYet) {
  PushReport report;
  report.refs = {{"a", "", ""}, {"b", "first", ""}};
  EXPECT_TRUE(report.HasRefusal());
  report.RefuseAll("atomic transaction failed");
  EXPECT_EQ(report.refs[0].refusal, "atomic transaction failed");
  EXPECT_EQ(report.refs[1].refusal, "first");
}

}  // namespace
}  // namespace repotxn::daemon
