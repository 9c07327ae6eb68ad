#include "txn/snapshot.h"

#include <set>

#include "objects/git_child.h"
#include "storage/posix_file_system.h"
#include "tests/support/temp_directory.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

// A store on a real disk, read by stock Git through snapshot directories.
class SnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(fs_, storage::OpenPosixFileSystem(temporary_.path()));
    options_ = World::Options();
    options_.segment_bytes = 64 << 10;
    ASSERT_THAT(Open(), IsOk());
    const CommitResult made = store_->Run({}, [&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id_, txn.CreateRepository(Path("g/r"), {}));
      return absl::OkStatus();
    });
    ASSERT_THAT(made.status, IsOk());
    directory_ = txn::layout::RepositoryDirectory(id_);
    Put(MakeLooseObject("tree", ""));
    for (int n = 0; n < 10; ++n) Put(MakeCommit(n));
  }
  absl::Status Open() {
    storage::SetLogLevel(storage::LogLevel::kNone);
    auto opened = txn::Store::Open({fs_.get(), nullptr, nullptr}, options_);
    if (opened.ok()) store_ = *std::move(opened);
    return opened.status();
  }
  void Put(const LooseObject& object) {
    const std::string hex = object.oid.ToHex();
    const storage::StorePath fan = directory_ / "objects" / hex.substr(0, 2);
    ASSERT_THAT(storage::MakeDirectories(*fs_, fan), IsOk());
    ASSERT_THAT(storage::WriteFile(*fs_, fan / hex.substr(2), object.file, 0444), IsOk());
  }
  CommitResult Set(absl::string_view name, int n) {
    return store_->Run({}, [&](Transaction& txn) {
      return txn.UpdateRef(id_, {.name = Ref(name), .expected = {}, .value = World::At(n)});
    });
  }
  std::shared_ptr<const txn::SnapshotDirectory> Snapshot() {
    auto snapshot = store_->ReadSnapshot(Path("g/r"));
    EXPECT_THAT(snapshot, IsOk());
    return snapshot.ok() ? *std::move(snapshot) : nullptr;
  }
  // What stock Git prints there; "exit n: ..." when it fails.
  static std::string Git(const std::string& directory, std::vector<std::string> arguments) {
    objects::GitCommand command;
    command.repository = directory;
    command.arguments = std::move(arguments);
    const auto result = objects::RunGit(command, objects::TextSource(""), objects::RunLimits());
    if (!result.ok()) return result.status().ToString();
    if (result->exit_code == 0) return result->output;
    return absl::StrCat("exit ", result->exit_code, ": ", result->errors);
  }
  static std::string RefsOf(const txn::SnapshotDirectory& snapshot) {
    return Git(snapshot.absolute_path(), {"for-each-ref", "--format=%(refname) %(objectname)"});
  }
  static std::string Line(absl::string_view name, int n) {
    return absl::StrCat(name, " ", MakeCommit(n).oid.ToHex(), "\n");
  }

  TempDirectory temporary_;
  std::unique_ptr<storage::FileSystem> fs_;
  txn::StoreOptions options_;
  std::unique_ptr<txn::Store> store_;
  RepositoryId id_;
  storage::StorePath directory_;
};

// SNAP-09, SNAP-12
TEST_F(SnapshotTest, IsGivenUpWhenNobodyHasUsedItForAWhileSoThatItHoldsNothingInUse) {
  ASSERT_TRUE(Set("refs/heads/main", 1).committed());
  auto held = Snapshot();
  const wal::Lsn shown = held->lsn();
  held.reset();
  ASSERT_TRUE(Set("refs/heads/main", 2).committed());
  EXPECT_EQ(store_->Metrics().oldest_snapshot_lsn, shown.value());
  for (int round = 0; round < 30; ++round) ASSERT_THAT(store_->RunBackgroundWork(), IsOk());
  EXPECT_EQ(store_->Metrics().snapshots_live, 0);
  EXPECT_EQ(store_->Metrics().oldest_snapshot_lsn, store_->committed_lsn().value());
}

