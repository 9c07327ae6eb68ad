// How many durable single-ref commits a second, beside the least a log can cost and beside Git?
//
// Ours: a store with its background thread, every commit a transaction of its own that sets one
// branch through Store::Run. The clock runs until everything committed is also written into the
// repositories and checkpointed, so that no backlog is left out of the figure. Objects stand ready
// in a pack. After each round stock Git must find what was acknowledged.
//
// Peers, in the same rounds on the same file system:
//   RawAppend       4 KiB appended to a zero-filled file and fdatasync, one thread
//   RawGroupCommit  448 bytes a record, the size of ours here; one sync for all that wait
//   GitUpdateRef    one long-lived `git update-ref --stdin` a committer, a transaction an update,
//                   core.fsync=reference; it syncs no directory, so that it promises less
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/git_peer.h"
#include "bench/load.h"
#include "bench/raw_log.h"
#include "bench/rounds.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store.h"

namespace repotxn::bench {
namespace {

constexpr int kHistoryCommits = 256;
constexpr size_t kRecordBytes = 448;

struct Bench {
  Options options;
  History history;

  std::string Directory(absl::string_view name) const {
    return absl::StrCat(options.directory, "/", name);
  }
  absl::Duration duration() const { return absl::Seconds(options.seconds); }
  const ObjectId& Commit(int64_t number) const {
    return history.commits[static_cast<size_t>(number) % history.commits.size()];
  }
};

struct Shape {
  int committers = 1;
  int repositories = 1;
  bool is_new_ref_each_time = false;

  std::string Name() const {
    return absl::StrCat(is_new_ref_each_time ? "DurableNewRefCommit" : "DurableSingleRefCommit",
                        "/committers:", committers,
                        repositories > 1 ? absl::StrCat("/repositories:", repositories) : "");
  }
};

txn::RepositoryPath PathOf(int number) {
  return *txn::RepositoryPath::Parse(absl::StrCat("bench/r", number));
}

absl::StatusOr<std::unique_ptr<txn::Store>> OpenStore(const std::string& root) {
  txn::StoreOptions options;
  options.create_if_missing = true;
  return txn::Store::Open(root, options);
}

std::string DirectoryOf(const std::string& root, const RepositoryId& id) {
  return absl::StrCat(root, "/", txn::layout::RepositoryDirectory(id).text());
}

// A store with repositories whose objects are those of the history; closed.
absl::StatusOr<std::vector<RepositoryId>> MakeStore(const Bench& bench, const std::string& root,
                                                    int repositories) {
  std::vector<RepositoryId> ids;
  REPOTXN_ASSIGN_OR_RETURN(auto store, OpenStore(root));
  for (int i = 0; i < repositories; ++i) {
    const auto result = store->Run({}, [&](txn::Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.CreateRepository(PathOf(i), {}));
      ids.push_back(id);
      return absl::OkStatus();
    });
    REPOTXN_RETURN_IF_ERROR(result.status);
  }
  REPOTXN_RETURN_IF_ERROR(store->Close());
  for (const RepositoryId& id : ids) {
    REPOTXN_RETURN_IF_ERROR(CopyPack(bench.history, DirectoryOf(root, id)));
  }
  return ids;
}

// One store, kept for all rounds; open only while it is measured.
class OurCommits {
 public:
  OurCommits(const Bench* bench, const Shape& shape)
      : bench_(bench),
        shape_(shape),
        root_(bench->Directory(absl::StrCat("store-", shape.committers, "-", shape.repositories,
                                            shape.is_new_ref_each_time ? "-new" : ""))),
        last_(static_cast<size_t>(shape.committers)) {}

  void Run(benchmark::State& state) {
    for (auto _ : state) Report(state, Measure(state));
  }

