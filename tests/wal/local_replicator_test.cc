#include "wal/local_replicator.h"

#include <string>
#include <vector>

#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/log.h"
#include "tests/wal/replicator_conformance.h"
#include "wal/payload_store.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

class LocalWorld : public ReplicatorWorld {
 public:
  LocalWorld() : memory_(std::make_unique<MemoryFileSystem>()) { Wrap(); }
  std::unique_ptr<Replicator> Open() override { return OpenLog(faulty_.get()); }
  void Crash() override {
    memory_ = memory_->CrashClone({CrashSurvival::kNothing});
    Wrap();
  }
  void FailNextGroup() override { faulty_->AddRule(FaultAt(FileOperation::kSync)); }
  void Heal() override { faulty_->ClearRules(); }

 private:
  void Wrap() {
    auto wrapped = std::make_unique<FaultFileSystem>(memory_.get());
    old_.push_back(std::move(faulty_));
    faulty_ = std::move(wrapped);
  }

  std::unique_ptr<MemoryFileSystem> memory_;
  std::unique_ptr<FaultFileSystem> faulty_;
  // Outlive the files that were opened through them.
  std::vector<std::unique_ptr<FaultFileSystem>> old_;
};

INSTANTIATE_TEST_SUITE_P(Local, ReplicatorConformance, ::testing::Values(ReplicatorWorldFactory([] {
                           return std::unique_ptr<ReplicatorWorld>(new LocalWorld);
                         })));

// Goal: a group is one write and one sync; space never runs out after a reservation; a failure is
// final.
class LocalReplicatorTest : public ::testing::Test {
 protected:
  LocalReplicatorTest() : fs_(&memory_) {}
  void SetUp() override {
    storage::SetLogSink([](storage::LogLevel, absl::string_view) {});
    log_ = OpenLog(&fs_);
    ASSERT_OK_AND_ASSIGN(const LogTail tail, log_->Acquire());
    last_ = {tail.last, tail.chain};
    epoch_ = tail.epoch;
  }
  void TearDown() override { storage::SetLogSink(nullptr); }

  std::vector<SealedEntry> Next(size_t entries, size_t value_bytes = 20) {
    auto run = SealRun(last_, entries, epoch_, value_bytes);
    last_ = PositionOf(run.back());
    return run;
  }
  static int64_t BytesOf(const SealedEntry& entry) {
    return EntryRecordBytes(static_cast<int64_t>(entry.body.size()), 0);
  }

  MemoryFileSystem memory_;
  FaultFileSystem fs_;
  std::unique_ptr<LocalReplicator> log_;
  LogPosition last_;
  uint64_t epoch_ = 0;
};

