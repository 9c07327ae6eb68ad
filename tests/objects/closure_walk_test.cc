#include "objects/closure_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/objects/git_sandbox.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::GitSandbox;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Goal: every hole is found, wherever it is, with all that stand above it, and nothing else is
// called a hole. Method: a bare repository whose objects lie loose, so that one can be taken away.
class ClosureWalkTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  void SetUp() override {
    git_.Write("history", RandomHistory(5, 12));
    Init("live");
    // So small a history is left loose by fast-import itself.
    git_.Run("cd live.git && git fast-import --quiet --done < ../history");
  }
  void Init(const std::string& name) {
    git_.Run("git init -q --bare -b main --object-format=" +
             std::string(ObjectFormatName(GetParam())) + " " + name + ".git");
  }
  std::string In(const std::string& script) { return git_.Line("cd live.git && " + script); }
  std::string CommitTree(const std::string& arguments) {
    return In("echo unreachable | git commit-tree " + arguments);
  }
  std::string MakeTree(const std::string& lines) {
    return In("printf '" + lines + "' | git mktree --missing");
  }
  void Lose(const std::string& oid) {
    git_.Run("rm -f live.git/objects/$(echo " + oid + " | sed 's,^..,&/,')");
  }
  absl::StatusOr<ClosureReport> Walk() {
    ClosureWalkOptions options;
    options.format = GetParam();
    return WalkClosure(git_.fs(), StorePath::Literal("live.git"), options);
  }
  static ObjectId Id(const std::string& hex) { return *ObjectId::FromHex(hex); }

  GitSandbox git_;
};

TEST_P(ClosureWalkTest, FindsASoundRepositoryClosed) {
  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());

  EXPECT_TRUE(report.is_closed());
  EXPECT_THAT(report.missing_links, IsEmpty());
  EXPECT_EQ(report.objects, std::stoi(In("git count-objects -v | sed -n 's/^count: //p'")));
}

// Hard case A9 (a): what fsck accepts. A blob is missing below an unreachable commit, on which
// another unreachable commit and a tag stand.
TEST_P(ClosureWalkTest, FindsAHoleBelowUnreachableObjects) {
  const std::string blob = In("echo lost | git hash-object -w --stdin");
  const std::string tree = MakeTree("100644 blob " + blob + "\\tfile\\n");
  const std::string commit = CommitTree(tree);
  const std::string child = CommitTree("-p " + commit + " 'main^{tree}'");
  const std::string tag =
      In("printf 'object " + child +
         "\\ntype commit\\ntag t\\ntagger C <c@example.org> 1 +0000\\n\\nx\\n' | "
         "git hash-object -t tag -w --stdin");
  Lose(blob);
  std::string output;
  ASSERT_EQ(git_.TryRun("git -C live.git fsck --full --no-progress", &output), 0);

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());

  EXPECT_THAT(report.missing_links, ElementsAre(MissingLink{Id(tree), Id(blob)}));
  EXPECT_THAT(report.open_objects, UnorderedElementsAre(Id(tree), Id(commit), Id(child), Id(tag)));
}

TEST_P(ClosureWalkTest, FindsTheSameHolesInAPack) {
  const std::string blob = In("echo lost | git hash-object -w --stdin");
  const std::string tree = MakeTree("100644 blob " + blob + "\\tfile\\n");
  git_.Run(
      "cd live.git && (git cat-file --batch-all-objects --batch-check='%(objectname)' | "
      "grep -v " +
      blob +
      ") | git pack-objects -q objects/pack/pack >/dev/null && "
      "git prune-packed");
  Lose(blob);

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());

  EXPECT_THAT(report.missing_links, ElementsAre(MissingLink{Id(tree), Id(blob)}));
  EXPECT_THAT(report.open_objects, ElementsAre(Id(tree)));
}

// Gitlinks name commits that live elsewhere; the empty tree is never stored.
TEST_P(ClosureWalkTest, TakesNeitherGitlinksNorTheEmptyTreeForHoles) {
  const std::string elsewhere(2 * ObjectIdBytes(GetParam()), '7');
  const std::string empty = In("git hash-object -t tree /dev/null");
  CommitTree(MakeTree("160000 commit " + elsewhere + "\\tsub\\n"));
  CommitTree(empty);
  Lose(empty);

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());

  EXPECT_TRUE(report.is_closed());
}

TEST_P(ClosureWalkTest, TakesParentsOfShallowCommitsForNoLinks) {
  const std::string parent = In("git rev-parse main~1");
  const std::string tip = In("git rev-parse main");
  Lose(parent);
  ASSERT_OK_AND_ASSIGN(const ClosureReport open, Walk());
  EXPECT_THAT(open.missing_links, ElementsAre(MissingLink{Id(tip), Id(parent)}));

  git_.Write("live.git/shallow", tip + "\n");

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());
  EXPECT_TRUE(report.is_closed());
}

TEST_P(ClosureWalkTest, CountsWhatAlternatesLend) {
  Init("pool");
  git_.Run("cp -r live.git/objects/. pool.git/objects/");
  const std::string blob = In("git rev-parse main:drifting");
  Lose(blob);
  ASSERT_OK_AND_ASSIGN(const ClosureReport alone, Walk());
  EXPECT_FALSE(alone.is_closed());

  git_.Write("live.git/objects/info/alternates", "../../pool.git/objects\n");

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());
  EXPECT_TRUE(report.is_closed());
}

// A commit-graph hides holes from Git's own walks.
TEST_P(ClosureWalkTest, IsNotMisledByACommitGraph) {
  git_.Run("cd live.git && git commit-graph write --reachable 2>/dev/null");
  const std::string lost = In("git rev-parse main~3");
  Lose(lost);

  ASSERT_OK_AND_ASSIGN(const ClosureReport report, Walk());

  ASSERT_FALSE(report.is_closed());
  EXPECT_EQ(report.missing_links[0].missing, Id(lost));
}

TEST_P(ClosureWalkTest, ReportsDamageAsDataLoss) {
  const std::string tree = In("git rev-parse 'main^{tree}'");
  Lose(tree);
  git_.Write("live.git/objects/" + tree.substr(0, 2) + "/" + tree.substr(2), "garbage");

  EXPECT_THAT(Walk(), StatusIs(absl::StatusCode::kDataLoss));
}

INSTANTIATE_TEST_SUITE_P(Formats, ClosureWalkTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& format) {
                           return std::string(ObjectFormatName(format.param));
                         });

}  // namespace
}  // namespace repotxn::objects
