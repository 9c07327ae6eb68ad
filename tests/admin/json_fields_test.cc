// Goal: a body means one thing or is refused with the field that is wrong. Fails when anything is
// guessed, ignored or read twice.
#include "admin/json_fields.h"

#include <string>
#include <utility>
#include <vector>

#include "admin/commit_reply.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "locks/verdict.h"
#include "objects/error_detail.h"
#include "tests/support/status_matchers.h"

namespace repotxn::admin {
namespace {

using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::StatusIs;
using ::testing::ElementsAre;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(JsonFieldsTest, GivesFieldsByTypeAndIsContentWhenAllWereAskedFor) {
  ASSERT_OK_AND_ASSIGN(JsonFields fields, JsonFields::Parse(
      R"({"text":"a","flag":true,"raw_hex":"00Ff","list":["x","y"],"items":[{"name":"n"}]})"));
  EXPECT_THAT(fields.String("text"), IsOkAndHolds(std::string("a")));
  EXPECT_THAT(fields.Finish(), StatusIs(kInvalid));
  EXPECT_THAT(fields.BoolOr("flag", false), IsOkAndHolds(true));
  EXPECT_THAT(fields.Bytes("raw"), IsOkAndHolds(std::string("\0\xff", 2)));
  ASSERT_OK_AND_ASSIGN(const auto list, fields.OptionalStrings("list"));
  EXPECT_THAT(*list, ElementsAre("x", "y"));
  ASSERT_OK_AND_ASSIGN(std::vector<JsonFields> items, fields.Objects("items"));
  EXPECT_THAT(items[0].Finish(), StatusIs(kInvalid));
  EXPECT_THAT(items[0].String("name"), IsOkAndHolds(std::string("n")));
  EXPECT_THAT(items[0].Finish(), IsOk());
  EXPECT_THAT(fields.StringOr("absent", "fallback"), IsOkAndHolds(std::string("fallback")));
  EXPECT_THAT(fields.Finish(), IsOk());
}

TEST(JsonFieldsTest, RefusesDocumentsThatAreNone) {
  std::string deep = "1";
  for (int i = 0; i < 20; ++i) deep = "[" + deep + "]";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string("{} x"), std::string("null"),
        std::string(R"({"a":1,"a":1})"), std::string(R"({"o":{"a":1,"a":2}})"), "{\"a\":" + deep + "}",
        std::string("{\"a\":\"\xff\"}"), std::string(R"({'a':1})"), std::string(R"({"a":1,})")}) {
    EXPECT_THAT(JsonFields::Parse(text), StatusIs(kInvalid)) << text;
  }
  EXPECT_THAT(JsonFields::Parse(std::string(kBodyBytesMax + 1, ' ')),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(JsonFieldsTest, NamesTheFieldThatIsWrong) {
  ASSERT_OK_AND_ASSIGN(JsonFields fields, JsonFields::Parse(
      R"({"number":1,"text":"a","text_hex":"61","bad_hex":"6","list":[1],"items":[1]})"));
  const std::vector<std::pair<absl::Status, std::string>> faults = {
      {fields.String("absent").status(), "absent"},
      {fields.String("number").status(), "number"},
      {fields.BoolOr("text", true).status(), "text"},
      {fields.Bytes("text").status(), "text"},
      {fields.Bytes("bad").status(), "bad_hex"},
      {fields.Bytes("none").status(), "none"},
      {fields.OptionalStrings("list").status(), "list"},
      {fields.OptionalStrings("text").status(), "text"},
      {fields.Objects("items").status(), "items"},
      {fields.Objects("absent").status(), "absent"}};
  for (const auto& [status, field] : faults) {
    EXPECT_THAT(status, StatusIs(kInvalid));
    EXPECT_EQ(objects::ErrorDetail(status, "field"), field);
  }
}

// Goal: whatever a write came to, its answer tells the outcome, and what to do next.
TEST(CommitReplyTest, TellsEachOutcome) {
  const TransactionId id = *TransactionId::FromHex(std::string(32, 'a'));
  const auto reply = [&](txn::CommitOutcome outcome, absl::Status status) {
    txn::CommitResult result;
    result.outcome = outcome;
    result.lsn = wal::Lsn(outcome == txn::CommitOutcome::kCommitted ? 7 : 0);
    result.transaction_id = id;
    result.status = std::move(status);
    return ResultReply(result, 201);
  };

  const Reply committed = reply(txn::CommitOutcome::kCommitted, absl::OkStatus());
  EXPECT_EQ(committed.status, 201);
  EXPECT_EQ(committed.body, (Json{{"outcome", "committed"}, {"transaction_id", id.ToHex()}, {"lsn", 7}}));

  const Reply poisoned = reply(txn::CommitOutcome::kUnknown, absl::UnavailableError("sync failed"));
  EXPECT_EQ(poisoned.status, 503);
  EXPECT_EQ(poisoned.body["ask"], "/api/transactions/" + id.ToHex());
  const Reply late = reply(txn::CommitOutcome::kUnknown, absl::DeadlineExceededError("too late"));
  EXPECT_EQ(late.status, 202);
  EXPECT_EQ(late.body["outcome"], "unknown");
  EXPECT_EQ(late.body["error"]["code"], "deadline_exceeded");
  EXPECT_EQ(reply(txn::CommitOutcome::kNotCommitted, absl::DeadlineExceededError("x")).status, 503);
}

TEST(CommitReplyTest, TellsWhomAConflictWasLostAgainst) {
  const TransactionId other = *TransactionId::FromHex(std::string(32, 'b'));
  txn::CommitResult result;
  result.status = locks::ToStatus(locks::ConflictDetail{locks::ConflictRule::kRefWritten,
                                                        "ref x refs/heads/main", wal::Lsn(3),
                                                        wal::Lsn(5), other});
  const Reply reply = ResultReply(result, 200);
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.body["error"]["code"], "aborted");
  const Json& detail = reply.body["error"]["detail"];
  EXPECT_EQ(detail["key"], "ref x refs/heads/main");
  EXPECT_EQ(detail["snapshot_lsn"], "3");
  EXPECT_EQ(detail["conflicting_lsn"], "5");
  EXPECT_EQ(detail["conflicting_transaction"], other.ToHex());
  EXPECT_FALSE(detail["rule"].get<std::string>().empty());
}

}  // namespace
}  // namespace repotxn::admin
