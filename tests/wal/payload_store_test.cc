#include "wal/payload_store.h"

#include <string>
#include <vector>

#include "storage/checksum.h"
#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

FaultRule FaultOnSync(FileOperation operation) {
  FaultRule rule;
  rule.operation = operation;
  rule.status = absl::UnavailableError("injected");
  return rule;
}

// Goal: what Seal() returned OK for is there after a power cut, content and name; what it did not
// is nobody's loss.
class PayloadStoreTest : public ::testing::Test {
 protected:
  PayloadStoreTest() : fs_(&memory_), store_(&fs_) {}
  void SetUp() override { ASSERT_OK(store_.Initialize()); }

  MemoryFileSystem memory_;
  FaultFileSystem fs_;
  PayloadStore store_;
  const TransactionId id_ = IdOf<TransactionId>(1);
};

// WAL-07, LOG-16, LOG-17
TEST_F(PayloadStoreTest, DescribesWhatItWroteAndLinked) {
  ASSERT_OK(storage::WriteFile(memory_, StorePath::Literal("pack"), "PACK content"));
  ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));

  ASSERT_OK_AND_ASSIGN(const PayloadFile bytes, staged->AddBytes("hello"));
  ASSERT_OK_AND_ASSIGN(const PayloadFile linked, staged->AddLinked(StorePath::Literal("pack")));
  ASSERT_OK(staged->Seal());

  EXPECT_EQ(bytes, (PayloadFile{0, 5, storage::Sha256("hello")}));
  EXPECT_EQ(linked, (PayloadFile{1, 12, storage::Sha256("PACK content")}));
  EXPECT_EQ(staged->files(), (std::vector<PayloadFile>{bytes, linked}));
  EXPECT_THAT(store_.Read(id_, linked), testing::IsOkAndHolds(std::string("PACK content")));
  EXPECT_OK(store_.Verify(id_, bytes));
}

// Field case C015: content and names are durable before the entry that names them may be committed.
TEST_F(PayloadStoreTest, SealedFilesSurviveAPowerCut) {
  ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));
  ASSERT_OK_AND_ASSIGN(const PayloadFile file, staged->AddBytes(View(std::string(5'000, 'x'))));
  ASSERT_OK(staged->Seal());

  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto after =
        memory_.CrashClone({seed == 0 ? CrashSurvival::kNothing : CrashSurvival::kRandom, seed});
    PayloadStore reopened(after.get());
    EXPECT_OK(reopened.Verify(id_, file)) << seed;
  }
}

// Field case C017.
TEST_F(PayloadStoreTest, NoFailedSyncOfStagingIsTakenForSuccess) {
  for (const FileOperation operation : {FileOperation::kSyncFile, FileOperation::kSyncDirectory}) {
    ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));
    ASSERT_OK(staged->AddBytes("content"));
    fs_.AddRule(FaultOnSync(operation));

    EXPECT_THAT(staged->Seal(), StatusIs(absl::StatusCode::kUnavailable));

    // Final: a second sync would not be believed.
    EXPECT_THAT(staged->Seal(), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(staged->AddBytes("more"), StatusIs(absl::StatusCode::kFailedPrecondition));
    fs_.ClearRules();
    EXPECT_OK(staged->Discard());
  }
}

TEST_F(PayloadStoreTest, DiscardLeavesNothing) {
  const std::string before = memory_.DumpTree();
  ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));
  ASSERT_OK(staged->AddBytes("a"));
  EXPECT_THAT(store_.Create(id_), StatusIs(absl::StatusCode::kAlreadyExists));

  EXPECT_OK(staged->Discard());
  EXPECT_OK(staged->Discard());

  EXPECT_EQ(memory_.DumpTree(), before);
}

// WAL-01
TEST_F(PayloadStoreTest, ListsTransactionsAndIgnoresOtherNames) {
  ASSERT_OK(store_.Create(IdOf<TransactionId>(2)));
  ASSERT_OK(store_.Create(id_));
  ASSERT_OK(memory_.MakeDirectory(StorePath::Literal("payload/poisoned")));

  EXPECT_THAT(store_.List(),
              testing::IsOkAndHolds(std::vector<TransactionId>{id_, IdOf<TransactionId>(2)}));
  EXPECT_OK(store_.Remove(id_));
  EXPECT_OK(store_.Remove(id_));
  EXPECT_THAT(store_.List(),
              testing::IsOkAndHolds(std::vector<TransactionId>{IdOf<TransactionId>(2)}));
}

TEST_F(PayloadStoreTest, NoticesDamagedAndMissingFiles) {
  ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));
  ASSERT_OK_AND_ASSIGN(const PayloadFile file, staged->AddBytes("0123456789"));
  ASSERT_OK(memory_.FlipBit(store_.path(id_, 0), 4, 2));

  EXPECT_THAT(store_.Verify(id_, file), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(store_.Read(id_, file), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(store_.Verify(id_, PayloadFile{7, 1, file.sha256}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PayloadStoreTest, NothingStagedNeedsNoSync) {
  ASSERT_OK_AND_ASSIGN(const auto staged, store_.Create(id_));
  const int64_t syncs = fs_.CallCount(FileOperation::kSyncDirectory);

  ASSERT_OK(staged->Seal());

  EXPECT_EQ(fs_.CallCount(FileOperation::kSyncDirectory), syncs);
}

}  // namespace
}  // namespace repotxn::wal
