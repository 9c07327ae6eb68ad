#include <atomic>
#include <thread>

#include "locks/verdict.h"
#include "storage/posix_file_system.h"
#include "tests/support/temp_directory.h"
#include "tests/txn/world.h"
#include "txn/object_staging.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

constexpr absl::Duration kLease = absl::Minutes(10);

// What the store does to transactions that nobody uses any more, or that keep too much: they are ended, their owners are
// told, and nobody else notices. The clock is the test's, and the background work runs when the test says so.
class TransactionLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(World::Options()); }
  void Open(const txn::StoreOptions& options) {
    world_.Drop();
    ASSERT_THAT(world_.Open(options), IsOk());
    id_ = world_.Create(absl::StrCat("r", ++made_));
  }
  absl::Status Stage(Transaction& txn, absl::string_view branch, int n) {
    return txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = World::At(n)});
  }
  CommitResult Put(absl::string_view path, size_t bytes, char fill) {
    return world_.store().Run(
        {}, [&](Transaction& txn) { return txn.PutFile(id_, path, {std::string(bytes, fill), 0644}); });
  }
  void Sweep() { ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk()); }
  txn::StoreMetrics Metrics() { return world_.store().Metrics(); }
  static bool IsTooOld(const absl::Status& status) {
    const auto detail = locks::ConflictDetailOf(status);
    return absl::IsAborted(status) && detail && detail->rule == locks::ConflictRule::kTooOld;
  }

  World world_;
  RepositoryId id_;
  int made_ = 0;
};

// C008: a hung client holds nothing that would block the next. [C010]
TEST_F(TransactionLimitsTest, EndsATransactionThatLiesIdleAndFencesItsId) {
  auto idle = world_.Begin();
  ASSERT_THAT(Stage(*idle, "main", 1), IsOk());
  ASSERT_TRUE(world_.Set(id_, Branch("other"), World::At(2)).committed());
  world_.clock().Advance(kLease - absl::Milliseconds(1));
  Sweep();
  ASSERT_THAT(idle->ReadRef(id_, Branch("main")), IsOk());
  ASSERT_LT(Metrics().oldest_snapshot_lsn, Metrics().committed_lsn);

  world_.clock().Advance(kLease);
  Sweep();

  EXPECT_EQ(Metrics().oldest_snapshot_lsn, Metrics().committed_lsn);
  EXPECT_EQ(Metrics().open_transactions, 0);
  EXPECT_EQ(Metrics().transactions_ended_idle, 1);
  EXPECT_EQ(world_.store().OutcomeOf(idle->id()).outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(idle->ReadRef(id_, Branch("main")), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(idle->Extend(), StatusIs(absl::StatusCode::kAborted));
  const CommitResult late = idle->Commit();
  EXPECT_EQ(late.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(late.status, StatusIs(absl::StatusCode::kAborted));
  txn::BeginOptions again;
  again.transaction_id = idle->id();
  EXPECT_THAT(world_.store().Begin(again), StatusIs(absl::StatusCode::kFailedPrecondition));
  idle.reset();
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/other c2\n");
}

TEST_F(TransactionLimitsTest, KeepsATransactionThatIsUsedNowAndThen) {
  auto used = world_.Begin();
  for (int n = 0; n < 5; ++n) {
    world_.clock().Advance(kLease - absl::Seconds(1));
    Sweep();
    ASSERT_THAT(Stage(*used, "main", n), IsOk());
  }

  EXPECT_TRUE(used->Commit().committed());
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("main"))), "c4");
}

TEST_F(TransactionLimitsTest, NeverEndsATransactionDuringACall) {
  auto txn = world_.Begin();
  const absl::Status slow = txn->RunOnce("slow", [&]() -> absl::Status {
    world_.clock().Advance(100 * kLease);
    Sweep();
    return Stage(*txn, "main", 1);
  });
  ASSERT_THAT(slow, IsOk());
  Sweep();

  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_EQ(Metrics().transactions_ended_idle, 0);
}

