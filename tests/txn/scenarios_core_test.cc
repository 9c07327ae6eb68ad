// Scenarios of a transaction's life, of refs under concurrency, of hooks as files and of what lies around in a
// repository. Identifiers: docs/scenarios.md.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "locks/verdict.h"
#include "refs/ref_error.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;
using txn::CommitOutcome;
using txn::CommitResult;
using txn::KeySpace;
using txn::Transaction;

class CoreScenarioTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }
  absl::Status Do(const std::function<absl::Status(Transaction&)>& body) {
    return world_.store().Run({}, body).status;
  }
  absl::Status Stage(Transaction& txn, absl::string_view branch, const refs::RefValue& value) {
    return txn.UpdateRef(id_, {.name = Branch(branch), .value = value});
  }
  CommitResult Set(absl::string_view branch, int n) { return world_.Set(id_, Branch(branch), World::At(n)); }
  // Branches b0 to b<count - 1> at commit 1, in packed-refs.
  void Pack(int count) {
    ASSERT_THAT(Do([&](Transaction& txn) {
      absl::Status status;
      for (int n = 0; n < count; ++n) status.Update(Stage(txn, absl::StrCat("b", n), World::At(1)));
      return status;
    }), IsOk());
    for (int round = 0; round < 3; ++round) ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
    ASSERT_THAT(PackedRefs(), HasSubstr("refs/heads/b0\n"));
  }
  std::string PackedRefs() {
    const auto text = storage::ReadFile(world_.fs(), directory() / "packed-refs");
    return text.ok() ? *text : "";
  }
  storage::StorePath directory() const { return txn::layout::RepositoryDirectory(id_); }
  // Branches main and other, and the hook, as a transaction sees them.
  std::string Seen(Transaction& txn) {
    std::string text;
    for (const char* branch : {"main", "other"}) {
      absl::StrAppend(&text, World::Name(*txn.ReadRef(id_, Branch(branch))), " ");
    }
    const auto hook = txn.ReadFile(id_, "hooks/update");
    return absl::StrCat(text, hook.ok() ? hook->content : "-");
  }
  absl::Status SetHook(const std::string& content) {
    return Do([&](Transaction& txn) { return txn.PutFile(id_, "hooks/update", {content, 0755}); });
  }

  World world_;
  RepositoryId id_;
};

