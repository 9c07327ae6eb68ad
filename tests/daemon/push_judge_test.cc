// What a push that lost is told: forced races, over an in-memory store.
#include "daemon/push_judge.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/world.h"

namespace repotxn::daemon {
namespace {

using ::testing::HasSubstr;
using testing::Branch;
using testing::IsOk;
using testing::MakeCommit;
using testing::World;

class PushJudgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(1)).committed());
    request_.commands = {{MakeCommit(1).oid, MakeCommit(2).oid, "refs/heads/main"},
                         {ObjectId::Zero(ObjectFormat::kSha1), MakeCommit(2).oid, "refs/heads/mine"}};
  }
  // Runs the push as one transaction; `rival` commits between the first attempt's reads and its commit.
  txn::CommitResult Push(const std::function<void()>& rival) {
    const PushJudge judge(request_, &changes_);
    int attempts = 0;
    return world_.store().Run({}, [&](txn::Transaction& txn) -> absl::Status {
      report_ = PushReport();
      for (const PushCommand& command : request_.commands) report_.refs.push_back({command.name, "", ""});
      REPOTXN_RETURN_IF_ERROR(judge.Judge(txn, id_, PushPolicy(), &report_));
      REPOTXN_RETURN_IF_ERROR(judge.Stage(txn, id_, &report_));
      if (++attempts == 1) rival();
      return absl::OkStatus();
    });
  }

  World world_;
  RepositoryId id_;
  RecentChanges changes_;  // has seen nobody
  PushRequest request_;
  PushReport report_;
};

// Goal: the refused ref is told by which transaction and at which LSN it was changed, from the library's verdict alone.
TEST_F(PushJudgeTest, NamesTheRivalOfALostRaceAndCommitsTheOtherRef) {
  txn::CommitResult rival;
  const txn::CommitResult pushed = Push([&] { rival = world_.Set(id_, Branch("main"), World::At(3)); });

  ASSERT_TRUE(rival.committed());
  EXPECT_TRUE(pushed.committed()) << pushed.status;
  const std::string by = absl::StrCat("changed by transaction ", rival.transaction_id.ToHex(), " at LSN ",
                                      rival.lsn.value());
  EXPECT_EQ(report_.refs[0].refusal, absl::StrCat("failed to update ref: ", by));
  EXPECT_THAT(report_.refs[0].detail, HasSubstr(absl::StrCat("refs/heads/main ", by, ": it is at ",
                                                             MakeCommit(3).oid.ToHex())));
  EXPECT_TRUE(report_.refs[1].ok());
  EXPECT_EQ(world_.Refs(id_), "HEAD ref: refs/heads/main\nrefs/heads/main c3\nrefs/heads/mine c2\n");
}

// Goal: the verdict names one ref; another that does not hold is never laid at that rival's door.
TEST_F(PushJudgeTest, NamesNoRivalOfARefThatTheVerdictIsNotAbout) {
  request_.commands[1].old_value = MakeCommit(7).oid;  // was never true
  const txn::CommitResult pushed = Push([&] {
    ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(3)).committed());
  });

  EXPECT_TRUE(pushed.committed()) << pushed.status;
  EXPECT_THAT(report_.refs[0].refusal, HasSubstr("changed by transaction"));
  EXPECT_THAT(report_.refs[1].refusal, HasSubstr("failed to update ref: changed before LSN"));
  EXPECT_THAT(report_.refs[1].detail, HasSubstr("it is absent"));
}

}  // namespace
}  // namespace repotxn::daemon
