// Goal: housekeeping does what a repository needs, tells what it did, and takes nothing for a success that was none: what stood
// in the way keeps its age. Method: a store in memory with a scripted clock for the rules, one on disk for packs. Fails when
// a result, an age or a pause is lost, when one task runs twice at once, or when one keeps another from running.
#include "txn/housekeeping_status.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/notification.h"
#include "tests/txn/git_store.h"
#include "tests/txn/world.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using repotxn::testing::Branch;
using repotxn::testing::FaultFileSystem;
using repotxn::testing::FileOperation;
using repotxn::testing::GitStore;
using repotxn::testing::IsOk;
using repotxn::testing::Path;
using repotxn::testing::StatusIs;
using repotxn::testing::World;
using ::testing::HasSubstr;
using Task = HousekeepingTask;

const TaskStatus& Of(const RepositoryHousekeeping& status, Task task) {
  return status.tasks[static_cast<size_t>(task)];
}
std::string Outcomes(const std::vector<TaskResult>& results) {
  std::string text;
  for (const TaskResult& result : results) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", HousekeepingTaskName(result.task), " ",
                    TaskOutcomeName(result.outcome()));
  }
  return text;
}
std::string Tasks(const HousekeepingPlan& plan) {
  std::string text;
  for (const TaskNeed& need : plan.needs) {
    absl::StrAppend(&text, text.empty() ? "" : " ", HousekeepingTaskName(need.task));
  }
  return text;
}

class HousekeepingTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(world_.Open(), IsOk()); }
  Store& store() { return world_.store(); }
  HousekeepingPlan Plan() {
    auto plan = store().PlanHousekeeping(Path("r"));
    EXPECT_THAT(plan, IsOk());
    return *std::move(plan);
  }
  std::vector<TaskResult> Run(const HousekeepingRun& run) {
    auto results = store().RunHousekeeping(Path("r"), run);
    EXPECT_THAT(results, IsOk());
    return *std::move(results);
  }
  RepositoryHousekeeping Status() { return *store().HousekeepingStatus(Path("r")); }
  // A repository that Git keeps something in: its packs, and the loose objects of this world, cannot be merged.
  void CreateWithKeepFile() {
    const RepositoryId id = world_.Create("r");
    keep_ = layout::RepositoryDirectory(id) / "objects" / "pack" / "multi-pack-index.d";
    ASSERT_THAT(storage::WriteFile(world_.fs(), keep_, ""), IsOk());
  }

  World world_;
  storage::StorePath keep_;
};

TEST_F(HousekeepingTest, PacksRefsBelowTheBoundWhenAskedTo) {
  const RepositoryId id = world_.Create("r");
  for (int n = 0; n < 5; ++n) ASSERT_TRUE(world_.Set(id, Branch(absl::StrCat("b", n)), World::At(n)).committed());
  EXPECT_EQ(Plan().sizes.loose_refs, 5);
  const std::string before = world_.Refs(id);

  const std::vector<TaskResult> results = Run({.tasks = {Task::kPackRefs}});
  EXPECT_EQ(Outcomes(results), "pack-refs done");
  EXPECT_EQ(results[0].refs_packed, 5);
  EXPECT_EQ(Plan().sizes.loose_refs, 0);
  EXPECT_EQ(world_.Refs(id), before);
  EXPECT_EQ(Outcomes(Run({.tasks = {Task::kPackRefs}})), "pack-refs nothing to do");
}

TEST_F(HousekeepingTest, FindsLooseRefsOfARepositoryThatNobodyHasOpen) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(store().Checkpoint(), IsOk());
  ASSERT_THAT(store().Close(), IsOk());
  world_.Drop();
  // As an adopted repository would have them.
  const storage::StorePath heads = layout::RepositoryDirectory(id) / "refs" / "heads";
  for (int n = 0; n < 17; ++n) {
    ASSERT_THAT(storage::WriteFile(world_.fs(), heads / absl::StrCat("b", n), World::At(1).ToString() + "\n"), IsOk());
  }
  ASSERT_THAT(world_.Open(), IsOk());

  EXPECT_THAT(Tasks(Plan()), HasSubstr("pack-refs"));
  ASSERT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(Of(Status(), Task::kPackRefs).last->refs_packed, 17);
  EXPECT_THAT(Tasks(Plan()), Not(HasSubstr("pack-refs")));
}

