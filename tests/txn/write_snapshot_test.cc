#include "txn/write_snapshot.h"

#include <functional>

#include "tests/txn/git_world.h"

namespace repotxn::testing {
namespace {

using txn::CapturedChanges;
using txn::CommitResult;
using txn::ForeignChange;
using txn::ForeignKind;
using txn::ReadTracking;
using txn::Transaction;
using txn::WriteSnapshot;

// Two repositories, transactions that run Git children in write snapshots, and commits of others in between. It fails
// when an outcome differs, a directory shows anything but one LSN, or something is left behind.
class WriteSnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string plain = world_.MakePlain("plain");
    a_ = world_.Import("a", plain);
    b_ = world_.Import("b", plain);
    for (int n = 1; n <= 3; ++n) {
      commits_.push_back(refs::RefValue::Object(
          *ObjectId::FromHex(GitWorld::Git(plain, {"rev-parse", absl::StrCat("main~", 3 - n)}))));
    }
  }

  std::unique_ptr<Transaction> Begin(txn::Access access = txn::Access::kReadWrite) {
    txn::BeginOptions options;
    options.access = access;
    auto transaction = world_.store().Begin(options);
    EXPECT_THAT(transaction, IsOk());
    return *std::move(transaction);
  }
  static WriteSnapshot* Open(Transaction& txn, std::vector<RepositoryId> ids,
                             ReadTracking tracking = ReadTracking::kCommand) {
    auto snapshot = txn.OpenWriteSnapshot(std::move(ids), {.tracking = tracking});
    EXPECT_THAT(snapshot, IsOk());
    return snapshot.ok() ? *snapshot : nullptr;
  }
  // Commit n of 1..3.
  refs::RefValue At(int n) const { return commits_[static_cast<size_t>(n - 1)]; }
  GitStep Point(absl::string_view ref, int n) const {
    return {{"update-ref", std::string(ref), At(n).oid().ToHex()}, "", {}};
  }
  static std::string Shown(const WriteSnapshot& snapshot, const RepositoryId& id, const std::string& ref) {
    return GitWorld::Git(snapshot.absolute_path(id), {"rev-parse", "--verify", ref});
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(*world_.fs().List(txn::layout::Snapshots()), ::testing::IsEmpty());
    EXPECT_THAT(*world_.fs().List(txn::layout::Staging()), ::testing::IsEmpty());
    EXPECT_THAT(*world_.fs().List(txn::layout::Payload()), ::testing::IsEmpty());
  }

  GitWorld world_;
  RepositoryId a_, b_;
  std::vector<refs::RefValue> commits_;
};

// A26, SNAP-05
TEST_F(WriteSnapshotTest, ShowsSeveralRepositoriesAtOneLsnAndMovesTheTransactionThere) {
  auto txn = Begin();
  ASSERT_THAT(txn->ReadRef(a_, Branch("main")), IsOk());
  ASSERT_TRUE(world_.Set(b_, "refs/heads/main", At(1)).committed());
  ASSERT_TRUE(world_.Set(a_, "refs/heads/feature", At(3)).committed());
  const wal::Lsn newest = world_.store().committed_lsn();

  WriteSnapshot* const snapshot = Open(*txn, {b_, a_, b_});

  EXPECT_EQ(snapshot->lsn(), newest);
  EXPECT_EQ(txn->snapshot_lsn(), newest);
  EXPECT_EQ(snapshot->repositories(), (std::vector<RepositoryId>{std::min(a_, b_), std::max(a_, b_)}));
  EXPECT_EQ(Shown(*snapshot, b_, "refs/heads/main"), At(1).oid().ToHex());
  EXPECT_EQ(Shown(*snapshot, a_, "refs/heads/feature"), At(3).oid().ToHex());
  // What is read natively now is what the children see.
  ASSERT_TRUE(world_.Set(b_, "refs/heads/main", At(2)).committed());
  EXPECT_TRUE(txn->ReadRef(b_, Branch("main"))->SameAs(At(1)));
  EXPECT_EQ(Shown(*snapshot, b_, "refs/heads/main"), At(1).oid().ToHex());
}

