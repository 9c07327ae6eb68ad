// A store on a real disk beside a sandbox of stock Git: histories that Git made are pushed into it as packs, and what the
// store shows is judged by Git again.
//
// Single-threaded, but for the store.
#ifndef REPOTXN_TESTS_TXN_GIT_STORE_H_
#define REPOTXN_TESTS_TXN_GIT_STORE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "objects/git_child.h"
#include "storage/log.h"
#include "storage/posix_file_system.h"
#include "tests/objects/git_sandbox.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"
#include "txn/layout.h"
#include "txn/store.h"

namespace repotxn::testing {

class GitStore {
 public:
  explicit GitStore(ObjectFormat format = ObjectFormat::kSha1) : format_(format) {
    storage::SetLogLevel(storage::LogLevel::kNone);
    git_.Run("mkdir store");
    Open();
  }

  GitSandbox& git() { return git_; }
  txn::Store& store() { return *store_; }
  ObjectFormat format() const { return format_; }

  static txn::StoreOptions Options() {
    txn::StoreOptions options;
    options.create_if_missing = true;
    options.segment_bytes = 1 << 20;
    options.background_thread = false;
    options.intent_queue = World::Options().intent_queue;
    return options;
  }
  void Open(const txn::StoreOptions& options = Options()) {
    auto opened = txn::Store::Open(git_.path() + "/store", options);
    ASSERT_THAT(opened, IsOk());
    store_ = *std::move(opened);
  }
  void Close() {
    ASSERT_THAT(store_->Close(), IsOk());
    store_.reset();
  }

  static txn::RepositoryPath Path(absl::string_view path) { return *txn::RepositoryPath::Parse(path); }

  RepositoryId Create(absl::string_view path) {
    RepositoryId id;
    EXPECT_THAT(Do([&](txn::Transaction& txn) -> absl::Status {
                  txn::CreateOptions options;
                  options.format = format_;
                  REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(Path(path), options));
                  return absl::OkStatus();
                }),
                IsOk());
    return id;
  }
  absl::Status Do(absl::FunctionRef<absl::Status(txn::Transaction&)> body) {
    return store_->Run({}, body).status;
  }
  // Sets `ref` of the repository at `path` to what `revision` is in the sandbox's `source`, sending a pack of what
  // `source` has beyond `known` (revisions, as rev-list takes them; "" for none).
  absl::Status Push(const std::string& source, const std::string& revision, absl::string_view path,
                    absl::string_view ref, const std::string& known = "") {
    const ObjectId tip = git_.Oid(absl::StrCat("git -C ", source, " rev-parse ", revision));
    const std::string pack =
        git_.Run(absl::StrCat("printf '%s\\n' ", revision, " ", known, " | git -C ", source,
                              " pack-objects -q --revs --thin --stdout"));
    txn::RunOptions run;
    run.begin.transaction_id = store_->NewTransactionId();
    REPOTXN_ASSIGN_OR_RETURN(const auto staging,
                             store_->StageObjects(run.begin.transaction_id, Path(path), format_));
    REPOTXN_RETURN_IF_ERROR(staging->IndexPack(objects::TextSource(pack), {}));
    return store_
        ->Run(run,
              [&](txn::Transaction& txn) -> absl::Status {
                REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.OpenRepository(Path(path)));
                REPOTXN_RETURN_IF_ERROR(txn.AddPack(id, staging));
                return txn.UpdateRef(id, {.name = refs::RefName::Literal(ref),
                                          .value = refs::RefValue::Object(tip)});
              })
        .status;
  }
  // Directory of a repository below the sandbox, for scripts.
  static std::string Directory(const RepositoryId& id) {
    return "store/" + txn::layout::RepositoryDirectory(id).text();
  }
  // Stock Git's judgement of every object of a repository at rest, unreachable ones included; "" when all is well. `how`:
  // --connectivity-only for many members of one pool, whose objects are looked at once.
  std::string Fsck(const RepositoryId& id, const std::string& how = "--full --strict") {
    std::string output;
    // Notices say that HEAD names no branch yet, and the like.
    const int code = git_.TryRun("git -C " + Directory(id) +
                                     " fsck " + how + " --no-dangling --no-progress >fsck 2>&1 && code=0 || code=$?\n"
                                     "grep -v '^notice: ' fsck || true\nexit $code",
                                 &output);
    return code == 0 ? output : absl::StrCat("exit ", code, ": ", output);
  }
  std::string RefsOf(const RepositoryId& id) {
    return git_.Run("git -C " + Directory(id) + " for-each-ref --format='%(refname) %(objectname)'");
  }

 private:
  const ObjectFormat format_;
  GitSandbox git_;
  std::unique_ptr<txn::Store> store_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_GIT_STORE_H_
