// Goal: packing of refs beside ref writes, as the peer's scenarios have it, with the outcomes that this store has on purpose: a
// write never loses to a packing, in neither order, and a packing only to the repository's own change.
#include <functional>
#include <memory>
#include <string>

#include "tests/support/hooked_random.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using txn::CommitResult;
using txn::HousekeepingTask;
using txn::TaskOutcome;
using txn::TaskResult;
using txn::Transaction;

class PackRefsScenarioTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.OpenIn({&world_.fs(), &world_.clock(), &random_}, World::Options()), IsOk());
    id_ = world_.Create("r");
    for (const char* const name : {"refs/heads/main", "refs/heads/a", "refs/heads/b/c", "refs/tags/t", "refs/notes/n"}) {
      ASSERT_TRUE(Set(name, 1).committed());
    }
  }
  void TearDown() override { world_.Drop(); }

  CommitResult Set(absl::string_view name, int n) { return world_.Set(id_, Ref(name), World::At(n)); }
  CommitResult Erase(absl::string_view name) { return world_.Set(id_, Ref(name), refs::RefValue::Absent()); }
  // Packs all refs of a repository, with `meanwhile` committed after its snapshot.
  TaskResult Pack(std::function<void()> meanwhile = {}, absl::string_view path = "r") {
    if (meanwhile) random_.AtNextDraw(std::move(meanwhile));
    auto results = world_.store().RunHousekeeping(Path(path), {.tasks = {HousekeepingTask::kPackRefs}});
    EXPECT_THAT(results, IsOk());
    EXPECT_EQ(results->size(), 1u);
    return results->front();
  }
  // The same refs are there through a restart and after a crash that keeps what was synced alone.
  void ExpectRefs(const std::string& refs) {
    EXPECT_EQ(world_.Refs(id_), refs);
    ASSERT_THAT(world_.store().Materialize(), IsOk());
    EXPECT_EQ(world_.Refs(id_), refs);
    World again;
    again.owned_fs() = world_.fs().CrashClone({CrashSurvival::kNothing, 0, 0});
    ASSERT_THAT(again.Open(), IsOk());
    EXPECT_EQ(again.Refs(id_), refs);
  }
  std::string Packed() {
    EXPECT_THAT(world_.store().Materialize(), IsOk());
    const auto content = storage::ReadFile(world_.fs(), Directory() / "packed-refs");
    return content.ok() ? *content : "";
  }
  bool IsPacked(absl::string_view name) { return absl::StrContains(Packed(), absl::StrCat(" ", name, "\n")); }
  storage::StorePath Directory() { return txn::layout::RepositoryDirectory(id_); }

  static constexpr const char* kAll =
      "HEAD ref: refs/heads/main\nrefs/heads/a c1\nrefs/heads/b/c c1\nrefs/heads/main c1\nrefs/notes/n c1\nrefs/tags/t c1\n";
  // A packing draws its id after it has taken its snapshot, and before it looks at the refs.
  HookedRandom random_{5};
  World world_;
  RepositoryId id_;
};

