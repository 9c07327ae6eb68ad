#include "wal/recovery.h"

#include <string>
#include <vector>

#include "storage/log.h"
#include "tests/support/fault_file_system.h"
#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

const StorePath& LogDirectory() {
  static const StorePath* const path = new StorePath(StorePath::Literal("log"));
  return *path;
}

// Newest segment in use and where its groups end.
struct Current {
  StorePath path;
  SegmentHeader header;
  SegmentScan scan;
};
Current CurrentSegment(storage::FileSystem* fs) {
  Current current;
  for (const ScannedFile& file : ScannedFiles(fs)) {
    if (!file.header) continue;
    const std::string name = SegmentFileName(file.number);
    current = Current{LogDirectory() / View(name), *file.header, file.scan};
  }
  return current;
}

// Goal: an ordinary power cut never keeps a store shut, and damage to what was durable never passes
// for one. Each test writes a log through the replicator, hurts it, and recovers.
class RecoveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage::SetLogSink([](storage::LogLevel, absl::string_view) {});
  }
  void TearDown() override { storage::SetLogSink(nullptr); }

  // One group of each size; entry n is transaction n.
  void Write(const std::vector<size_t>& groups) {
    const auto log = OpenLog(&fs_);
    ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
    LogPosition last{tail.last, tail.chain};
    for (const size_t entries : groups) {
      std::vector<SealedEntry> run = SealRun(last, entries, tail.epoch);
      if (!run.empty()) last = PositionOf(run.back());
      ASSERT_EQ(AppendGroup(log.get(), std::move(run)), AppendOutcome::kCommitted);
    }
  }

  absl::StatusOr<std::vector<uint64_t>> Recover(storage::FileSystem* fs,
                                                const LogPosition& base = {}) {
    const auto log = OpenLog(fs, base);
    REPOTXN_RETURN_IF_ERROR(log->Acquire().status());
    torn_bytes_ = log->torn_bytes();
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, ReadAll(log.get(), base.lsn.Next()));
    return NumbersOf(entries, base.lsn.Next());
  }

  MemoryFileSystem fs_;
  int64_t torn_bytes_ = 0;
};

// LOG-01
TEST_F(RecoveryTest, EmptyLogIsEmpty) {
  ASSERT_OK_AND_ASSIGN(const auto numbers, Recover(&fs_));

  EXPECT_TRUE(numbers.empty());
  EXPECT_EQ(torn_bytes_, 0);
}

// Field case C106, hard case A16: 15 of 20 are provably durable.
TEST_F(RecoveryTest, CutsBadRecordBehindTheDurableMarkAndRefusesOneBelow) {
  std::vector<size_t> groups(15, 1);
  groups.push_back(5);
  Write(groups);
  const Current current = CurrentSegment(&fs_);
  ASSERT_EQ(current.scan.entries.size(), 20u);

  for (uint64_t n = 1; n <= 20; ++n) {
    const auto hurt = fs_.CrashClone({CrashSurvival::kEverything});
    const int64_t body = current.scan.entries[n - 1].offset + kRecordFrameBytes + kEntryHeaderBytes;
    ASSERT_OK(hurt->FlipBit(current.path, body + 3, 2));
    const auto recovered = Recover(hurt.get());
    if (n <= 15) {
      EXPECT_THAT(recovered, StatusIs(absl::StatusCode::kDataLoss)) << n;
      EXPECT_NE(recovered.status().message().find("lsn " + std::to_string(n)),
                absl::string_view::npos);
    } else {
      ASSERT_OK(recovered) << n;
      EXPECT_EQ(*recovered, Range(1, n - 1));
      EXPECT_GT(torn_bytes_, 0);
    }
  }
}

// Field case C107.
TEST_F(RecoveryTest, OpensWhereverTheLastRecordIsCut) {
  Write({2, 1});
  const Current current = CurrentSegment(&fs_);
  const ScannedEntry last = current.scan.entries.back();

  for (int64_t size = last.offset - kGroupRecordBytes; size < current.scan.end_offset; ++size) {
    const auto cut = fs_.CrashClone({CrashSurvival::kEverything});
    ASSERT_OK_AND_ASSIGN(const auto file,
                         cut->OpenForWrite(current.path, storage::OpenMode::kExisting));
    ASSERT_OK(file->Truncate(size));
    const auto recovered = Recover(cut.get());
    ASSERT_OK(recovered) << size;
    // Padding is not part of an entry.
    const bool whole = size >= last.offset + kRecordFrameBytes + last.entry_bytes;
    EXPECT_EQ(*recovered, Range(1, whole ? 3 : 2)) << size;
  }
}