// CORE-01: its time was over before it was admitted.
TEST_F(CoreScenarioTest, CommitsNothingWhenItsTimeIsOver) {
  txn::BeginOptions options;
  options.deadline = world_.clock().Now() - absl::Seconds(1);
  const CommitResult result = world_.store().Run({.begin = options}, [&](Transaction& txn) {
    return Stage(txn, "main", World::At(1));
  });
  EXPECT_EQ(result.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(result.status, StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(world_.Read(id_, Branch("main")).is_absent());
}

// CORE-02: the store was closed before the commit.
TEST_F(CoreScenarioTest, CommitsNothingOnceTheStoreIsClosed) {
  auto txn = world_.Begin();
  ASSERT_THAT(Stage(*txn, "main", World::At(1)), IsOk());
  ASSERT_THAT(world_.store().Close(), IsOk());
  const CommitResult result = txn->Commit();
  EXPECT_EQ(result.outcome, CommitOutcome::kNotCommitted);
  EXPECT_FALSE(result.status.ok());
  EXPECT_FALSE(world_.store().Begin({}).ok());
  txn.reset();
  world_.Drop();
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_TRUE(world_.Read(id_, Branch("main")).is_absent());
}

// CORE-06, CORE-25: each of six readers goes on seeing what was committed when it began, whatever is committed,
// refused and written to the disk since.
TEST_F(CoreScenarioTest, EachReaderSeesExactlyWhatWasCommittedBeforeIt) {
  std::vector<std::unique_ptr<Transaction>> readers;
  readers.push_back(world_.Begin());
  ASSERT_TRUE(Set("main", 1).committed());
  ASSERT_THAT(SetHook("one"), IsOk());
  readers.push_back(world_.Begin());
  const auto loser = world_.Begin();
  ASSERT_THAT(Stage(*loser, "main", World::At(9)), IsOk());
  ASSERT_THAT(loser->PutFile(id_, "hooks/update", {"nine", 0755}), IsOk());
  ASSERT_TRUE(Set("main", 2).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  readers.push_back(world_.Begin());
  ASSERT_THAT(loser->Commit().status, StatusIs(StatusCode::kAborted));
  readers.push_back(world_.Begin());
  ASSERT_THAT(SetHook("two"), IsOk());
  ASSERT_TRUE(Set("other", 3).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  readers.push_back(world_.Begin());
  ASSERT_THAT(Do([&](Transaction& txn) { return txn.RemoveFile(id_, "hooks/update"); }), IsOk());
  ASSERT_TRUE(world_.Set(id_, Branch("main"), refs::RefValue::Absent()).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  readers.push_back(world_.Begin());

  const std::vector<std::string> expected = {"absent absent -", "c1 absent one", "c2 absent one",
                                             "c2 absent one",   "c2 c3 two",     "absent c3 -"};
  ASSERT_EQ(readers.size(), expected.size());
  for (size_t n = 0; n < readers.size(); ++n) {
    EXPECT_EQ(Seen(*readers[n]), expected[n]) << n;
  }
}

// CORE-20 to CORE-23, C141: what has ended stays as it ended.
TEST_F(CoreScenarioTest, EndsOnceAndStaysSo) {
  for (const bool commit_first : {true, false}) {
    for (const bool commit_again : {true, false}) {
      const std::string branch = absl::StrCat("b", commit_first, commit_again);
      const auto txn = world_.Begin();
      ASSERT_THAT(Stage(*txn, branch, World::At(1)), IsOk());
      if (commit_first) {
        ASSERT_TRUE(txn->Commit().committed());
      } else {
        txn->Abort();
      }
      if (commit_again) {
        EXPECT_THAT(txn->Commit().status, StatusIs(StatusCode::kFailedPrecondition)) << branch;
      } else {
        txn->Abort();
      }
      EXPECT_THAT(Stage(*txn, branch, World::At(2)), StatusIs(StatusCode::kFailedPrecondition)) << branch;
      EXPECT_EQ(world_.Read(id_, Branch(branch)).is_absent(), !commit_first) << branch;
      EXPECT_EQ(world_.store().OutcomeOf(txn->id()).committed(), commit_first) << branch;
    }
  }
}

// CORE-24, HIST-04: who only reads leaves nothing in the log and nothing in the history.
TEST_F(CoreScenarioTest, ReadersLeaveNothing) {
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  const auto holder = world_.Begin();
  const txn::StoreMetrics before = world_.store().Metrics();
  for (const txn::Access access : {txn::Access::kReadOnly, txn::Access::kReadWrite}) {
    txn::BeginOptions options;
    options.access = access;
    const auto reader = *world_.store().Begin(options);
    EXPECT_THAT(reader->ListRefs(id_, ""), IsOk());
    EXPECT_THAT(reader->ReadWholeRepository(id_), IsOk());
    const CommitResult result = reader->Commit();
    EXPECT_TRUE(result.committed());
    EXPECT_EQ(result.lsn, wal::Lsn::Zero());
  }
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(world_.store().Metrics().committed_lsn, before.committed_lsn);
  EXPECT_EQ(world_.store().Metrics().history_bytes, before.history_bytes);
}

// HIST-01 to HIST-03: the history is kept for the oldest of those that may still ask, and goes with it.
TEST_F(CoreScenarioTest, HistoryLastsAsLongAsItsOldestReader) {
  const auto history = [&] {
    EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
    return world_.store().Metrics().history_bytes;
  };
  const int64_t empty = history();
  auto oldest = world_.Begin();
  ASSERT_THAT(oldest->ReadRef(id_, Branch("main")), IsOk());
  ASSERT_THAT(Stage(*oldest, "mine", World::At(1)), IsOk());
  for (int n = 0; n < 50; ++n) ASSERT_TRUE(Set(absl::StrCat("x", n), 1).committed());
  auto younger = world_.Begin();
  const int64_t kept = history();
  EXPECT_GT(kept, empty);
  younger.reset();
  EXPECT_EQ(history(), kept);
  EXPECT_TRUE(oldest->Commit().committed());
  oldest.reset();
  ASSERT_TRUE(Set("last", 1).committed());
  EXPECT_LT(history(), kept);
}

// RDB-01, FSH-03, CM-02: what was dropped has never been there, for anybody's check.
TEST_F(CoreScenarioTest, AnAbortedTransactionConflictsWithNobody) {
  const auto mine = world_.Begin();
  ASSERT_THAT(Stage(*mine, "main", World::At(1)), IsOk());
  ASSERT_THAT(mine->PutFile(id_, "info/x", {"mine", 0644}), IsOk());
  {
    const auto dropped = world_.Begin();
    ASSERT_THAT(Stage(*dropped, "main", World::At(2)), IsOk());
    ASSERT_THAT(dropped->PutFile(id_, "info/x", {"dropped", 0644}), IsOk());
    ASSERT_THAT(dropped->MakeDirectory(id_, "d"), IsOk());
  }
  EXPECT_TRUE(mine->Commit().committed());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "info/x")->content, "mine");
}

// FSH-12 to FSH-26: what cannot be in a tree is refused while it is staged, and nothing of it is staged.
TEST_F(CoreScenarioTest, RefusesImpossibleTreesAtStaging) {
  ASSERT_THAT(Do([&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "d/e/file", {"x", 0644});
    status.Update(txn.MakeDirectory(id_, "empty"));
    status.Update(txn.PutFile(id_, "gone/file", {"x", 0644}));
    return status;
  }), IsOk());
  ASSERT_THAT(Do([&](Transaction& txn) {
    absl::Status status = txn.RemoveFile(id_, "gone/file");
    status.Update(txn.RemoveDirectory(id_, "gone"));
    return status;
  }), IsOk());
  struct Attempt {
    const char* name;
    std::function<absl::Status(Transaction&)> act;
    StatusCode code;
  };
  const std::vector<Attempt> attempts = {
      {"directory on a file", [&](Transaction& t) { return t.MakeDirectory(id_, "d/e/file"); },
       StatusCode::kFailedPrecondition},
      {"file below a file", [&](Transaction& t) { return t.PutFile(id_, "d/e/file/x", {"x", 0644}); },
       StatusCode::kFailedPrecondition},
      {"file on a directory", [&](Transaction& t) { return t.PutFile(id_, "d", {"x", 0644}); },
       StatusCode::kFailedPrecondition},
      {"file on an empty directory", [&](Transaction& t) { return t.PutFile(id_, "empty", {"x", 0644}); },
       StatusCode::kFailedPrecondition},
      {"removal of a directory with a file", [&](Transaction& t) { return t.RemoveDirectory(id_, "d/e"); },
       StatusCode::kFailedPrecondition},
      {"removal of a directory with a directory", [&](Transaction& t) { return t.RemoveDirectory(id_, "d"); },
       StatusCode::kFailedPrecondition},
      {"removal of a file as a directory", [&](Transaction& t) { return t.RemoveDirectory(id_, "d/e/file"); },
       StatusCode::kFailedPrecondition},
      {"removal of a directory as a file", [&](Transaction& t) { return t.RemoveFile(id_, "empty"); },
       StatusCode::kNotFound},
      {"removal of a removed file", [&](Transaction& t) { return t.RemoveFile(id_, "gone/file"); },
       StatusCode::kNotFound},
      {"removal of a removed directory", [&](Transaction& t) { return t.RemoveDirectory(id_, "gone"); },
       StatusCode::kNotFound},
      {"removal below a file", [&](Transaction& t) { return t.RemoveFile(id_, "d/e/file/x"); },
       StatusCode::kNotFound},
      {"removal below a removed directory", [&](Transaction& t) { return t.RemoveFile(id_, "gone/x"); },
       StatusCode::kNotFound},
  };
  const wal::Lsn before = world_.store().committed_lsn();
  for (const Attempt& attempt : attempts) {
    const auto txn = world_.Begin();
    EXPECT_THAT(attempt.act(*txn), StatusIs(attempt.code)) << attempt.name;
    EXPECT_TRUE(txn->Commit().committed()) << attempt.name;
  }
  EXPECT_EQ(world_.store().committed_lsn(), before);
  // FSH-06: on what was removed anything may be made again.
  EXPECT_THAT(Do([&](Transaction& txn) {
    absl::Status status = txn.PutFile(id_, "gone", {"a file now", 0644});
    status.Update(txn.RemoveDirectory(id_, "empty"));
    status.Update(txn.PutFile(id_, "empty/deep/x", {"x", 0644}));
    return status;
  }), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "gone")->content, "a file now");
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "empty/deep/x")->content, "x");
}

