// Runs the benchmarks of a program in rounds and sets each beside its peer.
//
// A machine's disk and neighbours change from minute to minute, so no figure is compared with one
// of another run: in every round each benchmark runs once, in the order of registration, and what
// is reported is the median over the rounds of a benchmark, the median of its peer, and the ratio
// of the two medians.
//
//   bench::Options options = bench::ParseOptions(&argc, argv);
//   benchmark::RegisterBenchmark("Ours/committers:1", ...)->Iterations(1)->UseManualTime();
//   return bench::RunRounds(
//       options, {{.text = "durable commits", .benchmark = "Ours/committers:1", ...}});
//
// Single-threaded.
#ifndef REPOTXN_BENCH_ROUNDS_H_
#define REPOTXN_BENCH_ROUNDS_H_

#include <string>
#include <vector>

namespace repotxn::bench {

// From the command line: --dir DIR (else REPOTXN_BENCH_DIR), --quick, --rounds N, --seconds S,
// --table FILE.
struct Options {
  std::string directory;  // absolute, exists; empty when none was given
  bool quick = false;     // a smoke run: short measurements, the same rounds
  int rounds = 5;         // [1, 1000]
  double seconds = 6;  // length of one measurement of the kind that runs for a time; 1 when quick
  std::string table;   // file for the answers as JSON; empty: none
};

// What is measured of a benchmark.
inline constexpr char kItemsPerSecond[] = "items_per_second";
inline constexpr char kNanoseconds[] = "nanoseconds";  // real time of an iteration

// One line of the table.
struct Question {
  std::string text;
  std::string unit;       // "/s", "ns", "B"
  std::string benchmark;  // as registered, arguments included ("Check/1000")
  std::string peer = {};  // for people; empty: the figure stands alone
  std::string peer_benchmark = {};
  std::string measure = kItemsPerSecond;  // or kNanoseconds, or the name of a counter
};

// Takes what it knows out of the arguments, those of Google Benchmark included. Ends the program,
// with 2, when one is wrong.
Options ParseOptions(int* argc, char** argv);

// Runs the rounds and prints the answers. Returns the exit code: 1 when a benchmark failed.
// Questions whose benchmark --benchmark_filter left out are left out as well.
int RunRounds(const Options& options, const std::vector<Question>& questions);

}  // namespace repotxn::bench

#endif  // REPOTXN_BENCH_ROUNDS_H_
