#include "refs/loose_refs.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refs/ref_error.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::MemoryFileSystem;
using ::repotxn::testing::PutBytes;
using ::repotxn::testing::StatusIs;
using ::repotxn::testing::SymbolicTo;
using ::repotxn::testing::ValueOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const storage::StorePath kRepository = storage::StorePath::Literal("r.git");

// Goal: one loose file is read as Git reads it, and damage is told from absence.
class LooseRefTest : public ::testing::Test {
 protected:
  static absl::StatusOr<RefValue> Parse(const std::string& content) {
    return ParseLooseRef(content, ObjectFormat::kSha1, "refs/heads/a");
  }
};

TEST_F(LooseRefTest, ReadsWhatItWrites) {
  for (const RefValue& value : {ValueOf(7), SymbolicTo("refs/heads/main")}) {
    EXPECT_THAT(Parse(EncodeLooseRef(value)), IsOkAndHolds(value));
  }
  EXPECT_EQ(EncodeLooseRef(ValueOf(7)), HexOfNumber(7) + "\n");
  EXPECT_EQ(EncodeLooseRef(SymbolicTo("refs/heads/main")), "ref: refs/heads/main\n");
}

TEST_F(LooseRefTest, IsAsTolerantAsGit) {
  const std::string hex = HexOfNumber(7);

  for (const char* tail : {"", "\n", "\r\n", " ", " text", "\nmore\n", "\t\x01"}) {
    EXPECT_THAT(Parse(hex + tail), IsOkAndHolds(ValueOf(7))) << tail;
  }
  for (const char* content :
       {"ref: refs/heads/main", "ref:refs/heads/main\n", "ref: \t refs/heads/main \n\n"}) {
    EXPECT_THAT(Parse(content), IsOkAndHolds(SymbolicTo("refs/heads/main"))) << content;
  }
}

// C013: what a power cut leaves of a file that was not synced.
TEST_F(LooseRefTest, EmptyZeroedAndGarbledFilesAreDamage) {
  const std::string hex = HexOfNumber(7);
  const std::vector<std::string> damaged = {
      "",
      "\n",
      std::string(41, '\0'),
      std::string(40, '0') + "\n",
      hex.substr(1),
      hex.substr(1) + "\n",
      hex + "0\n",
      hex + "x",
      " " + hex,
      std::string(40, 'g'),
      "ref:",
      "ref: \n",
      "ref: HEAD\n",
      "ref: refs/heads/a..b\n",
      "ref: refs/heads/a b\n",
      "ref: /etc/passwd\n",
      "REF: refs/heads/a\n",
  };

  for (const std::string& content : damaged) {
    const auto value = Parse(content);
    ASSERT_THAT(value, StatusIs(absl::StatusCode::kDataLoss)) << content;
    ASSERT_TRUE(RefFileDamageDetail(value.status()).has_value());
    EXPECT_EQ(RefFileDamageDetail(value.status())->file, "refs/heads/a");
  }
}

TEST_F(LooseRefTest, WideIdsBelongToWideRepositories) {
  const std::string wide(64, 'c');

  EXPECT_THAT(ParseLooseRef(wide + "\n", ObjectFormat::kSha256),
              IsOkAndHolds(RefValue::Object(ObjectId::FromHex(wide).value())));
  EXPECT_THAT(ParseLooseRef(wide + "\n", ObjectFormat::kSha1),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseLooseRef(HexOfNumber(1) + "\n", ObjectFormat::kSha256),
              StatusIs(absl::StatusCode::kDataLoss));
}

// Goal: the directory walk finds every loose ref with a prefix, reports what is none, and never
// takes damage for absence.
class LooseRefListingTest : public ::testing::Test {
 protected:
  LooseRefListingTest() {
    EXPECT_OK(storage::MakeDirectories(fs_, kRepository / "refs/heads"));
    EXPECT_OK(storage::MakeDirectories(fs_, kRepository / "refs/tags"));
  }

  void Put(const std::string& name, const std::string& bytes) {
    PutBytes(fs_, "r.git/" + name, bytes);
  }
  void PutRef(const std::string& name, uint64_t number) { Put(name, HexOfNumber(number) + "\n"); }

  LooseRefListing List(absl::string_view prefix) {
    auto listing = ListLooseRefs(fs_, kRepository, prefix, ObjectFormat::kSha1);
    EXPECT_OK(listing);
    return listing.ok() ? std::move(listing).value() : LooseRefListing();
  }
  static std::vector<std::string> NamesOf(const LooseRefListing& listing) {
    std::vector<std::string> names;
    for (const NamedRef& ref : listing.refs) names.push_back(ref.name.text());
    return names;
  }
  static std::vector<std::string> FaultsOf(const LooseRefListing& listing) {
    std::vector<std::string> names;
    for (const RefFault& fault : listing.faults) names.push_back(fault.name);
    return names;
  }
  absl::StatusOr<RefValue> Read(absl::string_view name) {
    return ReadLooseRef(fs_, kRepository, RefName::Literal(name), ObjectFormat::kSha1);
  }

  MemoryFileSystem fs_;
};

