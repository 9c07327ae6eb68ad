// Goal: a repository is packed anew under pushes. What nobody can reach goes after its grace, with nothing that stays naming
// it; what is used meanwhile stays, or is asked for again: in neither order is a push accepted and broken [hard cases A4, A7, A9,
// B10]. Judged by stock Git, which looks at every object, unreachable ones too.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "objects/error_detail.h"
#include "storage/check.h"
#include "storage/posix_file_system.h"
#include "tests/txn/repack_world.h"
#include "txn/staged_objects.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using repotxn::testing::GitStore;
using repotxn::testing::RepackWorld;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

class RepackTest : public RepackWorld {};
INSTANTIATE_TEST_SUITE_P(BothFormats, RepackTest, ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

// RP-02, RP-03, RP-06 to RP-08, RP-10
TEST_P(RepackTest, PacksWhatIsReachedAndKeepsTheRestApartUntilItsGraceIsOver) {
  LeaveBehind();
  Push(3, "refs/heads/other", 2);
  const absl::Time past = absl::Now() - absl::Hours(1);
  const Repack first = RepackNow(past);
  EXPECT_EQ(first.packs_before, 3);
  EXPECT_EQ(first.packs_after, 2);
  EXPECT_EQ(first.cruft, 4);  // c4: commit, two trees, blob
  EXPECT_EQ(first.removed, 0);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(Files("*.pack", id_), "2\n");
  EXPECT_EQ(Files("*.mtimes", id_), "1\n");
  EXPECT_TRUE(Exists(4));
  // Twice the same is nothing.
  const uint64_t before = store().committed_lsn().value();
  EXPECT_EQ(RepackNow(past).packs_after, 2);
  EXPECT_EQ(store().committed_lsn().value(), before);

  // Stock Git takes it for a cruft pack of its own kind.
  world_.Close();
  git().Run("cp -a " + GitStore::Directory(id_) + " copy && git -C copy repack -q -d --cruft --cruft-expiration=1.hour.ago");
  EXPECT_EQ(git().Run("ls copy/objects/pack/*.mtimes | wc -l"), "1\n");
  EXPECT_EQ(git().Run("git -C copy cat-file -t " + commits_[4]), "commit\n");
  world_.Open();

  const Repack second = RepackNow(absl::Now() + absl::Hours(1));
  EXPECT_EQ(second.cruft, 0);
  EXPECT_EQ(second.removed, 4);
  EXPECT_FALSE(Exists(4));
  EXPECT_TRUE(Exists(3));
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(Files("*", id_), "3\n");
  ExpectSoundAtRest();
}

TEST_P(RepackTest, WhatAYoungObjectNamesStaysHoweverOldItIs) {
  LeaveBehind();
  // All packs so far are of long ago; c5, which names c4, is of now.
  git().Run("touch -d '2 days ago' " + GitStore::Directory(id_) + "/objects/pack/*");
  Push(5, "refs/heads/late", 4);
  DeleteRef("refs/heads/late");
  const Repack kept = RepackNow(absl::Now() - absl::Hours(24));
  EXPECT_EQ(kept.removed, 0);
  EXPECT_EQ(kept.cruft, 12);
  EXPECT_TRUE(Exists(3));
  ExpectSoundAtRest();
  const Repack gone = RepackNow();
  EXPECT_EQ(gone.removed, 12);
  EXPECT_FALSE(Exists(3));
  ExpectSoundAtRest();
}

// RP-23, C047: the removal first.
TEST_P(RepackTest, APushThatBuildsOnWhatWasRemovedIsAskedToSendItAgain) {
  LeaveBehind();
  Pushing push = Stage(5, 4);
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  EXPECT_EQ(RepackNow().removed, 8);
  const CommitResult result = push.transaction->Commit();
  EXPECT_EQ(result.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(result.status, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("send it again"));
  EXPECT_NE(objects::ErrorDetail(result.status, "oid"), "");
  push.transaction.reset();
  push.staging.reset();
  // As the client does then.
  Push(5, "refs/heads/new", 2);
  EXPECT_TRUE(Exists(5));
  ExpectSoundAtRest();
}

// RP-21, C047: the push first.
TEST_P(RepackTest, ARemovalThatMeetsAPushLeavesWhatThePushUses) {
  LeaveBehind();
  Pushing push = Stage(5, 4);
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  auto repack = StageRepack(id_);
  ASSERT_TRUE(push.transaction->Commit().committed());
  const CommitResult result = repack->Commit();
  EXPECT_EQ(result.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(result.status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("used again"));
  push = Pushing();
  repack.reset();
  EXPECT_EQ(RepackNow().removed, 0);
  ExpectSoundAtRest();
}

// A test that cannot fail proves nothing: without the looks both orders break the repository.
TEST_P(RepackTest, WithoutLooksBothOrdersBreakTheRepository) {
  {
    const PlantedBug bug("txn.trust_stale_looks");
    LeaveBehind();
    Pushing push = Stage(5, 4);
    ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
    RepackNow();
    EXPECT_TRUE(push.transaction->Commit().committed());
  }
  world_.Close();
  EXPECT_THAT(world_.Fsck(id_), HasSubstr(commits_[4]));
  world_.Open();
  Push(4, "refs/heads/mended", 2);
  {
    const PlantedBug bug("txn.remove_without_looking");
    DeleteRef("refs/heads/new");
    DeleteRef("refs/heads/mended");
    Pushing push = Stage(6, 5);
    ASSERT_THAT(Begin(&push, 6, "refs/heads/newer"), IsOk());
    auto repack = StageRepack(id_);
    ASSERT_TRUE(push.transaction->Commit().committed());
    // The watch of the critical section is left: it only sends the removal back to look again.
    EXPECT_TRUE(repack->Commit().committed());
  }
  world_.Close();
  EXPECT_THAT(world_.Fsck(id_), HasSubstr(commits_[5]));
  world_.Open();
}

// C048
TEST_P(RepackTest, ARefOnWhatIsBeingRemovedIsMetInEitherOrder) {
  LeaveBehind();
  auto naming = store().Begin({});
  ASSERT_THAT((*naming)->UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/back"),
                                         .value = refs::RefValue::Object(Oid(4))}),
              IsOk());
  auto repack = StageRepack(id_);
  ASSERT_TRUE((*naming)->Commit().committed());
  EXPECT_THAT(repack->Commit().status, StatusIs(StatusCode::kAborted));
  DeleteRef("refs/heads/back");
  repack.reset();
  naming->reset();

  naming = store().Begin({});
  ASSERT_THAT((*naming)->UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/back"),
                                         .value = refs::RefValue::Object(Oid(4))}),
              IsOk());
  EXPECT_EQ(RepackNow().removed, 8);
  EXPECT_THAT((*naming)->Commit().status, StatusIs(StatusCode::kAborted));
  naming->reset();
  EXPECT_THAT(SetRef(id_, "refs/heads/back", refs::RefValue::Object(Oid(4))), StatusIs(StatusCode::kFailedPrecondition));
  ExpectSoundAtRest();
}

