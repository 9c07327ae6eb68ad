// Scenarios of pools and their members, as rows and as files; with real packs: scenarios_git_test. Identifiers:
// docs/scenarios.md.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using txn::Transaction;

class AlternatesScenarioTest : public ::testing::Test {
 protected:
  AlternatesScenarioTest() { EXPECT_THAT(world_.Open(), IsOk()); }

  absl::Status Do(const std::function<absl::Status(Transaction&)>& body) {
    return world_.store().Run({.begin = {}, .retries_max = 0}, body).status;
  }
  // A repository without any object.
  RepositoryId Empty(const std::string& path) {
    RepositoryId id;
    EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(Path(path), {}));
      return absl::OkStatus();
    }), IsOk());
    return id;
  }
  absl::Status Link(const RepositoryId& member, const RepositoryId& pool) {
    return Do([&](Transaction& txn) { return txn.LinkAlternate(member, pool); });
  }
  std::string AlternatesFile(const RepositoryId& id) {
    const auto content =
        storage::ReadFile(world_.fs(), txn::layout::RepositoryDirectory(id) / "objects/info/alternates");
    return content.ok() ? *content : "";
  }

  World world_;
};

// ALT-01, ALT-11: made, linked and given a tip that only the pool has, in one transaction.
TEST_F(AlternatesScenarioTest, MakesALinkedMemberWithATipOfThePoolInOneTransaction) {
  const RepositoryId pool = world_.Create("pool");
  RepositoryId member;
  ASSERT_THAT(Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(member, txn.CreateRepository(Path("member"), {}));
    REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(member, pool));
    return txn.UpdateRef(member, {.name = Branch("main"), .value = World::At(1)});
  }), IsOk());
  for (const bool is_crash : {false, true}) {
    if (is_crash) {
      world_.CrashAndKeep({});
      ASSERT_THAT(world_.Open(), IsOk());
    }
    EXPECT_THAT(*world_.Begin()->Members(pool), ElementsAre(member));
    EXPECT_EQ(world_.Refs(member), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
    EXPECT_TRUE(*world_.Begin()->ObjectExists(member, MakeCommit(9).oid));
  }
}

// ALT-06: of two links of one member from one snapshot one wins, to one pool or to two.
TEST_F(AlternatesScenarioTest, OfTwoLinksOfOneMemberOneWins) {
  const RepositoryId pool = world_.Create("pool"), other = world_.Create("other");
  for (const bool is_same_pool : {true, false}) {
    const RepositoryId member = Empty(absl::StrCat("m", is_same_pool));
    const auto one = world_.Begin(), two = world_.Begin();
    ASSERT_THAT(one->LinkAlternate(member, pool), IsOk());
    ASSERT_THAT(two->LinkAlternate(member, is_same_pool ? pool : other), IsOk());
    EXPECT_TRUE(one->Commit().committed());
    EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted));
    EXPECT_THAT(*world_.Begin()->Alternates(member), ElementsAre(pool));
  }
}