// A26
TEST_F(WriteSnapshotTest, IsAbortedAndStaysWhereItWasWhenSomethingItReadWasWritten) {
  for (const txn::Access access : {txn::Access::kReadOnly, txn::Access::kReadWrite}) {
    ASSERT_TRUE(world_.Set(a_, "refs/heads/main", At(1)).committed());
    auto txn = Begin(access);
    const wal::Lsn begun = txn->snapshot_lsn();
    ASSERT_THAT(txn->ReadRef(a_, Branch("main")), IsOk());
    ASSERT_TRUE(world_.Set(a_, "refs/heads/main", At(2)).committed());

    EXPECT_THAT(txn->OpenWriteSnapshot({a_, b_}, {}), StatusIs(absl::StatusCode::kAborted));

    EXPECT_EQ(txn->snapshot_lsn(), begun);
    EXPECT_TRUE(txn->ReadRef(a_, Branch("main"))->SameAs(At(1)));
    EXPECT_THAT(*world_.fs().List(txn::layout::Snapshots()), ::testing::IsEmpty());
  }
}

// A26: what was read for one child is checked again when the next directory is made.
TEST_F(WriteSnapshotTest, ChecksReadsOfAnEarlierChildWhenALaterOneIsPrepared) {
  auto txn = Begin();
  Open(*txn, {a_}, ReadTracking::kWholeRepository);
  ASSERT_TRUE(world_.Set(a_, "refs/heads/other", At(1)).committed());

  EXPECT_THAT(txn->OpenWriteSnapshot({b_}, {}), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(WriteSnapshotTest, CommitsChangesOfSeveralRepositoriesTogether) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_, b_});
  for (const RepositoryId& id : {a_, b_}) {
    GitWorld::RunIn(*snapshot, id, {{{"commit-tree", "main^{tree}", "-p", "main", "-m", "next"}, "", {}},
                                    {{"update-ref", "refs/heads/main", "$OUT"}, "", {}}});
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<CapturedChanges> captured, txn->Capture(snapshot));
  const refs::RefValue next = captured[0].refs[0].after;

  ASSERT_TRUE(txn->Commit().committed());

  for (const RepositoryId& id : {a_, b_}) EXPECT_TRUE(world_.Read(id, "refs/heads/main").SameAs(next));
  ASSERT_THAT(world_.Close(), IsOk());
  for (const RepositoryId& id : {a_, b_}) EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(id), {"fsck", "--full", "--no-dangling"}), "");
}

TEST_F(WriteSnapshotTest, CommitsBesideChangesOfWhatItDidNotRead) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {Point("refs/heads/mine", 1)});
  ASSERT_TRUE(world_.Set(a_, "refs/heads/theirs", At(2)).committed());
  ASSERT_THAT(txn->Capture(snapshot), IsOk());

  ASSERT_TRUE(txn->Commit().committed());

  EXPECT_TRUE(world_.Read(a_, "refs/heads/mine").SameAs(At(1)));
  EXPECT_TRUE(world_.Read(a_, "refs/heads/theirs").SameAs(At(2)));
}

TEST_F(WriteSnapshotTest, IsAbortedWhenTheWholeRepositoryIsReadAndAnythingInItIsWritten) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_}, ReadTracking::kWholeRepository);
  GitWorld::RunIn(*snapshot, a_, {Point("refs/heads/mine", 1)});
  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  ASSERT_TRUE(world_.Set(b_, "refs/heads/theirs", At(2)).committed());
  ASSERT_THAT(txn->DryRun(), IsOk());
  ASSERT_TRUE(world_.Set(a_, "refs/heads/theirs", At(2)).committed());

  EXPECT_THAT(txn->Commit().status, StatusIs(absl::StatusCode::kAborted));

  EXPECT_TRUE(world_.Read(a_, "refs/heads/mine").is_absent());
}

TEST_F(WriteSnapshotTest, IsAbortedWhenADeclaredReadOfTheCommandIsWritten) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  ASSERT_THAT(txn->ReadRef(a_, Branch("main")), IsOk());
  GitWorld::RunIn(*snapshot, a_, {{{"update-ref", "refs/heads/mine", "refs/heads/main"}, "", {}}});
  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  ASSERT_TRUE(world_.Set(a_, "refs/heads/main", At(1)).committed());

  EXPECT_THAT(txn->Commit().status, StatusIs(absl::StatusCode::kAborted));
}

