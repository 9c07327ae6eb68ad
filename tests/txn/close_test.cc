// The end of a store: what Close() leaves, lets go of, and refuses from then on.
#include "tests/support/fault_file_system.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::Transaction;

class StoreCloseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(1)).committed());
  }
  // Opens the same root a second time, beside the store that is there.
  absl::StatusOr<std::unique_ptr<txn::Store>> OpenAnother() {
    return txn::Store::Open({&world_.fs(), &world_.clock(), &other_random_}, World::Options());
  }

  World world_;
  SeededRandom other_random_{2};
  RepositoryId id_;
};

TEST_F(StoreCloseTest, LetsGoOfTheLockBehindTheCleanMarker) {
  ASSERT_THAT(OpenAnother(), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_THAT(world_.store().Close(), IsOk());

  const auto another = OpenAnother();

  ASSERT_THAT(another, IsOk());
  EXPECT_TRUE((*another)->recovery_report().was_clean);
  // The closed one may go whenever its owner likes.
  world_.Drop();
  EXPECT_THAT((*another)->Health(), IsOk());
  EXPECT_THAT((*another)->Close(), IsOk());
}

TEST_F(StoreCloseTest, KeepsTheLockUntilItGoesWhenAStepFails) {
  ASSERT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  FaultFileSystem fault(&world_.fs());
  ASSERT_THAT(world_.OpenOn(&fault), IsOk());
  ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(2)).committed());
  fault.AddRule({.operation = FileOperation::kSyncAll, .status = absl::UnavailableError("sync failed")});

  ASSERT_THAT(world_.store().Close(), StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_THAT(OpenAnother(), StatusIs(absl::StatusCode::kUnavailable));
  world_.Drop();
  const auto another = OpenAnother();
  ASSERT_THAT(another, IsOk());
  EXPECT_FALSE((*another)->recovery_report().was_clean);
}

TEST_F(StoreCloseTest, TouchesNothingAfterwardsWhateverIsAsked) {
  auto writing = world_.Begin();
  ASSERT_THAT(writing->UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(2)}), IsOk());
  ASSERT_THAT(writing->PutFile(id_, "info/large", {std::string(100'000, 'x'), 0644}), IsOk());
  auto reading = world_.Begin();
  ASSERT_THAT(world_.store().Close(), IsOk());
  const std::string closed = world_.fs().DumpTree();
  const int64_t changes = world_.fs().mutation_count();
  const auto is_refused = StatusIs(absl::StatusCode::kUnavailable);

  EXPECT_THAT(world_.store().Begin({}), is_refused);
  EXPECT_THAT(world_.store().Run({}, [](Transaction&) { return absl::OkStatus(); }).status, is_refused);
  EXPECT_THAT(reading->OpenRepository(Path("r")), is_refused);
  const txn::CommitResult late = writing->Commit();
  EXPECT_EQ(late.outcome, txn::CommitOutcome::kNotCommitted);
  EXPECT_THAT(late.status, is_refused);
  EXPECT_THAT(world_.store().ListRepositories("", "", 10), is_refused);
  EXPECT_THAT(world_.store().ReadSnapshot(Path("r")), is_refused);
  EXPECT_THAT(world_.store().StageObjects(world_.store().NewTransactionId(), Path("r"), ObjectFormat::kSha1),
              is_refused);
  EXPECT_THAT(world_.store().Materialize(), is_refused);
  EXPECT_THAT(world_.store().Checkpoint(), is_refused);
  EXPECT_THAT(world_.store().RunBackgroundWork(), is_refused);
  EXPECT_THAT(world_.store().OutcomeOf(late.transaction_id).status, is_refused);
  EXPECT_THAT(world_.store().Close(), IsOk());
  writing.reset();
  reading.reset();

  EXPECT_EQ(world_.fs().DumpTree(), closed);
  EXPECT_EQ(world_.fs().mutation_count(), changes);
}

}  // namespace
}  // namespace repotxn::testing
