// Seeded randomness that lets a test in while it is drawn.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_SUPPORT_HOOKED_RANDOM_H_
#define REPOTXN_TESTS_SUPPORT_HOOKED_RANDOM_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "storage/random.h"
#include "tests/support/seeded_random.h"

namespace repotxn::testing {

// Runs an action once, at the next draw of random bytes: a place in a transaction's life where no mutex is held.
class HookedRandom final : public storage::Random {
 public:
  explicit HookedRandom(uint64_t seed) : random_(seed) {}

  void Fill(void* out, size_t size) override {
    if (auto action = std::exchange(action_, {})) action();
    random_.Fill(out, size);
  }
  void AtNextDraw(std::function<void()> action) { action_ = std::move(action); }

 private:
  SeededRandom random_;
  std::function<void()> action_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_HOOKED_RANDOM_H_
