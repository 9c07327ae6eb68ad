#include <string>
#include <utility>
#include <vector>

#include "storage/log.h"
#include "tests/support/fault_file_system.h"
#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

std::vector<CrashOptions> CrashVariants() {
  std::vector<CrashOptions> variants = {{CrashSurvival::kNothing}, {CrashSurvival::kEverything}};
  for (uint64_t seed = 1; seed <= 6; ++seed) variants.push_back({CrashSurvival::kRandom, seed});
  return variants;
}

// The entries above `base` as bytes, in order.
absl::StatusOr<std::vector<std::string>> RecoveredBytes(storage::FileSystem* fs,
                                                        const LogPosition& base) {
  RecoveryOptions options;
  options.directory = StorePath::Literal("log");
  options.segment_bytes = kSegmentBytesMin;
  uint64_t salt = 1000 + static_cast<uint64_t>(reinterpret_cast<uintptr_t>(fs) % 977);
  options.random_salt = [&salt] { return ++salt; };
  REPOTXN_ASSIGN_OR_RETURN(const RecoveredLog log, RecoverLog(fs, base, options));
  const std::string name = SegmentFileName(log.header.number);
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs->OpenForRead(options.directory / View(name)));
  std::vector<std::string> entries;
  for (const ScannedEntry& entry : log.entries) {
    std::string bytes;
    REPOTXN_RETURN_IF_ERROR(
        ReadEntryRecord(*file, log.header.salt, entry.offset, entry.lsn, &bytes).status());
    entries.push_back(std::move(bytes));
  }
  return entries;
}

// Goal: crashes at every mutating call, of appending and of recovery itself, with everything,
// nothing or a torn part of what was not synced surviving. Fails when an acknowledged entry is
// lost, an entry appears twice or changed, or recovery after a crash inside recovery decides
// differently [A15, P7].
class LogCrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage::SetLogSink([](storage::LogLevel, absl::string_view) {});
  }
  void TearDown() override { storage::SetLogSink(nullptr); }

  // Appends one group of `entries` and remembers what was acknowledged.
  void Append(LocalReplicator* log, const LogTail& tail, size_t entries, size_t value_bytes = 20) {
    if (last_.lsn == Lsn::Zero()) last_ = {tail.last, tail.chain};
    auto run = SealRun(last_, entries, tail.epoch, value_bytes);
    if (!run.empty()) last_ = PositionOf(run.back());
    ASSERT_EQ(AppendGroup(log, std::move(run)), AppendOutcome::kCommitted);
    acknowledged_ = last_.lsn.value();
  }

  MemoryFileSystem fs_;
  LogPosition last_;
  uint64_t acknowledged_ = 0;
};