// A13 (d), A14, SNAP-12, C021, C054
TEST_F(SnapshotTest, ShowsStockGitExactlyOneCommittedState) {
  const CommitResult first = Set("refs/heads/main", 1);
  ASSERT_TRUE(first.committed());
  const auto before = Snapshot();
  EXPECT_GE(before->lsn(), first.lsn);
  const CommitResult second = store_->Run({}, [&](Transaction& txn) {
    absl::Status status = txn.UpdateRef(id_, {.name = Ref("refs/heads/main"), .expected = {}, .value = World::At(2)});
    status.Update(txn.UpdateRef(id_, {.name = Ref("refs/heads/other"), .expected = {}, .value = World::At(2)}));
    return status;
  });
  ASSERT_TRUE(second.committed());
  const auto after = Snapshot();
  ASSERT_THAT(store_->Checkpoint(), IsOk());

  EXPECT_EQ(RefsOf(*before), Line("refs/heads/main", 1));
  EXPECT_EQ(RefsOf(*after), Line("refs/heads/main", 2) + Line("refs/heads/other", 2));
  EXPECT_GE(after->lsn(), second.lsn);
  EXPECT_EQ(Git(after->absolute_path(), {"rev-list", "--count", "main"}), "1\n");
  EXPECT_EQ(Git(after->absolute_path(), {"fsck", "--strict", "--no-dangling"}), "");
}

// B1
TEST_F(SnapshotTest, HasEveryFileThatGitNeedsAndNoneThatGitWritesInPlace) {
  const std::string shallow = MakeCommit(1).oid.ToHex() + "\n";
  ASSERT_TRUE(store_->Run({}, [&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "shallow", {shallow, 0444});
    status.Update(txn.PutFile(id_, "description", {"about\n", 0644}));
    status.Update(txn.PutFile(id_, "info/attributes", {"*.png binary\n", 0644}));
    status.Update(txn.PutFile(id_, "hooks/update", {"#!/bin/sh\nexit 0\n", 0755}));
    return status;
  }).committed());
  ASSERT_THAT(storage::MakeDirectories(*fs_, directory_ / "logs"), IsOk());
  ASSERT_THAT(storage::WriteFile(*fs_, directory_ / "logs/HEAD", "line\n"), IsOk());
  ASSERT_THAT(storage::WriteFile(*fs_, directory_ / "FETCH_HEAD", "line\n"), IsOk());
  ASSERT_THAT(storage::WriteFile(*fs_, directory_ / "config.lock", ""), IsOk());

  const auto snapshot = Snapshot();

  EXPECT_THAT(storage::ReadFile(*fs_, snapshot->path() / "shallow"), IsOkAndHolds(shallow));
  EXPECT_THAT(storage::ReadFile(*fs_, snapshot->path() / "description"), IsOkAndHolds("about\n"));
  EXPECT_THAT(storage::ReadFile(*fs_, snapshot->path() / "info/attributes"), IsOkAndHolds("*.png binary\n"));
  EXPECT_EQ(fs_->Stat(snapshot->path() / "hooks/update")->mode, 0755u);
  for (const char* absent : {"logs", "FETCH_HEAD", "config.lock"}) {
    EXPECT_THAT(fs_->Stat(snapshot->path() / absent), StatusIs(absl::StatusCode::kNotFound)) << absent;
  }
  EXPECT_EQ(Git(snapshot->absolute_path(), {"rev-parse", "--is-shallow-repository"}), "true\n");
}

// SNAP-04, SNAP-07, SNAP-11
TEST_F(SnapshotTest, IsSharedWhileTheRepositoryStaysTheSame) {
  ASSERT_TRUE(Set("refs/heads/main", 1).committed());
  const auto first = Snapshot();
  ASSERT_TRUE(store_->Run({}, [](Transaction& txn) {
    return txn.CreateRepository(Path("elsewhere"), {}).status();
  }).committed());

  EXPECT_EQ(Snapshot(), first);
  EXPECT_EQ(store_->Metrics().snapshots_made, 1);
  ASSERT_TRUE(Set("refs/heads/main", 2).committed());
  EXPECT_NE(Snapshot(), first);
  EXPECT_EQ(RefsOf(*first), Line("refs/heads/main", 1));
}

