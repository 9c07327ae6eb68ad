// Goal: a configuration file means one thing or is refused with the number of the line. Fails when a
// line is skipped, guessed, or told under another number.
#include "daemon/config_file.h"

#include <string>
#include <utility>
#include <vector>

#include "daemon/server_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using repotxn::testing::IsOk;

std::string MessageFor(absl::string_view text) {
  const auto settings = ParseConfig(text);
  return settings.ok() ? "taken" : std::string(settings.status().message());
}

TEST(ConfigFileTest, TakesSettingsInTheirOrderWithTheirLines) {
  const auto settings = ParseConfig("# head\n\nstore = /srv/git repos\r\n\tlisten=h:1 # x\n");
  ASSERT_THAT(settings, IsOk());
  EXPECT_THAT(*settings, ElementsAre(Setting{3, "store", "/srv/git repos"},
                                     Setting{4, "listen", "h:1 # x"}));
}

TEST(ConfigFileTest, NamesTheLineThatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"a = 1\nb\n", "line 2: not of the form"},      {"= 1\n", "line 1: a key"},
      {"A = 1\n", "line 1: a key"},                   {"\n\na =\n", "line 3: the value is missing"},
      {"a = 1\na = 1\n", "line 2: the key stands"},   {"a = x\x01\n", "line 1: a control"},
      {"--store = x\n", "line 1: a key"}};
  for (const auto& [text, message] : cases) EXPECT_THAT(MessageFor(text), HasSubstr(message));
  EXPECT_THAT(MessageFor(std::string(kConfigBytesMax + 1, '\n')), HasSubstr("too large"));
}

// The command line with a file of the given text.
absl::StatusOr<CommandLine> ParseWith(std::vector<std::string> words, const std::string& text) {
  words.insert(words.begin(), {"serve", "--config", "the-file"});
  return ParseCommandLine(words, [&](const std::string& path) -> absl::StatusOr<std::string> {
    EXPECT_EQ(path, "the-file");
    return text;
  });
}

TEST(ConfigFileTest, HoldsEveryOptionAndTheCommandLineWins) {
  const auto line = ParseWith({"--max-connections", "9"},
                              "store = /s\nlisten = [::1]:7\ncreate-on-push = true\n"
                              "token-file = /t\nmax-body-bytes = 1000\nrequest-timeout = 90\n"
                              "idle-timeout = 500ms\nhook-timeout = 2m\npin-time = 1h\n"
                              "stop-grace = 1s\nmax-connections = 7\nconcurrent-pushes = 3\n"
                              "concurrent-fetches = 4\n");
  ASSERT_THAT(line, IsOk());
  const ServerOptions& options = line->options;
  EXPECT_EQ(options.store, "/s");
  EXPECT_EQ(options.host, "::1");
  EXPECT_EQ(options.port, 7);
  EXPECT_TRUE(options.create_on_push);
  EXPECT_EQ(options.token_file, "/t");
  EXPECT_EQ(options.body_bytes_max, 1000);
  EXPECT_EQ(options.request_timeout, absl::Seconds(90));
  EXPECT_EQ(options.idle_timeout, absl::Milliseconds(500));
  EXPECT_EQ(options.hook_timeout, absl::Minutes(2));
  EXPECT_EQ(options.pin_duration, absl::Hours(1));
  EXPECT_EQ(options.stop_grace, absl::Seconds(1));
  EXPECT_EQ(options.connections_max, 9);
  EXPECT_EQ(options.pushes_max, 3);
  EXPECT_EQ(options.fetches_max, 4);
}

TEST(ConfigFileTest, RefusesKeysThatAreNoOptionsAndValuesThatAreNone) {
  const auto message = [](const std::string& text) {
    return std::string(ParseWith({}, text).status().message());
  };
  EXPECT_THAT(message("store = /s\nbogus = 1\n"), HasSubstr("line 2: unknown key bogus"));
  EXPECT_THAT(message("config = other\n"), HasSubstr("line 1: unknown key config"));
  EXPECT_THAT(message("store = /s\n\nmax-connections = 0\n"), HasSubstr("line 3: --max-conn"));
  EXPECT_THAT(message("create-on-push = yes\n"), HasSubstr("line 1: --create-on-push takes true"));
  EXPECT_THAT(message("store = /s\n"), HasSubstr("--listen"));
  EXPECT_THAT(ParseCommandLine({"serve", "--config", ""}).status(),
              testing::StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace repotxn::daemon
