#include "objects/git_child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "objects/error_detail.h"
#include "tests/objects/git_sandbox.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::GitSandbox;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

GitCommand Command(std::string repository, std::vector<std::string> arguments) {
  GitCommand command;
  command.repository = std::move(repository);
  command.arguments = std::move(arguments);
  return command;
}

// Goal: the whole environment and command line are known and nothing else gets in. Method: a
// snapshot; a change of it must be a change of this test.
TEST(ClosedGitTest, EnvironmentIsExactlyThis) {
  ASSERT_OK_AND_ASSIGN(const auto environment,
                       ClosedEnvironment(Command("/srv/x.git", {"upload-pack"})));

  EXPECT_THAT(
      environment,
      ElementsAre("GIT_ALLOW_PROTOCOL=none", "GIT_ATTR_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
                  "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=/srv/x.git", "GIT_NO_LAZY_FETCH=1",
                  "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "HOME=/nonexistent", "LC_ALL=C",
                  "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=UTC", "XDG_CONFIG_HOME=/nonexistent"));
}

TEST(ClosedGitTest, CommandLineIsExactlyThis) {
  GitCommand command = Command("/srv/x.git", {"rev-list", "--all"});
  command.is_check = true;
  command.hooks_path = "/srv/hooks";
  command.settings = {"uploadpack.allowFilter=true"};
  command.environment = {{"GIT_PROTOCOL", "version=2"}, {"TZ", "CET"}};
  ASSERT_OK_AND_ASSIGN(const auto arguments, ClosedArguments(command));
  ASSERT_OK_AND_ASSIGN(const auto environment, ClosedEnvironment(command));

  EXPECT_THAT(arguments,
              ElementsAre("git", "-c", "core.alternateRefsPrefixes=refs/none", "-c",
                          "core.hooksPath=/srv/hooks", "-c", "core.logAllRefUpdates=false", "-c",
                          "core.fsync=none", "-c", "core.fsmonitor=false", "-c",
                          "core.untrackedCache=false", "-c", "core.attributesFile=/dev/null", "-c",
                          "core.excludesFile=/dev/null", "-c", "core.sshCommand=false", "-c",
                          "core.askPass=false", "-c", "core.editor=false", "-c", "core.pager=cat",
                          "-c", "credential.helper=", "-c", "gpg.program=false", "-c", "gc.auto=0",
                          "-c", "gc.autoDetach=false", "-c", "receive.autogc=false", "-c",
                          "maintenance.auto=false", "-c", "safe.directory=/srv/x.git", "-c",
                          "core.commitGraph=false", "-c", "core.multiPackIndex=false", "-c", "uploadpack.allowFilter=true", "rev-list",
                          "--all"));
  EXPECT_THAT(environment, ::testing::Contains("GIT_NO_REPLACE_OBJECTS=1"));
  EXPECT_THAT(environment, ::testing::Contains("GIT_PROTOCOL=version=2"));
  EXPECT_THAT(environment, ::testing::Contains("TZ=CET"));
  EXPECT_THAT(environment, Not(::testing::Contains("TZ=UTC")));
}

