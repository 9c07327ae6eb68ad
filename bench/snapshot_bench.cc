// What does a directory for a Git child cost, beside many object files, and after very many pushes?
//
// Repositories of one store, read and written through transactions alone:
//   few       100 loose object files
//   many      100,000 of them
//   pushed    after 100,000 pushes of one small commit each, housekeeping on (2,000 when quick)
//   unpushed  after the first of those pushes
// Each is asked for write snapshots (a transaction begun, its directory made, dropped again), and
// for read snapshots just after a commit, so that none can be shared; the commit is not in the
// time, its way into the files is.
//
// The pushes go straight into the store, by sixteen threads: pack and ref as push_bench sends them,
// without HTTP. Meanwhile packs are counted. Afterwards stock Git must find all refs and pass `git
// fsck`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/git_peer.h"
#include "bench/load.h"
#include "bench/prepared_push.h"
#include "bench/rounds.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store.h"
#include "txn/write_snapshot.h"

namespace repotxn::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRepositories[] = {"few", "many", "unpushed", "pushed"};
constexpr int kFewFiles = 100;
constexpr int kManyFiles = 100'000;
constexpr int kPushers = 16;
constexpr int kPushesALook = 100;  // packs are counted once in so many pushes

struct Repository {
  txn::RepositoryPath path;
  RepositoryId id;
  std::string directory;  // absolute
};

class Fixture {
 public:
  explicit Fixture(const Options& options)
      : options_(options), root_(options.directory + "/store") {}

  absl::Status Prepare() {
    REPOTXN_RETURN_IF_ERROR(Open());
    for (const char* const name : kRepositories) {
      REPOTXN_RETURN_IF_ERROR(Create(name));
    }
    // A file that appears in a live repository is nobody's: only while the store is closed.
    REPOTXN_RETURN_IF_ERROR(store_->Close());
    store_.reset();
    REPOTXN_RETURN_IF_ERROR(MakeLooseObjects(at("few").directory, kFewFiles));
    REPOTXN_RETURN_IF_ERROR(MakeLooseObjects(at("many").directory, kManyFiles));
    REPOTXN_RETURN_IF_ERROR(Open());
    for (const char* const name : kRepositories) {
      REPOTXN_RETURN_IF_ERROR(Push(FirstPush(), at(name)));
    }
    REPOTXN_RETURN_IF_ERROR(PushMany());
    return store_->Checkpoint();
  }

  // Stock Git's word on the repository with the pushes.
  absl::Status Check() {
    REPOTXN_RETURN_IF_ERROR(store_->Close());
    const std::string git_dir = "--git-dir=" + at("pushed").directory;
    REPOTXN_RETURN_IF_ERROR(RunGit({git_dir, "fsck", "--strict"}).status());
    REPOTXN_ASSIGN_OR_RETURN(const std::string listed,
                             RunGit({git_dir, "for-each-ref", "--format=;"}));
    const auto found = std::count(listed.begin(), listed.end(), ';');
    std::printf(
        "%lld pushes: %td refs, git fsck passes; at most %d packs at a time, %d at the end\n",
        static_cast<long long>(pushes()), found, most_packs_.load(), CountPacks());
    // main, and the branch that the read snapshots move
    if (found < pushes() + 1) return absl::DataLossError("refs are missing");
    return absl::OkStatus();
  }

  void WriteSnapshot(benchmark::State& state, const std::string& name) {
    const RepositoryId id = at(name).id;
    for (auto _ : state) {
      auto transaction = store_->Begin({});
      const absl::Status status = transaction.ok()
                                      ? (*transaction)->OpenWriteSnapshot({id}, {}).status()
                                      : transaction.status();
      if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    }
    Note(state);
  }
  void ReadSnapshot(benchmark::State& state, const std::string& name) {
    for (auto _ : state) {
      state.PauseTiming();
      const absl::Status changed = ChangeRef(at(name).id);
      state.ResumeTiming();
      const absl::Status status =
          changed.ok() ? store_->ReadSnapshot(at(name).path).status() : changed;
      if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    }
    Note(state);
  }
  int64_t pushes() const { return options_.quick ? 2'000 : 100'000; }

 private:
  const Repository& at(const std::string& name) const {
    return *std::find_if(repositories_.begin(), repositories_.end(), [&](const Repository& each) {
      return each.path.text() == "bench/" + name;
    });
  }
  void Note(benchmark::State& state) const { state.counters["packs"] = most_packs_.load(); }

