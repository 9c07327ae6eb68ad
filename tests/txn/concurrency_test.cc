#include <atomic>
#include <thread>

#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

constexpr int kWriters = 8;

// Real threads on one store, beside everything that the background does. What must hold at every snapshot is checked by
// readers all the while, what must hold in the end is checked at the end and again after opening anew.
class ConcurrencyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = World::Options();
    options_.loose_refs_max = 4;
    options_.segment_bytes = 1 << 20;
    ASSERT_THAT(world_.Open(options_), IsOk());
    id_ = world_.Create("r");
  }
  absl::Status Stage(Transaction& txn, absl::string_view branch, int n) {
    return txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = World::At(n)});
  }
  // Runs `writer(i)` in threads of their own, and meanwhile `beside` again and again in others.
  static void RunBeside(const std::function<void(int)>& writer, const std::vector<std::function<void()>>& beside) {
    std::atomic<bool> is_over{false};
    std::vector<std::thread> background, writers;
    for (const auto& action : beside) {
      background.emplace_back([&] {
        do {
          action();
        } while (!is_over.load());
      });
    }
    for (int i = 0; i < kWriters; ++i) writers.emplace_back([&, i] { writer(i); });
    for (std::thread& thread : writers) thread.join();
    is_over.store(true);
    for (std::thread& thread : background) thread.join();
  }
  std::vector<std::function<void()>> Background() {
    return {[this] { EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk()); },
            [this] { EXPECT_THAT(world_.store().Checkpoint(), IsOk()); }};
  }

  World world_;
  txn::StoreOptions options_;
  RepositoryId id_;
};

// A14: who was answered sees its own commit at once.
TEST_F(ConcurrencyTest, ShowsEveryWriterItsOwnCommits) {
  RunBeside(
      [&](int writer) {
        const std::string branch = absl::StrCat("own/", writer);
        for (int n = 0; n < 30; ++n) {
          const CommitResult result = world_.Set(id_, Branch(branch), World::At(n % 10));
          ASSERT_TRUE(result.committed()) << result.status;
          EXPECT_EQ(result.attempts, 1);
          auto after = world_.Begin();
          EXPECT_GE(after->snapshot_lsn(), result.lsn);
          EXPECT_EQ(World::Name(*after->ReadRef(id_, Branch(branch))), absl::StrCat("c", n % 10));
        }
      },
      Background());

  const std::string refs = world_.Refs(id_);
  for (int writer = 0; writer < kWriters; ++writer) {
    EXPECT_THAT(refs, ::testing::HasSubstr(absl::StrCat("refs/heads/own/", writer, " c9\n")));
  }
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), refs);
}

// C021, C054
TEST_F(ConcurrencyTest, GivesReadersOneStateAtATime) {
  std::atomic<int> checked{0};
  auto beside = Background();
  beside.push_back([&] {
    auto reader = world_.Begin();
    const auto left = reader->ReadRef(id_, Branch("left")), right = reader->ReadRef(id_, Branch("right"));
    ASSERT_THAT(left, IsOk());
    ASSERT_THAT(right, IsOk());
    EXPECT_TRUE(left->SameAs(*right)) << left->ToString() << " " << right->ToString();
    const auto file = reader->ReadFile(id_, "info/both");
    if (file.ok()) {
      EXPECT_EQ(file->content, World::Name(*left));
    } else {
      EXPECT_TRUE(left->is_absent());
    }
    const auto listed = reader->ListRefs(id_, "refs/heads/");
    ASSERT_THAT(listed, IsOk());
    for (const auto& [name, value] : *listed) EXPECT_TRUE(reader->ReadRef(id_, name)->SameAs(value)) << name.text();
    EXPECT_THAT(reader->Extend().code(), ::testing::AnyOf(absl::StatusCode::kOk, absl::StatusCode::kAborted));
    EXPECT_TRUE(reader->ReadRef(id_, Branch("left"))->SameAs(*reader->ReadRef(id_, Branch("right"))));
    checked.fetch_add(1);
  });

  RunBeside(
      [&](int writer) {
        for (int n = 0; n < 12; ++n) {
          const int value = (writer + n) % 10;
          // Blind writes of one pair: the loser takes the next snapshot and writes again.
          CommitResult result;
          do {
            result = world_.store().Run({}, [&](Transaction& txn) {
              absl::Status status = Stage(txn, "left", value);
              status.Update(Stage(txn, "right", value));
              status.Update(txn.PutFile(id_, "info/both", {absl::StrCat("c", value), 0644}));
              status.Update(Stage(txn, absl::StrCat("extra/", writer, "-", n), value));
              return status;
            });
          } while (absl::IsAborted(result.status));
          ASSERT_TRUE(result.committed()) << result.status;
        }
      },
      beside);

  EXPECT_GT(checked.load(), 0);
  const std::string refs = world_.Refs(id_);
  EXPECT_EQ(world_.Begin()->ListRefs(id_, "refs/heads/extra/")->size(), static_cast<size_t>(kWriters * 12));
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(id_), refs);
}