// A4: the removed pack lies there still, for an older snapshot, and a Git child is answered from it.
TEST_P(RepackTest, APushProvedAgainstARemovedPackIsProvedAgain) {
  LeaveBehind();
  auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(RepackNow().removed, 8);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_FALSE(Exists(4));
  EXPECT_EQ(git().Run("git -C " + GitStore::Directory(id_) + " cat-file -t " + commits_[4]), "commit\n");
  Pushing push = Stage(5, 4);
  // Gone before the commit: nothing there shows any more what the child has seen.
  snapshot->reset();
  for (int round = 0; round < 25; ++round) ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  EXPECT_THAT(push.transaction->Commit().status, StatusIs(StatusCode::kFailedPrecondition));
  push.transaction.reset();
  push.staging.reset();
  ExpectSoundAtRest();
}

// RP-16, RP-17
TEST_P(RepackTest, APushOfNothingThatIsRemovedGoesThroughInEitherOrder) {
  LeaveBehind();
  Pushing push = Stage(3, 2);
  ASSERT_THAT(Begin(&push, 3, "refs/heads/other"), IsOk());
  auto repack = StageRepack(id_);
  ASSERT_TRUE(push.transaction->Commit().committed());
  EXPECT_TRUE(repack->Commit().committed());
  // c3 came back with the push; only c4 is gone.
  EXPECT_TRUE(Exists(3));
  EXPECT_FALSE(Exists(4));
  repack.reset();
  push = Pushing();
  push = Stage(4, 3);
  ASSERT_THAT(Begin(&push, 4, "refs/heads/another"), IsOk());
  RepackNow();
  EXPECT_TRUE(push.transaction->Commit().committed());
  push = Pushing();
  ExpectSoundAtRest();
}

