#include "storage/sync.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "storage/check.h"

namespace repotxn::storage {
namespace {

// Several partitions, and the latches of several repositories, are held together in id order.
constexpr bool MayRepeat(MutexRank rank) {
  return rank == MutexRank::kPartition || rank == MutexRank::kMaterializer ||
         rank == MutexRank::kInnermost;
}

// Ranks that this thread holds, in order of acquisition. Nothing to free or destroy: a mutex may be
// released while the thread's other locals are already gone. A commit holds one a partition.
struct HeldRanks {
  std::array<MutexRank, 1024> ranks;
  size_t count;
};
thread_local HeldRanks held_ranks;

}  // namespace

void SetSchedulingHook(SchedulingHook* hook) {
  internal::scheduling_hook.store(hook, std::memory_order_release);
}

namespace internal {

std::atomic<SchedulingHook*> scheduling_hook{nullptr};

void PushRank(MutexRank rank) {
  HeldRanks& held = held_ranks;
  for (size_t i = 0; i < held.count; ++i) {
    const MutexRank other = held.ranks[i];
    if (other < rank || (other == rank && MayRepeat(rank))) continue;
    std::fprintf(stderr, "lock order: rank %d acquired under rank %d\n", static_cast<int>(rank),
                 static_cast<int>(other));
    ::repotxn::internal::CheckFailed("mutexes are acquired in the order of their ranks", __FILE__,
                                     __LINE__);
  }
  REPOTXN_DCHECK(held.count < held.ranks.size());
  held.ranks[held.count++] = rank;
}

void PopRank(MutexRank rank) {
  HeldRanks& held = held_ranks;
  auto* const end = held.ranks.data() + held.count;
  auto* found = end;
  while (found != held.ranks.data() && *(found - 1) != rank) --found;
  if (found == held.ranks.data()) {
    ::repotxn::internal::CheckFailed("a mutex is released by the thread that holds it", __FILE__,
                                     __LINE__);
  }
  std::copy(found, end, found - 1);
  --held.count;
}

}  // namespace internal
}  // namespace repotxn::storage
