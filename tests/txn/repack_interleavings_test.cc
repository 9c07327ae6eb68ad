// Goal: whatever order staging, pushes, links, unlinks, deepening, crashes and removals of objects come in, nothing that was
// acknowledged misses an object. Each test was a fault once, or was tried to be one; stock Git judges at rest.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
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

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using repotxn::testing::GitStore;
using repotxn::testing::RepackWorld;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

class RepackInterleavingTest : public RepackWorld {
 protected:
  void CreateLike(const std::string& path) {
    ASSERT_FALSE(world_.Create(path).IsZero());
    Push(2, "refs/heads/main", -1, path);
  }
};
INSTANTIATE_TEST_SUITE_P(BothFormats, RepackInterleavingTest, ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

// staged while r borrows from its pool; the link is gone when the transaction begins.
TEST_P(RepackInterleavingTest, StagedBeforeUnlinkBegunAfter) {
  LeaveBehind();
  const RepositoryId fork = Fork(id_, "fork");
  Pushing push = Stage(5, 4, "fork");  // c4 is in r alone
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(fork, id_); }), IsOk());
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new", "fork"), IsOk());
  const CommitResult result = push.transaction->Commit();
  EXPECT_FALSE(result.committed()) << "accepted, and c4 is " << (Exists(4, "fork") ? "there" : "missing");
  push = Pushing();
  ExpectSoundAtRest({fork});
}

// another repository stands at the path when the transaction begins.
TEST_P(RepackInterleavingTest, StagedForAnotherRepositoryAtThePath) {
  LeaveBehind();
  Pushing push = Stage(5, 4, "r");
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.MoveRepository(id_, GitStore::Path("moved")); }), IsOk());
  CreateLike("r");
  RepositoryId second;
  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(second, txn.OpenRepository(GitStore::Path("r")));
    return absl::OkStatus();
  }), IsOk());
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new", "r"), IsOk());
  const CommitResult result = push.transaction->Commit();
  EXPECT_FALSE(result.committed()) << "accepted, and c4 is " << (Exists(4, "r") ? "there" : "missing");
  push = Pushing();
  ExpectSoundAtRest({second});
}

// three levels: r <- middle <- top; middle unlinks from r, top names what r alone has.
TEST_P(RepackInterleavingTest, UnlinkInTheMiddleOfAChain) {
  LeaveBehind();
  RepositoryId middle, top;
  middle = Fork(id_, "middle");
  top = Fork(middle, "top");
  Push(5, "refs/heads/x", 4, "top");
  const absl::Status unlinked = world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(middle, id_); });
  EXPECT_TRUE(Exists(4, "top")) << unlinked;
  ExpectSoundAtRest({middle, top});
}

// the same with no push at all: top has the refs, middle has lost them.
TEST_P(RepackInterleavingTest, UnlinkInTheMiddleOfAChainOnlyRefs) {
  Push(4, "refs/heads/topic", 2);
  RepositoryId middle, top;
  middle = Fork(id_, "middle");
  top = Fork(middle, "top");
  ASSERT_THAT(SetRef(middle, "refs/heads/topic", refs::RefValue::Absent()), IsOk());
  const absl::Status unlinked = world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(middle, id_); });
  EXPECT_TRUE(Exists(4, "top")) << unlinked;
  ExpectSoundAtRest({middle, top});
}

// a detached HEAD is the only one that names it.
TEST_P(RepackInterleavingTest, UnlinkWithDetachedHead) {
  Push(4, "refs/heads/topic", 2);
  const RepositoryId fork = Fork(id_, "fork");
  const absl::Status detached = world_.Do([&](Transaction& txn) {
    refs::RefUpdate update{.name = refs::RefName::Head(), .value = refs::RefValue::Object(Oid(4))};
    update.no_deref = true;
    return txn.UpdateRef(fork, update);
  });
  ASSERT_THAT(detached, IsOk());
  ASSERT_THAT(SetRef(fork, "refs/heads/topic", refs::RefValue::Absent()), IsOk());
  const absl::Status unlinked = world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(fork, id_); });
  EXPECT_TRUE(Exists(4, "fork")) << unlinked;
  ExpectSoundAtRest({fork});
}