// SNAP-03, SNAP-10
TEST_F(WriteSnapshotTest, LosesToACaptureOfTheSameRefOrFile) {
  const std::vector<std::vector<GitStep>> stories = {{Point("refs/heads/main", 1)}, {{{"config", "x.y", "z"}, "", {}}}};
  for (const std::vector<GitStep>& story : stories) {
    auto first = Begin(), second = Begin();
    WriteSnapshot* const one = Open(*first, {a_});
    WriteSnapshot* const two = Open(*second, {a_});
    GitWorld::RunIn(*one, a_, story);
    GitWorld::RunIn(*two, a_, story);
    ASSERT_THAT(first->Capture(one), IsOk());
    ASSERT_THAT(second->Capture(two), IsOk());
    ASSERT_TRUE(first->Commit().committed());

    EXPECT_THAT(second->Commit().status, StatusIs(absl::StatusCode::kAborted));
  }
  ExpectNothingLeft();
}

// B6: directories below refs/ are nobody's, so the last ref of one may go while another comes.
TEST_F(WriteSnapshotTest, DeletesTheLastRefOfADirectoryBesideACaptureThatMakesAnother) {
  auto first = Begin(), second = Begin();
  WriteSnapshot* const one = Open(*first, {a_});
  WriteSnapshot* const two = Open(*second, {a_});
  GitWorld::RunIn(*one, a_, {{{"update-ref", "-d", "refs/heads/nested/deep"}, "", {}}});
  GitWorld::RunIn(*two, a_, {Point("refs/heads/nested/new", 2)});
  ASSERT_THAT(first->Capture(one), IsOk());
  ASSERT_THAT(second->Capture(two), IsOk());

  EXPECT_TRUE(first->Commit().committed());
  EXPECT_TRUE(second->Commit().committed());

  ASSERT_THAT(world_.Close(), IsOk());
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(a_), {"for-each-ref", "--format=%(refname)", "refs/heads/nested"}),
            "refs/heads/nested/new");
}

// A7: what was committed after the snapshot is not the child's to remove, even by rewriting everything it sees.
TEST_F(WriteSnapshotTest, KeepsWhatWasCommittedBesideARepack) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  auto other = Begin();
  WriteSnapshot* const theirs = Open(*other, {a_});
  GitWorld::RunIn(*theirs, a_, {{{"commit-tree", "main^{tree}", "-m", "later"}, "", {}},
                                {{"update-ref", "refs/heads/later", "$OUT"}, "", {}}});
  ASSERT_THAT(other->Capture(theirs), IsOk());
  ASSERT_TRUE(other->Commit().committed());

  GitWorld::RunIn(*snapshot, a_, {{{"repack", "-a", "-d", "-q", "--no-write-bitmap-index"}, "", {"repack.updateServerInfo=false"}}});
  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  ASSERT_TRUE(txn->Commit().committed());

  ASSERT_THAT(world_.Close(), IsOk());
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(a_), {"rev-list", "--count", "later"}), "1");
  EXPECT_EQ(GitWorld::Git(world_.DirectoryOf(a_), {"fsck", "--full", "--no-dangling"}), "");
}

// C001, C002
TEST_F(WriteSnapshotTest, LeavesNothingBehindWhenTheTransactionIsDropped) {
  const auto before = GitWorld::Tree(world_.DirectoryOf(a_));
  const wal::Lsn newest = world_.store().committed_lsn();
  {
    auto txn = Begin();
    WriteSnapshot* const snapshot = Open(*txn, {a_});
    GitWorld::RunIn(*snapshot, a_, {{{"commit-tree", "main^{tree}", "-m", "next"}, "", {}},
                                    {{"update-ref", "refs/heads/main", "$OUT"}, "", {}}});
    ASSERT_THAT(txn->Capture(snapshot), IsOk());
  }

  ExpectNothingLeft();
  EXPECT_EQ(world_.store().committed_lsn(), newest);
  EXPECT_EQ(world_.store().Metrics().oldest_snapshot_lsn, newest.value());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_EQ(GitWorld::Tree(world_.DirectoryOf(a_)), before);
}

