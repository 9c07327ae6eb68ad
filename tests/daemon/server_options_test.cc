#include "daemon/server_options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using ::testing::HasSubstr;
using repotxn::testing::StatusIs;

// Goal: a command line means one thing or is refused with a sentence that says why.
class CommandLineTest : public ::testing::Test {
 protected:
  static absl::StatusOr<CommandLine> Parse(std::vector<std::string> words) {
    return ParseCommandLine(words);
  }
};

TEST_F(CommandLineTest, TakesEveryOption) {
  const auto line = Parse({"serve", "--store", "/s", "--listen=[::1]:0", "--create-on-push",
                           "--token-file", "/t", "--max-body-bytes", "1000", "--request-timeout",
                           "90", "--idle-timeout", "500ms", "--hook-timeout=2m", "--pin-time", "1h",
                           "--stop-grace", "1s", "--max-connections", "7", "--concurrent-pushes",
                           "3", "--concurrent-fetches", "4"});
  ASSERT_TRUE(line.ok()) << line.status();
  const ServerOptions& options = line->options;
  EXPECT_EQ(options.store, "/s");
  EXPECT_EQ(options.host, "::1");
  EXPECT_EQ(options.port, 0);
  EXPECT_TRUE(options.create_on_push);
  EXPECT_EQ(options.token_file, "/t");
  EXPECT_EQ(options.body_bytes_max, 1000);
  EXPECT_EQ(options.request_timeout, absl::Seconds(90));
  EXPECT_EQ(options.idle_timeout, absl::Milliseconds(500));
  EXPECT_EQ(options.hook_timeout, absl::Minutes(2));
  EXPECT_EQ(options.pin_duration, absl::Hours(1));
  EXPECT_EQ(options.stop_grace, absl::Seconds(1));
  EXPECT_EQ(options.connections_max, 7);
  EXPECT_EQ(options.pushes_max, 3);
  EXPECT_EQ(options.fetches_max, 4);
}

TEST_F(CommandLineTest, AnswersHelpAndVersionWhateverElseIsThere) {
  EXPECT_EQ(Parse({"serve", "--bogus", "--help"})->action, CommandLine::Action::kHelp);
  EXPECT_EQ(Parse({"--version"})->action, CommandLine::Action::kVersion);
  EXPECT_THAT(HelpText(), HasSubstr("--create-on-push"));
}

TEST_F(CommandLineTest, SaysWhatIsWrong) {
  const std::vector<std::string> base = {"serve", "--store", "/s", "--listen", "127.0.0.1:0"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = base;
    words.insert(words.end(), more.begin(), more.end());
    return std::string(Parse(words).status().message());
  };
  EXPECT_THAT(std::string(Parse({}).status().message()), HasSubstr("serve"));
  EXPECT_THAT(std::string(Parse({"serve"}).status().message()), HasSubstr("--store"));
  EXPECT_THAT(std::string(Parse({"serve", "--store", "x"}).status().message()),
              HasSubstr("--listen"));
  EXPECT_THAT(with({"--bogus"}), HasSubstr("unknown option --bogus"));
  EXPECT_THAT(with({"extra"}), HasSubstr("unknown option extra"));
  EXPECT_THAT(with({"--token-file"}), HasSubstr("--token-file"));
  EXPECT_THAT(with({"--max-body-bytes", "-1"}), HasSubstr("--max-body-bytes takes"));
  EXPECT_THAT(with({"--request-timeout", "soon"}), HasSubstr("--request-timeout takes"));
  EXPECT_THAT(with({"--request-timeout", "0"}), HasSubstr("--request-timeout takes"));
  EXPECT_THAT(with({"--max-connections", "0"}), HasSubstr("--max-connections takes"));
}

TEST_F(CommandLineTest, RefusesAddressesThatAreNone) {
  std::string host;
  int port = 0;
  for (const char* text : {"", "127.0.0.1", ":80", "a:b", "::1:80", "[::1]", "[a]:1", "h:65536",
                           "h:-1", "h:+1", "h:"}) {
    EXPECT_THAT(ParseListenAddress(text, &host, &port),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_EQ(HostForUrl("::1"), "[::1]");
  EXPECT_EQ(HostForUrl("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace repotxn::daemon
