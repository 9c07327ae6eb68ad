#include "tests/support/seeded_random.h"

#include <algorithm>
#include <cstring>

#include "storage/check.h"

namespace repotxn::testing {

// A counter through a mixing function (the finaliser of splitmix64): every seed is good, and the
// state is one number.
uint64_t SeededRandom::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

void SeededRandom::Fill(void* out, size_t size) {
  const storage::MutexLock lock(&mutex_);
  char* next = static_cast<char*>(out);
  while (size > 0) {
    const uint64_t value = Next();
    const size_t part = std::min(size, sizeof(value));
    std::memcpy(next, &value, part);
    next += part;
    size -= part;
  }
}

uint64_t SeededRandom::Below(uint64_t bound) {
  REPOTXN_DCHECK(bound > 0);
  const storage::MutexLock lock(&mutex_);
  return Next() % bound;
}

}  // namespace repotxn::testing
