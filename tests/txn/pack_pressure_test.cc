// Goal: who adds packs faster than they are merged waits for the merge, and for no longer than his patience.
#include "txn/pack_pressure.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "storage/clock.h"
#include "tests/support/scripted_clock.h"

namespace repotxn::txn {
namespace {

TEST(PackPressureTest, LetsThroughWhoFindsFewPacks) {
  PackPressure pressure;
  pressure.Await({}, storage::Clock::System(), [] { return PackPressure::kPacksWaitingMin - 1; });
}

// P3
TEST(PackPressureTest, WaitsUntilAMergeBegins) {
  PackPressure pressure;
  std::atomic<int> packs{PackPressure::kPacksWaitingMin}, asked{0};
  std::thread adder([&] {
    pressure.Await({}, storage::Clock::System(), [&] {
      ++asked;
      return packs.load();
    });
  });
  while (asked.load() < 2) std::this_thread::yield();
  packs = 0;
  pressure.NoteMerge();
  adder.join();
}

TEST(PackPressureTest, GoesOnWhenCalledOffWhenTheStoreClosesAndWhenPatienceIsOver) {
  PackPressure pressure;
  const auto many = [] { return PackPressure::kPacksWaitingMin; };
  storage::CancellationSource source;
  source.request_stop();
  storage::WaitLimit limit;
  limit.cancellation = source.get_token();
  pressure.Await(limit, storage::Clock::System(), many);
  repotxn::testing::ScriptedClock clock;
  pressure.Await({}, &clock, [&] {
    clock.Advance(PackPressure::kPatience / 2);
    return PackPressure::kPacksWaitingMin;
  });
  pressure.Release();
  pressure.Await({}, storage::Clock::System(), many);
}

}  // namespace
}  // namespace repotxn::txn
