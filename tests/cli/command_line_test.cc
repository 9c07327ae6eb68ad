// Goal: every command line is either what its writer meant or a usage error that names the
// argument; never a guess.
#include "cli/command_line.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::cli {
namespace {

using repotxn::testing::StatusIs;
using ::testing::HasSubstr;

std::string MessageFor(const std::vector<std::string>& arguments) {
  const auto command = ParseCommandLine(arguments);
  EXPECT_THAT(command, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(command.status().message());
}

TEST(CommandLineTest, TakesEachCommand) {
  const std::vector<std::pair<std::vector<std::string>, Verb>> cases = {
      {{"init"}, Verb::kInit},
      {{"log", "verify"}, Verb::kLogVerify},
      {{"log", "list", "--from", "7", "--limit", "2"}, Verb::kLogList},
      {{"log", "show", "7"}, Verb::kLogShow},
      {{"recover"}, Verb::kRecover},
      {{"verify"}, Verb::kVerify},
      {{"verify", "a"}, Verb::kVerify},
  };
  for (const auto& [words, verb] : cases) {
    std::vector<std::string> arguments = {"--store", "some/dir"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    ASSERT_OK_AND_ASSIGN(const CommandLine command, ParseCommandLine(arguments));
    EXPECT_EQ(command.verb, verb);
    EXPECT_EQ(command.store, "some/dir");
    EXPECT_FALSE(command.json);
  }
}

TEST(CommandLineTest, TakesOptionsAnywhereAndInBothForms) {
  ASSERT_OK_AND_ASSIGN(const CommandLine command,
                       ParseCommandLine({"repo", "--json", "create", "a/b.git",
                                         "--object-format=sha256", "--store=d"}));

  EXPECT_EQ(command.verb, Verb::kAdmin);
  EXPECT_TRUE(command.json);
  EXPECT_EQ(command.store, "d");
  EXPECT_EQ(command.arguments.Option("object-format"), "sha256");
  EXPECT_EQ(command.arguments.Operand(0), "a/b");
}

TEST(CommandLineTest, HelpAndVersionNeedNoStoreAndWinOverTheRest) {
  ASSERT_OK_AND_ASSIGN(const CommandLine help, ParseCommandLine({"verify", "--help"}));
  EXPECT_EQ(help.verb, Verb::kHelp);
  ASSERT_OK_AND_ASSIGN(const CommandLine version, ParseCommandLine({"--version"}));
  EXPECT_EQ(version.verb, Verb::kVersion);
}

TEST(CommandLineTest, NamesWhatIsWrong) {
  EXPECT_THAT(MessageFor({}), HasSubstr("no command"));
  EXPECT_THAT(MessageFor({"--store", "d"}), HasSubstr("no command"));
  EXPECT_THAT(MessageFor({"verify"}), HasSubstr("--store is missing"));
  EXPECT_THAT(MessageFor({"--store"}), HasSubstr("--store needs a value"));
  EXPECT_THAT(MessageFor({"--store=", "verify"}), HasSubstr("--store needs a value"));
  EXPECT_THAT(MessageFor({"--store", "a", "--store", "b", "verify"}),
              HasSubstr("--store is given twice"));
  EXPECT_THAT(MessageFor({"--store", "d", "--frobnicate", "verify"}), HasSubstr("--frobnicate"));
  EXPECT_THAT(MessageFor({"--store", "d", "--json=yes", "verify"}),
              HasSubstr("--json takes no value"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "destroy", "a"}), HasSubstr("repo destroy a"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "create"}), HasSubstr("needs a repository path"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "create", "a", "b"}),
              HasSubstr("unexpected argument b"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "create", "a", "--object-format", "md5"}),
              HasSubstr("sha1 or sha256"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "list", "--object-format", "sha1"}),
              HasSubstr("makes no sense for repo list"));
  EXPECT_THAT(MessageFor({"--store", "d", "verify", "--prefix", "x"}),
              HasSubstr("--prefix makes no sense for verify"));
  EXPECT_THAT(MessageFor({"--server", "http://h:1", "verify"}), HasSubstr("--store is missing"));
  EXPECT_THAT(MessageFor({"--server", "http://h:1", "--store", "d", "repo", "list"}),
              HasSubstr("exclude one another"));
  EXPECT_THAT(MessageFor({"--store", "d", "--token-file", "t", "repo", "list"}),
              HasSubstr("without --server"));
  EXPECT_THAT(MessageFor({"--store", "d", "refs", "set", "a", "main", "absent"}),
              HasSubstr("full name"));
  EXPECT_THAT(MessageFor({"--store", "d", "refs", "set", "a", "refs/heads/x"}),
              HasSubstr("refs set needs VALUE"));
  EXPECT_THAT(MessageFor({"--store", "d", "outcome"}), HasSubstr("takes a transaction id"));
  EXPECT_THAT(MessageFor({"--store", "d", "key", "get", "k", "--partition=1", "--repository=a"}),
              HasSubstr("exclude one another"));
  EXPECT_THAT(MessageFor({"--store", "d", "repo", "list", "--limit", "0"}), HasSubstr("--limit"));
  EXPECT_THAT(MessageFor({"--store", "d", "log", "show", "0"}), HasSubstr("no LSN: 0"));
  EXPECT_THAT(MessageFor({"--store", "d", "log", "show"}), HasSubstr("needs an LSN"));
}

