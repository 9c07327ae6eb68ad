#include "txn/publisher.h"

#include <thread>

#include "tests/txn/world.h"
#include "txn/committer.h"
#include "wal/local_replicator.h"
#include "wal/manifest_codec.h"

namespace repotxn::testing {
namespace {

// A publisher over a real queue, whose entries become durable when the test says so.
class PublisherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    wal::LocalReplicator::Options options;
    options.segment_bytes = 64 << 10;
    ASSERT_OK_AND_ASSIGN(replicator_, wal::LocalReplicator::Create(&fs_, wal::LogPosition{}, options));
    ASSERT_OK_AND_ASSIGN(const wal::LogTail tail, replicator_->Acquire());
    ASSERT_THAT(replicator_->PrepareSpace(), IsOk());
    queue_ = std::make_unique<wal::LogQueue>(replicator_.get(), tail, wal::LogQueue::Options());
    publisher_ = std::make_unique<txn::Publisher>(wal::LogPosition{}, [this](const txn::PendingCommit& commit) {
      EXPECT_LT(publisher_->committed_lsn(), commit.ticket.lsn());
      published_.push_back(commit.ticket.lsn().value());
    });
  }
  // A reserved and durable entry that the publisher does not know to be durable yet.
  std::unique_ptr<txn::PendingCommit> Reserve(bool has_directory_work) {
    auto commit = std::make_unique<txn::PendingCommit>();
    wal::Manifest manifest;
    manifest.transaction_id = storage::NewId<TransactionId>(random_);
    commit->prepared = *wal::PrepareEntry(manifest);
    std::string dropped;
    EXPECT_THAT(queue_->Reserve(&commit->prepared, &dropped, &commit->ticket), IsOk());
    commit->is_ready = !has_directory_work;
    publisher_->Register(commit.get());
    absl::Status status;
    EXPECT_EQ(queue_->AwaitDurable(&commit->ticket, &status), wal::AppendOutcome::kCommitted);
    return commit;
  }

  MemoryFileSystem fs_;
  SeededRandom random_{1};
  std::unique_ptr<wal::LocalReplicator> replicator_;
  std::unique_ptr<wal::LogQueue> queue_;
  std::unique_ptr<txn::Publisher> publisher_;
  std::vector<uint64_t> published_;
};

TEST_F(PublisherTest, PublishesWhatIsDurableAndNothingElse) {
  const auto first = Reserve(false), second = Reserve(false);

  publisher_->OnDurable(wal::Lsn(1));

  EXPECT_EQ(published_, (std::vector<uint64_t>{1}));
  EXPECT_EQ(publisher_->committed_lsn(), wal::Lsn(1));
  EXPECT_TRUE(publisher_->AwaitPublished(first.get()));
  storage::CancellationSource source;
  source.request_stop();
  storage::WaitLimit cancelled;
  cancelled.cancellation = source.get_token();
  EXPECT_FALSE(publisher_->AwaitCommitted(wal::Lsn(2), cancelled));
  publisher_->OnDurable(wal::Lsn(2));
  EXPECT_TRUE(publisher_->AwaitPublished(second.get()));
  EXPECT_EQ(publisher_->committed_position().chain, second->ticket.position().chain);
}

// A14: directory work under way holds back everything behind it, and its end lets all of it out in order.
TEST_F(PublisherTest, KeepsTheOrderWhileDirectoryWorkIsUnderWay) {
  const auto first = Reserve(true), second = Reserve(false), third = Reserve(false);
  publisher_->OnDurable(wal::Lsn(3));
  EXPECT_EQ(published_, std::vector<uint64_t>{});

  std::thread waiter([&] { EXPECT_TRUE(publisher_->AwaitPublished(third.get())); });
  EXPECT_TRUE(publisher_->AwaitPublished(first.get()));
  waiter.join();

  EXPECT_EQ(published_, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(publisher_->AwaitPublished(second.get()));
}

TEST_F(PublisherTest, PublishesNothingAfterAFailureAndWakesWhoeverWaits) {
  const auto first = Reserve(true), second = Reserve(false);
  publisher_->OnDurable(wal::Lsn(2));
  std::thread waiter([&] { EXPECT_FALSE(publisher_->AwaitPublished(second.get())); });
  std::thread other([&] { EXPECT_FALSE(publisher_->AwaitCommitted(wal::Lsn(2), {})); });

  publisher_->Fail();

  waiter.join();
  other.join();
  EXPECT_FALSE(publisher_->AwaitPublished(first.get()));
  EXPECT_EQ(published_, std::vector<uint64_t>{});
  EXPECT_EQ(publisher_->committed_lsn(), wal::Lsn::Zero());
}

// B11
TEST_F(PublisherTest, LetsGoWhoeverWaitsForAnLsnThatTheLogWillNotGive) {
  std::thread waiter([&] { EXPECT_FALSE(publisher_->AwaitCommitted(wal::Lsn(1), {})); });

  publisher_->NoteLogFailed();

  waiter.join();
}

}  // namespace
}  // namespace repotxn::testing
