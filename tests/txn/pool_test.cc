// Pools, forks and unlinking with real packs, judged by stock Git.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/git_store.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using repotxn::testing::GitStore;
using repotxn::testing::IsOk;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;

class PoolTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  PoolTest() : world_(GetParam()) {
    git().Write("history", RandomHistory(7, 60));
    const absl::string_view format = ObjectFormatName(GetParam());
    git().Run(absl::StrCat("git init -q --bare -b main --object-format=", format, " source.git\n",
                           "cd source.git && git fast-import --quiet --done < ../history"));
  }
  testing::GitSandbox& git() { return world_.git(); }
  // Commits in the sandbox's source on top of `base`, with a new file, as branch `branch`.
  void Commit(const std::string& branch, const std::string& base) {
    git().Run("cd source.git && blob=$(echo " + branch + " | git hash-object -w --stdin) && tree=$(printf '100644 blob %s\\t" +
              branch + "\\n' $blob | git mktree) && commit=$(echo " + branch + " | git commit-tree -p " + base +
              " $tree) && git update-ref refs/heads/" + branch + " $commit");
  }
  absl::StatusOr<RepositoryId> Fork(const RepositoryId& source, const std::string& path) {
    RepositoryId id;
    const absl::Status status = world_.Do([&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.ForkRepository(source, GitStore::Path(path), {}));
      return absl::OkStatus();
    });
    return status.ok() ? absl::StatusOr<RepositoryId>(id) : status;
  }
  absl::Status Unlink(const RepositoryId& member, const RepositoryId& pool) {
    return world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(member, pool); });
  }

  GitStore world_;
};
INSTANTIATE_TEST_SUITE_P(BothFormats, PoolTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

// ALT-02, ALT-12, CORE-07
TEST_P(PoolTest, ForksShareTheirSourcesObjectsAndTakeNewOnesOfTheirOwn) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Push("source.git", "main", "source", "refs/heads/main"), IsOk());
  const auto fork = Fork(source, "fork");
  ASSERT_THAT(fork, IsOk());
  Commit("own", "main");
  ASSERT_THAT(world_.Push("source.git", "own", "fork", "refs/heads/own", "^main"), IsOk());
  // What the source has not is not there through the fork.
  EXPECT_FALSE(*(*world_.store().Begin({}))->ObjectExists(source, git().Oid("git -C source.git rev-parse own")));
  world_.Close();
  EXPECT_EQ(world_.Fsck(source), "");
  EXPECT_EQ(world_.Fsck(*fork), "");
  EXPECT_EQ(world_.RefsOf(*fork), git().Run("git -C source.git for-each-ref --format='%(refname) %(objectname)'"));
}

// ALT-04, ALT-07, A9 (c)
TEST_P(PoolTest, UnlinksAForkWithAllThatItsObjectsName) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Push("source.git", "main", "source", "refs/heads/main"), IsOk());
  const RepositoryId fork = *Fork(source, "fork");
  Commit("own", "main~5");
  ASSERT_THAT(world_.Push("source.git", "own", "fork", "refs/heads/own", "^main"), IsOk());
  // Only an unreachable object of the fork names this one.
  ASSERT_THAT(world_.Do([&](Transaction& txn) {
                return txn.UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/main"),
                                            .value = refs::RefValue::Absent()});
              }),
              StatusIs(StatusCode::kOk));
  ASSERT_THAT(Unlink(fork, source), IsOk());
  EXPECT_THAT(*(*world_.store().Begin({}))->Alternates(fork), IsEmpty());
  EXPECT_THAT(*(*world_.store().Begin({}))->Members(source), IsEmpty());
  // What it did not need is not there any more.
  const ObjectId main = git().Oid("git -C source.git rev-parse main");
  EXPECT_FALSE(*(*world_.store().Begin({}))->ObjectExists(fork, main));
  EXPECT_THAT(Unlink(fork, source), StatusIs(StatusCode::kNotFound));
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(source); }), IsOk());
  world_.Close();
  git().Run("rm -rf " + GitStore::Directory(source));  // nothing of it is needed
  EXPECT_EQ(world_.Fsck(fork), "");
  EXPECT_EQ(git().Run("git -C " + GitStore::Directory(fork) + " rev-list --objects --all | wc -l"),
            git().Run("git -C source.git rev-list --objects own | wc -l"));
}

