#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

// Steps of a body that reach outside: each is taken once, however often the body is played.
class RunOnceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }
  // A write of the same ref by somebody else: the body that is under way will lose.
  void Disturb(int n) { ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(n)).committed()); }
  absl::Status Stage(Transaction& txn, int n) {
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(n)});
  }

  World world_;
  RepositoryId id_;
};

// B23
TEST_F(RunOnceTest, TakesAStepOnceHoweverOftenTheBodyIsPlayed) {
  int played = 0, asked = 0;
  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    ++played;
    const auto answer = txn.RunOnce("policy", [&]() -> absl::StatusOr<int> { return 5 + asked++; });
    EXPECT_EQ(*answer, 5);
    if (played < 3) Disturb(played);
    return Stage(txn, *answer);
  });

  EXPECT_TRUE(result.committed()) << result.status;
  EXPECT_EQ(played, 3);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("main"))), "c5");
}

// B23
TEST_F(RunOnceTest, RemembersAnErrorLikeAnyOtherResult) {
  int asked = 0;
  std::vector<std::string> seen;
  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    const absl::Status answer =
        txn.RunOnce("hook", [&] { return absl::PermissionDeniedError(absl::StrCat("no ", ++asked)); });
    seen.emplace_back(answer.message());
    if (seen.size() == 1) {
      Disturb(1);
      return Stage(txn, 2);
    }
    return answer;
  });

  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(seen, (std::vector<std::string>{"no 1", "no 1"}));
}

TEST_F(RunOnceTest, KeepsStepsApartByNameAndCallsApartByRun) {
  int asked = 0;
  const auto ask = [&] { return absl::StatusOr<int>(++asked); };
  for (int call = 0; call < 2; ++call) {
    const CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
      EXPECT_EQ(*txn.RunOnce("a", ask), 2 * call + 1);
      EXPECT_EQ(*txn.RunOnce("b", ask), 2 * call + 2);
      EXPECT_EQ(*txn.RunOnce("a", ask), 2 * call + 1);
      return absl::OkStatus();
    });
    EXPECT_TRUE(result.committed());
  }
}

TEST_F(RunOnceTest, TakesStepsWithinSteps) {
  auto txn = world_.Begin();
  const auto outer = txn->RunOnce("outer", [&]() -> absl::StatusOr<std::string> {
    const auto inner = txn->RunOnce("inner", [] { return absl::StatusOr<std::string>("in"); });
    return absl::StrCat("out of ", *inner);
  });

  EXPECT_EQ(*outer, "out of in");
  EXPECT_EQ(*txn->RunOnce("inner", [] { return absl::StatusOr<std::string>("again"); }), "in");
}

TEST_F(RunOnceTest, RefusesAResultOfAnotherTypeAndATransactionThatHasEnded) {
  auto txn = world_.Begin();
  ASSERT_EQ(*txn->RunOnce("step", [] { return absl::StatusOr<int>(1); }), 1);

  EXPECT_THAT(txn->RunOnce("step", [] { return absl::StatusOr<std::string>("1"); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  txn->Abort();
  bool was_run = false;
  EXPECT_THAT(txn->RunOnce("other",
                           [&] {
                             was_run = true;
                             return absl::OkStatus();
                           }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(was_run);
}

}  // namespace
}  // namespace repotxn::testing
