// What do very many refs cost: the deletion of one that is packed among a million, and packing a
// hundred thousand files?
//
// Deletions. Two equal repositories with as many packed refs. Ours (adopted): one deletion after
// another, each a durable transaction through Store::Run, with the background thread on; the clock
// stops only when packed-refs on disk is what the deletions made it and a checkpoint has been
// taken. Peer: a `git update-ref -d` each, with core.fsync=all.
//
// Packing. In each round two equal repositories with as many loose refs. Ours is adopted first; the
// clock runs while housekeeping packs the refs, until the files are written and a checkpoint has
// been taken. Peer: `git pack-refs --all`, with core.fsync=all.
//
// Afterwards stock Git must find the same refs, in packed-refs alone.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/git_peer.h"
#include "bench/load.h"
#include "bench/rounds.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store.h"

namespace repotxn::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRefsADirectory = 1000;

struct Bench {
  Options options;
  History history;

  std::string Directory(absl::string_view name) const {
    return absl::StrCat(options.directory, "/", name);
  }
  int64_t packed_refs() const { return options.quick ? 100'000 : 1'000'000; }
  int64_t loose_refs() const { return options.quick ? 20'000 : 100'000; }
};

// Sorted as the numbers are.
std::string RefAt(int64_t number) {
  return absl::StrFormat("refs/heads/d%04d/b%07d", number / kRefsADirectory, number);
}

const ObjectId& ValueAt(const History& history, int64_t number) {
  return history.commits[static_cast<size_t>(number) % history.commits.size()];
}

absl::Status MakeRepository(const History& history, const std::string& directory) {
  REPOTXN_RETURN_IF_ERROR(RunGit({"init", "-q", "--bare", "-b", "main", directory}).status());
  return CopyPack(history, directory);
}

absl::Status MakePacked(const History& history, const std::string& directory, int64_t refs) {
  REPOTXN_RETURN_IF_ERROR(MakeRepository(history, directory));
  std::ofstream out(directory + "/packed-refs");
  out << "# pack-refs with: peeled fully-peeled sorted \n";
  for (int64_t n = 0; n < refs; ++n) {
    out << ValueAt(history, n).ToHex() << ' ' << RefAt(n) << '\n';
  }
  out.flush();
  return out ? absl::OkStatus() : absl::UnknownError("cannot write packed-refs");
}

absl::Status MakeLoose(const History& history, const std::string& directory, int64_t refs) {
  REPOTXN_RETURN_IF_ERROR(MakeRepository(history, directory));
  for (int64_t n = 0; n < refs; ++n) {
    const std::string path = absl::StrCat(directory, "/", RefAt(n));
    if (n % kRefsADirectory == 0) fs::create_directories(fs::path(path).parent_path());
    std::ofstream out(path);
    out << ValueAt(history, n).ToHex() << '\n';
    out.flush();
    if (!out) return absl::UnknownError("cannot write " + path);
  }
  return absl::OkStatus();
}

// Files below refs/: none when all refs are packed.
int64_t LooseRefs(const std::string& directory) {
  int64_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory + "/refs")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  return files;
}

absl::StatusOr<int64_t> CountRefs(const std::string& directory) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string listed,
                           RunGit({"--git-dir=" + directory, "for-each-ref", "--format=;"}));
  return std::count(listed.begin(), listed.end(), ';');
}

// What is on disk before the clock starts is no part of what is measured.
void SettleDisk() { sync(); }

// A store with one adopted repository.
struct Adopted {
  std::unique_ptr<txn::Store> store;
  RepositoryId id;
  std::string directory;  // absolute
};

// `make` fills the directory that it is given.
absl::StatusOr<Adopted> Adopt(const std::string& root, bool background_thread,
                              absl::FunctionRef<absl::Status(const std::string&)> make) {
  txn::StoreOptions options;
  options.create_if_missing = true;
  options.background_thread = background_thread;
  Adopted adopted;
  REPOTXN_ASSIGN_OR_RETURN(adopted.store, txn::Store::Open(root, options));
  fs::create_directories(root + "/incoming");
  REPOTXN_RETURN_IF_ERROR(make(root + "/incoming/r.git"));
  txn::AdoptOptions adopt;
  adopt.verify_content = false;
  REPOTXN_ASSIGN_OR_RETURN(
      const txn::AdoptionReport report,
      adopted.store->Adopt("incoming/r.git", *txn::RepositoryPath::Parse("bench/r"), adopt));
  adopted.id = report.id;
  adopted.directory = absl::StrCat(root, "/", txn::layout::RepositoryDirectory(report.id).text());
  return adopted;
}