// What a child writes stays in its own directory: the live repository keeps its bytes.
// SNAP-03, SNAP-04, C053
TEST_F(SnapshotTest, KeepsTheLiveRepositoryFromWhatGitWritesInASnapshot) {
  ASSERT_TRUE(Set("refs/heads/main", 1).committed());
  const auto snapshot = Snapshot();
  const std::string& there = snapshot->absolute_path();

  EXPECT_EQ(Git(there, {"update-ref", "refs/heads/main", MakeCommit(3).oid.ToHex()}), "");
  EXPECT_EQ(Git(there, {"config", "x.y", "z"}), "");
  EXPECT_EQ(Git(there, {"pack-refs", "--all"}), "");
  EXPECT_EQ(Git(there, {"repack", "-a", "-d", "-q"}), "");

  ASSERT_TRUE(Set("refs/heads/second", 2).committed());
  EXPECT_EQ(RefsOf(*Snapshot()), Line("refs/heads/main", 1) + Line("refs/heads/second", 2));
  EXPECT_THAT(storage::ReadFile(*fs_, directory_ / "config"), IsOkAndHolds(::testing::Not(::testing::HasSubstr("[x]"))));
  EXPECT_THAT(*fs_->List(directory_ / "objects/pack"), ::testing::IsEmpty());
}

// B16: a hook that outlived its daemon knows the path of its snapshot. No later snapshot may stand there, nor may the late
// end of an old one remove a new one.
TEST_F(SnapshotTest, NeverUsesANameTwice) {
  ASSERT_TRUE(Set("refs/heads/main", 1).committed());
  std::set<std::string> names;
  std::vector<std::shared_ptr<const txn::SnapshotDirectory>> kept;
  std::vector<std::unique_ptr<txn::Store>> closed;
  for (int opening = 0; opening < 3; ++opening) {
    for (int n = 0; n < 3; ++n) {
      ASSERT_TRUE(Set("refs/heads/main", 3 * opening + n + 1).committed());
      kept.push_back(Snapshot());
      EXPECT_TRUE(names.insert(std::string(kept.back()->path().text())).second) << kept.back()->path().text();
    }
    ASSERT_THAT(store_->Close(), IsOk());
    closed.push_back(std::move(store_));
    ASSERT_THAT(Open(), IsOk());
  }
  const auto newest = Snapshot();
  kept.clear();
  closed.clear();
  EXPECT_EQ(RefsOf(*newest), Line("refs/heads/main", 9));
}

// CORE-17
TEST_F(SnapshotTest, LeavesNothingBehindWhenClosedAndStockGitReadsTheRepository) {
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(Set(absl::StrCat("refs/heads/b", n), n % 10).committed());
  ASSERT_THAT(store_->RunBackgroundWork(), IsOk());
  Snapshot();
  ASSERT_THAT(store_->Close(), IsOk());

  EXPECT_THAT(*fs_->List(txn::layout::Snapshots()), ::testing::IsEmpty());
  EXPECT_THAT(*fs_->List(txn::layout::Staging()), ::testing::IsEmpty());
  const std::string refs =
      Git(temporary_.path() + "/repositories/g/r.git", {"for-each-ref", "--format=%(refname)"});
  EXPECT_EQ(std::count(refs.begin(), refs.end(), '\n'), 20);
  store_.reset();
  ASSERT_THAT(Open(), IsOk());
  EXPECT_TRUE(store_->recovery_report().was_clean);
}

// B9: whoever reads a directory reads no versions, so a directory in use keeps none in memory.
TEST_F(SnapshotTest, KeepsNoVersionsInMemoryForADirectoryInUse) {
  ASSERT_TRUE(Set("refs/heads/main", 1).committed());
  const auto snapshot = Snapshot();
  ASSERT_THAT(store_->RunBackgroundWork(), IsOk());
  const int64_t before = store_->Metrics().overlay_bytes;
  for (int n = 0; n < 100; ++n) ASSERT_TRUE(Set("refs/heads/hot", n % 10).committed());
  ASSERT_THAT(store_->RunBackgroundWork(), IsOk());

  EXPECT_EQ(store_->Metrics().overlay_bytes, before);
  EXPECT_EQ(RefsOf(*snapshot), Line("refs/heads/main", 1));
  EXPECT_LE(store_->Metrics().oldest_snapshot_lsn, snapshot->lsn().value());
}

}  // namespace
}  // namespace repotxn::testing