// ALT-17: what is no repository of the store lends nothing and borrows nothing.
TEST_F(AlternatesScenarioTest, LinksRepositoriesOfTheStoreOnly) {
  const RepositoryId member = Empty("member");
  EXPECT_THAT(Link(member, RepositoryId()), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(Link(RepositoryId(), member), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(AlternatesFile(member), "");
}

// C064: the file that holds the link is written by the link alone.
TEST_F(AlternatesScenarioTest, LetsNobodyWriteTheAlternatesFile) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  ASSERT_THAT(Link(member, pool), IsOk());
  const std::string file = AlternatesFile(member);
  const auto txn = world_.Begin();
  for (const char* path : {"objects/info/alternates", "objects/info/http-alternates", "objects/info"}) {
    EXPECT_THAT(txn->PutFile(member, path, {"", 0644}), StatusIs(StatusCode::kInvalidArgument)) << path;
    EXPECT_THAT(txn->RemoveFile(member, path), StatusIs(StatusCode::kInvalidArgument)) << path;
    EXPECT_THAT(txn->RemoveDirectory(member, path), StatusIs(StatusCode::kInvalidArgument)) << path;
  }
  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_EQ(AlternatesFile(member), file);
}

// C065, B12: circles over two and over three repositories, closed by one transaction or by several at once.
TEST_F(AlternatesScenarioTest, NeverClosesACircleHoweverManyTakePart) {
  for (const size_t length : {size_t{2}, size_t{3}}) {
    std::vector<RepositoryId> ring;
    for (size_t n = 0; n < length; ++n) ring.push_back(Empty(absl::StrCat("r", length, n)));
    std::vector<std::unique_ptr<Transaction>> links;
    for (size_t n = 0; n < length; ++n) {
      links.push_back(world_.Begin());
      ASSERT_THAT(links.back()->LinkAlternate(ring[n], ring[(n + 1) % length]), IsOk());
    }
    size_t committed = 0;
    for (const auto& link : links) committed += link->Commit().committed() ? 1 : 0;
    EXPECT_GE(committed, 1u);
    EXPECT_LT(committed, length);
    for (size_t n = 0; n < length; ++n) {
      const absl::Status again = Link(ring[n], ring[(n + 1) % length]);
      EXPECT_TRUE(again.ok() || absl::IsAlreadyExists(again) || absl::IsFailedPrecondition(again)) << again;
    }
    // One of the circle is left out for good, and the longest way through it ends.
    size_t linked = 0;
    for (const RepositoryId& id : ring) linked += world_.Begin()->Alternates(id)->size();
    EXPECT_EQ(linked, length - 1);
  }
}

// C070: pool and member in different partitions; the link reaches over, and races are found as within one.
TEST_F(AlternatesScenarioTest, LinksAcrossPartitions) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  ASSERT_NE(world_.Begin()->Describe(pool)->partition, world_.Begin()->Describe(member)->partition);
  ASSERT_THAT(Link(member, pool), IsOk());
  EXPECT_TRUE(world_.Set(member, Branch("main"), World::At(1)).committed());
  const auto push = world_.Begin();
  ASSERT_THAT(push->UpdateRef(member, {.name = Branch("dev"), .value = World::At(2)}), IsOk());
  ASSERT_THAT(Link(pool, Empty("above")), IsOk());
  EXPECT_THAT(push->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_NE(world_.Begin()->Describe(pool)->partition, world_.Begin()->Describe(member)->partition);
}

// C060: a pool in use is not deleted, and says how many use it; a new member and a deletion exclude each other.
TEST_F(AlternatesScenarioTest, KeepsAPoolAsLongAsSomebodyMayNeedIt) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId first = Empty("first"), second = Empty("second");
  ASSERT_THAT(Link(first, pool), IsOk());
  ASSERT_THAT(Link(second, pool), IsOk());
  const auto remove = [&](Transaction& txn) { return txn.DeleteRepository(pool); };
  const absl::Status refused = Do(remove);
  EXPECT_THAT(refused, StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("2 others"));
  EXPECT_THAT(*world_.Begin()->Members(pool), ::testing::UnorderedElementsAre(first, second));
  ASSERT_THAT(Do([&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.DeleteRepository(first));
    return txn.DeleteRepository(second);
  }), IsOk());
  const auto deletion = world_.Begin();
  ASSERT_THAT(remove(*deletion), IsOk());
  ASSERT_THAT(Link(Empty("third"), pool), IsOk());
  EXPECT_THAT(deletion->Commit().status, StatusIs(StatusCode::kAborted));
}

// C071, A3: a member and its pool deleted and purged in either order leave nothing that points anywhere.
TEST_F(AlternatesScenarioTest, PurgesMembersAndPoolsWithoutATrace) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  ASSERT_THAT(Link(member, pool), IsOk());
  ASSERT_THAT(Do([&](Transaction& txn) { return txn.DeleteRepository(member); }), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_THAT(*world_.Begin()->Members(pool), IsEmpty());
  ASSERT_THAT(Do([&](Transaction& txn) { return txn.DeleteRepository(pool); }), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  const auto left = world_.fs().List(txn::layout::Repositories());
  ASSERT_THAT(left, IsOk());
  for (const storage::DirectoryEntry& entry : *left) EXPECT_EQ(entry.name, "@id");
  EXPECT_THAT(*world_.fs().List(txn::layout::PendingDelete()), IsEmpty());
}

}  // namespace
}  // namespace repotxn::testing