// a ref of the same transaction.
TEST_P(RepackInterleavingTest, OwnRefBeforeRepack) {
  LeaveBehind();
  const absl::Status done = world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/back"),
                                                .value = refs::RefValue::Object(Oid(4))}));
    return txn.RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}).status();
  });
  EXPECT_THAT(done, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Exists(4));
  ExpectSoundAtRest();
}
TEST_P(RepackInterleavingTest, OwnRefAfterRepack) {
  LeaveBehind();
  const absl::Status done = world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}).status());
    return txn.UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/back"),
                               .value = refs::RefValue::Object(Oid(4))});
  });
  EXPECT_THAT(done, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Exists(4));
  ExpectSoundAtRest();
}
// a fork of the same transaction begins with what the transaction removes.
TEST_P(RepackInterleavingTest, OwnForkBesideRepack) {
  Push(4, "refs/heads/topic", 2);
  auto transaction = store().Begin({});
  RepositoryId fork;
  auto forked = (*transaction)->ForkRepository(id_, GitStore::Path("fork"), {});
  ASSERT_THAT(forked, IsOk());
  fork = *forked;
  LeaveBehind();
  ASSERT_THAT((*transaction)->RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}), IsOk());
  const CommitResult result = (*transaction)->Commit();
  transaction->reset();
  if (result.committed()) {
    EXPECT_TRUE(Exists(4, "fork"));
    ExpectSoundAtRest({fork});
  }
}

// a member gives up and its pool removes, both in one transaction.
TEST_P(RepackInterleavingTest, MemberAndPoolRepackedInOneTransaction) {
  LeaveBehind();
  const RepositoryId pool = Pool(id_, "pool");
  ASSERT_THAT(SetRef(id_, "refs/heads/topic", refs::RefValue::Object(Oid(4))), IsOk());
  const absl::Status done = world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.RepackObjects(id_, {.expire_before = absl::InfiniteFuture()}).status());
    return txn.RepackObjects(pool, {.expire_before = absl::InfiniteFuture()}).status();
  });
  EXPECT_THAT(done, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Exists(4));
  ExpectSoundAtRest({pool});
}

// a cruft pack and a pushed pack of one blob have one name; the list of old times stays beside what was pushed anew.
TEST_P(RepackInterleavingTest, PushedAgainUnderTheNameOfACruftPack) {
  git().Run("cd work && echo lone | git hash-object -w --stdin > ../lone");
  const ObjectId lone = git().Oid("cat lone");
  const auto push = [&] {
    const std::string pack = git().Run("git -C work pack-objects -q --stdout < lone");
    RunOptions run;
    run.begin.transaction_id = store().NewTransactionId();
    const auto staging = store().StageObjects(run.begin.transaction_id, GitStore::Path("r"), GetParam());
    ASSERT_THAT(staging, IsOk());
    ASSERT_THAT((*staging)->IndexPack(objects::TextSource(pack), {}), IsOk());
    ASSERT_THAT(store().Run(run, [&](Transaction& txn) -> absl::Status {
      REPOTXN_RETURN_IF_ERROR(txn.AddPack(id_, *staging));
      return txn.UpdateRef(id_, {.name = refs::RefName::Literal("refs/tags/lone"), .value = refs::RefValue::Object(lone)});
    }).status, IsOk());
  };
  push();
  git().Run("touch -d '2 days ago' " + GitStore::Directory(id_) + "/objects/pack/*");
  ASSERT_THAT(SetRef(id_, "refs/tags/lone", refs::RefValue::Absent()), IsOk());
  EXPECT_EQ(RepackNow(absl::Now() - absl::Hours(72)).cruft, 1);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  push();  // just now
  EXPECT_EQ(Files("*.mtimes", id_), "0\n");
  ASSERT_THAT(SetRef(id_, "refs/tags/lone", refs::RefValue::Absent()), IsOk());
  EXPECT_EQ(RepackNow(absl::Now() - absl::Hours(24)).removed, 0);
  ExpectSoundAtRest();
}

