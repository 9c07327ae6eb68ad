#include <array>
#include <atomic>
#include <thread>

#include "tests/support/notification.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

// Many writers of one ref. What is committed does not depend on the intent queue; who has to work twice does.
class HotRefTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(World::Options()); }
  void Open(const txn::StoreOptions& options) {
    world_.Drop();
    options_ = options;
    ASSERT_THAT(world_.Open(options), IsOk());
    if (id_.IsZero()) id_ = world_.Create("r");
  }
  absl::Status Stage(Transaction& txn, int n) {
    return txn.UpdateRef(id_, {.name = Branch("hot"), .expected = {}, .value = World::At(n)});
  }
  // One step on from what is there: counted in a file, and shown by the ref.
  absl::Status Step(Transaction& txn) {
    const auto file = txn.ReadFile(id_, "info/count");
    if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
    const int count = file.ok() ? std::stoi(file->content) : 0;
    REPOTXN_RETURN_IF_ERROR(txn.PutFile(id_, "info/count", {absl::StrCat(count + 1), 0644}));
    return Stage(txn, (count + 1) % 10);
  }
  txn::StoreMetrics Metrics() { return world_.store().Metrics(); }

  World world_;
  txn::StoreOptions options_;
  RepositoryId id_;
};

// C144: each of 64 gets on, and every step is taken once.
TEST_F(HotRefTest, LetsEveryOneOfSixtyFourWritersGetOn) {
  constexpr int kWriters = 64, kSteps = 4;
  std::array<std::atomic<int>, kWriters> done{};
  std::atomic<int> exhausted{0};
  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int n = 0; n < kSteps; ++n) {
        CommitResult result;
        do {
          result = world_.store().Run({.begin = {}, .retries_max = 8}, [&](Transaction& txn) { return Step(txn); });
          if (absl::IsAborted(result.status)) exhausted.fetch_add(1);
        } while (absl::IsAborted(result.status));
        ASSERT_TRUE(result.committed()) << result.status;
        done[writer].fetch_add(1);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();

  for (const std::atomic<int>& steps : done) EXPECT_EQ(steps.load(), kSteps);
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "info/count")->content, absl::StrCat(kWriters * kSteps));
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("hot"))), absl::StrCat("c", kWriters * kSteps % 10));
  if (options_.intent_queue) {
    EXPECT_EQ(exhausted.load(), 0);
  }
  EXPECT_EQ(Metrics().writers_in_line, 0);
}

// Who has lost once has his turn before who comes later: that one is put off, which costs no retry.
TEST_F(HotRefTest, PutsOffWhoComesWhileAnotherHasItsTurn) {
  txn::StoreOptions options = World::Options();
  options.intent_queue = true;
  Open(options);
  Notification has_turn, go_on;
  CommitResult first, second;
  std::thread holder([&] {
    int plays = 0;
    first = world_.store().Run({.begin = {}, .retries_max = 1}, [&](Transaction& txn) -> absl::Status {
      if (++plays == 1) {
        REPOTXN_RETURN_IF_ERROR(world_.Set(id_, Branch("hot"), World::At(1)).status);
      } else {
        has_turn.Notify();
        go_on.WaitForNotification();
      }
      return Stage(txn, 2);
    });
  });
  has_turn.WaitForNotification();
  std::thread late([&] {
    second = world_.store().Run({.begin = {}, .retries_max = 0}, [&](Transaction& txn) { return Stage(txn, 3); });
  });
  while (Metrics().writers_in_line < 2) std::this_thread::yield();
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("hot"))), "c1");

  go_on.Notify();
  holder.join();
  late.join();

  EXPECT_TRUE(first.committed()) << first.status;
  EXPECT_EQ(first.attempts, 2);
  EXPECT_TRUE(second.committed()) << second.status;
  EXPECT_EQ(second.attempts, 2);
  EXPECT_LT(first.lsn, second.lsn);
  EXPECT_EQ(Metrics().conflicts, 1);
  EXPECT_EQ(Metrics().retries, 1);
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("hot"))), "c3");
}

// B10: who reads all refs loses against every push. Once it has lost, pushes let it have its turn, and then go on.
TEST_F(HotRefTest, WhoNeedsAWholeRepositoryHasHisTurnHoweverManyWriteInIt) {
  txn::StoreOptions options = World::Options();
  options.intent_queue = true;
  Open(options);
  Notification has_turn, go_on;
  CommitResult whole;
  CommitResult pushes[3];
  std::thread reader([&] {
    int plays = 0;
    whole = world_.store().Run({.begin = {}, .retries_max = 1}, [&](Transaction& txn) -> absl::Status {
      REPOTXN_RETURN_IF_ERROR(txn.ListRefs(id_, "").status());
      if (++plays == 1) {
        REPOTXN_RETURN_IF_ERROR(world_.Set(id_, Branch("some"), World::At(1)).status);
      } else {
        has_turn.Notify();
        go_on.WaitForNotification();
      }
      return txn.PutFile(id_, "info/refs-seen", {"x", 0644});
    });
  });
  has_turn.WaitForNotification();
  std::vector<std::thread> pushers;
  for (int n = 0; n < 3; ++n) {
    pushers.emplace_back([&, n] {
      pushes[n] = world_.store().Run({.begin = {}, .retries_max = 0}, [&](Transaction& txn) {
        return txn.UpdateRef(id_, {.name = Branch(absl::StrCat("b", n)), .expected = {}, .value = World::At(2)});
      });
    });
  }
  while (Metrics().writers_in_line < 4) std::this_thread::yield();
  go_on.Notify();
  reader.join();
  for (std::thread& pusher : pushers) pusher.join();
  EXPECT_TRUE(whole.committed()) << whole.status;
  EXPECT_EQ(whole.attempts, 2);
  for (const CommitResult& push : pushes) {
    EXPECT_TRUE(push.committed()) << push.status;
    EXPECT_LT(whole.lsn, push.lsn);
  }
  EXPECT_EQ(Metrics().writers_in_line, 0);
}

// A holder that hangs stops nobody: the line is for speed alone.
TEST_F(HotRefTest, GoesOnWithoutATurnWhenItsHolderHangs) {
  txn::StoreOptions options = World::Options();
  options.intent_queue = true;
  Open(options);
  Notification has_turn, go_on;
  CommitResult first, second;
  std::thread holder([&] {
    int plays = 0;
    first = world_.store().Run({.begin = {}, .retries_max = 2}, [&](Transaction& txn) -> absl::Status {
      if (++plays == 1) REPOTXN_RETURN_IF_ERROR(world_.Set(id_, Branch("hot"), World::At(1)).status);
      if (plays == 2) {
        has_turn.Notify();
        go_on.WaitForNotification();
      }
      return Stage(txn, 2);
    });
  });
  has_turn.WaitForNotification();
  std::thread late([&] {
    second = world_.store().Run({.begin = {}, .retries_max = 0}, [&](Transaction& txn) { return Stage(txn, 3); });
  });
  while (Metrics().writers_in_line < 2) std::this_thread::yield();
  world_.clock().Advance(absl::Minutes(1));
  late.join();

  EXPECT_TRUE(second.committed()) << second.status;
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("hot"))), "c3");
  go_on.Notify();
  holder.join();
  EXPECT_TRUE(first.committed()) << first.status;
  EXPECT_EQ(World::Name(world_.Read(id_, Branch("hot"))), "c2");
}

}  // namespace
}  // namespace repotxn::testing
