#include "locks/conflict_history.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/locks/allocation_counter.h"
#include "tests/locks/scenario.h"

namespace repotxn::locks {
namespace {

using wal::Lsn;

// Evidence, eviction, memory and the walk for packing; who conflicts with whom is in scenario_test.cc.
class ConflictHistoryTest : public ::testing::Test {
 protected:
  static Footprint Of(const std::string& script) {
    return Footprint(ScenarioTransaction(script).Locks());
  }
  static TransactionId Transaction(char name) {
    std::array<uint8_t, TransactionId::kBytes> bytes{};
    bytes[0] = static_cast<uint8_t>(name);
    return TransactionId(bytes);
  }
  Lsn Commit(const std::string& script) {
    newest_ = newest_.Next();
    history_.Record(Of(script), newest_, Transaction(static_cast<char>(newest_.value())));
    return newest_;
  }
  std::vector<std::string> RefsWrittenSince(Lsn lsn) {
    std::vector<std::string> refs;
    history_.ForEachRefWrittenSince(
        ScenarioId('M'), lsn, [&refs](const ConflictHistory::WrittenRef& ref) {
          refs.push_back(absl::StrCat(ref.lsn.value(), ref.is_prefix ? " under " : " ", ref.name));
        });
    return refs;
  }

  Lsn newest_ = Lsn(10);
  ConflictHistory history_{Lsn(10)};
};

TEST_F(ConflictHistoryTest, NamesKeyAndTransactionOfTheConflict) {
  const Lsn lsn = Commit("put info/a; put config");
  Commit("put other");
  const Footprint mine = Of("read config");

  const CheckResult result = history_.Check(mine, Lsn(10));

  ASSERT_EQ(result.verdict, Verdict::kConflict);
  EXPECT_EQ(result.conflicting_lsn, lsn);
  EXPECT_EQ(result.conflicting_transaction, Transaction(static_cast<char>(lsn.value())));
  EXPECT_EQ(DetailOf(result, mine).key, absl::StrCat("entry ", ScenarioId('M').ToHex(), "/config"));
}

TEST_F(ConflictHistoryTest, RefusesSnapshotsBelowTheFloorAndNoOthers) {
  Commit("put a");
  const Lsn floor = Commit("put b");
  history_.SetOldestSnapshot(floor);

  const CheckResult result = history_.Check(Of("put z"), floor.Previous());

  EXPECT_EQ(result.verdict, Verdict::kTooOld);
  EXPECT_EQ(result.conflicting_lsn, floor);
  EXPECT_TRUE(history_.Check(Of("put z"), floor).ok());
}

TEST_F(ConflictHistoryTest, FloorNeverGoesDown) {
  history_.SetOldestSnapshot(Lsn(20));
  history_.SetOldestSnapshot(Lsn(15));

  EXPECT_EQ(history_.floor(), Lsn(20));
}

// B4: shared keys do not enter. [HIST-04, FSH-02, CM-01]
TEST_F(ConflictHistoryTest, KeepsNothingOfReaders) {
  Commit("read-all; list-refs; read-key k");

  EXPECT_EQ(history_.bytes(), 0u);
  EXPECT_TRUE(history_.Check(Of("put a; update-ref r/a; put-key k"), Lsn(10)).ok());
}

// RDB-14, RDB-16, FSH-28, CM-05
TEST_F(ConflictHistoryTest, EvictionKeepsWhatWasWrittenAgainLater) {
  const Lsn first = Commit("update-ref r/a; put d/f; put-key k");
  Commit("update-ref r/a; put d/f; put-key k");
  history_.SetOldestSnapshot(first);
  EXPECT_FALSE(history_.Evict(1000));

  EXPECT_EQ(history_.record_count(), 1u);
  for (const char* mine : {"read-ref r/a", "list-refs r/", "read d/f", "list d", "iterate j l"}) {
    EXPECT_FALSE(history_.Check(Of(mine), first).ok()) << mine;
  }
}

// I3, with nested new directories and files in one entry and a ref that lives, dies and lives.
// HIST-03, RDB-14, CM-05, FSH-30
TEST_F(ConflictHistoryTest, EvictionFreesEverything) {
  Commit("mkdir a; mkdir a/b; mkdir a/b/c; put a/b/c/f; put a/b/g; rmdir x/y");
  Commit("create-ref refs/a/b; create-ref refs/c");
  Commit("delete-ref refs/a/b; put-key k; link P; request r; delete; add-pack p");
  Commit("create-ref refs/a/b; put-key k; remove-objects");
  history_.SetOldestSnapshot(newest_);
  while (history_.Evict(1)) {
  }

  EXPECT_EQ(history_.record_count(), 0u);
  EXPECT_EQ(history_.slot_count(), 0u);
  EXPECT_EQ(history_.bytes(), 0u);
}

// HIST-03
TEST_F(ConflictHistoryTest, RecordEvictsAsFastAsItGrows) {
  for (int i = 0; i < 10'000; ++i) {
    Commit(absl::StrCat("update-ref refs/heads/", i));
    history_.SetOldestSnapshot(newest_.Previous());
  }

  EXPECT_LE(history_.record_count(), 3u);
}

// B5: what a packing must leave out.
TEST_F(ConflictHistoryTest, WalksRefsWrittenSinceInOrder) {
  Commit("update-ref refs/old");
  const Lsn snapshot = newest_;
  Commit("create-ref refs/b; put config");
  Commit("@P update-ref refs/pool");
  Commit("delete-ref refs/a; set-head");

  EXPECT_EQ(RefsWrittenSince(snapshot),
            (std::vector<std::string>{"12 refs/b", "14 HEAD", "14 refs/a"}));
}

TEST_F(ConflictHistoryTest, WalkGivesPrefixOfAnEscalatedEntry) {
  std::vector<Lock> locks;
  for (size_t i = 0; i <= Footprint::kKeysMax; ++i) {
    locks.push_back(Lock::Exclusive(LockKey::Ref(ScenarioId('M'), absl::StrCat("refs/x/", i))));
  }
  history_.Record(Footprint(std::move(locks)), Lsn(11), TransactionId());

  EXPECT_EQ(RefsWrittenSince(Lsn(10)), (std::vector<std::string>{"11 under refs/x/"}));
  EXPECT_FALSE(history_.Check(Of("update-ref refs/x/77"), Lsn(10)).ok());
  EXPECT_TRUE(history_.Check(Of("update-ref refs/y/77"), Lsn(10)).ok());
  EXPECT_FALSE(history_.Check(Of("create-ref refs/x"), Lsn(10)).ok());
}

TEST_F(ConflictHistoryTest, TellsNewestWriteOfAKey) {
  const Lsn removal = Commit("remove-objects");
  const Lsn update = Commit("update-ref refs/a");

  EXPECT_EQ(history_.NewestWrite(LockKey::Objects(ScenarioId('M'))), removal);
  EXPECT_EQ(history_.NewestWrite(LockKey::Ref(ScenarioId('M'), "refs/a")), update);
  EXPECT_EQ(history_.NewestWrite(LockKey::Ref(ScenarioId('P'), "refs/a")), Lsn::Zero());
}

TEST_F(ConflictHistoryTest, CheckAllocatesNothing) {
  if (REPOTXN_SANITIZED) GTEST_SKIP() << "operator new is the sanitizer's";
  for (int i = 0; i < 2'000; ++i) {
    Commit(absl::StrCat("create-ref refs/h/", i, "; put d/", i, "; put-key k", i));
  }
  const Footprint mine =
      Of("create-ref refs/new/x; update-ref refs/z/y; list-refs refs/h/9x; list-refs refs/q/; "
         "put e/f/g; rmdir e; iterate x; read-key q; create n/m; link P; request r; add-pack p");
  const Footprint meeting = Of("update-ref refs/h/1999; list-refs refs/h/1");
  // The first pass of a probe allocates its counter.
  EXPECT_FALSE(history_.Check(meeting, Lsn(10)).ok());
  EXPECT_TRUE(history_.Check(mine, newest_.Previous()).ok());
  const int64_t before = allocation_count;

  const CheckResult result = history_.Check(mine, newest_.Previous());
  const CheckResult met = history_.Check(meeting, Lsn(10));

  EXPECT_EQ(allocation_count, before);
  EXPECT_TRUE(result.ok());
  EXPECT_FALSE(met.ok());
}

TEST_F(ConflictHistoryTest, RecordMakesNoAllocationThatGrowsWithHistory) {
  if (REPOTXN_SANITIZED) GTEST_SKIP() << "operator new is the sanitizer's";
  std::vector<Lock> locks(1);
  size_t largest = 0;
  for (uint64_t i = 0; i < 200'000; ++i) {
    locks[0] = Lock::Exclusive(LockKey::Ref(ScenarioId('M'), absl::StrCat("refs/heads/f", i)));
    const Footprint footprint(locks);
    allocation_bytes_max = 0;
    history_.Record(footprint, Lsn(11 + i), TransactionId());
    largest = std::max<size_t>(largest, allocation_bytes_max);
  }

  // A chunk is 64 KiB; the directory of the table, 8 bytes a page of 4 KiB, is below that here.
  EXPECT_LE(largest, RecordLog::kChunkBytesMax);
  EXPECT_LE(history_.bytes() / history_.record_count(), 128u);
}

}  // namespace
}  // namespace repotxn::locks
