#include "daemon/push_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

const char kZero[] = "0000000000000000000000000000000000000000";
const char kOne[] = "1111111111111111111111111111111111111111";
const char kTwo[] = "2222222222222222222222222222222222222222";

// Goal: the request is understood as stock clients write it, and what breaks its order is refused.
// Method: requests are written frame by frame. Fails when a command is lost or a limit is passed.
class PushRequestTest : public ::testing::Test {
 protected:
  static std::string Line(const std::string& text) {
    std::string bytes;
    AppendPkt(text, &bytes);
    return bytes;
  }
  static std::string Command(const char* before, const char* after, const std::string& name,
                             const std::string& capabilities = "") {
    std::string text = absl::StrCat(before, " ", after, " ", name);
    if (!capabilities.empty()) {
      text.push_back('\0');
      text += " " + capabilities;
    }
    return Line(text);
  }
  static absl::Status Parse(const std::string& bytes, const PushRequestLimits& limits = {}) {
    PushRequestParser parser(limits);
    const absl::Status status = parser.Feed(bytes);
    return status.ok() ? parser.Finish() : status;
  }
};

TEST_F(PushRequestTest, UnderstandsCommandsCapabilitiesAndOptions) {
  const std::string bytes =
      Line(absl::StrCat("shallow ", kTwo)) +
      Command(kZero, kOne, "refs/heads/main",
              "report-status-v2 side-band-64k quiet atomic push-options object-format=sha1 "
              "agent=git/2.39.5 unknown-thing") +
      Command(kOne, kZero, "refs/heads/old") + "0000" + Line("ci.skip") + Line("a=b c") +
      "0000PACKDATA";

  for (size_t step = 1; step <= bytes.size(); ++step) {
    PushRequestParser parser;
    size_t at = 0;
    for (; at < bytes.size() && !parser.is_complete(); at += step) {
      ASSERT_THAT(parser.Feed(absl::string_view(bytes).substr(at, step)), IsOk());
    }
    ASSERT_TRUE(parser.is_complete());
    const PushRequest& request = parser.request();
    ASSERT_EQ(request.commands.size(), 2u);
    EXPECT_EQ(request.commands[0].name, "refs/heads/main");
    EXPECT_TRUE(request.commands[0].is_create());
    EXPECT_TRUE(request.commands[1].is_delete());
    EXPECT_EQ(request.shallow.size(), 1u);
    EXPECT_EQ(request.options, (std::vector<std::string>{"ci.skip", "a=b c"}));
    EXPECT_TRUE(request.capabilities.atomic && request.capabilities.quiet &&
                request.capabilities.side_band_64k && request.capabilities.report_status_v2);
    EXPECT_FALSE(request.capabilities.report_status);
    EXPECT_EQ(request.capabilities.agent, "git/2.39.5");
    EXPECT_TRUE(request.has_pack());
    EXPECT_EQ(parser.TakePackPrefix() + bytes.substr(std::min(at, bytes.size())), "PACKDATA");
  }
}

TEST_F(PushRequestTest, TakesASingleFlushAsTheProbe) {
  PushRequestParser parser;
  ASSERT_THAT(parser.Feed("0000"), IsOk());
  EXPECT_TRUE(parser.is_complete());
  EXPECT_TRUE(parser.request().is_probe());
}

TEST_F(PushRequestTest, NeedsNoPackWhenEveryCommandDeletes) {
  PushRequestParser parser;
  ASSERT_THAT(parser.Feed(Command(kOne, kZero, "refs/heads/a", "report-status") + "0000"), IsOk());
  EXPECT_FALSE(parser.request().has_pack());
}

TEST_F(PushRequestTest, TakesIdsOfTheFormatThatTheClientNames) {
  const std::string zero(64, '0');
  const std::string id(64, 'a');
  PushRequestParser parser;
  ASSERT_THAT(parser.Feed(Command(zero.c_str(), id.c_str(), "refs/heads/a",
                                  "report-status object-format=sha256") +
                          "0000"),
              IsOk());
  EXPECT_EQ(parser.request().capabilities.object_format, ObjectFormat::kSha256);

  EXPECT_THAT(Parse(Command(zero.c_str(), id.c_str(), "refs/heads/a", "report-status") + "0000"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PushRequestTest, RefusesWhatBreaksTheOrderOrTheSyntax) {
  const std::string good = Command(kZero, kOne, "refs/heads/a", "report-status");
  const std::string cases[] = {
      good,                                                // no flush
      "",                                                  // nothing at all
      "0001",                                              // a delimiter
      "0002",                                              // a response end
      Line("shallow xyz") + good + "0000",                 // malformed shallow
      Line(absl::StrCat("shallow ", kOne)) + "0000",       // shallow and no command
      good + Line(absl::StrCat("shallow ", kOne)) + "0000",  // shallow behind a command
      good + Command(kZero, kTwo, "refs/heads/b", "quiet") + "0000",  // capabilities twice
      good + Command(kZero, kTwo, "refs/heads/a") + "0000",           // a ref twice
      Line(absl::StrCat(kZero, " ", kOne)) + "0000",                  // no name
      Line(absl::StrCat(kZero, " ", kOne, " ")) + "0000",             // empty name
      Line(absl::StrCat(kZero, "  ", kOne, " x")) + "0000",           // two blanks
      Line(absl::StrCat(std::string(40, 'g'), " ", kOne, " x")) + "0000",
      Command(kZero, kOne, "x", "object-format=md5") + "0000",
      Command(kZero, kOne, "x", "push-options") + "0000" + Line("never ended"),
      "zzzz",
  };
  for (const std::string& bytes : cases) {
    EXPECT_THAT(Parse(bytes), StatusIs(absl::StatusCode::kInvalidArgument)) << bytes;
  }
}

TEST_F(PushRequestTest, StaysRefusedAfterAnError) {
  PushRequestParser parser;
  ASSERT_THAT(parser.Feed("zzzz"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(parser.Feed("0000"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(parser.is_complete());
}

TEST_F(PushRequestTest, HoldsEveryLimit) {
  std::string bytes = Command(kZero, kOne, "refs/heads/0", "report-status push-options");
  for (int i = 1; i < 10; ++i) bytes += Command(kZero, kOne, absl::StrCat("refs/heads/", i));
  bytes += "0000" + Line("one") + Line("two") + "0000";
  ASSERT_THAT(Parse(bytes), IsOk());

  PushRequestLimits commands;
  commands.commands_max = 9;
  EXPECT_THAT(Parse(bytes, commands), StatusIs(absl::StatusCode::kResourceExhausted));
  PushRequestLimits size;
  size.bytes_max = 500;
  EXPECT_THAT(Parse(bytes, size), StatusIs(absl::StatusCode::kResourceExhausted));
  PushRequestLimits options;
  options.options_max = 1;
  EXPECT_THAT(Parse(bytes, options), StatusIs(absl::StatusCode::kResourceExhausted));
  PushRequestLimits option_size;
  option_size.option_bytes_max = 2;
  EXPECT_THAT(Parse(bytes, option_size), StatusIs(absl::StatusCode::kResourceExhausted));
  PushRequestLimits shallow;
  shallow.shallow_max = 0;
  EXPECT_THAT(Parse(Line(absl::StrCat("shallow ", kTwo)) + bytes, shallow),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Parse(Command(kZero, kOne, std::string(2000, 'x'), "quiet") + "0000"),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace repotxn::daemon
