// Goal: a repository whose directory cannot be written holds nobody else up and loses nothing, over checkpoints, restarts
// and crashes, and comes back by itself [hard case B14]. Method: renames into one repository fail, the disk is in memory.
#include "txn/set_aside.h"

#include "storage/check.h"
#include "tests/support/fault_file_system.h"
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using txn::CommitOutcome;
using txn::CommitResult;
using txn::FileState;
using txn::RefState;
using txn::Transaction;

class SetAsideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.OpenOn(&fault_, Options()), IsOk());
    broken_ = world_.Create("broken");
    other_ = world_.Create("other");
    ASSERT_TRUE(world_.Set(broken_, Branch("old"), World::At(1)).committed());
    ASSERT_TRUE(world_.Set(broken_, Branch("gone"), World::At(1)).committed());
    ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  }
  void TearDown() override { world_.Drop(); }  // before the disk under it
  static txn::StoreOptions Options() {
    txn::StoreOptions options = World::Options();
    options.direct_pack_refs_min = 2;
    return options;
  }
  void Break(absl::Status with = absl::UnavailableError("input/output error")) {
    fault_.AddRule({.operation = FileOperation::kRename,
                    .path_prefix = txn::layout::RepositoryDirectory(broken_).text(),
                    .status = std::move(with),
                    .is_sticky = true});
  }
  void Mend() { fault_.ClearRules(); }
  // Everything that a directory can owe: loose and packed refs, a deletion, HEAD, files of both sizes, a directory.
  void Change() {
    ASSERT_TRUE(world_.Set(broken_, Branch("old"), World::At(2)).committed());
    ASSERT_TRUE(world_.Set(broken_, Branch("gone"), refs::RefValue::Absent()).committed());
    ASSERT_TRUE(world_.Set(broken_, refs::RefName::Head(), refs::RefValue::Symbolic(Branch("other"))).committed());
    const CommitResult much = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
      for (const char* name : {"p", "q", "r"}) {
        REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(broken_, {.name = Branch(name), .expected = {}, .value = World::At(3)}));
      }
      REPOTXN_RETURN_IF_ERROR(txn.PutFile(broken_, "hooks/update", {"#!/bin/sh\n", 0755}));
      REPOTXN_RETURN_IF_ERROR(txn.MakeDirectory(broken_, "info/empty"));
      return txn.PutFile(broken_, "info/large", {std::string(70'000, 'L'), 0644});
    });
    ASSERT_TRUE(much.committed()) << much.status;
    ASSERT_TRUE(world_.Set(other_, Branch("main"), World::At(4)).committed());
  }
  std::string OnDisk(const RepositoryId& id, const std::string& path) {
    const auto content = storage::ReadFile(world_.fs(), txn::layout::RepositoryDirectory(id) / path);
    return content.ok() ? *content : content.status().ToString();
  }
  // What a power cut at this moment leaves, opened on a disk that works; `seen` is what clients see then.
  std::unique_ptr<World> AfterCrash(std::unique_ptr<MemoryFileSystem> left, std::string* seen) {
    auto after = std::make_unique<World>(99);
    after->owned_fs() = std::move(left);
    const absl::Status opened = after->Open(Options());
    *seen = opened.ok() ? Visible(*after) : opened.ToString();
    return after;
  }

  World world_;
  FaultFileSystem fault_{&world_.fs()};
  RepositoryId broken_, other_;
};

