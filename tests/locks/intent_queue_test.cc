#include "locks/intent_queue.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/scripted_clock.h"

namespace repotxn::testing {
namespace {

using locks::Footprint;
using locks::IntentQueue;
using Claim = locks::IntentQueue::Claim;
using locks::Lock;
using locks::LockKey;

LockKey Key(absl::string_view name) { return LockKey::Ref(RepositoryId(), absl::StrCat("refs/heads/", name)); }

// Lines of writers, by threads that come one after the other: each counts as having come when the queue counts it.
class IntentQueueTest : public ::testing::Test {
 protected:
  void TearDown() override { Join(); }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  static std::vector<Claim> Claims(const std::vector<LockKey>& keys, bool passes = false) {
    std::vector<Claim> claims;
    for (const LockKey& key : keys) claims.push_back({key, passes});
    return claims;
  }
  IntentQueue::Turn TakeTurn(const std::vector<LockKey>& keys, bool passes = false) {
    return queue_.LineUp(Claims(keys, passes), limit_, absl::Hours(1));
  }
  void Come(const std::string& name, std::vector<LockKey> keys, storage::CancellationToken cancellation = {},
            absl::Duration patience = absl::Hours(1), bool passes = false) {
    const int before = queue_.size();
    storage::WaitLimit limit = limit_;
    limit.cancellation = std::move(cancellation);
    threads_.emplace_back([this, name, keys, limit, patience, passes] {
      const IntentQueue::Turn turn = queue_.LineUp(Claims(keys, passes), limit, patience);
      const storage::MutexLock lock(&mutex_);
      absl::StrAppend(&order_, order_.empty() ? "" : " ", name, turn.is_held() ? "" : ":none");
    });
    while (queue_.size() == before) std::this_thread::yield();
  }
  void AwaitOrder(const std::string& order) {
    while (Order() != order) std::this_thread::yield();
  }
  std::string Order() {
    const storage::MutexLock lock(&mutex_);
    return order_;
  }

