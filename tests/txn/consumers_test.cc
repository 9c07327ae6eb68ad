// Goal: a consumer gets every committed entry, in order, at least once, over restarts and crashes; it holds the log back
// as long as it needs it and no longer than its limit; and it stands in nobody's way.
#include "txn/consumers.h"

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "storage/check.h"
#include "tests/support/notification.h"
#include "tests/txn/crash_sweep.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using txn::ConsumedEntry;
using txn::ConsumerInfo;
using txn::NextOptions;
using txn::Transaction;

constexpr NextOptions kNoWait = {.wait = absl::ZeroDuration()};

txn::StoreOptions SmallSegments() {
  txn::StoreOptions options = World::Options();
  options.segment_bytes = 64 << 10;
  return options;
}

// "lsn path ref old>new ..." of each entry.
std::vector<std::string> Texts(const std::vector<ConsumedEntry>& entries) {
  std::vector<std::string> texts;
  for (const ConsumedEntry& entry : entries) {
    std::string text = absl::StrCat(entry.lsn.value());
    for (const txn::ConsumedRefChange& change : entry.ref_changes) {
      absl::StrAppend(&text, " ", change.path, " ", change.ref, " ", World::Name(change.old_value), ">",
                      World::Name(change.new_value));
    }
    texts.push_back(text);
  }
  return texts;
}

class ConsumersTest : public ::testing::Test {
 protected:
  void SetUp() override { OpenWith(SmallSegments()); }
  void OpenWith(const txn::StoreOptions& options) {
    world_.Drop();
    options_ = options;
    world_.owned_fs() = std::make_unique<MemoryFileSystem>();
    ASSERT_THAT(world_.Open(options), IsOk());
    id_ = world_.Create("r");
  }
  void Reopen() {
    ASSERT_THAT(world_.store().Close(), IsOk());
    world_.Drop();
    ASSERT_THAT(world_.Open(options_), IsOk());
  }
  void CrashAndOpen(CrashSurvival survival) {
    world_.CrashAndKeep({survival, 3, 0});
    ASSERT_THAT(world_.Open(options_), IsOk());
  }
  txn::Store& store() { return world_.store(); }
  void Create(absl::string_view name, const txn::ConsumerStart& start = {}) {
    ASSERT_THAT(store().CreateConsumer(name, start), IsOk());
  }
  std::vector<ConsumedEntry> Next(absl::string_view name, const NextOptions& options = kNoWait) {
    auto entries = store().NextEntries(name, options);
    EXPECT_THAT(entries, IsOk());
    return entries.ok() ? *std::move(entries) : std::vector<ConsumedEntry>();
  }
  // Reads and acknowledges whatever there is.
  void CatchUp(absl::string_view name) {
    while (true) {
      const std::vector<ConsumedEntry> entries = Next(name);
      if (entries.empty()) return;
      ASSERT_THAT(store().AcknowledgeEntries(name, entries.back().lsn), IsOk());
    }
  }
  void Set(int n) { ASSERT_TRUE(world_.Set(id_, Branch("main"), World::At(n)).committed()); }
  // Commits an entry of about 12 KiB.
  void CommitLarge() {
    const auto result = store().Run({}, [&](Transaction& txn) {
      return txn.PutFile(id_, "info/large", {std::string(12'000, static_cast<char>('a' + large_ % 26)), 0644});
    });
    ASSERT_TRUE(result.committed()) << result.status;
    ++large_;
    ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  }
  // Several segments of them.
  void FillLog() {
    for (int n = 0; n < 30; ++n) CommitLarge();
  }
  uint64_t Committed() { return store().committed_lsn().value(); }
  bool IsInLog(uint64_t lsn) {
    const absl::Status made = store().CreateConsumer("probe", {.from = wal::Lsn(lsn)});
    if (!made.ok()) return false;
    EXPECT_THAT(store().DropConsumer("probe"), IsOk());
    return true;
  }
  ConsumerInfo Info(absl::string_view name) {
    for (const ConsumerInfo& info : store().ListConsumers()) {
      if (info.name == name) return info;
    }
    return {};
  }

  World world_;
  txn::StoreOptions options_;
  RepositoryId id_;
  int large_ = 0;
};

TEST_F(ConsumersTest, IsToldOnceThatARepositoryWentThoughItIsPurgedLater) {
  using Kind = txn::ConsumedRepositoryChange::Kind;
  Create("c");
  ASSERT_TRUE(store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(id_); }).committed());
  ASSERT_TRUE(store().Run({}, [&](Transaction& txn) { return txn.UndeleteRepository(id_, Path("s")); }).committed());
  ASSERT_TRUE(store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(id_); }).committed());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  ASSERT_FALSE(*storage::Exists(world_.fs(), txn::layout::RepositoryDirectory(id_)));

  std::vector<txn::ConsumedRepositoryChange> changes;
  for (const ConsumedEntry& entry : Next("c")) {
    changes.insert(changes.end(), entry.repository_changes.begin(), entry.repository_changes.end());
  }
  const std::vector<txn::ConsumedRepositoryChange> expected = {
      {Kind::kRemoved, id_, ""}, {Kind::kMoved, id_, "s"}, {Kind::kRemoved, id_, ""}};
  EXPECT_EQ(changes, expected);
}