TEST_F(LooseRefListingTest, SortsByNameAcrossDirectories) {
  PutRef("refs/heads/a/b", 1);
  PutRef("refs/heads/a-b", 2);
  PutRef("refs/heads/a.b", 3);
  PutRef("refs/tags/t", 4);
  PutRef("refs/stash", 5);
  Put("HEAD", "ref: refs/heads/main\n");

  EXPECT_THAT(NamesOf(List("refs/")), ElementsAre("refs/heads/a-b", "refs/heads/a.b",
                                                  "refs/heads/a/b", "refs/stash", "refs/tags/t"));
  EXPECT_EQ(NamesOf(List("")), NamesOf(List("refs/")));
  EXPECT_THAT(FaultsOf(List("")), IsEmpty());
}

TEST_F(LooseRefListingTest, PrefixTakesAnyBytes) {
  PutRef("refs/heads/feat/x", 1);
  PutRef("refs/heads/feature", 2);
  PutRef("refs/heads/fix", 3);
  PutRef("refs/tags/feat", 4);

  EXPECT_THAT(NamesOf(List("refs/heads/feat")),
              ElementsAre("refs/heads/feat/x", "refs/heads/feature"));
  EXPECT_THAT(NamesOf(List("refs/heads/feat/")), ElementsAre("refs/heads/feat/x"));
  EXPECT_THAT(NamesOf(List("refs/heads/feat/x")), ElementsAre("refs/heads/feat/x"));
  EXPECT_THAT(NamesOf(List("refs/h")),
              ElementsAre("refs/heads/feat/x", "refs/heads/feature", "refs/heads/fix"));
  EXPECT_THAT(NamesOf(List("re")).size(), 4u);
  for (const char* prefix :
       {"refs/heads/feat/x/", "refs/none/", "heads", "refs/../", "refs//", "/"}) {
    EXPECT_THAT(NamesOf(List(prefix)), IsEmpty()) << prefix;
  }
}

TEST_F(LooseRefListingTest, ReportsWhatIsNoRef) {
  PutRef("refs/heads/good", 1);
  Put("refs/heads/empty", "");
  Put("refs/heads/good.lock", HexOfNumber(2) + "\n");
  Put("refs/heads/bad name", HexOfNumber(2) + "\n");
  PutRef("refs/heads/.hidden/x", 3);
  ASSERT_OK(fs_.Symlink("good", kRepository / "refs/heads/link"));

  const LooseRefListing listing = List("refs/");

  EXPECT_THAT(NamesOf(listing), ElementsAre("refs/heads/good"));
  EXPECT_THAT(FaultsOf(listing),
              ElementsAre("refs/heads/.hidden", "refs/heads/bad name", "refs/heads/empty",
                          "refs/heads/good.lock", "refs/heads/link"));
  EXPECT_THAT(listing.faults[0].status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(listing.faults[1].status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(listing.faults[2].status, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(listing.faults[3].status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(listing.faults[4].status, StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(LooseRefListingTest, WalksAsDeepAsANameMayBeLong) {
  std::string name = "refs";
  while (name.size() + 2 <= kRefNameBytesMax) name += "/d";
  PutRef(name, 1);

  EXPECT_THAT(NamesOf(List("refs/")), ElementsAre(name));

  ASSERT_OK(storage::RemoveTree(fs_, kRepository / "refs/d"));
  PutRef(name + "/d", 1);
  EXPECT_THAT(NamesOf(List("refs/")), IsEmpty());
  EXPECT_THAT(FaultsOf(List("refs/")), ElementsAre(name));
}

// C036: leftover directories are no refs and stand in nobody's way. [C030]
TEST_F(LooseRefListingTest, EmptyDirectoryIsAnAbsentRef) {
  ASSERT_OK(storage::MakeDirectories(fs_, kRepository / "refs/heads/bugfix/deep"));

  EXPECT_THAT(Read("refs/heads/bugfix"), IsOkAndHolds(RefValue::Absent()));
  EXPECT_THAT(NamesOf(List("refs/")), IsEmpty());
  EXPECT_THAT(FaultsOf(List("refs/")), IsEmpty());
}

TEST_F(LooseRefListingTest, NameBelowARefIsAbsent) {
  PutRef("refs/heads/a", 1);

  EXPECT_THAT(Read("refs/heads/a/b"), IsOkAndHolds(RefValue::Absent()));
  EXPECT_THAT(Read("refs/heads/b"), IsOkAndHolds(RefValue::Absent()));
}

TEST_F(LooseRefListingTest, FileTooLargeForARefIsDamage) {
  Put("refs/heads/a", HexOfNumber(1) + std::string(kLooseRefBytesMax, '\n'));

  EXPECT_THAT(Read("refs/heads/a"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(LooseRefListingTest, RepositoryWithoutRefsIsNotFound) {
  ASSERT_OK(fs_.MakeDirectory(storage::StorePath::Literal("other.git")));

  EXPECT_THAT(
      ListLooseRefs(fs_, storage::StorePath::Literal("other.git"), "refs/", ObjectFormat::kSha1),
      StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace repotxn::refs
