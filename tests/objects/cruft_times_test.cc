// Goal: times of a cruft pack are what was written, and nothing that is cut, damaged or of another pack's size is believed.
#include "objects/cruft_times.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::StatusIs;

TEST(CruftTimesTest, AreReadAsTheyWereWrittenInBothFormats) {
  const std::vector<uint32_t> times = {0, 1'700'000'000, 0xffffffff};
  for (const ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256}) {
    const std::string bytes = FormatCruftTimes(times, std::string(ObjectIdBytes(format), 'p'), format);
    const auto read = ParseCruftTimes(bytes, 3, format);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, times);
    EXPECT_THAT(ParseCruftTimes(bytes, 2, format), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(ParseCruftTimes(bytes, -1, format), StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(ParseCruftTimes(bytes.substr(0, bytes.size() - 1), 3, format), StatusIs(absl::StatusCode::kDataLoss));
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      EXPECT_THAT(ParseCruftTimes(damaged, 3, format), StatusIs(absl::StatusCode::kDataLoss)) << at;
    }
  }
}

}  // namespace
}  // namespace repotxn::objects
