#include "objects/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/repository_skeleton.h"
#include "tests/objects/git_sandbox.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::GitSandbox;
using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::MemoryFileSystem;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::ElementsAre;

// Goal: a fresh repository is what stock Git takes for a sound one, and is there whole after a
// crash. Method: real Git on the files; the crash clone of the memory file system.
class RepositorySkeletonTest : public ::testing::TestWithParam<ObjectFormat> {};

TEST_P(RepositorySkeletonTest, IsASoundRepositoryForStockGit) {
  GitSandbox git;
  const bool is_sha1 = GetParam() == ObjectFormat::kSha1;
  ASSERT_THAT(WriteSkeleton(git.fs(), StorePath::Literal("r.git"), GetParam(), "refs/heads/trunk"),
              IsOk());

  EXPECT_EQ(git.Run("cd r.git && git fsck --full --strict --no-dangling 2>&1 | grep -v '^notice:' "
                    "|| true"),
            "");
  EXPECT_EQ(git.Line("git -C r.git rev-parse --is-bare-repository"), "true");
  EXPECT_EQ(git.Line("git -C r.git rev-parse --show-object-format"), is_sha1 ? "sha1" : "sha256");
  EXPECT_EQ(git.Line("git -C r.git symbolic-ref HEAD"), "refs/heads/trunk");
  // It can be pushed to and cloned.
  git.Run("git init -q -b trunk --object-format=" + std::string(is_sha1 ? "sha1" : "sha256") +
          " work && cd work && git commit -q --allow-empty -m x && git push -q ../r.git HEAD && "
          "cd .. && git clone -q r.git again && "
          "test \"$(git -C again rev-parse HEAD)\" = \"$(git -C work rev-parse HEAD)\"");
}

TEST_P(RepositorySkeletonTest, SurvivesACrashWhenSynced) {
  MemoryFileSystem fs;
  const StorePath directory = StorePath::Literal("r.git");
  ASSERT_THAT(WriteSkeleton(fs, directory, GetParam(), kDefaultBranch, true), IsOk());
  ASSERT_THAT(fs.SyncDirectory(StorePath()), IsOk());

  const auto crashed = fs.CrashClone({});

  EXPECT_EQ(crashed->DumpTree(), fs.DumpTree());
  for (const SkeletonEntry& entry : RepositorySkeleton(GetParam())) {
    const auto info = crashed->Stat(directory / entry.path);
    ASSERT_THAT(info, IsOk()) << entry.path;
    EXPECT_EQ(info->kind == storage::FileKind::kDirectory, entry.is_directory);
  }
}

TEST_P(RepositorySkeletonTest, LeavesWhatIsAlreadyThere) {
  MemoryFileSystem fs;
  ASSERT_THAT(fs.MakeDirectory(StorePath::Literal("r.git")), IsOk());

  EXPECT_THAT(WriteSkeleton(fs, StorePath::Literal("r.git"), GetParam()),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs.List(StorePath::Literal("r.git")), IsOkAndHolds(::testing::IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(Formats, RepositorySkeletonTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& suite) {
                           return suite.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256";
                         });

// Goal: an object snapshot borrows everything from the live repository and shows none of its refs.
// Method: the files, and real Git inside.
TEST(ObjectSnapshotTest, BorrowsObjectsThroughTheLiveChainAndHasNoRefs) {
  GitSandbox git;
  git.Run(
      "git init -q -b main work && cd work && echo x > x && git add x && git commit -qm x\n"
      "cd .. && git clone -q --bare work pool.git && git clone -q --bare --shared pool.git "
      "live.git\n"
      "echo ../../pool.git/objects > live.git/objects/info/alternates\n");
  const std::string tip = git.Line("git -C work rev-parse HEAD");

  ASSERT_THAT(MakeObjectSnapshot(git.fs(), StorePath::Literal("s"),
                                 {.live_repository = StorePath::Literal("live.git")}),
              IsOk());

  EXPECT_EQ(git.Read("s/objects/info/alternates"), git.path() + "/live.git/objects\n");
  EXPECT_EQ(git.Line("git -C s cat-file -t " + tip), "commit");
  EXPECT_EQ(git.Run("git -C s for-each-ref"), "");
  EXPECT_EQ(git.Line("test -e s/shallow && echo shallow || echo none"), "none");
}

TEST(ObjectSnapshotTest, HasNoAlternatesForARepositoryYetToBeCreated) {
  MemoryFileSystem fs;
  ASSERT_THAT(MakeObjectSnapshot(fs, StorePath::Literal("s"),
                                 {.live_repository = std::nullopt, .shallow = "line\n"}),
              IsOk());

  EXPECT_THAT(storage::Exists(fs, StorePath::Literal("s/objects/info/alternates")),
              IsOkAndHolds(false));
  EXPECT_THAT(storage::ReadFile(fs, StorePath::Literal("s/shallow")), IsOkAndHolds("line\n"));
}

TEST(StagedPacksTest, AreListedWithTheIndexLastAndWithoutUnfinishedOnes) {
  MemoryFileSystem fs;
  const StorePath snapshot = StorePath::Literal("s");
  ASSERT_THAT(MakeObjectSnapshot(fs, snapshot, {}), IsOk());
  for (const char* name : {"pack-b.idx", "pack-b.pack", "pack-b.rev", "pack-a.idx", "pack-a.pack",
                           "pack-c.pack", "pack-d.idx", "tmp_pack_x", "x.pack", "x.idx"}) {
    ASSERT_THAT(storage::WriteFile(fs, snapshot / ("objects/pack/" + std::string(name)), "x"),
                IsOk());
  }

  ASSERT_OK_AND_ASSIGN(const auto packs, ListStagedPacks(fs, snapshot));

  ASSERT_THAT(packs, ::testing::SizeIs(2));
  EXPECT_EQ(packs[0].name, "pack-a");
  EXPECT_THAT(packs[1].files, ElementsAre(StorePath::Literal("s/objects/pack/pack-b.pack"),
                                          StorePath::Literal("s/objects/pack/pack-b.rev"),
                                          StorePath::Literal("s/objects/pack/pack-b.idx")));
}

TEST(StagedPacksTest, LooseObjectsAreListedToo) {
  MemoryFileSystem fs;
  const StorePath snapshot = StorePath::Literal("s");
  const std::string rest(38, 'c');
  ASSERT_THAT(MakeObjectSnapshot(fs, snapshot, {}), IsOk());
  ASSERT_THAT(fs.MakeDirectory(snapshot / "objects/ab"), IsOk());
  ASSERT_THAT(storage::WriteFile(fs, snapshot / ("objects/ab/" + rest), "x"), IsOk());
  ASSERT_THAT(storage::WriteFile(fs, snapshot / "objects/ab/tmp_obj_x", "x"), IsOk());

  EXPECT_THAT(ListStagedLooseObjects(fs, snapshot), IsOkAndHolds(ElementsAre("ab/" + rest)));
}

}  // namespace
}  // namespace repotxn::objects