class Subject {
 public:
  virtual ~Subject() = default;
  virtual LoadResult Measure() = 0;
  // After the last round.
  virtual absl::Status Check() = 0;

  void Run(benchmark::State& state) {
    for (auto _ : state) Report(state, Measure());
  }
};

// Deletes refs all over the file, the same ones in the same order on both sides.
class Deletions : public Subject {
 public:
  explicit Deletions(const Bench* bench) : bench_(bench) {}

 protected:
  std::string NextRef() {
    constexpr int64_t kStride = 7919;  // a prime: comes to every number
    return RefAt(next_++ * kStride % bench_->packed_refs());
  }
  absl::Status CheckCount(const std::string& directory) const {
    if (next_ == 0) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const int64_t found, CountRefs(directory));
    if (found == bench_->packed_refs() - next_ && LooseRefs(directory) == 0)
      return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(found, " refs in ", directory, " after ", next_,
                                            " deletions of ", bench_->packed_refs()));
  }
  absl::Duration duration() const { return absl::Seconds(bench_->options.seconds); }

  const Bench* const bench_;
  int64_t next_ = 0;
};

class OurDeletions final : public Deletions {
 public:
  using Deletions::Deletions;

  LoadResult Measure() override {
    LoadResult result;
    if (adopted_.store == nullptr) {
      auto adopted = Adopt(bench_->Directory("deletions"), true, [&](const std::string& directory) {
        return MakePacked(bench_->history, directory, bench_->packed_refs());
      });
      if (!adopted.ok()) return {0, {}, adopted.status()};
      adopted_ = *std::move(adopted);
    }
    SettleDisk();
    result = RunLoad(
        1, duration(), [&](int, int64_t) { return DeleteOne(); }, bench_->packed_refs() / 20);
    const absl::Time start = absl::Now();
    result.status.Update(adopted_.store->Materialize());
    result.status.Update(adopted_.store->Checkpoint());
    result.elapsed += absl::Now() - start;
    return result;
  }
  absl::Status Check() override {
    if (adopted_.store == nullptr) return absl::OkStatus();
    REPOTXN_RETURN_IF_ERROR(adopted_.store->Close());
    adopted_.store.reset();
    return CheckCount(adopted_.directory);
  }

 private:
  absl::Status DeleteOne() {
    const refs::RefUpdate update{.name = refs::RefName::Literal(NextRef()),
                                 .value = refs::RefValue::Absent()};
    return adopted_.store
        ->Run({}, [&](txn::Transaction& txn) { return txn.UpdateRef(adopted_.id, update); })
        .status;
  }

  Adopted adopted_;
};

class GitDeletions final : public Deletions {
 public:
  using Deletions::Deletions;

  LoadResult Measure() override {
    const std::string directory = bench_->Directory("deletions.git");
    if (next_ == 0) {
      const absl::Status made = MakePacked(bench_->history, directory, bench_->packed_refs());
      if (!made.ok()) return {0, {}, made};
    }
    SettleDisk();
    return RunLoad(1, duration(), [&](int, int64_t) {
      return RunGit(
                 {"--git-dir=" + directory, "-c", "core.fsync=all", "update-ref", "-d", NextRef()})
          .status();
    });
  }
  absl::Status Check() override { return CheckCount(bench_->Directory("deletions.git")); }
};

// A repository a round, so that each round packs as much.
class Packings : public Subject {
 public:
  explicit Packings(const Bench* bench) : bench_(bench) {}
  absl::Status Check() override { return absl::OkStatus(); }

 protected:
  absl::Status Make(const std::string& directory) const {
    return MakeLoose(bench_->history, directory, bench_->loose_refs());
  }
  absl::Status CheckPacked(const std::string& directory) const {
    REPOTXN_ASSIGN_OR_RETURN(const int64_t found, CountRefs(directory));
    const int64_t loose = LooseRefs(directory);
    if (found == bench_->loose_refs() && loose == 0) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(found, " refs, ", loose, " of them loose, in ", directory));
  }

  const Bench* const bench_;
};

