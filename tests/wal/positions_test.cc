#include "wal/positions.h"

#include <string>

#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

LogPosition At(uint64_t lsn) {
  LogPosition position{Lsn(lsn), {}};
  position.chain.bytes[0] = static_cast<uint8_t>(lsn);
  return position;
}

Positions Sample() {
  Positions positions;
  positions.applied = At(50);
  EXPECT_OK(Acknowledge(&positions, "search", At(45)));
  EXPECT_OK(Acknowledge(&positions, "mirror", At(40)));
  return positions;
}

// Goal: the log goes no further than what every durable position allows [B15], and a consumer
// cannot pin it for ever. [LOG-11, LOG-27, LOG-30, LOG-31, POS-03, POS-08]
TEST(PositionsTest, LowWaterMarkIsTheOldestOfAppliedAndConsumers) {
  Positions positions = Sample();

  EXPECT_EQ(LowWaterMark(positions), At(40));
  positions.consumers.clear();
  EXPECT_EQ(LowWaterMark(positions), At(50));
}

auto LagsBehind(uint64_t lsn) {
  return [lsn](const ConsumerPosition& consumer) { return consumer.acknowledged.lsn < Lsn(lsn); };
}

// POS-06, POS-07
TEST(PositionsTest, DroppedConsumerPinsNothingAndIsToldSo) {
  Positions positions = Sample();

  EXPECT_EQ(DropConsumers(&positions, LagsBehind(41)), std::vector<std::string>{"mirror"});

  EXPECT_EQ(LowWaterMark(positions), At(45));
  EXPECT_TRUE(FindConsumer(positions, "mirror")->dropped);
  EXPECT_TRUE(DropConsumers(&positions, LagsBehind(41)).empty());  // once
  EXPECT_THAT(Acknowledge(&positions, "mirror", At(60)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(PositionsTest, KeepsConsumerThatDoesNotLag) {
  Positions positions = Sample();

  EXPECT_TRUE(DropConsumers(&positions, LagsBehind(40)).empty());
}

// P1. [POS-02]
TEST(PositionsTest, NeverMovesAConsumerBack) {
  Positions positions = Sample();

  EXPECT_OK(Acknowledge(&positions, "search", At(44)));
  EXPECT_EQ(FindConsumer(positions, "search")->acknowledged, At(45));
  EXPECT_OK(Acknowledge(&positions, "search", At(46)));
  EXPECT_EQ(FindConsumer(positions, "search")->acknowledged, At(46));
}

// POS-04, POS-05
TEST(PositionsTest, RefusesNamesThatCannotBeStored) {
  Positions positions;

  EXPECT_THAT(Acknowledge(&positions, "", At(1)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Acknowledge(&positions, View(std::string(256, 'n')), At(1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RemoveConsumer(&positions, "n"), StatusIs(absl::StatusCode::kNotFound));
}

// POS-01, POS-03
TEST(PositionsTest, StoredFormKeepsEverythingAndRefusesEveryDamage) {
  Positions positions = Sample();
  DropConsumers(&positions, LagsBehind(41));
  const std::string bytes = EncodePositions(positions);

  ASSERT_OK_AND_ASSIGN(const Positions decoded, DecodePositions(View(bytes)));
  EXPECT_EQ(decoded, positions);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THAT(DecodePositions(View(damaged)), StatusIs(absl::StatusCode::kDataLoss)) << i;
    EXPECT_THAT(DecodePositions(absl::string_view(bytes.data(), i)),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

}  // namespace
}  // namespace repotxn::wal