// A verb that parses is one that a call can be made of, with every operand it names.
TEST(CommandLineTest, TakesEveryVerbOfTheAdministrationOnStoreAndServer) {
  for (const AdminVerb& verb : AdminVerbs()) {
    std::vector<std::string> arguments = verb.words;
    for (const std::string& operand : verb.operands) {
      arguments.push_back(operand == "NAME" ? "refs/heads/x" : "operand");
    }
    for (const char* where : {"--store=d", "--server=http://localhost:1"}) {
      std::vector<std::string> all = arguments;
      all.emplace_back(where);
      ASSERT_OK_AND_ASSIGN(const CommandLine command, ParseCommandLine(all));
      EXPECT_EQ(command.verb, Verb::kAdmin);
      EXPECT_EQ(command.admin, &verb);
    }
  }
}

// C043, C041: what looks like a path out of the store or like an option is refused before anything
// is opened.
TEST(CommandLineTest, RefusesRepositoryPathsThatLeaveTheRule) {
  for (const std::string path :
       {"../x", "a/../b", "/", "a//b", "a/.b", "a.lock", "@id/x", "-x/..", "a\nb", ""}) {
    const auto command = ParseCommandLine({"--store", "d", "repo", "create", "--", path});
    EXPECT_THAT(command, StatusIs(absl::StatusCode::kInvalidArgument)) << path;
  }
}

TEST(CommandLineTest, UsageNamesEveryCommandAndExitCode) {
  const std::string usage = UsageText();
  for (const char* word :
       {"init", "repo create", "repo list", "repo show", "housekeeping plan", "housekeeping run", "log verify", "recover", "verify",
        "--json", "0 fine", "1 something", "2 usage", "3 the store", "4 refused", "5 not known"}) {
    EXPECT_THAT(usage, HasSubstr(word));
  }
}

TEST(CommandLineTest, TakesDirectoriesAndPathsOfAdoptions) {
  ASSERT_OK_AND_ASSIGN(CommandLine one,
                       ParseCommandLine({"--store", "d", "adopt", "--dry-run", "in/x.git", "g/x"}));
  EXPECT_EQ(one.verb, Verb::kAdopt);
  EXPECT_EQ(one.directory, "in/x.git");
  EXPECT_EQ(one.repository.text(), "g/x");
  EXPECT_TRUE(one.dry_run);
  EXPECT_FALSE(one.tree);
  ASSERT_OK_AND_ASSIGN(CommandLine tree, ParseCommandLine({"--store", "d", "adopt", "--tree", "in"}));
  EXPECT_TRUE(tree.tree);
  EXPECT_EQ(tree.directory, "in");
  EXPECT_FALSE(tree.has_repository);
  ASSERT_OK_AND_ASSIGN(CommandLine back, ParseCommandLine({"--store", "d", "unadopt", "out/x.git", "g/x"}));
  EXPECT_EQ(back.verb, Verb::kUnadopt);
  EXPECT_EQ(back.directory, "out/x.git");

  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"adopt", "in/x.git"}, {"adopt"}, {"unadopt", "out"}, {"recover", "--dry-run"}, {"repo", "list", "--dry-run"},
           {"reconcile", "--tree"}, {"unadopt", "--dry-run", "out", "g/x"}}) {
    std::vector<std::string> all = {"--store", "d"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_THAT(ParseCommandLine(all), StatusIs(absl::StatusCode::kInvalidArgument)) << words[0];
  }
}

}  // namespace
}  // namespace repotxn::cli
