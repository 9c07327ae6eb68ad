// Random that gives the same bytes for the same seed.
//
// Thread-safe; the order among threads is theirs.
#ifndef REPOTXN_TESTS_SUPPORT_SEEDED_RANDOM_H_
#define REPOTXN_TESTS_SUPPORT_SEEDED_RANDOM_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "storage/random.h"

namespace repotxn::testing {

class SeededRandom final : public storage::Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  void Fill(void* out, size_t size) override;
  // A number in [0, bound); bound is above 0.
  uint64_t Below(uint64_t bound);

 private:
  uint64_t Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::Mutex mutex_{storage::MutexRank::kInnermost};
  uint64_t state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_SEEDED_RANDOM_H_
