// Scenarios that need real packs and stock Git: children that outlive what they read, pools that move, packs without
// refs, and an unlinking that dies. Identifiers: docs/scenarios.md.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fault_file_system.h"
#include "tests/txn/git_store.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using txn::Transaction;

class GitScenarioTest : public ::testing::Test {
 protected:
  GitScenarioTest() {
    git().Write("history", RandomHistory(11, 30));
    git().Run("git init -q --bare -b main source.git && cd source.git && git fast-import --quiet --done <../history");
  }
  GitSandbox& git() { return world_.git(); }
  txn::Store& store() { return world_.store(); }
  std::unique_ptr<Transaction> Begin() {
    auto txn = store().Begin({});
    EXPECT_THAT(txn, IsOk());
    return *std::move(txn);
  }
  // Commits in the sandbox's source on top of `base`, with a new file, as branch `branch`.
  void Commit(const std::string& branch, const std::string& base) {
    git().Run("cd source.git && blob=$(echo " + branch + " | git hash-object -w --stdin) && tree=$(printf '100644 blob %s\\t" +
              branch + "\\n' $blob | git mktree) && commit=$(echo " + branch + " | git commit-tree -p " + base +
              " $tree) && git update-ref refs/heads/" + branch + " $commit");
  }
  ObjectId Oid(const std::string& revision) { return git().Oid("git -C source.git rev-parse " + revision); }
  // Objects of `revisions` for the repository at `path`, staged for the transaction with the given id.
  absl::StatusOr<std::shared_ptr<txn::ObjectStaging>> StagePack(const TransactionId& id, const std::string& revisions,
                                                                 const std::string& path) {
    const std::string pack = git().Run(absl::StrCat("printf '%s\\n' ", revisions,
                                                    " | git -C source.git pack-objects -q --revs --thin --stdout"));
    REPOTXN_ASSIGN_OR_RETURN(auto staging, store().StageObjects(id, GitStore::Path(path), ObjectFormat::kSha1));
    REPOTXN_RETURN_IF_ERROR(staging->IndexPack(objects::TextSource(pack), {}));
    return staging;
  }
  // Adds the objects of `revisions` and does `more` in one transaction.
  absl::Status AddObjects(const std::string& revisions, const std::string& path,
                          const std::function<absl::Status(Transaction&, const RepositoryId&)>& more) {
    txn::RunOptions run;
    run.begin.transaction_id = store().NewTransactionId();
    REPOTXN_ASSIGN_OR_RETURN(const auto staging, StagePack(run.begin.transaction_id, revisions, path));
    return store().Run(run, [&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.OpenRepository(GitStore::Path(path)));
      REPOTXN_RETURN_IF_ERROR(txn.AddPack(id, staging));
      return more(txn, id);
    }).status;
  }
  static absl::Status Nothing(Transaction&, const RepositoryId&) { return absl::OkStatus(); }
  static absl::Status SetRef(Transaction& txn, const RepositoryId& id, absl::string_view ref, const ObjectId& oid) {
    return txn.UpdateRef(id, {.name = refs::RefName::Literal(ref), .value = refs::RefValue::Object(oid)});
  }
  RepositoryId Fork(const RepositoryId& source, const std::string& path) {
    RepositoryId id;
    EXPECT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.ForkRepository(source, GitStore::Path(path), {}));
      return absl::OkStatus();
    }), IsOk());
    return id;
  }
  absl::Status Unlink(const RepositoryId& member, const RepositoryId& pool) {
    return world_.Do([&](Transaction& txn) { return txn.UnlinkAlternate(member, pool); });
  }
  // What stock Git prints in a directory, fed by `input`.
  static std::string Git(const std::string& directory, std::vector<std::string> arguments,
                         objects::InputSource input = objects::TextSource("")) {
    objects::GitCommand command;
    command.repository = directory;
    command.arguments = std::move(arguments);
    const auto result = objects::RunGit(command, std::move(input), objects::RunLimits());
    if (!result.ok()) return result.status().ToString();
    if (result->exit_code == 0) return result->output;
    return absl::StrCat("exit ", result->exit_code, ": ", result->errors);
  }

  GitStore world_;
};

