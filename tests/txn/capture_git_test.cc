#include "txn/capture.h"

#include "tests/txn/git_world.h"

namespace repotxn::testing {
namespace {

using txn::CapturedChanges;
using txn::Transaction;
using txn::WriteSnapshot;

// Real Git commands in a write snapshot. Each story runs twice: in a plain copy of the repository, by stock Git alone,
// and in a transaction. It fails when, after commit and clean close, stock Git sees anything else in the store's
// repository than in the copy, or when the live repository changed before the commit.
class CaptureGitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    id_ = world_.Import("r");
    const refs::RefValue tip = world_.Read(id_, "refs/heads/main");
    ASSERT_TRUE(world_.Set(id_, "refs/remotes/origin/main", tip).committed());
    ASSERT_TRUE(world_.Set(id_, "refs/remotes/origin/HEAD",
                           refs::RefValue::Symbolic(Ref("refs/remotes/origin/main"))).committed());
    ASSERT_TRUE(world_.Put(id_, "description", "about\n").committed());
    ASSERT_TRUE(world_.Put(id_, "hooks/update", "#!/bin/sh\nexit 1\n", 0755).committed());
    ASSERT_TRUE(world_.Put(id_, "worktrees/gone/gitdir", "/nonexistent/gone/.git\n").committed());
    ASSERT_TRUE(world_.Put(id_, "worktrees/gone/HEAD", tip.oid().ToHex() + "\n").committed());
    ASSERT_TRUE(world_.Put(id_, "worktrees/gone/commondir", "../..\n").committed());
  }

  // Runs the story both ways; returns what was captured.
  CapturedChanges Compare(const std::vector<GitStep>& steps) {
    EXPECT_THAT(world_.Close(), IsOk());
    const std::string live = world_.DirectoryOf(id_), copy = world_.Outside("copy");
    std::filesystem::copy(live, copy, std::filesystem::copy_options::recursive);
    GitWorld::RunPlain(copy, steps);
    EXPECT_THAT(world_.Open(), IsOk());
    const auto before = GitWorld::Tree(live);
    CapturedChanges captured;

    const txn::CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(WriteSnapshot * snapshot, txn.OpenWriteSnapshot({id_}, {}));
      GitWorld::RunIn(*snapshot, id_, steps);
      REPOTXN_ASSIGN_OR_RETURN(const std::vector<CapturedChanges> all, txn.Capture(snapshot));
      EXPECT_EQ(all.size(), 1u);
      captured = all[0];
      EXPECT_EQ(GitWorld::Tree(live), before) << "the live repository changed before the commit";
      return absl::OkStatus();
    });

    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.attempts, 1);
    EXPECT_THAT(*world_.fs().List(txn::layout::Snapshots()), ::testing::IsEmpty());
    EXPECT_THAT(*world_.fs().List(txn::layout::Staging()), ::testing::IsEmpty());
    EXPECT_THAT(world_.Close(), IsOk());
    EXPECT_EQ(GitWorld::Describe(live), GitWorld::Describe(copy));
    EXPECT_EQ(GitWorld::Git(live, {"fsck", "--full", "--no-dangling"}), "");
    EXPECT_THAT(world_.Open(), IsOk());
    return captured;
  }

  GitWorld world_;
  RepositoryId id_;
};

TEST_F(CaptureGitTest, UpdatesCreatesAndDeletesRefs) {
  const CapturedChanges captured = Compare({{{"rev-parse", "main~1"}, "", {}},
                                            {{"update-ref", "--stdin"},
                                             "update refs/heads/main $OUT\n"
                                             "create refs/heads/new/one $OUT\n"
                                             "delete refs/heads/feature\n"
                                             "delete refs/heads/nested/deep\n",
                                             {}}});

  EXPECT_EQ(captured.refs.size(), 4u);
  EXPECT_EQ(captured.new_objects, 0);
}

// B6
TEST_F(CaptureGitTest, CommitsNothingWhenRefsWereOnlyPacked) {
  const CapturedChanges captured = Compare({{{"pack-refs", "--all"}, "", {}}});

  EXPECT_TRUE(captured.empty());
}

