// Links between repositories: who borrows from whom, and every race that could leave one without its objects.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "locks/verdict.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using repotxn::testing::Branch;
using repotxn::testing::CrashOptions;
using repotxn::testing::IsOk;
using repotxn::testing::MakeCommit;
using repotxn::testing::Path;
using repotxn::testing::StatusIs;
using repotxn::testing::World;

using Body = std::function<absl::Status(Transaction&)>;

class AlternatesTest : public ::testing::Test {
 protected:
  AlternatesTest() { EXPECT_THAT(world_.Open(), IsOk()); }

  absl::Status Do(const Body& body) {
    RunOptions once;
    once.retries_max = 0;
    return world_.store().Run(once, body).status;
  }
  // A repository without any object.
  RepositoryId Empty(const std::string& path) {
    RepositoryId id;
    EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(id, txn.CreateRepository(Path(path), {}));
                  return absl::OkStatus();
                }),
                IsOk());
    return id;
  }
  absl::Status Link(const RepositoryId& member, const RepositoryId& pool) {
    return Do([&](Transaction& txn) { return txn.LinkAlternate(member, pool); });
  }
  absl::Status Delete(const RepositoryId& id) {
    return Do([&](Transaction& txn) { return txn.DeleteRepository(id); });
  }
  absl::StatusOr<RepositoryId> Fork(const RepositoryId& source, const std::string& path) {
    RepositoryId id;
    const absl::Status status = Do([&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(id, txn.ForkRepository(source, Path(path), {}));
      return absl::OkStatus();
    });
    return status.ok() ? absl::StatusOr<RepositoryId>(id) : status;
  }
  std::string AlternatesFile(const RepositoryId& id) {
    const auto content = storage::ReadFile(
        world_.fs(), layout::RepositoryDirectory(id) / "objects/info/alternates");
    return content.ok() ? *content : "";
  }
  static std::string Line(const RepositoryId& id) {
    const std::string hex = id.ToHex();
    return absl::StrCat("../../../", hex.substr(0, 2), "/", hex, ".git/objects\n");
  }

  World world_;
};

// ALT-03, ALT-09, ALT-11, ALT-13
TEST_F(AlternatesTest, LetsAMemberUseItsPoolsObjectsAtOnceAndAfterRestart) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  EXPECT_THAT(world_.Set(member, Branch("main"), World::At(1)).status, StatusIs(StatusCode::kFailedPrecondition));
  ASSERT_THAT(Link(member, pool), IsOk());
  EXPECT_THAT(world_.Set(member, Branch("main"), World::At(1)).status, IsOk());
  EXPECT_EQ(AlternatesFile(member), Line(pool));
  EXPECT_THAT(*world_.Begin()->Alternates(member), ElementsAre(pool));
  EXPECT_THAT(*world_.Begin()->Members(pool), ElementsAre(member));
  world_.CrashAndKeep(CrashOptions{});
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_EQ(AlternatesFile(member), Line(pool));
  EXPECT_THAT(world_.Set(member, Branch("main"), World::At(2)).status, IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(*world_.Begin()->Members(pool), ElementsAre(member));
}