// HOOK-01, HOOK-02, C086: hooks are files; set, replaced and removed, redone after a crash with their modes.
TEST_F(CoreScenarioTest, SetsAndRemovesHooksThroughCrashes) {
  for (const bool reaches_the_disk : {false, true}) {
    const auto crash = [&] {
      if (reaches_the_disk) {
        ASSERT_THAT(world_.store().Materialize(), IsOk());
      }
      world_.CrashAndKeep({CrashSurvival::kRandom, 7, 0});
      ASSERT_THAT(world_.Open(), IsOk());
      ASSERT_THAT(world_.store().Materialize(), IsOk());
    };
    ASSERT_THAT(SetHook("#!/bin/sh\nexit 0\n"), IsOk());
    ASSERT_THAT(Do([&](Transaction& txn) { return txn.PutFile(id_, "hooks/lib/common", {"data\n", 0644}); }), IsOk());
    crash();
    EXPECT_EQ(world_.fs().Stat(directory() / "hooks/update")->mode, 0755u);
    EXPECT_EQ(world_.fs().Stat(directory() / "hooks/lib/common")->mode, 0644u);
    ASSERT_THAT(SetHook("#!/bin/sh\nexit 1\n"), IsOk());
    crash();
    EXPECT_THAT(storage::ReadFile(world_.fs(), directory() / "hooks/update"), IsOkAndHolds("#!/bin/sh\nexit 1\n"));
    ASSERT_THAT(Do([&](Transaction& txn) {
      absl::Status status = txn.RemoveFile(id_, "hooks/lib/common");
      status.Update(txn.RemoveDirectory(id_, "hooks/lib"));
      status.Update(txn.RemoveFile(id_, "hooks/update"));
      status.Update(txn.RemoveDirectory(id_, "hooks"));
      return status;
    }), IsOk());
    crash();
    EXPECT_FALSE(*storage::Exists(world_.fs(), directory() / "hooks"));
  }
}

