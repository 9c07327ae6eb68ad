#include "locks/verdict.h"

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "tests/locks/scenario.h"

namespace repotxn::locks {
namespace {

// The status that a caller gets: code, constant message, payload there and back, and no trust in foreign payloads.
class VerdictTest : public ::testing::Test {
 protected:
  static ConflictDetail Detail() {
    ConflictDetail detail;
    detail.rule = ConflictRule::kRefWritten;
    detail.key = "ref 00/refs/heads/a b";
    detail.snapshot_lsn = wal::Lsn(7);
    detail.conflicting_lsn = wal::Lsn::Max();
    detail.conflicting_transaction = *TransactionId::FromHex("00112233445566778899aabbccddeeff");
    return detail;
  }
};

TEST_F(VerdictTest, DetailSurvivesTheStatus) {
  const absl::Status status = ToStatus(Detail());

  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(std::string(status.message()), "ref was written after the snapshot");
  EXPECT_EQ(ConflictDetailOf(status), Detail());
}

TEST_F(VerdictTest, CommitIsOk) { EXPECT_TRUE(ToStatus(CheckResult(), Footprint()).ok()); }

TEST_F(VerdictTest, TooOldHasNoKey) {
  CheckResult result;
  result.verdict = Verdict::kTooOld;
  result.rule = ConflictRule::kTooOld;
  result.conflicting_lsn = wal::Lsn(9);

  const auto detail = ConflictDetailOf(ToStatus(result, Footprint()));

  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->key, "");
  EXPECT_EQ(detail->conflicting_lsn, wal::Lsn(9));
}

TEST_F(VerdictTest, MalformedPayloadsGiveNothing) {
  for (const char* payload :
       {"", "6", "6 7 8", "0 7 8 00112233445566778899aabbccddeeff k",
        "99 7 8 00112233445566778899aabbccddeeff k", "6 x 8 00112233445566778899aabbccddeeff k",
        "6 7 -8 00112233445566778899aabbccddeeff k", "6 7 8 0011 k"}) {
    absl::Status status = absl::AbortedError("x");
    status.SetPayload(kConflictPayloadUrl, absl::Cord(payload));
    EXPECT_FALSE(ConflictDetailOf(status).has_value()) << payload;
  }
  EXPECT_FALSE(ConflictDetailOf(absl::AbortedError("x")).has_value());
}

TEST_F(VerdictTest, EveryRuleHasItsOwnLowerCaseText) {
  std::set<std::string> texts;
  for (int rule = 0; rule <= static_cast<int>(ConflictRule::kRequestUsed); ++rule) {
    const absl::string_view text = ConflictRuleText(static_cast<ConflictRule>(rule));
    EXPECT_TRUE(absl::ascii_islower(static_cast<unsigned char>(text[0])));
    EXPECT_TRUE(texts.emplace(text.data(), text.size()).second) << rule;
  }
}

TEST_F(VerdictTest, KeyTextIsEscaped) {
  EXPECT_EQ(LockKey::Request("a\n\"b").ToString(), "request a\\n\\\"b");
}

}  // namespace
}  // namespace repotxn::locks