// ALT-11
TEST_F(AlternatesTest, LinksAndUsesThePoolInOneTransaction) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(member, pool));
                return txn.UpdateRef(member, {.name = Branch("main"), .value = World::At(1)});
              }),
              IsOk());
  EXPECT_EQ(world_.Refs(member), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

// C065, C067
TEST_F(AlternatesTest, LinksTwoPoolsAndUsesWhatTheSecondBorrowsInOneTransaction) {
  const RepositoryId top = world_.Create("top");
  const RepositoryId one = Empty("one");
  const RepositoryId two = Empty("two");
  ASSERT_THAT(Link(two, top), IsOk());
  const RepositoryId member = Empty("member");
  EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(member, one));
                REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(member, two));
                return txn.UpdateRef(member, {.name = Branch("main"), .value = World::At(1)});
              }),
              IsOk());
  EXPECT_EQ(world_.Refs(member), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

TEST_F(AlternatesTest, RefusesCirclesDoublesChainsTooLongAndOtherFormats) {
  std::vector<RepositoryId> chain;
  for (int i = 0; i < 6; ++i) chain.push_back(Empty(absl::StrCat("r", i)));
  EXPECT_THAT(Link(chain[0], chain[0]), StatusIs(StatusCode::kFailedPrecondition));
  for (size_t i = 0; i < 4; ++i) ASSERT_THAT(Link(chain[i], chain[i + 1]), IsOk()) << i;
  EXPECT_THAT(Link(chain[0], chain[1]), StatusIs(StatusCode::kAlreadyExists));
  EXPECT_THAT(Link(chain[4], chain[0]), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(Link(chain[2], chain[0]), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(Link(chain[4], chain[5]), StatusIs(StatusCode::kFailedPrecondition));  // a fifth link below
  EXPECT_THAT(Link(chain[5], chain[0]), StatusIs(StatusCode::kFailedPrecondition));  // a fifth above
  EXPECT_THAT(Link(chain[5], chain[1]), IsOk());
  EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
                CreateOptions options;
                options.format = ObjectFormat::kSha256;
                REPOTXN_ASSIGN_OR_RETURN(const RepositoryId other, txn.CreateRepository(Path("other"), options));
                return txn.LinkAlternate(other, chain[4]);
              }),
              StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_EQ(AlternatesFile(chain[4]), "");
}

// Two links, each sound by itself, that together make a circle or a chain too long. [C065]
TEST_F(AlternatesTest, OfTwoLinksThatMakeACircleOneWins) {
  const RepositoryId a = Empty("a");
  const RepositoryId b = Empty("b");
  const auto one = world_.Begin();
  const auto two = world_.Begin();
  ASSERT_THAT(one->LinkAlternate(a, b), IsOk());
  ASSERT_THAT(two->LinkAlternate(b, a), IsOk());
  EXPECT_THAT(one->Commit().status, IsOk());
  EXPECT_THAT(two->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(AlternatesFile(b), "");
}

// A10: the pool is deleted while somebody links to it, in both orders. [C060]
TEST_F(AlternatesTest, OfALinkAndThePoolsDeletionOneWins) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = Empty("member");
  const auto deletion = world_.Begin();
  ASSERT_THAT(deletion->DeleteRepository(pool), IsOk());
  ASSERT_THAT(Link(member, pool), IsOk());
  EXPECT_THAT(deletion->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(Delete(pool), StatusIs(StatusCode::kFailedPrecondition));

  const RepositoryId other = world_.Create("other");
  const auto link = world_.Begin();
  ASSERT_THAT(link->LinkAlternate(Empty("late"), other), StatusIs(StatusCode::kNotFound));
  const RepositoryId late = Empty("late2");
  const auto link2 = world_.Begin();
  ASSERT_THAT(link2->LinkAlternate(late, other), IsOk());
  ASSERT_THAT(Delete(other), IsOk());
  EXPECT_THAT(link2->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(AlternatesFile(late), "");
}

// C060
TEST_F(AlternatesTest, RefusesToDeleteAPoolWhileLiveRepositoriesBorrowFromIt) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = *Fork(pool, "member");
  EXPECT_THAT(Delete(pool), StatusIs(StatusCode::kFailedPrecondition));
  ASSERT_THAT(Delete(member), IsOk());
  EXPECT_THAT(Delete(pool), IsOk());
  // What borrowed from it cannot come back before it does.
  const auto undelete = [&](const RepositoryId& id, const std::string& path) {
    return Do([&](Transaction& txn) { return txn.UndeleteRepository(id, Path(path)); });
  };
  EXPECT_THAT(undelete(member, "member"), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(undelete(pool, "pool"), IsOk());
  EXPECT_THAT(undelete(member, "member"), IsOk());
  EXPECT_THAT(*world_.Begin()->Members(pool), ElementsAre(member));
  EXPECT_THAT(Delete(pool), StatusIs(StatusCode::kFailedPrecondition));
}

TEST_F(AlternatesTest, OfAnUndeletionAndThePoolsDeletionOneWins) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = *Fork(pool, "member");
  ASSERT_THAT(Delete(member), IsOk());
  const auto undeletion = world_.Begin();
  ASSERT_THAT(undeletion->UndeleteRepository(member, Path("member")), IsOk());
  const auto deletion = world_.Begin();
  ASSERT_THAT(deletion->DeleteRepository(pool), IsOk());
  ASSERT_THAT(undeletion->Commit().status, IsOk());
  EXPECT_THAT(deletion->Commit().status, StatusIs(StatusCode::kAborted));
  ASSERT_THAT(Delete(member), IsOk());
  const auto late = world_.Begin();
  ASSERT_THAT(late->UndeleteRepository(member, Path("member")), IsOk());
  ASSERT_THAT(Delete(pool), IsOk());
  EXPECT_THAT(late->Commit().status, StatusIs(StatusCode::kAborted));
}

TEST_F(AlternatesTest, DeletesAMemberAndItsPoolInOneTransaction) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = *Fork(pool, "member");
  EXPECT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.DeleteRepository(member));
                return txn.DeleteRepository(pool);
              }),
              IsOk());
  world_.clock().Advance(absl::Hours(25));
  // In the order of their ids, which are drawn: whichever the first round leaves, the second takes.
  for (int round = 0; round < 2; ++round) ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(pool)));
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(member)));
}

