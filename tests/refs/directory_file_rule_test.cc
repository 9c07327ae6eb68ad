#include "refs/directory_file_rule.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::SeededRandom;
using ::repotxn::testing::StatusIs;

class SetOfRefs final : public ExistingRefs {
 public:
  explicit SetOfRefs(std::set<std::string> names) : names_(std::move(names)) {}

  absl::StatusOr<bool> Exists(absl::string_view name) override {
    ++asked;
    return names_.count(std::string(name)) > 0;
  }
  absl::StatusOr<std::optional<std::string>> NextBelow(absl::string_view name,
                                                       absl::string_view after) override {
    ++asked;
    const std::string directory = std::string(name) + "/";
    const auto next = std::string(after) < directory ? names_.lower_bound(directory)
                                                     : names_.upper_bound(std::string(after));
    if (next == names_.end() || next->compare(0, directory.size(), directory) != 0) {
      return std::optional<std::string>();
    }
    return std::optional<std::string>(*next);
  }

  int asked = 0;

 private:
  std::set<std::string> names_;
};

std::vector<RefName> Names(const std::vector<std::string>& texts) {
  std::vector<RefName> names;
  for (const std::string& text : texts) names.push_back(RefName::Literal(text));
  return names;
}

// Goal: the state after the transaction decides, and the answer names both refs. A conflict missed
// lets Git's files stand in each other's way; one invented refuses a right transaction.
class DirectoryFileRuleTest : public ::testing::Test {
 protected:
  static std::optional<DirectoryFileConflict> Find(const std::set<std::string>& existing,
                                                   const std::vector<std::string>& created,
                                                   const std::vector<std::string>& deleted = {}) {
    SetOfRefs refs(existing);
    const auto conflict = FindDirectoryFileConflict(Names(created), Names(deleted), refs);
    EXPECT_OK(conflict);
    return conflict.ok() ? *conflict : std::nullopt;
  }
};

// C035, REF-05.
TEST_F(DirectoryFileRuleTest, RefBelowAnExistingOneIsBlockedByIt) {
  EXPECT_EQ(Find({"refs/heads/feat/something"}, {"refs/heads/feat/something/else"}),
            (DirectoryFileConflict{"refs/heads/feat/something/else", "refs/heads/feat/something"}));
  EXPECT_EQ(Find({"refs/heads/a"}, {"refs/heads/a/b/c/d"}),
            (DirectoryFileConflict{"refs/heads/a/b/c/d", "refs/heads/a"}));
}

// C035, in reverse.
TEST_F(DirectoryFileRuleTest, RefAboveAnExistingOneIsBlockedByIt) {
  EXPECT_EQ(Find({"refs/heads/a/b/c"}, {"refs/heads/a"}),
            (DirectoryFileConflict{"refs/heads/a", "refs/heads/a/b/c"}));
}

TEST_F(DirectoryFileRuleTest, NamesThatOnlyLookAlikeDoNotConflict) {
  const std::set<std::string> existing = {"refs/heads/a-b", "refs/heads/a.b", "refs/heads/a0",
                                          "refs/heads/b/a"};

  EXPECT_EQ(Find(existing, {"refs/heads/a", "refs/heads/A/b", "refs/heads/b/aa"}), std::nullopt);
  // C040: another letter case is another directory.
  EXPECT_EQ(Find({"refs/heads/docs"}, {"refs/heads/DOCS/part"}), std::nullopt);
}

TEST_F(DirectoryFileRuleTest, TwoRefsOfOneTransactionConflict) {
  EXPECT_EQ(Find({}, {"refs/heads/a/b", "refs/heads/a"}),
            (DirectoryFileConflict{"refs/heads/a/b", "refs/heads/a"}));
  EXPECT_EQ(Find({}, {"refs/heads/a", "refs/heads/a-", "refs/heads/a/b"}),
            (DirectoryFileConflict{"refs/heads/a/b", "refs/heads/a"}));
}

// REF-07.
TEST_F(DirectoryFileRuleTest, ParentDeletedInTheSameTransactionDoesNotBlock) {
  EXPECT_EQ(Find({"refs/heads/parent"}, {"refs/heads/parent/child"}, {"refs/heads/parent"}),
            std::nullopt);
}