TEST_F(SetAsideTest, HoldsNobodyElseUpAndTakesNoCommitsUntilItsDirectoryIsMended) {
  Break();
  Change();
  const std::string before = Visible(world_);
  EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_THAT(world_.store().Materialize(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(OnDisk(other_, "refs/heads/main"), World::At(4).oid().ToHex() + "\n");
  EXPECT_EQ(world_.store().Metrics().repositories_set_aside, 1);

  EXPECT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_EQ(world_.store().Metrics().applied_lsn, world_.store().committed_lsn().value());
  EXPECT_THAT(world_.store().Health(), IsOk());
  const CommitResult refused = world_.Set(broken_, Branch("late"), World::At(5));
  EXPECT_EQ(refused.outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(refused.status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("set aside"));
  EXPECT_TRUE(world_.Set(other_, Branch("next"), World::At(5)).committed());
  ASSERT_TRUE(world_.Set(other_, Branch("next"), refs::RefValue::Absent()).committed());
  EXPECT_EQ(Visible(world_), before);

  Mend();
  world_.clock().Advance(absl::Minutes(1));
  EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(world_.store().Metrics().repositories_set_aside, 0);
  EXPECT_EQ(OnDisk(broken_, "refs/heads/old"), World::At(2).oid().ToHex() + "\n");
  EXPECT_EQ(OnDisk(broken_, "hooks/update"), "#!/bin/sh\n");
  EXPECT_TRUE(world_.Set(broken_, Branch("late"), World::At(5)).committed());
}

TEST_F(SetAsideTest, ComesBackAfterACleanRestartWithADirectoryStillBroken) {
  Break();
  Change();
  const std::string before = Visible(world_);
  ASSERT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  ASSERT_THAT(world_.OpenOn(&fault_, Options()), IsOk());
  EXPECT_EQ(Visible(world_), before);
  EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(world_.store().Metrics().repositories_set_aside, 1);
  Mend();
  EXPECT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_EQ(OnDisk(broken_, "info/large"), std::string(70'000, 'L'));
  // The row is gone with the position that covers what it held: nothing old comes back.
  ASSERT_TRUE(world_.Set(broken_, Branch("old"), World::At(7)).committed());
  ASSERT_THAT(world_.store().Close(), IsOk());
  std::string seen;
  const auto after = AfterCrash(world_.fs().CrashClone({CrashSurvival::kNothing, 0, 0}), &seen);
  EXPECT_EQ(after->Read(broken_, Branch("old")).ToString(), World::At(7).ToString());
}

// What goes on all the time costs nothing for a directory that cannot be written.
TEST_F(SetAsideTest, IsTriedSeldomerAndSeldomer) {
  Break();
  Change();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  const int64_t tried = fault_.fault_count();
  for (int round = 0; round < 50; ++round) ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(fault_.fault_count(), tried);
  int tries = 0;
  for (int second = 0; second < 600; ++second) {
    world_.clock().Advance(absl::Seconds(1));
    const int64_t before = fault_.fault_count();
    ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
    tries += fault_.fault_count() > before ? 1 : 0;
  }
  EXPECT_GE(tries, 10);
  EXPECT_LE(tries, 20);
}

TEST_F(SetAsideTest, WhatItOwesIsNotHeldAgainstTheOthers) {
  world_.Drop();
  txn::StoreOptions options = Options();
  options.overlay_bytes_high = 512 << 10;
  options.overlay_bytes_max = 1 << 20;
  ASSERT_THAT(world_.OpenOn(&fault_, options), IsOk());
  Break();
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    return txn.PutFile(broken_, "info/large", {std::string(2 << 20, 'L'), 0644});
  }).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_TRUE(world_.Set(other_, Branch("x"), World::At(2)).committed());
  ASSERT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  ASSERT_THAT(world_.OpenOn(&fault_, options), IsOk());
  EXPECT_TRUE(world_.Set(other_, Branch("x"), World::At(3)).committed());
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_TRUE(world_.Set(other_, Branch("x"), World::At(4)).committed());
}

TEST_F(SetAsideTest, IsNotGivenBackBeforeItsDirectoryHasAll) {
  fault_.AddRule({.operation = FileOperation::kRename,
                  .path_prefix = txn::layout::RepositoryDirectory(broken_).text() + "/refs",
                  .status = absl::UnavailableError("input/output error"),
                  .is_sticky = true});
  ASSERT_TRUE(world_.Set(broken_, Branch("old"), World::At(2)).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_THAT(world_.store().Unadopt(broken_, "given/back.git"), StatusIs(absl::StatusCode::kUnavailable));
  Mend();
  EXPECT_THAT(world_.store().Unadopt(broken_, "given/back.git"), IsOk());
  const auto value = storage::ReadFile(world_.fs(), *storage::StorePath::Parse("given/back.git/refs/heads/old"));
  EXPECT_EQ(value.ok() ? *value : value.status().ToString(), World::At(2).oid().ToHex() + "\n");
}

// What is only directory work would fail, and with it the store.
TEST_F(SetAsideTest, TakesNoLinkAndItsPurgeStopsNobody) {
  Break();
  fault_.AddRule({.operation = FileOperation::kRename,
                  .path_prefix = txn::layout::PendingDelete().text() + "/" + broken_.ToHex(),
                  .status = absl::PermissionDeniedError("immutable"),
                  .is_sticky = true});
  ASSERT_TRUE(world_.Set(broken_, Branch("old"), World::At(2)).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  const CommitResult linked =
      world_.store().Run({}, [&](Transaction& txn) { return txn.LinkAlternate(broken_, other_); });
  EXPECT_THAT(linked.status, StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(broken_); }).committed());
  world_.clock().Advance(Options().undelete_retention + absl::Hours(1));
  EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_THAT(world_.store().Health(), IsOk());
  EXPECT_TRUE(world_.Set(other_, Branch("x"), World::At(2)).committed());
}

// The same for the directory of a group, of which nothing but a symlink is missing.
TEST_F(SetAsideTest, AGroupThatCannotBeWrittenHoldsNobodyUp) {
  fault_.AddRule({.operation = FileOperation::kRename,
                  .path_prefix = "repositories/group",
                  .status = absl::PermissionDeniedError("read-only directory"),
                  .is_sticky = true});
  const RepositoryId id = world_.Create("group/new");
  ASSERT_TRUE(world_.Set(other_, Branch("x"), World::At(2)).committed());
  EXPECT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  Mend();
  ASSERT_THAT(world_.OpenOn(&fault_, Options()), IsOk());
  EXPECT_TRUE(world_.Set(id, Branch("main"), World::At(1)).committed());
  // Reconciliation makes the link when it has missed it long enough.
  const storage::StorePath link = txn::layout::RepositoryLink("group/new");
  for (int round = 0; round < 20 && !world_.fs().ReadLink(link).ok(); ++round) {
    world_.clock().Advance(absl::Hours(1));
    ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  }
  EXPECT_THAT(world_.fs().ReadLink(link), IsOk());
}

// A strange thing in a file's place is moved away whoever reads.
TEST_F(SetAsideTest, IsNotDoneForWhatCanBeMovedAway) {
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    return txn.PutFile(broken_, "hooks/update", {"x", 0755});
  }).committed());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  const auto reader = world_.Begin();
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) {
    return txn.PutFile(broken_, "hooks/update", {"y", 0755});
  }).committed());
  const storage::StorePath file = txn::layout::RepositoryDirectory(broken_) / "hooks/update";
  ASSERT_THAT(world_.fs().Remove(file), IsOk());
  ASSERT_THAT(world_.fs().Symlink("/dev/null", file), IsOk());
  EXPECT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_EQ(OnDisk(broken_, "hooks/update"), "y");
}