  absl::Status Open() {
    txn::StoreOptions options;
    options.create_if_missing = true;
    REPOTXN_ASSIGN_OR_RETURN(store_, txn::Store::Open(root_, options));
    return absl::OkStatus();
  }
  absl::Status Create(const std::string& name) {
    REPOTXN_ASSIGN_OR_RETURN(auto path, txn::RepositoryPath::Parse("bench/" + name));
    RepositoryId id;
    const auto result = store_->Run({}, [&](txn::Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(path, {}));
      return absl::OkStatus();
    });
    REPOTXN_RETURN_IF_ERROR(result.status);
    repositories_.push_back(
        {path, id, absl::StrCat(root_, "/", txn::layout::RepositoryDirectory(id).text())});
    return absl::OkStatus();
  }
  // Blobs, by stock Git: one fast-import that is told to unpack what it made.
  static absl::Status MakeLooseObjects(const std::string& directory, int count) {
    std::string stream;
    for (int n = 0; n < count; ++n) {
      const std::string text = absl::StrCat("loose ", n, "\n");
      absl::StrAppend(&stream, "blob\ndata ", text.size(), "\n", text, "\n");
    }
    REPOTXN_RETURN_IF_ERROR(
        RunGit({"--git-dir=" + directory, "-c", "core.fsync=none", "-c",
                absl::StrCat("fastimport.unpackLimit=", count + 1), "fast-import", "--quiet"},
               stream)
            .status());
    int64_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(directory + "/objects")) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    return files >= count ? absl::OkStatus() : absl::UnknownError("loose objects were not made");
  }
  absl::Status Push(const PreparedPush& push, const Repository& to) {
    txn::RunOptions run;
    run.begin.transaction_id = store_->NewTransactionId();
    REPOTXN_ASSIGN_OR_RETURN(
        auto staging, store_->StageObjects(run.begin.transaction_id, to.path, ObjectFormat::kSha1));
    const std::string pack = push.Pack();
    size_t at = 0;
    const auto source = [&](absl::Span<char> into) -> absl::StatusOr<size_t> {
      const size_t n = std::min(into.size(), pack.size() - at);
      std::memcpy(into.data(), pack.data() + at, n);
      at += n;
      return n;
    };
    REPOTXN_RETURN_IF_ERROR(staging->IndexPack(source, {}));
    REPOTXN_RETURN_IF_ERROR(staging->Seal());
    const refs::RefUpdate update{.name = refs::RefName::Literal(push.ref),
                                 .value = refs::RefValue::Object(push.commit)};
    return store_
        ->Run(run,
              [&](txn::Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.AddPack(to.id, staging));
                return txn.UpdateRef(to.id, update);
              })
        .status;
  }
  absl::Status PushMany() {
    const ObjectId parent = FirstPush().commit;
    std::atomic<int64_t> taken{0};
    const LoadResult result = RunLoad(
        kPushers, absl::InfiniteDuration(),
        [&](int, int64_t) {
          const int64_t number = ++taken;
          if (number % kPushesALook == 0) NotePacks();
          return Push(PushNumber(number, parent), at("pushed"));
        },
        pushes());
    NotePacks();
    std::printf("%lld pushes in %s, %lld merges of packs\n", static_cast<long long>(result.done),
                absl::FormatDuration(absl::Trunc(result.elapsed, absl::Seconds(1))).c_str(),
                static_cast<long long>(store_->Metrics().pack_merges));
    std::fflush(stdout);
    return result.status;
  }
  absl::Status ChangeRef(const RepositoryId& id) {
    const refs::RefUpdate update{.name = refs::RefName::Literal("refs/heads/moved"),
                                 .value = ++changes_ % 2 == 0
                                              ? refs::RefValue::Absent()
                                              : refs::RefValue::Object(FirstPush().commit)};
    return store_->Run({}, [&](txn::Transaction& txn) { return txn.UpdateRef(id, update); }).status;
  }
  int CountPacks() const {
    int packs = 0;
    std::error_code gone;  // a pack that is removed while we look
    for (fs::directory_iterator entry(at("pushed").directory + "/objects/pack", gone), end;
         !gone && entry != end; entry.increment(gone)) {
      packs += absl::EndsWith(entry->path().string(), ".pack") ? 1 : 0;
    }
    return packs;
  }
  void NotePacks() {
    const int packs = CountPacks();
    int most = most_packs_.load();
    while (packs > most && !most_packs_.compare_exchange_weak(most, packs)) {
    }
  }

  const Options options_;
  const std::string root_;
  std::unique_ptr<txn::Store> store_;
  std::vector<Repository> repositories_;
  std::atomic<int> most_packs_{0};
  int64_t changes_ = 0;
};

void Register(Fixture* fixture, const std::string& name) {
  benchmark::RegisterBenchmark(
      ("WriteSnapshot/" + name).c_str(),
      [fixture, name](benchmark::State& state) { fixture->WriteSnapshot(state, name); })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark(
      ("ReadSnapshot/" + name).c_str(),
      [fixture, name](benchmark::State& state) { fixture->ReadSnapshot(state, name); })
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(&argc, argv);
  if (options.directory.empty()) {
    std::fprintf(stderr, "snapshot_bench: give --dir DIR on a journaled file system\n");
    return 2;
  }
  storage::SetLogLevel(storage::LogLevel::kError);
  static Fixture fixture(options);
  if (absl::Status status = fixture.Prepare(); !status.ok()) {
    std::fprintf(stderr, "snapshot_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  for (const char* const name : kRepositories) Register(&fixture, name);
  const std::string few = absl::StrCat("the same, ", kFewFiles, " object files");
  const std::string many = absl::StrCat(kManyFiles, " object files");
  const std::string after = absl::StrCat("after ", fixture.pushes(), " pushes");
  const int code =
      RunRounds(options, {{"write snapshot, " + many, "ns", "WriteSnapshot/many", few,
                           "WriteSnapshot/few", kNanoseconds},
                          {"read snapshot after a commit, " + many, "ns", "ReadSnapshot/many", few,
                           "ReadSnapshot/few", kNanoseconds},
                          {"write snapshot, " + after, "ns", "WriteSnapshot/pushed",
                           "the same, after one push", "WriteSnapshot/unpushed", kNanoseconds},
                          {"read snapshot after a commit, " + after, "ns", "ReadSnapshot/pushed",
                           "the same, after one push", "ReadSnapshot/unpushed", kNanoseconds},
                          {absl::StrCat("most packs at a time in ", fixture.pushes(), " pushes"),
                           "packs", "WriteSnapshot/pushed", "", "", "packs"}});
  const absl::Status status = fixture.Check();
  if (status.ok()) return code;
  std::fprintf(stderr, "snapshot_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace repotxn::bench

int main(int argc, char** argv) { return repotxn::bench::Main(argc, argv); }