// LOG-23, C093
TEST_F(ConsumersTest, GetsWhatWasCommittedSinceItWasMade) {
  Set(1);
  const uint64_t before = Committed();
  Create("c");
  EXPECT_THAT(Next("c"), IsEmpty());
  world_.clock().Advance(absl::Seconds(5));

  const auto result = store().Run({}, [&](Transaction& txn) -> absl::Status {
    txn.SetActor("alice", "192.0.2.7");
    txn.SetPushOptions({"ci.skip", "topic=x"});
    REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(id_, {.name = Branch("new"), .expected = {}, .value = World::At(3)}));
    return txn.UpdateRef(id_, {.name = Branch("main"), .expected = {}, .value = World::At(2)});
  });
  ASSERT_TRUE(world_.Set(id_, Branch("main"), refs::RefValue::Absent()).committed());

  const std::vector<ConsumedEntry> entries = Next("c");
  EXPECT_THAT(Texts(entries),
              ElementsAre(absl::StrCat(before + 1, " r refs/heads/main c1>c2 r refs/heads/new absent>c3"),
                          absl::StrCat(before + 2, " r refs/heads/main c2>absent")));
  const ConsumedEntry& first = entries[0];
  EXPECT_EQ(first.lsn, result.lsn);
  EXPECT_EQ(first.transaction_id, result.transaction_id);
  EXPECT_EQ(first.created_at, world_.clock().Now());
  EXPECT_EQ(first.actor, "alice");
  EXPECT_EQ(first.origin, "192.0.2.7");
  EXPECT_THAT(first.push_options, ElementsAre("ci.skip", "topic=x"));
  EXPECT_EQ(first.ref_changes[0].repository, id_);
}

TEST_F(ConsumersTest, IsToldOfCreatedRepositoriesWithThePathsTheirEntryGaveThem) {
  Create("c");

  const RepositoryId made = world_.Create("g/new");

  const std::vector<ConsumedEntry> entries = Next("c");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(entries[0].repository_changes,
              ElementsAre(txn::ConsumedRepositoryChange{txn::ConsumedRepositoryChange::Kind::kCreated, made, "g/new"}));
  for (const txn::ConsumedRefChange& change : entries[0].ref_changes) EXPECT_EQ(change.path, "g/new");
}