 private:
  LoadResult Measure(benchmark::State& state) {
    LoadResult result;
    result.status = Open();
    if (!result.status.ok()) return result;
    const txn::StoreMetrics before = store_->Metrics();
    result = RunLoad(shape_.committers, bench_->duration(),
                     [&](int thread, int64_t number) { return CommitOne(thread, number); });
    const txn::StoreMetrics after = store_->Metrics();
    const absl::Time start = absl::Now();
    result.status.Update(store_->Materialize());
    result.status.Update(store_->Checkpoint());
    result.elapsed += absl::Now() - start;
    if (after.log_syncs > before.log_syncs) {
      state.counters["commits_a_sync"] = static_cast<double>(after.commits - before.commits) /
                                         static_cast<double>(after.log_syncs - before.log_syncs);
    }
    state.counters["lag_entries"] =
        static_cast<double>(after.committed_lsn - after.materialized_lsn);
    state.counters["overlay_bytes"] = static_cast<double>(after.overlay_bytes);
    state.counters["drain_ms"] = absl::ToDoubleMilliseconds(absl::Now() - start);
    result.status.Update(store_->Close());
    store_.reset();
    if (result.status.ok()) result.status = CheckRepositories(result.done);
    ++round_;
    return result;
  }
  // What was acknowledged is what stock Git finds: the last value of each committer, or all the new
  // refs.
  absl::Status CheckRepositories(int64_t done) {
    commits_ += done;
    int64_t found = 0;
    for (size_t i = 0; i < ids_.size(); ++i) {
      REPOTXN_ASSIGN_OR_RETURN(const std::string listed,
                               RunGit({"--git-dir=" + DirectoryOf(root_, ids_[i]), "for-each-ref",
                                       "--format=%(objectname) %(refname);"}));
      found += std::count(listed.begin(), listed.end(), ';');
      for (size_t thread = i; thread < last_.size(); thread += ids_.size()) {
        if (!last_[thread].empty() && listed.find(last_[thread]) == std::string::npos) {
          return absl::DataLossError("a committed ref is missing: " + last_[thread]);
        }
      }
    }
    if (shape_.is_new_ref_each_time && found != commits_) {
      return absl::DataLossError(absl::StrCat(commits_, " refs were made, ", found, " are there"));
    }
    return absl::OkStatus();
  }
  absl::Status Open() {
    if (ids_.empty()) {
      REPOTXN_ASSIGN_OR_RETURN(ids_, MakeStore(*bench_, root_, shape_.repositories));
    }
    REPOTXN_ASSIGN_OR_RETURN(store_, OpenStore(root_));
    return absl::OkStatus();
  }
  absl::Status CommitOne(int thread, int64_t number) {
    const RepositoryId& id = ids_[static_cast<size_t>(thread) % ids_.size()];
    const std::string name = shape_.is_new_ref_each_time
                                 ? absl::StrCat("refs/heads/c", thread, "/", round_, "-", number)
                                 : absl::StrCat("refs/heads/c", thread);
    const refs::RefUpdate update{.name = refs::RefName::Literal(name),
                                 .value = refs::RefValue::Object(bench_->Commit(number))};
    const absl::Status status =
        store_->Run({}, [&](txn::Transaction& txn) { return txn.UpdateRef(id, update); }).status;
    if (status.ok()) {
      last_[static_cast<size_t>(thread)] =
          absl::StrCat(bench_->Commit(number).ToHex(), " ", name, ";");
    }
    return status;
  }

  const Bench* const bench_;
  const Shape shape_;
  const std::string root_;
  std::vector<RepositoryId> ids_;
  std::unique_ptr<txn::Store> store_;
  std::vector<std::string> last_;  // "<oid> <ref>;" of the last commit of each committer
  int64_t commits_ = 0;            // of all rounds
  int round_ = 0;
};

class RawCommits {
 public:
  RawCommits(const Bench* bench, int threads, size_t record_bytes)
      : bench_(bench), threads_(threads), record_(record_bytes, 'x') {}

  void Run(benchmark::State& state) {
    for (auto _ : state) Report(state, Measure(state));
  }

 private:
  LoadResult Measure(benchmark::State& state) {
    if (log_ == nullptr) {
      log_ = RawLog::Create(bench_->Directory(absl::StrCat("raw-", threads_, "-", record_.size())));
    }
    if (log_ == nullptr) return {0, {}, absl::UnknownError("cannot make the raw log's file")};
    const uint64_t syncs = log_->syncs();
    LoadResult result = RunLoad(threads_, bench_->duration(), [&](int, int64_t) {
      return log_->Append(record_) ? absl::OkStatus() : absl::UnavailableError("raw append failed");
    });
    state.counters["commits_a_sync"] =
        static_cast<double>(result.done) / static_cast<double>(log_->syncs() - syncs);
    return result;
  }

