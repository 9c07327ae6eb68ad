// Repositories that are removed, moved, brought back and purged; groups.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "locks/verdict.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using repotxn::testing::Branch;
using repotxn::testing::CrashOptions;
using repotxn::testing::IsOk;
using repotxn::testing::Path;
using repotxn::testing::StatusIs;
using repotxn::testing::World;

using Body = std::function<absl::Status(Transaction&)>;

class RepositoryLifeTest : public ::testing::Test {
 protected:
  RepositoryLifeTest() {
    StoreOptions options = World::Options();
    options.idle_lease = absl::InfiniteDuration();  // readers here stay open for days
    EXPECT_THAT(world_.Open(options), IsOk());
  }

  absl::Status Do(const Body& body) { return world_.store().Run({}, body).status; }
  absl::Status Delete(const RepositoryId& id) {
    return Do([&](Transaction& txn) { return txn.DeleteRepository(id); });
  }
  absl::Status Move(const RepositoryId& id, const std::string& to) {
    return Do([&](Transaction& txn) { return txn.MoveRepository(id, Path(to)); });
  }
  absl::Status Undelete(const RepositoryId& id, const std::string& path) {
    return Do([&](Transaction& txn) { return txn.UndeleteRepository(id, Path(path)); });
  }
  absl::StatusOr<RepositoryId> IdAt(const std::string& path) {
    return world_.Begin()->OpenRepository(Path(path));
  }
  std::vector<std::string> Paths() {
    std::vector<std::string> paths;
    const auto listed = world_.store().ListRepositories("", "", 100);
    EXPECT_THAT(listed, IsOk());
    for (const RepositoryInfo& info : *listed) paths.push_back(info.path);
    return paths;
  }
  // The name space as the disk shows it: symlinks and directories below repositories/, @id left out.
  std::vector<std::string> OnDisk(const storage::StorePath& directory = layout::Repositories()) {
    std::vector<std::string> found;
    const auto entries = world_.fs().List(directory);
    EXPECT_THAT(entries, IsOk());
    for (const storage::DirectoryEntry& entry : *entries) {
      if (entry.name == "@id") continue;
      const storage::StorePath path = directory / entry.name;
      const std::string name = path.text().substr(layout::Repositories().text().size() + 1);
      found.push_back(entry.kind == storage::FileKind::kSymlink ? name : name + "/");
      if (entry.kind != storage::FileKind::kDirectory) continue;
      for (std::string& below : OnDisk(path)) found.push_back(std::move(below));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  World world_;
};

// A1, A2: the path is free at once; what is made there is another repository. [REPO-22, C071, C072]
TEST_F(RepositoryLifeTest, DeletesAndCreatesAgainAtTheSamePathAtOnce) {
  const RepositoryId first = world_.Create("g/r");
  ASSERT_THAT(world_.Set(first, Branch("main"), World::At(1)).status, IsOk());
  ASSERT_THAT(Delete(first), IsOk());
  EXPECT_THAT(IdAt("g/r"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(world_.Begin()->ReadRef(first, Branch("main")), StatusIs(StatusCode::kNotFound));
  const RepositoryId second = world_.Create("g/r");
  EXPECT_NE(first, second);
  EXPECT_EQ(world_.Refs(second), "HEAD ref: refs/heads/main\n");
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(*IdAt("g/r"), second);
  EXPECT_EQ(world_.Refs(second), "HEAD ref: refs/heads/main\n");
}

TEST_F(RepositoryLifeTest, DeletesAndCreatesAtOnePathInOneTransaction) {
  const RepositoryId first = world_.Create("r");
  RepositoryId second;
  ASSERT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.DeleteRepository(first));
                REPOTXN_ASSIGN_OR_RETURN(second, txn.CreateRepository(Path("r"), {}));
                return absl::OkStatus();
              }),
              IsOk());
  EXPECT_EQ(*IdAt("r"), second);
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(*IdAt("r"), second);
  EXPECT_EQ(*world_.fs().ReadLink(layout::RepositoryLink("r")), layout::RepositoryLinkTarget("r", second));
}

// A3: a reader that began before keeps what it saw. [REPO-20, REPO-21]
TEST_F(RepositoryLifeTest, KeepsADeletedRepositoryForReadersThatBeganBefore) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(world_.Set(id, Branch("main"), World::At(1)).status, IsOk());
  const auto before = world_.Begin();
  ASSERT_THAT(Delete(id), IsOk());
  world_.clock().Advance(absl::Hours(100));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_EQ(World::Name(*before->ReadRef(id, Branch("main"))), "c1");
  EXPECT_EQ(*before->OpenRepository(Path("r")), id);
}

