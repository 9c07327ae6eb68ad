#include "storage/check.h"
#include "tests/support/fault_file_system.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitOutcome;
using txn::CommitResult;
using txn::Transaction;

// A store with one repository, whose log or disk fails in one way; then it is opened again and asked what is there.
class StoreRecoveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(Set("main", 1).committed());
  }
  CommitResult Set(absl::string_view branch, int n) { return world_.Set(id_, Branch(branch), World::At(n)); }
  std::string Value(absl::string_view branch) { return World::Name(world_.Read(id_, Branch(branch))); }
  // Closes and opens the store over a wrapper that can fail.
  void OpenFaulty() {
    ASSERT_THAT(world_.store().Close(), IsOk());
    world_.Drop();
    fault_ = std::make_unique<FaultFileSystem>(&world_.fs());
    ASSERT_THAT(world_.OpenOn(fault_.get()), IsOk());
  }

  World world_;
  std::unique_ptr<FaultFileSystem> fault_;  // beyond the store's life
  RepositoryId id_;

  void TearDown() override { world_.Drop(); }
};

// A15, C019: a process that dies between write and sync leaves an entry in the page cache only. Once recovery has told
// that it is committed, a power failure must not take it back. [CORE-05]
TEST_F(StoreRecoveryTest, NeverTakesBackACommitThatRecoveryReported) {
  const TransactionId id = world_.store().NewTransactionId();
  std::unique_ptr<MemoryFileSystem> at_sync;
  world_.fs().SetMutationHook([&](int64_t, absl::string_view op, const storage::StorePath& path) {
    if (op == "sync" && absl::StartsWith(path.text(), "log/") && at_sync == nullptr) {
      at_sync = world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0});
    }
  });
  txn::RunOptions run;
  run.begin.transaction_id = id;
  ASSERT_TRUE(world_.store().Run(run, [&](Transaction& txn) {
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(2)});
  }).committed());
  world_.fs().SetMutationHook({});
  ASSERT_NE(at_sync, nullptr);
  world_.Drop();
  world_.owned_fs() = std::move(at_sync);

  ASSERT_THAT(world_.Open(), IsOk());
  ASSERT_TRUE(world_.store().OutcomeOf(id).committed());
  ASSERT_EQ(Value("main"), "c2");
  world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
  ASSERT_THAT(world_.Open(), IsOk());

  EXPECT_TRUE(world_.store().OutcomeOf(id).committed());
  EXPECT_EQ(Value("main"), "c2");
}

// A16, A17: a torn last entry is cut, and the same request committed again is committed once.
TEST_F(StoreRecoveryTest, CutsATornEntryAndTakesTheRepeatedRequest) {
  txn::RunOptions options;
  options.begin.request_id = "push-1";
  const auto body = [&](Transaction& txn) {
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = World::At(1), .value = World::At(2)});
  };
  std::unique_ptr<MemoryFileSystem> torn;
  world_.fs().SetMutationHook([&](int64_t, absl::string_view op, const storage::StorePath& path) {
    if (op != "sync" || !absl::StartsWith(path.text(), "log/") || torn != nullptr) return;
    // Of the unsynced record only a part survives: found among the ways of tearing it.
    for (uint64_t seed = 0; torn == nullptr && seed < 64; ++seed) {
      World probe;
      probe.owned_fs() = world_.fs().CrashClone({CrashSurvival::kRandom, seed, 0});
      auto again = world_.fs().CrashClone({CrashSurvival::kRandom, seed, 0});
      if (probe.Open().ok() && probe.store().recovery_report().torn_bytes_cut > 0) torn = std::move(again);
    }
  });
  ASSERT_TRUE(world_.store().Run(options, body).committed());
  world_.fs().SetMutationHook({});
  ASSERT_NE(torn, nullptr) << "no way of tearing the record was found";
  world_.Drop();
  world_.owned_fs() = std::move(torn);
  ASSERT_THAT(world_.Open(), IsOk());
  ASSERT_EQ(Value("main"), "c1");

  const CommitResult repeated = world_.store().Run(options, body);

  ASSERT_TRUE(repeated.committed()) << repeated.status;
  for (const CrashSurvival survival : {CrashSurvival::kEverything, CrashSurvival::kNothing}) {
    world_.CrashAndKeep({survival, 0, 0});
    ASSERT_THAT(world_.Open(), IsOk());
    EXPECT_EQ(Value("main"), "c2");
    EXPECT_EQ(world_.store().committed_lsn(), repeated.lsn);
    EXPECT_EQ(world_.store().Run(options, body).lsn, repeated.lsn);
  }
}