TEST_P(PoolTest, UnlinksOneOfTwoPoolsAndKeepsTheOther) {
  world_.Create("a");
  world_.Create("b");
  Commit("extra", "main");
  ASSERT_THAT(world_.Push("source.git", "main", "a", "refs/heads/main"), IsOk());
  ASSERT_THAT(world_.Push("source.git", "extra", "b", "refs/heads/extra"), IsOk());
  const auto id = [&](const char* path) { return *(*world_.store().Begin({}))->OpenRepository(GitStore::Path(path)); };
  const RepositoryId member = world_.Create("m");
  for (const char* pool : {"a", "b"}) {
    ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.LinkAlternate(member, id(pool)); }), IsOk());
  }
  ASSERT_THAT(world_.Do([&](Transaction& txn) {
                return txn.UpdateRef(member, {.name = refs::RefName::Literal("refs/heads/extra"),
                                              .value = refs::RefValue::Object(git().Oid("git -C source.git rev-parse extra"))});
              }),
              IsOk());
  ASSERT_THAT(Unlink(member, id("b")), IsOk());
  EXPECT_THAT(*(*world_.store().Begin({}))->Alternates(member), ElementsAre(id("a")));
  world_.Close();
  EXPECT_EQ(world_.Fsck(member), "");
}

// A push that comes between the copying and the commit of an unlinking may name what was not copied: one of them loses.
// A9 (c), A11
TEST_P(PoolTest, NeverUnlinksPastAPushThatNamesWhatWasNotBroughtIn) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Push("source.git", "main", "source", "refs/heads/main"), IsOk());
  for (const bool with_pack : {true, false}) {
    const std::string path = with_pack ? "f1" : "f2";
    const RepositoryId fork = *Fork(source, path);
    ASSERT_THAT(world_.Do([&](Transaction& txn) {
                  return txn.UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/main"),
                                              .value = refs::RefValue::Absent()});
                }),
                IsOk());
    auto unlink = world_.store().Begin({});
    ASSERT_THAT(unlink, IsOk());
    ASSERT_THAT((*unlink)->UnlinkAlternate(fork, source), IsOk());
    if (with_pack) {
      Commit("late", "main");
      ASSERT_THAT(world_.Push("source.git", "late", path, "refs/heads/late", "^main"), IsOk());
    } else {
      ASSERT_THAT(world_.Do([&](Transaction& txn) {
                    return txn.UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/late"),
                                                .value = refs::RefValue::Object(git().Oid("git -C source.git rev-parse main"))});
                  }),
                  IsOk());
    }
    EXPECT_THAT((*unlink)->Commit().status, StatusIs(StatusCode::kAborted));
    unlink->reset();
    // The other order: the push loses, since its chain of alternates changed.
    auto push = world_.store().Begin({});
    ASSERT_THAT((*push)->UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/later"),
                                          .value = refs::RefValue::Object(git().Oid("git -C source.git rev-parse main~3"))}),
                IsOk());
    ASSERT_THAT(Unlink(fork, source), IsOk());
    EXPECT_THAT((*push)->Commit().status, StatusIs(StatusCode::kAborted));
    push->reset();
    ASSERT_THAT(world_.store().Materialize(), IsOk());
    EXPECT_EQ(world_.Fsck(fork), "");
  }
}