  ScriptedClock clock_;
  IntentQueue queue_;
  storage::WaitLimit limit_{.clock = &clock_};
  storage::Mutex mutex_{storage::MutexRank::kInnermost};
  std::string order_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

TEST_F(IntentQueueTest, GivesTurnsInTheOrderOfComing) {
  IntentQueue::Turn first = TakeTurn({Key("a")});
  ASSERT_TRUE(first.is_held());
  for (const char* name : {"1", "2", "3", "4"}) Come(name, {Key("a")});
  EXPECT_EQ(Order(), "");
  first.GiveUp();
  Join();
  EXPECT_EQ(Order(), "1 2 3 4");
  EXPECT_EQ(queue_.size(), 0);
}

TEST_F(IntentQueueTest, LetsWritersOfOtherKeysPass) {
  const IntentQueue::Turn first = TakeTurn({Key("a")});
  threads_.emplace_back([this] { EXPECT_TRUE(TakeTurn({Key("b"), Key("c")}).is_held()); });
}

// A transaction inside the body of another, on the same key, would wait for itself.
TEST_F(IntentQueueTest, DoesNotLetAThreadWaitForItself) {
  IntentQueue::Turn first = TakeTurn({Key("a")});
  EXPECT_FALSE(TakeTurn({Key("a")}).is_held());
  first.GiveUp();
  EXPECT_TRUE(TakeTurn({Key("a")}).is_held());
}

// B12
TEST_F(IntentQueueTest, PutsAnyTwoInTheSameOrderInAllTheirLines) {
  IntentQueue::Turn first = TakeTurn({Key("a"), Key("b")});
  Come("1", {Key("b"), Key("a")});
  Come("2", {Key("a"), Key("b"), Key("a")});
  Come("3", {Key("b")});
  first.GiveUp();
  Join();
  EXPECT_EQ(Order(), "1 2 3");
}

TEST_F(IntentQueueTest, ClosesTheLineBehindOneWhoIsCancelledOrLosesPatience) {
  IntentQueue::Turn first = TakeTurn({Key("a")});
  storage::CancellationSource source;
  Come("cancelled", {Key("a"), Key("b")}, source.get_token());
  Come("impatient", {Key("a")}, {}, absl::Seconds(1));
  Come("last", {Key("a"), Key("b")});
  source.request_stop();
  AwaitOrder("cancelled:none");
  clock_.Advance(absl::Seconds(2));
  AwaitOrder("cancelled:none impatient:none");
  first.GiveUp();
  Join();
  EXPECT_EQ(Order(), "cancelled:none impatient:none last");
}

TEST_F(IntentQueueTest, GivesTheTurnOnWhenItsHolderIsGone) {
  {
    IntentQueue::Turn turn = TakeTurn({Key("a")});
    IntentQueue::Turn moved = std::move(turn);
    EXPECT_TRUE(moved.is_held());
    Come("next", {Key("a")});
  }
  Join();
  EXPECT_EQ(Order(), "next");
}

TEST_F(IntentQueueTest, NamesTheKeysThatAreWrittenAndHaveALine) {
  const Footprint footprint({Lock::Exclusive(Key("a")), Lock::Shared(Key("b")), Lock::Exclusive(Key("c"))});
  EXPECT_TRUE(queue_.Contended(footprint).empty());
  const IntentQueue::Turn turn = TakeTurn({Key("a"), Key("b")});
  EXPECT_EQ(queue_.Contended(footprint), Claims({Key("a")}));
}

// B10. Whoever needs a whole repository stands before its root; the others go past side by side when he has had his turn.
TEST_F(IntentQueueTest, LetsThoseWhoOnlyPassGoOnSideBySide) {
  const LockKey root = LockKey::Root(RepositoryId());
  const Footprint push({Lock::Passed(root), Lock::Exclusive(Key("a"))});
  IntentQueue::Turn whole = TakeTurn({root});
  EXPECT_EQ(queue_.Contended(push), Claims({root}, true));
  for (const char* name : {"p", "p", "p"}) Come(name, {root}, {}, absl::Hours(1), /*passes=*/true);
  Come("whole", {root});
  Come("late", {root}, {}, absl::Hours(1), /*passes=*/true);
  EXPECT_EQ(Order(), "");
  whole.GiveUp();
  Join();
  EXPECT_EQ(Order(), "p p p whole late");
  // A line of passers is none.
  const IntentQueue::Turn passing = TakeTurn({root}, true);
  EXPECT_TRUE(passing.is_held());
  EXPECT_TRUE(queue_.Contended(push).empty());
}

TEST_F(IntentQueueTest, OfTwoClaimsOfOneKeyTheStrongerCounts) {
  const LockKey root = LockKey::Root(RepositoryId());
  const IntentQueue::Turn turn =
      queue_.LineUp({{root, true}, {Key("a"), false}, {root, false}}, limit_, absl::Hours(1));
  EXPECT_TRUE(turn.is_held());
  EXPECT_EQ(queue_.Contended(Footprint({Lock::Passed(root)})), Claims({root}, true));
}

TEST_F(IntentQueueTest, MakesNoLineForWhatEverybodyPasses) {
  const RepositoryId id;
  const LockKey root = LockKey::Root(id);
  EXPECT_EQ(IntentQueue::LineFor(Key("a")), Claim{Key("a")});
  EXPECT_EQ(IntentQueue::LineFor(LockKey::Entry(id, "info/f")), (Claim{LockKey::Entry(id, "info/f")}));
  EXPECT_EQ(IntentQueue::LineFor(LockKey::RefPrefix(id, "refs/")), Claim{root});
  EXPECT_EQ(IntentQueue::LineFor(LockKey::Children(id, "objects/pack")), Claim{root});
  EXPECT_EQ(IntentQueue::LineFor(root), std::nullopt);
  EXPECT_EQ(IntentQueue::LineFor(LockKey::PathEntry("group")), std::nullopt);
  EXPECT_FALSE(TakeTurn({}).is_held());
}

}  // namespace
}  // namespace repotxn::testing
