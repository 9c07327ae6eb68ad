// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_THAT(fs.Remove(path), IsOk());
//   EXPECT_THAT(fs.Stat(path), StatusIs(absl::StatusCode::kNotFound));
//   ASSERT_OK_AND_ASSIGN(const auto info, fs.Stat(path));
#ifndef REPOTXN_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define REPOTXN_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/status_macros.h"

namespace repotxn::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(StatusIs, code,
          std::string(negation ? "has another code than " : "has code ") +
              absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// OK, and the value matches `inner`.
template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename T>
  bool MatchAndExplain(const absl::StatusOr<T>& result,
                       ::testing::MatchResultListener* listener) const {
    if (!result.ok()) {
      *listener << result.status().ToString();
      return false;
    }
    return ::testing::ExplainMatchResult(inner_, *result, listener);
  }
  void DescribeTo(std::ostream* os) const { *os << "is OK and holds the expected value"; }
  void DescribeNegationTo(std::ostream* os) const { *os << "is not OK or holds another value"; }

 private:
  const Inner inner_;
};

template <typename Inner>
::testing::PolymorphicMatcher<IsOkAndHoldsMatcher<Inner>> IsOkAndHolds(Inner inner) {
  return ::testing::MakePolymorphicMatcher(IsOkAndHoldsMatcher<Inner>(std::move(inner)));
}

}  // namespace repotxn::testing

#define ASSERT_OK(expr) ASSERT_THAT(expr, ::repotxn::testing::IsOk())
#define EXPECT_OK(expr) EXPECT_THAT(expr, ::repotxn::testing::IsOk())

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL_(REPOTXN_CONCAT_(test_or_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  ASSERT_TRUE(tmp.ok()) << tmp.status();           \
  lhs = std::move(tmp).value()

#endif  // REPOTXN_TESTS_SUPPORT_STATUS_MATCHERS_H_