// C001: whoever vanishes before its commit blocks nobody and leaves no lock file.
TEST_F(CoreScenarioTest, AVanishedWriterBlocksNobody) {
  auto vanished = world_.Begin();
  ASSERT_THAT(Stage(*vanished, "main", World::At(1)), IsOk());
  ASSERT_THAT(vanished->PutFile(id_, "config", {"[core]\n", 0644}), IsOk());
  EXPECT_TRUE(Set("main", 2).committed());
  EXPECT_THAT(world_.fs().DumpTree(), Not(HasSubstr(".lock")));
  vanished.reset();
  world_.CrashAndKeep({CrashSurvival::kEverything, 0, 0});
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_TRUE(Set("main", 3).committed());
  EXPECT_THAT(world_.fs().DumpTree(), Not(HasSubstr(".lock")));
}

// C002, C004, C007, C053: lock files and pid files that somebody left in a repository stop nothing.
TEST_F(CoreScenarioTest, ForeignLockFilesStopNothing) {
  Pack(20);
  for (const char* name : {"packed-refs.lock", "HEAD.lock", "config.lock", "refs/heads/x.lock", "refs/heads/b1.lock",
                           "objects/pack/multi-pack-index.lock", "objects/info/commit-graph.lock", "gc.pid",
                           "shallow.lock"}) {
    const storage::StorePath path = directory() / name;
    ASSERT_THAT(storage::MakeDirectories(world_.fs(), path.Parent()), IsOk());
    ASSERT_THAT(storage::WriteFile(world_.fs(), path, "4711 elsewhere"), IsOk());
  }
  EXPECT_TRUE(Set("x", 2).committed());
  EXPECT_TRUE(world_.Set(id_, Branch("b0"), refs::RefValue::Absent()).committed());
  EXPECT_TRUE(Set("b1", 3).committed());
  EXPECT_TRUE(world_.Set(id_, refs::RefName::Head(), refs::RefValue::Symbolic(Branch("x"))).committed());
  EXPECT_THAT(Do([&](Transaction& txn) { return txn.PutFile(id_, "shallow", {"", 0444}); }), IsOk());
  for (int n = 0; n < 30; ++n) EXPECT_TRUE(Set(absl::StrCat("more", n), 1).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(PackedRefs(), Not(HasSubstr("refs/heads/b0\n")));
  EXPECT_THAT(PackedRefs(), HasSubstr("refs/heads/more1\n"));
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("x"))), "c2");
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("b1"))), "c3");
  EXPECT_TRUE(world_.Read(id_, Branch("b0")).is_absent());
  EXPECT_THAT(storage::ReadFile(world_.fs(), directory() / "HEAD"), IsOkAndHolds("ref: refs/heads/x\n"));
}