TEST_P(RepackTest, ObjectsThatAPackNamesWhichCameMeanwhileAreItsOwnAffair) {
  // A7: a repack sees nothing of a pack that is younger than its snapshot, and removes none.
  auto transaction = store().Begin({});
  ASSERT_THAT((*transaction)->OpenRepository(GitStore::Path("r")), IsOk());
  Push(5, "refs/heads/new", 2);
  const auto repack = (*transaction)->RepackObjects(id_, {.expire_before = absl::InfiniteFuture()});
  ASSERT_THAT(repack, IsOk());
  EXPECT_EQ(repack->packs_before, 1);
  EXPECT_EQ(repack->removed, 0);
  EXPECT_TRUE((*transaction)->Commit().committed());
  EXPECT_TRUE(Exists(5));
  transaction->reset();
  ExpectSoundAtRest();
}

// RP-25 to RP-28, C062
TEST_P(RepackTest, APoolKeepsWhatItsMembersNameAndNothingElse) {
  LeaveBehind();
  RepositoryId pool, fork;
  pool = Pool(id_, "pool");
  fork = Fork(pool, "fork");
  // A member gives up what the pool has.
  EXPECT_EQ(RepackNow().borrowed, 20);
  EXPECT_TRUE(Exists(4));
  // An object of the fork, unreachable there, names c4, which nothing else does.
  Push(5, "refs/heads/x", 4, "fork");
  ASSERT_THAT(SetRef(fork, "refs/heads/x", refs::RefValue::Absent()), IsOk());
  const auto kept = TryRepack(pool);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->removed, 0);
  ExpectSoundAtRest({pool, fork});
  // Without it c3 and c4 go, and what main of the member reaches stays, though the pool has no ref at all.
  ASSERT_EQ(TryRepack(fork)->removed, 4);
  const auto removed = TryRepack(pool);
  ASSERT_THAT(removed, IsOk());
  EXPECT_EQ(removed->removed, 8);
  EXPECT_FALSE(Exists(4));
  EXPECT_TRUE(Exists(2));
  ExpectSoundAtRest({pool, fork});
}

// A9: what a removed member needs must be there when it is brought back.
TEST_P(RepackTest, ARemovedMemberFindsItsObjectsWhenItComesBack) {
  LeaveBehind();
  RepositoryId fork;
  ASSERT_THAT(SetRef(id_, "refs/heads/topic", refs::RefValue::Object(Oid(4))), IsOk());
  fork = Fork(id_, "fork");
  DeleteRef("refs/heads/topic");
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(fork); }), IsOk());
  EXPECT_EQ(RepackNow().removed, 0);
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.UndeleteRepository(fork, GitStore::Path("fork")); }), IsOk());
  EXPECT_TRUE(Exists(4, "fork"));
  ExpectSoundAtRest({fork});
}

TEST_P(RepackTest, AForkThatComesMeanwhileIsLookedAt) {
  LeaveBehind();
  ASSERT_THAT(SetRef(id_, "refs/heads/topic", refs::RefValue::Object(Oid(4))), IsOk());
  auto forking = store().Begin({});
  ASSERT_THAT((*forking)->ForkRepository(id_, GitStore::Path("fork"), {}), IsOk());
  DeleteRef("refs/heads/topic");
  auto repack = StageRepack(id_);
  ASSERT_TRUE((*forking)->Commit().committed());
  EXPECT_THAT(repack->Commit().status, StatusIs(StatusCode::kAborted));
  forking->reset();
  repack.reset();

  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId fork, txn.OpenRepository(GitStore::Path("fork")));
    return txn.DeleteRepository(fork);
  }), IsOk());
  // The other way round: what the fork begins with is gone.
  ASSERT_THAT(SetRef(id_, "refs/heads/topic", refs::RefValue::Object(Oid(4))), IsOk());
  forking = store().Begin({});
  ASSERT_THAT((*forking)->ForkRepository(id_, GitStore::Path("second"), {}), IsOk());
  DeleteRef("refs/heads/topic");
  RepackNow();
  forking->reset();
  ExpectSoundAtRest();
}