// Run owns the id: it plays the body again, and the caller sees one committed transaction.
TEST_F(TransactionLimitsTest, PlaysABodyAgainWhoseTransactionRanOutOfItsLease) {
  TransactionId id;
  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) {
    if (id.IsZero()) {
      id = txn.id();
      world_.clock().Advance(2 * kLease);
      Sweep();
    }
    return Stage(txn, "main", 3);
  });

  EXPECT_TRUE(result.committed()) << result.status;
  EXPECT_EQ(result.attempts, 2);
  EXPECT_EQ(result.transaction_id, id);
  EXPECT_EQ(world_.store().OutcomeOf(id).lsn, result.lsn);
}

// The sweep and the owner's commit meet at every possible moment: one of them wins, wholly. [C010]
TEST_F(TransactionLimitsTest, EitherEndsOrCommitsWhenLeaseAndCommitMeet) {
  int committed = 0;
  for (int n = 0; n < 200; ++n) {
    const std::string branch = absl::StrCat("b", n);
    auto txn = world_.Begin();
    ASSERT_THAT(Stage(*txn, branch, n % 10), IsOk());
    world_.clock().Advance(kLease);
    std::atomic<bool> go{false};
    std::thread sweeper([&] {
      while (!go.load()) std::this_thread::yield();
      EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
    });
    go.store(true);
    const CommitResult result = txn->Commit();
    sweeper.join();

    EXPECT_NE(result.outcome, CommitOutcome::kUnknown);
    EXPECT_EQ(world_.store().OutcomeOf(txn->id()).outcome, result.outcome);
    EXPECT_EQ(world_.Read(id_, Branch(branch)).is_absent(), !result.committed());
    if (!result.committed()) {
      EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kAborted));
    }
    committed += result.committed() ? 1 : 0;
  }
  EXPECT_EQ(Metrics().transactions_ended_idle, 200 - committed);
  EXPECT_EQ(Metrics().open_transactions, 0);
}

// C001
TEST_F(TransactionLimitsTest, DoesNotTakeATransactionForIdleWhileItsGitChildWorks) {
  const TempDirectory temporary;
  ASSERT_OK_AND_ASSIGN(const auto fs, storage::OpenPosixFileSystem(temporary.path()));
  world_.Drop();
  ASSERT_THAT(world_.OpenOn(fs.get()), IsOk());
  ASSERT_TRUE(world_.store()
                  .Run({}, [&](Transaction& txn) { return txn.CreateRepository(Path("p"), {}).status(); })
                  .committed());
  auto txn = world_.Begin();
  ASSERT_OK_AND_ASSIGN(auto staging, world_.store().StageObjects(txn->id(), Path("p"), ObjectFormat::kSha1));
  int asked = 0;
  const auto source = [&](absl::Span<char>) -> absl::StatusOr<size_t> {
    if (++asked > 3) return absl::UnavailableError("client is gone");
    world_.clock().Advance(2 * kLease);
    EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
    return size_t{0};
  };
  EXPECT_FALSE(staging->IndexPack(source, {}).ok());
  EXPECT_GE(asked, 1);
  staging.reset();

  // Idle time counts from the child's end.
  world_.clock().Advance(kLease - absl::Seconds(1));
  Sweep();
  EXPECT_THAT(txn->OpenRepository(Path("p")), IsOk());
  world_.clock().Advance(kLease);
  Sweep();
  EXPECT_THAT(txn->OpenRepository(Path("p")), StatusIs(absl::StatusCode::kAborted));
  txn.reset();
  world_.Drop();  // before its disk
}

