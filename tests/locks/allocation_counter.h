// Counts the allocations of this process, by replacing global operator new. Include in one source of a test program.
//
// Thread-safe.
#ifndef REPOTXN_TESTS_LOCKS_ALLOCATION_COUNTER_H_
#define REPOTXN_TESTS_LOCKS_ALLOCATION_COUNTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/support/sanitizers.h"

namespace repotxn::locks {
inline std::atomic<int64_t> allocation_count{0};
inline std::atomic<size_t> allocation_bytes_max{0};
}  // namespace repotxn::locks

// Not inlined: the compiler would see malloc and free in pairs that it does not trust.
#if !REPOTXN_SANITIZED
__attribute__((noinline)) void* operator new(std::size_t size) {
  repotxn::locks::allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (size > repotxn::locks::allocation_bytes_max) repotxn::locks::allocation_bytes_max = size;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

#endif  // REPOTXN_TESTS_LOCKS_ALLOCATION_COUNTER_H_
