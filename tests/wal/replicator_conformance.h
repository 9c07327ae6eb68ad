// The contract of wal/replicator.h as tests, for every implementation.
//
// An implementation gives a factory: a world that can be opened, and opened again as after a crash.
#ifndef REPOTXN_TESTS_WAL_REPLICATOR_CONFORMANCE_H_
#define REPOTXN_TESTS_WAL_REPLICATOR_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <vector>

#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {

class ReplicatorWorld {
 public:
  virtual ~ReplicatorWorld() = default;
  // A replicator that has not acquired anything yet. The one before is gone.
  virtual std::unique_ptr<Replicator> Open() = 0;
  // The machine stops: what was not durable is lost.
  virtual void Crash() = 0;
  // Makes the next group fail while it is on its way.
  virtual void FailNextGroup() = 0;
  virtual void Heal() = 0;
};
using ReplicatorWorldFactory = std::function<std::unique_ptr<ReplicatorWorld>()>;

class ReplicatorConformance : public ::testing::TestWithParam<ReplicatorWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam()();
    Reopen();
  }
  void Reopen() {
    replicator_ = nullptr;
    replicator_ = world_->Open();
    ASSERT_OK_AND_ASSIGN(const LogTail tail, replicator_->Acquire());
    tail_ = tail;
  }
  AppendOutcome Append(size_t entries) {
    auto run = SealRun({tail_.last, tail_.chain}, entries, tail_.epoch);
    const LogPosition last =
        run.empty() ? LogPosition{tail_.last, tail_.chain} : PositionOf(run.back());
    const AppendOutcome outcome = AppendGroup(replicator_.get(), std::move(run));
    if (outcome == AppendOutcome::kCommitted) {
      tail_.last = last.lsn;
      tail_.chain = last.chain;
    }
    return outcome;
  }
  std::vector<uint64_t> Numbers() {
    const auto entries = ReadAll(replicator_.get(), Lsn(1));
    EXPECT_OK(entries);
    return NumbersOf(*entries, Lsn(1));
  }

  std::unique_ptr<ReplicatorWorld> world_;
  std::unique_ptr<Replicator> replicator_;
  LogTail tail_;
};

// C1, C2.
TEST_P(ReplicatorConformance, CommittedEntriesSurviveACrashUnderTheirOwnLsns) {
  ASSERT_EQ(Append(2), AppendOutcome::kCommitted);
  ASSERT_EQ(Append(0), AppendOutcome::kCommitted);
  ASSERT_EQ(Append(1), AppendOutcome::kCommitted);
  const LogTail before = tail_;

  world_->Crash();
  Reopen();

  EXPECT_EQ(Numbers(), Range(1, 3));
  EXPECT_EQ(tail_.last, before.last);
  EXPECT_EQ(tail_.chain, before.chain);
  EXPECT_GT(tail_.epoch, before.epoch);
}

// C3.
TEST_P(ReplicatorConformance, UnknownIsResolvedAfterRecoveryAndNeverRetried) {
  ASSERT_EQ(Append(1), AppendOutcome::kCommitted);
  world_->FailNextGroup();

  EXPECT_EQ(Append(1), AppendOutcome::kUnknown);
  ASSERT_OK_AND_ASSIGN(const Resolution now, replicator_->Resolve(IdOf<TransactionId>(2)));
  EXPECT_EQ(now.state, ProposalState::kUnknown);
  world_->Heal();
  EXPECT_EQ(Append(1), AppendOutcome::kNotCommitted);
  EXPECT_THAT(replicator_->ReserveSpace(100), StatusIs(absl::StatusCode::kUnavailable));

  world_->Crash();
  Reopen();
  ASSERT_OK_AND_ASSIGN(const Resolution first, replicator_->Resolve(IdOf<TransactionId>(1)));
  EXPECT_EQ(first.state, ProposalState::kCommitted);
  EXPECT_EQ(first.lsn, Lsn(1));
  ASSERT_OK_AND_ASSIGN(const Resolution second, replicator_->Resolve(IdOf<TransactionId>(2)));
  EXPECT_EQ(second.state == ProposalState::kCommitted, Numbers() == Range(1, 2));
  EXPECT_NE(second.state, ProposalState::kUnknown);
}

// C4.
TEST_P(ReplicatorConformance, NothingIsAppendedAfterRelease) {
  ASSERT_OK(replicator_->Release());

  EXPECT_EQ(Append(1), AppendOutcome::kNotCommitted);
  EXPECT_THAT(replicator_->ReadBarrier(), StatusIs(absl::StatusCode::kUnavailable));
}

// C6.
TEST_P(ReplicatorConformance, WhatIsNotCommittedIsInvisible) {
  ASSERT_OK_AND_ASSIGN(const auto cursor, replicator_->Follow(Lsn(1)));
  const auto pending = replicator_->Append(SealRun({tail_.last, tail_.chain}, 1, tail_.epoch));
  EXPECT_THAT(cursor->Next(), StatusIs(absl::StatusCode::kOutOfRange));

  absl::Status status;
  ASSERT_EQ(pending->Wait(&status), AppendOutcome::kCommitted);

  ASSERT_OK_AND_ASSIGN(const DecodedEntry entry, cursor->Next());
  EXPECT_EQ(entry.lsn, Lsn(1));
  EXPECT_THAT(cursor->Next(), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace repotxn::wal

#endif  // REPOTXN_TESTS_WAL_REPLICATOR_CONFORMANCE_H_
