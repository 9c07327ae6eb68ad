// What does it cost to check one written ref against a history of 1 k and of 1 M records, and to record one?
//
// "Miss": the ref was not written in the window. "Hit": it was, before my snapshot, so that the check must look it up
// and commits. The floor is one look-up of a 64-bit hash in a flat_hash_map of as many entries. Every iteration takes
// another ref, so that the caches hold no answer.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "locks/conflict_history.h"
#include "locks/footprint.h"

namespace repotxn::locks {
namespace {

constexpr uint64_t kFloor = 10;
constexpr size_t kProbes = 4096;

RepositoryId Repository() {
  std::array<uint8_t, RepositoryId::kBytes> bytes{};
  bytes[0] = 1;
  return RepositoryId(bytes);
}

Footprint WriteOf(uint64_t number) {
  return Footprint({Lock::Exclusive(
      LockKey::Ref(Repository(), absl::StrCat("refs/heads/feature/", number)))});
}

std::unique_ptr<ConflictHistory> HistoryOf(uint64_t records) {
  auto history = std::make_unique<ConflictHistory>(wal::Lsn(kFloor));
  for (uint64_t i = 1; i <= records; ++i) {
    history->Record(WriteOf(i), wal::Lsn(kFloor + i), TransactionId());
  }
  return history;
}

// Footprints of refs spread over the history, or of none in it.
std::vector<Footprint> Probes(uint64_t records, bool hit) {
  std::vector<Footprint> probes;
  for (uint64_t i = 0; i < kProbes; ++i) {
    const uint64_t number = 1 + i * 2654435761u % records;
    probes.push_back(WriteOf(hit ? number : number + records));
  }
  return probes;
}

void Check(benchmark::State& state, bool hit) {
  const auto records = static_cast<uint64_t>(state.range(0));
  const auto history = HistoryOf(records);
  const std::vector<Footprint> probes = Probes(records, hit);
  // One record is newer than the snapshot, so that the check cannot end early.
  const wal::Lsn snapshot_lsn(kFloor + records - 1);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(history->Check(probes[i++ % kProbes], snapshot_lsn));
  }
  state.counters["bytes_a_record"] =
      static_cast<double>(history->bytes()) / static_cast<double>(records);
}
void BM_CheckMiss(benchmark::State& state) { Check(state, false); }
void BM_CheckHit(benchmark::State& state) { Check(state, true); }
BENCHMARK(BM_CheckMiss)->Arg(1'000)->Arg(1'000'000);
BENCHMARK(BM_CheckHit)->Arg(1'000)->Arg(1'000'000);

void BM_FlatHashFloor(benchmark::State& state) {
  const auto records = static_cast<uint64_t>(state.range(0));
  absl::flat_hash_map<uint64_t, uint64_t> floor;
  std::vector<uint64_t> keys;
  for (uint64_t i = 1; i <= records; ++i) floor[i * 0x9E3779B97F4A7C15u] = i;
  for (uint64_t i = 0; i < kProbes; ++i) {
    keys.push_back((1 + i * 2654435761u % records) * 0x9E3779B97F4A7C15u);
  }
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(floor.find(keys[i++ % kProbes]));
}
BENCHMARK(BM_FlatHashFloor)->Arg(1'000)->Arg(1'000'000);

// With the oldest snapshot following, so that every record evicts one.
void BM_RecordAndEvict(benchmark::State& state) {
  const auto records = static_cast<uint64_t>(state.range(0));
  const auto history = HistoryOf(records);
  const std::vector<Footprint> probes = Probes(records, false);
  uint64_t lsn = kFloor + records;
  for (auto _ : state) {
    ++lsn;
    history->SetOldestSnapshot(wal::Lsn(lsn - records));
    history->Record(probes[lsn % kProbes], wal::Lsn(lsn), TransactionId());
  }
}
BENCHMARK(BM_RecordAndEvict)->Arg(1'000)->Arg(1'000'000);

// What is prepared outside the critical section for it.
void BM_Footprint(benchmark::State& state) {
  uint64_t number = 0;
  for (auto _ : state) benchmark::DoNotOptimize(WriteOf(++number));
}
BENCHMARK(BM_Footprint);

}  // namespace
}  // namespace repotxn::locks

BENCHMARK_MAIN();
