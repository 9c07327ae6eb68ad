// Goal: `log verify` calls a sound log sound, a torn tail a torn tail, and damage damage, and
// changes nothing. Method: logs written by the product's own replicator into an in-memory file
// system, then damaged at rest.
#include "cli/log_check.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"
#include "wal/entry_codec.h"
#include "wal/local_replicator.h"
#include "wal/segment.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;

class LogCheckTest : public ::testing::Test {
 protected:
  LogCheckTest() {
    wal::LocalReplicator::Options options;
    options.segment_bytes = 64 << 10;
    uint64_t salt = 1;
    options.random_salt = [salt]() mutable { return salt++; };
    auto replicator = wal::LocalReplicator::Create(&fs_, wal::LogPosition(), options);
    EXPECT_OK(replicator.status());
    replicator_ = *std::move(replicator);
    auto tail = replicator_->Acquire();
    EXPECT_OK(tail.status());
    epoch_ = tail->epoch;
  }

  // Appends one entry in a group of its own.
  void Append() {
    wal::Manifest manifest;
    manifest.transaction_id =
        *TransactionId::FromBytes(std::string(16, static_cast<char>(next_.value())));
    manifest.operations.push_back(wal::EnsureGroup{.path = "group" + next_.ToString()});
    auto prepared = wal::PrepareEntry(manifest);
    ASSERT_OK(prepared.status());
    ASSERT_OK(replicator_->ReserveSpace(
        wal::EntryRecordBytes(static_cast<int64_t>(prepared->body.size()), 0)));
    std::vector<wal::SealedEntry> group;
    group.push_back(wal::SealEntry(*std::move(prepared), next_, epoch_, chain_, ""));
    chain_ = group.back().chain;
    next_ = next_.Next();
    absl::Status status;
    ASSERT_EQ(replicator_->Append(std::move(group))->Wait(&status), wal::AppendOutcome::kCommitted)
        << status;
  }

  LogSummary Check(Findings& findings) {
    const std::string before = fs_.DumpTree();
    auto summary = CheckLog(fs_, findings);
    EXPECT_OK(summary.status());
    EXPECT_EQ(fs_.DumpTree(), before) << "the check changed the store";
    return summary.ok() ? *summary : LogSummary();
  }

  // The segment that holds entries.
  StorePath Segment() {
    auto entries = fs_.List(StorePath::Literal("log"));
    EXPECT_OK(entries.status());
    for (const storage::DirectoryEntry& entry : *entries) {
      const StorePath path = StorePath::Literal("log") / entry.name;
      auto content = storage::ReadFile(fs_, path);
      const uint64_t number =
          wal::SegmentNumberOf(absl::string_view(entry.name.data(), entry.name.size()));
      if (wal::DecodeSegmentHeader(absl::string_view(content->data(), wal::kSegmentHeaderBytes),
                                   number)
              .ok()) {
        return path;
      }
    }
    ADD_FAILURE() << "no segment";
    return StorePath();
  }

  testing::MemoryFileSystem fs_;
  std::unique_ptr<wal::LocalReplicator> replicator_;
  uint64_t epoch_ = 0;
  wal::Lsn next_ = wal::Lsn(1);
  wal::ChainChecksum chain_;
};

TEST_F(LogCheckTest, CountsEntriesOfASoundLog) {
  for (int i = 0; i < 5; ++i) Append();

  Findings findings;
  const LogSummary summary = Check(findings);

  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(summary.entries, 5);
  EXPECT_EQ(summary.first_lsn, 1u);
  EXPECT_EQ(summary.last_lsn, 5u);
  EXPECT_EQ(summary.torn_bytes, 0);
  EXPECT_EQ(findings.looked().at("log"), 5);
}

TEST_F(LogCheckTest, AcceptsAnEmptyLog) {
  Findings findings;
  const LogSummary summary = Check(findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(summary.entries, 0);
  EXPECT_EQ(summary.last_lsn, 0u);
}

// C106: a damaged middle is told, never read past.
TEST_F(LogCheckTest, TellsDamageInTheMiddle) {
  for (int i = 0; i < 5; ++i) Append();
  ASSERT_OK(fs_.FlipBit(
      Segment(), wal::kSegmentHeaderBytes + wal::kGroupRecordBytes + wal::kRecordFrameBytes + 9,
      3));

  Findings findings;
  Check(findings);

  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.list()[0].check, "log");
}

// C107: what a power failure leaves of the last group is no damage.
TEST_F(LogCheckTest, ReportsATornTailWithoutAFinding) {
  for (int i = 0; i < 3; ++i) Append();
  Findings before;
  ASSERT_EQ(Check(before).entries, 3);
  auto content = storage::ReadFile(fs_, Segment());
  ASSERT_OK(content.status());
  const int64_t last = static_cast<int64_t>(content->find_last_not_of('\0'));
  ASSERT_OK(fs_.FlipBit(Segment(), last, 0));

  Findings findings;
  const LogSummary summary = Check(findings);

  EXPECT_TRUE(findings.empty()) << findings.list()[0].text;
  EXPECT_EQ(summary.entries, 2);
  EXPECT_EQ(summary.last_lsn, 2u);
  EXPECT_GT(summary.torn_bytes, 0);
}

}  // namespace
}  // namespace repotxn::cli