// Field cases C013 and C014: what was answered survives, and each entry is there whole or not at
// all.
TEST_F(LogCrashTest, KeepsEveryAcknowledgedEntryAtEveryCrashPoint) {
  struct Clone {
    std::unique_ptr<MemoryFileSystem> fs;
    uint64_t acknowledged;
  };
  std::vector<Clone> clones;
  fs_.SetMutationHook([&](int64_t, absl::string_view, const StorePath&) {
    for (const CrashOptions& options : CrashVariants()) {
      clones.push_back({fs_.CrashClone(options), acknowledged_});
    }
  });
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  ASSERT_OK(log->PrepareSpace());
  for (int i = 0; i < 8; ++i) {
    ASSERT_OK(log->PrepareSpace());
    Append(log.get(), tail, static_cast<size_t>(i % 4), 9'000);
  }
  fs_.SetMutationHook(nullptr);

  int torn = 0;
  for (const Clone& clone : clones) {
    const auto reopened = OpenLog(clone.fs.get());
    ASSERT_OK(reopened->Acquire());
    ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(reopened.get(), Lsn(1)));
    const std::vector<uint64_t> numbers = NumbersOf(entries, Lsn(1));
    EXPECT_GE(numbers.size(), clone.acknowledged);
    EXPECT_EQ(numbers, Range(1, numbers.size()));
    for (const DecodedEntry& entry : entries) {
      EXPECT_EQ(entry.manifest, ManifestOf(entry.lsn.value(), 9'000));
    }
    torn += reopened->torn_bytes() > 0 ? 1 : 0;
  }
  EXPECT_GT(torn, 0);
}

// Hard cases A15, P7: recovery that dies anywhere and runs again finds the same entries, byte for
// byte.
TEST_F(LogCrashTest, RecoveryThatDiesAnywhereDecidesTheSameAgain) {
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  for (const size_t entries : {2u, 1u, 3u}) Append(log.get(), tail, entries);
  const LogPosition base = PositionOf(SealRun({}, 2, tail.epoch).back());
  // A group that was on its way when the power went.
  std::vector<std::unique_ptr<MemoryFileSystem>> starts;
  fs_.SetMutationHook([&](int64_t, absl::string_view operation, const StorePath&) {
    if (operation != "sync") return;
    for (const CrashOptions& options : CrashVariants()) starts.push_back(fs_.CrashClone(options));
  });
  Append(log.get(), tail, 4, 400);
  fs_.SetMutationHook(nullptr);
  ASSERT_FALSE(starts.empty());

  int64_t crashes = 0;
  for (const auto& start : starts) {
    const auto undisturbed = start->CrashClone({CrashSurvival::kEverything});
    ASSERT_OK_AND_ASSIGN(const auto expected, RecoveredBytes(undisturbed.get(), base));
    ASSERT_GE(expected.size(), 4u);
    std::vector<std::unique_ptr<MemoryFileSystem>> clones;
    start->SetMutationHook([&](int64_t, absl::string_view, const StorePath&) {
      for (const CrashOptions& options : CrashVariants())
        clones.push_back(start->CrashClone(options));
    });
    EXPECT_THAT(RecoveredBytes(start.get(), base), testing::IsOkAndHolds(expected));
    start->SetMutationHook(nullptr);
    for (const auto& clone : clones) {
      EXPECT_THAT(RecoveredBytes(clone.get(), base), testing::IsOkAndHolds(expected));
      EXPECT_THAT(RecoveredBytes(clone.get(), base), testing::IsOkAndHolds(expected));
      ++crashes;
    }
  }
  EXPECT_GT(crashes, 100);
}

// Field case C019, hard case A15: the process dies, not the machine; what recovery then tells must
// outlive a power cut.
TEST_F(LogCrashTest, WhatRecoveryToldSurvivesThePowerCutAfterIt) {
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  Append(log.get(), tail, 1);
  // Written, not synced: in the page cache only.
  FaultFileSystem faulty(&fs_);
  {
    const auto dying = OpenLog(&faulty);
    ASSERT_OK_AND_ASSIGN(const LogTail own, dying->Acquire());
    faulty.AddRule(FaultAt(FileOperation::kSync));
    EXPECT_EQ(AppendGroup(dying.get(), SealRun({own.last, own.chain}, 2, own.epoch)),
              AppendOutcome::kUnknown);
  }
  const auto reopened = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail told, reopened->Acquire());
  ASSERT_OK_AND_ASSIGN(const auto before, ReadAll(reopened.get(), Lsn(1)));

  const auto after_cut = fs_.CrashClone({CrashSurvival::kNothing});
  const auto again = OpenLog(after_cut.get());
  ASSERT_OK_AND_ASSIGN(const LogTail found, again->Acquire());

  ASSERT_OK_AND_ASSIGN(const auto after, ReadAll(again.get(), Lsn(1)));
  EXPECT_EQ(found.last, told.last);
  EXPECT_EQ(found.chain, told.chain);
  EXPECT_EQ(NumbersOf(after, Lsn(1)), NumbersOf(before, Lsn(1)));
}

// Hard case A17: entries cut as torn never come back, though the same client repeats the same
// bytes.
TEST_F(LogCrashTest, CutEntriesNeverComeBack) {
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  Append(log.get(), tail, 1);
  std::unique_ptr<MemoryFileSystem> torn;
  int64_t first_record = 0;
  fs_.SetMutationHook([&](int64_t, absl::string_view operation, const StorePath&) {
    if (operation == "sync") torn = fs_.CrashClone({CrashSurvival::kEverything});
  });
  Append(log.get(), tail, 2);
  fs_.SetMutationHook(nullptr);
  ASSERT_NE(torn, nullptr);
  for (const ScannedFile& file : ScannedFiles(torn.get())) {
    if (!file.header) continue;
    first_record = file.scan.entries.at(1).offset;
    const std::string path = "log/" + SegmentFileName(file.number);
    ASSERT_OK(torn->FlipBit(StorePath::Literal(View(path)), first_record + 40, 0));
  }

  const auto reopened = OpenLog(torn.get());
  ASSERT_OK_AND_ASSIGN(const LogTail after_cut, reopened->Acquire());
  ASSERT_EQ(after_cut.last, Lsn(1));
  EXPECT_GT(reopened->torn_bytes(), 0);
  // The client repeats entry 2 with the very same bytes; entry 3 of the cut tail would continue its
  // chain.
  ASSERT_EQ(AppendGroup(reopened.get(), SealRun({after_cut.last, after_cut.chain}, 1, tail.epoch)),
            AppendOutcome::kCommitted);

  const auto last_open = OpenLog(torn.get());
  ASSERT_OK_AND_ASSIGN(const LogTail found, last_open->Acquire());
  EXPECT_EQ(found.last, Lsn(2));
}

// Trimming and recovering in turns, with a crash at every mutating call: retired files never count.
// LOG-12, LOG-35
TEST_F(LogCrashTest, TrimmingSurvivesEveryCrashPoint) {
  struct Clone {
    std::unique_ptr<MemoryFileSystem> fs;
    LogPosition base;
    uint64_t acknowledged;
  };
  std::vector<Clone> clones;
  LogPosition base;
  fs_.SetMutationHook([&](int64_t, absl::string_view, const StorePath&) {
    for (const CrashOptions& options : CrashVariants()) {
      clones.push_back({fs_.CrashClone(options), base, acknowledged_});
    }
  });
  const auto log = OpenLog(&fs_);
  ASSERT_OK_AND_ASSIGN(const LogTail tail, log->Acquire());
  for (int i = 0; i < 9; ++i) {
    ASSERT_OK(log->PrepareSpace());
    Append(log.get(), tail, 2, 12'000);
    if (i % 3 == 2) {
      base = last_;  // durable elsewhere, by assumption
      ASSERT_OK(log->Applied(base.lsn));
    }
  }
  fs_.SetMutationHook(nullptr);

  for (const Clone& clone : clones) {
    const auto reopened = OpenLog(clone.fs.get(), clone.base);
    ASSERT_OK(reopened->Acquire());
    const Lsn first = clone.base.lsn.Next();
    ASSERT_OK_AND_ASSIGN(const auto entries, ReadAll(reopened.get(), first));
    const std::vector<uint64_t> numbers = NumbersOf(entries, first);
    EXPECT_GE(clone.base.lsn.value() + numbers.size(), clone.acknowledged);
    EXPECT_EQ(numbers, Range(first.value(), clone.base.lsn.value() + numbers.size()));
  }
}

}  // namespace
}  // namespace repotxn::wal