TEST_P(RepackTest, AMemberThatGivesUpAndAPoolThatRemovesMeetEachOther) {
  LeaveBehind();
  const RepositoryId pool = Pool(id_, "pool");
  // Both have c3 and c4; the member by its own packs, and c4 under a ref now.
  ASSERT_THAT(SetRef(id_, "refs/heads/topic", refs::RefValue::Object(Oid(4))), IsOk());
  auto giving_up = StageRepack(id_);
  auto removing = StageRepack(pool);
  ASSERT_TRUE(giving_up->Commit().committed());
  EXPECT_THAT(removing->Commit().status, StatusIs(StatusCode::kAborted));
  giving_up.reset();
  removing.reset();
  EXPECT_TRUE(Exists(4));
  ExpectSoundAtRest({pool});
}

TEST_P(RepackTest, APoolThatRemovesFirstLeavesTheMemberItsOwn) {
  LeaveBehind();
  const RepositoryId pool = Pool(id_, "pool");
  auto giving_up = StageRepack(id_);
  const auto removed = TryRepack(pool);
  ASSERT_THAT(removed, IsOk());
  EXPECT_GT(removed->removed, 0);
  EXPECT_THAT(giving_up->Commit().status, StatusIs(StatusCode::kAborted));
  giving_up.reset();
  ExpectSoundAtRest({pool});
}

TEST_P(RepackTest, AnObjectThatWasAskedForIsThereWhenTheAnswerCounts) {
  LeaveBehind();
  auto asking = store().Begin({});
  ASSERT_TRUE(*(*asking)->ObjectExists(id_, Oid(4)));
  ASSERT_THAT((*asking)->PutKey(KeySpace::OfStore(), "c4", "there"), IsOk());
  RepackNow();
  EXPECT_THAT((*asking)->Commit().status, StatusIs(StatusCode::kAborted));
  asking->reset();
}

// C052
TEST_P(RepackTest, TellsWhatStandsInTheWay) {
  git().Run("touch " + GitStore::Directory(id_) + "/objects/pack/pack-x.keep");
  EXPECT_THAT(TryRepack(id_), StatusIs(StatusCode::kFailedPrecondition));
  git().Run("rm " + GitStore::Directory(id_) + "/objects/pack/pack-x.keep");
  git().Run("cd " + GitStore::Directory(id_) + " && echo loose | git hash-object -w --stdin");
  EXPECT_THAT(TryRepack(id_), StatusIs(StatusCode::kFailedPrecondition));
  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const PackMerge merge, txn.MergePacks(id_, {}));
    EXPECT_EQ(merge.loose_objects, 1);
    return absl::OkStatus();
  }), IsOk());
}

// A6
TEST_P(RepackTest, ItsEntryIsRedoneAndItsRemovalHoldsAfterACrash) {
  LeaveBehind();
  auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(snapshot, IsOk());
  RepackNow();
  // A copy as a crash would leave it, with the removed packs at their places.
  git().Run("cp -a store copy && rm -f copy/LOCK");
  snapshot->reset();
  auto opened = Store::Open(git().path() + "/copy", GitStore::Options());
  ASSERT_THAT(opened, IsOk());
  EXPECT_FALSE(*(*(*opened)->Begin({}))->ObjectExists(id_, Oid(4)));
  ASSERT_THAT((*opened)->RunBackgroundWork(), IsOk());
  EXPECT_EQ((*opened)->Metrics().packs_condemned, 0);
  EXPECT_THAT((*opened)->Close(), IsOk());
  world_.Close();
  git().Run("rm -rf store && mv copy store");
  EXPECT_EQ(world_.Fsck(id_), "");
  EXPECT_EQ(git().Run("git -C " + GitStore::Directory(id_) + " cat-file -e " + commits_[4] + " && echo there || echo gone"),
            "gone\n");
}