// A6: the removal is all that the log holds beyond the checkpoint; after the crash its packs still lie about.
TEST_P(RepackInterleavingTest, PushAfterACrashBetweenRemovalAndUnlink) {
  LeaveBehind();
  world_.Close();
  world_.Open();
  EXPECT_EQ(RepackNow().removed, 8);
  git().Run("cp -a store copy && rm -f copy/LOCK");
  world_.Close();
  git().Run("rm -rf store && mv copy store");
  world_.Open();
  Pushing push = Stage(5, 4);  // refused would be fine as well, but for the EXPECTs in it
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  const CommitResult result = push.transaction->Commit();
  EXPECT_THAT(result.status, StatusIs(StatusCode::kFailedPrecondition));
  push = Pushing();
  ExpectSoundAtRest();
}

// a member was shallow when the pool looked at it.
TEST_P(RepackInterleavingTest, MemberIsDeepenedWhileThePoolRemoves) {
  LeaveBehind();
  const RepositoryId fork = Fork(id_, "fork");
  ASSERT_THAT(world_.Do([&](Transaction& txn) {
    return txn.PutFile(fork, "shallow", {.content = commits_[5] + "\n"});
  }), IsOk());
  ASSERT_THAT(store().Materialize(), IsOk());
  git().Run("git clone -q --depth=1 --no-local file://$PWD/work part 2>/dev/null; git -C work branch at5 " + commits_[5] +
            "; rm -rf part; git clone -q --depth=1 -b at5 file://$PWD/work part");
  ASSERT_THAT(world_.Push("part", commits_[5], "fork", "refs/heads/x"), IsOk());
  auto repack = StageRepack(id_);
  // c4 is there, through the link.
  EXPECT_TRUE(Exists(4, "fork"));
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.RemoveFile(fork, "shallow"); }), IsOk());
  const CommitResult result = repack->Commit();
  repack.reset();
  EXPECT_TRUE(Exists(4, "fork")) << result.status;
  ExpectSoundAtRest({fork});
}

// the way of Store::Run: the first play loses to the unlink, the second one is accepted.
TEST_P(RepackInterleavingTest, ReplayedPastAnUnlink) {
  LeaveBehind();
  const RepositoryId fork = Fork(id_, "fork");
  Pushing push = Stage(5, 4, "fork");
  RunOptions run;
  run.begin = push.begin;
  int plays = 0;
  const CommitResult result = store().Run(run, [&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.AddPack(fork, push.staging));
    if (plays++ == 0) {
      EXPECT_THAT(world_.Do([&](Transaction& other) { return other.UnlinkAlternate(fork, id_); }), IsOk());
    }
    return txn.UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/new"), .value = refs::RefValue::Object(Oid(5))});
  });
  EXPECT_FALSE(result.committed()) << "plays " << plays;
  push = Pushing();
  ExpectSoundAtRest({fork});
}

// a pack that is pushed again under its own name is no longer one of an older snapshot.
TEST_P(RepackInterleavingTest, APackPushedAgainIsStillOneOfAnOlderSnapshot) {
  Push(4, "refs/heads/topic", 2);
  auto transaction = store().Begin({});
  ASSERT_THAT((*transaction)->OpenRepository(GitStore::Path("r")), IsOk());
  Push(4, "refs/heads/again", 2);
  const auto repack = (*transaction)->RepackObjects(id_, {.expire_before = absl::InfiniteFuture()});
  EXPECT_TRUE(repack.ok() || absl::IsAborted(repack.status())) << repack.status();
  transaction->reset();
  ExpectSoundAtRest();
}