// A1, C072, REPO-22: one child of Git asks for objects before and after its repository is deleted, another is made and
// filled at the same path, and the deleted one's time is over. It finds the old ones to its end and never the new ones.
TEST_F(GitScenarioTest, AChildReadsOnWhileItsRepositoryIsDeletedAndAnotherTakesThePath) {
  world_.Close();
  txn::StoreOptions options = GitStore::Options();
  options.undelete_retention = absl::ZeroDuration();
  world_.Open(options);
  Commit("secret", "main~3");
  git().Run("cd source.git && git update-ref refs/heads/fresh $(git commit-tree -m fresh main~9^{tree})");
  const RepositoryId old = world_.Create("g/r");
  ASSERT_THAT(world_.Push("source.git", "secret", "g/r", "refs/heads/main"), IsOk());
  auto snapshot = *store().ReadSnapshot(GitStore::Path("g/r"));
  RepositoryId made;
  int turn = 0;
  const std::string secret = Oid("secret").ToHex(), fresh = Oid("fresh").ToHex();
  const objects::InputSource questions = [&](absl::Span<char> out) -> absl::StatusOr<size_t> {
    std::string text;
    if (turn == 0) text = secret + "\n" + fresh + "\n";
    if (turn == 1) {
      REPOTXN_RETURN_IF_ERROR(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(old); }));
      made = world_.Create("g/r");
      REPOTXN_RETURN_IF_ERROR(world_.Push("source.git", "fresh", "g/r", "refs/heads/main"));
      for (int round = 0; round < 3; ++round) REPOTXN_RETURN_IF_ERROR(store().RunBackgroundWork());
      text = secret + "\n" + fresh + "\n" + Oid("secret^").ToHex() + "\n";
    }
    ++turn;
    return text.copy(out.data(), out.size());
  };

  const std::string answers = Git(snapshot->absolute_path(), {"cat-file", "--batch-check=%(objectname) %(objecttype)"}, questions);

  EXPECT_EQ(answers, absl::StrCat(secret, " commit\n", fresh, " missing\n",
                                  secret, " commit\n", fresh, " missing\n", Oid("secret^").ToHex(), " commit\n"));
  EXPECT_EQ(Git(snapshot->absolute_path(), {"rev-list", "--objects", "main"}),
            git().Run("git -C source.git rev-list --objects secret"));
  // Who asks now gets the other one, without a way to the old objects.
  auto now = *store().ReadSnapshot(GitStore::Path("g/r"));
  EXPECT_EQ(Git(now->absolute_path(), {"rev-parse", "main"}), fresh + "\n");
  EXPECT_THAT(Git(now->absolute_path(), {"cat-file", "-e", secret}), HasSubstr("exit "));
  EXPECT_FALSE(*Begin()->ObjectExists(made, Oid("secret")));
  // With the last reader the deleted one goes.
  snapshot.reset();
  now.reset();
  for (int round = 0; round < 40; ++round) ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(git().Line("test -e " + GitStore::Directory(old) + " && echo there || echo gone"), "gone");
  world_.Close();
  EXPECT_EQ(world_.Fsck(made), "");
}

// A2, ALT-13, C080: pool and members move up and down the tree, apart and together, under a reader; what is borrowed is found.
TEST_F(GitScenarioTest, PoolAndMembersMoveToOtherDepths) {
  const RepositoryId pool = world_.Create("g/pool");
  ASSERT_THAT(world_.Push("source.git", "main", "g/pool", "refs/heads/main"), IsOk());
  const RepositoryId one = Fork(pool, "one"), two = Fork(pool, "people/x/two");
  Commit("own", "main");
  ASSERT_THAT(world_.Push("source.git", "own", "one", "refs/heads/own", "^main"), IsOk());
  auto before = *store().ReadSnapshot(GitStore::Path("one"));
  const auto move = [](Transaction& txn, const RepositoryId& id, const char* to) {
    return txn.MoveRepository(id, GitStore::Path(to));
  };
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return move(txn, pool, "h/k/l/pool"); }), IsOk());
  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(move(txn, one, "a/b/c/one"));
    return move(txn, two, "two");
  }), IsOk());
  EXPECT_EQ(Git(before->absolute_path(), {"fsck", "--full", "--strict", "--no-dangling"}), "");
  auto after = *store().ReadSnapshot(GitStore::Path("a/b/c/one"));
  EXPECT_EQ(Git(after->absolute_path(), {"rev-list", "--count", "own"}), git().Run("git -C source.git rev-list --count own"));
  before.reset();
  after.reset();
  Commit("later", "own");
  ASSERT_THAT(world_.Push("source.git", "later", "a/b/c/one", "refs/heads/later", "^own"), IsOk());
  world_.Close();
  for (const RepositoryId& id : {pool, one, two}) EXPECT_EQ(world_.Fsck(id), "");
  for (const char* path : {"h/k/l/pool", "a/b/c/one", "two"}) {
    EXPECT_EQ(git().Run(absl::StrCat("git -C store/repositories/", path, ".git rev-list --count main")),
              git().Run("git -C source.git rev-list --count main")) << path;
  }
  EXPECT_EQ(git().Line("ls -d store/repositories/g/pool.git store/repositories/one.git 2>/dev/null | wc -l"), "0");
}

