// Goal: packs are merged without loss and beside everything else; what a merge removed stays for whoever is older, answers
// nobody who is younger, and comes back when somebody adds it again [hard cases A4-A7]. Judged by stock Git.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/posix_file_system.h"
#include "tests/txn/git_store.h"
#include "txn/staged_objects.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using repotxn::testing::GitStore;
using repotxn::testing::IsOk;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;

class MergePacksTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  static constexpr int kPushes = 20;
  MergePacksTest() : world_(GetParam()) {
    git().Write("history", RandomHistory(7, 60));
    git().Run(absl::StrCat("git init -q --bare -b main --object-format=", ObjectFormatName(GetParam()),
                           " source.git\ncd source.git && git fast-import --quiet --done < ../history\n"
                           "git rev-list --reverse --first-parent main > ../commits"));
    commits_ = absl::StrSplit(git().Run("cat commits"), '\n', absl::SkipEmpty());
    id_ = world_.Create("r");
    for (int n = 0; n < kPushes; ++n) Push(n);
  }
  testing::GitSandbox& git() { return world_.git(); }
  Store& store() { return world_.store(); }
  const std::string& CommitAt(int n) const {
    return commits_[commits_.size() * static_cast<size_t>(n + 1) / (kPushes + 5)];
  }
  // The n-th push: what its commit has beyond the one before.
  void Push(int n) {
    ASSERT_THAT(world_.Push("source.git", CommitAt(n), "r", "refs/heads/main",
                            n == 0 ? "" : absl::StrCat("^", CommitAt(n - 1))),
                IsOk());
  }
  PackMerge Merge(bool all = false) {
    PackMerge merge;
    EXPECT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(merge, txn.MergePacks(id_, {.all = all}));
                  return absl::OkStatus();
                }),
                IsOk());
    return merge;
  }
  std::vector<std::string> PacksOnDisk() {
    const std::string listed = git().Run("cd " + GitStore::Directory(id_) + "/objects/pack && ls *.pack");
    return absl::StrSplit(listed, '\n', absl::SkipEmpty());
  }
  std::string AllObjects() {
    return git().Run("git -C " + GitStore::Directory(id_) +
                     " cat-file --batch-all-objects --batch-check='%(objectname) %(objecttype)' | sort -u");
  }
  bool Exists(const std::string& oid) {
    return *(*store().Begin({}))->ObjectExists(id_, *ObjectId::FromHex(oid, GetParam()));
  }

  GitStore world_;
  std::vector<std::string> commits_;
  RepositoryId id_;
};
INSTANTIATE_TEST_SUITE_P(BothFormats, MergePacksTest, ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

// RP-04, RP-05, RP-09
TEST_P(MergePacksTest, KeepsEveryObjectAndLeavesFewPacks) {
  ASSERT_EQ(PacksOnDisk().size(), static_cast<size_t>(kPushes));
  const std::string before = AllObjects();
  const PackMerge merge = Merge();
  EXPECT_EQ(merge.packs_before, kPushes);
  EXPECT_GE(merge.packs_merged, kPushes / 2);
  EXPECT_EQ(store().Metrics().packs_condemned, merge.packs_merged);
  EXPECT_EQ(PacksOnDisk().size(), static_cast<size_t>(kPushes) + 1);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(store().Metrics().packs_condemned, 0);
  EXPECT_EQ(PacksOnDisk().size(), static_cast<size_t>(kPushes - merge.packs_merged + 1));
  EXPECT_EQ(AllObjects(), before);
  EXPECT_EQ(Merge().packs_merged, 0);

  Push(kPushes);
  EXPECT_GE(Merge(/*all=*/true).packs_merged, 2);
  Push(kPushes + 1);
  world_.Close();
  EXPECT_EQ(PacksOnDisk().size(), 2u);
  EXPECT_EQ(world_.Fsck(id_), "");
}

// A7, A4: who is older finds the old files at their places, who is younger is never answered from them.
TEST_P(MergePacksTest, KeepsWhatItRemovedForOlderReadersAndAnswersNobodyFromIt) {
  auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(snapshot, IsOk());
  auto older = store().Begin({});
  ASSERT_THAT(older, IsOk());
  ASSERT_THAT((*older)->OpenRepository(GitStore::Path("r")), IsOk());
  Merge(/*all=*/true);
  for (int round = 0; round < 3; ++round) ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(PacksOnDisk().size(), static_cast<size_t>(kPushes) + 1);
  EXPECT_EQ(git().Run("git -C " + (*snapshot)->absolute_path() + " rev-list --objects main | wc -l"),
            git().Run("git -C source.git rev-list --objects " + CommitAt(kPushes - 1) + " | wc -l"));
  // The new pack alone answers: without it there is no object, though the old ones lie there still.
  std::string merged = git().Run("cd " + GitStore::Directory(id_) + "/objects/pack && ls -t *.pack | head -n 1");
  merged = std::string(absl::StripAsciiWhitespace(merged));
  EXPECT_TRUE(Exists(CommitAt(3)));
  git().Run("cd " + GitStore::Directory(id_) + "/objects/pack && mv " + merged + " ../../hidden");
  EXPECT_FALSE(Exists(CommitAt(3)));
  git().Run("cd " + GitStore::Directory(id_) + "/objects/pack && mv ../../hidden " + merged);
  EXPECT_TRUE(Exists(CommitAt(3)));

  older->reset();
  snapshot->reset();
  // The store's own copy of the shared snapshot goes when nobody has used it for a while.
  for (int round = 0; round < 25; ++round) ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(PacksOnDisk().size(), 1u);
}

// RP-16, RP-19, RP-20
TEST_P(MergePacksTest, MeetsNoPushInEitherOrderAndOfTwoMergesOneWins) {
  auto first = store().Begin({}), second = store().Begin({});
  ASSERT_THAT((*first)->MergePacks(id_, {.all = true}), IsOk());
  ASSERT_THAT((*second)->MergePacks(id_, {.all = true}), IsOk());
  Push(kPushes);
  EXPECT_TRUE((*first)->Commit().committed());
  const CommitResult lost = (*second)->Commit();
  EXPECT_EQ(lost.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(lost.status, StatusIs(StatusCode::kAborted));
  // The push that began before the merge, and names what the merge has moved.
  txn::RunOptions run;
  run.begin.transaction_id = store().NewTransactionId();
  auto pushing = store().Begin(run.begin);
  ASSERT_THAT((*pushing)->UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/old"),
                                          .value = refs::RefValue::Object(*ObjectId::FromHex(CommitAt(5), GetParam()))}),
              IsOk());
  Merge(/*all=*/true);
  EXPECT_TRUE((*pushing)->Commit().committed());
  first->reset();
  second->reset();
  pushing->reset();
  world_.Close();
  EXPECT_EQ(world_.Fsck(id_), "");
}