// both orders of an unlink in the middle and a removal; and a tree of links of three levels.
TEST_P(RepackInterleavingTest, ThreeLevelsAndARemovalAtTheBottom) {
  LeaveBehind();
  RepositoryId middle, top;
  middle = Fork(id_, "middle");
  auto repack = StageRepack(id_);
  top = Fork(middle, "top");
  Push(5, "refs/heads/x", 4, "top");
  EXPECT_FALSE(repack->Commit().committed());
  repack.reset();
  EXPECT_EQ(RepackNow().removed, 0);
  ASSERT_THAT(SetRef(top, "refs/heads/x", refs::RefValue::Absent()), IsOk());
  Pushing push = Stage(6, 4, "top");
  ASSERT_THAT(Begin(&push, 6, "refs/heads/y", "top"), IsOk());
  ASSERT_EQ(TryRepack(top)->removed, 4);
  EXPECT_EQ(RepackNow().removed, 8);
  EXPECT_FALSE(push.transaction->Commit().committed());
  push = Pushing();
  ExpectSoundAtRest({middle, top});
}

// many commits in between, so that the removal is no longer in the history.
TEST_P(RepackInterleavingTest, ManyCommitsBetweenStagingAndCommit) {
  LeaveBehind();
  Pushing push = Stage(5, 4);
  EXPECT_EQ(RepackNow().removed, 8);
  for (int n = 0; n < 50; ++n) {
    ASSERT_THAT(SetRef(id_, absl::StrCat("refs/tags/t", n), refs::RefValue::Object(Oid(1))), IsOk());
    if (n % 5 == 0) {
      ASSERT_THAT(store().RunBackgroundWork(), IsOk());
    }
  }
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new"), IsOk());
  EXPECT_THAT(push.transaction->Commit().status, StatusIs(StatusCode::kFailedPrecondition));
  push = Pushing();
  ExpectSoundAtRest();
}

// a commit-graph that was written before the link tells of what the pool removes later.
TEST_P(RepackInterleavingTest, ACommitGraphFromBeforeTheLink) {
  Push(4, "refs/heads/topic", 2);
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.WriteDerivedIndexes(id_).status(); }), IsOk());
  DeleteRef("refs/heads/topic");
  const RepositoryId pool = Pool(id_, "pool");
  EXPECT_EQ(RepackNow().borrowed, 20);
  const auto removed = TryRepack(pool);
  ASSERT_THAT(removed, IsOk());
  EXPECT_EQ(removed->removed, 8);
  EXPECT_FALSE(Exists(4));
  ExpectSoundAtRest({pool});
  // What the pushed c5 names is gone, whatever the graph says.
  Pushing push;
  push.begin.transaction_id = store().NewTransactionId();
  const std::string pack = git().Run(absl::StrCat("printf '%s\\n^%s\\n' ", commits_[5], " ", commits_[4],
                                                  " | git -C work pack-objects -q --revs --stdout"));
  auto staging = store().StageObjects(push.begin.transaction_id, GitStore::Path("r"), GetParam());
  ASSERT_THAT(staging, IsOk());
  EXPECT_FALSE((*staging)->IndexPack(objects::TextSource(pack), {}).ok());
}

