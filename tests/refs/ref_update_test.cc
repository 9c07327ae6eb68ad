#include "refs/ref_update.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refs/ref_error.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::OidOf;
using ::repotxn::testing::RepositoryIdOf;
using ::repotxn::testing::StatusIs;
using ::repotxn::testing::SymbolicTo;
using ::repotxn::testing::ValueOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMain[] = "refs/heads/main";

RefName Name(absl::string_view text) { return RefName::Literal(text); }

// Goal: the merging rules of ref_update.h, one by one, over a snapshot that is a map. The lookups
// are recorded, because they are the transaction's read keys.
class RefStagingTest : public ::testing::Test {
 protected:
  absl::StatusOr<RefName> Stage(const RefUpdate& update) {
    return staging_.Stage(update, [this](const RefName& name) -> absl::StatusOr<RefValue> {
      asked_.push_back(name.text());
      const auto value = snapshot_.find(name.text());
      return value == snapshot_.end() ? RefValue::Absent() : value->second;
    });
  }
  // "name: old -> new" of every change.
  std::vector<std::string> Changes() const {
    std::vector<std::string> lines;
    for (const wal::RefChange& change : staging_.Changes(RepositoryIdOf(1))) {
      EXPECT_EQ(change.id, RepositoryIdOf(1));
      lines.push_back(change.name + ": " + RefValue::FromLogged(change.old_value)->ToString() +
                      " -> " + RefValue::FromLogged(change.new_value)->ToString());
    }
    return lines;
  }
  static void ExpectMismatch(const absl::Status& status, const RefMismatch& mismatch) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(RefMismatchDetail(status), mismatch);
  }

  std::map<std::string, RefValue> snapshot_;
  std::vector<std::string> asked_;
  RefStaging staging_;
};

// REF-03, REF-30.
TEST_F(RefStagingTest, CreatesARefThatMustNotExist) {
  EXPECT_THAT(Stage({.name = Name(kMain), .expected = RefValue::Absent(), .value = ValueOf(1)}),
              IsOkAndHolds(Name(kMain)));

  EXPECT_THAT(Changes(), ElementsAre("refs/heads/main: absent -> " + HexOfNumber(1)));
  EXPECT_THAT(staging_.Created(), ElementsAre(Name(kMain)));
  EXPECT_THAT(asked_, ElementsAre(kMain));
}

// REF-12.
TEST_F(RefStagingTest, UpdatesFromTheExpectedValue) {
  snapshot_[kMain] = ValueOf(1);

  EXPECT_OK(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(2)}));

  EXPECT_THAT(Changes(),
              ElementsAre("refs/heads/main: " + HexOfNumber(1) + " -> " + HexOfNumber(2)));
  EXPECT_THAT(staging_.Created(), IsEmpty());
  EXPECT_THAT(staging_.Deleted(), IsEmpty());
}

// REF-13, REF-14, REF-24, REF-25: by the snapshot that the other transaction's commit is in.
TEST_F(RefStagingTest, ExpectationThatDoesNotHoldStagesNothing) {
  snapshot_[kMain] = ValueOf(2);

  ExpectMismatch(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(3)}).status(),
                 {kMain, HexOfNumber(1), HexOfNumber(2)});
  ExpectMismatch(Stage({.name = Name(kMain), .expected = ValueOf(1)}).status(),
                 {kMain, HexOfNumber(1), HexOfNumber(2)});
  ExpectMismatch(
      Stage({.name = Name(kMain), .expected = RefValue::Absent(), .value = ValueOf(3)}).status(),
      {kMain, "absent", HexOfNumber(2)});
  ExpectMismatch(
      Stage({.name = Name("refs/heads/gone"), .expected = ValueOf(1), .value = ValueOf(3)})
          .status(),
      {"refs/heads/gone", HexOfNumber(1), "absent"});

  EXPECT_TRUE(staging_.empty());
  EXPECT_FALSE(staging_.Staged(Name(kMain)).has_value());
  EXPECT_OK(Stage({.name = Name(kMain), .expected = ValueOf(2), .value = ValueOf(3)}));
}

// REF-15, REF-34, REF-35.
TEST_F(RefStagingTest, UpdateToTheValueThatIsThereIsNoChange) {
  snapshot_[kMain] = RefValue::Object(OidOf(1), OidOf(9));

  EXPECT_OK(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(1)}));

  EXPECT_THAT(Changes(), IsEmpty());
  EXPECT_THAT(asked_, ElementsAre(kMain));  // Read all the same.
}