// A25, REPO-14, REPO-19
TEST_F(RepositoryLifeTest, AbortsAPushThatRacesWithADeletionInBothOrders) {
  const RepositoryId id = world_.Create("r");
  const auto push = world_.Begin();
  ASSERT_THAT(push->UpdateRef(id, {.name = Branch("main"), .value = World::At(1)}), IsOk());
  ASSERT_THAT(Delete(id), IsOk());
  const CommitResult late = push->Commit();
  EXPECT_THAT(late.status, StatusIs(StatusCode::kAborted));
  ASSERT_TRUE(locks::ConflictDetailOf(late.status).has_value());
  EXPECT_EQ(locks::ConflictDetailOf(late.status)->rule, locks::ConflictRule::kAncestorRemoved);

  const RepositoryId other = world_.Create("s");
  const auto deletion = world_.Begin();
  ASSERT_THAT(deletion->DeleteRepository(other), IsOk());
  ASSERT_THAT(world_.Set(other, Branch("main"), World::At(1)).status, IsOk());
  EXPECT_THAT(deletion->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_EQ(world_.Refs(other), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

// A2
TEST_F(RepositoryLifeTest, MovesWithEverythingInItAndFreesTheOldPath) {
  const RepositoryId id = world_.Create("a/r");
  ASSERT_THAT(world_.Set(id, Branch("main"), World::At(1)).status, IsOk());
  ASSERT_THAT(Move(id, "b/c/r2"), IsOk());
  EXPECT_THAT(IdAt("a/r"), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(*IdAt("b/c/r2"), id);
  EXPECT_EQ(world_.Begin()->Describe(id)->path, "b/c/r2");
  const RepositoryId next = world_.Create("a/r");
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(*IdAt("b/c/r2"), id);
  EXPECT_EQ(*IdAt("a/r"), next);
  EXPECT_EQ(World::Name(world_.Read(id, Branch("main"))), "c1");
  EXPECT_THAT(OnDisk(), ElementsAre("a/", "a/r.git", "b/", "b/c/", "b/c/r2.git"));
}

TEST_F(RepositoryLifeTest, SwapsTwoPathsInOneTransaction) {
  const RepositoryId one = world_.Create("one");
  const RepositoryId two = world_.Create("two");
  ASSERT_THAT(Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_RETURN_IF_ERROR(txn.MoveRepository(one, Path("aside")));
                REPOTXN_RETURN_IF_ERROR(txn.MoveRepository(two, Path("one")));
                return txn.MoveRepository(one, Path("two"));
              }),
              IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(*IdAt("one"), two);
  EXPECT_EQ(*IdAt("two"), one);
  EXPECT_THAT(Paths(), ElementsAre("one", "two"));
}

// C081
TEST_F(RepositoryLifeTest, RefusesToMoveOntoOrBelowAnotherRepository) {
  const RepositoryId id = world_.Create("a");
  world_.Create("b");
  world_.Create("g/x");
  EXPECT_THAT(Move(id, "b"), StatusIs(StatusCode::kAlreadyExists));
  EXPECT_THAT(Move(id, "b/c"), StatusIs(StatusCode::kAlreadyExists));
  EXPECT_THAT(Move(id, "g"), StatusIs(StatusCode::kAlreadyExists));
  EXPECT_THAT(Move(id, "a"), IsOk());
  EXPECT_THAT(Paths(), ElementsAre("a", "b", "g/x"));
  // Into the group that its own path becomes.
  EXPECT_THAT(Move(id, "a/a"), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(Paths(), ElementsAre("a/a", "b", "g/x"));
  EXPECT_THAT(OnDisk(), ElementsAre("a/", "a/a.git", "b.git", "g/", "g/x.git"));
}

TEST_F(RepositoryLifeTest, OfTwoMovesToOnePathOneWins) {
  const RepositoryId one = world_.Create("one");
  const RepositoryId two = world_.Create("two");
  const auto a = world_.Begin();
  const auto b = world_.Begin();
  ASSERT_THAT(a->MoveRepository(one, Path("goal")), IsOk());
  ASSERT_THAT(b->MoveRepository(two, Path("goal")), IsOk());
  EXPECT_THAT(a->Commit().status, IsOk());
  EXPECT_THAT(b->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(Paths(), ElementsAre("goal", "two"));
}

TEST_F(RepositoryLifeTest, BringsADeletedRepositoryBackUntilItIsPurged) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(world_.Set(id, Branch("main"), World::At(1)).status, IsOk());
  ASSERT_THAT(Do([&](Transaction& txn) {
                return txn.PutKey(KeySpace::OfRepository(id), "owner", "me");
              }),
              IsOk());
  EXPECT_THAT(Undelete(id, "s"), StatusIs(StatusCode::kNotFound));
  ASSERT_THAT(Delete(id), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  world_.clock().Advance(absl::Hours(23));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(Undelete(id, "s"), IsOk());
  EXPECT_THAT(Undelete(id, "t"), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(*IdAt("s"), id);
  EXPECT_EQ(World::Name(world_.Read(id, Branch("main"))), "c1");
  EXPECT_EQ(**world_.Begin()->GetKey(KeySpace::OfRepository(id), "owner"), "me");
  // Its time of removal is forgotten with it.
  world_.clock().Advance(absl::Hours(100));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(*IdAt("s"), id);
  EXPECT_EQ(World::Name(world_.Read(id, Branch("main"))), "c1");
}

// C073
TEST_F(RepositoryLifeTest, PurgesWhatWasDeletedWithItsKeysAndItsDirectory) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(Do([&](Transaction& txn) {
                return txn.PutKey(KeySpace::OfRepository(id), "owner", "me");
              }),
              IsOk());
  ASSERT_THAT(Delete(id), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_THAT(Undelete(id, "r"), StatusIs(StatusCode::kNotFound));
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(id)));
  EXPECT_THAT(*world_.fs().List(layout::PendingDelete()), IsEmpty());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(Undelete(id, "r"), StatusIs(StatusCode::kNotFound));
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(id)));
  EXPECT_THAT(Paths(), IsEmpty());
}

TEST_F(RepositoryLifeTest, DoesNotPurgeWhatAnOlderSnapshotMayShow) {
  const RepositoryId id = world_.Create("r");
  auto before = world_.Begin();
  ASSERT_THAT(Delete(id), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_TRUE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(id)));
  before.reset();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(id)));
}