// C023, REF-21: the expected value is judged by what is committed, though a packing came between.
TEST_F(CoreScenarioTest, LosesToAnUpdateThatWasPackedMeanwhile) {
  Pack(20);
  const auto mine = world_.Begin();
  ASSERT_THAT(mine->UpdateRef(id_, {.name = Branch("b0"), .expected = World::At(1), .value = World::At(3)}), IsOk());
  const CommitResult theirs = Set("b0", 2);
  for (int n = 0; n < 30; ++n) ASSERT_TRUE(Set(absl::StrCat("more", n), 1).committed());
  const int64_t packings = world_.store().Metrics().ref_packings;
  for (int round = 0; round < 3; ++round) ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_GT(world_.store().Metrics().ref_packings, packings);

  const CommitResult result = mine->Commit();

  ASSERT_THAT(result.status, StatusIs(StatusCode::kAborted));
  const auto detail = locks::ConflictDetailOf(result.status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->conflicting_lsn, theirs.lsn);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("b0"))), "c2");
}

// C024, C154: of 64 from one snapshot one wins; the others are told a conflict, never anything vaguer.
TEST_F(CoreScenarioTest, OfSixtyFourUpdatesOneWinsAndTheOthersAreToldTheConflict) {
  ASSERT_TRUE(Set("main", 0).committed());
  std::vector<std::unique_ptr<Transaction>> writers;
  for (int n = 0; n < 64; ++n) {
    writers.push_back(world_.Begin());
    ASSERT_THAT(writers.back()->UpdateRef(
                    id_, {.name = Branch("main"), .expected = World::At(0), .value = World::At(n % 9 + 1)}), IsOk());
  }
  const CommitResult won = writers[40]->Commit();
  EXPECT_TRUE(won.committed());
  for (size_t n = 0; n < writers.size(); ++n) {
    if (n == 40) continue;
    const CommitResult lost = writers[n]->Commit();
    EXPECT_EQ(lost.outcome, CommitOutcome::kNotCommitted);
    ASSERT_THAT(lost.status, StatusIs(StatusCode::kAborted));
    EXPECT_EQ(locks::ConflictDetailOf(lost.status)->conflicting_lsn, won.lsn);
  }
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("main"))), "c5");
}

// C027: a ref that is only packed is as good as any other.
TEST_F(CoreScenarioTest, UpdatesPackedRefsFromTheirRightValues) {
  Pack(200);
  for (int n = 0; n < 200; ++n) {
    ASSERT_THAT(Do([&](Transaction& txn) {
      return txn.UpdateRef(id_, {.name = Branch(absl::StrCat("b", n)), .expected = World::At(1), .value = World::At(2)});
    }), IsOk());
  }
  EXPECT_EQ(world_.store().Metrics().conflicts, 0);
}

// C028, C020: a deleted ref is gone from every place that held it, also after a crash.
TEST_F(CoreScenarioTest, DeletesARefFromEveryPlaceThatHoldsIt) {
  const auto materialize = [&] { ASSERT_THAT(world_.store().Materialize(), IsOk()); };
  Pack(40);                               // b0: packed only
  ASSERT_TRUE(Set("b1", 2).committed());  // b1: both, different
  ASSERT_TRUE(Set("b2", 2).committed());
  materialize();
  ASSERT_TRUE(Set("b2", 1).committed());     // b2: both, equal
  ASSERT_TRUE(Set("loose", 1).committed());  // loose only
  materialize();
  ASSERT_TRUE(*storage::Exists(world_.fs(), directory() / "refs/heads/b2"));
  for (const char* branch : {"b0", "b1", "b2", "loose"}) {
    ASSERT_TRUE(world_.Set(id_, Branch(branch), refs::RefValue::Absent()).committed()) << branch;
  }
  for (const bool is_crash : {false, true}) {
    if (is_crash) {
      world_.CrashAndKeep({CrashSurvival::kRandom, 3, 0});
      ASSERT_THAT(world_.Open(), IsOk());
    }
    materialize();
    for (const char* branch : {"b0", "b1", "b2", "loose"}) {
      EXPECT_TRUE(world_.Read(id_, Branch(branch)).is_absent()) << branch;
      EXPECT_FALSE(*storage::Exists(world_.fs(), directory() / absl::StrCat("refs/heads/", branch))) << branch;
      EXPECT_THAT(PackedRefs(), Not(HasSubstr(absl::StrCat("refs/heads/", branch, "\n")))) << branch;
    }
    EXPECT_THAT(PackedRefs(), HasSubstr("refs/heads/b3\n"));
  }
}