// REF-16, REF-26, REF-06.
TEST_F(RefStagingTest, DeletesWhatIsThereAndDropsTheDeletionOfWhatIsNot) {
  snapshot_[kMain] = ValueOf(1);

  EXPECT_OK(Stage({.name = Name(kMain)}));
  EXPECT_OK(Stage({.name = Name("refs/heads/never")}));
  EXPECT_OK(Stage({.name = Name("refs/heads/never2"), .expected = RefValue::Absent()}));

  EXPECT_THAT(Changes(), ElementsAre("refs/heads/main: " + HexOfNumber(1) + " -> absent"));
  EXPECT_THAT(staging_.Deleted(), ElementsAre(Name(kMain)));
}

// REF-27.
TEST_F(RefStagingTest, LastValueWinsAndTheOldValueIsTheSnapshots) {
  snapshot_[kMain] = ValueOf(1);

  EXPECT_OK(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(2)}));
  EXPECT_OK(Stage({.name = Name(kMain), .expected = ValueOf(2), .value = ValueOf(3)}));
  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(4)}));

  EXPECT_THAT(Changes(),
              ElementsAre("refs/heads/main: " + HexOfNumber(1) + " -> " + HexOfNumber(4)));
  EXPECT_THAT(asked_, ElementsAre(kMain));  // The own write is not a read.
}

// REF-28.
TEST_F(RefStagingTest, FirstExpectationIsTheOneThatMeetsTheSnapshot) {
  snapshot_[kMain] = ValueOf(5);

  ExpectMismatch(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(2)}).status(),
                 {kMain, HexOfNumber(1), HexOfNumber(5)});
}

TEST_F(RefStagingTest, LaterExpectationSeesTheOwnWrite) {
  snapshot_[kMain] = ValueOf(1);
  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(2)}));

  ExpectMismatch(Stage({.name = Name(kMain), .expected = ValueOf(1), .value = ValueOf(3)}).status(),
                 {kMain, HexOfNumber(1), HexOfNumber(2)});
  EXPECT_EQ(staging_.Staged(Name(kMain)), ValueOf(2));
}

TEST_F(RefStagingTest, WayThereAndBackIsNoChange) {
  snapshot_[kMain] = ValueOf(1);

  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(2)}));
  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(1)}));
  EXPECT_OK(Stage({.name = Name("refs/heads/x"), .value = ValueOf(2)}));
  EXPECT_OK(Stage({.name = Name("refs/heads/x")}));

  EXPECT_THAT(Changes(), IsEmpty());
  EXPECT_THAT(staging_.StagedNames(), ElementsAre(Name(kMain), Name("refs/heads/x")));
  EXPECT_EQ(staging_.Staged(Name("refs/heads/x")), RefValue::Absent());
}

// REF-07.
TEST_F(RefStagingTest, ParentDeletedAndChildCreatedAreTwoChanges) {
  snapshot_["refs/heads/parent"] = ValueOf(1);

  EXPECT_OK(Stage({.name = Name("refs/heads/parent")}));
  EXPECT_OK(Stage({.name = Name("refs/heads/parent/child"), .value = ValueOf(2)}));

  EXPECT_THAT(staging_.Deleted(), ElementsAre(Name("refs/heads/parent")));
  EXPECT_THAT(staging_.Created(), ElementsAre(Name("refs/heads/parent/child")));
}

// REF-29.
TEST_F(RefStagingTest, InitialValueAloneStagesNothing) {
  staging_.RecordInitial(Name(kMain), ValueOf(1));

  EXPECT_TRUE(staging_.empty());
  EXPECT_THAT(Changes(), IsEmpty());
}

// REF-31.
TEST_F(RefStagingTest, AbsentInitialValueIsResolvedToTheRealOne) {
  snapshot_[kMain] = ValueOf(1);
  staging_.RecordInitial(Name(kMain), RefValue::Absent());

  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(2)}));

  EXPECT_THAT(Changes(),
              ElementsAre("refs/heads/main: " + HexOfNumber(1) + " -> " + HexOfNumber(2)));
}

// REF-32.
TEST_F(RefStagingTest, InitialValueIsTheFirstExpectation) {
  snapshot_[kMain] = ValueOf(1);
  staging_.RecordInitial(Name(kMain), ValueOf(1));
  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(2)}));

  snapshot_["refs/heads/x"] = ValueOf(3);
  staging_.RecordInitial(Name("refs/heads/x"), ValueOf(4));
  ExpectMismatch(Stage({.name = Name("refs/heads/x"), .value = ValueOf(5)}).status(),
                 {"refs/heads/x", HexOfNumber(4), HexOfNumber(3)});
}

// REF-33.
TEST_F(RefStagingTest, InitialValueAfterAnUpdateIsIgnored) {
  snapshot_[kMain] = ValueOf(1);
  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(2)}));
  staging_.RecordInitial(Name(kMain), ValueOf(9));

  EXPECT_OK(Stage({.name = Name(kMain), .value = ValueOf(3)}));
}

