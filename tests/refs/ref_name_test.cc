#include "refs/ref_name.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refs/ref_error.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::IsOk;
using ::repotxn::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Refused {
  std::string name;
  size_t offset;
  std::string rule;
};

// Goal: one rule decides what a ref name is, with the place and the reason of a refusal. A name
// accepted or refused wrongly, or blamed on another byte, fails.
class RefNameTest : public ::testing::Test {
 protected:
  static void ExpectRefused(const Refused& refused) {
    const auto name = RefName::Parse(refused.name);
    ASSERT_THAT(name, StatusIs(absl::StatusCode::kInvalidArgument)) << refused.name;
    const auto detail = RefNameFaultDetail(name.status());
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->name, refused.name);
    EXPECT_EQ(detail->offset, refused.offset) << refused.name;
    EXPECT_EQ(detail->rule, refused.rule) << refused.name;
  }
};

// C042.
TEST_F(RefNameTest, RefusesTheFormsThatGitForbidsWithOffsetAndRule) {
  const std::vector<Refused> table = {
      {"", 0, "neither HEAD nor below refs/"},
      {"main", 0, "neither HEAD nor below refs/"},
      {"@", 0, "neither HEAD nor below refs/"},
      {"FETCH_HEAD", 0, "neither HEAD nor below refs/"},
      {"Refs/heads/a", 0, "neither HEAD nor below refs/"},
      {"/refs/heads/a", 0, "neither HEAD nor below refs/"},
      {"refs", 0, "neither HEAD nor below refs/"},
      {"refs/", 5, "empty component"},
      {"refs/heads/", 11, "empty component"},
      {"refs/heads//a", 11, "empty component"},
      {"refs/heads/a/", 13, "empty component"},
      {"refs/heads/.a", 11, "component begins with a dot"},
      {"refs/.a/b", 5, "component begins with a dot"},
      {"refs/heads/a.lock", 12, "component ends in .lock"},
      {"refs/heads/.lock", 11, "component begins with a dot"},
      {"refs/heads/a.lock/b", 12, "component ends in .lock"},
      {"refs/heads/a..b", 12, "two dots"},
      {"refs/heads/../x", 11, "two dots"},
      {"refs/heads/a.", 12, "name ends in a dot"},
      {"refs/heads/a@{1}", 12, "reflog selector @{"},
      {"refs/heads/a b", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a~1", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a^", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a:b", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a?", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/*", 11, "byte reserved for revisions and patterns"},
      {"refs/heads/a[b", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a\\b", 12, "byte reserved for revisions and patterns"},
      {"refs/heads/a\tb", 12, "control byte"},
      {"refs/heads/a\x7f", 12, "control byte"},
      {std::string("refs/heads/a\0b", 14), 12, "control byte"},
  };

  for (const Refused& refused : table) ExpectRefused(refused);
}

// C041: the plumbing accepts all of these, so does the one rule here.
TEST_F(RefNameTest, AcceptsNamesThatOnlyPorcelainRefuses) {
  const std::vector<std::string> names = {
      "HEAD",
      "refs/heads/HEAD",
      "refs/heads/@",
      "refs/heads/-x",
      "refs/heads/a@b",
      "refs/heads/a.lockb",
      "refs/heads/lock",
      "refs/heads/a./b",
      "refs/heads/{a}",
      "refs/stash",
      "refs/heads/refs/heads/a",
      "refs/heads/" + std::string(240, 'n'),
      "refs/heads/\xff\xfe/\x80",
      "refs/heads/\xc3\xa9t\xc3\xa9",
  };

  for (const std::string& name : names) {
    const auto parsed = RefName::Parse(name);
    ASSERT_THAT(parsed, IsOk()) << name;
    EXPECT_EQ(parsed->text(), name);
  }
}

TEST_F(RefNameTest, RefusesTheDirectoriesThatEveryRepositoryHas) {
  ExpectRefused({"refs/heads", 5, "directory that every repository has"});
  ExpectRefused({"refs/tags", 5, "directory that every repository has"});
  EXPECT_THAT(RefName::Parse("refs/headsx"), IsOk());
  EXPECT_THAT(RefName::Parse("refs/notes"), IsOk());
}

TEST_F(RefNameTest, HoldsItsLimitsToTheByte) {
  const std::string component(kRefComponentBytesMax, 'c');
  EXPECT_THAT(RefName::Parse("refs/heads/" + component), IsOk());
  ExpectRefused({"refs/heads/" + component + "c", 11 + 255, "component longer than 255 bytes"});

  std::string name = "refs";
  while (name.size() + 2 <= kRefNameBytesMax) name += "/d";
  ASSERT_EQ(name.size(), kRefNameBytesMax);
  EXPECT_THAT(RefName::Parse(name), IsOk());
  ExpectRefused({name + "e", kRefNameBytesMax, "name longer than 1,024 bytes"});
}

// C039, C040.
TEST_F(RefNameTest, NamesThatDifferInLetterCaseAreDifferentNames) {
  EXPECT_NE(RefName::Literal("refs/heads/X1"), RefName::Literal("refs/heads/x1"));
  EXPECT_FALSE(RefName::Literal("refs/heads/DOCS/part").IsBelow("refs/heads/docs"));
}

// C045.
TEST_F(RefNameTest, BranchAndTagOfOneShortNameStayApart) {
  const RefName branch = RefName::Literal("refs/heads/v1");
  const RefName tag = RefName::Literal("refs/tags/v1");

  EXPECT_NE(branch, tag);
  EXPECT_EQ(branch.ShortText(), tag.ShortText());
  EXPECT_TRUE(branch.IsBranch());
  EXPECT_FALSE(branch.IsTag());
  EXPECT_TRUE(tag.IsTag());
  EXPECT_FALSE(tag.IsBranch());
}

TEST_F(RefNameTest, ParentsAreThePrefixesThatCouldBeRefs) {
  EXPECT_THAT(RefName::Literal("refs/heads/a/b/c").ParentNames(),
              ElementsAre("refs/heads/a", "refs/heads/a/b"));
  EXPECT_THAT(RefName::Literal("refs/notes/a").ParentNames(), ElementsAre("refs/notes"));
  EXPECT_THAT(RefName::Literal("refs/heads/a./b").ParentNames(), IsEmpty());
  EXPECT_THAT(RefName::Literal("refs/heads/main").ParentNames(), IsEmpty());
  EXPECT_THAT(RefName::Literal("refs/stash").ParentNames(), IsEmpty());
  EXPECT_THAT(RefName::Head().ParentNames(), IsEmpty());
}

TEST_F(RefNameTest, IsBelowComparesWholeComponents) {
  const RefName name = RefName::Literal("refs/heads/feat/x");

  EXPECT_TRUE(name.IsBelow("refs/heads/feat"));
  EXPECT_TRUE(name.IsBelow("refs"));
  EXPECT_FALSE(name.IsBelow("refs/heads/fea"));
  EXPECT_FALSE(name.IsBelow("refs/heads/feat/x"));
  EXPECT_FALSE(name.IsBelow("refs/heads/feat/x/y"));
}

TEST_F(RefNameTest, OrderIsByUnsignedBytes) {
  std::vector<RefName> names = {
      RefName::Literal("refs/heads/a/b"), RefName::Literal("refs/heads/\xff"),
      RefName::Literal("refs/heads/a-b"), RefName::Literal("refs/heads/a"), RefName::Head()};

  std::sort(names.begin(), names.end());

  std::vector<std::string> texts;
  for (const RefName& name : names) texts.push_back(name.text());
  EXPECT_THAT(texts, ElementsAre("HEAD", "refs/heads/a", "refs/heads/a-b", "refs/heads/a/b",
                                 "refs/heads/\xff"));
}

}  // namespace
}  // namespace repotxn::refs