class OurPacking final : public Packings {
 public:
  using Packings::Packings;

  LoadResult Measure() override {
    const std::string root = bench_->Directory("packing");
    auto adopted =
        Adopt(root, false, [&](const std::string& directory) { return Make(directory); });
    if (!adopted.ok()) return {0, {}, adopted.status()};
    SettleDisk();
    const absl::Time start = absl::Now();
    LoadResult result{bench_->loose_refs(), {}, PackRefs(*adopted->store)};
    result.status.Update(adopted->store->Materialize());
    result.status.Update(adopted->store->Checkpoint());
    result.elapsed = absl::Now() - start;
    if (result.status.ok() && adopted->store->Metrics().ref_packings == 0) {
      result.status = absl::UnknownError("nothing was packed");
    }
    result.status.Update(adopted->store->Close());
    adopted->store.reset();
    result.status.Update(CheckPacked(adopted->directory));
    fs::remove_all(root);
    return result;
  }

 private:
  static absl::Status PackRefs(txn::Store& store) {
    txn::HousekeepingRun run;
    run.tasks = {txn::HousekeepingTask::kPackRefs};
    REPOTXN_ASSIGN_OR_RETURN(const auto results,
                             store.RunHousekeeping(*txn::RepositoryPath::Parse("bench/r"), run));
    return results.front().status;
  }
};

class GitPacking final : public Packings {
 public:
  using Packings::Packings;

  LoadResult Measure() override {
    const std::string directory = bench_->Directory("packing.git");
    const absl::Status made = Make(directory);
    if (!made.ok()) return {0, {}, made};
    SettleDisk();
    const absl::Time start = absl::Now();
    LoadResult result{
        bench_->loose_refs(),
        {},
        RunGit({"--git-dir=" + directory, "-c", "core.fsync=all", "pack-refs", "--all"}).status()};
    result.elapsed = absl::Now() - start;
    result.status.Update(CheckPacked(directory));
    fs::remove_all(directory);
    return result;
  }
};

template <typename T>
std::shared_ptr<Subject> Register(const std::string& name, const Bench* bench) {
  auto subject = std::make_shared<T>(bench);
  benchmark::RegisterBenchmark(name.c_str(),
                               [subject](benchmark::State& state) { subject->Run(state); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  return subject;
}

int Main(int argc, char** argv) {
  static Bench bench;
  bench.options = ParseOptions(&argc, argv);
  if (bench.options.directory.empty()) {
    std::fprintf(stderr, "ref_files_bench: give --dir DIR on a journaled file system\n");
    return 2;
  }
  storage::SetLogLevel(storage::LogLevel::kError);
  auto history = MakeHistory(bench.Directory("history.git"), 16);
  if (!history.ok()) {
    std::fprintf(stderr, "ref_files_bench: %s\n", history.status().ToString().c_str());
    return 1;
  }
  bench.history = *std::move(history);
  const std::vector<std::shared_ptr<Subject>> subjects = {
      Register<OurDeletions>("DeletePackedRef", &bench),
      Register<GitDeletions>("GitUpdateRefDelete", &bench),
      Register<OurPacking>("PackLooseRefs", &bench), Register<GitPacking>("GitPackRefs", &bench)};
  const int code =
      RunRounds(bench.options,
                {{absl::StrCat("deletions of one packed ref among ", bench.packed_refs()), "/s",
                  "DeletePackedRef", "git update-ref -d, core.fsync=all", "GitUpdateRefDelete"},
                 {absl::StrCat("refs packed, of ", bench.loose_refs(), " loose ones"), "/s",
                  "PackLooseRefs", "git pack-refs --all, core.fsync=all", "GitPackRefs"}});
  for (const std::shared_ptr<Subject>& subject : subjects) {
    const absl::Status status = subject->Check();
    if (status.ok()) continue;
    std::fprintf(stderr, "ref_files_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return code;
}

}  // namespace
}  // namespace repotxn::bench

int main(int argc, char** argv) { return repotxn::bench::Main(argc, argv); }
