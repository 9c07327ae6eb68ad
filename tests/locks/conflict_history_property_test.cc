#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/check.h"
#include "tests/locks/history_script.h"

namespace repotxn::locks {
namespace {

// Random scripts, seeded, against the naive oracle, both ways: no conflict is missed (P4) and none is invented (P13,
// B4). Eviction runs in between and must change no verdict. Fails at the first difference with its seed. Then planted
// bugs, each of which a few thousand of the same scripts must notice.
class ConflictHistoryPropertyTest : public ::testing::Test {
 protected:
  static std::vector<uint8_t> RandomScript(uint64_t seed) {
    std::mt19937_64 random(seed);  // the same everywhere, which Abseil's generators are not
    std::vector<uint8_t> script(40 + random() % 220);
    for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
    return script;
  }

  // The first seed below `count` whose script shows a difference; -1 when there is none.
  int64_t FirstFault(int64_t count) {
    for (int64_t seed = 0; seed < count; ++seed) {
      const std::vector<uint8_t> bytes = RandomScript(static_cast<uint64_t>(seed));
      HistoryScript script(bytes.data(), bytes.size());
      fault_ = script.Run();
      if (!fault_.empty()) return seed;
      commits_ += script.commits();
      conflicts_ += script.conflicts();
    }
    return -1;
  }

  std::string fault_;
  size_t commits_ = 0;
  size_t conflicts_ = 0;
};

// FSH-01, FSH-28, FSH-30
TEST_F(ConflictHistoryPropertyTest, AgreesWithNaiveRulesOnRandomHistories) {
  const int64_t seed = FirstFault(100'000);

  EXPECT_EQ(seed, -1) << "seed " << seed << ": " << fault_;
  // Neither verdict may be rare, else the comparison proves little.
  EXPECT_GT(commits_, 300'000u);
  EXPECT_GT(conflicts_, 100'000u);
}

class ConflictHistoryPlantedBugTest : public ConflictHistoryPropertyTest,
                                      public ::testing::WithParamInterface<const char*> {};

TEST_P(ConflictHistoryPlantedBugTest, IsNoticed) {
  const PlantedBug bug(GetParam());

  EXPECT_NE(FirstFault(5'000), -1) << GetParam() << " went unnoticed";
}

INSTANTIATE_TEST_SUITE_P(Plants, ConflictHistoryPlantedBugTest,
                         ::testing::Values("locks.ignore_reads", "locks.ignore_writes",
                                           "locks.ignore_too_old",
                                           "locks.ignore_ancestor_removal"));

}  // namespace
}  // namespace repotxn::locks