// B10: rounds that move on are not enough when writes come faster than a round; then it has a turn.
TEST_P(RepackTest, ARemovalEndsHoweverManyWriteMeanwhile) {
  if (!GitStore::Options().intent_queue) GTEST_SKIP() << "without the intent queue it may have to be run again";
  LeaveBehind();
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (int n = 0; !is_over.load(); ++n) {
        EXPECT_THAT(SetRef(id_, absl::StrCat("refs/heads/w", writer), refs::RefValue::Object(Oid(n % 3))), IsOk());
        written.fetch_add(1);
      }
    });
  }
  while (written.load() < 10) std::this_thread::yield();
  const auto repack = TryRepack(id_);
  const int64_t at_commit = written.load();
  while (written.load() < at_commit + 10) std::this_thread::yield();
  is_over = true;
  for (std::thread& writer : writers) writer.join();
  ASSERT_THAT(repack, IsOk());
  EXPECT_EQ(repack->removed, 8);
  ExpectSoundAtRest();
}

// The same pack comes again, byte for byte, as a push: what it holds is of now, not of the times that lie beside it.
TEST_P(RepackTest, ACruftPackThatIsPushedAgainIsYoung) {
  LeaveBehind();
  git().Run("touch -d '2 days ago' " + GitStore::Directory(id_) + "/objects/pack/*");
  EXPECT_EQ(RepackNow(absl::Now() - absl::Hours(72)).cruft, 8);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  std::string stem(absl::StripAsciiWhitespace(
      git().Run("cd " + GitStore::Directory(id_) + "/objects/pack && basename *.mtimes .mtimes")));
  const auto bytes = [&](const char* suffix) {
    return git().Read(GitStore::Directory(id_) + "/objects/pack/" + stem + suffix);
  };
  BeginOptions begin;
  begin.transaction_id = store().NewTransactionId();
  {
    auto staging = store().StageObjects(begin.transaction_id, GitStore::Path("r"), GetParam());
    ASSERT_THAT(staging, IsOk());
    auto& staged = dynamic_cast<StagedObjects&>(**staging);
    ASSERT_THAT(staged.StageIndexedPack(stem, bytes(".pack"), bytes(".idx"), bytes(".rev")), IsOk());
    auto again = store().Begin(begin);
    ASSERT_THAT((*again)->AddPack(id_, *staging), IsOk());
    ASSERT_TRUE((*again)->Commit().committed());
  }
  EXPECT_EQ(Files("*.mtimes", id_), "0\n");
  EXPECT_EQ(RepackNow(absl::Now() - absl::Hours(24)).removed, 0);
  EXPECT_TRUE(Exists(4));
  ExpectSoundAtRest();
}

// A11, C070: who borrows commits in a partition of his own, and is met there.
TEST_P(RepackTest, ABorrowerInAnotherPartitionIsMetInEitherOrder) {
  LeaveBehind();
  const RepositoryId member = world_.Create("member");
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.LinkAlternate(member, id_); }), IsOk());
  Pushing push = Stage(5, 4, "member");
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new", "member"), IsOk());
  auto repack = StageRepack(id_);
  ASSERT_TRUE(push.transaction->Commit().committed());
  EXPECT_THAT(repack->Commit().status, StatusIs(StatusCode::kAborted));
  repack.reset();
  push = Pushing();
  EXPECT_EQ(RepackNow().removed, 0);
  ASSERT_THAT(SetRef(member, "refs/heads/new", refs::RefValue::Absent()), IsOk());
  ASSERT_EQ(TryRepack(member)->removed, 4);

  push = Stage(5, 4, "member");
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new", "member"), IsOk());
  EXPECT_EQ(RepackNow().removed, 8);
  EXPECT_THAT(push.transaction->Commit().status, StatusIs(StatusCode::kFailedPrecondition));
  push = Pushing();
  ExpectSoundAtRest({member});
}

// The removal may be forgotten by the conflict history before the push comes to its commit.
TEST_P(RepackTest, APushThatTakesLongMeetsARemovalOfLongAgo) {
  LeaveBehind();
  Pushing push = Stage(5, 4);
  EXPECT_EQ(RepackNow().removed, 8);
  for (int n = 0; n < 40; ++n) {
    ASSERT_THAT(SetRef(id_, "refs/heads/busy", refs::RefValue::Object(Oid(n % 3))), IsOk());
    if (n % 10 == 0) {
      ASSERT_THAT(store().RunBackgroundWork(), IsOk());
    }
  }
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  EXPECT_THAT(push.transaction->Commit().status, StatusIs(StatusCode::kFailedPrecondition));
  push = Pushing();
  ExpectSoundAtRest();
}