TEST(ClosedGitTest, RefusesCommandsThatWouldOpenIt) {
  const auto refused = [](const GitCommand& command) {
    EXPECT_THAT(ClosedArguments(command), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(ClosedEnvironment(command), StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refused(Command("relative", {"gc"}));
  refused(Command("/a\nb", {"gc"}));
  refused(Command("/a", {}));
  refused(Command("/a", {"--exec-path=/tmp", "gc"}));
  GitCommand command = Command("/a", {"gc"});
  command.environment = {{"GIT_CONFIG_COUNT", "1"}};
  refused(command);
  command.environment = {{"A=B", "1"}};
  refused(command);
  command.environment = {};
  command.settings = {"include.path=/x"};
  refused(command);
  command.settings = {"novalue"};
  refused(command);
  command.settings = {};
  command.hooks_path = "hooks";
  refused(command);
}

// Whether `pid` still runs. A killed process that nobody has reaped does not; one that was just
// killed may take a moment.
bool StaysAlive(const std::string& pid) {
  const absl::Time end = absl::Now() + absl::Seconds(10);
  do {
    std::ifstream file("/proc/" + std::to_string(std::stoi(pid)) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t state = text.rfind(") ");
    if (state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X')
      return false;
    std::this_thread::yield();
  } while (absl::Now() < end);
  return true;
}

// Goal: a child sees only that environment, and settings of its repository and of the machine do
// not reach it. Method: real Git in a repository full of traps; a trap that runs leaves a file.
class GitChildTest : public ::testing::Test {
 protected:
  void SetUp() override { git_.Run("git init -q --bare -b main r.git"); }
  GitCommand InRepository(std::vector<std::string> arguments) {
    return Command(git_.path() + "/r.git", std::move(arguments));
  }
  GitResult Run(const GitCommand& command, std::string input = "") {
    const auto result = RunGit(command, TextSource(std::move(input)), {});
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : GitResult();
  }

  GitSandbox git_;
};

TEST_F(GitChildTest, SeesNothingOfTheCallersEnvironment) {
  ASSERT_EQ(setenv("GIT_OBJECT_DIRECTORY", "/elsewhere", 1), 0);
  ASSERT_EQ(setenv("LEAK", "1", 1), 0);
  GitCommand command = InRepository({"trap"});
  // An alias is the way to look from inside.
  command.settings = {"alias.trap=!env; git rev-parse --git-path objects"};

  const GitResult result = Run(command);
  unsetenv("GIT_OBJECT_DIRECTORY");
  unsetenv("LEAK");

  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, Not(HasSubstr("LEAK")));
  EXPECT_THAT(result.output, Not(HasSubstr("GIT_OBJECT_DIRECTORY")));
  EXPECT_THAT(result.output, HasSubstr("HOME=/nonexistent\n"));
  EXPECT_THAT(result.output, HasSubstr("/r.git/objects\n"));
}

// C053
TEST_F(GitChildTest, DangerousSettingsOfTheRepositoryHaveNoEffect) {
  git_.Run(
      "cd r.git\n"
      "mkdir -p hooks; echo \"touch $PWD/../hook-ran\" > trap.sh; chmod +x trap.sh\n"
      "for hook in update pre-receive post-update reference-transaction; do\n"
      "  cp trap.sh hooks/$hook; done\n"
      "git config core.hooksPath $PWD/hooks\n"
      "git config core.fsmonitor $PWD/trap.sh\n"
      "git config core.sshCommand $PWD/trap.sh\n"
      "git config core.logAllRefUpdates always\n"
      "git config core.pager $PWD/trap.sh\n"
      "git config uploadpack.packObjectsHook $PWD/trap.sh\n"
      "git config gc.auto 1\n");

  const GitResult made = Run(InRepository({"hash-object", "-w", "--stdin", "-t", "blob"}), "x");
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const GitResult updated =
      Run(InRepository({"update-ref", "refs/tags/x", made.output.substr(0, 40)}));
  const GitResult listed = Run(InRepository({"log", "--all"}));
  const GitResult fetched = Run(InRepository({"fetch", "ssh://nowhere/x"}));

  EXPECT_EQ(updated.exit_code, 0) << updated.errors;
  EXPECT_EQ(listed.exit_code, 0) << listed.errors;
  EXPECT_EQ(fetched.exit_code, 128);
  EXPECT_THAT(fetched.errors, HasSubstr("not allowed"));
  EXPECT_EQ(git_.Line("test -e hook-ran && echo ran || echo none"), "none");
  EXPECT_EQ(git_.Line("test -e r.git/logs && echo logs || echo none"), "none");

  // The trap does spring without the closed environment.
  git_.Run("cd r.git && git update-ref refs/tags/y " + made.output.substr(0, 40));
  EXPECT_EQ(git_.Line("test -e hook-ran && echo ran || echo none"), "ran");
}

TEST_F(GitChildTest, FeedsMoreThanAPipeHoldsWhileOutputFlows) {
  std::string input;
  for (int i = 0; i < 5'000; ++i) input += "HEAD:missing-path-" + std::to_string(i) + "\n";

  const GitResult result = Run(InRepository({"cat-file", "--batch-check"}), input);

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("HEAD:missing-path-4999 missing\n"));
}

TEST_F(GitChildTest, AChildThatStopsReadingIsAResult) {
  const GitResult result = Run(InRepository({"index-pack", "--stdin"}), std::string(3 << 20, 'x'));

  EXPECT_EQ(result.exit_code, 128);
  EXPECT_THAT(result.errors, HasSubstr("pack signature mismatch"));
}

// C162
TEST_F(GitChildTest, AnErrorOfTheSourceEndsTheChildAndIsTheResult) {
  GitCommand command = InRepository({"trap"});
  command.settings = {"alias.trap=!echo $$ > " + git_.path() + "/pid; cat"};
  const auto source = [&](absl::Span<char> out) -> absl::StatusOr<size_t> {
    // Until the child has said who it is.
    if (git_.Read("pid").empty()) {
      out[0] = 'x';
      return size_t{1};
    }
    return absl::CancelledError("client went away");
  };

  EXPECT_THAT(RunGit(command, source, {}), StatusIs(absl::StatusCode::kCancelled));

  EXPECT_FALSE(StaysAlive(git_.Read("pid")));
}

TEST_F(GitChildTest, ADeadlineEndsTheChild) {
  GitCommand command = InRepository({"trap"});
  command.settings = {"alias.trap=!echo $$ > " + git_.path() + "/pid; cat /dev/zero > /dev/null"};
  RunLimits limits;
  limits.timeout = absl::Milliseconds(300);

  EXPECT_THAT(RunGit(command, nullptr, limits), StatusIs(absl::StatusCode::kDeadlineExceeded));

  EXPECT_FALSE(StaysAlive(git_.Read("pid")));
}

TEST_F(GitChildTest, MoreOutputThanAllowedIsAnError) {
  GitCommand command = InRepository({"trap"});
  command.settings = {"alias.trap=!cat /dev/zero"};
  RunLimits limits;
  limits.output_bytes_max = 1'000;

  EXPECT_THAT(RunGit(command, nullptr, limits), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Goal: configurations that reach outside the repository, or ask for what is not supported, are
// refused, however they are written. Method: a table; each refused text does have its effect in
// stock Git.
TEST(RepositoryConfigTest, AcceptsOrdinaryFiles) {
  EXPECT_THAT(CheckRepositoryConfig(""), IsOk());
  EXPECT_THAT(CheckRepositoryConfig(
                  "\xef\xbb\xbf[core]\r\n\tbare = true ; comment\r\n\trepositoryformatversion = 0\n"
                  "# [include] path = x\n"
                  "[remote \"include]\\\"x\"]\n\turl = \"a # b\" \\\n  [include]\n\tfetch\n"
                  "[branch.main] merge = refs/heads/main\n[user]name=\"[include]\"\n"
                  "[receive]\n\tfsckObjects"),
              IsOk());
}

TEST(RepositoryConfigTest, RefusesIncludesInEveryForm) {
  for (const char* text :
       {"[include]\npath = x\n", "[core]bare=true\n[INCLUDE] path=x\n",
        "[includeIf \"gitdir:/\"]\n\tpath = x", "[include.x]\npath = y\n",
        "[a]\nb = c\\\nd\n[include]path=z", "[a]b=\"q\"\n\t[include]\n", "[include \"s\"]\n"}) {
    EXPECT_THAT(CheckRepositoryConfig(text), StatusIs(absl::StatusCode::kFailedPrecondition))
        << text;
  }
  EXPECT_EQ(ErrorDetail(CheckRepositoryConfig("[a]\nb=c\n[include]\n"), "line"), "3");
}

// C031, C032
TEST(RepositoryConfigTest, RefusesPromisorsAndSettingsThatCannotBeSwitchedOff) {
  for (const char* text :
       {"[extensions]\npartialClone = origin\n", "[remote \"o\"]\n\tpromisor = true\n",
        "[remote \"o\"]\n\tpartialclonefilter = blob:none\n",
        "[core]\n\talternateRefsCommand = touch x\n"}) {
    EXPECT_THAT(CheckRepositoryConfig(text), StatusIs(absl::StatusCode::kFailedPrecondition))
        << text;
  }
}

TEST(RepositoryConfigTest, RefusesWhatIsNoConfiguration) {
  for (const char* text :
       {"bare = true\n", "[core\nbare=true\n", "[]\n", "[core]\n1x = y\n", "[core]\nx = \"open\n",
        "[core]\nx y\n", "[core \"x]\n", "[core]\nx = \\q\n", "[core]\n= y\n"}) {
    EXPECT_THAT(CheckRepositoryConfig(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(SanitisedErrorsTest, CutsLinesControlCharactersAndPrivatePaths) {
  EXPECT_EQ(SanitisedErrors("fatal: /srv/st/x \x1b[31mred\n\nb\nc\n", 2, "/srv/st/"),
            "fatal: x ?[31mred\nb\n");
  EXPECT_EQ(SanitisedErrors(std::string(500, 'x'), 1, "").size(), 201u);
  EXPECT_EQ(SanitisedErrors("", 3, "/a"), "");
}

TEST(RepositoryConfigTest, ReadsSettingsAsGitDoes) {
  ASSERT_OK_AND_ASSIGN(
      const auto settings,
      ParseRepositoryConfig("[core]\n\tBare = true ; said once\n  flag\n"
                            "[remote \"Origin\"] url = \" a # b \"c\\\n d\n[x.y]\nk=\\t1\\\\ \n"));

  EXPECT_THAT(settings,
              ::testing::ElementsAre(ConfigSetting{"core.bare", "true"},
                                     ConfigSetting{"core.flag", "true"},
                                     ConfigSetting{"remote.url", " a # b c d"},
                                     ConfigSetting{"x.k", "\t1\\"}));
}

}  // namespace
}  // namespace repotxn::objects