// Every bit pattern of damage to a small log: never a wrong entry, never the loss of a provably
// durable one.
TEST_F(RecoveryTest, NoDamagedByteLosesDurableEntriesOrAddsWrongOnes) {
  Write({2, 1, 2});
  const Current current = CurrentSegment(&fs_);
  const auto pristine = fs_.CrashClone({CrashSurvival::kEverything});

  for (int64_t offset = 0; offset < current.scan.end_offset; ++offset) {
    for (const int bit : {0, 5}) {
      ASSERT_OK(pristine->FlipBit(current.path, offset, bit));
      ASSERT_OK_AND_ASSIGN(const auto files, ScanLog(pristine.get(), LogDirectory()));
      const auto plan = PlanRecovery(LogPosition{}, files);
      ASSERT_OK(pristine->FlipBit(current.path, offset, bit));
      if (!plan.ok()) {
        EXPECT_THAT(plan, StatusIs(absl::StatusCode::kDataLoss)) << offset;
        continue;
      }
      // Entries 1..3 are proved by the third group.
      EXPECT_GE(plan->end.lsn, Lsn(3)) << offset;
      ASSERT_EQ(plan->tail.size(), 1u);
      const auto& entries = plan->tail[0].entries;
      for (size_t i = 0; i < entries.size(); ++i) {
        EXPECT_EQ(entries[i], current.scan.entries[i]) << offset;
      }
    }
  }
}

TEST_F(RecoveryTest, EmptyGroupMakesDamageToTheLastEntryVisible) {
  Write({1, 1, 0});
  const Current current = CurrentSegment(&fs_);

  ASSERT_OK(fs_.FlipBit(current.path, current.scan.entries[1].offset + 40, 0));

  EXPECT_THAT(Recover(&fs_), StatusIs(absl::StatusCode::kDataLoss));
}

// Damage to a group without entries hides the groups behind it, which were durable.
TEST_F(RecoveryTest, DamagedEmptyGroupBeforeOthersIsDamage) {
  Write({1, 0, 1});
  const Current current = CurrentSegment(&fs_);
  const ScannedEntry last = current.scan.entries.back();

  ASSERT_OK(fs_.FlipBit(current.path, last.offset - 2 * kGroupRecordBytes + 40, 0));

  EXPECT_THAT(Recover(&fs_), StatusIs(absl::StatusCode::kDataLoss));
}

// LOG-02
TEST_F(RecoveryTest, EntriesMadeDurableByRecoveryAreProvablyDurable) {
  Write({3});
  ASSERT_OK(Recover(&fs_));
  const Current current = CurrentSegment(&fs_);
  ASSERT_EQ(current.header.durable_lsn, Lsn(3));

  ASSERT_OK(fs_.FlipBit(current.path, current.scan.entries[2].offset + 170, 0));

  EXPECT_THAT(Recover(&fs_), StatusIs(absl::StatusCode::kDataLoss));
}

// LOG-03
TEST_F(RecoveryTest, StartsBehindTheAppliedPosition) {
  Write({2, 2});
  const std::vector<SealedEntry> run = SealRun({}, 4);

  EXPECT_THAT(Recover(&fs_, PositionOf(run[2])), testing::IsOkAndHolds(std::vector<uint64_t>{4}));
  // Again, now from a segment that begins there.
  EXPECT_THAT(Recover(&fs_, PositionOf(run[2])), testing::IsOkAndHolds(std::vector<uint64_t>{4}));
  EXPECT_THAT(Recover(&fs_, PositionOf(run[3])), testing::IsOkAndHolds(std::vector<uint64_t>{}));
}

// R4: an applied state and a log that do not belong together.
TEST_F(RecoveryTest, RefusesLogWhoseChainDiffersFromTheAppliedState) {
  Write({2, 2});
  LogPosition foreign = PositionOf(SealRun({}, 2).back());
  foreign.chain.bytes[3] ^= 1;

  EXPECT_THAT(Recover(&fs_, foreign), StatusIs(absl::StatusCode::kDataLoss));
}

// R3, R5: the applied state proves that entries were durable.
TEST_F(RecoveryTest, RefusesLogThatEndsBelowTheAppliedPosition) {
  Write({2});
  const LogPosition ahead = PositionOf(SealRun({}, 5).back());

  EXPECT_THAT(Recover(&fs_, ahead), StatusIs(absl::StatusCode::kDataLoss));
  ASSERT_OK(storage::RemoveTree(fs_, LogDirectory()));
  EXPECT_THAT(Recover(&fs_, ahead), StatusIs(absl::StatusCode::kDataLoss));
}

