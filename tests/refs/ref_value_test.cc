#include "refs/ref_value.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::StatusIs;
using Kind = wal::LoggedRefValue::Kind;

ObjectId Oid(char digit) {
  return ObjectId::FromHex(std::string(40, digit), ObjectFormat::kSha1).value();
}

// Goal: a value survives the log byte for byte, and bytes of a log that are no value are refused.
class RefValueTest : public ::testing::Test {};

TEST_F(RefValueTest, EveryKindSurvivesTheLog) {
  const std::vector<RefValue> values = {
      RefValue::Absent(), RefValue::Object(Oid('1')), RefValue::Object(Oid('1'), Oid('2')),
      RefValue::Object(ObjectId::FromHex(std::string(64, 'a')).value()),
      RefValue::Symbolic(RefName::Literal("refs/heads/main"))};

  for (const RefValue& value : values) {
    EXPECT_THAT(RefValue::FromLogged(value.ToLogged()), IsOkAndHolds(value)) << value.ToString();
  }
}

TEST_F(RefValueTest, ZeroIdAndNoIdMeanAbsent) {
  EXPECT_TRUE(RefValue::Object(ObjectId()).is_absent());
  EXPECT_TRUE(RefValue::Object(ObjectId::Zero(ObjectFormat::kSha1)).is_absent());
  EXPECT_TRUE(RefValue::Object(ObjectId::Zero(ObjectFormat::kSha256)).is_absent());
  EXPECT_TRUE(RefValue().is_absent());
}

TEST_F(RefValueTest, SameValueIgnoresWhetherThePeeledIdIsKnown) {
  EXPECT_TRUE(RefValue::Object(Oid('1'), Oid('2')).SameAs(RefValue::Object(Oid('1'))));
  EXPECT_FALSE(RefValue::Object(Oid('1'), Oid('2')) == RefValue::Object(Oid('1')));
  EXPECT_FALSE(RefValue::Object(Oid('1')).SameAs(RefValue::Object(Oid('2'))));
  EXPECT_FALSE(RefValue::Object(Oid('1')).SameAs(RefValue::Absent()));
  EXPECT_FALSE(RefValue::Symbolic(RefName::Literal("refs/heads/a"))
                   .SameAs(RefValue::Symbolic(RefName::Literal("refs/heads/b"))));
}

// C042: the decoder refuses a hand-made entry.
TEST_F(RefValueTest, RefusesLoggedBytesThatAreNoValue) {
  const std::string oid(20, '\x11');
  const std::vector<wal::LoggedRefValue> malformed = {
      {Kind::kAbsent, oid, ""},
      {Kind::kAbsent, "", oid},
      {Kind::kObject, "", ""},
      {Kind::kObject, oid.substr(1), ""},
      {Kind::kObject, oid + "x", ""},
      {Kind::kObject, std::string(20, '\0'), ""},
      {Kind::kObject, oid, std::string(20, '\0')},
      {Kind::kObject, oid, std::string(32, '\x11')},
      {Kind::kObject, oid, "x"},
      {Kind::kSymbolic, "", ""},
      {Kind::kSymbolic, "HEAD", ""},
      {Kind::kSymbolic, "refs/heads/a..b", ""},
      {Kind::kSymbolic, "refs/heads/main", oid},
      {static_cast<Kind>(9), "", ""},
  };

  for (const wal::LoggedRefValue& logged : malformed) {
    EXPECT_THAT(RefValue::FromLogged(logged), StatusIs(absl::StatusCode::kDataLoss))
        << static_cast<int>(logged.kind) << " " << logged.bytes;
  }
}

}  // namespace
}  // namespace repotxn::refs
