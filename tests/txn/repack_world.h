// A store with a line of commits to push, for tests of repacking: pushes under way, repacks that are staged and wait.
//
// Single-threaded, but for the store.
#ifndef REPOTXN_TESTS_TXN_REPACK_WORLD_H_
#define REPOTXN_TESTS_TXN_REPACK_WORLD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/txn/git_store.h"

namespace repotxn::testing {

class RepackWorld : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  static constexpr int kCommits = 8;
  // A line of commits, each with a file of its own; c0 is the root.
  RepackWorld() : world_(GetParam()) {
    git().Run(absl::StrCat("git init -q -b main --object-format=", ObjectFormatName(GetParam()), " work\ncd work\n",
                           "for i in $(seq 0 ", kCommits - 1,
                           "); do mkdir -p d$i; echo content $i > d$i/f; git add .; git commit -qm $i; done\n",
                           "git rev-list --reverse main > ../commits"));
    commits_ = absl::StrSplit(git().Run("cat commits"), '\n', absl::SkipEmpty());
    id_ = world_.Create("r");
    Push(2, "refs/heads/main");
  }
  testing::GitSandbox& git() { return world_.git(); }
  txn::Store& store() { return world_.store(); }
  ObjectId Oid(int n) const { return *ObjectId::FromHex(commits_[static_cast<size_t>(n)], GetParam()); }

  // c<n> under `ref`, with what it has beyond c<known>.
  void Push(int n, const std::string& ref, int known = -1, const std::string& path = "r") {
    ASSERT_THAT(world_.Push("work", commits_[static_cast<size_t>(n)], path, ref,
                            known < 0 ? "" : absl::StrCat("^", commits_[static_cast<size_t>(known)])),
                IsOk());
  }
  absl::Status SetRef(const RepositoryId& id, const std::string& ref, refs::RefValue value) {
    return world_.Do(
        [&](txn::Transaction& txn) { return txn.UpdateRef(id, {.name = *refs::RefName::Parse(ref), .value = value}); });
  }
  void DeleteRef(const std::string& ref) { ASSERT_THAT(SetRef(id_, ref, refs::RefValue::Absent()), IsOk()); }
  RepositoryId Fork(const RepositoryId& source, const std::string& path) {
    return Made([&](txn::Transaction& txn) { return txn.ForkRepository(source, GitStore::Path(path), {}); });
  }
  RepositoryId Pool(const RepositoryId& member, const std::string& path) {
    return Made([&](txn::Transaction& txn) { return txn.CreatePool(member, GitStore::Path(path)); });
  }
  // c3 and c4 are there and nobody reaches them.
  void LeaveBehind() {
    Push(4, "refs/heads/topic", 2);
    DeleteRef("refs/heads/topic");
  }

  // A push under way: its pack is proved, its commit is to come.
  struct Pushing {
    std::shared_ptr<txn::ObjectStaging> staging;
    txn::BeginOptions begin;
    std::unique_ptr<txn::Transaction> transaction;
  };
  Pushing Stage(int n, int known, const std::string& path = "r") {
    Pushing push;
    push.begin.transaction_id = store().NewTransactionId();
    const std::string pack = git().Run(absl::StrCat("printf '%s\\n^%s\\n' ", commits_[static_cast<size_t>(n)], " ",
                                                    commits_[static_cast<size_t>(known)],
                                                    " | git -C work pack-objects -q --revs --thin --stdout"));
    auto staging = store().StageObjects(push.begin.transaction_id, GitStore::Path(path), GetParam());
    EXPECT_THAT(staging, IsOk());
    push.staging = *std::move(staging);
    EXPECT_THAT(push.staging->IndexPack(objects::TextSource(pack), {}), IsOk());
    return push;
  }
  absl::Status Begin(Pushing* push, int n, const std::string& ref, const std::string& path = "r") {
    auto begun = store().Begin(push->begin);
    REPOTXN_RETURN_IF_ERROR(begun.status());
    push->transaction = *std::move(begun);
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, push->transaction->OpenRepository(GitStore::Path(path)));
    REPOTXN_RETURN_IF_ERROR(push->transaction->AddPack(id, push->staging));
    return push->transaction->UpdateRef(
        id, {.name = *refs::RefName::Parse(ref), .value = refs::RefValue::Object(Oid(n))});
  }

  absl::StatusOr<txn::Repack> TryRepack(const RepositoryId& id, absl::Time expire_before = absl::InfiniteFuture()) {
    txn::Repack repack;
    REPOTXN_RETURN_IF_ERROR(world_.Do([&](txn::Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(repack, txn.RepackObjects(id, {.expire_before = expire_before}));
      return absl::OkStatus();
    }));
    return repack;
  }
  txn::Repack RepackNow(absl::Time expire_before = absl::InfiniteFuture()) {
    auto repack = TryRepack(id_, expire_before);
    EXPECT_THAT(repack, IsOk());
    return repack.ok() ? *repack : txn::Repack();
  }
  // A repack that is staged, and waits.
  std::unique_ptr<txn::Transaction> StageRepack(const RepositoryId& id) {
    auto transaction = store().Begin({});
    EXPECT_THAT(transaction, IsOk());
    EXPECT_THAT((*transaction)->RepackObjects(id, {.expire_before = absl::InfiniteFuture()}), IsOk());
    return *std::move(transaction);
  }
  bool Exists(int n, const std::string& path = "r") {
    auto transaction = store().Begin({});
    return *(*transaction)->ObjectExists(*(*transaction)->OpenRepository(GitStore::Path(path)), Oid(n));
  }
  std::string Files(const std::string& pattern, const RepositoryId& id) {
    return git().Run("cd " + GitStore::Directory(id) + "/objects/pack && ls " + pattern + " 2>/dev/null | wc -l");
  }
  void ExpectSoundAtRest(const std::vector<RepositoryId>& others = {}) {
    world_.Close();
    EXPECT_EQ(world_.Fsck(id_), "");
    for (const RepositoryId& other : others) EXPECT_EQ(world_.Fsck(other), "");
    world_.Open();
  }

  RepositoryId Made(absl::FunctionRef<absl::StatusOr<RepositoryId>(txn::Transaction&)> make) {
    RepositoryId id;
    EXPECT_THAT(world_.Do([&](txn::Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, make(txn));
      return absl::OkStatus();
    }),
                IsOk());
    return id;
  }

  GitStore world_;
  std::vector<std::string> commits_;
  RepositoryId id_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_REPACK_WORLD_H_
