// Goal: merging keeps packs few, copies little, and touches nothing that is large enough already.
#include "objects/pack_merge.h"

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace repotxn::objects {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<PackSize> Packs(const std::vector<int64_t>& objects) {
  std::vector<PackSize> packs;
  for (const int64_t count : objects) packs.push_back({absl::StrCat("p", packs.size()), count});
  return packs;
}

TEST(PackMergeTest, TakesTheSmallestThatBreakTheRuleAndNoMore) {
  EXPECT_THAT(PacksToMerge({}, 2), IsEmpty());
  EXPECT_THAT(PacksToMerge(Packs({7}), 2), IsEmpty());
  EXPECT_THAT(PacksToMerge(Packs({1, 2, 6, 18}), 2), IsEmpty());
  EXPECT_THAT(PacksToMerge(Packs({3, 3, 100}), 2), ElementsAre("p0", "p1"));
  EXPECT_THAT(PacksToMerge(Packs({100, 3, 3, 3}), 2), ElementsAre("p1", "p2", "p3"));
  EXPECT_THAT(PacksToMerge(Packs({50, 3, 48}), 2), ElementsAre("p1", "p2", "p0"));
  // Empty packs, of which nothing can be said but that they are in the way.
  EXPECT_THAT(PacksToMerge(Packs({0, 0, 5}), 2), IsEmpty());
  EXPECT_THAT(PacksToMerge(Packs({0, 5, 5}), 2), ElementsAre("p0", "p1", "p2"));
}

// Random pushes, each followed by a merge: the rule holds after each, and an object is copied about log times.
TEST(PackMergeTest, KeepsPacksFewAndCopiesEachObjectSeldom) {
  std::mt19937_64 random(7);
  std::vector<PackSize> packs;
  int64_t pushed = 0, copied = 0;
  for (int push = 0; push < 5000; ++push) {
    const int64_t objects = 1 + static_cast<int64_t>(random() % 20);
    packs.push_back({absl::StrCat("push", push), objects});
    pushed += objects;
    const std::vector<std::string> names = PacksToMerge(packs, 2);
    ASSERT_NE(names.size(), 1u);
    const std::set<std::string> merged(names.begin(), names.end());
    PackSize into{absl::StrCat("merge", push), 0};
    std::erase_if(packs, [&](const PackSize& pack) {
      if (!merged.contains(pack.name)) return false;
      into.objects += pack.objects;
      return true;
    });
    if (into.objects > 0) packs.push_back(into);
    copied += into.objects;
    std::sort(packs.begin(), packs.end(), [](const auto& a, const auto& b) { return a.objects < b.objects; });
    int64_t below = 0;
    for (const PackSize& pack : packs) {
      ASSERT_GE(pack.objects, 2 * below);
      below += pack.objects;
    }
    ASSERT_EQ(below, pushed);
    ASSERT_LE(packs.size(), 16u);
  }
  EXPECT_LT(copied, 20 * pushed);
}

}  // namespace
}  // namespace repotxn::objects
