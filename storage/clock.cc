#include "storage/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace repotxn::storage {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

Clock* Clock::System() {
  static SystemClock* clock = new SystemClock;
  return clock;
}

}  // namespace repotxn::storage
