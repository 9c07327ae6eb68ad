#include "txn/transaction.h"

#include "locks/verdict.h"
#include "refs/ref_error.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

// One store, one repository "r" with commits c0..c9. Each test stages one or two transactions and compares the whole
// list of refs; it fails when an outcome differs or anything else changed.
class TransactionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }

  CommitResult Set(absl::string_view branch, int n) { return world_.Set(id_, Branch(branch), World::At(n)); }
  static absl::Status Stage(Transaction& txn, const RepositoryId& id, const refs::RefName& name,
                            std::optional<refs::RefValue> expected, const refs::RefValue& value) {
    return txn.UpdateRef(id, {.name = name, .expected = std::move(expected), .value = value});
  }
  absl::Status Stage(Transaction& txn, absl::string_view branch, const refs::RefValue& value) {
    return Stage(txn, id_, Branch(branch), std::nullopt, value);
  }

  World world_;
  RepositoryId id_;
};

// REF-03
TEST_F(TransactionTest, CreatesARefThatLaterTransactionsSee) {
  const CommitResult result = Set("main", 1);

  EXPECT_TRUE(result.committed());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

// REF-01, REF-02
TEST_F(TransactionTest, KeepsNamesThatAreNotUtf8ByteForByte) {
  const refs::RefName name = Ref("refs/heads/\xff\xfe/\x80leaf");
  ASSERT_TRUE(world_.Set(id_, name, World::At(1)).committed());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/\xff\xfe/\x80leaf c1\n");

  ASSERT_TRUE(world_.Set(id_, name, refs::RefValue::Absent()).committed());
  ASSERT_THAT(world_.Reopen(), IsOk());

  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\n");
  EXPECT_THAT(world_.fs().Stat(txn::layout::RepositoryDirectory(id_) / "refs/heads/\xff\xfe"),
              StatusIs(absl::StatusCode::kNotFound));
}

// REF-05, C035
TEST_F(TransactionTest, RefusesAChildOfARefThatWasCreatedMeanwhile) {
  auto first = world_.Begin();
  auto second = world_.Begin();
  ASSERT_THAT(Stage(*first, "parent", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*second, "parent/child", World::At(2)), IsOk());
  ASSERT_TRUE(first->Commit().committed());

  const CommitResult result = second->Commit();

  EXPECT_EQ(result.outcome, CommitOutcome::kNotCommitted);
  ASSERT_THAT(result.status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(locks::ConflictDetailOf(result.status)->rule, locks::ConflictRule::kRefAbove);
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/parent c1\n");
}

// REF-05 the other way round
TEST_F(TransactionTest, RefusesAParentOfARefThatWasCreatedMeanwhile) {
  auto first = world_.Begin();
  auto second = world_.Begin();
  ASSERT_THAT(Stage(*first, "parent/child", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*second, "parent", World::At(2)), IsOk());
  ASSERT_TRUE(first->Commit().committed());

  const CommitResult result = second->Commit();

  ASSERT_THAT(result.status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(locks::ConflictDetailOf(result.status)->rule, locks::ConflictRule::kRefBelow);
}

// C035 within one snapshot
TEST_F(TransactionTest, RefusesADirectoryFileConflictAtStagingNamingBoth) {
  ASSERT_TRUE(Set("a", 1).committed());
  auto txn = world_.Begin();

  const absl::Status status = Stage(*txn, "a/b", World::At(2));

  ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto detail = refs::DirectoryFileDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->wanted, "refs/heads/a/b");
  EXPECT_EQ(detail->blocked_by, "refs/heads/a");
}

// REF-07
TEST_F(TransactionTest, DeletesAParentAndCreatesItsChildInOneTransaction) {
  ASSERT_TRUE(Set("parent", 1).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  auto txn = world_.Begin();
  ASSERT_THAT(Stage(*txn, "parent", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*txn, "parent/child", World::At(2)), IsOk());

  EXPECT_TRUE(txn->Commit().committed());

  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/parent/child c2\n");
}

// REF-08
TEST_F(TransactionTest, TakesATagOnAnyObjectAndABranchOnCommitsOnly) {
  const ObjectId tree = *ObjectId::FromHex("4b825dc642cb6eb9a060e54bf8d69288fbee4904");
  EXPECT_TRUE(world_.Set(id_, Ref("refs/tags/t"), refs::RefValue::Object(tree)).committed());

  const CommitResult branch = world_.Set(id_, Branch("b"), refs::RefValue::Object(tree));

  EXPECT_THAT(branch.status, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TransactionTest, RefusesARefToAnObjectThatIsNowhere) {
  const ObjectId absent = *ObjectId::FromHex("0123456789012345678901234567890123456789");

  const CommitResult result = world_.Set(id_, Branch("b"), refs::RefValue::Object(absent));

  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\n");
}

// REF-09: nothing of the store removes objects; what somebody else pruned since the transaction began is not answered from.
TEST_F(TransactionTest, RefusesARefToAnObjectThatWasPrunedMeanwhile) {
  auto transaction = world_.Begin();
  const LooseObject pruned = MakeCommit(4);
  ASSERT_THAT(transaction->ObjectExists(id_, pruned.oid), IsOkAndHolds(true));
  const std::string hex = pruned.oid.ToHex();
  ASSERT_THAT(world_.fs().Remove(txn::layout::RepositoryDirectory(id_) / "objects" / hex.substr(0, 2) / hex.substr(2)),
              IsOk());

  EXPECT_THAT(Stage(*transaction, "pruned", World::At(4)), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Stage(*transaction, "kept", World::At(5)), IsOk());

  EXPECT_TRUE(transaction->Commit().committed());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/kept c5\n");
}

// REF-11: also with the same value; a retry then finds nothing to do.
TEST_F(TransactionTest, ConflictsOnIdenticalConcurrentCreation) {
  auto first = world_.Begin();
  auto second = world_.Begin();
  ASSERT_THAT(Stage(*first, "main", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*second, "main", World::At(1)), IsOk());
  ASSERT_TRUE(first->Commit().committed());

  EXPECT_THAT(second->Commit().status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(Set("main", 1).committed());
}

// REF-13, REF-14, REF-25, A to B to A (scenarios, first table)
TEST_F(TransactionTest, ConflictsByVersionNotByValue) {
  ASSERT_TRUE(Set("x", 1).committed());
  auto update = world_.Begin();
  auto erase = world_.Begin();
  auto other = world_.Begin();
  ASSERT_THAT(Stage(*update, "x", World::At(3)), IsOk());
  ASSERT_THAT(Stage(*update, "unrelated", World::At(3)), IsOk());
  ASSERT_THAT(Stage(*erase, "x", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*other, "y", World::At(4)), IsOk());
  ASSERT_TRUE(Set("x", 2).committed());
  ASSERT_TRUE(Set("x", 1).committed());

  EXPECT_THAT(update->Commit().status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(erase->Commit().status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(other->Commit().committed());

  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/x c1\nrefs/heads/y c4\n");
}

// REF-18, REF-19, REF-20, first refs below one new directory (scenarios, first table)
TEST_F(TransactionTest, CommitsDifferentRefsSideBySide) {
  ASSERT_TRUE(Set("d/one", 1).committed());
  ASSERT_TRUE(Set("two", 1).committed());
  auto a = world_.Begin(), b = world_.Begin(), c = world_.Begin(), d = world_.Begin();
  ASSERT_THAT(Stage(*a, "d/one", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*b, "two", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*c, "new/x", World::At(2)), IsOk());
  ASSERT_THAT(Stage(*d, "new/y", World::At(3)), IsOk());

  EXPECT_TRUE(a->Commit().committed());
  EXPECT_TRUE(b->Commit().committed());
  EXPECT_TRUE(c->Commit().committed());
  EXPECT_TRUE(d->Commit().committed());

  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/new/x c2\nrefs/heads/new/y c3\n");
}

// C036
TEST_F(TransactionTest, DeletesTheLastRefOfADirectoryBesideACreationInIt) {
  ASSERT_TRUE(Set("x/1", 1).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  auto erase = world_.Begin(), create = world_.Begin();
  ASSERT_THAT(Stage(*erase, "x/1", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*create, "x/2", World::At(2)), IsOk());
  ASSERT_TRUE(erase->Commit().committed());
  ASSERT_TRUE(create->Commit().committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());

  ASSERT_TRUE(world_.Set(id_, Branch("x/2"), refs::RefValue::Absent()).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_TRUE(Set("x", 3).committed());

  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/x c3\n");
}

// REF-15, REF-26, REF-29, RDB-15
TEST_F(TransactionTest, CommitsNothingWhenNothingChanges) {
  ASSERT_TRUE(Set("main", 1).committed());
  const wal::Lsn before = world_.store().committed_lsn();

  const CommitResult same = Set("main", 1);
  const CommitResult absent = world_.Set(id_, Branch("never"), refs::RefValue::Absent());

  EXPECT_TRUE(same.committed());
  EXPECT_TRUE(absent.committed());
  EXPECT_EQ(world_.store().committed_lsn(), before);
}

// REF-24
TEST_F(TransactionTest, RefusesAnExpectedValueThatDoesNotHoldAndStagesNothing) {
  ASSERT_TRUE(Set("main", 1).committed());
  auto txn = world_.Begin();

  const absl::Status status = Stage(*txn, id_, Branch("main"), World::At(2), World::At(3));

  ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(refs::RefMismatchDetail(status)->name, "refs/heads/main");
  EXPECT_EQ(refs::RefMismatchDetail(status)->found, World::At(1).ToString());
  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

// REF-27, REF-32
TEST_F(TransactionTest, KeepsTheLastOfSeveralUpdatesOfOneRef) {
  auto txn = world_.Begin();
  ASSERT_THAT(Stage(*txn, "main", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*txn, id_, Branch("main"), World::At(1), World::At(2)), IsOk());

  EXPECT_TRUE(txn->Commit().committed());

  EXPECT_EQ(World::Name(world_.Read(id_, Branch("main"))), "c2");
}

// HEAD-01, HEAD-03, HEAD-05, REF-22, REF-23
TEST_F(TransactionTest, SetsHeadAndWritesThroughIt) {
  auto txn = world_.Begin();
  ASSERT_THAT(txn->UpdateRef(id_, {.name = refs::RefName::Head(), .expected = {},
                                   .value = refs::RefValue::Symbolic(Branch("dev"))}), IsOk());
  ASSERT_THAT(txn->UpdateRef(id_, {.name = refs::RefName::Head(), .expected = {}, .value = World::At(4)}), IsOk());

  EXPECT_TRUE(txn->Commit().committed());

  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/dev\nrefs/heads/dev c4\n");
}

// B13: an update through HEAD meets a change of HEAD.
TEST_F(TransactionTest, AbortsAnUpdateThroughHeadWhenHeadMovedMeanwhile) {
  ASSERT_TRUE(Set("main", 1).committed());
  auto through = world_.Begin();
  ASSERT_THAT(through->UpdateRef(id_, {.name = refs::RefName::Head(), .expected = {}, .value = World::At(2)}), IsOk());
  ASSERT_TRUE(world_.Set(id_, refs::RefName::Head(), refs::RefValue::Symbolic(Branch("dev"))).committed());

  EXPECT_THAT(through->Commit().status, StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/dev\nrefs/heads/main c1\n");
}

// B13: create and delete below cancel out.
TEST_F(TransactionTest, CreatesAParentWhenWhatWasCreatedBelowIsGoneAgain) {
  auto txn = world_.Begin();
  ASSERT_THAT(Stage(*txn, "a", World::At(1)), IsOk());
  ASSERT_TRUE(Set("a/b", 2).committed());
  ASSERT_TRUE(world_.Set(id_, Branch("a/b"), refs::RefValue::Absent()).committed());

  EXPECT_TRUE(txn->Commit().committed());
}

// B4: who only read does not make a later writer fail.
TEST_F(TransactionTest, CommitsAWriteThatMeetsOnlyCommittedReads) {
  ASSERT_TRUE(Set("a", 1).committed());
  auto reader = world_.Begin();
  auto writer = world_.Begin();
  ASSERT_THAT(reader->ReadRef(id_, Branch("a")), IsOk());
  ASSERT_THAT(Stage(*reader, "b", World::At(2)), IsOk());
  ASSERT_THAT(Stage(*writer, "a", World::At(3)), IsOk());
  ASSERT_TRUE(reader->Commit().committed());

  EXPECT_TRUE(writer->Commit().committed());
}

// Write skew over declared reads (scenarios, first table) [C150]
TEST_F(TransactionTest, RefusesWriteSkewOnTwoRefs) {
  ASSERT_TRUE(Set("a", 1).committed());
  ASSERT_TRUE(Set("b", 1).committed());
  auto first = world_.Begin(), second = world_.Begin();
  ASSERT_THAT(first->ReadRef(id_, Branch("a")), IsOk());
  ASSERT_THAT(second->ReadRef(id_, Branch("b")), IsOk());
  ASSERT_THAT(Stage(*first, "b", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*second, "a", refs::RefValue::Absent()), IsOk());
  ASSERT_TRUE(first->Commit().committed());

  EXPECT_THAT(second->DryRun(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(second->Commit().status, StatusIs(absl::StatusCode::kAborted));
}

// C150
TEST_F(TransactionTest, AbortsWhenAListedPrefixGotANewRef) {
  auto txn = world_.Begin();
  ASSERT_THAT(txn->ListRefs(id_, "refs/heads/rel-"), IsOk());
  ASSERT_THAT(Stage(*txn, "other", World::At(1)), IsOk());
  ASSERT_TRUE(Set("rel-1", 2).committed());

  EXPECT_THAT(txn->Commit().status, StatusIs(absl::StatusCode::kAborted));
}

// A26
TEST_F(TransactionTest, ExtendsTheWholeSnapshotOnlyWhenNothingReadHasChanged) {
  const RepositoryId other = world_.Create("other");
  ASSERT_TRUE(Set("a", 1).committed());
  auto txn = world_.Begin();
  ASSERT_THAT(txn->ReadRef(id_, Branch("a")), IsOk());
  ASSERT_TRUE(Set("b", 2).committed());
  ASSERT_TRUE(world_.Set(other, Branch("c"), World::At(3)).committed());

  ASSERT_THAT(txn->Extend(), IsOk());

  EXPECT_EQ(txn->snapshot_lsn(), world_.store().committed_lsn());
  EXPECT_EQ(World::Name(*txn->ReadRef(id_, Branch("b"))), "c2");
  EXPECT_EQ(World::Name(*txn->ReadRef(other, Branch("c"))), "c3");
  ASSERT_TRUE(Set("b", 4).committed());
  EXPECT_THAT(txn->Extend(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(World::Name(*txn->ReadRef(id_, Branch("b"))), "c2");
}

// CORE-25, C054
TEST_F(TransactionTest, ReadsItsSnapshotWhateverIsCommittedAndMaterializedMeanwhile) {
  ASSERT_TRUE(Set("a", 1).committed());
  ASSERT_TRUE(Set("gone", 1).committed());
  auto reader = world_.Begin();
  ASSERT_TRUE(Set("a", 2).committed());
  ASSERT_TRUE(Set("new", 3).committed());
  ASSERT_TRUE(world_.Set(id_, Branch("gone"), refs::RefValue::Absent()).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());

  EXPECT_EQ(World::Name(*reader->ReadRef(id_, Branch("a"))), "c1");
  const auto listed = *reader->ListRefs(id_, "refs/");
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].first.text(), "refs/heads/a");
  EXPECT_EQ(listed[1].first.text(), "refs/heads/gone");
}

TEST_F(TransactionTest, SeesItsOwnStagedWrites) {
  ASSERT_TRUE(Set("a", 1).committed());
  auto txn = world_.Begin();
  ASSERT_THAT(Stage(*txn, "a", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(Stage(*txn, "b", World::At(2)), IsOk());
  ASSERT_THAT(txn->PutFile(id_, "info/x", {"text", 0600}), IsOk());

  EXPECT_TRUE(txn->ReadRef(id_, Branch("a"))->is_absent());
  EXPECT_EQ(txn->ListRefs(id_, "")->size(), 1u);
  EXPECT_EQ(*txn->ReadFile(id_, "info/x"), (txn::FileValue{"text", 0600}));
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/a c1\n");
}

// FSR-05, FSR-06, FSR-08, C086
TEST_F(TransactionTest, CommitsFilesWithModesAndListsThem) {
  const std::string large(200'000, 'L');
  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "hooks/update", {"#!/bin/sh\n", 0755});
    status.Update(txn.PutFile(id_, "info/large", {large, 0644}));
    status.Update(txn.MakeDirectory(id_, "empty"));
    return status;
  });
  ASSERT_TRUE(result.committed());

  for (int round = 0; round < 2; ++round) {
    auto txn = world_.Begin();
    EXPECT_EQ(*txn->ReadFile(id_, "hooks/update"), (txn::FileValue{"#!/bin/sh\n", 0755}));
    EXPECT_EQ(txn->ReadFile(id_, "info/large")->content, large);
    EXPECT_THAT(*txn->ListDirectory(id_, ""), ::testing::ElementsAre("config", "empty", "hooks", "info"));
    EXPECT_THAT(txn->RemoveDirectory(id_, "hooks"), StatusIs(absl::StatusCode::kFailedPrecondition));
    txn->Abort();
    ASSERT_THAT(world_.Reopen(), IsOk());
  }
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    absl::Status status = txn.RemoveFile(id_, "hooks/update");
    status.Update(txn.RemoveDirectory(id_, "hooks"));
    status.Update(txn.RemoveDirectory(id_, "empty"));
    return status;
  }).committed());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(*world_.Begin()->ListDirectory(id_, ""), ::testing::ElementsAre("config", "info"));
  EXPECT_THAT(world_.fs().List(txn::layout::Payload()), IsOkAndHolds(::testing::IsEmpty()));
}

// WAL-02, FSR-02, FSR-03, C043
TEST_F(TransactionTest, RefusesPathsThatAreNoFilesOfTheApi) {
  auto txn = world_.Begin();
  for (const char* path : {"", "HEAD", "packed-refs", "refs/heads/x", "objects/pack/x", "logs/HEAD", "config.lock",
                           "gc.pid", "../x", "/x", "a/../b", "a//b", "FETCH_HEAD"}) {
    EXPECT_THAT(txn->PutFile(id_, path, {"x", 0644}), StatusIs(absl::StatusCode::kInvalidArgument)) << path;
  }
  EXPECT_THAT(txn->PutFile(id_, "config/x", {"x", 0644}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// CORE-20, CORE-24
TEST_F(TransactionTest, RefusesWritesInAReadOnlyTransactionAndAfterTheEnd) {
  txn::BeginOptions options;
  options.access = txn::Access::kReadOnly;
  auto txn = *world_.store().Begin(options);
  EXPECT_THAT(Stage(*txn, "a", World::At(1)), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_THAT(txn->ReadRef(id_, Branch("a")), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// REPO-01, C081
TEST_F(TransactionTest, CreatesRepositoriesStrictlyWithTheirGroups) {
  world_.Create("g/sub/one");
  auto create = [&](absl::string_view path) {
    return world_.store().Run({}, [&](Transaction& txn) {
      return txn.CreateRepository(Path(path), {}).status();
    });
  };

  EXPECT_THAT(create("g/sub/one").status, StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(create("g/sub").status, StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(create("g/sub/one/below").status, StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_TRUE(create("g/two").committed());
  ASSERT_THAT(world_.Reopen(), IsOk());

  std::vector<std::string> paths;
  ASSERT_OK_AND_ASSIGN(const auto listed, world_.store().ListRepositories("", "", 100));
  for (const auto& info : listed) paths.push_back(info.path);
  EXPECT_THAT(paths, ::testing::ElementsAre("g/sub/one", "g/two", "r"));
  EXPECT_THAT(world_.fs().ReadLink(txn::layout::RepositoryLink("r")),
              IsOkAndHolds(::testing::StartsWith("@id/")));
  EXPECT_THAT(world_.fs().ReadLink(txn::layout::RepositoryLink("g/sub/one")),
              IsOkAndHolds(::testing::StartsWith("../../@id/")));
}

// A10, REPO-02, C081
TEST_F(TransactionTest, LetsOneOfTwoConcurrentCreatesOfAPathWin) {
  auto first = world_.Begin(), second = world_.Begin(), below = world_.Begin();
  ASSERT_THAT(first->CreateRepository(Path("g/x"), {}), IsOk());
  ASSERT_THAT(second->CreateRepository(Path("g/x"), {}), IsOk());
  ASSERT_THAT(below->CreateRepository(Path("g/x/y"), {}), IsOk());

  ASSERT_TRUE(first->Commit().committed());

  EXPECT_THAT(second->Commit().status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(below->Commit().status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(world_.fs().List(txn::layout::Staging()), IsOkAndHolds(::testing::IsEmpty()));
}

// REPO-10, C095
TEST_F(TransactionTest, WritesSeveralRepositoriesAllOrNone) {
  const RepositoryId other = world_.Create("other");
  auto both = world_.Begin();
  ASSERT_THAT(Stage(*both, "a", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*both, other, Branch("a"), std::nullopt, World::At(1)), IsOk());
  ASSERT_TRUE(world_.Set(other, Branch("a"), World::At(2)).committed());

  EXPECT_THAT(both->Commit().status, StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\n");
  EXPECT_EQ(world_.Refs(other), "HEAD ref: refs/heads/main\nrefs/heads/a c2\n");
}

// C145, C153
TEST_F(TransactionTest, RunReplaysTheBodyWithTheConflictOfTheAttemptBefore) {
  ASSERT_TRUE(Set("a", 1).committed());
  int attempts = 0;
  absl::Status told;
  const CommitResult result = world_.store().Run({.begin = {}, .retries_max = 1}, [&](Transaction& txn) {
    ++attempts;
    told = txn.previous_conflict();
    const absl::Status status = Stage(txn, "a", World::At(attempts + 5));
    if (attempts == 1) {
      EXPECT_TRUE(Set("a", 2).committed());
    }
    return status;
  });

  EXPECT_TRUE(result.committed());
  EXPECT_EQ(result.attempts, 2);
  EXPECT_EQ(locks::ConflictDetailOf(told)->rule, locks::ConflictRule::kRefWritten);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("a"))), "c7");
}

}  // namespace
}  // namespace repotxn::testing
