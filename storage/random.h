// Source of random bytes for identifiers, salts and jitter, as an argument, so that a test can
// replay a run.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_RANDOM_H_
#define REPOTXN_STORAGE_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace repotxn::storage {

class Random {
 public:
  virtual ~Random() = default;
  // Fills `size` bytes at `out`. Cannot fail: a kernel without randomness ends the process.
  virtual void Fill(void* out, size_t size) = 0;
};

// The kernel's randomness. Lives for ever.
Random* SystemRandom();

inline uint64_t NextUint64(Random& random) {
  uint64_t value = 0;
  random.Fill(&value, sizeof(value));
  return value;
}

// A fresh RepositoryId, TransactionId or StoreId:  NewId<TransactionId>(random).
template <typename Id>
Id NewId(Random& random) {
  std::array<uint8_t, Id::kBytes> bytes{};
  random.Fill(bytes.data(), bytes.size());
  return Id(bytes);
}

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_RANDOM_H_
