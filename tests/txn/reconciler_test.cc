#include "txn/reconciler.h"

#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using storage::StorePath;
using txn::Discrepancy;
using txn::DiscrepancyKind;
using txn::Reconciler;
using txn::ReconcileOptions;
using txn::ReconcileReport;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Goal: nothing is acted on by one look. Method: rounds by hand.
class ReconcilerTest : public ::testing::Test {
 protected:
  std::vector<Discrepancy> Decide(const std::vector<Discrepancy>& found, int minute) {
    return reconciler_.Decide(found, absl::FromUnixSeconds(60 * minute), options_);
  }

  const Discrepancy directory_{DiscrepancyKind::kUnregisteredDirectory, "a", ""};
  const Discrepancy link_{DiscrepancyKind::kStaleSymlink, "b", ""};
  const Discrepancy missing_{DiscrepancyKind::kMissingDirectory, "c", ""};
  ReconcileOptions options_;
  Reconciler reconciler_;
};

TEST_F(ReconcilerTest, ActsAfterConsecutiveMissesAndTheGraceTime) {
  EXPECT_THAT(Decide({directory_}, 0), IsEmpty());
  EXPECT_THAT(Decide({directory_}, 10), IsEmpty());
  EXPECT_THAT(Decide({directory_}, 29), IsEmpty());
  EXPECT_THAT(Decide({directory_}, 30), ElementsAre(directory_));
}

TEST_F(ReconcilerTest, CountsRoundsEvenWhenTheGraceTimeIsLongOver) {
  EXPECT_THAT(Decide({directory_}, 0), IsEmpty());
  EXPECT_THAT(Decide({directory_}, 1000), IsEmpty());
  EXPECT_THAT(Decide({directory_}, 1001), ElementsAre(directory_));
}

TEST_F(ReconcilerTest, BeginsAnewWhenARoundDidNotSeeIt) {
  Decide({link_}, 0);
  Decide({link_}, 20);
  EXPECT_THAT(Decide({}, 40), IsEmpty());
  EXPECT_THAT(Decide({link_}, 60), IsEmpty());
  EXPECT_THAT(Decide({link_}, 80), IsEmpty());
  EXPECT_THAT(Decide({link_}, 100), ElementsAre(link_));
}

TEST_F(ReconcilerTest, OnlyReportsWhatItCannotMend) {
  options_.misses_min = 1;
  options_.grace = absl::ZeroDuration();
  EXPECT_THAT(Decide({directory_, missing_}, 0), ElementsAre(directory_));
}

TEST_F(ReconcilerTest, ActsAtALimitedRate) {
  options_ = {.dry_run = false, .misses_min = 1, .grace = absl::ZeroDuration(), .acts_max = 1};
  EXPECT_THAT(Decide({directory_, link_}, 0), ElementsAre(directory_));
}

TEST_F(ReconcilerTest, DryRunDecidesNothing) {
  options_ = {.dry_run = true, .misses_min = 1, .grace = absl::ZeroDuration()};
  EXPECT_THAT(Decide({directory_, link_}, 0), IsEmpty());
}

// Goal: the look finds what is planted and nothing else, and the acts mend it. Method: an in-memory store.
class ReconcileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("g/r");
    ASSERT_THAT(world_.store().Materialize(), IsOk());
  }
  ReconcileReport Run(bool dry_run = false) {
    const ReconcileOptions options{
        .dry_run = dry_run, .misses_min = 1, .grace = absl::ZeroDuration(), .acts_max = 10};
    auto report = world_.store().Reconcile(options);
    EXPECT_THAT(report, IsOk());
    return report.ok() ? *std::move(report) : ReconcileReport();
  }
  static std::vector<std::string> Names(const std::vector<Discrepancy>& found) {
    std::vector<std::string> names;
    for (const Discrepancy& one : found) {
      names.push_back(absl::StrCat(txn::DiscrepancyName(one.kind), " ", one.path));
    }
    return names;
  }

  World world_;
  RepositoryId id_;
};

TEST_F(ReconcileTest, FindsNothingInAStoreInOrder) {
  EXPECT_THAT(Names(Run().found), IsEmpty());
  EXPECT_EQ(world_.store().Metrics().discrepancies, 0);
}

TEST_F(ReconcileTest, FindsAndMendsWhatOthersDid) {
  const StorePath link = StorePath::Literal("repositories/g/r.git");
  const std::string target = *world_.fs().ReadLink(link);
  const StorePath stranger = StorePath::Literal("repositories/@id/ab/x.git");
  ASSERT_THAT(storage::MakeDirectories(world_.fs(), stranger), IsOk());
  ASSERT_THAT(storage::WriteFile(world_.fs(), stranger / "precious", "kept"), IsOk());
  ASSERT_THAT(world_.fs().Remove(link), IsOk());
  ASSERT_THAT(world_.fs().Symlink("nowhere", StorePath::Literal("repositories/old.git")), IsOk());

  const std::string before = world_.fs().DumpTree(txn::layout::Repositories());
  EXPECT_THAT(Run(/*dry_run=*/true).acted, IsEmpty());
  EXPECT_EQ(world_.fs().DumpTree(txn::layout::Repositories()), before);
  const ReconcileReport report = Run();

  EXPECT_THAT(Names(report.found),
              ElementsAre("unregistered directory repositories/@id/ab/x.git",
                          "missing symlink repositories/g/r.git", "stale symlink repositories/old.git"));
  EXPECT_EQ(report.acted, report.found);
  EXPECT_EQ(*world_.fs().ReadLink(link), target);
  EXPECT_EQ(world_.store().Metrics().reconciled, 3);
  EXPECT_THAT(Names(Run().found), IsEmpty());
  const auto kept = world_.fs().List(txn::layout::LostFound());
  ASSERT_THAT(kept, IsOk());
  ASSERT_THAT(*kept, SizeIs(1));
  EXPECT_EQ(*storage::ReadFile(world_.fs(), txn::layout::LostFound() / (*kept)[0].name / "precious"), "kept");
}

TEST_F(ReconcileTest, MendsAWrongSymlink) {
  const StorePath link = StorePath::Literal("repositories/g/r.git");
  const std::string target = *world_.fs().ReadLink(link);
  ASSERT_THAT(world_.fs().Remove(link), IsOk());
  ASSERT_THAT(world_.fs().Symlink("elsewhere", link), IsOk());

  EXPECT_THAT(Names(Run().acted), ElementsAre("wrong symlink repositories/g/r.git"));

  EXPECT_EQ(*world_.fs().ReadLink(link), target);
}

TEST_F(ReconcileTest, ReportsLinksAndDirectoriesThatAreGone) {
  const StorePath directory = txn::layout::RepositoryDirectory(id_);
  ASSERT_THAT(storage::WriteFile(world_.fs(), directory / "objects/info/alternates", "../../nowhere/objects\n"), IsOk());
  EXPECT_THAT(Names(Run().found), ElementsAre("dangling link " + directory.text() + "/objects/info/alternates"));

  ASSERT_THAT(world_.fs().Rename(directory, StorePath::Literal("taken")), IsOk());

  const ReconcileReport report = Run();
  EXPECT_THAT(Names(report.found), ElementsAre("missing directory " + directory.text()));
  EXPECT_THAT(report.acted, IsEmpty());
}

}  // namespace
}  // namespace repotxn::testing
