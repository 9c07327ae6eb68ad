// Goal: what is needed follows from counts and sizes alone, and each bound is met exactly. Method: a table; each row is a quiet
// repository with a few things changed. Fails when a rule moves, or when one task's rule answers for another.
#include "txn/housekeeping_plan.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::txn {
namespace {

using repotxn::testing::IsOkAndHolds;
using repotxn::testing::StatusIs;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
constexpr absl::Duration kSecond = absl::Seconds(1);

// Pushed to, repacked and indexed an hour ago.
RepositorySizes Quiet() {
  RepositorySizes sizes;
  sizes.packs = 1;
  sizes.oldest_pack = kNow - absl::Hours(1);
  sizes.indexed_at = kNow - absl::Minutes(50);
  return sizes;
}

struct Row {
  std::string story;
  std::function<void(RepositorySizes&, HousekeepingRules&)> change;
  std::string needed;  // names of tasks, with spaces between
};

std::vector<Row> Rows() {
  using Sizes = RepositorySizes;
  using Rules = HousekeepingRules;
  return {
      {"quiet", [](Sizes&, Rules&) {}, ""},
      {"empty", [](Sizes& s, Rules&) { s = RepositorySizes(); }, ""},
      {"as many loose refs as allowed", [](Sizes& s, Rules&) { s.loose_refs = 16; }, ""},
      {"one more", [](Sizes& s, Rules&) { s.loose_refs = 17; }, "pack-refs"},
      {"one loose object", [](Sizes& s, Rules&) { s.loose_objects = 1; }, "merge-packs"},
      {"nearly enough packs", [](Sizes& s, Rules&) { s.packs_added = 15; }, ""},
      {"enough packs", [](Sizes& s, Rules&) { s.packs_added = 16; }, "merge-packs"},
      {"many of before the opening", [](Sizes& s, Rules&) { s.packs = 32; }, "merge-packs"},
      {"not quite so many", [](Sizes& s, Rules&) { s.packs = 31; }, ""},
      {"merging is off", [](Sizes& s, Rules& r) { s.packs = s.packs_added = 99, r.packs_added_max = 0; }, ""},
      {"merging is off, loose objects", [](Sizes& s, Rules& r) { s.loose_objects = 1, r.packs_added_max = 0; },
       "merge-packs"},
      {"a push since a repack of yesterday",
       [](Sizes& s, Rules&) { s.packs = 2, s.oldest_pack = kNow - absl::Hours(24); }, "repack"},
      {"a push since a repack of not quite a day ago",
       [](Sizes& s, Rules&) { s.packs = 2, s.oldest_pack = kNow - absl::Hours(24) + kSecond; }, ""},
      {"an old repack and nothing since", [](Sizes& s, Rules&) { s.oldest_pack = kNow - absl::Hours(240); }, ""},
      {"an old repack with a cruft pack and nothing since",
       [](Sizes& s, Rules&) {
         s.packs = 2, s.cruft_packs = 1, s.oldest_pack = kNow - absl::Hours(240);
         s.oldest_cruft = kNow - absl::Hours(14 * 24);
       },
       ""},
      {"the same, and objects older than the grace",
       [](Sizes& s, Rules&) {
         s.packs = 2, s.cruft_packs = 1, s.oldest_pack = kNow - absl::Hours(240);
         s.oldest_cruft = kNow - absl::Hours(14 * 24) - kSecond;
       },
       "repack"},
      {"the same, in a shallow repository",
       [](Sizes& s, Rules&) {
         s.packs = 2, s.cruft_packs = 1, s.oldest_pack = kNow - absl::Hours(240);
         s.oldest_cruft = kNow - absl::Hours(15 * 24), s.is_shallow = true;
       },
       ""},
      {"objects older than the grace that a repack of today had to leave",
       [](Sizes& s, Rules&) {
         s.packs = 2, s.cruft_packs = 1, s.oldest_pack = kNow - absl::Hours(240);
         s.oldest_cruft = kNow - absl::Hours(15 * 24), s.repacked_at = kNow - absl::Hours(2);
       },
       ""},
      {"only refs changed since",
       [](Sizes& s, Rules&) { s.oldest_pack = kNow - absl::Hours(30), s.refs_changed_since_repack = true; }, "repack"},
      {"packs were rewritten", [](Sizes& s, Rules&) { s.packs_rewritten_since_indexes = true; }, "indexes"},
      {"a pack is younger than the indexes",
       [](Sizes& s, Rules&) { s.packs_since_indexes = 1, s.oldest_unindexed_pack = kNow - absl::Minutes(1); }, ""},
      {"since a day",
       [](Sizes& s, Rules&) { s.packs_since_indexes = 1, s.oldest_unindexed_pack = kNow - absl::Hours(24); }, "indexes"},
      {"since a day, and somebody has looked today",
       [](Sizes& s, Rules&) {
         s.packs_since_indexes = 1, s.oldest_unindexed_pack = kNow - absl::Hours(24);
         s.indexed_at = kNow - absl::Hours(1);
       },
       "" },
      {"many packs are younger than the indexes",
       [](Sizes& s, Rules&) { s.packs_since_indexes = 16, s.oldest_unindexed_pack = kNow; }, "indexes"},
      {"everything at once",
       [](Sizes& s, Rules&) {
         s.loose_refs = 99, s.loose_objects = 5, s.packs = 9, s.oldest_pack = kNow - absl::Hours(99);
         s.packs_rewritten_since_indexes = true;
       },
       "pack-refs merge-packs repack indexes"},
  };
}

TEST(HousekeepingPlanTest, NeedsWhatTheCountsSayAndNothingElse) {
  for (const Row& row : Rows()) {
    RepositorySizes sizes = Quiet();
    // Seen from now, the day-old index of some rows is older than their packs.
    if (row.story == "since a day") sizes.indexed_at = kNow - absl::Hours(48);
    HousekeepingRules rules;
    row.change(sizes, rules);
    std::string needed;
    for (const TaskNeed& need : WhatIsNeeded(sizes, rules, kNow)) {
      absl::StrAppend(&needed, needed.empty() ? "" : " ", HousekeepingTaskName(need.task));
      EXPECT_NE(need.reason, "") << row.story;
    }
    EXPECT_EQ(needed, row.needed) << row.story;
  }
}

TEST(HousekeepingPlanTest, TellsTheNumberThatMadeATaskNeeded) {
  RepositorySizes sizes = Quiet();
  sizes.packs_added = 17;
  const std::vector<TaskNeed> needs = WhatIsNeeded(sizes, {}, kNow);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_THAT(needs[0].reason, HasSubstr("17"));
}

TEST(HousekeepingPlanTest, KnowsItsTasksByName) {
  for (const HousekeepingTask task : kAllHousekeeping) {
    EXPECT_THAT(ParseHousekeepingTask(HousekeepingTaskName(task)), IsOkAndHolds(task));
  }
  EXPECT_THAT(ParseHousekeepingTask("gc"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace repotxn::txn