// Everything at once, in five repositories and two partitions, with a chain of three; pushes of two sorts, some of which are
// staged long before they commit. REPOTXN_REMOVAL_PUSHES asks for more.
TEST_P(RepackInterleavingTest, NothingThatWasAcknowledgedIsBrokenByManyAtOnce) {
  LeaveBehind();
  const RepositoryId pool = Pool(id_, "pool");
  const RepositoryId fork = Fork(pool, "fork"), top = Fork(fork, "top");
  const RepositoryId other = world_.Create("other");
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.LinkAlternate(other, pool); }), IsOk());
  const std::vector<RepositoryId> all = {id_, pool, fork, top, other};
  const std::vector<std::string> paths = {"r", "pool", "fork", "top", "other"};
  // c<n> whole, and what it has beyond c<n-1>.
  std::vector<std::string> whole(kCommits), thin(kCommits);
  for (size_t n = 3; n < kCommits; ++n) {
    const auto pack = [&](const std::string& known) {
      return git().Run(absl::StrCat("printf '%s\\n' ", commits_[n], known,
                                    " | git -C work pack-objects -q --revs --thin --stdout"));
    };
    whole[n] = pack("");
    thin[n] = pack(absl::StrCat(" ^", commits_[n - 1]));
  }
  struct Push {
    size_t which = 0;
    int n = 0;
    RunOptions run;
    std::shared_ptr<ObjectStaging> staging;
  };
  const auto commit = [&](const Push& push, unsigned* seed) {
    const refs::RefName ref = *refs::RefName::Parse(absl::StrCat("refs/heads/b", rand_r(seed) % 2));
    const absl::Status status = store()
                                    .Run(push.run,
                                         [&](Transaction& txn) -> absl::Status {
                                           REPOTXN_RETURN_IF_ERROR(txn.AddPack(all[push.which], push.staging));
                                           return txn.UpdateRef(all[push.which], {.name = ref, .value = refs::RefValue::Object(Oid(push.n))});
                                         })
                                    .status;
    EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status) || absl::IsAborted(status)) << status;
    if (rand_r(seed) % 8 == 0) return;
    const absl::Status deleted = world_.Do([&](Transaction& txn) {
      return txn.UpdateRef(all[push.which], {.name = ref, .value = refs::RefValue::Absent()});
    });
    EXPECT_TRUE(deleted.ok() || absl::IsAborted(deleted)) << deleted;
  };
  const char* const asked = std::getenv("REPOTXN_REMOVAL_PUSHES");
  const int pushes = asked != nullptr ? std::atoi(asked) : 20;
  std::atomic<int> pushing{3};
  const auto push_loop = [&](unsigned seed) {
    std::optional<Push> held;
    for (int i = 0; i < pushes; ++i) {
      Push push;
      push.which = static_cast<size_t>(rand_r(&seed)) % paths.size();
      push.n = 3 + rand_r(&seed) % (kCommits - 3);
      push.run.begin.transaction_id = store().NewTransactionId();
      auto staging = store().StageObjects(push.run.begin.transaction_id, GitStore::Path(paths[push.which]), GetParam());
      ASSERT_THAT(staging, IsOk());
      push.staging = *std::move(staging);
      const std::vector<std::string>& packs = rand_r(&seed) % 3 == 0 ? whole : thin;
      const absl::Status indexed =
          push.staging->IndexPack(objects::TextSource(packs[static_cast<size_t>(push.n)]), {});
      // What it builds on may be gone already.
      EXPECT_TRUE(indexed.ok() || absl::IsFailedPrecondition(indexed)) << indexed;
      if (!indexed.ok()) continue;
      if (!held) {
        held = std::move(push);
        continue;
      }
      commit(push, &seed);
      if (i % 3 == 0) {
        commit(*held, &seed);
        held.reset();
      }
    }
    if (held) commit(*held, &seed);
    held.reset();
    pushing.fetch_sub(1);
  };
  const auto remove_loop = [&](unsigned seed) {
    while (pushing.load() > 0) {
      const RepositoryId id = all[static_cast<size_t>(rand_r(&seed)) % all.size()];
      const int what = rand_r(&seed) % 8;
      absl::Status status;
      if (what == 0) {
        status = world_.Do([&](Transaction& txn) { return txn.MergePacks(id, {.all = true}).status(); });
      } else if (what == 1) {
        status = world_.Do([&](Transaction& txn) { return txn.WriteDerivedIndexes(id).status(); });
      } else {
        status = TryRepack(id, what == 2 ? absl::Now() - absl::Seconds(2) : absl::InfiniteFuture()).status();
      }
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) threads.emplace_back(push_loop, 17 + i);
  for (unsigned i = 0; i < 2; ++i) threads.emplace_back(remove_loop, 1000 + i);
  threads.emplace_back([&] {
    while (pushing.load() > 0) EXPECT_THAT(store().RunBackgroundWork(), IsOk());
  });
  for (std::thread& thread : threads) thread.join();
  ExpectSoundAtRest({pool, fork, top, other});
}

