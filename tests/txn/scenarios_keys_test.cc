// Scenarios of the key space, as a table: what was there, what another committed after my snapshot, what I did, whether
// I commit, and every key at the end. Identifiers: docs/scenarios.md.
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using txn::KeySpace;
using txn::Transaction;

struct KeyScenario {
  const char* id;
  const char* before;     // steps of a transaction before all
  const char* committed;  // steps of another after my snapshot
  const char* mine;
  bool commits;
  const char* after;  // all keys at the end: "a=1 b=2"

  friend std::ostream& operator<<(std::ostream& out, const KeyScenario& scenario) {
    return out << scenario.id << ": after [" << scenario.committed << "] I [" << scenario.mine << "]";
  }
};

// Steps: "set KEY VALUE", "del KEY", "get KEY", "scan PREFIX" (a prefix of "*" is everything), separated by "; ".
absl::Status Play(Transaction& txn, const KeySpace& space, absl::string_view script) {
  for (const absl::string_view step : absl::StrSplit(script, "; ", absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(step, ' ');
    if (words[0] == "set") REPOTXN_RETURN_IF_ERROR(txn.PutKey(space, words[1], words[2]));
    if (words[0] == "del") REPOTXN_RETURN_IF_ERROR(txn.DeleteKey(space, words[1]));
    if (words[0] == "get") REPOTXN_RETURN_IF_ERROR(txn.GetKey(space, words[1]).status());
    if (words[0] == "scan") {
      const std::string first = words[1] == "*" ? "" : words[1];
      const std::string end = first.empty() ? "" : first.substr(0, first.size() - 1) + "0";  // behind "p/"
      REPOTXN_RETURN_IF_ERROR(txn.ScanKeys(space, first, end, 100).status());
    }
  }
  return absl::OkStatus();
}

std::string All(World& world, const KeySpace& space) {
  std::string text;
  const auto rows = world.Begin()->ScanKeys(space, "", "", 100);
  EXPECT_THAT(rows, IsOk());
  for (const auto& [key, value] : *rows) absl::StrAppend(&text, text.empty() ? "" : " ", key, "=", value);
  return text;
}

class KeyScenarioTest : public ::testing::TestWithParam<KeyScenario> {};

TEST_P(KeyScenarioTest, EndsAsTheTableSaysInEverySpaceAndOrder) {
  const KeyScenario& scenario = GetParam();
  for (const int space_kind : {0, 1, 2}) {
    for (const bool i_come_first : {true, false}) {
      World world;
      ASSERT_THAT(world.Open(), IsOk());
      const KeySpace space = space_kind == 0   ? KeySpace::OfStore()
                             : space_kind == 1 ? KeySpace::OfPartition(77)
                                               : KeySpace::OfRepository(world.Create("r"));
      ASSERT_THAT(world.store().Run({}, [&](Transaction& txn) { return Play(txn, space, scenario.before); }).status,
                  IsOk());
      const auto mine = world.Begin();
      if (i_come_first) {
        ASSERT_THAT(Play(*mine, space, scenario.mine), IsOk());
      }
      ASSERT_THAT(world.store().Run({}, [&](Transaction& txn) { return Play(txn, space, scenario.committed); }).status,
                  IsOk());
      if (!i_come_first) {
        ASSERT_THAT(Play(*mine, space, scenario.mine), IsOk());
      }

      const txn::CommitResult result = mine->Commit();

      EXPECT_EQ(result.committed(), scenario.commits) << scenario << space_kind << i_come_first;
      if (!scenario.commits) {
        EXPECT_THAT(result.status, StatusIs(StatusCode::kAborted)) << scenario;
      }
      EXPECT_EQ(All(world, space), scenario.after) << scenario << space_kind << i_come_first;
      ASSERT_THAT(world.Reopen(), IsOk());
      EXPECT_EQ(All(world, space), scenario.after) << scenario << space_kind << i_come_first;
    }
  }
}

constexpr KeyScenario kScenarios[] = {
    {"KV-01 two keys", "", "", "set a 1; set b 2", true, "a=1 b=2"},
    {"KV-02 overwritten later", "set a 1", "", "set a 2", true, "a=2"},
    {"KV-03 overwritten within", "", "", "set a 1; set a 2", true, "a=2"},
    {"KV-04 deleted", "set a 1; set b 2", "", "del a", true, "b=2"},
    {"KV-05 set and deleted within", "", "", "set a 1; del a", true, ""},
    {"KV-06 deleted though absent", "", "", "del a", true, ""},
    {"KV-07 blind sets", "", "set a 1", "set a 2", true, "a=2"},
    {"KV-08 blind deletions", "set a 1", "del a", "del a", true, ""},
    {"KV-09 blind set after a deletion", "set a 1", "del a", "set a 2", true, "a=2"},
    {"KV-10 blind deletion after a set", "", "set a 1", "del a", true, ""},
    {"KV-11, KV-12 absent when it was read", "", "set a 1", "get a; set b 1", false, "a=1"},
    {"KV-13 present when it was read", "set a 1", "del a", "get a; set b 1", false, ""},
    {"KV-14 two readers", "set a 1", "get a", "get a; set b 1", true, "a=1 b=1"},
    {"KV-16 all keys, one set", "set p/x 1", "set p/y 2", "scan *; set z 1", false, "p/x=1 p/y=2"},
    {"KV-16 no key at all, one set", "", "set p/y 2", "scan *; set z 1", false, "p/y=2"},
    {"KV-16 an empty prefix, one set", "set a 1", "set p/y 2", "scan p/; set z 1", false, "a=1 p/y=2"},
    {"KV-17 all keys, one deleted", "set p/x 1; set p/y 2", "del p/x", "scan *; set z 1", false, "p/y=2"},
    {"KV-19 set under another prefix", "set p/x 1", "set q/x 2", "scan p/; set z 1", true, "p/x=1 q/x=2 z=1"},
    {"KV-19 deleted under another prefix", "set p/x 1; set q/x 2", "del q/x", "scan p/; set z 1", true, "p/x=1 z=1"},
    {"own write read", "set a 1", "set a 3", "set a 2; get a", true, "a=2"},
};
INSTANTIATE_TEST_SUITE_P(Keys, KeyScenarioTest, ::testing::ValuesIn(kScenarios));

class KeyStoryTest : public ::testing::Test {
 protected:
  KeyStoryTest() { EXPECT_THAT(world_.Open(), IsOk()); }
  absl::Status Do(absl::string_view script) {
    return world_.store().Run({}, [&](Transaction& txn) { return Play(txn, space_, script); }).status;
  }

  World world_;
  const KeySpace space_ = KeySpace::OfStore();
};

// KV-15: the entry is still in the history, but older than the reader.
TEST_F(KeyStoryTest, WhoBeginsAfterASetMayReadIt) {
  const auto holder = world_.Begin();
  ASSERT_THAT(Do("set a 1"), IsOk());
  const auto reader = world_.Begin();
  EXPECT_THAT(Play(*reader, space_, "get a; set b 1"), IsOk());
  EXPECT_TRUE(reader->Commit().committed());
  EXPECT_EQ(All(world_, space_), "a=1 b=1");
}

// KV-20: rows that the store keeps for itself (outcomes, requests, paths, positions) are no keys of the embedder's.
TEST_F(KeyStoryTest, RowsOfTheStoreAreNotAmongTheKeys) {
  const RepositoryId id = world_.Create("g/r");
  txn::RunOptions request;
  request.begin.request_id = "push-1";
  ASSERT_TRUE(world_.store().Run(request, [&](Transaction& txn) {
    return txn.UpdateRef(id, {.name = Branch("main"), .value = World::At(1)});
  }).committed());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  const uint64_t partition = world_.Begin()->Describe(id)->partition;
  for (const KeySpace& space : {KeySpace::OfStore(), KeySpace::OfPartition(partition), KeySpace::OfRepository(id)}) {
    EXPECT_EQ(All(world_, space), "");
    EXPECT_EQ(*world_.Begin()->GetKey(space, "push-1"), std::nullopt);
  }
}

// KV-22: a reader keeps its view and never fails.
TEST_F(KeyStoryTest, ReadOnlyTransactionKeepsItsViewAndCommits) {
  ASSERT_THAT(Do("set a 1; set b 2"), IsOk());
  txn::BeginOptions options;
  options.access = txn::Access::kReadOnly;
  const auto reader = *world_.store().Begin(options);
  EXPECT_EQ(**reader->GetKey(space_, "a"), "1");
  ASSERT_THAT(Do("set a 3; del b; set c 4"), IsOk());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  EXPECT_EQ(**reader->GetKey(space_, "a"), "1");
  EXPECT_EQ(*reader->GetKey(space_, "c"), std::nullopt);
  EXPECT_EQ(reader->ScanKeys(space_, "", "", 10)->size(), 2u);
  EXPECT_TRUE(reader->Commit().committed());
}

// KV-23
TEST_F(KeyStoryTest, ReadOnlyTransactionWritesNoKey) {
  txn::BeginOptions options;
  options.access = txn::Access::kReadOnly;
  const auto reader = *world_.store().Begin(options);
  EXPECT_THAT(reader->PutKey(space_, "a", "1"), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_THAT(reader->DeleteKey(space_, "a"), StatusIs(StatusCode::kPermissionDenied));
  EXPECT_TRUE(reader->Commit().committed());
  EXPECT_EQ(All(world_, space_), "");
}

// KV-24
TEST_F(KeyStoryTest, AbortedTransactionLeavesNoKeyAndNoConflict) {
  const auto other = world_.Begin();
  const auto txn = world_.Begin();
  ASSERT_THAT(Play(*txn, space_, "set a 1; del b"), IsOk());
  txn->Abort();
  ASSERT_THAT(Play(*other, space_, "get a; scan *; set c 1"), IsOk());
  EXPECT_TRUE(other->Commit().committed());
  EXPECT_EQ(All(world_, space_), "c=1");
}

// Keys of two repositories of one partition: a fork lives in the partition of its source.
TEST_F(KeyStoryTest, MeetsAWriteOfAnotherRepositoryOfThePartition) {
  const RepositoryId source = world_.Create("source");
  RepositoryId fork;
  ASSERT_THAT(world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(fork, txn.ForkRepository(source, Path("fork"), {}));
    return absl::OkStatus();
  }).status, IsOk());
  ASSERT_EQ(world_.Begin()->Describe(fork)->partition, world_.Begin()->Describe(source)->partition);
  const auto reader = world_.Begin();
  ASSERT_THAT(Play(*reader, KeySpace::OfRepository(fork), "get a"), IsOk());
  ASSERT_THAT(Play(*reader, KeySpace::OfRepository(source), "set b 1"), IsOk());
  ASSERT_THAT(world_.store().Run({}, [&](Transaction& txn) {
    return Play(txn, KeySpace::OfRepository(fork), "set a 2");
  }).status, IsOk());
  EXPECT_THAT(reader->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(All(world_, KeySpace::OfRepository(source)), "");
}

}  // namespace
}  // namespace repotxn::testing