// C030: the directories that Git wants stay, however empty.
TEST_F(CoreScenarioTest, KeepsTheDirectoriesThatMakeARepository) {
  Pack(20);
  for (int n = 0; n < 20; ++n) {
    ASSERT_TRUE(world_.Set(id_, Branch(absl::StrCat("b", n)), refs::RefValue::Absent()).committed());
    ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
    for (const char* name : {"refs/heads", "refs/tags", "objects/pack", "objects/info"}) {
      ASSERT_TRUE(*storage::Exists(world_.fs(), directory() / name)) << name;
    }
  }
}

// C034: two first branches; of one name one wins, of two names both.
TEST_F(CoreScenarioTest, OfTwoFirstPushesOfOneNameOneWins) {
  const auto one = world_.Begin(), two = world_.Begin(), other = world_.Begin();
  ASSERT_THAT(Stage(*one, "main", World::At(1)), IsOk());
  ASSERT_THAT(Stage(*two, "main", World::At(2)), IsOk());
  ASSERT_THAT(Stage(*other, "dev", World::At(3)), IsOk());
  EXPECT_TRUE(one->Commit().committed());
  EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_TRUE(other->Commit().committed());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/dev c3\nrefs/heads/main c1\n");
}

// C083, C085, RDB-04: HEAD with a deletion in one entry, against another change of HEAD; a missing target is fine.
TEST_F(CoreScenarioTest, OfTwoChangesOfHeadOneWins) {
  const auto head = [&](Transaction& txn, absl::string_view branch) {
    return txn.UpdateRef(id_, {.name = refs::RefName::Head(), .value = refs::RefValue::Symbolic(Branch(branch))});
  };
  ASSERT_TRUE(Set("main", 1).committed());
  const auto one = world_.Begin(), two = world_.Begin();
  ASSERT_THAT(head(*one, "dev"), IsOk());
  ASSERT_THAT(Stage(*one, "main", refs::RefValue::Absent()), IsOk());
  ASSERT_THAT(head(*two, "rel"), IsOk());
  EXPECT_TRUE(one->Commit().committed());
  const absl::Status lost = two->Commit().status;
  ASSERT_THAT(lost, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(locks::ConflictDetailOf(lost)->key, HasSubstr("HEAD"));
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/dev\n");
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(storage::ReadFile(world_.fs(), directory() / "HEAD"), IsOkAndHolds("ref: refs/heads/dev\n"));
}

// C084: HEAD does not follow what is pushed.
TEST_F(CoreScenarioTest, LeavesHeadWhereItIsWhateverIsPushed) {
  ASSERT_THAT(Do([&](Transaction& txn) {
    absl::Status status = txn.UpdateRef(id_, {.name = Ref("refs/changes/01/1/1"), .value = World::At(1)});
    for (int n = 0; n < 150; ++n) status.Update(Stage(txn, absl::StrCat("a", n), World::At(1)));
    status.Update(Stage(txn, "main", World::At(2)));
    return status;
  }), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Read(id_, refs::RefName::Head()).ToString(), "ref: refs/heads/main");
}

// C096: each expectation that does not hold is told by name, and the caller decides; nothing of it is there.
TEST_F(CoreScenarioTest, NamesEveryRefWhoseExpectedValueDoesNotHold) {
  for (int n = 0; n < 10; ++n) ASSERT_TRUE(Set(absl::StrCat("b", n), 1).committed());
  const std::string before = world_.Refs(id_);
  const auto txn = world_.Begin();
  std::vector<std::string> refused;
  for (int n = 0; n < 10; ++n) {
    const absl::Status status = txn->UpdateRef(
        id_, {.name = Branch(absl::StrCat("b", n)), .expected = World::At(n % 4 == 3 ? 5 : 1), .value = World::At(2)});
    if (!status.ok()) refused.push_back(refs::RefMismatchDetail(status)->name);
  }
  EXPECT_THAT(refused, ::testing::ElementsAre("refs/heads/b3", "refs/heads/b7"));
  txn->Abort();
  EXPECT_EQ(world_.Refs(id_), before);
}

// C098: `shallow` is a file like any other, and so two changes of it meet.
TEST_F(CoreScenarioTest, OfTwoChangesOfTheShallowFileOneWins) {
  const auto one = world_.Begin(), two = world_.Begin();
  ASSERT_THAT(one->PutFile(id_, "shallow", {MakeCommit(1).oid.ToHex() + "\n", 0444}), IsOk());
  ASSERT_THAT(two->PutFile(id_, "shallow", {MakeCommit(2).oid.ToHex() + "\n", 0444}), IsOk());
  EXPECT_TRUE(one->Commit().committed());
  EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "shallow")->content, MakeCommit(1).oid.ToHex() + "\n");
}