// The fork has the source's refs of one moment, and later pushes to the source do not abort it. [MW-20]
TEST_F(AlternatesTest, ForksWithTheRefsOfTheSnapshotWhatEverIsPushedMeanwhile) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Set(source, Branch("main"), World::At(1)).status, IsOk());
  ASSERT_THAT(world_.Set(source, repotxn::testing::Ref("refs/tags/v1"), World::At(2)).status, IsOk());
  ASSERT_THAT(world_.Set(source, repotxn::testing::Ref("refs/notes/x"), World::At(2)).status, IsOk());
  const auto fork = world_.Begin();
  const auto id = fork->ForkRepository(source, Path("fork"), {});
  ASSERT_THAT(id, IsOk());
  ASSERT_THAT(world_.Set(source, Branch("main"), World::At(3)).status, IsOk());
  EXPECT_THAT(fork->Commit().status, IsOk());
  const std::string expected = "HEAD ref: refs/heads/main\nrefs/heads/main c1\nrefs/tags/v1 c2\n";
  EXPECT_EQ(world_.Refs(*id), expected);
  EXPECT_THAT(world_.Set(*id, Branch("other"), World::At(4)).status, IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(*id), absl::StrCat("HEAD ref: refs/heads/main\nrefs/heads/main c1\n",
                                           "refs/heads/other c4\nrefs/tags/v1 c2\n"));
  EXPECT_EQ(AlternatesFile(*id), Line(source));
}

// C067
TEST_F(AlternatesTest, ForksOfForksReachTheObjectsOfAllAboveThem) {
  RepositoryId at = world_.Create("r0");
  ASSERT_THAT(world_.Set(at, Branch("main"), World::At(1)).status, IsOk());
  for (int i = 1; i <= 4; ++i) {
    const auto fork = Fork(at, absl::StrCat("r", i));
    ASSERT_THAT(fork, IsOk()) << i;
    world_.PutObject(*fork, MakeCommit(100 + i));
    at = *fork;
  }
  EXPECT_THAT(world_.Set(at, Branch("a"), World::At(9)).status, IsOk());
  EXPECT_THAT(world_.Set(at, Branch("b"), refs::RefValue::Object(MakeCommit(102).oid)).status, IsOk());
  EXPECT_THAT(Fork(at, "r5").status(), StatusIs(StatusCode::kFailedPrecondition));
}

// A11: a push that relies on a pool's object meets the change of the chain, at any level. [C067]
TEST_F(AlternatesTest, AbortsAPushWhoseChainOfAlternatesChangedMeanwhile) {
  const RepositoryId top = world_.Create("top");
  const RepositoryId middle = Empty("middle");
  const RepositoryId member = Empty("member");
  ASSERT_THAT(Link(member, middle), IsOk());
  ASSERT_THAT(Link(middle, top), IsOk());
  const auto push = world_.Begin();
  ASSERT_THAT(push->UpdateRef(member, {.name = Branch("main"), .value = World::At(1)}), IsOk());
  ASSERT_THAT(Link(middle, world_.Create("another")), IsOk());
  EXPECT_THAT(push->Commit().status, StatusIs(StatusCode::kAborted));
  // A push that touches no object of it goes on: a deletion of a ref.
  ASSERT_THAT(world_.Set(member, Branch("main"), World::At(1)).status, IsOk());
  const auto deletion = world_.Begin();
  ASSERT_THAT(deletion->UpdateRef(member, {.name = Branch("main"), .value = refs::RefValue::Absent()}), IsOk());
  ASSERT_THAT(Link(middle, world_.Create("third")), IsOk());
  EXPECT_THAT(deletion->Commit().status, IsOk());
}

// A2
TEST_F(AlternatesTest, MovesPoolAndMemberWithoutTouchingTheLink) {
  const RepositoryId pool = world_.Create("pool");
  const RepositoryId member = *Fork(pool, "member");
  ASSERT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.MoveRepository(pool, Path("pools/p")));
                return txn.MoveRepository(member, Path("people/m"));
              }),
              IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(AlternatesFile(member), Line(pool));
  EXPECT_THAT(world_.Set(member, Branch("main"), World::At(1)).status, IsOk());
}

// Every crash between a fork's durable entry and its directory work.
TEST_F(AlternatesTest, MakesAForkWholeOrNotAtAllAfterACrash) {
  const RepositoryId source = world_.Create("source");
  ASSERT_THAT(world_.Set(source, Branch("main"), World::At(1)).status, IsOk());
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  const auto fork = Fork(source, "fork");
  ASSERT_THAT(fork, IsOk());
  world_.CrashAndKeep(CrashOptions{});
  ASSERT_THAT(world_.Open(), IsOk());
  EXPECT_EQ(world_.Refs(*fork), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
  EXPECT_THAT(*world_.Begin()->Members(source), UnorderedElementsAre(*fork));
}

}  // namespace
}  // namespace repotxn::txn
