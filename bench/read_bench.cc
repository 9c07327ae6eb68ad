// What does it cost to begin a transaction and read one ref in it, beside opening and reading the
// file of a loose ref?
//
// "Materialized": the ref stands in the repository. "Fresh": its newest version is only in the
// overlay, because nothing materializes; a reader does not wait for it.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/git_peer.h"
#include "bench/rounds.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"
#include "txn/store.h"

namespace repotxn::bench {
namespace {

struct Fixture {
  std::unique_ptr<txn::Store> store;
  RepositoryId repository;
  refs::RefName materialized = refs::RefName::Literal("refs/heads/materialized");
  refs::RefName fresh = refs::RefName::Literal("refs/heads/fresh");
  std::string ref_file;
};

absl::Status SetRef(Fixture* fixture, const refs::RefName& name, const ObjectId& oid) {
  const refs::RefUpdate update{.name = name, .value = refs::RefValue::Object(oid)};
  return fixture->store
      ->Run({}, [&](txn::Transaction& txn) { return txn.UpdateRef(fixture->repository, update); })
      .status;
}

absl::Status Prepare(const std::string& directory, Fixture* fixture) {
  REPOTXN_ASSIGN_OR_RETURN(const History history, MakeHistory(directory + "/history.git", 2));
  txn::StoreOptions options;
  options.create_if_missing = true;
  options.background_thread = false;
  const std::string root = directory + "/store";
  REPOTXN_ASSIGN_OR_RETURN(fixture->store, txn::Store::Open(root, options));
  const auto created = fixture->store->Run({}, [&](txn::Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(fixture->repository,
                             txn.CreateRepository(*txn::RepositoryPath::Parse("bench"), {}));
    return absl::OkStatus();
  });
  REPOTXN_RETURN_IF_ERROR(created.status);
  REPOTXN_RETURN_IF_ERROR(fixture->store->Close());
  fixture->store.reset();  // lets go of the LOCK
  const std::string repository =
      absl::StrCat(root, "/", txn::layout::RepositoryDirectory(fixture->repository).text());
  REPOTXN_RETURN_IF_ERROR(CopyPack(history, repository));
  REPOTXN_ASSIGN_OR_RETURN(fixture->store, txn::Store::Open(root, options));
  REPOTXN_RETURN_IF_ERROR(SetRef(fixture, fixture->materialized, history.commits[0]));
  REPOTXN_RETURN_IF_ERROR(fixture->store->Materialize());
  fixture->ref_file = absl::StrCat(repository, "/", fixture->materialized.text());
  return SetRef(fixture, fixture->fresh, history.commits[1]);
}

void BeginAndRead(benchmark::State& state, const Fixture& fixture, const refs::RefName& name) {
  txn::BeginOptions options;
  options.access = txn::Access::kReadOnly;
  for (auto _ : state) {
    auto transaction = fixture.store->Begin(options);
    const auto value =
        transaction.ok() ? (*transaction)->ReadRef(fixture.repository, name) : transaction.status();
    if (!value.ok() || value->is_absent()) {
      state.SkipWithError("the ref cannot be read");
      break;
    }
  }
}

void ReadFile(benchmark::State& state, const std::string& path) {
  char buffer[64];
  for (auto _ : state) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    close(fd);
    if (n <= 0) {
      state.SkipWithError("the file cannot be read");
      break;
    }
  }
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(&argc, argv);
  if (options.directory.empty()) {
    std::fprintf(stderr, "read_bench: give --dir DIR\n");
    return 2;
  }
  storage::SetLogLevel(storage::LogLevel::kError);
  static Fixture fixture;
  if (absl::Status status = Prepare(options.directory, &fixture); !status.ok()) {
    std::fprintf(stderr, "read_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  benchmark::RegisterBenchmark("BeginAndReadMaterialized", [](benchmark::State& state) {
    BeginAndRead(state, fixture, fixture.materialized);
  });
  benchmark::RegisterBenchmark("BeginAndReadFresh", [](benchmark::State& state) {
    BeginAndRead(state, fixture, fixture.fresh);
  });
  benchmark::RegisterBenchmark("ReadRefFile",
                               [](benchmark::State& state) { ReadFile(state, fixture.ref_file); });
  const int code = RunRounds(
      options, {{"begin and read one ref, materialized", "ns", "BeginAndReadMaterialized",
                 "open, read and close its file", "ReadRefFile", kNanoseconds},
                {"begin and read one ref, not yet materialized", "ns", "BeginAndReadFresh",
                 "open, read and close a ref's file", "ReadRefFile", kNanoseconds}});
  const absl::Status closed = fixture.store->Close();
  fixture.store.reset();
  if (closed.ok()) return code;
  std::fprintf(stderr, "read_bench: %s\n", closed.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace repotxn::bench

int main(int argc, char** argv) { return repotxn::bench::Main(argc, argv); }