// RP-13
TEST_P(RepackTest, AnEmptyRepositoryHasNothingToPack) {
  const RepositoryId empty = world_.Create("empty");
  const uint64_t before = store().committed_lsn().value();
  const auto repack = TryRepack(empty);
  ASSERT_THAT(repack, IsOk());
  EXPECT_EQ(repack->packs_after, 0);
  EXPECT_EQ(store().committed_lsn().value(), before);
}

// RP-12, RP-14, RP-15, RP-18
TEST_P(RepackTest, PacksAgainWhatCameSince) {
  RepackNow();
  for (int n = 3; n < 6; ++n) Push(n, "refs/heads/main", n - 1);
  Push(7, "refs/heads/topic", 5);
  DeleteRef("refs/heads/topic");
  const Repack second = RepackNow();
  EXPECT_EQ(second.packs_before, 5);
  EXPECT_EQ(second.packs_after, 1);
  EXPECT_EQ(second.reachable, 24);
  EXPECT_EQ(second.removed, 8);
  Push(6, "refs/heads/main", 5);
  EXPECT_TRUE(Exists(6));
  ExpectSoundAtRest();
}

// The packs that it knew of were merged after its snapshot, and the merged one is too young for it.
TEST_P(RepackTest, ARepackThatFindsItsPacksMergedBeginsAnew) {
  Push(4, "refs/heads/main", 2);
  auto repack = store().Begin({});
  ASSERT_THAT((*repack)->OpenRepository(GitStore::Path("r")), IsOk());
  const auto merge = [&] {
    return world_.Do([&](Transaction& txn) { return txn.MergePacks(id_, {.all = true}).status(); });
  };
  ASSERT_THAT(merge(), IsOk());
  EXPECT_THAT((*repack)->RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}), StatusIs(StatusCode::kAborted));
  EXPECT_THAT((*repack)->MergePacks(id_, {.all = true}), StatusIs(StatusCode::kAborted));
  repack->reset();
  Push(5, "refs/heads/main", 4);
  int plays = 0;
  EXPECT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
    if (plays++ == 0) {
      EXPECT_THAT(merge(), IsOk());
    }
    return txn.RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}).status();
  }), IsOk());
  EXPECT_EQ(plays, 2);
  ExpectSoundAtRest();
}

TEST_P(RepackTest, ATransactionDoesNotRemoveWhatItNames) {
  LeaveBehind();
  auto both = StageRepack(id_);
  ASSERT_THAT(both->UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/back"), .value = refs::RefValue::Object(Oid(4))}),
              IsOk());
  EXPECT_THAT(both->MergePacks(id_, {}), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(both->Commit().status, StatusIs(StatusCode::kFailedPrecondition));
  both.reset();
  EXPECT_TRUE(Exists(4));
}

// Taken in while the pool that it borrows from loses what its unreachable objects name.
TEST_P(RepackTest, AnAdoptedBorrowerIsLookedAtWithItsLooseObjects) {
  LeaveBehind();
  const auto adopt_beside = [&](const std::string& name) {
    git().Run("git clone -q --bare --shared " + GitStore::Directory(id_) + " store/" + name + " && cd store/" + name +
              " && echo ../../" + GitStore::Directory(id_).substr(6) + "/objects > objects/info/alternates && " +
              "git config --remove-section remote.origin && git -c user.name=a -c user.email=a@b commit-tree -p " + commits_[4] +
              " -m loose " + commits_[2] + "^{tree}");
  };
  ASSERT_THAT(store().Materialize(), IsOk());
  adopt_beside("one.git");
  auto repack = StageRepack(id_);
  ASSERT_THAT(store().Adopt("one.git", GitStore::Path("one"), {}), IsOk());
  EXPECT_THAT(repack->Commit().status, StatusIs(StatusCode::kAborted));
  repack.reset();
  EXPECT_EQ(RepackNow().removed, 0);
  ExpectSoundAtRest();
}

// RP-29
TEST_P(RepackTest, OfTwoRepacksOneWins) {
  LeaveBehind();
  auto first = StageRepack(id_), second = StageRepack(id_);
  EXPECT_TRUE(first->Commit().committed());
  EXPECT_THAT(second->Commit().status, StatusIs(StatusCode::kAborted));
  first.reset();
  second.reset();
  ExpectSoundAtRest();
}

// RP-30, C046: what has nothing to do with each other goes on side by side.
TEST_P(RepackTest, UnrelatedTasksCommitSideBySide) {
  for (int n = 0; n < 8; ++n) ASSERT_THAT(SetRef(id_, absl::StrCat("refs/tags/t", n), refs::RefValue::Object(Oid(n % 3))), IsOk());
  auto repack = StageRepack(id_);
  auto packed = store().RunHousekeeping(GitStore::Path("r"), {.tasks = {HousekeepingTask::kPackRefs}});
  ASSERT_THAT(packed, IsOk());
  EXPECT_EQ(packed->front().refs_packed, 9);
  auto indexes = store().Begin({});
  ASSERT_THAT((*indexes)->PutFile(id_, "description", {.content = "side by side"}), IsOk());
  EXPECT_TRUE((*indexes)->Commit().committed());
  EXPECT_TRUE(repack->Commit().committed());
  repack.reset();
  indexes->reset();
  ExpectSoundAtRest();
}

// C056: what tells of commits goes with them.
TEST_P(RepackTest, ACommitGraphGoesWithTheCommitsThatItTellsOf) {
  Push(4, "refs/heads/topic", 2);
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.WriteDerivedIndexes(id_).status(); }), IsOk());
  DeleteRef("refs/heads/topic");
  EXPECT_EQ(RepackNow().removed, 8);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  world_.Close();
  EXPECT_EQ(git().Run("ls " + GitStore::Directory(id_) + "/objects/info/commit-graphs 2>/dev/null | wc -l"), "0\n");
  EXPECT_EQ(world_.Fsck(id_), "");
  world_.Open();
  // And one that is being written while they go is not believed.
  Push(4, "refs/heads/topic", 2);
  auto writing = store().Begin({});
  ASSERT_THAT((*writing)->WriteDerivedIndexes(id_), IsOk());
  DeleteRef("refs/heads/topic");
  RepackNow();
  EXPECT_THAT((*writing)->Commit().status, StatusIs(StatusCode::kAborted));
  writing->reset();
  ExpectSoundAtRest();
}