// C152, B9: the check can always be made, or the transaction is told that it cannot; nobody else is refused.
TEST_F(TransactionLimitsTest, EndsTheOldestWhenTheHistoryGrowsBeyondItsBound) {
  txn::StoreOptions options = World::Options();
  options.history_bytes_max = 200'000;
  Open(options);
  auto oldest = world_.Begin();
  ASSERT_THAT(Stage(*oldest, "untouched", 1), IsOk());
  ASSERT_TRUE(world_.Set(id_, Branch("x"), World::At(1)).committed());
  auto younger = world_.Begin();
  ASSERT_THAT(Stage(*younger, "untouched-too", 1), IsOk());
  int commits = 0;
  while (Metrics().transactions_ended_too_old == 0 && commits < 5000) {
    ++commits;
    ASSERT_TRUE(world_.Set(id_, Branch(absl::StrCat("n", commits % 500)), World::At(commits / 500 % 10)).committed());
    if (commits % 100 == 0) Sweep();
  }
  ASSERT_LT(commits, 5000);

  const CommitResult late = oldest->Commit();
  EXPECT_EQ(late.outcome, CommitOutcome::kNotCommitted);
  EXPECT_TRUE(IsTooOld(late.status)) << late.status;
  EXPECT_EQ(world_.store().OutcomeOf(oldest->id()).outcome, CommitOutcome::kNotCommitted);
  EXPECT_TRUE(world_.Read(id_, Branch("untouched")).is_absent());
  // One LSN younger and just as long open: it goes too, until what is kept is within the bound.
  EXPECT_TRUE(IsTooOld(younger->ReadRef(id_, Branch("x")).status()));
  EXPECT_LE(Metrics().history_bytes, 200'000);
}

// C152
TEST_F(TransactionLimitsTest, EndsOnlyTheOldestWhenThatFreesTheVersions) {
  txn::StoreOptions options = World::Options();
  options.old_versions_bytes_max = 200'000;
  Open(options);
  ASSERT_TRUE(Put("info/f", 10'000, 'a').committed());
  auto oldest = world_.Begin();
  for (int n = 0; n < 15; ++n) ASSERT_TRUE(Put("info/f", 10'000, 'b').committed());
  Sweep();
  ASSERT_EQ(oldest->ReadFile(id_, "info/f")->content, std::string(10'000, 'a'));
  auto younger = world_.Begin();
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(Put("info/f", 10'000, 'c').committed());

  Sweep();

  EXPECT_EQ(Metrics().transactions_ended_too_old, 1);
  EXPECT_TRUE(IsTooOld(oldest->ReadFile(id_, "info/f").status()));
  EXPECT_EQ(younger->ReadFile(id_, "info/f")->content, std::string(10'000, 'b'));
  EXPECT_LE(Metrics().overlay_bytes, 200'000);
  EXPECT_TRUE(Put("info/f", 10'000, 'd').committed());
}

TEST_F(TransactionLimitsTest, LetsACallFinishOverItsSnapshotBeforeItIsTooOld) {
  txn::StoreOptions options = World::Options();
  options.old_versions_bytes_max = 50'000;
  Open(options);
  ASSERT_TRUE(Put("info/f", 10'000, 'a').committed());
  auto txn = world_.Begin();
  const auto read = txn->RunOnce("read", [&]() -> absl::StatusOr<std::string> {
    for (int n = 0; n < 20; ++n) {
      EXPECT_TRUE(Put("info/f", 10'000, 'b').committed());
      Sweep();
    }
    auto value = txn->ReadFile(id_, "info/f");
    return value.ok() ? absl::StatusOr<std::string>(value->content) : value.status();
  });

  EXPECT_EQ(*read, std::string(10'000, 'a'));
  EXPECT_TRUE(IsTooOld(txn->ReadFile(id_, "info/f").status()));
  Sweep();
  EXPECT_LE(Metrics().overlay_bytes, 50'000);
  EXPECT_EQ(Metrics().oldest_snapshot_lsn, Metrics().committed_lsn);
  EXPECT_EQ(Metrics().open_transactions, 0);
}

// What only waits for the disk is nobody's fault: no transaction is ended for it.
TEST_F(TransactionLimitsTest, EndsNobodyForWhatIsNotOnDiskYet) {
  txn::StoreOptions options = World::Options();
  options.old_versions_bytes_max = 50'000;
  Open(options);
  auto reader = world_.Begin();
  for (int n = 0; n < 4; ++n) ASSERT_TRUE(Put(absl::StrCat("info/f", n), 10'000, 'a').committed());

  Sweep();

  EXPECT_EQ(Metrics().transactions_ended_too_old, 0);
  EXPECT_THAT(reader->ReadFile(id_, "info/f0"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace repotxn::testing