// PR-01, PR-03
TEST_F(PackRefsScenarioTest, PacksRefsOfEverySortAndLeavesNoEmptyDirectory) {
  const TaskResult packed = Pack();
  EXPECT_EQ(packed.outcome(), TaskOutcome::kDone);
  EXPECT_EQ(packed.refs_packed, 5);
  EXPECT_TRUE(IsPacked("refs/notes/n"));
  EXPECT_THAT(world_.fs().Stat(Directory() / "refs/heads/b"), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(Pack().outcome(), TaskOutcome::kNothingToDo);
  ASSERT_TRUE(Set("refs/heads/a", 2).committed());
  ExpectRefs("HEAD ref: refs/heads/main\nrefs/heads/a c2\nrefs/heads/b/c c1\nrefs/heads/main c1\nrefs/notes/n c1\nrefs/tags/t c1\n");
}

// PR-02
TEST_F(PackRefsScenarioTest, WhatAnInterruptedGitHasLeftStandsInNobodysWay) {
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  for (const char* const name : {"packed-refs.lock", "packed-refs.new", "refs/heads/a.lock"}) {
    ASSERT_THAT(storage::WriteFile(world_.fs(), Directory() / name, "left", 0644), IsOk());
  }
  EXPECT_EQ(Pack().refs_packed, 5);
  ASSERT_TRUE(Set("refs/heads/a", 3).committed());
  EXPECT_TRUE(IsPacked("refs/heads/main"));
  EXPECT_EQ(World::Name(world_.Read(id_, Ref("refs/heads/a"))), "c3");
}

// PR-04, PR-05
TEST_F(PackRefsScenarioTest, ACreationMeetsNoPackingInEitherOrder) {
  const TaskResult packed = Pack([&] {
    ASSERT_TRUE(Set("refs/heads/new", 2).committed());
    ASSERT_TRUE(Set("refs/heads/b/d", 2).committed());  // in a directory that the packing empties
  });
  EXPECT_EQ(packed.outcome(), TaskOutcome::kDone);
  ASSERT_TRUE(Set("refs/heads/b/e", 3).committed());
  ExpectRefs("HEAD ref: refs/heads/main\nrefs/heads/a c1\nrefs/heads/b/c c1\nrefs/heads/b/d c2\nrefs/heads/b/e c3\n"
             "refs/heads/main c1\nrefs/heads/new c2\nrefs/notes/n c1\nrefs/tags/t c1\n");
}

// PR-07: the peer's update loses; ours never does.
TEST_F(PackRefsScenarioTest, AnUpdateMeetsNoPackingInEitherOrder) {
  auto updating = world_.Begin();
  ASSERT_THAT(updating->UpdateRef(id_, {.name = Ref("refs/heads/a"), .value = World::At(3)}), IsOk());
  EXPECT_EQ(Pack([&] { ASSERT_TRUE(Set("refs/heads/main", 2).committed()); }).refs_packed, 5);
  EXPECT_TRUE(updating->Commit().committed());
  updating.reset();
  EXPECT_TRUE(IsPacked("refs/tags/t"));
  EXPECT_FALSE(IsPacked("refs/heads/main"));
  ExpectRefs("HEAD ref: refs/heads/main\nrefs/heads/a c3\nrefs/heads/b/c c1\nrefs/heads/main c2\nrefs/notes/n c1\nrefs/tags/t c1\n");
}

// PR-08, PR-10: with the peer one of the two fails, whichever comes first.
TEST_F(PackRefsScenarioTest, ADeletionMeetsNoPackingInEitherOrderAndStaysOne) {
  auto deleting = world_.Begin();
  ASSERT_THAT(deleting->UpdateRef(id_, {.name = Ref("refs/heads/a"), .value = refs::RefValue::Absent()}), IsOk());
  EXPECT_EQ(Pack([&] { ASSERT_TRUE(Erase("refs/heads/b/c").committed()); }).outcome(), TaskOutcome::kDone);
  EXPECT_TRUE(deleting->Commit().committed());
  deleting.reset();
  ExpectRefs("HEAD ref: refs/heads/main\nrefs/heads/main c1\nrefs/notes/n c1\nrefs/tags/t c1\n");
  EXPECT_FALSE(IsPacked("refs/heads/a"));
  EXPECT_FALSE(IsPacked("refs/heads/b/c"));
}

// PR-09, PR-16, PR-17
TEST_F(PackRefsScenarioTest, PoolAndMemberArePackedIndependently) {
  RepositoryId fork;
  ASSERT_TRUE(world_.store()
                  .Run({},
                       [&](Transaction& txn) -> absl::Status {
                         auto forked = txn.ForkRepository(id_, Path("fork"), {});
                         if (forked.ok()) fork = *forked;
                         return forked.status();
                       })
                  .committed());
  ASSERT_TRUE(world_.Set(fork, Ref("refs/heads/x"), World::At(2)).committed());
  const TaskResult packed = Pack([&] {
    ASSERT_TRUE(world_.Set(fork, Ref("refs/heads/a"), refs::RefValue::Absent()).committed());
    EXPECT_EQ(Pack({}, "fork").outcome(), TaskOutcome::kDone);
  });
  EXPECT_EQ(packed.outcome(), TaskOutcome::kDone);
  ExpectRefs(kAll);
  EXPECT_EQ(world_.Refs(fork), "HEAD ref: refs/heads/main\nrefs/heads/b/c c1\nrefs/heads/main c1\nrefs/heads/x c2\nrefs/tags/t c1\n");
}

// PR-15: the second finds nothing left, or is told that the first is under way; both refs are right.
TEST_F(PackRefsScenarioTest, OfTwoPackingsAtOnceOneIsTurnedAway) {
  TaskOutcome second = TaskOutcome::kDone;
  const TaskResult first = Pack([&] { second = Pack().outcome(); });
  EXPECT_EQ(first.outcome(), TaskOutcome::kDone);
  EXPECT_EQ(second, TaskOutcome::kStoodInTheWay);
  ExpectRefs(kAll);
}

// PR-18
TEST_F(PackRefsScenarioTest, APackingNeverReachesARepositoryThatWasDeletedAndMadeAgain) {
  const TaskResult packed = Pack([&] {
    ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(id_); }).committed());
    const RepositoryId again = world_.Create("r");
    ASSERT_TRUE(world_.Set(again, Ref("refs/heads/a"), World::At(7)).committed());
    id_ = again;
  });
  EXPECT_NE(packed.outcome(), TaskOutcome::kDone);
  ExpectRefs("HEAD ref: refs/heads/main\nrefs/heads/a c7\n");
}

// §1.6: HEAD and a packing have nothing to do with each other.
TEST_F(PackRefsScenarioTest, AChangeOfHeadMeetsNoPacking) {
  EXPECT_EQ(Pack([&] {
              ASSERT_TRUE(world_.Set(id_, refs::RefName::Head(), refs::RefValue::Symbolic(Ref("refs/heads/a"))).committed());
            }).outcome(),
            TaskOutcome::kDone);
  EXPECT_EQ(world_.Read(id_, refs::RefName::Head()).ToString(), "ref: refs/heads/a");
}

}  // namespace
}  // namespace repotxn::testing