TEST_F(CaptureGitTest, SeesChangesOfRefsThatWerePackedInTheSnapshot) {
  const CapturedChanges captured = Compare({{{"pack-refs", "--all"}, "", {}},
                                            {{"update-ref", "-d", "refs/heads/feature"}, "", {}},
                                            {{"update-ref", "refs/tags/light", "main"}, "", {}},
                                            {{"pack-refs", "--all"}, "", {}}});

  EXPECT_EQ(captured.refs.size(), 2u);
}

// B6
TEST_F(CaptureGitTest, ReplacesARefByOneBelowItsName) {
  Compare({{{"branch", "-m", "feature", "feature/below"}, "", {}},
           {{"branch", "-m", "nested/deep", "nested"}, "", {}}});
}

TEST_F(CaptureGitTest, RenamesABranchWithItsConfigurationAndHead) {
  const CapturedChanges captured = Compare({{{"config", "branch.main.description", "the trunk"}, "", {}},
                                            {{"branch", "-m", "main", "trunk"}, "", {}}});

  EXPECT_THAT(captured.put_files, ::testing::ElementsAre("config"));
  EXPECT_EQ(captured.refs.size(), 3u);
}

TEST_F(CaptureGitTest, SetsSymbolicRefs) {
  const CapturedChanges captured =
      Compare({{{"symbolic-ref", "HEAD", "refs/heads/feature"}, "", {}},
               {{"symbolic-ref", "refs/heads/alias", "refs/heads/main"}, "", {}},
               {{"symbolic-ref", "--delete", "refs/remotes/origin/HEAD"}, "", {}}});

  EXPECT_EQ(captured.refs.size(), 3u);
}

TEST_F(CaptureGitTest, DetachesHead) {
  Compare({{{"rev-parse", "main"}, "", {}}, {{"update-ref", "--no-deref", "HEAD", "$OUT"}, "", {}}});
}

TEST_F(CaptureGitTest, WritesConfiguration) {
  const CapturedChanges captured = Compare({{{"config", "x.y", "z"}, "", {}},
                                            {{"config", "--add", "remote.origin.url", "https://example.org/r"}, "", {}}});

  EXPECT_THAT(captured.put_files, ::testing::ElementsAre("config"));
  EXPECT_TRUE(captured.refs.empty());
}

TEST_F(CaptureGitTest, TakesNewObjectsOfCommits) {
  const CapturedChanges captured =
      Compare({{{"commit-tree", "main^{tree}", "-p", "main", "-m", "next"}, "", {}},
               {{"update-ref", "refs/heads/main", "$OUT"}, "", {}}});

  EXPECT_EQ(captured.new_objects, 1);
}

TEST_F(CaptureGitTest, TakesObjectsThatNoRefNames) {
  const CapturedChanges captured = Compare({{{"commit-tree", "main^{tree}", "-m", "alone"}, "", {}}});

  EXPECT_TRUE(captured.refs.empty());
  EXPECT_EQ(captured.new_objects, 1);
}

TEST_F(CaptureGitTest, AddsNotes) {
  const CapturedChanges captured = Compare({{{"notes", "add", "-m", "seen", "main"}, "", {}},
                                            {{"notes", "append", "-m", "again", "main"}, "", {}}});

  ASSERT_EQ(captured.refs.size(), 1u);
  EXPECT_EQ(captured.refs[0].name.text(), "refs/notes/commits");
}

TEST_F(CaptureGitTest, TagsAndPeels) {
  Compare({{{"tag", "-a", "v2", "-m", "second", "main"}, "", {}},
           {{"tag", "-a", "of-a-tag", "-m", "third", "v2"}, "", {}},
           {{"tag", "-d", "v1"}, "", {}}});

  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(id_), {"rev-parse", "of-a-tag^{}"}),
            GitWorld::Git(world_.DirectoryOf(id_), {"rev-parse", "main"}));
}

