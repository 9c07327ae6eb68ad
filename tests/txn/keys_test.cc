// The key space: rows of the embedder's own, read and written in transactions.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using repotxn::testing::Branch;
using repotxn::testing::CrashOptions;
using repotxn::testing::IsOk;
using repotxn::testing::Path;
using repotxn::testing::StatusIs;
using repotxn::testing::World;

class KeySpaceTest : public ::testing::Test {
 protected:
  KeySpaceTest() { EXPECT_THAT(world_.Open(), IsOk()); }

  absl::Status Put(const KeySpace& space, const std::string& key, const std::string& value) {
    return world_.store().Run({}, [&](Transaction& txn) { return txn.PutKey(space, key, value); }).status;
  }
  absl::Status Delete(const KeySpace& space, const std::string& key) {
    return world_.store().Run({}, [&](Transaction& txn) { return txn.DeleteKey(space, key); }).status;
  }
  std::vector<std::pair<std::string, std::string>> All(const KeySpace& space) {
    const auto rows = world_.Begin()->ScanKeys(space, "", "", 10'000);
    EXPECT_THAT(rows, IsOk());
    return *rows;
  }

  World world_;
  const KeySpace store_space_ = KeySpace::OfStore();
};

// KV-21
TEST_F(KeySpaceTest, KeepsWhatWasPutThroughCrashesAndRestarts) {
  const KeySpace space = KeySpace::OfRepository(world_.Create("r"));
  ASSERT_THAT(Put(space, "a", "1"), IsOk());
  ASSERT_THAT(Put(store_space_, "a", "2"), IsOk());
  ASSERT_THAT(Put(KeySpace::OfPartition(77), "a", "3"), IsOk());
  ASSERT_THAT(Put(space, std::string("\0\xff", 2), std::string("\0", 1)), IsOk());
  for (const bool is_crash : {false, true}) {
    if (is_crash) {
      world_.CrashAndKeep(CrashOptions{});
      ASSERT_THAT(world_.Open(), IsOk());
    } else {
      ASSERT_THAT(world_.Reopen(), IsOk());
    }
    EXPECT_THAT(All(space), ElementsAre(Pair(std::string("\0\xff", 2), std::string("\0", 1)), Pair("a", "1")));
    EXPECT_THAT(All(store_space_), ElementsAre(Pair("a", "2")));
    EXPECT_THAT(All(KeySpace::OfPartition(77)), ElementsAre(Pair("a", "3")));
  }
  ASSERT_THAT(Delete(space, "a"), IsOk());
  EXPECT_EQ(*world_.Begin()->GetKey(space, "a"), std::nullopt);
}

TEST_F(KeySpaceTest, RefusesKeysAndValuesThatAreTooLarge) {
  const auto txn = world_.Begin();
  EXPECT_THAT(txn->PutKey(store_space_, "", "x"), StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(txn->PutKey(store_space_, std::string(kKeyBytesMax + 1, 'k'), "x"),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(txn->PutKey(store_space_, "k", std::string(kValueBytesMax + 1, 'v')),
              StatusIs(StatusCode::kInvalidArgument));
  EXPECT_THAT(txn->PutKey(KeySpace::OfRepository(RepositoryId()), "k", "v"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(txn->Commit().status, IsOk());
  EXPECT_THAT(All(store_space_), IsEmpty());
  ASSERT_THAT(Put(store_space_, std::string(kKeyBytesMax, 'k'), std::string(kValueBytesMax, 'v')), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ((*world_.Begin()->GetKey(store_space_, std::string(kKeyBytesMax, 'k')))->size(), kValueBytesMax);
}

TEST_F(KeySpaceTest, ReadsItsOwnWritesAndScansThemInPlace) {
  ASSERT_THAT(Put(store_space_, "b", "old"), IsOk());
  ASSERT_THAT(Put(store_space_, "c", "old"), IsOk());
  ASSERT_THAT(Put(store_space_, "e", "old"), IsOk());
  const auto txn = world_.Begin();
  ASSERT_THAT(txn->PutKey(store_space_, "a", "new"), IsOk());
  ASSERT_THAT(txn->DeleteKey(store_space_, "b"), IsOk());
  ASSERT_THAT(txn->PutKey(store_space_, "c", "new"), IsOk());
  ASSERT_THAT(txn->PutKey(store_space_, "f", "new"), IsOk());
  EXPECT_EQ(*txn->GetKey(store_space_, "b"), std::nullopt);
  EXPECT_EQ(**txn->GetKey(store_space_, "c"), "new");
  EXPECT_THAT(*txn->ScanKeys(store_space_, "", "", 10),
              ElementsAre(Pair("a", "new"), Pair("c", "new"), Pair("e", "old"), Pair("f", "new")));
  EXPECT_THAT(*txn->ScanKeys(store_space_, "b", "f", 10), ElementsAre(Pair("c", "new"), Pair("e", "old")));
  EXPECT_THAT(*txn->ScanKeys(store_space_, "b", "", 1), ElementsAre(Pair("c", "new")));
  EXPECT_THAT(*txn->ScanKeys(store_space_, "f", "b", 10), IsEmpty());
}

// Against a plain map, with any mixture of stored, staged and deleted keys and any limit.
TEST_F(KeySpaceTest, ScansAsAPlainMapWould) {
  for (int round = 0; round < 200; ++round) {
    World world(static_cast<uint64_t>(round) + 100);
    std::map<std::string, std::string> model;
    ASSERT_THAT(world.Open(), IsOk());
    const auto draw = [&](uint64_t n) { return storage::NextUint64(world.random()) % n; };
    ASSERT_THAT(world.store().Run({}, [&](Transaction& txn) -> absl::Status {
      for (uint64_t i = draw(12); i > 0; --i) {
        const std::string key = absl::StrCat(draw(16));
        model[key] = "stored";
        REPOTXN_RETURN_IF_ERROR(txn.PutKey(store_space_, key, "stored"));
      }
      return absl::OkStatus();
    }).status, IsOk());
    if (draw(2) == 0) {
      ASSERT_THAT(world.store().Materialize(), IsOk());
    }
    const auto txn = world.Begin();
    for (uint64_t i = draw(8); i > 0; --i) {
      const std::string key = absl::StrCat(draw(16));
      if (draw(2) == 0) {
        model.erase(key);
        ASSERT_THAT(txn->DeleteKey(store_space_, key), IsOk());
      } else {
        model[key] = "staged";
        ASSERT_THAT(txn->PutKey(store_space_, key, "staged"), IsOk());
      }
    }
    const std::string first = draw(3) == 0 ? "" : absl::StrCat(draw(16));
    const std::string end = draw(3) == 0 ? "" : absl::StrCat(draw(16));
    const int limit = static_cast<int>(draw(6)) + 1;
    std::vector<std::pair<std::string, std::string>> expected;
    for (auto it = model.lower_bound(first); it != model.end() && (end.empty() || it->first < end); ++it) {
      if (static_cast<int>(expected.size()) < limit) expected.emplace_back(*it);
    }
    EXPECT_EQ(*txn->ScanKeys(store_space_, first, end, limit), expected)
        << round << " [" << first << ", " << end << ") " << limit;
  }
}

// KV-11, KV-12
TEST_F(KeySpaceTest, AbortsWhoReadAKeyThatWasWrittenAfterItsSnapshot) {
  ASSERT_THAT(Put(store_space_, "k", "1"), IsOk());
  for (const bool is_present : {true, false}) {
    const auto reader = world_.Begin();
    ASSERT_THAT(reader->GetKey(store_space_, is_present ? "k" : "absent"), IsOk());
    ASSERT_THAT(reader->PutKey(store_space_, "other", "x"), IsOk());
    ASSERT_THAT(Put(store_space_, is_present ? "k" : "absent", "2"), IsOk());
    EXPECT_THAT(reader->Commit().status, StatusIs(StatusCode::kAborted));
  }
}

// KV-07
TEST_F(KeySpaceTest, LetsBlindWritesOfOneKeyFollowOneAnother) {
  const auto one = world_.Begin();
  const auto two = world_.Begin();
  ASSERT_THAT(one->PutKey(store_space_, "k", "1"), IsOk());
  ASSERT_THAT(two->PutKey(store_space_, "k", "2"), IsOk());
  EXPECT_THAT(one->Commit().status, IsOk());
  EXPECT_THAT(two->Commit().status, IsOk());
  EXPECT_EQ(**world_.Begin()->GetKey(store_space_, "k"), "2");
}

// Phantoms: a range that was empty is protected too, as far as it was looked at. [KV-16, KV-19]
TEST_F(KeySpaceTest, ProtectsARangeAgainstPhantomsAsFarAsItWasRead) {
  const KeySpace space = KeySpace::OfRepository(world_.Create("r"));
  const auto commit_after = [&](const std::string& first, const std::string& end, int limit,
                                const std::string& written) {
    const auto reader = world_.Begin();
    EXPECT_THAT(reader->ScanKeys(space, first, end, limit), IsOk());
    EXPECT_THAT(reader->PutKey(store_space_, "seen", "x"), IsOk());
    EXPECT_THAT(Put(space, written, "phantom"), IsOk());
    return reader->Commit().status;
  };
  EXPECT_THAT(commit_after("a", "c", 10, "b"), StatusIs(StatusCode::kAborted));
  EXPECT_THAT(commit_after("a", "c", 10, "c"), IsOk());
  EXPECT_THAT(commit_after("", "", 10, "zzz"), StatusIs(StatusCode::kAborted));
  // Cut off behind "b": what comes later was not read.
  EXPECT_THAT(commit_after("a", "", 1, "bb"), IsOk());
  EXPECT_THAT(commit_after("a", "", 1, "aa"), StatusIs(StatusCode::kAborted));
  // Another repository's keys, and the store's, are other ranges.
  const KeySpace other = KeySpace::OfRepository(world_.Create("s"));
  const auto reader = world_.Begin();
  ASSERT_THAT(reader->ScanKeys(space, "", "", 100), IsOk());
  ASSERT_THAT(reader->PutKey(store_space_, "seen", "y"), IsOk());
  ASSERT_THAT(Put(other, "b", "x"), IsOk());
  ASSERT_THAT(Put(store_space_, "b", "x"), IsOk());
  EXPECT_THAT(reader->Commit().status, IsOk());
}

// Write skew over a key and a ref: each reads what the other writes. [C150]
TEST_F(KeySpaceTest, RefusesWriteSkewBetweenAKeyAndARef) {
  const RepositoryId id = world_.Create("r");
  const KeySpace space = KeySpace::OfRepository(id);
  for (const bool ref_first : {true, false}) {
    ASSERT_THAT(Delete(space, "frozen"), IsOk());
    ASSERT_THAT(world_.Set(id, Branch("main"), refs::RefValue::Absent()).status, IsOk());
    const auto freezer = world_.Begin();  // freezes when there is no branch
    ASSERT_TRUE(freezer->ReadRef(id, Branch("main"))->is_absent());
    ASSERT_THAT(freezer->PutKey(space, "frozen", "yes"), IsOk());
    const auto pusher = world_.Begin();  // pushes when it is not frozen
    ASSERT_EQ(*pusher->GetKey(space, "frozen"), std::nullopt);
    ASSERT_THAT(pusher->UpdateRef(id, {.name = Branch("main"), .value = World::At(1)}), IsOk());
    Transaction& first = ref_first ? *pusher : *freezer;
    Transaction& second = ref_first ? *freezer : *pusher;
    EXPECT_THAT(first.Commit().status, IsOk());
    EXPECT_THAT(second.Commit().status, StatusIs(StatusCode::kAborted));
    EXPECT_EQ((*world_.Begin()->GetKey(space, "frozen")).has_value(), !ref_first);
    EXPECT_EQ(world_.Read(id, Branch("main")).is_absent(), !ref_first);
  }
}

TEST_F(KeySpaceTest, AbortsAPutThatRacesWithTheDeletionOfItsRepository) {
  const RepositoryId id = world_.Create("r");
  const auto put = world_.Begin();
  ASSERT_THAT(put->PutKey(KeySpace::OfRepository(id), "k", "v"), IsOk());
  ASSERT_THAT(world_.store().Run({}, [&](Transaction& txn) { return txn.DeleteRepository(id); }).status, IsOk());
  EXPECT_THAT(put->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(Put(KeySpace::OfRepository(id), "k", "v"), StatusIs(StatusCode::kNotFound));
}

// Several partitions in one transaction: all or nothing, also after a crash. [KV-21, C095]
TEST_F(KeySpaceTest, WritesSeveralPartitionsAsOne) {
  const RepositoryId a = world_.Create("a");
  const RepositoryId b = world_.Create("b");
  const CommitResult result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.PutKey(KeySpace::OfRepository(a), "k", "1"));
    REPOTXN_RETURN_IF_ERROR(txn.PutKey(KeySpace::OfRepository(b), "k", "2"));
    REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(a, {.name = Branch("main"), .value = World::At(1)}));
    REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(b, {.name = Branch("main"), .value = World::At(2)}));
    return txn.PutKey(KeySpace::OfStore(), "k", "3");
  });
  ASSERT_THAT(result.status, IsOk());
  world_.CrashAndKeep(CrashOptions{});
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_THAT(All(KeySpace::OfRepository(a)), ElementsAre(Pair("k", "1")));
  EXPECT_THAT(All(KeySpace::OfRepository(b)), ElementsAre(Pair("k", "2")));
  EXPECT_THAT(All(KeySpace::OfStore()), ElementsAre(Pair("k", "3")));
  EXPECT_EQ(World::Name(world_.Read(a, Branch("main"))), "c1");
  EXPECT_EQ(World::Name(world_.Read(b, Branch("main"))), "c2");
}

}  // namespace
}  // namespace repotxn::txn
