#include "bench/rounds.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace repotxn::bench {
namespace {

constexpr double kQuickSeconds = 1;
constexpr char kQuickMinimum[] =
    "--benchmark_min_time=0.1";  // seconds, of the kind that Google Benchmark times

[[noreturn]] void Usage(const std::string& why) {
  std::fprintf(
      stderr,
      "%s\noptions: --dir DIR  --quick  --rounds N  --seconds S  --table FILE  --benchmark_...\n",
      why.c_str());
  std::exit(2);
}

double Positive(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(value > 0)) Usage(name + " needs a positive number");
  return value;
}

// Values of every measure of every benchmark, one a round.
using Samples = std::map<std::string, std::map<std::string, std::vector<double>>>;

// Prints as Google Benchmark does, and keeps the values.
class Collector final : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(OO_None) {}

  bool ReportContext(const Context& context) override {
    const bool is_first = std::exchange(is_first_, false);
    return !is_first || ConsoleReporter::ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.error_occurred) failed_ = true;
      if (run.error_occurred || run.run_type != Run::RT_Iteration) continue;
      std::string name = run.run_name.function_name;
      if (!run.run_name.args.empty()) name += "/" + run.run_name.args;
      auto& measures = samples_[name];
      measures[kNanoseconds].push_back(run.real_accumulated_time * 1e9 /
                                       static_cast<double>(run.iterations));
      for (const auto& [counter, value] : run.counters) measures[counter].push_back(value.value);
    }
  }
  bool failed() const { return failed_; }
  const Samples& samples() const { return samples_; }

 private:
  Samples samples_;
  bool is_first_ = true;
  bool failed_ = false;
};

// NaN when there is nothing.
double Median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> Find(const Samples& samples, const std::string& benchmark,
                         const std::string& measure) {
  const auto found = samples.find(benchmark);
  if (found == samples.end()) return {};
  const auto values = found->second.find(measure);
  return values == found->second.end() ? std::vector<double>() : values->second;
}

nlohmann::json Answer(const Samples& samples, const Question& question) {
  const std::vector<double> own = Find(samples, question.benchmark, question.measure);
  const std::vector<double> peer = Find(samples, question.peer_benchmark, question.measure);
  if (own.empty()) return nullptr;
  nlohmann::json answer = {{"question", question.text}, {"value", Median(own)},
                           {"unit", question.unit},     {"peer", nullptr},
                           {"peer_value", nullptr},     {"ratio", nullptr},
                           {"runs", own.size()}};
  if (!peer.empty()) {
    answer["peer"] = question.peer;
    answer["peer_value"] = Median(peer);
    answer["ratio"] = Median(own) / Median(peer);
    answer["runs"] = std::min(own.size(), peer.size());
  }
  return answer;
}

void PrintSpread(const Samples& samples) {
  std::printf("\nmedian (lowest to highest) over the rounds\n");
  for (const auto& [name, measures] : samples) {
    const auto rate = measures.find(kItemsPerSecond);
    const bool is_rate = rate != measures.end();
    const std::vector<double>& values = is_rate ? rate->second : measures.at(kNanoseconds);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::printf("  %-52s %12.1f (%.1f to %.1f) %s\n", name.c_str(), Median(values), *low, *high,
                is_rate ? "/s" : "ns");
  }
}

void PrintAnswers(const nlohmann::json& answers) {
  std::printf("\n");
  for (const auto& answer : answers) {
    std::printf("%s: %.1f %s", answer["question"].get<std::string>().c_str(),
                answer["value"].get<double>(), answer["unit"].get<std::string>().c_str());
    if (!answer["peer"].is_null()) {
      std::printf("; %s: %.1f; ratio %.3f", answer["peer"].get<std::string>().c_str(),
                  answer["peer_value"].get<double>(), answer["ratio"].get<double>());
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace

Options ParseOptions(int* argc, char** argv) {
  Options options;
  options.quick = std::any_of(argv, argv + *argc,
                              [](const char* word) { return std::string(word) == "--quick"; });
  if (options.quick) {
    // Before the real arguments, which may say otherwise.
    std::string minimum = kQuickMinimum;
    char* words[] = {argv[0], minimum.data(), nullptr};
    int count = 2;
    benchmark::Initialize(&count, words);
  }
  benchmark::Initialize(argc, argv);
  if (const char* directory = std::getenv("REPOTXN_BENCH_DIR")) options.directory = directory;
  double seconds = 0;
  for (int i = 1; i < *argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") continue;
    if (i + 1 >= *argc) Usage("unknown argument, or one without its value: " + word);
    const std::string value = argv[++i];
    if (word == "--dir") {
      options.directory = value;
    } else if (word == "--rounds") {
      options.rounds = static_cast<int>(std::min(1000.0, std::max(1.0, Positive(word, value))));
    } else if (word == "--seconds") {
      seconds = Positive(word, value);
    } else if (word == "--table") {
      options.table = value;
    } else {
      Usage("unknown argument " + word);
    }
  }
  if (options.quick) options.seconds = kQuickSeconds;
  if (seconds > 0) options.seconds = seconds;
  if (!options.directory.empty()) {
    options.directory = std::filesystem::absolute(options.directory);
    std::filesystem::create_directories(options.directory);
  }
  return options;
}

int RunRounds(const Options& options, const std::vector<Question>& questions) {
  Collector collector;
  for (int round = 1; round <= options.rounds && !collector.failed(); ++round) {
    std::printf("round %d of %d\n", round, options.rounds);
    std::fflush(stdout);
    if (benchmark::RunSpecifiedBenchmarks(&collector) == 0) return 1;
  }
  benchmark::Shutdown();

  nlohmann::json answers = nlohmann::json::array();
  for (const Question& question : questions) {
    nlohmann::json answer = Answer(collector.samples(), question);
    if (!answer.is_null()) answers.push_back(std::move(answer));
  }
  if (!collector.samples().empty()) PrintSpread(collector.samples());
  PrintAnswers(answers);
  if (!options.table.empty()) {
    std::ofstream out(options.table);
    out << answers.dump(1) << "\n";
    out.flush();
    if (!out) {
      std::fprintf(stderr, "cannot write %s\n", options.table.c_str());
      return 1;
    }
  }
  return collector.failed() ? 1 : 0;
}

}  // namespace repotxn::bench