TEST_F(LocalReplicatorTest, RefusesOptionsOutOfRange) {
  for (const int64_t bytes :
       {int64_t{0}, kSegmentBytesMin - 4096, kSegmentBytesMin + 1, kSegmentBytesMax + 4096}) {
    LocalReplicator::Options options;
    options.segment_bytes = bytes;
    EXPECT_THAT(LocalReplicator::Create(&fs_, {}, options),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  LocalReplicator::Options options;
  options.spare_segments = 0;
  EXPECT_THAT(LocalReplicator::Create(&fs_, {}, options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(LocalReplicatorTest, WritesAGroupWithOneWriteAndOneSync) {
  const int64_t writes = fs_.CallCount(FileOperation::kWriteAt);
  const int64_t syncs = fs_.CallCount(FileOperation::kSync);

  ASSERT_EQ(AppendGroup(log_.get(), Next(7)), AppendOutcome::kCommitted);

  EXPECT_EQ(fs_.CallCount(FileOperation::kWriteAt), writes + 1);
  EXPECT_EQ(fs_.CallCount(FileOperation::kSync), syncs + 1);
}

// L2, hard case A18: whatever was reserved finds its place, in any grouping; the refusal comes
// before.
TEST_F(LocalReplicatorTest, ReservedEntriesAlwaysFindTheirPlace) {
  ASSERT_OK(log_->PrepareSpace());
  std::vector<SealedEntry> reserved;
  while (true) {
    const LogPosition before = last_;
    std::vector<SealedEntry> one = Next(1, 700 + reserved.size() * 331 % 9'000);
    const absl::Status space = log_->ReserveSpace(BytesOf(one.front()));
    if (!space.ok()) {
      EXPECT_THAT(space, StatusIs(absl::StatusCode::kResourceExhausted));
      last_ = before;
      break;
    }
    reserved.push_back(std::move(one.front()));
  }
  ASSERT_GT(reserved.size(), 15u);
  const int64_t creations = fs_.CallCount(FileOperation::kOpenForWrite);
  const size_t count = reserved.size();

  for (size_t begin = 0; begin < count;) {
    std::vector<SealedEntry> group;
    for (size_t i = 0; i < begin % 5 + 1 && begin < count; ++i) {
      group.push_back(std::move(reserved[begin++]));
    }
    ASSERT_EQ(AppendGroup(log_.get(), std::move(group)), AppendOutcome::kCommitted);
  }

  // Taking the spare segment into use opened nothing: nothing but write and sync could have failed.
  EXPECT_EQ(fs_.CallCount(FileOperation::kOpenForWrite), creations);
  EXPECT_FALSE(log_->HasSpareSpace());
  ASSERT_OK(log_->PrepareSpace());
  EXPECT_TRUE(log_->HasSpareSpace());
  EXPECT_OK(log_->ReserveSpace(10'000));
  ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(log_.get(), Lsn(1)));
  EXPECT_EQ(entries.size(), count);
}

TEST_F(LocalReplicatorTest, RefusesRecordAboveAQuarterOfASegment) {
  EXPECT_OK(log_->ReserveSpace(kSegmentBytesMin / 4));
  EXPECT_THAT(log_->ReserveSpace(kSegmentBytesMin / 4 + 1),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// Field case C017: an error of any call of a commit is never success; afterwards the entry is there
// or it is not.
TEST_F(LocalReplicatorTest, NoFailedCallOfACommitIsTakenForSuccess) {
  for (const FileOperation operation : {FileOperation::kWriteAt, FileOperation::kSync}) {
    MemoryFileSystem memory;
    FaultFileSystem fs(&memory);
    {
      const auto log = OpenLog(&fs);
      ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
      FaultRule rule = FaultAt(operation);
      rule.partial_bytes = 150;
      fs.AddRule(rule);
      absl::Status status;
      EXPECT_EQ(AppendGroup(log.get(), SealRun({}, 2, tail.epoch), &status),
                AppendOutcome::kUnknown);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
      const int64_t syncs = fs.CallCount(FileOperation::kSync);
      EXPECT_EQ(AppendGroup(log.get(), SealRun({}, 2, tail.epoch), &status),
                AppendOutcome::kNotCommitted);
      EXPECT_EQ(fs.CallCount(FileOperation::kSync), syncs);  // L4: nothing is retried
      EXPECT_EQ(log->committed_lsn(), Lsn::Zero());
    }
    fs.ClearRules();
    const auto reopened = OpenLog(&fs);
    ASSERT_OK(reopened->Acquire());
    ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(reopened.get(), Lsn(1)));
    EXPECT_EQ(NumbersOf(entries, Lsn(1)), Range(1, entries.size()));
  }
}

// LOG-03, LOG-04, LOG-09, LOG-10, LOG-12, LOG-41
TEST_F(LocalReplicatorTest, TrimsWholeOlderSegmentsButNeverTheCurrentOne) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(log_->PrepareSpace());
    ASSERT_EQ(AppendGroup(log_.get(), Next(1, 14'000)), AppendOutcome::kCommitted);
  }
  ASSERT_OK_AND_ASSIGN(const auto behind, log_->Follow(Lsn(1)));
  ASSERT_OK(behind->Next());
  const int64_t before = log_->retained_bytes();
  EXPECT_TRUE(log_->HasSegmentsBelow(Lsn(10)));
  EXPECT_FALSE(log_->HasSegmentsBelow(Lsn(0)));

  ASSERT_OK(log_->Applied(Lsn(10)));

  EXPECT_LT(log_->retained_bytes(), before);
  EXPECT_EQ(log_->retained_bytes(), kSegmentBytesMin);
  EXPECT_GT(log_->retained_from(), Lsn(1));
  EXPECT_THAT(log_->Follow(Lsn(1)), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(behind->Next(), StatusIs(absl::StatusCode::kOutOfRange));
  ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(log_.get(), log_->retained_from()));
  EXPECT_EQ(entries.back().lsn, Lsn(10));
  EXPECT_FALSE(log_->HasSegmentsBelow(Lsn(10)));
}

TEST_F(LocalReplicatorTest, TellsHowManyBytesLieAboveAPosition) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(log_->PrepareSpace());
    ASSERT_EQ(AppendGroup(log_.get(), Next(1, 14'000)), AppendOutcome::kCommitted);
  }

  EXPECT_EQ(log_->BytesAbove(Lsn(10)), 0);
  int64_t before = 0;
  for (uint64_t lsn = 10; lsn-- > 0;) {
    const int64_t bytes = log_->BytesAbove(Lsn(lsn));
    EXPECT_GT(bytes - before, 13'000) << lsn;
    EXPECT_LT(bytes - before, 18'000) << lsn;
    before = bytes;
  }
}

// Hard case A17: a retired file is used again; its old records do not count.
TEST_F(LocalReplicatorTest, UsesRetiredSegmentsAgain) {
  for (int i = 0; i < 40; ++i) {
    if (i % 4 == 3) {
      ASSERT_OK(log_->Applied(Lsn(static_cast<uint64_t>(i))));
    }
    ASSERT_OK(log_->PrepareSpace());
    ASSERT_EQ(AppendGroup(log_.get(), Next(1, 14'000)), AppendOutcome::kCommitted);
  }
  ASSERT_OK_AND_ASSIGN(const auto files, memory_.List(StorePath::Literal("log")));
  EXPECT_LE(files.size(), 5u);

  const LogPosition base = PositionOf(SealRun({}, 39, epoch_, 14'000).back());
  const auto reopened = OpenLog(&fs_, base);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, reopened->Acquire());
  EXPECT_EQ(tail.last, Lsn(40));
}

TEST_F(LocalReplicatorTest, FullDiskWhilePreparingSpaceLeavesTheLogUsable) {
  ASSERT_OK(log_->PrepareSpace());
  while (log_->ReserveSpace(16'000).ok()) {
  }
  FaultRule full = FaultAt(FileOperation::kAppend);
  full.status = absl::ResourceExhaustedError("disk is full");
  full.partial_bytes = 512;
  fs_.AddRule(full);

  EXPECT_THAT(log_->PrepareSpace(), StatusIs(absl::StatusCode::kResourceExhausted));

  EXPECT_THAT(log_->ReserveSpace(16'000), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(AppendGroup(log_.get(), Next(1)), AppendOutcome::kCommitted);
  fs_.ClearRules();
  EXPECT_OK(log_->PrepareSpace());
  EXPECT_OK(log_->ReserveSpace(16'000));
}

TEST_F(LocalReplicatorTest, FailedDirectorySyncPoisons) {
  ASSERT_OK(log_->PrepareSpace());
  while (log_->HasSpareSpace()) ASSERT_OK(log_->ReserveSpace(16'000));
  fs_.AddRule(FaultAt(FileOperation::kSyncDirectory));

  EXPECT_THAT(log_->PrepareSpace(), StatusIs(absl::StatusCode::kUnavailable));

  fs_.ClearRules();
  EXPECT_THAT(log_->PrepareSpace(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(AppendGroup(log_.get(), Next(1)), AppendOutcome::kNotCommitted);
}

TEST_F(LocalReplicatorTest, ReadsManifestThatTravelsAsPayloadFile) {
  PayloadStore payloads(&fs_);
  ASSERT_OK(payloads.Initialize());
  const Manifest large = ManifestOf(1, 300'000);
  ASSERT_OK_AND_ASSIGN(const auto staged, payloads.Create(large.transaction_id));
  ASSERT_OK_AND_ASSIGN(const PayloadFile file, staged->AddBytes(View(EncodeManifest(large))));
  ASSERT_OK(staged->Seal());
  ASSERT_OK_AND_ASSIGN(PreparedEntry prepared, PreparePayloadEntry(large.transaction_id, file));
  std::vector<SealedEntry> group;
  group.push_back(SealEntry(std::move(prepared), Lsn(1), epoch_, {}, ""));

  ASSERT_EQ(AppendGroup(log_.get(), std::move(group)), AppendOutcome::kCommitted);

  ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(log_.get(), Lsn(1)));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].manifest, large);
  ASSERT_OK(memory_.FlipBit(payloads.path(large.transaction_id, 0), 99, 1));
  EXPECT_THAT(ReadAll(log_.get(), Lsn(1)), StatusIs(absl::StatusCode::kDataLoss));
}

// Each planted bug breaks what the tests above and the crash tests rely on, and is noticed.
class PlantedLogBugTest : public LocalReplicatorTest {
 protected:
  // Whether an entry that was answered as committed is there after the power went.
  bool AnsweredEntrySurvives(bool sync_fails) {
    MemoryFileSystem memory;
    FaultFileSystem fs(&memory);
    const auto log = OpenLog(&fs);
    const auto tail = log->Acquire();
    if (sync_fails) {
      FaultRule rule = FaultAt(FileOperation::kSync);
      rule.later_syncs_lie = true;
      fs.AddRule(rule);
    }
    if (AppendGroup(log.get(), SealRun({}, 1, tail->epoch)) != AppendOutcome::kCommitted)
      return true;
    const auto after = memory.CrashClone({CrashSurvival::kNothing});
    const auto reopened = OpenLog(after.get());
    const auto found = reopened->Acquire();
    return found.ok() && found->last == Lsn(1);
  }
  // Whether damage to entry 1 of 2, provably durable, is refused.
  bool DamageIsRefused() {
    MemoryFileSystem memory;
    {
      const auto log = OpenLog(&memory);
      const auto tail = log->Acquire();
      auto run = SealRun({}, 2, tail->epoch);
      std::vector<SealedEntry> first(1, run[0]), second(1, run[1]);
      AppendGroup(log.get(), first);
      AppendGroup(log.get(), second);
    }
    EXPECT_OK(memory.FlipBit(StorePath::Literal("log/1.seg"),
                             kSegmentHeaderBytes + kGroupRecordBytes + 170, 0));
    return absl::IsDataLoss(OpenLog(&memory)->Acquire().status());
  }
};

TEST_F(PlantedLogBugTest, SkippedSyncIsNoticed) {
  EXPECT_TRUE(AnsweredEntrySurvives(false));
  PlantedBug bug("wal.skip_sync");
  EXPECT_FALSE(AnsweredEntrySurvives(false));
}

TEST_F(PlantedLogBugTest, RetriedFailedSyncIsNoticed) {
  EXPECT_TRUE(AnsweredEntrySurvives(true));
  PlantedBug bug("wal.retry_failed_sync");
  EXPECT_FALSE(AnsweredEntrySurvives(true));
}

TEST_F(PlantedLogBugTest, DamageAcceptedAsTornTailIsNoticed) {
  EXPECT_TRUE(DamageIsRefused());
  PlantedBug bug("wal.accept_torn_tail");
  EXPECT_FALSE(DamageIsRefused());
}

TEST_F(PlantedLogBugTest, DroppedLastEntryIsNoticed) {
  EXPECT_TRUE(AnsweredEntrySurvives(false));
  PlantedBug bug("wal.drop_last_entry");
  EXPECT_FALSE(AnsweredEntrySurvives(false));
}

}  // namespace
}  // namespace repotxn::wal