// REPO-03, CORE-07: branch, HEAD, objects and hooks of a new repository in its first transaction.
TEST_F(GitScenarioTest, CreatesARepositoryWithEverythingInIt) {
  txn::RunOptions run;
  run.begin.transaction_id = store().NewTransactionId();
  auto staging = StagePack(run.begin.transaction_id, "main", "g/r");
  ASSERT_THAT(staging, IsOk());
  RepositoryId id;
  ASSERT_THAT(store().Run(run, [&](Transaction& txn) -> absl::Status {
    txn::CreateOptions options;
    options.head_target = "refs/heads/trunk";
    REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(GitStore::Path("g/r"), options));
    REPOTXN_RETURN_IF_ERROR(txn.AddPack(id, *staging));
    REPOTXN_RETURN_IF_ERROR(SetRef(txn, id, "refs/heads/trunk", Oid("main")));
    return txn.PutFile(id, "hooks/pre-receive", {"#!/bin/sh\nexit 0\n", 0755});
  }).status, IsOk());
  staging->reset();
  world_.Close();
  EXPECT_EQ(world_.Fsck(id), "");
  EXPECT_EQ(git().Line("cd store/repositories/g/r.git && git symbolic-ref HEAD"), "refs/heads/trunk");
  EXPECT_EQ(git().Line("cd store/repositories/g/r.git && git rev-parse trunk"), Oid("main").ToHex());
  EXPECT_EQ(git().Line("cd store/repositories/g/r.git && test -x hooks/pre-receive && ./hooks/pre-receive && echo ran"), "ran");
}

// CORE-09, CORE-10, CORE-12, CORE-14, CORE-15: packs with and without refs; what no ref names is there all the same, and
// later objects may lean on it.
TEST_F(GitScenarioTest, KeepsObjectsThatNoRefNamesForThoseThatLeanOnThem) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(world_.Push("source.git", "main", "r", "refs/heads/main"), IsOk());
  Commit("left", "main");
  Commit("right", "main~1");
  Commit("top", "left");
  ASSERT_THAT(AddObjects("left right ^main", "r", Nothing), IsOk());
  EXPECT_TRUE(*Begin()->ObjectExists(id, Oid("left")));
  EXPECT_TRUE(*Begin()->ObjectExists(id, Oid("right")));
  ASSERT_THAT(AddObjects("top ^left", "r", [&](Transaction& txn, const RepositoryId& repository) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(SetRef(txn, repository, "refs/heads/top", Oid("top")));
    REPOTXN_RETURN_IF_ERROR(SetRef(txn, repository, "refs/heads/right", Oid("right")));
    return absl::OkStatus();
  }), IsOk());
  Commit("last", "top");
  ASSERT_THAT(AddObjects("last ^top", "r", [&](Transaction& txn, const RepositoryId& repository) {
    return txn.UpdateRef(repository, {.name = refs::RefName::Literal("refs/heads/right"), .value = refs::RefValue::Absent()});
  }), IsOk());
  world_.Close();
  EXPECT_EQ(world_.Fsck(id), "");
  EXPECT_EQ(world_.RefsOf(id), absl::StrCat("refs/heads/main ", Oid("main").ToHex(), "\nrefs/heads/top ", Oid("top").ToHex(), "\n"));
  for (const char* revision : {"left", "right", "last"}) {
    EXPECT_EQ(git().Line("git -C " + GitStore::Directory(id) + " cat-file -t " + Oid(revision).ToHex()), "commit");
  }
}

// A25: objects that were staged for a repository are not added to it once it is deleted, nor to its successor.
TEST_F(GitScenarioTest, AddsNoObjectsToADeletedRepository) {
  const RepositoryId old = world_.Create("r");
  txn::BeginOptions options;
  options.transaction_id = store().NewTransactionId();
  auto staging = StagePack(options.transaction_id, "main", "r");
  ASSERT_THAT(staging, IsOk());
  auto push = *store().Begin(options);
  ASSERT_THAT(push->AddPack(old, *staging), IsOk());
  ASSERT_THAT(SetRef(*push, old, "refs/heads/main", Oid("main")), IsOk());
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(old); }), IsOk());
  const RepositoryId next = world_.Create("r");
  EXPECT_THAT(push->Commit().status, StatusIs(StatusCode::kAborted));
  push.reset();
  EXPECT_THAT(Begin()->AddPack(old, *staging), StatusIs(StatusCode::kNotFound));
  staging->reset();
  EXPECT_FALSE(*Begin()->ObjectExists(next, Oid("main")));
  world_.Close();
  for (const RepositoryId& id : {old, next}) {
    EXPECT_EQ(git().Line("ls " + GitStore::Directory(id) + "/objects/pack | wc -l"), "0");
  }
}