// REF-07 in reverse, C036.
TEST_F(DirectoryFileRuleTest, ChildrenDeletedInTheSameTransactionDoNotBlock) {
  const std::set<std::string> existing = {"refs/heads/p/a", "refs/heads/p/b", "refs/heads/p/c"};

  EXPECT_EQ(
      Find(existing, {"refs/heads/p"}, {"refs/heads/p/a", "refs/heads/p/b", "refs/heads/p/c"}),
      std::nullopt);
  EXPECT_EQ(Find(existing, {"refs/heads/p"}, {"refs/heads/p/a", "refs/heads/p/c"}),
            (DirectoryFileConflict{"refs/heads/p", "refs/heads/p/b"}));
}

TEST_F(DirectoryFileRuleTest, HeadConflictsWithNothing) {
  EXPECT_EQ(Find({"refs/heads/a"}, {"HEAD"}), std::nullopt);
}

TEST_F(DirectoryFileRuleTest, CostDoesNotGrowWithTheRefsBelow) {
  std::set<std::string> existing;
  for (int i = 0; i < 1000; ++i) existing.insert("refs/heads/p/" + std::to_string(i));
  SetOfRefs refs(existing);

  ASSERT_OK(FindDirectoryFileConflict(Names({"refs/heads/p"}), {}, refs));

  EXPECT_EQ(refs.asked, 1);
}

TEST_F(DirectoryFileRuleTest, ErrorOfTheLookupPassesThrough) {
  class Failing final : public ExistingRefs {
    absl::StatusOr<bool> Exists(absl::string_view) override { return absl::DataLossError("x"); }
    absl::StatusOr<std::optional<std::string>> NextBelow(absl::string_view,
                                                         absl::string_view) override {
      return absl::DataLossError("x");
    }
  } failing;

  EXPECT_THAT(FindDirectoryFileConflict(Names({"refs/heads/a/b"}), {}, failing),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(FindDirectoryFileConflict(Names({"refs/heads/a"}), {}, failing),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(DirectoryFileRuleTest, StatusCarriesBothNames) {
  const DirectoryFileConflict conflict = {"refs/heads/a/b", "refs/heads/a"};
  const absl::Status status = DirectoryFileError(conflict);

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(DirectoryFileDetail(status), conflict);
  EXPECT_FALSE(RefMismatchDetail(status).has_value());
}

// Every pair of the final state is compared by hand; the rule must say the same about it, provided
// that the state before was free of conflicts.
TEST_F(DirectoryFileRuleTest, AgreesWithComparingEveryPairAfterwards) {
  const std::vector<std::string> universe = {
      "refs/heads/a",   "refs/heads/a/b", "refs/heads/a/b/c", "refs/heads/a-b", "refs/heads/b",
      "refs/heads/b/c", "refs/heads/b/d", "refs/heads/b/d/e", "refs/x",         "refs/x/y"};
  const auto has_conflict = [](const std::set<std::string>& names) {
    for (const std::string& a : names) {
      for (const std::string& b : names) {
        if (b.compare(0, a.size() + 1, a + "/") == 0) return true;
      }
    }
    return false;
  };
  SeededRandom random(7);
  int conflicts = 0;
  for (int round = 0; round < 4000; ++round) {
    std::set<std::string> before;
    for (const std::string& name : universe) {
      if (random.Below(3) != 0) continue;
      before.insert(name);
      if (has_conflict(before)) before.erase(name);
    }
    std::set<std::string> after = before;
    std::vector<std::string> created;
    std::vector<std::string> deleted;
    for (const std::string& name : universe) {
      if (random.Below(4) != 0) continue;
      if (after.insert(name).second) {
        created.push_back(name);
      } else {
        after.erase(name);
        deleted.push_back(name);
      }
    }

    const auto conflict = Find(before, created, deleted);

    ASSERT_EQ(conflict.has_value(), has_conflict(after)) << "round " << round;
    if (!conflict) continue;
    ++conflicts;
    ASSERT_EQ(after.count(conflict->wanted), 1u);
    ASSERT_EQ(after.count(conflict->blocked_by), 1u);
  }
  EXPECT_GT(conflicts, 100);
  EXPECT_LT(conflicts, 3900);
}

}  // namespace
}  // namespace repotxn::refs