TEST_F(RepositoryLifeTest, OfAPurgeAndAnUndeletionOneWins) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(Delete(id), IsOk());
  const auto undeletion = world_.Begin();
  ASSERT_THAT(undeletion->UndeleteRepository(id, Path("r")), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_THAT(undeletion->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(Paths(), IsEmpty());
}

TEST_F(RepositoryLifeTest, RemovesAGroupOnlyWhenNothingLivesBelow) {
  world_.Create("g/h/r");
  const auto remove = [&](const std::string& group) {
    return Do([&](Transaction& txn) { return txn.RemoveGroup(group); });
  };
  EXPECT_THAT(remove("g"), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(remove("g/h"), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(remove("g/h/r"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(remove("x"), StatusIs(StatusCode::kNotFound));
  ASSERT_THAT(Delete(*IdAt("g/h/r")), IsOk());
  EXPECT_THAT(remove("g"), StatusIs(StatusCode::kFailedPrecondition));
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  EXPECT_THAT(OnDisk(), ElementsAre("g/", "g/h/"));
  EXPECT_THAT(remove("g/h"), IsOk());
  EXPECT_THAT(remove("g"), IsOk());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(OnDisk(), IsEmpty());
  world_.Create("g");  // the name is free for a repository
  EXPECT_THAT(Paths(), ElementsAre("g"));
}

// B12-like: creating a child and removing its parent, in both orders. [C146]
TEST_F(RepositoryLifeTest, OfAGroupsRemovalAndACreationInItOneWins) {
  ASSERT_THAT(Do([](Transaction& txn) { return txn.EnsureGroup("g"); }), IsOk());
  const auto removal = world_.Begin();
  ASSERT_THAT(removal->RemoveGroup("g"), IsOk());
  world_.Create("g/r");
  EXPECT_THAT(removal->Commit().status, StatusIs(StatusCode::kAborted));

  ASSERT_THAT(Do([](Transaction& txn) { return txn.EnsureGroup("h"); }), IsOk());
  const auto creation = world_.Begin();
  ASSERT_THAT(creation->CreateRepository(Path("h/r"), {}), IsOk());
  ASSERT_THAT(Do([](Transaction& txn) { return txn.RemoveGroup("h"); }), IsOk());
  EXPECT_THAT(creation->Commit().status, StatusIs(StatusCode::kAborted));
  EXPECT_THAT(Paths(), ElementsAre("g/r"));
}

TEST_F(RepositoryLifeTest, ListsWhatIsDirectlyInAGroupWithItsOwnChanges) {
  const RepositoryId r = world_.Create("g/r");
  world_.Create("g/r-x/y");
  world_.Create("g/s");
  world_.Create("other");
  auto txn = world_.Begin();
  const RepositoryId fresh = *txn->CreateRepository(Path("g/fresh"), {});
  ASSERT_THAT(txn->DeleteRepository(*txn->OpenRepository(Path("g/s"))), IsOk());
  EXPECT_THAT(*txn->ListGroup("g"),
              ElementsAre(GroupEntry{"fresh", fresh}, GroupEntry{"r", r}, GroupEntry{"r-x", {}}));
  EXPECT_THAT(txn->ListGroup("g/r"), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(txn->ListGroup("")->size(), 2u);
}

TEST_F(RepositoryLifeTest, AbortsWhoListedAGroupWhenARepositoryAppearsInIt) {
  world_.Create("g/r");
  const auto reader = world_.Begin();
  ASSERT_THAT(reader->ListGroup("g"), IsOk());
  ASSERT_THAT(reader->PutKey(KeySpace::OfStore(), "count", "1"), IsOk());
  world_.Create("g/s");
  EXPECT_THAT(reader->Commit().status, StatusIs(StatusCode::kAborted));
  const auto elsewhere = world_.Begin();
  ASSERT_THAT(elsewhere->ListGroup("g"), IsOk());
  ASSERT_THAT(elsewhere->PutKey(KeySpace::OfStore(), "count", "2"), IsOk());
  world_.Create("other/s");
  EXPECT_THAT(elsewhere->Commit().status, IsOk());
}

// Create, Ensure: of two callers both get the same id, whoever is first. [C076]
TEST_F(RepositoryLifeTest, GivesEveryCallerOfEnsureTheSameRepository) {
  const auto loser = world_.Begin();
  const RepositoryId guess = *loser->EnsureRepository(Path("r"), {});
  RepositoryId won;
  const Body ensure = [&](Transaction& txn) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(won, txn.EnsureRepository(Path("r"), {}));
    return absl::OkStatus();
  };
  ASSERT_THAT(Do(ensure), IsOk());
  EXPECT_THAT(loser->Commit().status, StatusIs(StatusCode::kAborted));
  const RepositoryId first = won;
  ASSERT_THAT(Do(ensure), IsOk());
  EXPECT_EQ(won, first);
  EXPECT_NE(guess, first);
}

// Every life cycle operation, with a crash at each moment that the disk can be seen at.
// REPO-05, REPO-16, C074
TEST_F(RepositoryLifeTest, SurvivesACrashAfterEachAcknowledgedStep) {
  const RepositoryId a = world_.Create("g/a");
  const RepositoryId b = world_.Create("g/b");
  ASSERT_THAT(world_.Set(a, Branch("main"), World::At(1)).status, IsOk());
  const auto crash = [&] {
    world_.CrashAndKeep(CrashOptions{});
    ASSERT_THAT(world_.Open(), IsOk());
  };
  ASSERT_THAT(Move(a, "h/a"), IsOk());
  crash();
  EXPECT_THAT(Paths(), ElementsAre("g/b", "h/a"));
  ASSERT_THAT(Delete(b), IsOk());
  crash();
  EXPECT_THAT(Paths(), ElementsAre("h/a"));
  ASSERT_THAT(Undelete(b, "g/c"), IsOk());
  crash();
  EXPECT_THAT(Paths(), ElementsAre("g/c", "h/a"));
  ASSERT_THAT(Delete(a), IsOk());
  world_.clock().Advance(absl::Hours(25));
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  crash();
  EXPECT_THAT(Paths(), ElementsAre("g/c"));
  EXPECT_FALSE(*storage::Exists(world_.fs(), layout::RepositoryDirectory(a)));
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(OnDisk(), ElementsAre("g/", "g/c.git", "h/"));
}

}  // namespace
}  // namespace repotxn::txn