  const Bench* const bench_;
  const int threads_;
  const std::string record_;
  std::unique_ptr<RawLog> log_;
};

class GitCommits {
 public:
  GitCommits(const Bench* bench, int committers) : bench_(bench), committers_(committers) {}

  void Run(benchmark::State& state) {
    for (auto _ : state) Report(state, Measure());
  }

 private:
  LoadResult Measure() {
    LoadResult result;
    const std::string directory = bench_->Directory(absl::StrCat("git-", committers_, ".git"));
    if (!is_made_) {
      result.status = RunGit({"init", "-q", "--bare", "-b", "main", directory}).status();
      result.status.Update(CopyPack(bench_->history, directory));
      if (!result.status.ok()) return result;
      is_made_ = true;
    }
    std::vector<std::unique_ptr<UpdateRefSession>> sessions;
    for (int i = 0; i < committers_; ++i) {
      auto session = UpdateRefSession::Start(directory);
      if (!session.ok()) return {0, {}, session.status()};
      sessions.push_back(*std::move(session));
    }
    return RunLoad(committers_, bench_->duration(), [&](int thread, int64_t number) {
      return sessions[static_cast<size_t>(thread)]->Set(absl::StrCat("refs/heads/c", thread),
                                                        bench_->Commit(number));
    });
  }

  const Bench* const bench_;
  const int committers_;
  bool is_made_ = false;
};

// Subjects live as long as the program; each is measured once a round.
template <typename Subject>
void Register(const std::string& name, std::shared_ptr<Subject> subject) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [subject](benchmark::State& state) { subject->Run(state); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

std::vector<Question> RegisterAll(const Bench* bench) {
  std::vector<Question> questions;
  for (const int committers : {1, 16, 64}) {
    const std::string n = absl::StrCat("/committers:", committers);
    const std::string raw = committers == 1 ? "RawAppend" + n : "RawGroupCommit" + n;
    const Shape shape{.committers = committers};
    Register(shape.Name(), std::make_shared<OurCommits>(bench, shape));
    Register(raw, std::make_shared<RawCommits>(bench, committers,
                                               committers == 1 ? RawLog::kBlock : kRecordBytes));
    Register("GitUpdateRef" + n, std::make_shared<GitCommits>(bench, committers));
    const std::string text = absl::StrCat("durable single-ref commits, ", committers, " committer",
                                          committers == 1 ? "" : "s");
    questions.push_back({text, "/s", shape.Name(),
                         committers == 1 ? "raw 4 KiB append + fdatasync" : "raw group commit",
                         raw});
    questions.push_back(
        {text, "/s", shape.Name(), "git update-ref --stdin, refs synced", "GitUpdateRef" + n});
  }
  const Shape one{.committers = 64};
  const Shape many{.committers = 64, .repositories = 64};
  const Shape fresh{.committers = 64, .is_new_ref_each_time = true};
  Register(many.Name(), std::make_shared<OurCommits>(bench, many));
  Register(fresh.Name(), std::make_shared<OurCommits>(bench, fresh));
  questions.push_back({"the same, 64 committers in 64 partitions", "/s", many.Name(),
                       "64 committers in one partition", one.Name()});
  questions.push_back({"durable commits of a new ref each, 64 committers", "/s", fresh.Name(),
                       "raw group commit", "RawGroupCommit/committers:64"});
  return questions;
}

int Main(int argc, char** argv) {
  static Bench bench;
  bench.options = ParseOptions(&argc, argv);
  if (bench.options.directory.empty()) {
    std::fprintf(stderr, "commit_bench: give --dir DIR on a journaled file system\n");
    return 2;
  }
  storage::SetLogLevel(storage::LogLevel::kError);
  auto history = MakeHistory(bench.Directory("history.git"), kHistoryCommits);
  if (!history.ok()) {
    std::fprintf(stderr, "commit_bench: %s\n", history.status().ToString().c_str());
    return 1;
  }
  bench.history = *std::move(history);
  return RunRounds(bench.options, RegisterAll(&bench));
}

}  // namespace
}  // namespace repotxn::bench

int main(int argc, char** argv) { return repotxn::bench::Main(argc, argv); }