TEST_F(WriteSnapshotTest, IsAbortedWhenItWasExtendedPastAChangeOfWhatTheChildWrote) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {Point("refs/heads/main", 1)});
  ASSERT_TRUE(world_.Set(a_, "refs/heads/main", At(2)).committed());
  ASSERT_THAT(txn->Extend(), IsOk());  // the transaction itself has read nothing

  EXPECT_THAT(txn->Capture(snapshot), StatusIs(absl::StatusCode::kAborted));

  EXPECT_TRUE(txn->ReadRef(a_, Branch("main"))->SameAs(At(2)));
}

TEST_F(WriteSnapshotTest, IsCapturedAtALaterSnapshotWhenNothingOfItWasWritten) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {Point("refs/heads/main", 1)});
  ASSERT_TRUE(world_.Set(a_, "refs/heads/feature", At(3)).committed());
  ASSERT_THAT(txn->Extend(), IsOk());

  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  ASSERT_TRUE(txn->Commit().committed());

  EXPECT_TRUE(world_.Read(a_, "refs/heads/main").SameAs(At(1)));
  EXPECT_TRUE(world_.Read(a_, "refs/heads/feature").SameAs(At(3)));
}

TEST_F(WriteSnapshotTest, RefusesWhatTheCallsDoNotAllow) {
  auto reader = Begin(txn::Access::kReadOnly);
  WriteSnapshot* const read = Open(*reader, {a_});
  EXPECT_THAT(reader->Capture(read), StatusIs(absl::StatusCode::kPermissionDenied));
  auto txn = Begin();
  EXPECT_THAT(txn->OpenWriteSnapshot({}, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(txn->OpenWriteSnapshot({RepositoryId()}, {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(txn->Capture(read), StatusIs(absl::StatusCode::kInvalidArgument));
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  EXPECT_THAT(snapshot->Run(read->Command(a_, {"rev-parse", "HEAD"})), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  EXPECT_THAT(txn->Capture(snapshot), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(txn->UpdateRef(b_, {.name = Branch("x"), .expected = {}, .value = At(1)}), IsOk());
  EXPECT_THAT(txn->OpenWriteSnapshot({a_, b_}, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
  txn->Abort();
  EXPECT_THAT(txn->OpenWriteSnapshot({a_}, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// B17
TEST_F(WriteSnapshotTest, RunsNoChildUnderAConfigurationThatIncludesOthers) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {{{"config", "include.path", "elsewhere"}, "", {}}});

  EXPECT_THAT(snapshot->Run(snapshot->Command(a_, {"rev-parse", "HEAD"})),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  ASSERT_TRUE(world_.Put(b_, "config", "[include]\n\tpath = elsewhere\n").committed());
  EXPECT_THAT(Begin()->OpenWriteSnapshot({b_}, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(WriteSnapshotTest, HasCopiesOfWhatGitWritesInPlaceOnlyWhenTheyAreWanted) {
  const std::string live = world_.DirectoryOf(a_);
  std::filesystem::create_directories(live + "/logs/refs/heads");
  GitWorld::Write(live + "/logs/refs/heads/main", "line\n");
  GitWorld::Write(live + "/FETCH_HEAD", "line\n");
  const auto before = GitWorld::Tree(live);
  auto txn = Begin();
  EXPECT_FALSE(std::filesystem::exists(Open(*txn, {a_})->absolute_path(a_) + "/logs"));

  ASSERT_OK_AND_ASSIGN(WriteSnapshot * snapshot, txn->OpenWriteSnapshot({a_}, {.with_copied_logs = true}));
  const std::string there = snapshot->absolute_path(a_);
  EXPECT_EQ(GitWorld::FileText(there + "/logs/refs/heads/main"), "line\n");
  ASSERT_THAT(txn->Capture(snapshot), IsOkAndHolds(::testing::ElementsAre(::testing::Property(&CapturedChanges::empty, true))));
  GitWorld::Write(there + "/logs/refs/heads/main", "other\n");
  GitWorld::Write(there + "/FETCH_HEAD", "other\n");

  EXPECT_EQ(GitWorld::Tree(live), before);
}

// An object whose links lead nowhere, and a ref to nothing, are found whoever wrote them.
TEST_F(WriteSnapshotTest, RefusesObjectsAndRefsThatNameMissingObjects) {
  const std::string missing(40, '1');
  const std::vector<std::function<void(WriteSnapshot&)>> harms = {
      [&](WriteSnapshot& snapshot) {
        GitWorld::RunIn(snapshot, a_, {{{"mktree", "--missing"}, absl::StrCat("100644 blob ", missing, "\tfile\n"), {}}});
      },
      [&](WriteSnapshot& snapshot) {
        GitWorld::Write(snapshot.absolute_path(a_) + "/refs/heads/broken", missing + "\n");
        GitWorld::RunIn(snapshot, a_, {{{"config", "x.y", "z"}, "", {}}});
      }};
  for (const auto& harm : harms) {
    const auto before = GitWorld::Tree(world_.DirectoryOf(a_));
    auto txn = Begin();
    WriteSnapshot* const snapshot = Open(*txn, {a_});
    harm(*snapshot);

    EXPECT_THAT(txn->Capture(snapshot), StatusIs(absl::StatusCode::kFailedPrecondition));

    // Nothing of it was staged.
    const wal::Lsn newest = world_.store().committed_lsn();
    EXPECT_TRUE(txn->Commit().committed());
    EXPECT_EQ(world_.store().committed_lsn(), newest);
    EXPECT_EQ(GitWorld::Tree(world_.DirectoryOf(a_)), before);
    ExpectNothingLeft();
  }
}

// One thing that a child may leave and that no transaction can say.
struct Foreign {
  const char* name;
  ForeignKind kind;
  const char* path;
  std::function<void(const std::string& directory)> leave;
};

class ForeignChangeTest : public WriteSnapshotTest, public ::testing::WithParamInterface<Foreign> {};

TEST_P(ForeignChangeTest, IsNamedAndNothingIsChanged) {
  ASSERT_TRUE(world_.Put(a_, "info/attributes", "*.png binary\n").committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  const auto before = GitWorld::Tree(world_.DirectoryOf(a_));
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_, b_});
  GitWorld::RunIn(*snapshot, b_, {Point("refs/heads/main", 1)});
  GetParam().leave(snapshot->absolute_path(a_));

  const auto captured = txn->Capture(snapshot);

  ASSERT_THAT(captured, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(txn::ForeignChangesOf(captured.status()),
              ::testing::ElementsAre(ForeignChange{a_, GetParam().kind, GetParam().path}));
  const wal::Lsn newest = world_.store().committed_lsn();
  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_EQ(world_.store().committed_lsn(), newest);
  ExpectNothingLeft();
  if (GetParam().kind != ForeignKind::kWrittenInPlace) {
    EXPECT_EQ(GitWorld::Tree(world_.DirectoryOf(a_)), before);
  }
}

void Leave(const std::string& path) { GitWorld::Write(path, "text\n"); }

INSTANTIATE_TEST_SUITE_P(
    All, ForeignChangeTest,
    ::testing::Values(
        Foreign{"Symlink", ForeignKind::kSymlink, "info/link",
                [](const std::string& at) { std::filesystem::create_symlink("/etc", at + "/info/link"); }},
        Foreign{"SymlinkForARef", ForeignKind::kSymlink, "refs/heads/link",
                [](const std::string& at) { std::filesystem::create_symlink("main", at + "/refs/heads/link"); }},
        Foreign{"Pipe", ForeignKind::kSpecialFile, "pipe",
                [](const std::string& at) { ::mkfifo((at + "/pipe").c_str(), 0644); }},
        Foreign{"LockOfARef", ForeignKind::kLockFile, "refs/heads/main.lock",
                [](const std::string& at) { Leave(at + "/refs/heads/main.lock"); }},
        Foreign{"LockOfTheConfiguration", ForeignKind::kLockFile, "config.lock",
                [](const std::string& at) { Leave(at + "/config.lock"); }},
        Foreign{"Reflog", ForeignKind::kReflog, "logs/HEAD",
                [](const std::string& at) {
                  std::filesystem::create_directory(at + "/logs");
                  Leave(at + "/logs/HEAD");
                }},
        Foreign{"UnfinishedPack", ForeignKind::kObjectFile, "objects/pack/tmp_pack_x",
                [](const std::string& at) {
                  std::filesystem::create_directory(at + "/objects/pack");
                  Leave(at + "/objects/pack/tmp_pack_x");
                }},
        Foreign{"CommitGraph", ForeignKind::kObjectFile, "objects/info/commit-graph",
                [](const std::string& at) { GitWorld::Git(at, {"commit-graph", "write", "--reachable"}); }},
        Foreign{"Alternates", ForeignKind::kAlternates, "objects/info/alternates",
                [](const std::string& at) {
                  std::ofstream(at + "/objects/info/alternates", std::ios::app) << "/elsewhere\n";
                }},
        Foreign{"AlternatesRemoved", ForeignKind::kAlternates, "objects/info/alternates",
                [](const std::string& at) { std::filesystem::remove(at + "/objects/info/alternates"); }},
        Foreign{"WrittenInPlace", ForeignKind::kWrittenInPlace, "info/attributes",
                [](const std::string& at) { std::ofstream(at + "/info/attributes", std::ios::app) << "more\n"; }},
        Foreign{"FileForADirectory", ForeignKind::kKindChanged, "info",
                [](const std::string& at) {
                  std::filesystem::remove_all(at + "/info");
                  Leave(at + "/info");
                }},
        Foreign{"TemporaryFile", ForeignKind::kReservedPath, "tmp_file",
                [](const std::string& at) { Leave(at + "/tmp_file"); }},
        Foreign{"GarbageForARef", ForeignKind::kUnreadableRef, "refs/heads/garbage",
                [](const std::string& at) { Leave(at + "/refs/heads/garbage"); }},
        Foreign{"NoNameOfARef", ForeignKind::kUnreadableRef, "refs/heads/a..b",
                [](const std::string& at) { Leave(at + "/refs/heads/a..b"); }},
        Foreign{"DamagedPackedRefs", ForeignKind::kUnreadableRef, "packed-refs",
                [](const std::string& at) { Leave(at + "/packed-refs"); }},
        Foreign{"NoHead", ForeignKind::kUnreadableRef, "HEAD",
                [](const std::string& at) { std::filesystem::remove(at + "/HEAD"); }},
        Foreign{"Inclusion", ForeignKind::kConfiguration, "config",
                [](const std::string& at) { GitWorld::Git(at, {"config", "include.path", "elsewhere"}); }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(WriteSnapshotTest, IsCapturedOnceItIsInOrderAgain) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {Point("refs/heads/main", 1)});
  const std::string lock = snapshot->absolute_path(a_) + "/x.lock";
  Leave(lock);
  ASSERT_THAT(txn->Capture(snapshot), StatusIs(absl::StatusCode::kFailedPrecondition));
  std::filesystem::remove(lock);

  ASSERT_THAT(txn->Capture(snapshot), IsOk());
  ASSERT_TRUE(txn->Commit().committed());

  EXPECT_TRUE(world_.Read(a_, "refs/heads/main").SameAs(At(1)));
}

// Housekeeping that rewrites objects is not the business of a capture: it is refused, whole.
TEST_F(WriteSnapshotTest, RefusesGarbageCollection) {
  auto txn = Begin();
  WriteSnapshot* const snapshot = Open(*txn, {a_});
  GitWorld::RunIn(*snapshot, a_, {{{"gc", "-q", "--prune=now"}, "", {}}});

  const auto captured = txn->Capture(snapshot);

  ASSERT_THAT(captured, StatusIs(absl::StatusCode::kFailedPrecondition));
  for (const ForeignChange& change : txn::ForeignChangesOf(captured.status())) {
    EXPECT_EQ(change.kind, ForeignKind::kObjectFile) << change.path;
  }
}

}  // namespace
}  // namespace repotxn::testing