TEST_P(PoolTest, MakesAPoolOfAMemberByLinkingItsPacks) {
  const RepositoryId member = world_.Create("member");
  Commit("second", "main");
  ASSERT_THAT(world_.Push("source.git", "main", "member", "refs/heads/main"), IsOk());
  ASSERT_THAT(world_.Push("source.git", "second", "member", "refs/heads/second", "^main"), IsOk());
  RepositoryId pool;
  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_ASSIGN_OR_RETURN(pool, txn.CreatePool(member, GitStore::Path("pools/p")));
                return absl::OkStatus();
              }),
              IsOk());
  EXPECT_THAT(*(*world_.store().Begin({}))->Members(pool), ElementsAre(member));
  const RepositoryId fork = *Fork(pool, "fork");
  ASSERT_THAT(world_.Do([&](Transaction& txn) {
                return txn.UpdateRef(fork, {.name = refs::RefName::Literal("refs/heads/main"),
                                            .value = refs::RefValue::Object(git().Oid("git -C source.git rev-parse second"))});
              }),
              IsOk());
  EXPECT_THAT(world_.Do([&](Transaction& txn) { return txn.CreatePool(fork, GitStore::Path("pools/q")).status(); }),
              StatusIs(StatusCode::kFailedPrecondition));
  world_.Close();
  EXPECT_EQ(world_.Fsck(pool), "");
  EXPECT_EQ(world_.Fsck(member), "");
  EXPECT_EQ(world_.Fsck(fork), "");
  EXPECT_EQ(world_.RefsOf(pool), "");
  // Linked, not copied: every pack of the pool is the member's file.
  EXPECT_EQ(git().Run("for p in " + GitStore::Directory(pool) + "/objects/pack/*.pack; do cmp -s $p " +
                      GitStore::Directory(member) + "/objects/pack/$(basename $p) && stat -c %h $p; done | sort -u | wc -l"),
            "1\n");
}

// Under load: pushes to every fork of a network while one member leaves it again and again.
// A9 (c), C063
TEST(ForkNetworkTest, OneMemberLeavesWhileTheOthersArePushedTo) {
  GitStore world;
  testing::GitSandbox& git = world.git();
  git.Write("history", RandomHistory(11, 30));
  git.Run("git init -q --bare -b main source.git && cd source.git && git fast-import --quiet --done < ../history");
  const RepositoryId pool = world.Create("pool");
  ASSERT_THAT(world.Push("source.git", "main", "pool", "refs/heads/main"), IsOk());
  constexpr int kForks = 6;
  std::vector<RepositoryId> forks;
  for (int i = 0; i < kForks; ++i) {
    ASSERT_THAT(world.Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id,
                                           txn.ForkRepository(pool, GitStore::Path(absl::StrCat("f", i)), {}));
                  forks.push_back(id);
                  return absl::OkStatus();
                }),
                IsOk());
  }
  std::vector<ObjectId> commits;
  for (int i = 0; i < 20; ++i) commits.push_back(git.Oid(absl::StrCat("git -C source.git rev-parse main~", i)));
  std::atomic<bool> is_over{false};
  std::atomic<int> pushed{0};
  std::vector<std::thread> pushers;
  // Into the one that leaves as well: its pushers let it have its turn (locks/intent_queue.h). Without that it would lose
  // for as long as they go on.
  for (int i = GitStore::Options().intent_queue ? 0 : 1; i < kForks; ++i) {
    pushers.emplace_back([&, i] {
      for (size_t n = 0; !is_over; ++n) {
        const absl::Status status = world.Do([&](Transaction& txn) {
          return txn.UpdateRef(forks[static_cast<size_t>(i)],
                               {.name = refs::RefName::Literal("refs/heads/moving"),
                                .value = refs::RefValue::Object(commits[n % commits.size()])});
        });
        EXPECT_THAT(status, IsOk());
        ++pushed;
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    const auto do_often = [&](absl::FunctionRef<absl::Status(Transaction&)> body) {
      return world.store().Run({.begin = {}, .retries_max = 20}, body).status;
    };
    EXPECT_THAT(do_often([&](Transaction& txn) { return txn.UnlinkAlternate(forks[0], pool); }), IsOk());
    EXPECT_THAT(do_often([&](Transaction& txn) { return txn.LinkAlternate(forks[0], pool); }), IsOk());
  }
  is_over = true;
  for (std::thread& pusher : pushers) pusher.join();
  EXPECT_GT(pushed.load(), 0);
  EXPECT_THAT(world.Do([&](Transaction& txn) { return txn.DeleteRepository(pool); }),
              StatusIs(StatusCode::kFailedPrecondition));
  world.Close();
  for (const RepositoryId& fork : forks) EXPECT_EQ(world.Fsck(fork), "");
}

int FromEnvironment(const char* name, int otherwise) {
  int value = otherwise;
  if (const char* text = std::getenv(name)) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &value));
  }
  return value;
}