TEST_F(HousekeepingTest, WhatStoodInTheWayIsNoSuccessAndKeepsItsAge) {
  CreateWithKeepFile();
  const absl::Time first = world_.clock().Now();
  EXPECT_EQ(Tasks(Plan()), "merge-packs");
  world_.clock().Advance(absl::Hours(1));

  const std::vector<TaskResult> results = Run({});
  EXPECT_EQ(Outcomes(results), "merge-packs stood in the way");
  EXPECT_THAT(results[0].status, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_FALSE(results[0].did_work);
  // Nor is it a failure of the round.
  EXPECT_THAT(store().RunHousekeeping(), IsOk());
  const RepositoryHousekeeping told = Status();
  const TaskStatus& status = Of(told, Task::kMergePacks);
  EXPECT_EQ(status.needed_since, first);
  EXPECT_EQ(status.last->outcome(), TaskOutcome::kStoodInTheWay);
  EXPECT_THAT(status.reason, HasSubstr("10 loose objects"));

  const HousekeepingOverview overview = store().HousekeepingStatus();
  ASSERT_EQ(overview.repositories.size(), 1u);
  EXPECT_EQ(overview.repositories[0].path, "r");
  const StoreMetrics metrics = store().Metrics();
  EXPECT_EQ(metrics.repositories_needing_housekeeping, 1);
  EXPECT_EQ(metrics.housekeeping_oldest_need, absl::Hours(1));
  EXPECT_EQ(metrics.housekeeping_results[1][static_cast<size_t>(TaskOutcome::kStoodInTheWay)], 2);
}

TEST_F(HousekeepingTest, ATaskThatFailsKeepsNoOtherFromBeingDone) {
  CreateWithKeepFile();
  const std::vector<TaskResult> results = Run({.all = true});
  ASSERT_EQ(results.size(), kHousekeepingTasks);
  EXPECT_EQ(Outcomes({results[0], results[1]}), "pack-refs nothing to do, merge-packs stood in the way");
}

TEST_F(HousekeepingTest, RefusesARunThatContradictsItself) {
  world_.Create("r");
  EXPECT_THAT(store().RunHousekeeping(Path("r"), {.tasks = {Task::kRepack}, .all = true}),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(store().RunHousekeeping(Path("r"), {.all = true, .grace = absl::Seconds(-1)}),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(store().RunHousekeeping(Path("absent"), {}), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(store().PlanHousekeeping(Path("absent")), StatusIs(StatusCode::kNotFound));
}

TEST_F(HousekeepingTest, ForgetsADeletedRepository) {
  CreateWithKeepFile();
  EXPECT_EQ(Tasks(Plan()), "merge-packs");
  ASSERT_THAT(store().Run({}, [](Transaction& txn) -> absl::Status {
                REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.OpenRepository(Path("r")));
                return txn.DeleteRepository(id);
              }).status,
              IsOk());
  EXPECT_TRUE(store().HousekeepingStatus().repositories.empty());
  EXPECT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(store().Metrics().repositories_needing_housekeeping, 0);
}

// The first task is held where it writes the log.
TEST_F(HousekeepingTest, OneTaskIsNotDoneTwiceAtOnceAndKeepsNoOtherTaskWaiting) {
  ASSERT_THAT(store().Close(), IsOk());
  world_.Drop();
  FaultFileSystem fs(&world_.fs());
  ASSERT_THAT(world_.OpenOn(&fs), IsOk());
  const RepositoryId id = world_.Create("r");
  ASSERT_TRUE(world_.Set(id, Branch("main"), World::At(1)).committed());
  testing::Notification is_held, go_on;
  std::atomic<bool> is_armed{true};
  fs.SetWatcher([&](FileOperation, const storage::StorePath& path) {
    if (!absl::StartsWith(path.text(), "log/") || !is_armed.exchange(false)) return;
    is_held.Notify();
    go_on.WaitForNotification();
  });
  std::vector<TaskResult> first;
  std::thread runner([&] { first = Run({.tasks = {Task::kPackRefs}}); });
  is_held.WaitForNotification();

  const std::vector<TaskResult> second = Run({.tasks = {Task::kPackRefs}});
  EXPECT_THAT(second[0].status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(second[0].outcome(), TaskOutcome::kStoodInTheWay);
  EXPECT_TRUE(Of(Status(), Task::kPackRefs).is_running);
  EXPECT_FALSE(absl::IsAborted(Run({.tasks = {Task::kIndexes}})[0].status));
  go_on.Notify();
  runner.join();
  EXPECT_EQ(Outcomes(first), "pack-refs done");
  EXPECT_FALSE(Of(Status(), Task::kPackRefs).is_running);
  fs.SetWatcher(nullptr);
  ASSERT_THAT(store().Close(), IsOk());
  world_.Drop();
}

TEST_F(HousekeepingTest, RoundsComeByTheClockUnlessPaused) {
  CreateWithKeepFile();
  ASSERT_THAT(store().Close(), IsOk());
  world_.Drop();
  StoreOptions options = World::Options();
  options.background_thread = true;
  options.housekeeping_concurrency = 2;
  ASSERT_THAT(world_.Open(options), IsOk());
  const auto rounds = [this] {
    return store().Metrics().housekeeping_results[1][static_cast<size_t>(TaskOutcome::kStoodInTheWay)];
  };
  store().PauseHousekeeping(true);
  world_.clock().Advance(options.housekeeping_interval);
  EXPECT_TRUE(store().HousekeepingStatus().is_paused);
  // Paused or not, who asks is served.
  EXPECT_EQ(Outcomes(Run({})), "merge-packs stood in the way");
  EXPECT_EQ(rounds(), 1);
  store().PauseHousekeeping(false);
  while (rounds() < 2) std::this_thread::yield();
  ASSERT_THAT(store().Close(), IsOk());
  EXPECT_EQ(rounds(), 2);
}

// Packs are merged by Git, on a real disk.
class HousekeepingOnDiskTest : public ::testing::Test {
 protected:
  static constexpr int kPushes = 18;
  HousekeepingOnDiskTest() {
    world_.git().Run(absl::StrCat("git init -q -b main source && cd source && git config user.name a && "
                                  "git config user.email a@example.org\nfor n in $(seq ", kPushes + 1,
                                  "); do git commit -q --allow-empty -m $n && git tag c$n; done"));
    id_ = world_.Create("r");
  }
  Store& store() { return world_.store(); }
  void Push(int first, int last) {
    for (int n = first; n <= last; ++n) {
      ASSERT_THAT(world_.Push("source", absl::StrCat("c", n), "r", "refs/heads/main",
                              n == 1 ? "" : absl::StrCat("^c", n - 1)),
                  IsOk());
    }
  }

  GitStore world_;
  RepositoryId id_;
};

TEST_F(HousekeepingOnDiskTest, DoesWhatIsNeededAndTellsWhatItDid) {
  Push(1, 15);
  EXPECT_EQ(Tasks(*store().PlanHousekeeping(GitStore::Path("r"))), "");
  Push(16, kPushes);
  const auto plan = store().PlanHousekeeping(GitStore::Path("r"));
  EXPECT_THAT(Tasks(*plan), HasSubstr("merge-packs"));
  EXPECT_EQ(plan->sizes.packs, kPushes);
  EXPECT_GT(plan->sizes.pack_bytes, 0);
  EXPECT_EQ(plan->sizes.packs_since_indexes, kPushes);

  auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  const auto results = store().RunHousekeeping(GitStore::Path("r"), {});
  ASSERT_THAT(results, IsOk());
  const auto merged = std::find_if(results->begin(), results->end(),
                                   [](const TaskResult& result) { return result.task == Task::kMergePacks; });
  ASSERT_NE(merged, results->end());
  EXPECT_EQ(merged->outcome(), TaskOutcome::kDone);
  EXPECT_EQ(merged->merge.packs_before, kPushes);
  EXPECT_GT(merged->merge.packs_merged, 8);
  EXPECT_EQ(store().Metrics().pack_merges, 1);
  // What indexes there are is about packs that are gone: they are next.
  const auto has_indexes = [](const TaskResult& result) { return result.task == Task::kIndexes; };
  EXPECT_TRUE(std::any_of(results->begin(), results->end(), has_indexes));
  // The older reader keeps the files.
  const auto after = store().PlanHousekeeping(GitStore::Path("r"));
  EXPECT_GE(after->sizes.condemned_packs, merged->merge.packs_merged);
  EXPECT_GT(after->sizes.condemned_bytes, 0);
  EXPECT_EQ(store().Metrics().condemned_bytes, after->sizes.condemned_bytes);
  EXPECT_THAT(Tasks(*after), Not(HasSubstr("merge-packs")));
  snapshot->reset();
  world_.Close();
  EXPECT_EQ(world_.Fsck(id_), "");
}

TEST_F(HousekeepingOnDiskTest, PacksOfAMergeThatWasKeptFromItsWorkAreNotForgotten) {
  Push(1, 16);
  world_.git().Run("touch " + GitStore::Directory(id_) + "/objects/pack/multi-pack-index.d");
  ASSERT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(store().Metrics().pack_merges, 0);
  EXPECT_THAT(Tasks(*store().PlanHousekeeping(GitStore::Path("r"))), HasSubstr("merge-packs"));
  world_.git().Run("rm " + GitStore::Directory(id_) + "/objects/pack/multi-pack-index.d");
  ASSERT_THAT(store().RunHousekeeping(), IsOk());
  EXPECT_EQ(store().Metrics().pack_merges, 1);
}

TEST_F(HousekeepingOnDiskTest, TheBackgroundMergesAfterSoManyPushesButNotWhilePaused) {
  world_.Close();
  StoreOptions options = GitStore::Options();
  options.background_thread = true;
  world_.Open(options);
  store().PauseHousekeeping(true);
  Push(1, 17);
  EXPECT_EQ(store().Metrics().pack_merges, 0);
  store().PauseHousekeeping(false);
  while (store().Metrics().pack_merges == 0) std::this_thread::yield();
  world_.Close();
  EXPECT_EQ(world_.Fsck(id_), "");
}

// An old cruft pack of Git's own, as an adopted repository may have one.
TEST_F(HousekeepingOnDiskTest, FindsUnreachableObjectsThatAreOlderThanTheGrace) {
  world_.git().Run(
      "git clone -q --bare source cruft.git && cd cruft.git && git config gc.cruftPacks true\n"
      "oid=$(echo lost | git hash-object -w --stdin)\n"
      "touch -d '2020-01-01T00:00:00Z' objects/$(echo $oid | cut -c1-2)/$(echo $oid | cut -c3-)\n"
      "git repack -q -d --cruft --cruft-expiration=never && ls objects/pack/*.mtimes >/dev/null\n"
      "cd .. && mv cruft.git store/incoming.git");
  ASSERT_THAT(store().Adopt("incoming.git", GitStore::Path("adopted"), {}), IsOk());
  // An adoption counts as a repack; this one was long ago.
  EXPECT_THAT(Tasks(*store().PlanHousekeeping(GitStore::Path("adopted"))), Not(HasSubstr("repack")));
  world_.git().Run("touch -d '2020-01-02T00:00:00Z' store/repositories/adopted.git/objects/pack/*");
  const auto plan = store().PlanHousekeeping(GitStore::Path("adopted"));
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->sizes.cruft_packs, 1);
  EXPECT_EQ(plan->sizes.oldest_cruft, absl::FromUnixSeconds(1'577'836'800));
  EXPECT_THAT(Tasks(*plan), HasSubstr("repack"));
}

}  // namespace
}  // namespace repotxn::txn