// Each commit takes the hot ref one step on from the value it read: every step is taken exactly once.
// C024, C144
TEST_F(ConcurrencyTest, TakesEveryStepOfAHotRefOnce) {
  constexpr int kSteps = 10;
  ASSERT_TRUE(world_.Set(id_, Branch("hot"), World::At(0)).committed());
  std::atomic<int> progressed{0};
  RunBeside(
      [&](int) {
        for (int n = 0; n < kSteps; ++n) {
          CommitResult result;
          do {
            result = world_.store().Run({.begin = {}, .retries_max = 10}, [&](Transaction& txn) -> absl::Status {
              REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue now, txn.ReadRef(id_, Branch("hot")));
              const int at = std::stoi(World::Name(now).substr(1));
              const auto file = txn.ReadFile(id_, "info/count");
              if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
              const int count = file.ok() ? std::stoi(file->content) : 0;
              EXPECT_EQ(count % 10, at);
              REPOTXN_RETURN_IF_ERROR(txn.PutFile(id_, "info/count", {absl::StrCat(count + 1), 0644}));
              return Stage(txn, "hot", (at + 1) % 10);
            });
          } while (absl::IsAborted(result.status));
          ASSERT_TRUE(result.committed()) << result.status;
        }
        progressed.fetch_add(1);
      },
      Background());

  EXPECT_EQ(progressed.load(), kWriters);
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "info/count")->content, absl::StrCat(kWriters * kSteps));
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Begin()->ReadFile(id_, "info/count")->content, absl::StrCat(kWriters * kSteps));
}

// CORE-02, LOG-34
TEST_F(ConcurrencyTest, ClosesBesideCommittersAndKeepsWhatItAnswered) {
  std::vector<int> answered(kWriters, -1);
  std::atomic<int> started{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      for (int n = 0;; n = (n + 1) % 10) {
        const CommitResult result = world_.Set(id_, Branch(absl::StrCat("w", i)), World::At(n));
        if (!result.committed()) {
          EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kUnavailable));
          return;
        }
        if (answered[static_cast<size_t>(i)] < 0) started.fetch_add(1);
        answered[static_cast<size_t>(i)] = n;
      }
    });
  }
  while (started.load() < kWriters) std::this_thread::yield();

  EXPECT_THAT(world_.store().Close(), IsOk());

  for (std::thread& thread : writers) thread.join();
  world_.Drop();
  ASSERT_THAT(world_.Open(options_), IsOk());
  EXPECT_TRUE(world_.store().recovery_report().was_clean);
  for (int i = 0; i < kWriters; ++i) {
    EXPECT_EQ(World::Name(world_.Read(id_, Branch(absl::StrCat("w", i)))),
              absl::StrCat("c", answered[static_cast<size_t>(i)]));
  }
}

}  // namespace
}  // namespace repotxn::testing
