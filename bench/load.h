// Several threads that do one thing again and again, and the time they took.
#ifndef REPOTXN_BENCH_LOAD_H_
#define REPOTXN_BENCH_LOAD_H_

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace repotxn::bench {

// One unit of work of thread `thread`, its `number`-th, from 0. Any error ends the load.
using Work = std::function<absl::Status(int thread, int64_t number)>;

struct LoadResult {
  int64_t done = 0;
  absl::Duration elapsed;
  absl::Status status;  // the first error
};

// Runs `work` on `threads` threads until `duration` has passed or, when `count_max` is given, so
// many units were begun in all. Starting the threads is not in the time.
inline LoadResult RunLoad(int threads, absl::Duration duration, const Work& work,
                          int64_t count_max = INT64_MAX) {
  std::atomic<int64_t> begun{0};
  std::atomic<int64_t> done{0};
  std::atomic<bool> must_stop{false};
  std::vector<absl::Status> statuses(static_cast<size_t>(threads));
  std::latch ready(threads + 1);
  std::vector<std::thread> running;
  absl::Time deadline;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      ready.arrive_and_wait();
      const auto index = static_cast<size_t>(thread);
      int64_t number = 0;
      while (!must_stop && absl::Now() < deadline && begun.fetch_add(1) < count_max) {
        statuses[index] = work(thread, number++);
        if (!statuses[index].ok()) must_stop = true;
      }
      done += number;
    });
  }
  const absl::Time start = absl::Now();
  deadline = start + duration;
  ready.arrive_and_wait();
  for (std::thread& thread : running) thread.join();
  LoadResult result{done, absl::Now() - start, absl::OkStatus()};
  for (const absl::Status& status : statuses) result.status.Update(status);
  return result;
}

// Hands a result to Google Benchmark; for benchmarks of one iteration and manual time.
inline void Report(benchmark::State& state, const LoadResult& result) {
  if (!result.status.ok()) {
    state.SkipWithError(result.status.ToString().c_str());
    return;
  }
  state.SetIterationTime(absl::ToDoubleSeconds(result.elapsed));
  state.SetItemsProcessed(result.done);
}

}  // namespace repotxn::bench

#endif  // REPOTXN_BENCH_LOAD_H_