// A newer log is neither damaged nor empty.
// B15: a reader of the log holds the base below the applied position. What lies between was durable: a
// bad record there is damage, where it would be a torn tail without that knowledge.
TEST_F(RecoveryTest, KnowsTheLogToReachTheAppliedPositionThoughAReaderHoldsTheBaseBelow) {
  Write({1, 2});
  const Current current = CurrentSegment(&fs_);
  const std::vector<ScannedEntry> entries = current.scan.entries;
  const LogPosition base{Lsn(1), entries[0].chain};
  const LogPosition applied{Lsn(3), entries[2].chain};
  const LogPosition other{Lsn(3), entries[1].chain};
  ASSERT_OK_AND_ASSIGN(const auto whole, ScanLog(&fs_, LogDirectory()));
  ASSERT_OK(fs_.FlipBit(current.path, entries[2].offset + 170, 0));
  ASSERT_OK_AND_ASSIGN(const auto damaged, ScanLog(&fs_, LogDirectory()));

  ASSERT_OK_AND_ASSIGN(const auto plan, PlanRecovery(base, applied, whole));
  EXPECT_EQ(plan.end, applied);
  EXPECT_THAT(PlanRecovery(base, other, whole), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_OK(PlanRecovery(base, damaged));
  EXPECT_THAT(PlanRecovery(base, applied, damaged), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(PlanRecovery(LogPosition{}, applied, {}), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(RecoveryTest, LeavesNewerFormatAlone) {
  Write({1});
  const Current current = CurrentSegment(&fs_);
  ASSERT_OK_AND_ASSIGN(std::string bytes, storage::ReadFile(fs_, current.path));
  SealedEntry newer = SealRun({}, 1).front();
  newer.header[0] = 9;
  std::string record;
  AppendEntryRecord(current.header.salt, newer, &record);
  bytes.replace(static_cast<size_t>(current.scan.entries[0].offset), record.size(), record);
  ASSERT_OK(storage::WriteFile(fs_, current.path, View(bytes)));
  const std::string before = fs_.DumpTree();

  EXPECT_THAT(Recover(&fs_), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(fs_.DumpTree(), before);
}

// Field case C108: a passing read error is not the end of the log. [LOG-08, CORE-19]
TEST_F(RecoveryTest, ReadErrorFailsTheOpenAndChangesNothing) {
  Write({2, 1});
  const std::string before = fs_.DumpTree();

  for (int64_t occurrence = 1;; ++occurrence) {
    FaultFileSystem faulty(&fs_);
    faulty.AddRule(FaultAt(FileOperation::kReadAt, occurrence));
    const auto files = ScanLog(&faulty, LogDirectory());
    if (faulty.fault_count() == 0) break;
    EXPECT_THAT(files, StatusIs(absl::StatusCode::kUnavailable)) << occurrence;
  }
  FaultFileSystem faulty(&fs_);
  faulty.AddRule(FaultAt(FileOperation::kReadAt, 2));
  EXPECT_THAT(Recover(&faulty), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(fs_.DumpTree(), before);
  EXPECT_THAT(Recover(&fs_), testing::IsOkAndHolds(Range(1, 3)));
}

// Field case C109: what a full disk leaves beside a torn segment is a normal state.
TEST_F(RecoveryTest, OpensWithTornLastGroupBesideEmptyOrZeroFilledNextSegment) {
  Write({2});
  const Current current = CurrentSegment(&fs_);
  const int64_t last = current.scan.entries.back().offset;

  for (const bool torn : {false, true}) {
    for (const int64_t next_bytes : {int64_t{-1}, int64_t{0}, int64_t{100}, kSegmentBytesMin}) {
      const auto fs = fs_.CrashClone({CrashSurvival::kEverything});
      if (torn) {
        ASSERT_OK(fs->FlipBit(current.path, last + 50, 1));
      }
      if (next_bytes >= 0) {
        ASSERT_OK(MakeZeroFilled(fs.get(), StorePath::Literal("log/90.seg"), next_bytes));
      }
      EXPECT_THAT(Recover(fs.get()), testing::IsOkAndHolds(Range(1, torn ? 1 : 2)))
          << torn << next_bytes;
    }
  }
}

// A missing segment in the middle is never bridged.
TEST_F(RecoveryTest, RefusesLogWithMissingSegment) {
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  LogPosition last{tail.last, tail.chain};
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK(log->PrepareSpace());
    auto run = SealRun(last, 1, tail.epoch, 14'000);
    last = PositionOf(run.back());
    ASSERT_EQ(AppendGroup(log.get(), std::move(run)), AppendOutcome::kCommitted);
  }
  std::vector<uint64_t> in_use;
  for (const ScannedFile& file : ScannedFiles(&fs_)) {
    if (file.header) in_use.push_back(file.number);
  }
  ASSERT_GE(in_use.size(), 3u);

  for (const uint64_t number : in_use) {
    if (number == in_use.back()) continue;
    const auto hurt = fs_.CrashClone({CrashSurvival::kEverything});
    const std::string name = SegmentFileName(number);
    ASSERT_OK(hurt->Remove(LogDirectory() / View(name)));
    EXPECT_THAT(Recover(hurt.get()), StatusIs(absl::StatusCode::kDataLoss)) << number;
  }
}

// A header that was written and has been damaged is told from one that never was.
TEST_F(RecoveryTest, DamagedHeaderOfTheCurrentSegmentIsDamage) {
  Write({1, 1});
  const Current current = CurrentSegment(&fs_);

  ASSERT_OK(fs_.FlipBit(current.path, 30, 3));

  EXPECT_THAT(Recover(&fs_), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace repotxn::wal