// LOG-23
TEST_F(ConsumersTest, StartsAtAnyEntryThatIsStillThere) {
  Set(1);
  Set(2);
  const uint64_t second = Committed();

  Create("old", {.from = wal::Lsn(second - 1)});
  Create("first", {.from = wal::Lsn(1)});

  EXPECT_THAT(Texts(Next("old")), ElementsAre(absl::StrCat(second - 1, " r refs/heads/main absent>c1"),
                                              absl::StrCat(second, " r refs/heads/main c1>c2")));
  EXPECT_EQ(Next("first").size(), second);
  EXPECT_THAT(store().CreateConsumer("x", {.from = wal::Lsn(second + 2)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store().CreateConsumer("x", {.from = wal::Lsn::Zero()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ConsumersTest, RefusesNamesAndBoundsThatMakeNoSense) {
  for (const std::string name : {"", "a b", "a/b", "\xc3\xa9"}) {
    EXPECT_THAT(store().CreateConsumer(name, {}), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(store().CreateConsumer(std::string(65, 'n'), {}), StatusIs(absl::StatusCode::kInvalidArgument));
  Create("c");
  EXPECT_THAT(store().CreateConsumer("c", {}), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(store().NextEntries("c", {.entries_max = 0}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store().NextEntries("d", kNoWait), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store().AcknowledgeEntries("d", wal::Lsn(1)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store().DropConsumer("d"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store().InterruptConsumer("d"), StatusIs(absl::StatusCode::kNotFound));
}

// LOG-28
TEST_F(ConsumersTest, GetsTheSameAgainUntilItAcknowledges) {
  Create("c");
  for (int n = 1; n <= 4; ++n) Set(n);
  const std::vector<std::string> all = Texts(Next("c"));
  ASSERT_EQ(all.size(), 4u);

  const auto two = Next("c", {.entries_max = 2, .wait = absl::ZeroDuration()});
  EXPECT_THAT(Texts(two), ElementsAre(all[0], all[1]));
  EXPECT_THAT(Texts(Next("c", {.bytes_max = 1, .wait = absl::ZeroDuration()})), ElementsAre(all[0]));
  ASSERT_THAT(store().AcknowledgeEntries("c", two[0].lsn), IsOk());
  EXPECT_THAT(Texts(Next("c")), ElementsAre(all[1], all[2], all[3]));
  // An older acknowledgement changes nothing.
  ASSERT_THAT(store().AcknowledgeEntries("c", wal::Lsn(1)), IsOk());
  EXPECT_THAT(Texts(Next("c")), ElementsAre(all[1], all[2], all[3]));
  EXPECT_EQ(Info("c").lag_entries, 3);
}

TEST_F(ConsumersTest, MayNotAcknowledgeWhatItWasNotGiven) {
  Create("c");
  Set(1);
  const wal::Lsn first = store().committed_lsn();
  EXPECT_THAT(store().AcknowledgeEntries("c", first), StatusIs(absl::StatusCode::kFailedPrecondition));
  Next("c");
  Set(2);

  EXPECT_THAT(store().AcknowledgeEntries("c", first.Next()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store().AcknowledgeEntries("c", first), IsOk());
  EXPECT_EQ(Next("c").size(), 1u);
}

// CONS-05, LOG-24
TEST_F(ConsumersTest, GoesOnWhereItWasAfterARestart) {
  Create("c");
  for (int n = 1; n <= 3; ++n) Set(n);
  const std::vector<std::string> all = Texts(Next("c"));
  ASSERT_THAT(store().AcknowledgeEntries("c", Next("c")[0].lsn), IsOk());

  Reopen();
  EXPECT_THAT(Texts(Next("c")), ElementsAre(all[1], all[2]));
  CrashAndOpen(CrashSurvival::kNothing);

  EXPECT_THAT(Texts(Next("c")), ElementsAre(all[1], all[2]));
}

// CONS-01, CONS-02, B15, LOG-25, LOG-26
TEST_F(ConsumersTest, HoldsTheLogUntilItHasAcknowledgedAndNoLonger) {
  Create("c");
  const uint64_t first = Committed() + 1;
  FillLog();
  ASSERT_THAT(store().Checkpoint(), IsOk());
  EXPECT_EQ(store().Metrics().applied_lsn, Committed());
  EXPECT_TRUE(IsInLog(first));
  EXPECT_GT(Info("c").lag_bytes, 300'000);
  CrashAndOpen(CrashSurvival::kNothing);
  EXPECT_TRUE(IsInLog(first));

  CatchUp("c");
  EXPECT_EQ(Info("c").lag_entries, 0);
  EXPECT_EQ(Info("c").lag_bytes, 0);
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  EXPECT_FALSE(IsInLog(first));
  FillLog();
  CatchUp("c");
  ASSERT_THAT(store().Checkpoint(), IsOk());

  CrashAndOpen(CrashSurvival::kNothing);
  EXPECT_THAT(Next("c"), IsEmpty());
}

// CONS-04
TEST_F(ConsumersTest, OpenTransactionDoesNotHoldTheLog) {
  Create("c");
  const uint64_t first = Committed() + 1;
  const auto open = world_.Begin();
  FillLog();

  CatchUp("c");
  ASSERT_THAT(store().Checkpoint(), IsOk());

  EXPECT_FALSE(IsInLog(first));
}

// CONS-06
TEST_F(ConsumersTest, ClosedStoreTakesNoAcknowledgement) {
  Create("c");
  Set(1);
  const std::vector<ConsumedEntry> entries = Next("c");
  ASSERT_THAT(store().Close(), IsOk());

  EXPECT_THAT(store().AcknowledgeEntries("c", entries[0].lsn), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store().NextEntries("c", kNoWait), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store().CreateConsumer("d", {}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store().DropConsumer("c"), StatusIs(absl::StatusCode::kUnavailable));

  world_.Drop();
  ASSERT_THAT(world_.Open(options_), IsOk());
  EXPECT_THAT(Texts(Next("c")), ElementsAre(Texts(entries)[0]));
}

// B14, B15: it never fills the disk, and the other one notices nothing.
TEST_F(ConsumersTest, SlowConsumerIsDroppedAtItsLimitAndToldSoWhileAnotherGoesOn) {
  txn::StoreOptions options = SmallSegments();
  options.consumer_bytes_max = 200 << 10;
  OpenWith(options);
  Create("slow");
  Create("fast");
  const uint64_t first = Committed() + 1;
  for (int n = 0; n < 15; ++n) {
    CommitLarge();
    CatchUp("fast");
  }
  EXPECT_FALSE(Info("slow").is_dropped);
  for (int n = 0; n < 15; ++n) {
    CommitLarge();
    CatchUp("fast");
  }

  EXPECT_EQ(Info("fast").lag_entries, 0);
  EXPECT_TRUE(Info("slow").is_dropped);
  ASSERT_THAT(store().Checkpoint(), IsOk());
  EXPECT_FALSE(IsInLog(first));
  CrashAndOpen(CrashSurvival::kNothing);
  const auto told = store().NextEntries("slow", {});  // does not wait
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(told.status().GetPayload("repotxn/acknowledged_lsn"), absl::Cord(absl::StrCat(first - 1)));
  EXPECT_THAT(store().AcknowledgeEntries("slow", wal::Lsn(1)), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(store().CreateConsumer("slow", {}), StatusIs(absl::StatusCode::kAlreadyExists));

  EXPECT_THAT(store().DropConsumer("slow"), IsOk());
  Create("slow");
  Set(1);
  EXPECT_EQ(Next("slow").size(), 1u);
}

// A manifest above 256 KiB is a payload file: it stays as long as a consumer wants it.
TEST_F(ConsumersTest, LargeManifestStaysReadableUntilItIsAcknowledged) {
  OpenWith(World::Options());
  Create("c");
  const auto result = store().Run({}, [&](Transaction& txn) -> absl::Status {
    for (int n = 0; n < 1200; ++n) {
      const std::string name = absl::StrCat("big/", std::string(100, 'b'), n);
      REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(id_, {.name = Branch(name), .expected = {}, .value = World::At(1)}));
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(result.committed()) << result.status;
  const auto payload_directories = [&] { return world_.fs().List(txn::layout::Payload())->size(); };
  ASSERT_EQ(payload_directories(), 1u);
  ASSERT_THAT(store().Checkpoint(), IsOk());
  EXPECT_GT(Info("c").lag_bytes, 256 << 10);
  Reopen();
  CrashAndOpen(CrashSurvival::kNothing);

  const std::vector<ConsumedEntry> entries = Next("c");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].ref_changes.size(), 1200u);
  EXPECT_EQ(payload_directories(), 1u);
  CatchUp("c");
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());

  EXPECT_EQ(payload_directories(), 0u);
}

TEST_F(ConsumersTest, PayloadThatIsNoManifestGoesWithTheCheckpoint) {
  Create("c");
  const auto result = store().Run({}, [&](Transaction& txn) {
    return txn.PutFile(id_, "info/huge", {std::string(100'000, 'h'), 0644});
  });
  ASSERT_TRUE(result.committed());

  ASSERT_THAT(store().Checkpoint(), IsOk());

  EXPECT_THAT(*world_.fs().List(txn::layout::Payload()), IsEmpty());
  EXPECT_EQ(Next("c").size(), 1u);
}

TEST_F(ConsumersTest, OnlyOneReadsForAConsumerAtATime) {
  Create("c");
  Notification is_over;
  absl::Status first;
  std::thread reader([&] {
    first = store().NextEntries("c", {}).status();
    is_over.Notify();
  });
  // Whoever comes second is refused; which one that is depends on the threads.
  absl::Status second = store().NextEntries("c", {.wait = absl::ZeroDuration()}).status();
  while (second.ok() && !is_over.HasBeenNotified()) {
    second = store().NextEntries("c", {.wait = absl::ZeroDuration()}).status();
  }
  ASSERT_THAT(store().InterruptConsumer("c"), IsOk());
  reader.join();

  const absl::Status refused = absl::IsFailedPrecondition(first) ? first : second;
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
}

// LOG-36
TEST_F(ConsumersTest, WaitEndsWithoutEntriesWhenItsTimeIsOver) {
  Create("c");
  EXPECT_THAT(Next("c", {.wait = absl::Milliseconds(1)}), IsEmpty());
}

// What wakes a consumer that waits, whether it waits already or is about to.
struct Waking {
  const char* name;
  std::function<void(World&, const RepositoryId&)> act;
  absl::StatusCode code;
};
class ConsumerWakingTest : public ConsumersTest, public ::testing::WithParamInterface<Waking> {};

TEST_P(ConsumerWakingTest, EndsTheWait) {
  Create("c");
  absl::Status status;
  std::thread waiter([&] { status = store().NextEntries("c", {}).status(); });

  GetParam().act(world_, id_);
  waiter.join();

  EXPECT_THAT(status, StatusIs(GetParam().code));
}

INSTANTIATE_TEST_SUITE_P(
    All, ConsumerWakingTest,
    ::testing::Values(
        Waking{"Commit",
               [](World& world, const RepositoryId& id) { world.Set(id, Branch("main"), World::At(1)); },
               absl::StatusCode::kOk},
        Waking{"Close", [](World& world, const RepositoryId&) { EXPECT_THAT(world.store().Close(), IsOk()); },
               absl::StatusCode::kUnavailable},
        Waking{"Interruption",
               [](World& world, const RepositoryId&) {
                 EXPECT_THAT(world.store().InterruptConsumer("c"), IsOk());
               },
               absl::StatusCode::kCancelled},
        Waking{"Drop",
               [](World& world, const RepositoryId&) { EXPECT_THAT(world.store().DropConsumer("c"), IsOk()); },
               absl::StatusCode::kNotFound}),
    [](const auto& test) { return test.param.name; });

// LOG-29, LOG-37, LOG-38
TEST_F(ConsumersTest, GetsEveryEntryOfManyCommittersOnceAndInOrder) {
  OpenWith(World::Options());
  Create("c");
  const uint64_t first = Committed() + 1;
  constexpr int kThreads = 4, kCommits = 25;
  std::vector<std::thread> committers;
  for (int t = 0; t < kThreads; ++t) {
    committers.emplace_back([this, t] {
      for (int n = 0; n < kCommits; ++n) {
        EXPECT_TRUE(world_.Set(id_, Branch(absl::StrCat("t", t)), World::At(n % 10)).committed());
      }
    });
  }
  uint64_t expected = first;
  while (expected < first + kThreads * kCommits) {
    const std::vector<ConsumedEntry> entries = Next("c", {.entries_max = 7});
    for (const ConsumedEntry& entry : entries) ASSERT_EQ(entry.lsn.value(), expected++);
    ASSERT_THAT(store().AcknowledgeEntries("c", entries.back().lsn), IsOk());
  }
  for (std::thread& committer : committers) committer.join();

  EXPECT_THAT(Next("c"), IsEmpty());
}

// Crashes. The consumer delivers into a file of the same disk, synced before it acknowledges.
class ConsumerCrashTest : public ConsumersTest {
 protected:
  static storage::StorePath Outbox() { return storage::StorePath::Literal("outbox"); }
  void SetUp() override {
    ConsumersTest::SetUp();
    ASSERT_THAT(storage::WriteFileSynced(world_.fs(), Outbox(), ""), IsOk());
    ASSERT_THAT(world_.fs().SyncDirectory(storage::StorePath()), IsOk());
    Create("c");
    first_ = Committed() + 1;
  }
  void DeliverAll() {
    for (const ConsumedEntry& entry : Next("c")) {
      auto file = world_.fs().OpenForWrite(Outbox(), storage::OpenMode::kExisting);
      ASSERT_THAT(file, IsOk());
      ASSERT_THAT((*file)->Append(absl::StrCat(entry.lsn.value(), "\n")), IsOk());
      ASSERT_THAT((*file)->Sync(), IsOk());
      if (REPOTXN_PLANT("txn.acknowledge_before_delivery")) continue;
      ASSERT_THAT(store().AcknowledgeEntries("c", entry.lsn), IsOk());
    }
  }
  // What is wrong with what a crash left; empty when nothing.
  static std::string Fault(CrashSweep::Image& image, uint64_t first, uint64_t committed) {
    World world(7);
    world.owned_fs() = std::move(image.fs);
    if (absl::Status opened = world.Open(SmallSegments()); !opened.ok()) {
      return absl::StrCat("does not open: ", opened.ToString());
    }
    std::vector<std::string> lines = absl::StrSplit(*storage::ReadFile(world.fs(), Outbox()), '\n');
    lines.pop_back();  // behind the last newline: nothing, or torn
    uint64_t delivered = first - 1;
    for (const std::string& line : lines) {
      if (line != absl::StrCat(++delivered)) return absl::StrCat("line ", line, " for ", delivered);
    }
    const uint64_t known = world.store().committed_lsn().value();
    if (known < delivered) return "delivered and not committed";
    if (image.is_acknowledged && known < committed) return "committed and lost";
    const auto entries = world.store().NextEntries("c", kNoWait);
    if (!entries.ok()) return entries.status().ToString();
    uint64_t next = entries->empty() ? known + 1 : entries->front().lsn.value();
    if (next > delivered + 1) return absl::StrCat("skipped ", delivered + 1, " up to ", next);
    for (const ConsumedEntry& entry : *entries) {
      if (entry.lsn.value() != next++) return "not in order";
    }
    return next == known + 1 ? "" : "ends early";
  }
  std::string Sweep() {
    CrashSweep sweep(&world_.fs());
    sweep.Record([&] {
      for (int round = 0; round < 7; ++round) {
        CommitLarge();
        DeliverAll();
        if (round % 3 == 1) {
          ASSERT_THAT(store().Checkpoint(), IsOk());
        }
      }
      CommitLarge();
      ASSERT_THAT(store().Checkpoint(), IsOk());
      sweep.NoteAcknowledged();
      DeliverAll();
      ASSERT_THAT(store().RunBackgroundWork(), IsOk());
    });
    EXPECT_GT(sweep.images().size(), 100u);
    for (CrashSweep::Image& image : sweep.images()) {
      const std::string when = image.when;
      if (std::string fault = Fault(image, first_, Committed()); !fault.empty()) {
        return absl::StrCat("crash before ", when, ": ", fault);
      }
    }
    return "";
  }

  uint64_t first_ = 0;
};

// B23
TEST_F(ConsumerCrashTest, SkipsNothingWhereverItDies) { EXPECT_EQ(Sweep(), ""); }

TEST_F(ConsumerCrashTest, NoticesAnAcknowledgementBeforeTheDelivery) {
  const PlantedBug bug("txn.acknowledge_before_delivery");
  EXPECT_NE(Sweep(), "");
}

// B15: an acknowledgement that is only in memory frees nothing that a restart would ask for.
TEST_F(ConsumerCrashTest, AsksForNothingThatIsGoneWhereverATrimDies) {
  FillLog();
  ASSERT_THAT(store().Checkpoint(), IsOk());
  CrashSweep sweep(&world_.fs());
  sweep.Record([&] {
    DeliverAll();
    ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  });
  EXPECT_FALSE(IsInLog(first_));

  for (CrashSweep::Image& image : sweep.images()) {
    const std::string when = image.when;
    EXPECT_EQ(Fault(image, first_, Committed()), "") << when;
  }
}

TEST_F(ConsumerCrashTest, NoticesALowWaterMarkThatIsTakenFromMemory) {
  FillLog();
  ASSERT_THAT(store().Checkpoint(), IsOk());
  const PlantedBug bug("txn.low_water_from_memory");
  DeliverAll();
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());

  world_.CrashAndKeep({CrashSurvival::kNothing, 0, 0});
  EXPECT_THAT(world_.Open(options_), StatusIs(absl::StatusCode::kDataLoss));
}

// An acknowledgement that a checkpoint has covered is never asked for again.
TEST_F(ConsumerCrashTest, NeverGetsAgainWhatACheckpointKnowsToBeAcknowledged) {
  for (int n = 1; n <= 3; ++n) Set(n);
  DeliverAll();
  Set(4);
  ASSERT_THAT(store().Checkpoint(), IsOk());

  CrashAndOpen(CrashSurvival::kNothing);

  EXPECT_EQ(Next("c").size(), 1u);
}

}  // namespace
}  // namespace repotxn::testing