// A network of forks over one pool. In full: REPOTXN_FORKS=500 REPOTXN_POOL_COMMITS=33334 (three objects a commit); the
// time of a fork is printed, its space is judged.
TEST(ForkNetworkTest, EachForkTakesLittleSpaceWhateverThePoolHolds) {
  const int forks = FromEnvironment("REPOTXN_FORKS", 30);
  const int pool_commits = FromEnvironment("REPOTXN_POOL_COMMITS", 300);
  GitStore world;
  testing::GitSandbox& git = world.git();
  git.Run(absl::StrCat(
      "git init -q --bare -b main source.git\n"
      "awk 'BEGIN { for (i = 1; i <= ", pool_commits, "; ++i) { printf \"commit refs/heads/main\\ncommitter C <c@example.org> %d +0000\\n"
      "data 2\\nc\\n", "M 100644 inline d%d/f%d\\ndata 8\\n%07d\\n\", 1700000000 + i, i % 50, i % 1000, i } }' > history\n"
      "cd source.git && git fast-import --quiet < ../history"));
  const RepositoryId pool = world.Create("pool");
  ASSERT_THAT(world.Push("source.git", "main", "pool", "refs/heads/main"), IsOk());
  ASSERT_THAT(world.store().Checkpoint(), IsOk());
  const auto blocks = [&] { return std::stoll(git.Run("du -s --block-size=1 store/repositories | cut -f1")); };
  const int64_t before = blocks();
  std::vector<RepositoryId> members;
  std::vector<double> milliseconds;
  for (int i = 0; i < forks; ++i) {
    const absl::Time begun = absl::Now();
    ASSERT_THAT(world.Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id,
                                           txn.ForkRepository(pool, GitStore::Path(absl::StrCat("forks/f", i)), {}));
                  members.push_back(id);
                  return absl::OkStatus();
                }),
                IsOk());
    milliseconds.push_back(absl::ToDoubleMilliseconds(absl::Now() - begun));
  }
  ASSERT_THAT(world.store().Checkpoint(), IsOk());
  const int64_t growth = (blocks() - before) / forks;
  EXPECT_LT(growth, 64 << 10);
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("fork: median %.2f ms, slowest %.2f ms; %lld bytes each\n", milliseconds[milliseconds.size() / 2],
              milliseconds.back(), static_cast<long long>(growth));
  EXPECT_THAT(world.Do([&](Transaction& txn) { return txn.DeleteRepository(pool); }),
              StatusIs(StatusCode::kFailedPrecondition));
  const ObjectId older = git.Oid("git -C source.git rev-parse main~1");
  std::atomic<bool> is_over{false};
  std::vector<std::thread> pushers;
  for (int i = 1; i < 3; ++i) {
    pushers.emplace_back([&, i] {
      while (!is_over) {
        EXPECT_THAT(world.Do([&](Transaction& txn) {
                      return txn.UpdateRef(members[static_cast<size_t>(i)],
                                           {.name = refs::RefName::Literal("refs/heads/moving"),
                                            .value = refs::RefValue::Object(older)});
                    }),
                    IsOk());
      }
    });
  }
  EXPECT_THAT(world.Do([&](Transaction& txn) { return txn.UnlinkAlternate(members[0], pool); }), IsOk());
  is_over = true;
  for (std::thread& pusher : pushers) pusher.join();
  world.Close();
  const std::string objects = git.Run("git -C source.git rev-list --objects --all | wc -l");
  EXPECT_EQ(world.Fsck(pool), "");
  for (size_t i = 0; i < members.size(); ++i) {
    if (i >= 3 && i % 50 != 0) {
      EXPECT_EQ(world.Fsck(members[i], "--connectivity-only"), "");
      continue;
    }
    EXPECT_EQ(world.Fsck(members[i]), "");
    EXPECT_EQ(git.Run("git -C " + GitStore::Directory(members[i]) + " rev-list --objects --all | wc -l"), objects);
  }
}

}  // namespace
}  // namespace repotxn::txn
