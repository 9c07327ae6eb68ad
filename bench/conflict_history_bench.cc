// What does it cost to check one written ref against a history of 1 k and of 1 M records, and to
// record one?
//
// "Miss": the ref was not written in the window. "Hit": it was, before my snapshot, so that the
// check must look it up and commits. The floor is one look-up of a 64-bit hash in a flat_hash_map
// of as many entries. Every iteration takes another ref, so that the caches hold no answer. The
// histories are made once and shared by the rounds.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
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
  return Footprint(
      {Lock::Exclusive(LockKey::Ref(Repository(), absl::StrCat("refs/heads/feature/", number)))});
}

std::unique_ptr<ConflictHistory> HistoryOf(uint64_t records) {
  auto history = std::make_unique<ConflictHistory>(wal::Lsn(kFloor));
  for (uint64_t i = 1; i <= records; ++i) {
    history->Record(WriteOf(i), wal::Lsn(kFloor + i), TransactionId());
  }
  return history;
}

const ConflictHistory& SharedHistoryOf(uint64_t records) {
  static auto* histories = new std::map<uint64_t, std::unique_ptr<ConflictHistory>>();
  std::unique_ptr<ConflictHistory>& history = (*histories)[records];
  if (history == nullptr) history = HistoryOf(records);
  return *history;
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
  const ConflictHistory& history = SharedHistoryOf(records);
  const std::vector<Footprint> probes = Probes(records, hit);
  // One record is newer than the snapshot, so that the check cannot end early.
  const wal::Lsn snapshot_lsn(kFloor + records - 1);
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(history.Check(probes[i++ % kProbes], snapshot_lsn));
  }
  state.counters["bytes_a_record"] =
      static_cast<double>(history.bytes()) / static_cast<double>(records);
}
void CheckMiss(benchmark::State& state) { Check(state, false); }
void CheckHit(benchmark::State& state) { Check(state, true); }

void FlatHashFloor(benchmark::State& state) {
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

// With the oldest snapshot following, so that every record evicts one.
void RecordAndEvict(benchmark::State& state) {
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

// What is prepared outside the critical section for it.
void MakeFootprint(benchmark::State& state) {
  uint64_t number = 0;
  for (auto _ : state) benchmark::DoNotOptimize(WriteOf(++number));
}

// The order is the order within a round: a size beside its floor.
void Register() {
  for (const int64_t records : {1'000, 1'000'000}) {
    benchmark::RegisterBenchmark("CheckMiss", CheckMiss)->Arg(records);
    benchmark::RegisterBenchmark("CheckHit", CheckHit)->Arg(records);
    benchmark::RegisterBenchmark("FlatHashFloor", FlatHashFloor)->Arg(records);
  }
  for (const int64_t records : {1'000, 1'000'000}) {
    benchmark::RegisterBenchmark("RecordAndEvict", RecordAndEvict)->Arg(records);
  }
  benchmark::RegisterBenchmark("MakeFootprint", MakeFootprint);
}

std::vector<bench::Question> Questions() {
  const std::string floor = "one look-up in a flat hash map";
  const auto time = bench::kNanoseconds;
  return {
      {"conflict check of one written ref, 1 k records, miss", "ns", "CheckMiss/1000", floor,
       "FlatHashFloor/1000", time},
      {"conflict check of one written ref, 1 M records, miss", "ns", "CheckMiss/1000000", floor,
       "FlatHashFloor/1000000", time},
      {"conflict check of one written ref, 1 k records, hit", "ns", "CheckHit/1000", floor,
       "FlatHashFloor/1000", time},
      {"conflict check of one written ref, 1 M records, hit", "ns", "CheckHit/1000000", floor,
       "FlatHashFloor/1000000", time},
      {"the same hit, 1 M records beside 1 k", "ns", "CheckHit/1000000", "itself, 1 k records",
       "CheckHit/1000", time},
      {"recording one written ref and evicting one, 1 M records", "ns", "RecordAndEvict/1000000",
       "itself, 1 k records", "RecordAndEvict/1000", time},
      {"making the footprint of one written ref", "ns", "MakeFootprint", "", "", time},
      {"memory of the history, 1 M records of one new ref", "B/record", "CheckMiss/1000000", "", "",
       "bytes_a_record"},
  };
}

}  // namespace
}  // namespace repotxn::locks

int main(int argc, char** argv) {
  const repotxn::bench::Options options = repotxn::bench::ParseOptions(&argc, argv);
  repotxn::locks::Register();
  return repotxn::bench::RunRounds(options, repotxn::locks::Questions());
}