// The directory of an entry in the log's tail: the store opens without it, and waits for nobody but the log.
TEST_F(SetAsideTest, AStoreOpensThoughADirectoryOfItsTailIsBroken) {
  const RepositoryId fresh = world_.Create("fresh");
  ASSERT_TRUE(world_.Set(fresh, Branch("main"), World::At(2)).committed());
  ASSERT_TRUE(world_.Set(other_, Branch("main"), World::At(3)).committed());
  const std::string before = Visible(world_);
  auto left = world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0});
  FaultFileSystem fault(left.get());
  fault.AddRule({.operation = FileOperation::kRename,
                 .path_prefix = txn::layout::RepositoryDirectory(fresh).text(),
                 .status = absl::UnavailableError("input/output error"),
                 .is_sticky = true});
  World after(5);
  ASSERT_THAT(after.OpenOn(&fault, Options()), IsOk());
  EXPECT_EQ(Visible(after), before);
  EXPECT_EQ(after.store().Metrics().repositories_set_aside, 1);
  EXPECT_TRUE(after.Set(other_, Branch("main"), World::At(4)).committed());
  EXPECT_EQ(after.Set(fresh, Branch("main"), World::At(4)).outcome, CommitOutcome::kNotCommitted);
  EXPECT_THAT(after.store().RunBackgroundWork(), IsOk());
  // What it owes is in the log alone.
  EXPECT_THAT(after.store().Checkpoint(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(after.store().Health(), IsOk());

  fault.ClearRules();
  after.clock().Advance(absl::Minutes(1));
  EXPECT_THAT(after.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(after.store().Metrics().repositories_set_aside, 0);
  EXPECT_TRUE(after.Set(fresh, Branch("main"), World::At(4)).committed());
  EXPECT_THAT(after.store().Checkpoint(), IsOk());
  EXPECT_THAT(after.store().Close(), IsOk());
  after.Drop();
}

class SetAsideCrashTest : public SetAsideTest {
 protected:
  // Breaks, checkpoints, goes on beside it, mends, checkpoints: what every crash on the way leaves. The first fault found.
  std::string FirstFault() {
    Break();
    Change();
    const std::string acknowledged = Visible(world_);
    CrashSweep sweep(&world_.fs());
    sweep.Record([&] {
      EXPECT_THAT(world_.store().Checkpoint(), IsOk());
      EXPECT_THAT(world_.store().Checkpoint(), IsOk());
      Mend();
      EXPECT_THAT(world_.store().Checkpoint(), IsOk());
      EXPECT_THAT(world_.store().Checkpoint(), IsOk());
    });
    EXPECT_GT(sweep.images().size(), 20u);
    for (CrashSweep::Image& image : sweep.images()) {
      std::string seen;
      const auto after = AfterCrash(std::move(image.fs), &seen);
      if (seen != acknowledged) return absl::StrCat(image.when, ":\n", seen);
      if (absl::Status written = after->store().Materialize(); !written.ok()) return written.ToString();
    }
    return "";
  }
};

TEST_F(SetAsideCrashTest, LosesNothingWhereverItDies) { EXPECT_EQ(FirstFault(), ""); }

TEST_F(SetAsideCrashTest, NoticesAnAppliedPositionThatPassesWhatIsNotKept) {
  const PlantedBug bug("txn.pass_without_setting_aside");
  EXPECT_NE(FirstFault(), "");
}

TEST_F(SetAsideTest, AFullDiskIsEverybodysAndSetsNobodyAside) {
  Break(absl::ResourceExhaustedError("no space left on device"));
  Change();
  const uint64_t applied = world_.store().Metrics().applied_lsn;
  EXPECT_THAT(world_.store().Checkpoint(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(world_.store().Metrics().applied_lsn, applied);
  EXPECT_EQ(world_.store().Metrics().repositories_set_aside, 0);
  Mend();
  EXPECT_THAT(world_.store().Checkpoint(), IsOk());
}

TEST_F(SetAsideTest, WhatIsPurgedMeanwhileLeavesNothing) {
  Break();
  Change();
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  ASSERT_TRUE(world_.store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(broken_); }).committed());
  world_.clock().Advance(Options().undelete_retention + absl::Hours(1));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  const std::string before = Visible(world_);
  ASSERT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  ASSERT_THAT(world_.OpenOn(&fault_, Options()), IsOk());
  EXPECT_EQ(Visible(world_), before);
  EXPECT_EQ(world_.store().Metrics().repositories_set_aside, 0);
}

// The row.

TEST(SetAsideRowTest, ComesBackAsItWasAndDamageIsToldApart) {
  const RepositoryId id = *RepositoryId::FromHex(std::string(32, 'a'));
  const TransactionId transaction = *TransactionId::FromHex(std::string(32, 'b'));
  const auto file = [](FileState::Kind kind, uint32_t mode, const char* content) {
    return FileState{kind, mode, content == nullptr ? nullptr : std::make_shared<const std::string>(content)};
  };
  txn::RepositoryState::Changes changes;
  const wal::Lsn lsn(7);
  changes.refs = {{"refs/heads/z", {lsn, {World::At(1), true}}},
                  {"refs/heads/a", {lsn, {World::At(2), false}}},
                  {"refs/heads/m", {lsn, {refs::RefValue::Absent(), true}}},
                  {"HEAD", {lsn, {refs::RefValue::Symbolic(Branch("a")), false}}}};
  changes.files = {{"description", {lsn, file(FileState::Kind::kFile, 0600, "x")}},
                   {"config", {lsn, file(FileState::Kind::kAbsent, 0644, nullptr)}},
                   {"info", {lsn, file(FileState::Kind::kDirectory, 0755, nullptr)}}};
  const auto rows = txn::EncodeSetAside(id, changes, transaction, absl::UnixEpoch());
  ASSERT_EQ(rows.size(), 1u);
  const auto& [key, row] = rows[0];
  ASSERT_OK_AND_ASSIGN(const txn::RepositoryEffects effects, txn::DecodeSetAside(key, row));
  EXPECT_EQ(effects.id, id);
  std::vector<std::string> refs;
  for (const auto& [name, state] : effects.refs) {
    refs.push_back(absl::StrCat(name, " ", World::Name(state.value), state.is_packed ? " packed" : ""));
  }
  EXPECT_THAT(refs, ElementsAre("HEAD ref: refs/heads/a", "refs/heads/a c2", "refs/heads/m absent", "refs/heads/z c1 packed"));
  std::vector<std::string> files;
  for (const auto& [path, state] : effects.files) {
    files.push_back(absl::StrCat(path, " ", static_cast<int>(state.kind), " ", absl::Hex(state.mode), " ",
                                 state.content == nullptr ? "" : *state.content));
  }
  EXPECT_THAT(files, ElementsAre("config 0 1a4 ", "description 1 180 x", "info 2 1ed "));

  for (size_t cut = 0; cut < row.size(); ++cut) {
    EXPECT_THAT(txn::DecodeSetAside(key, row.substr(0, cut)), StatusIs(absl::StatusCode::kDataLoss)) << cut;
  }
  EXPECT_THAT(txn::DecodeSetAside("m/aside/" + std::string(32, 'c') + "/00000000", row),
              StatusIs(absl::StatusCode::kDataLoss));
}

// However much a repository owes, a row can be read again.
TEST(SetAsideRowTest, SplitsWhatIsTooMuchForOneRow) {
  const RepositoryId id = *RepositoryId::FromHex(std::string(32, 'a'));
  const TransactionId transaction = *TransactionId::FromHex(std::string(32, 'b'));
  txn::RepositoryState::Changes changes;
  for (int n = 0; n < 10; ++n) {
    changes.refs.push_back({absl::StrCat("refs/heads/b", n), {wal::Lsn(7), {World::At(n), n % 2 == 0}}});
    changes.files.push_back({absl::StrCat("info/f", n),
                             {wal::Lsn(7), {FileState::Kind::kFile, 0644,
                                            std::make_shared<const std::string>(static_cast<size_t>(n) * 300, 'x')}}});
  }
  const auto rows = txn::EncodeSetAside(id, changes, transaction, absl::UnixEpoch(), /*row_bytes=*/1000);
  EXPECT_GT(rows.size(), 10u);
  size_t refs = 0, bytes = 0;
  std::string before;
  for (const auto& [key, row] : rows) {
    EXPECT_LT(before, key);
    before = key;
    ASSERT_OK_AND_ASSIGN(const txn::RepositoryEffects effects, txn::DecodeSetAside(key, row));
    refs += effects.refs.size();
    for (const auto& [path, state] : effects.files) bytes += state.content == nullptr ? 0 : state.content->size();
  }
  EXPECT_EQ(refs, 10u);
  EXPECT_EQ(bytes, 45u * 300);
}

}  // namespace
}  // namespace repotxn::testing