// A18, CORE-04, C143
TEST_F(StoreRecoveryTest, RefusesACommitWithoutLogSpaceAndTakesTheNext) {
  OpenFaulty();
  fault_->AddRule({.operation = FileOperation::kOpenForWrite,
                   .path_prefix = "log/",
                   .status = absl::ResourceExhaustedError("no space left on device"),
                   .is_sticky = true});
  const std::string content(30'000, 'x');
  const auto put = [&](int n) {
    return world_.store().Run({}, [&](Transaction& txn) {
      return txn.PutFile(id_, absl::StrCat("info/f", n), {content, 0644});
    });
  };
  int n = 0;
  CommitResult refused;
  for (; n < 100; ++n) {
    refused = put(n);
    if (!refused.committed()) break;
  }

  EXPECT_EQ(refused.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(refused.status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(world_.store().Health(), IsOk());
  EXPECT_THAT(world_.Begin()->ReadFile(id_, absl::StrCat("info/f", n)), StatusIs(absl::StatusCode::kNotFound));
  fault_->ClearRules();
  EXPECT_TRUE(put(n).committed());
  world_.Drop();
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_THAT(world_.Begin()->ReadFile(id_, absl::StrCat("info/f", n)), IsOk());
}

// A18, C017: after a failed sync nothing more is taken; opening decides one way, for ever.
// CORE-04, C141
TEST_F(StoreRecoveryTest, KeepsOneAnswerAfterAFailedSync) {
  for (const bool survives : {false, true}) {
    OpenFaulty();
    fault_->AddRule({.operation = FileOperation::kSync,
                     .path_prefix = "log/",
                     .status = absl::UnavailableError("sync failed"),
                     .is_sticky = true});
    const std::string before = Value("main");
    const int n = survives ? 7 : 6;

    const CommitResult unknown = Set("main", n);

    ASSERT_EQ(unknown.outcome, CommitOutcome::kUnknown);
    EXPECT_THAT(unknown.status, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(world_.store().Health(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(world_.store().OutcomeOf(unknown.transaction_id).outcome, CommitOutcome::kUnknown);
    EXPECT_EQ(Value("main"), before);
    const CommitResult later = Set("other", 3);
    EXPECT_EQ(later.outcome, CommitOutcome::kNotCommitted);
    EXPECT_THAT(later.status, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(world_.store().Checkpoint(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_FALSE(world_.store().Close().ok());

    auto left = world_.fs().CrashClone({survives ? CrashSurvival::kEverything : CrashSurvival::kNothing, 0, 0});
    world_.Drop();
    fault_.reset();
    world_.owned_fs() = std::move(left);
    ASSERT_THAT(world_.Open(), IsOk());
    const CommitResult decided = world_.store().OutcomeOf(unknown.transaction_id);
    EXPECT_EQ(decided.committed(), Value("main") == absl::StrCat("c", n));
    EXPECT_EQ(decided.committed(), survives);
    EXPECT_TRUE(world_.Read(id_, Branch("other")).is_absent());
    world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
    ASSERT_THAT(world_.Open(), IsOk());
    EXPECT_EQ(world_.store().OutcomeOf(unknown.transaction_id).outcome, decided.outcome);
  }
}

// RST-01, RST-02, RST-03, RST-05: a refused commit is in the way of nothing, neither now nor behind a clean or unclean stop.
TEST_F(StoreRecoveryTest, GoesOnBehindARefusedCommitAndBehindARestart) {
  int n = 1;
  const auto refuse_and_go_on = [&] {
    auto stale = world_.Begin();
    ASSERT_THAT(stale->UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(9)}), IsOk());
    ASSERT_TRUE(Set("main", ++n).committed());
    EXPECT_THAT(stale->Commit().status, StatusIs(absl::StatusCode::kAborted));
  };
  const auto expect_newest = [&] {
    EXPECT_EQ(Value("main"), absl::StrCat("c", n));
    ASSERT_TRUE(Set("main", ++n).committed());
    EXPECT_EQ(Value("main"), absl::StrCat("c", n));
  };

  refuse_and_go_on();
  expect_newest();
  refuse_and_go_on();
  ASSERT_THAT(world_.Reopen(), IsOk());
  expect_newest();
  refuse_and_go_on();
  world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_GT(world_.store().recovery_report().entries_redone, 0u);
  expect_newest();
}

// I3: directory work that fails is never answered with "not committed".
TEST_F(StoreRecoveryTest, AnswersUnknownWhenDirectoryWorkFailsAndDoesItAtTheNextOpening) {
  OpenFaulty();
  fault_->AddRule({.operation = FileOperation::kRename,
                   .path_prefix = "repositories/@id/",
                   .status = absl::UnavailableError("input/output error"),
                   .is_sticky = true});

  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) {
    return txn.CreateRepository(Path("made"), {}).status();
  });

  EXPECT_EQ(result.outcome, CommitOutcome::kUnknown);
  EXPECT_FALSE(world_.store().Health().ok());
  EXPECT_EQ(Set("main", 2).outcome, CommitOutcome::kNotCommitted);
  world_.Drop();
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_TRUE(world_.store().OutcomeOf(result.transaction_id).committed());
  EXPECT_THAT(world_.Begin()->OpenRepository(Path("made")), IsOk());
  EXPECT_EQ(Value("main"), "c1");
}

// B8, LOG-34
TEST_F(StoreRecoveryTest, HasTheCleanMarkerExactlyWhileClosedCleanly) {
  EXPECT_THAT(world_.fs().Stat(txn::layout::CleanMarker()), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(world_.store().Close(), IsOk());
  EXPECT_THAT(world_.fs().Stat(txn::layout::CleanMarker()), IsOk());
  world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
  EXPECT_THAT(world_.fs().Stat(txn::layout::CleanMarker()), IsOk());

  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_TRUE(world_.store().recovery_report().was_clean);
  EXPECT_EQ(world_.store().recovery_report().entries_redone, 0u);
  ASSERT_TRUE(Set("main", 2).committed());
  world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});

  EXPECT_THAT(world_.fs().Stat(txn::layout::CleanMarker()), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_FALSE(world_.store().recovery_report().was_clean);
  EXPECT_EQ(Value("main"), "c2");
}

// B8, LOG-33
TEST_F(StoreRecoveryTest, LeavesNoCleanMarkerWhenAStepOfClosingFails) {
  OpenFaulty();
  ASSERT_TRUE(Set("main", 2).committed());
  fault_->AddRule({.operation = FileOperation::kSyncAll, .status = absl::UnavailableError("sync failed")});

  EXPECT_THAT(world_.store().Close(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(world_.store().Close(), StatusIs(absl::StatusCode::kUnavailable));

  world_.Drop();
  EXPECT_THAT(world_.fs().Stat(txn::layout::CleanMarker()), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_EQ(Value("main"), "c2");
}

// B22: ids and LSNs of what was answered are not given out again, whatever a crash takes.
TEST_F(StoreRecoveryTest, ReusesNoLsnThatWasAnswered) {
  wal::Lsn newest;
  for (int n = 0; n < 5; ++n) {
    const CommitResult result = Set("main", n + 2);
    ASSERT_TRUE(result.committed());
    EXPECT_GT(result.lsn, newest);
    newest = result.lsn;
    if (n == 2) {
      ASSERT_THAT(world_.store().Checkpoint(), IsOk());
    }
    const uint64_t applied = world_.store().Metrics().applied_lsn;
    world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
    ASSERT_THAT(world_.Open(), IsOk());
    EXPECT_EQ(world_.store().Metrics().applied_lsn, applied);
    EXPECT_EQ(world_.store().committed_lsn(), newest);
  }
}

// C013: the new directory has its name after a power failure, its files have lost their content.
TEST_F(StoreRecoveryTest, PutsRightASkeletonThatACrashHasTorn) {
  RepositoryId made;
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(made, txn.CreateRepository(Path("made"), {}));
    return absl::OkStatus();
  }).committed());
  const storage::StorePath directory = txn::layout::RepositoryDirectory(made);
  const auto config = storage::ReadFile(world_.fs(), directory / "config");
  ASSERT_THAT(config, IsOk());

  int torn = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    World world;
    world.owned_fs() = world_.fs().CrashClone({CrashSurvival::kRandom, seed, 0});
    const bool is_there = world.fs().Stat(directory).ok();
    const auto left = storage::ReadFile(world.fs(), directory / "config");
    torn += is_there && (!left.ok() || *left != *config) ? 1 : 0;
    ASSERT_THAT(world.Open(), IsOk()) << seed;
    EXPECT_THAT(storage::ReadFile(world.fs(), directory / "config"), IsOkAndHolds(*config)) << seed;
    EXPECT_EQ(world.Refs(made), "HEAD ref: refs/heads/main\n") << seed;
    EXPECT_THAT(world.fs().List(directory / "objects/pack"), IsOk()) << seed;
  }
  EXPECT_GT(torn, 0);
}

TEST_F(StoreRecoveryTest, RefusesARootThatIsNoStore) {
  World other;
  ASSERT_THAT(storage::WriteFile(other.fs(), storage::StorePath::Literal("notes.txt"), "mine"), IsOk());
  EXPECT_THAT(other.Open(), StatusIs(absl::StatusCode::kFailedPrecondition));
  txn::StoreOptions options = World::Options();
  options.create_if_missing = false;
  World empty;
  EXPECT_THAT(empty.Open(options), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace repotxn::testing