// REF-22.
TEST_F(RefStagingTest, DeletingASymbolicRefItselfLeavesItsTarget) {
  snapshot_["refs/heads/sym"] = SymbolicTo(kMain);
  snapshot_[kMain] = ValueOf(1);

  EXPECT_THAT(Stage({.name = Name("refs/heads/sym"), .no_deref = true}),
              IsOkAndHolds(Name("refs/heads/sym")));

  EXPECT_THAT(Changes(), ElementsAre("refs/heads/sym: ref: refs/heads/main -> absent"));
}

// REF-23, hard case B13: every hop is read, the target is written.
TEST_F(RefStagingTest, UpdateOfASymbolicRefGoesToItsTarget) {
  snapshot_["HEAD"] = SymbolicTo("refs/heads/sym");
  snapshot_["refs/heads/sym"] = SymbolicTo(kMain);
  snapshot_[kMain] = ValueOf(1);

  EXPECT_THAT(Stage({.name = RefName::Head(), .expected = ValueOf(1), .value = ValueOf(2)}),
              IsOkAndHolds(Name(kMain)));

  EXPECT_THAT(Changes(),
              ElementsAre("refs/heads/main: " + HexOfNumber(1) + " -> " + HexOfNumber(2)));
  EXPECT_THAT(asked_, ElementsAre("HEAD", "refs/heads/sym", kMain));
}

TEST_F(RefStagingTest, UpdateWithoutDereferencingReplacesTheSymbolicRef) {
  snapshot_["refs/heads/sym"] = SymbolicTo(kMain);

  EXPECT_OK(Stage({.name = Name("refs/heads/sym"),
                   .expected = SymbolicTo(kMain),
                   .value = ValueOf(2),
                   .no_deref = true}));

  EXPECT_THAT(Changes(), ElementsAre("refs/heads/sym: ref: refs/heads/main -> " + HexOfNumber(2)));
}

// HEAD-01, HEAD-03.
TEST_F(RefStagingTest, HeadIsSetToABranchThatNeedNotExist) {
  snapshot_["HEAD"] = SymbolicTo(kMain);

  EXPECT_THAT(Stage({.name = RefName::Head(), .value = SymbolicTo("refs/heads/none")}),
              IsOkAndHolds(RefName::Head()));

  EXPECT_THAT(Changes(), ElementsAre("HEAD: ref: refs/heads/main -> ref: refs/heads/none"));
  EXPECT_THAT(asked_, ElementsAre("HEAD"));
}

// HEAD-02, HEAD-05.
TEST_F(RefStagingTest, HeadFollowsTheOwnWriteWithinTheTransaction) {
  snapshot_["HEAD"] = SymbolicTo(kMain);
  EXPECT_OK(Stage({.name = Name("refs/heads/dev"), .value = ValueOf(3)}));
  EXPECT_OK(Stage({.name = RefName::Head(), .value = SymbolicTo("refs/heads/dev")}));

  EXPECT_THAT(Stage({.name = RefName::Head(), .expected = ValueOf(3), .value = ValueOf(4)}),
              IsOkAndHolds(Name("refs/heads/dev")));

  EXPECT_THAT(Changes(), ElementsAre("HEAD: ref: refs/heads/main -> ref: refs/heads/dev",
                                     "refs/heads/dev: absent -> " + HexOfNumber(4)));
}

TEST_F(RefStagingTest, HeadIsNotDeletedAndARefDoesNotNameItself) {
  snapshot_["HEAD"] = SymbolicTo(kMain);

  EXPECT_THAT(Stage({.name = RefName::Head(), .no_deref = true}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Stage({.name = Name("refs/heads/a"), .value = SymbolicTo("refs/heads/a")}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(staging_.empty());
}

TEST_F(RefStagingTest, ChainThatIsACircleCanBeBrokenOnlyWithoutFollowingIt) {
  snapshot_["refs/heads/a"] = SymbolicTo("refs/heads/b");
  snapshot_["refs/heads/b"] = SymbolicTo("refs/heads/a");

  EXPECT_THAT(Stage({.name = Name("refs/heads/a"), .value = ValueOf(1)}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(Stage({.name = Name("refs/heads/a"), .value = ValueOf(1), .no_deref = true}));
}

// C045: the detail of a mismatch has the full name.
TEST_F(RefStagingTest, MismatchNamesTheFullRef) {
  snapshot_["refs/heads/v1"] = ValueOf(1);
  snapshot_["refs/tags/v1"] = ValueOf(2);

  ExpectMismatch(Stage({.name = Name("refs/heads/v1"), .expected = ValueOf(2)}).status(),
                 {"refs/heads/v1", HexOfNumber(2), HexOfNumber(1)});
  EXPECT_OK(Stage({.name = Name("refs/heads/v1"), .expected = ValueOf(1)}));
  EXPECT_THAT(staging_.Deleted(), ElementsAre(Name("refs/heads/v1")));
}

}  // namespace
}  // namespace repotxn::refs