// A5, A6: the same pack comes again while its removed file is still there.
TEST_P(MergePacksTest, APackThatIsAddedAgainStays) {
  const auto packs_before = PacksOnDisk();
  const std::string stem = packs_before[3].substr(0, packs_before[3].size() - 5);
  git().Run("mkdir kept && cp " + GitStore::Directory(id_) + "/objects/pack/" + stem + ".* kept/");
  auto older = store().Begin({});
  ASSERT_THAT((*older)->OpenRepository(GitStore::Path("r")), IsOk());
  Merge(/*all=*/true);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  const int64_t condemned = store().Metrics().packs_condemned;
  ASSERT_EQ(condemned, kPushes);

  BeginOptions begin;
  begin.transaction_id = store().NewTransactionId();
  {
    auto staging = store().StageObjects(begin.transaction_id, GitStore::Path("r"), GetParam());
    ASSERT_THAT(staging, IsOk());
    auto& staged = dynamic_cast<StagedObjects&>(**staging);
    const auto bytes = [&](const char* suffix) { return git().Read("kept/" + stem + suffix); };
    ASSERT_THAT(staged.StageIndexedPack(stem, bytes(".pack"), bytes(".idx"), bytes(".rev")), IsOk());
    auto again = store().Begin(begin);
    ASSERT_THAT((*again)->AddPack(id_, *staging), IsOk());
    ASSERT_TRUE((*again)->Commit().committed());
  }
  EXPECT_EQ(store().Metrics().packs_condemned, condemned - 1);
  older->reset();
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(PacksOnDisk().size(), 2u);
  ASSERT_THAT(store().Checkpoint(), IsOk());
  world_.Close();
  // Nothing of the removal is left over the restart.
  world_.Open();
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(PacksOnDisk().size(), 2u);
  world_.Close();
  EXPECT_EQ(world_.Fsck(id_), "");
}

TEST_P(MergePacksTest, WhatWasRemovedBeforeARestartGoesAfterIt) {
  auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(snapshot, IsOk());
  Merge(/*all=*/true);
  ASSERT_THAT(store().Checkpoint(), IsOk());
  // A copy of the store as a crash would leave it, with the old packs in it.
  git().Run("cp -a store copy && rm -f copy/LOCK");
  snapshot->reset();
  // A clean close leaves nothing behind.
  world_.Close();
  EXPECT_EQ(PacksOnDisk().size(), 1u);
  auto opened = Store::Open(git().path() + "/copy", GitStore::Options());
  ASSERT_THAT(opened, IsOk());
  // Nobody is older any more, so they went before it served anybody.
  EXPECT_EQ((*opened)->Metrics().packs_condemned, 0);
  EXPECT_THAT((*opened)->Close(), IsOk());
  git().Run("rm -rf store && mv copy store");
  EXPECT_EQ(PacksOnDisk().size(), 1u);
  EXPECT_EQ(world_.Fsck(id_), "");
}

TEST_P(MergePacksTest, LeavesAloneWhatGitKeepsForItself) {
  git().Run("mkdir " + GitStore::Directory(id_) + "/objects/pack/multi-pack-index.d");
  auto transaction = store().Begin({});
  const auto merge = (*transaction)->MergePacks(id_, {});
  EXPECT_THAT(merge, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(merge.status().message()), HasSubstr("multi-pack-index"));
}

// P3
TEST_P(MergePacksTest, HappensByItselfAfterSoManyPushes) {
  ASSERT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(store().Metrics().pack_merges, 1);
  ASSERT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(store().Metrics().pack_merges, 1);
  world_.Close();
  EXPECT_LT(PacksOnDisk().size(), 8u);
  EXPECT_EQ(world_.Fsck(id_), "");
}

}  // namespace
}  // namespace repotxn::txn
