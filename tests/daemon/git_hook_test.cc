#include "daemon/git_hook.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

// Goal: a hook sees exactly what it is meant to see, its answer counts, and nothing of it outlives
// the push. Method: shell scripts as hooks. Fails when a variable or a descriptor leaks in.
class GitHookTest : public ::testing::Test {
 protected:
  GitHookTest() {
    std::filesystem::create_directories(directory_.path() + "/hooks");
    std::filesystem::create_directories(directory_.path() + "/objects/info");
    place_.directory = directory_.path();
    place_.transaction_id = "00ff";
  }
  void Hook(const std::string& name, const std::string& script) {
    const std::string file = absl::StrCat(directory_.path(), "/hooks/", name);
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  absl::StatusOr<bool> Run(const std::string& name, const std::vector<std::string>& arguments = {},
                           const std::string& input = "",
                           absl::Duration timeout = absl::Seconds(60)) {
    output_.clear();
    return RunHook(place_, name, arguments, input, timeout, [this](absl::string_view text) {
      output_.append(text.data(), text.size());
    });
  }

  testing::TempDirectory directory_;
  HookPlace place_;
  std::string output_;
};

TEST_F(GitHookTest, GetsArgumentsInputAndDirectoryAndIsHeardOnBothStreams) {
  Hook("update", "echo \"args $*\"; cat; pwd >&2; exit 0");
  const absl::StatusOr<bool> accepted = Run("update", {"refs/heads/x", "old", "new"}, "line\n");
  ASSERT_THAT(accepted, IsOk());
  EXPECT_TRUE(*accepted);
  EXPECT_EQ(output_, absl::StrCat("args refs/heads/x old new\nline\n", directory_.path(), "\n"));
}

TEST_F(GitHookTest, RefusesWithAnyOtherExitCodeOrASignal) {
  Hook("pre-receive", "exit 3");
  EXPECT_FALSE(*Run("pre-receive"));
  Hook("pre-receive", "kill -KILL $$");
  EXPECT_FALSE(*Run("pre-receive"));
}

// Regression material B16, B17: a closed environment, to the letter. [C089]
TEST_F(GitHookTest, SeesExactlyThisEnvironmentInQuarantine) {
  std::ofstream(directory_.path() + "/objects/info/alternates") << "/live/objects\n";
  place_.is_quarantine = true;
  place_.has_push_options = true;
  place_.push_options = {"ci.skip", "a=b c"};
  const std::string dir = directory_.path();
  setenv("REPOTXN_LEAK", "1", 1);
  setenv("GIT_WORK_TREE", "/leak", 1);
  Hook("pre-receive", "tr '\\0' '\\n' < /proc/$$/environ | sort");

  ASSERT_THAT(Run("pre-receive"), IsOk());

  EXPECT_EQ(output_, absl::StrCat("GIT_ALTERNATE_OBJECT_DIRECTORIES=/live/objects\n"
                                  "GIT_CONFIG_GLOBAL=/dev/null\n"
                                  "GIT_CONFIG_NOSYSTEM=1\n"
                                  "GIT_DIR=", dir, "\n"
                                  "GIT_OBJECT_DIRECTORY=", dir, "/objects\n"
                                  "GIT_PUSH_OPTION_0=ci.skip\n"
                                  "GIT_PUSH_OPTION_1=a=b c\n"
                                  "GIT_PUSH_OPTION_COUNT=2\n"
                                  "GIT_QUARANTINE_PATH=", dir, "/objects\n"
                                  "GIT_TERMINAL_PROMPT=0\n"
                                  "LC_ALL=C\n"
                                  "PATH=/usr/local/bin:/usr/bin:/bin\n"
                                  "REPOTXN_TRANSACTION_ID=00ff\n"));
}

TEST_F(GitHookTest, SeesNoQuarantineAndNoOptionsAfterTheCommit) {
  EXPECT_THAT(HookEnvironment(place_),
              ElementsAre("GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
                          absl::StrCat("GIT_DIR=", directory_.path()), "GIT_TERMINAL_PROMPT=0",
                          "LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin",
                          "REPOTXN_TRANSACTION_ID=00ff"));
}

TEST_F(GitHookTest, HoldsNoDescriptorOfTheDaemon) {
  std::ifstream held(directory_.path() + "/objects");
  Hook("pre-receive", "ls /proc/self/fd | tr '\\n' ' '");
  ASSERT_THAT(Run("pre-receive"), IsOk());
  EXPECT_EQ(output_, "0 1 2 3 ");  // 3 is the directory that ls reads
}

TEST_F(GitHookTest, TakesInputItNeverReadsForGranted) {
  Hook("pre-receive", "exit 0");
  const absl::StatusOr<bool> accepted = Run("pre-receive", {}, std::string(1 << 20, 'x'));
  ASSERT_THAT(accepted, IsOk());
  EXPECT_TRUE(*accepted);
}

TEST_F(GitHookTest, MayWriteMuchBeforeItReads) {
  Hook("pre-receive", "head -c 300000 /dev/zero | tr '\\0' z; wc -c");
  ASSERT_THAT(Run("pre-receive", {}, std::string(300'000, 'x')), IsOk());
  EXPECT_EQ(output_.size(), 300'000u + 7u);
}

TEST_F(GitHookTest, IsKilledWithItsGroupWhenItTakesTooLong) {
  // The grandchild holds the only write end of this pipe: its end is the pipe's end.
  const std::string fifo = directory_.path() + "/alive";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int alive = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(alive, 0);
  Hook("pre-receive", absl::StrCat("sleep 1000 > ", fifo, " & echo started; wait"));
  EXPECT_THAT(Run("pre-receive", {}, "", absl::Seconds(2)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(output_, "started\n");
  pollfd ended = {alive, POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 60'000), 1);
  EXPECT_NE(ended.revents & POLLHUP, 0);
  close(alive);
}

TEST_F(GitHookTest, EndsThoughSomethingItStartedKeepsTheOutputOpen) {
  Hook("post-receive", "echo before; sleep 1000 & exit 0");
  const absl::StatusOr<bool> accepted = Run("post-receive");
  ASSERT_THAT(accepted, IsOk());
  EXPECT_TRUE(*accepted);
  EXPECT_EQ(output_, "before\n");
}

TEST_F(GitHookTest, SaysThatItCouldNotRun) {
  EXPECT_THAT(Run("pre-receive"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace repotxn::daemon
