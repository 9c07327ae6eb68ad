#include "daemon/git_config.h"

#include <string>
#include <vector>

#include "daemon/push_policy.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using repotxn::testing::StatusIs;
using Values = std::vector<std::string>;

// Goal: a setting means here what it means to stock Git. Fails when a file is read differently.
class GitConfigTest : public ::testing::Test {
 protected:
  static GitConfig Parsed(const std::string& text) {
    const absl::StatusOr<GitConfig> config = GitConfig::Parse(text);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? *config : GitConfig();
  }
};

TEST_F(GitConfigTest, ReadsSectionsSubsectionsCommentsAndContinuations) {
  const GitConfig config = Parsed(
      "\xef\xbb\xbf# first\n"
      "[core]\n\tbare = true ; why not\n"
      "[Receive] DenyDeletes\n"
      "[remote \"Or\\\"igin\"]\n url = \"a # b\" c  \n"
      "[a.B]\nx = one \\\n two\r\n"
      "[core]\nbare = false\n"
      "v = \"a\\tb\\n\\\\\"\n"
      "empty =\n");
  EXPECT_EQ(config.All("core.bare"), (Values{"true", "false"}));
  EXPECT_EQ(config.All("receive.denydeletes"), Values{"true"});
  EXPECT_EQ(config.All("remote.Or\"igin.url"), Values{"a # b c"});
  EXPECT_EQ(config.All("a.b.x"), Values{"one  two"});
  EXPECT_EQ(config.All("core.v"), Values{"a\tb\n\\"});
  EXPECT_EQ(config.All("core.empty"), Values{""});
  EXPECT_EQ(config.All("core.absent"), Values{});
}

TEST_F(GitConfigTest, LastValueDecidesAndOddValuesFallBack) {
  const GitConfig config =
      Parsed("[t]\na = yes\na = No\nb = 0\nc = 12\nd = maybe\ne\nf = ON\ng =\n");
  EXPECT_FALSE(config.Bool("t.a", true));
  EXPECT_FALSE(config.Bool("t.b", true));
  EXPECT_TRUE(config.Bool("t.c", false));
  EXPECT_TRUE(config.Bool("t.d", true));
  EXPECT_FALSE(config.Bool("t.d", false));
  EXPECT_TRUE(config.Bool("t.e", false));
  EXPECT_TRUE(config.Bool("t.f", false));
  EXPECT_FALSE(config.Bool("t.g", true));
  EXPECT_TRUE(config.Bool("t.absent", true));
}

TEST_F(GitConfigTest, NamesTheLineThatBreaksTheSyntax) {
  for (const char* text : {"x = 1\n", "[core\n", "[core \"a]\n", "[]\n", "[core]\n= 1\n",
                           "[core]\na b\n", "[core]\na = \"open\n", "[core]\na = \\q\n"}) {
    EXPECT_THAT(GitConfig::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_EQ(GitConfig::Parse("[core]\n\n!\n").status().message(),
            "malformed configuration in line 3");
}

// Goal: the settings of stock receive-pack decide in the same way.
class PushPolicyTest : public GitConfigTest {};

TEST_F(PushPolicyTest, RefusesNothingButTheCurrentBranchByDefault) {
  const PushPolicy policy = PushPolicy::FromConfig(GitConfig());
  EXPECT_FALSE(policy.deny_deletes || policy.deny_non_fast_forwards || policy.fsck_objects);
  EXPECT_TRUE(policy.deny_delete_current);
  EXPECT_FALSE(policy.IsHidden("refs/heads/main"));
}

TEST_F(PushPolicyTest, TakesTheSettingsOfTheRepository) {
  const PushPolicy policy = PushPolicy::FromConfig(
      Parsed("[receive]\ndenyDeletes\ndenyNonFastForwards = true\ndenyDeleteCurrent = warn\n"
             "[transfer]\nfsckObjects = true\n"));
  EXPECT_TRUE(policy.deny_deletes && policy.deny_non_fast_forwards && policy.fsck_objects);
  EXPECT_FALSE(policy.deny_delete_current);
  EXPECT_FALSE(PushPolicy::FromConfig(
                   Parsed("[transfer]\nfsckObjects = true\n[receive]\nfsckObjects = false\n"))
                   .fsck_objects);
}

TEST_F(PushPolicyTest, HidesWholeComponentsAndTheLastMatchDecides) {
  const PushPolicy policy = PushPolicy::FromConfig(
      Parsed("[transfer]\nhideRefs = refs/internal/\nhideRefs = refs/pull\n"
             "[receive]\nhideRefs = !refs/pull/open\n"));
  EXPECT_TRUE(policy.IsHidden("refs/internal/x"));
  EXPECT_TRUE(policy.IsHidden("refs/pull/1"));
  EXPECT_FALSE(policy.IsHidden("refs/pull/open/1"));
  EXPECT_FALSE(policy.IsHidden("refs/pulls/1"));
}

}  // namespace
}  // namespace repotxn::daemon