// A push of objects that are there unreachable, and their removal, let go by a barrier: the push is in with all its objects, or
// is told to resend.
TEST_P(RepackTest, NoRaceOfAPushWithTheRemovalOfWhatItNamesIsAcceptedAndBroken) {
  const char* const asked = std::getenv("REPOTXN_PRUNE_RACES");
  const int races = asked != nullptr ? std::atoi(asked) : 12;
  int went_in = 0, resent = 0, removals = 0;
  for (int race = 0; race < races; ++race) {
    LeaveBehind();
    Pushing push = Stage(5, 4);
    const std::string ref = "refs/heads/new";
    // Staged beforehand in one half of the races, so that both orders of the commits come up, and the overlap of the bodies.
    std::unique_ptr<Transaction> staged = race % 2 == 0 ? StageRepack(id_) : nullptr;
    ASSERT_THAT(Begin(&push, 5, ref), IsOk());
    std::atomic<int> waiting{2};
    const auto meet = [&waiting] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
    };
    absl::Status pushed, removed;
    std::thread remover([&] {
      meet();
      removed = staged != nullptr ? staged->Commit().status : TryRepack(id_).status();
    });
    meet();
    pushed = push.transaction->Commit().status;
    remover.join();
    if (pushed.ok()) {
      ++went_in;
      EXPECT_TRUE(Exists(4)) << race;
      EXPECT_TRUE(Exists(5)) << race;
    } else {
      ++resent;
      EXPECT_THAT(pushed, StatusIs(StatusCode::kFailedPrecondition)) << race;
      EXPECT_FALSE(Exists(4)) << race;
    }
    if (removed.ok()) {
      ++removals;
    } else {
      EXPECT_THAT(removed, StatusIs(StatusCode::kAborted)) << race;
    }
    staged.reset();
    push = Pushing();
    if (pushed.ok()) DeleteRef(ref);
    if (race % 50 == 0) ExpectSoundAtRest();
    RepackNow();
    ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  }
  RecordProperty("went_in", went_in);
  RecordProperty("resent", resent);
  RecordProperty("removals", removals);
  if (races >= 100) {
    EXPECT_GT(went_in, 0);
    EXPECT_GT(resent, 0);
  }
  ExpectSoundAtRest();
}

}  // namespace
}  // namespace repotxn::txn