// C153, B11: every replay has a snapshot of its own, newer than what the attempt before lost against.
TEST_F(CoreScenarioTest, ReplaysEachTimeFromAFreshSnapshot) {
  ASSERT_TRUE(Set("main", 0).committed());
  std::vector<wal::Lsn> snapshots;
  const CommitResult result = world_.store().Run({.begin = {}, .retries_max = 3}, [&](Transaction& txn) -> absl::Status {
    snapshots.push_back(txn.snapshot_lsn());
    REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue value, txn.ReadRef(id_, Branch("main")));
    const int seen = World::Name(value)[1] - '0';
    if (snapshots.size() < 3) {
      EXPECT_TRUE(Set("main", seen + 1).committed());
    }
    return Stage(txn, "main", World::At(seen + 5));
  });
  EXPECT_TRUE(result.committed());
  ASSERT_EQ(snapshots.size(), 3u);
  EXPECT_LT(snapshots[0], snapshots[1]);
  EXPECT_LT(snapshots[1], snapshots[2]);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("main"))), "c7");
}

// A11 (a), C150: each reads in one partition and writes in the other; by refs, files and keys alike.
TEST_F(CoreScenarioTest, RefusesWriteSkewAcrossTwoPartitions) {
  const RepositoryId other = world_.Create("other");
  ASSERT_NE(world_.Begin()->Describe(id_)->partition, world_.Begin()->Describe(other)->partition);
  struct Kind {
    const char* name;
    std::function<absl::Status(Transaction&, const RepositoryId&)> read;
    std::function<absl::Status(Transaction&, const RepositoryId&)> write;
  };
  const std::vector<Kind> kinds = {
      {"ref", [](Transaction& t, const RepositoryId& id) { return t.ReadRef(id, Branch("main")).status(); },
       [](Transaction& t, const RepositoryId& id) {
         return t.UpdateRef(id, {.name = Branch("main"), .value = World::At(1)});
       }},
      {"refs", [](Transaction& t, const RepositoryId& id) { return t.ListRefs(id, "refs/tags/").status(); },
       [](Transaction& t, const RepositoryId& id) {
         return t.UpdateRef(id, {.name = Ref("refs/tags/v"), .value = World::At(1)});
       }},
      {"file", [](Transaction& t, const RepositoryId& id) {
         const absl::Status status = t.ReadFile(id, "flag").status();
         return absl::IsNotFound(status) ? absl::OkStatus() : status;
       }, [](Transaction& t, const RepositoryId& id) { return t.PutFile(id, "flag", {"x", 0644}); }},
      {"key", [](Transaction& t, const RepositoryId& id) { return t.GetKey(KeySpace::OfRepository(id), "k").status(); },
       [](Transaction& t, const RepositoryId& id) { return t.PutKey(KeySpace::OfRepository(id), "k", "v"); }},
  };
  for (const Kind& kind : kinds) {
    const auto one = world_.Begin(), two = world_.Begin();
    ASSERT_THAT(kind.read(*one, id_), IsOk()) << kind.name;
    ASSERT_THAT(kind.write(*one, other), IsOk()) << kind.name;
    ASSERT_THAT(kind.read(*two, other), IsOk()) << kind.name;
    ASSERT_THAT(kind.write(*two, id_), IsOk()) << kind.name;
    EXPECT_TRUE(one->Commit().committed()) << kind.name;
    EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted)) << kind.name;
  }
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\n");
}

}  // namespace
}  // namespace repotxn::testing
