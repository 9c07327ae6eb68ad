#include "storage/sync.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "storage/check.h"

namespace repotxn::storage {
namespace {

// Several partitions, and the latches of several repositories, are held together in id order.
constexpr bool MayRepeat(MutexRank rank) {
  return rank == MutexRank::kPartition || rank == MutexRank::kMaterializer ||
         rank == MutexRank::kInnermost;
}

// Ranks that this thread holds, in order of acquisition. Never freed: a mutex may be released while
// the thread's other locals are already being destroyed.
std::vector<MutexRank>& HeldRanks() {
  static thread_local std::vector<MutexRank>* held = new std::vector<MutexRank>;
  return *held;
}

}  // namespace

void SetSchedulingHook(SchedulingHook* hook) {
  internal::scheduling_hook.store(hook, std::memory_order_release);
}

namespace internal {

std::atomic<SchedulingHook*> scheduling_hook{nullptr};

void PushRank(MutexRank rank) {
  std::vector<MutexRank>& held = HeldRanks();
  for (const MutexRank other : held) {
    if (other < rank || (other == rank && MayRepeat(rank))) continue;
    std::fprintf(stderr, "lock order: rank %d acquired under rank %d\n", static_cast<int>(rank),
                 static_cast<int>(other));
    ::repotxn::internal::CheckFailed("mutexes are acquired in the order of their ranks", __FILE__,
                                     __LINE__);
  }
  held.push_back(rank);
}

void PopRank(MutexRank rank) {
  std::vector<MutexRank>& held = HeldRanks();
  const auto it = std::find(held.rbegin(), held.rend(), rank);
  if (it == held.rend()) {
    ::repotxn::internal::CheckFailed("a mutex is released by the thread that holds it", __FILE__,
                                     __LINE__);
  }
  held.erase(std::next(it).base());
}

}  // namespace internal
}  // namespace repotxn::storage