TEST_F(CaptureGitTest, FetchesLooseObjects) {
  const std::string remote = world_.MakePlain("remote", "theirs");
  const CapturedChanges captured =
      Compare({{{"fetch", "-q", remote, "+refs/heads/*:refs/remotes/theirs/*"}, "", {}}});

  EXPECT_EQ(captured.refs.size(), 3u);
  EXPECT_GT(captured.new_objects, 3);
}

TEST_F(CaptureGitTest, FetchesPacks) {
  const std::string first = world_.MakePlain("first", "theirs"), second = world_.MakePlain("second", "others");
  const std::vector<std::string> keep_packs = {"fetch.unpackLimit=1"};
  Compare({{{"fetch", "-q", first, "+refs/heads/*:refs/remotes/first/*"}, "", keep_packs},
           {{"fetch", "-q", second, "+refs/heads/*:refs/remotes/second/*"}, "", keep_packs},
           {{"commit-tree", "main^{tree}", "-m", "loose"}, "", {}}});
}

TEST_F(CaptureGitTest, FetchesOnePackAsItIs) {
  const std::string remote = world_.MakePlain("remote", "theirs");
  Compare({{{"fetch", "-q", "--prune", remote, "+refs/heads/*:refs/heads/*"}, "", {"fetch.unpackLimit=1"}}});
}

TEST_F(CaptureGitTest, PrunesWorktrees) {
  const CapturedChanges captured = Compare({{{"worktree", "prune", "--expire=now"}, "", {}}});

  EXPECT_THAT(captured.removed_files, ::testing::SizeIs(3));
  EXPECT_THAT(captured.removed_directories, ::testing::ElementsAre("worktrees", "worktrees/gone"));
}

TEST_F(CaptureGitTest, KeepsAFileThatWasWrittenAgainAsItWas) {
  const CapturedChanges captured =
      Compare({{{"config", "x.y", "z"}, "", {}}, {{"config", "--unset", "x.y"}, "", {}}});

  EXPECT_TRUE(captured.empty());
}

TEST_F(CaptureGitTest, ImportsIntoARepositoryThatTheTransactionCreates) {
  const std::string remote = world_.MakePlain("remote", "theirs");
  RepositoryId made;
  const txn::CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(made, txn.CreateRepository(Path("new"), {}));
    REPOTXN_ASSIGN_OR_RETURN(WriteSnapshot * snapshot, txn.OpenWriteSnapshot({made}, {}));
    GitWorld::RunIn(*snapshot, made,
                    {{{"fetch", "-q", remote, "+refs/*:refs/*"}, "", {}},
                     {{"symbolic-ref", "HEAD", "refs/heads/feature"}, "", {}}});
    return txn.Capture(snapshot).status();
  });
  ASSERT_THAT(result.status, IsOk());
  ASSERT_THAT(world_.Close(), IsOk());

  const std::string format = "--format=%(refname) %(objectname)";
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(made), {"for-each-ref", format}),
            GitWorld::Git(remote, {"for-each-ref", format}));
  EXPECT_EQ(GitWorld::FileText(world_.DirectoryOf(made) + "/HEAD"), "ref: refs/heads/feature\n");
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(made), {"fsck", "--full"}), "");
}

TEST_F(CaptureGitTest, DeepensAShallowRepository) {
  const std::string remote = world_.MakePlain("remote", "theirs");
  const std::string url = absl::StrCat("file://", remote);
  const std::vector<std::string> refspec = {"+refs/heads/main:refs/remotes/theirs/main"};
  Compare({{{"fetch", "-q", "--depth=1", url, refspec[0]}, "", {}}});
  ASSERT_EQ(GitWorld::Git(world_.DirectoryOf(id_), {"rev-list", "--count", "theirs/main"}), "1");
  std::filesystem::remove_all(world_.Outside("copy"));

  const CapturedChanges captured = Compare({{{"fetch", "-q", "--unshallow", url, refspec[0]}, "", {}}});

  EXPECT_THAT(captured.removed_files, ::testing::ElementsAre("shallow"));
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(id_), {"rev-list", "--count", "theirs/main"}), "3");
}

}  // namespace
}  // namespace repotxn::testing
