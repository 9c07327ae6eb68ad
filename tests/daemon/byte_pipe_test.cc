#include "daemon/byte_pipe.h"

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;

// Goal: bytes arrive whole and in order, and nobody waits for an end that is gone. Fails when a
// byte is lost or a thread never comes back (the test's own time limit).
class BytePipeTest : public ::testing::Test {
 protected:
  static absl::Time Soon() { return absl::Now() + absl::Seconds(30); }
};

TEST_F(BytePipeTest, CarriesMoreThanItHolds) {
  BytePipe pipe(7);
  std::string sent;
  for (int i = 0; i < 10'000; ++i) sent.push_back(static_cast<char>(i % 251));
  std::thread writer([&] {
    EXPECT_THAT(pipe.Write(sent, Soon()), IsOk());
    pipe.Close();
  });

  std::string received;
  char buffer[13];
  while (true) {
    const absl::StatusOr<size_t> size = pipe.Read(absl::MakeSpan(buffer), Soon());
    ASSERT_THAT(size, IsOk());
    if (*size == 0) break;
    received.append(buffer, *size);
  }
  writer.join();
  EXPECT_EQ(received, sent);
}

TEST_F(BytePipeTest, ABreakReachesAWaitingWriterAndAWaitingReader) {
  BytePipe full(1);
  BytePipe empty(1);
  std::thread writer([&] {
    EXPECT_THAT(full.Write("ab", Soon()), StatusIs(absl::StatusCode::kUnavailable));
  });
  std::thread reader([&] {
    char c = 0;
    EXPECT_THAT(empty.Read(absl::MakeSpan(&c, 1), Soon()),
                StatusIs(absl::StatusCode::kUnavailable));
  });
  full.Break(absl::UnavailableError("gone"));
  empty.Break(absl::UnavailableError("gone"));
  writer.join();
  reader.join();
}

TEST_F(BytePipeTest, TheFirstReasonStays) {
  BytePipe pipe(1);
  pipe.Break(absl::ResourceExhaustedError("too much"));
  pipe.Break(absl::CancelledError("later"));
  EXPECT_THAT(pipe.Write("a", Soon()), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(BytePipeTest, ADeadlineThatPassedEndsTheWait) {
  BytePipe pipe(1);
  char c = 0;
  EXPECT_THAT(pipe.Read(absl::MakeSpan(&c, 1), absl::Now()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(pipe.Write("ab", absl::Now()), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(BytePipeTest, GivesWhatIsInsideAfterItWasClosed) {
  BytePipe pipe(8);
  ASSERT_THAT(pipe.Write("abc", Soon()), IsOk());
  pipe.Close();
  char buffer[8];
  EXPECT_EQ(*pipe.Read(absl::MakeSpan(buffer), Soon()), 3u);
  EXPECT_EQ(*pipe.Read(absl::MakeSpan(buffer), Soon()), 0u);
}

}  // namespace
}  // namespace repotxn::daemon