// the same through a link: nobody has opened the pool since.
TEST_P(RepackInterleavingTest, PushToAForkAfterACrashBetweenRemovalAndUnlink) {
  LeaveBehind();
  const RepositoryId fork = Fork(id_, "fork");
  world_.Close();
  world_.Open();
  EXPECT_EQ(RepackNow().removed, 8);
  git().Run("cp -a store copy && rm -f copy/LOCK");
  world_.Close();
  git().Run("rm -rf store && mv copy store");
  world_.Open();
  Pushing push = Stage(5, 4, "fork");
  ASSERT_THAT(Begin(&push, 5, "refs/heads/new", "fork"), IsOk());
  EXPECT_FALSE(push.transaction->Commit().committed());
  push = Pushing();
  ExpectSoundAtRest({fork});
}

// given up to a pool, and unlinked from it, in one transaction.
TEST_P(RepackInterleavingTest, GivenUpAndUnlinkedInOneTransaction) {
  const RepositoryId pool = Pool(id_, "pool");
  const absl::Status done = world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.RepackObjects(id_, {}).status());
    return txn.UnlinkAlternate(id_, pool);
  });
  EXPECT_TRUE(Exists(2)) << done;
  ExpectSoundAtRest({pool});
}

// the member is deep again when the pack comes, and its list of shallow commits on disk is of before.
TEST_P(RepackInterleavingTest, AShallowListThatIsNotWrittenYet) {
  LeaveBehind();
  // Names nothing else that is removed than c4.
  const std::string joint = std::string(absl::StripAsciiWhitespace(
      git().Run(absl::StrCat("git -C work commit-tree -m joint -p ", commits_[4], " ", commits_[2], "^{tree}"))));
  const RepositoryId fork = Fork(id_, "fork");
  ASSERT_THAT(world_.Do([&](Transaction& txn) {
    return txn.PutFile(fork, "shallow", {.content = joint + "\n"});
  }), IsOk());
  ASSERT_THAT(store().Materialize(), IsOk());
  auto repack = StageRepack(id_);
  // Nothing in it is cut off any more; and then a commit comes, which names c4 of the pool.
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.RemoveFile(fork, "shallow"); }), IsOk());
  ASSERT_THAT(world_.Push("work", joint, "fork", "refs/heads/x", absl::StrCat("^", commits_[4])), IsOk());
  const CommitResult result = repack->Commit();
  repack.reset();
  EXPECT_TRUE(Exists(4, "fork")) << result.status;
  ExpectSoundAtRest({fork});
}

// the member is removed, and what it names is of a repository two links below, which the one between leaves.
TEST_P(RepackInterleavingTest, UnlinkInTheMiddleBelowARemovedMember) {
  Push(4, "refs/heads/topic", 2);
  RepositoryId middle, top;
  middle = Fork(id_, "middle");
  top = Fork(middle, "top");
  ASSERT_THAT(SetRef(middle, "refs/heads/topic", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(top); }), IsOk());
  const absl::Status unlinked = world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(middle, id_); });
  const absl::Status back = world_.Do([&](Transaction& txn) { return txn.UndeleteRepository(top, GitStore::Path("top")); });
  if (back.ok()) {
    EXPECT_TRUE(Exists(4, "top")) << unlinked;
    ExpectSoundAtRest({middle, top});
  }
}

}  // namespace
}  // namespace repotxn::txn