// ALT-08, ALT-07: of two unlinkings from one snapshot one wins; a third finds no link.
TEST_F(GitScenarioTest, OfTwoUnlinkingsOneWins) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Push("source.git", "main", "source", "refs/heads/main"), IsOk());
  const RepositoryId fork = Fork(source, "fork");
  auto one = Begin(), two = Begin();
  ASSERT_THAT(one->UnlinkAlternate(fork, source), IsOk());
  ASSERT_THAT(two->UnlinkAlternate(fork, source), IsOk());
  EXPECT_TRUE(one->Commit().committed());
  EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted));
  one.reset();
  two.reset();
  EXPECT_THAT(Unlink(fork, source), StatusIs(StatusCode::kNotFound));
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(source); }), IsOk());
  world_.Close();
  git().Run("rm -rf " + GitStore::Directory(source));
  EXPECT_EQ(world_.Fsck(fork), "");
}

// ALT-10, C063: killed before any call that changes the disk, an unlinking is recovered as linked or as complete.
TEST_F(GitScenarioTest, AnUnlinkingThatDiesLeavesTheMemberLinkedOrComplete) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Push("source.git", "main", "source", "refs/heads/main"), IsOk());
  const RepositoryId fork = Fork(source, "fork");
  world_.Close();
  const auto disk = storage::OpenPosixFileSystem(git().path() + "/store");
  ASSERT_THAT(disk, IsOk());
  FaultFileSystem watched(disk->get());
  auto opened = txn::Store::Open({&watched, nullptr, nullptr}, GitStore::Options());
  ASSERT_THAT(opened, IsOk());
  int images = 0;
  const auto keep = [&] { git().Run(absl::StrCat("cp -a store image", images++)); };
  {
    auto txn = (*opened)->Begin({});
    ASSERT_THAT(txn, IsOk());
    ASSERT_THAT((*txn)->UnlinkAlternate(fork, source), IsOk());
    watched.SetWatcher([&](FileOperation, const storage::StorePath&) { keep(); });
    EXPECT_TRUE((*txn)->Commit().committed());
    keep();
    EXPECT_THAT((*opened)->Materialize(), IsOk());
    watched.SetWatcher({});
    keep();
  }
  opened->reset();
  ASSERT_GT(images, 4);

  int complete = 0;
  for (int n = 0; n < images; ++n) {
    const std::string root = absl::StrCat("image", n);
    auto recovered = txn::Store::Open(git().path() + "/" + root, GitStore::Options());
    ASSERT_THAT(recovered, IsOk()) << n;
    const bool is_linked = !(*(*recovered)->Begin({}))->Alternates(fork)->empty();
    complete += is_linked ? 0 : 1;
    ASSERT_THAT((*recovered)->Close(), IsOk()) << n;
    recovered->reset();
    const std::string directory = root + GitStore::Directory(fork).substr(std::string("store").size());
    if (!is_linked) git().Run("rm -rf " + root + GitStore::Directory(source).substr(std::string("store").size()));
    EXPECT_EQ(git().Run("git -C " + directory + " fsck --full --strict --no-dangling --no-progress 2>&1 | grep -v ^notice: || true"), "") << n;
    EXPECT_EQ(git().Line("git -C " + directory + " rev-list --count main"), git().Line("git -C source.git rev-list --count main")) << n;
    git().Run("rm -rf " + root);
  }
  EXPECT_GT(complete, 1);
  EXPECT_LT(complete, images);
}

// C067, SNAP-06, ALT-12: three levels of alternates in a directory for a Git child, none of which has been named; what
// is borrowed cannot be deleted meanwhile.
TEST_F(GitScenarioTest, AChildSeesWhatIsBorrowedOverSeveralLevels) {
  const RepositoryId bottom = world_.Create("c");
  ASSERT_THAT(world_.Push("source.git", "main", "c", "refs/heads/main"), IsOk());
  const RepositoryId middle = Fork(bottom, "b");
  const RepositoryId top = Fork(middle, "a");
  Commit("own", "main");
  ASSERT_THAT(world_.Push("source.git", "own", "a", "refs/heads/own", "^main"), IsOk());
  auto snapshot = *store().ReadSnapshot(GitStore::Path("a"));
  EXPECT_EQ(Git(snapshot->absolute_path(), {"rev-list", "--objects", "own"}),
            git().Run("git -C source.git rev-list --objects own"));
  snapshot.reset();
  for (const RepositoryId& lender : {bottom, middle}) {
    EXPECT_THAT(world_.Do([&](Transaction& txn) { return txn.DeleteRepository(lender); }),
                StatusIs(StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(*Begin()->Alternates(top), ElementsAre(middle));
  world_.Close();
  EXPECT_EQ(world_.Fsck(top), "");
}

}  // namespace
}  // namespace repotxn::testing
