// Scenarios of whole repositories: creation, removal and moves beside one another and beside work inside, and crashes
// between their entry and the disk. Identifiers: docs/scenarios.md.
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
using ::testing::SizeIs;
using txn::KeySpace;
using txn::Transaction;

using Body = std::function<absl::Status(Transaction&)>;

class RepositoryScenarioTest : public ::testing::Test {
 protected:
  RepositoryScenarioTest() { EXPECT_THAT(OpenWorld(), IsOk()); }

  absl::Status OpenWorld() {
    txn::StoreOptions options = World::Options();
    options.idle_lease = absl::InfiniteDuration();  // readers here stay open for days
    return world_.Open(options);
  }
  // Another store, empty.
  void StartAfresh() {
    world_.Drop();
    world_.owned_fs() = std::make_unique<MemoryFileSystem>();
    ASSERT_THAT(OpenWorld(), IsOk());
  }
  absl::Status Do(const Body& body) { return world_.store().Run({}, body).status; }
  absl::Status Create(const std::string& path) {
    return Do([&](Transaction& txn) { return txn.CreateRepository(Path(path), {}).status(); });
  }
  absl::Status Delete(const RepositoryId& id) {
    return Do([&](Transaction& txn) { return txn.DeleteRepository(id); });
  }
  absl::StatusOr<RepositoryId> IdAt(const std::string& path) { return world_.Begin()->OpenRepository(Path(path)); }
  std::vector<std::string> Paths() {
    std::vector<std::string> paths;
    const auto listed = world_.store().ListRepositories("", "", 100);
    EXPECT_THAT(listed, IsOk());
    for (const txn::RepositoryInfo& info : *listed) paths.push_back(info.path);
    return paths;
  }
  void Purge() {
    world_.clock().Advance(absl::Hours(25));
    EXPECT_THAT(world_.store().RunBackgroundWork(), IsOk());
  }
  bool HasDirectory(const RepositoryId& id) {
    return *storage::Exists(world_.fs(), txn::layout::RepositoryDirectory(id));
  }
  // A repository with a branch, a file, an empty directory and a key.
  RepositoryId Furnished(const std::string& path) {
    const RepositoryId id = world_.Create(path);
    EXPECT_THAT(Do([&](Transaction& txn) {
      absl::Status status = txn.UpdateRef(id, {.name = Branch("main"), .value = World::At(1)});
      status.Update(txn.PutFile(id, "hooks/update", {"#!/bin/sh\n", 0755}));
      status.Update(txn.MakeDirectory(id, "empty"));
      status.Update(txn.PutKey(KeySpace::OfRepository(id), "owner", "me"));
      return status;
    }), IsOk());
    return id;
  }

  World world_;
};

// One thing that a transaction may do to a repository, whatever its kind.
struct Deed {
  const char* name;
  std::function<absl::Status(Transaction&, const RepositoryId&)> act;
  bool is_seen_by_a_deletion = true;  // false: it changes nothing that a deletion covers or reads
  bool is_inside = true;              // it writes something of the repository itself
};

std::vector<Deed> Deeds() {
  const auto note = [](Transaction& txn) { return txn.PutKey(KeySpace::OfStore(), "note", "x"); };
  return {
      {"create a ref", [](Transaction& txn, const RepositoryId& id) {
         return txn.UpdateRef(id, {.name = Branch("new"), .value = World::At(2)});
       }},
      {"update a ref", [](Transaction& txn, const RepositoryId& id) {
         return txn.UpdateRef(id, {.name = Branch("main"), .value = World::At(2)});
       }},
      {"delete a ref", [](Transaction& txn, const RepositoryId& id) {
         return txn.UpdateRef(id, {.name = Branch("main"), .value = refs::RefValue::Absent()});
       }},
      {"set HEAD", [](Transaction& txn, const RepositoryId& id) {
         return txn.UpdateRef(id, {.name = refs::RefName::Head(), .value = refs::RefValue::Symbolic(Branch("dev"))});
       }},
      {"put a file", [](Transaction& txn, const RepositoryId& id) { return txn.PutFile(id, "description", {"x", 0644}); }},
      {"replace a hook", [](Transaction& txn, const RepositoryId& id) {
         return txn.PutFile(id, "hooks/update", {"#!/bin/sh\nexit 1\n", 0755});
       }},
      {"remove a file", [](Transaction& txn, const RepositoryId& id) { return txn.RemoveFile(id, "hooks/update"); }},
      {"make a directory", [](Transaction& txn, const RepositoryId& id) { return txn.MakeDirectory(id, "info/x"); }},
      {"remove a directory", [](Transaction& txn, const RepositoryId& id) { return txn.RemoveDirectory(id, "empty"); }},
      {"put a key", [](Transaction& txn, const RepositoryId& id) {
         return txn.PutKey(KeySpace::OfRepository(id), "other", "you");
       }},
      {"delete a key", [](Transaction& txn, const RepositoryId& id) {
         return txn.DeleteKey(KeySpace::OfRepository(id), "owner");
       }},
      {"move it", [](Transaction& txn, const RepositoryId& id) { return txn.MoveRepository(id, Path("moved")); }},
      {"delete it", [](Transaction& txn, const RepositoryId& id) { return txn.DeleteRepository(id); }},
      {"fork it", [](Transaction& txn, const RepositoryId& id) {
         return txn.ForkRepository(id, Path("fork"), {}).status();
       }, true, false},
      {"link it to a pool", [](Transaction& txn, const RepositoryId& id) {
         REPOTXN_ASSIGN_OR_RETURN(const RepositoryId pool, txn.OpenRepository(Path("pool")));
         return txn.LinkAlternate(id, pool);
       }},
      {"link another to it", [](Transaction& txn, const RepositoryId& id) {
         REPOTXN_ASSIGN_OR_RETURN(const RepositoryId other, txn.OpenRepository(Path("pool")));
         return txn.LinkAlternate(other, id);
       }, true, false},
      {"read a ref", [note](Transaction& txn, const RepositoryId& id) {
         REPOTXN_RETURN_IF_ERROR(txn.ReadRef(id, Branch("main")).status());
         return note(txn);
       }, false, false},
      {"read a file", [note](Transaction& txn, const RepositoryId& id) {
         REPOTXN_RETURN_IF_ERROR(txn.ReadFile(id, "hooks/update").status());
         return note(txn);
       }, false, false},
      {"scan keys", [note](Transaction& txn, const RepositoryId& id) {
         REPOTXN_RETURN_IF_ERROR(txn.ScanKeys(KeySpace::OfRepository(id), "", "", 10).status());
         return note(txn);
       }, false, false},
      {"look for an object", [note](Transaction& txn, const RepositoryId& id) {
         REPOTXN_RETURN_IF_ERROR(txn.ObjectExists(id, MakeCommit(1).oid).status());
         return note(txn);
       }, false, false},
  };
}

// A25, REPO-12 to REPO-15, CM-04: by name, by path, by key or by object, nothing reaches a deleted repository; who tries
// again is told that it is not there, and the directory stays as it was until it is purged.
TEST_F(RepositoryScenarioTest, NothingIsWrittenToADeletedRepositoryWhateverItsKind) {
  for (const Deed& deed : Deeds()) {
    StartAfresh();
    world_.Create("pool");
    const RepositoryId id = Furnished("g/r");
    ASSERT_THAT(world_.store().Materialize(), IsOk());
    const auto late = world_.Begin();
    ASSERT_THAT(deed.act(*late, id), IsOk()) << deed.name;
    ASSERT_THAT(Delete(id), IsOk());
    const std::string directory = world_.fs().DumpTree(txn::layout::RepositoryDirectory(id));

    EXPECT_THAT(late->Commit().status, StatusIs(StatusCode::kAborted)) << deed.name;

    EXPECT_THAT(Do([&](Transaction& txn) { return deed.act(txn, id); }), StatusIs(StatusCode::kNotFound)) << deed.name;
    ASSERT_THAT(world_.store().Materialize(), IsOk());
    EXPECT_EQ(world_.fs().DumpTree(txn::layout::RepositoryDirectory(id)), directory) << deed.name;
    EXPECT_THAT(Paths(), ElementsAre("pool")) << deed.name;
    EXPECT_EQ(*world_.Begin()->GetKey(KeySpace::OfStore(), "note"), std::nullopt) << deed.name;
  }
}

// REPO-18, REPO-19, CM-03: a deletion meets whatever was written inside since its snapshot; reads do not hinder it (B4).
TEST_F(RepositoryScenarioTest, ADeletionMeetsEveryWriteInsideAndNoRead) {
  for (const Deed& deed : Deeds()) {
    StartAfresh();
    world_.Create("pool");
    const RepositoryId id = Furnished("g/r");
    const auto deletion = world_.Begin();
    ASSERT_THAT(deletion->DeleteRepository(id), IsOk());
    ASSERT_THAT(Do([&](Transaction& txn) { return deed.act(txn, id); }), IsOk()) << deed.name;
    const std::vector<std::string> before = Paths();

    const absl::Status status = deletion->Commit().status;

    if (deed.is_seen_by_a_deletion) {
      EXPECT_THAT(status, StatusIs(StatusCode::kAborted)) << deed.name;
      EXPECT_EQ(Paths(), before) << deed.name;
    } else {
      EXPECT_THAT(status, IsOk()) << deed.name;
      EXPECT_THAT(Paths(), ElementsAre("pool")) << deed.name;
    }
  }
}

// Who declared the whole repository as read meets whatever is written in it, keys included, and nothing else.
TEST_F(RepositoryScenarioTest, AReadOfTheWholeRepositoryMeetsEveryWriteInside) {
  for (const Deed& deed : Deeds()) {
    StartAfresh();
    world_.Create("pool");
    const RepositoryId id = Furnished("g/r");
    const auto reader = world_.Begin();
    ASSERT_THAT(reader->ReadWholeRepository(id), IsOk());
    ASSERT_THAT(reader->PutKey(KeySpace::OfStore(), "judged", "sound"), IsOk());
    ASSERT_THAT(Do([&](Transaction& txn) { return deed.act(txn, id); }), IsOk()) << deed.name;

    const absl::Status status = reader->Commit().status;

    EXPECT_THAT(status, StatusIs(deed.is_inside ? StatusCode::kAborted : StatusCode::kOk)) << deed.name;
    EXPECT_EQ((*world_.Begin()->GetKey(KeySpace::OfStore(), "judged")).has_value(), !deed.is_inside) << deed.name;
  }
}

// REPO-05, REPO-06, REPO-16, REPO-17, C074: a crash between the entry and the disk, and between the disk and the position
// that says so, leaves the operation done, and what comes next works.
TEST_F(RepositoryScenarioTest, IsRedoneAfterACrashWhereverItHadGot) {
  const std::vector<std::function<absl::Status()>> reaches = {
      [] { return absl::OkStatus(); },  // only in the log
      [this] { return world_.store().Materialize(); },
      [this] { return world_.store().Checkpoint(); },
  };
  for (const bool is_deletion : {false, true}) {
    for (size_t reach = 0; reach < reaches.size(); ++reach) {
      for (const CrashSurvival survival : {CrashSurvival::kNothing, CrashSurvival::kEverything}) {
        const std::string where = absl::StrCat(is_deletion, reach, static_cast<int>(survival));
        StartAfresh();
        RepositoryId id = Furnished("g/r");
        if (is_deletion) {
          ASSERT_THAT(world_.store().Checkpoint(), IsOk());
          ASSERT_THAT(Delete(id), IsOk());
        }
        ASSERT_THAT(reaches[reach](), IsOk());

        world_.CrashAndKeep({survival, 0, 0});
        ASSERT_THAT(OpenWorld(), IsOk()) << where;

        if (is_deletion) {
          EXPECT_THAT(Paths(), IsEmpty()) << where;
          id = Furnished("g/r");
        }
        EXPECT_THAT(Paths(), ElementsAre("g/r")) << where;
        EXPECT_EQ(world_.Refs(id), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n") << where;
        EXPECT_EQ(**world_.Begin()->GetKey(KeySpace::OfRepository(id), "owner"), "me") << where;
        EXPECT_EQ(world_.Begin()->ReadFile(id, "hooks/update")->mode, 0755u) << where;
        ASSERT_THAT(Delete(id), IsOk()) << where;
        ASSERT_THAT(world_.Reopen(), IsOk()) << where;
        EXPECT_THAT(Paths(), IsEmpty()) << where;
      }
    }
  }
}

// REPO-07, CORE-18, SNAP-01, C075: work on a repository that is not there leaves no trace of it.
TEST_F(RepositoryScenarioTest, LeavesNothingOfARepositoryThatIsNotThere) {
  txn::BeginOptions missing;
  missing.repositories = {Path("z")};
  EXPECT_THAT(world_.store().Begin(missing), StatusIs(StatusCode::kNotFound));
  const wal::Lsn before = world_.store().committed_lsn();
  const auto txn = world_.Begin();
  EXPECT_THAT(txn->OpenRepository(Path("z")), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(txn->UpdateRef(RepositoryId(), {.name = Branch("main"), .value = World::At(1)}),
              StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(txn->PutFile(RepositoryId(), "x", {"x", 0644}), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(world_.store().ReadSnapshot(Path("z")), StatusIs(StatusCode::kNotFound));
  EXPECT_TRUE(txn->Commit().committed());
  EXPECT_EQ(world_.store().committed_lsn(), before);

  EXPECT_THAT(Create("z"), IsOk());
  EXPECT_THAT(Paths(), ElementsAre("z"));
}

// REPO-08, REPO-09: two of one group at once; a transaction sees every repository without having named any.
TEST_F(RepositoryScenarioTest, CreatesTwoSideBySideAndShowsAllToWhoeverBegins) {
  const auto one = world_.Begin(), two = world_.Begin();
  const RepositoryId a = *one->CreateRepository(Path("g/a"), {});
  const RepositoryId b = *two->CreateRepository(Path("g/b"), {});
  EXPECT_THAT(two->Commit().status, IsOk());
  EXPECT_THAT(one->Commit().status, IsOk());

  const auto reader = world_.Begin();
  EXPECT_THAT(*reader->ListGroup("g"), ElementsAre(txn::GroupEntry{"a", a}, txn::GroupEntry{"b", b}));
  EXPECT_THAT(reader->ReadRef(a, Branch("main")), IsOk());
  EXPECT_THAT(reader->ReadRef(b, Branch("main")), IsOk());
}

// REPO-11: what is packed goes with the rest.
TEST_F(RepositoryScenarioTest, RemovesARepositoryWithPackedRefs) {
  const RepositoryId id = world_.Create("r");
  ASSERT_THAT(Do([&](Transaction& txn) {
    absl::Status status;
    for (int n = 0; n < 100; ++n) {
      status.Update(txn.UpdateRef(id, {.name = Branch(absl::StrCat("b", n)), .value = World::At(1)}));
    }
    return status;
  }), IsOk());
  ASSERT_THAT(world_.store().Materialize(), IsOk());
  ASSERT_TRUE(*storage::Exists(world_.fs(), txn::layout::RepositoryDirectory(id) / "packed-refs"));
  ASSERT_THAT(Delete(id), IsOk());
  Purge();
  EXPECT_FALSE(HasDirectory(id));
}

// REPO-22, C071, C072: round after round at one path; each is a new repository with nothing of the one before.
TEST_F(RepositoryScenarioTest, CreatesAndDeletesAtOnePathOverAndOver) {
  for (int round = 0; round < 60; ++round) {
    const RepositoryId id = world_.Create("g/r");
    ASSERT_EQ(world_.Refs(id), "HEAD ref: refs/heads/main\n") << round;
    ASSERT_THAT(world_.Begin()->ReadFile(id, "hooks/update"), StatusIs(StatusCode::kNotFound));
    ASSERT_EQ(*world_.Begin()->GetKey(KeySpace::OfRepository(id), "owner"), std::nullopt);
    ASSERT_THAT(Do([&](Transaction& txn) {
      absl::Status status = txn.UpdateRef(id, {.name = Branch(absl::StrCat("b", round)), .value = World::At(round % 10)});
      status.Update(txn.PutFile(id, "hooks/update", {absl::StrCat(round), 0755}));
      status.Update(txn.PutKey(KeySpace::OfRepository(id), "owner", absl::StrCat(round)));
      return status;
    }), IsOk());
    ASSERT_THAT(Delete(id), IsOk());
    if (round % 10 != 0) continue;
    world_.CrashAndKeep({});
    ASSERT_THAT(OpenWorld(), IsOk());
    ASSERT_THAT(Paths(), IsEmpty());
  }
}

// C073: a purge goes by identity; what has been made at the path since is not touched.
TEST_F(RepositoryScenarioTest, PurgesTheDeletedRepositoryAndNotItsSuccessorAtThePath) {
  const RepositoryId first = Furnished("r");
  ASSERT_THAT(Delete(first), IsOk());
  const RepositoryId second = Furnished("r");
  Purge();
  EXPECT_FALSE(HasDirectory(first));
  EXPECT_EQ(*IdAt("r"), second);
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(second), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
  EXPECT_EQ(**world_.Begin()->GetKey(KeySpace::OfRepository(second), "owner"), "me");
}

// C076: sixteen creations of one path from one snapshot.
TEST_F(RepositoryScenarioTest, OfSixteenCreationsOneWinsAndTheOthersLeaveNothing) {
  std::vector<std::unique_ptr<Transaction>> creations;
  for (int n = 0; n < 16; ++n) {
    creations.push_back(world_.Begin());
    txn::CreateOptions options;
    options.head_target = absl::StrCat("refs/heads/b", n);
    ASSERT_THAT(creations.back()->CreateRepository(Path("r"), options), IsOk());
  }
  EXPECT_TRUE(creations[7]->Commit().committed());
  for (size_t n = 0; n < 16; ++n) {
    if (n != 7) {
      EXPECT_THAT(creations[n]->Commit().status, StatusIs(StatusCode::kAborted)) << n;
    }
  }
  creations.clear();
  EXPECT_EQ(world_.Refs(*IdAt("r")), "HEAD ref: refs/heads/b7\n");
  EXPECT_THAT(*world_.fs().List(txn::layout::Staging()), IsEmpty());
  EXPECT_THAT(Create("r"), StatusIs(StatusCode::kAlreadyExists));
}

// C079: the part of the embedder fails after the move was staged.
TEST_F(RepositoryScenarioTest, MovesNothingWhenTheRestOfTheTransactionFails) {
  const RepositoryId id = Furnished("old");
  const auto result = world_.store().Run({}, [&](Transaction& txn) -> absl::Status {
    REPOTXN_RETURN_IF_ERROR(txn.MoveRepository(id, Path("new")));
    return absl::PermissionDeniedError("the owner's table was not changed");
  });
  EXPECT_EQ(result.outcome, txn::CommitOutcome::kNotCommitted);
  EXPECT_THAT(result.status, StatusIs(StatusCode::kPermissionDenied));
  for (const bool is_crash : {false, true}) {
    if (is_crash) {
      world_.CrashAndKeep({CrashSurvival::kEverything, 0, 0});
      ASSERT_THAT(OpenWorld(), IsOk());
    }
    EXPECT_EQ(*IdAt("old"), id);
    EXPECT_THAT(IdAt("new"), StatusIs(StatusCode::kNotFound));
  }
  EXPECT_THAT(Create("new"), IsOk());
}

// C080, REPO-20, REPO-21: readers neither hinder a move or a deletion nor see it; who comes after sees nothing else.
TEST_F(RepositoryScenarioTest, MovesAndDeletesUnderOpenReaders) {
  const RepositoryId id = Furnished("old");
  std::vector<std::unique_ptr<Transaction>> readers;
  for (int n = 0; n < 20; ++n) readers.push_back(world_.Begin());
  ASSERT_THAT(Do([&](Transaction& txn) { return txn.MoveRepository(id, Path("new")); }), IsOk());
  const auto between = world_.Begin();
  ASSERT_THAT(Delete(id), IsOk());
  Purge();
  for (const auto& reader : readers) {
    EXPECT_EQ(*reader->OpenRepository(Path("old")), id);
    EXPECT_THAT(reader->OpenRepository(Path("new")), StatusIs(StatusCode::kNotFound));
    EXPECT_EQ(World::Name(*reader->ReadRef(id, Branch("main"))), "c1");
  }
  EXPECT_EQ(*between->OpenRepository(Path("new")), id);
  EXPECT_THAT(Paths(), IsEmpty());
  between->Abort();
  readers.clear();
  ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
  EXPECT_FALSE(HasDirectory(id));
}

// C082: whatever is left of it, a repository can be deleted, and its path used again.
TEST_F(RepositoryScenarioTest, DeletesARepositoryThatIsDamagedBeyondReading) {
  const RepositoryId id = Furnished("r");
  ASSERT_THAT(world_.store().Checkpoint(), IsOk());
  const storage::StorePath directory = txn::layout::RepositoryDirectory(id);
  ASSERT_THAT(storage::RemoveTree(world_.fs(), directory / "objects"), IsOk());
  ASSERT_THAT(world_.fs().Remove(directory / "config"), IsOk());
  ASSERT_THAT(world_.fs().Remove(directory / "HEAD"), IsOk());
  EXPECT_THAT(Delete(id), IsOk());
  const RepositoryId next = Furnished("r");
  Purge();
  EXPECT_FALSE(HasDirectory(id));
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(Paths(), ElementsAre("r"));
  EXPECT_EQ(world_.Refs(next), "HEAD ref: refs/heads/main\nrefs/heads/main c1\n");
}

// C148: a group stays when its last repository goes, so that it meets nobody who creates in it.
TEST_F(RepositoryScenarioTest, KeepsAGroupWhenItsLastRepositoryGoes) {
  for (const bool deletion_first : {true, false}) {
    const std::string group = deletion_first ? "g/h" : "g/i";
    const RepositoryId only = world_.Create(group + "/only");
    const auto deletion = world_.Begin(), creation = world_.Begin();
    ASSERT_THAT(deletion->DeleteRepository(only), IsOk());
    ASSERT_THAT(creation->CreateRepository(Path(group + "/new"), {}), IsOk());
    EXPECT_TRUE((deletion_first ? deletion : creation)->Commit().committed());
    EXPECT_TRUE((deletion_first ? creation : deletion)->Commit().committed());
  }
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_THAT(Paths(), ElementsAre("g/h/new", "g/i/new"));
}

// C149: who creates beside a repository that comes and goes notices nothing of it.
TEST_F(RepositoryScenarioTest, CreatesBesideASiblingThatComesAndGoes) {
  for (int round = 0; round < 50; ++round) {
    const auto creation = world_.Begin();
    const RepositoryId sibling = world_.Create("ns/a");
    ASSERT_THAT(creation->CreateRepository(Path(absl::StrCat("ns/b", round)), {}), IsOk());
    ASSERT_THAT(Delete(sibling), IsOk());
    ASSERT_THAT(creation->Commit().status, IsOk()) << round;
  }
  EXPECT_THAT(Paths(), SizeIs(50));
}

// C146: a group that is emptied and removed against a creation or a push below it, in both orders.
TEST_F(RepositoryScenarioTest, RemovesAGroupWithAllItsRepositoriesOrLosesToWorkBelowIt) {
  for (const bool removal_first : {true, false}) {
    for (const bool is_push : {true, false}) {
      const std::string group = absl::StrCat("g", removal_first, is_push);
      const RepositoryId old = world_.Create(group + "/old");
      const auto removal = world_.Begin(), work = world_.Begin();
      ASSERT_THAT(removal->DeleteRepository(old), IsOk());
      ASSERT_THAT(removal->RemoveGroup(group), IsOk());
      if (is_push) {
        ASSERT_THAT(work->UpdateRef(old, {.name = Branch("main"), .value = World::At(1)}), IsOk());
      } else {
        ASSERT_THAT(work->CreateRepository(Path(group + "/new"), {}), IsOk());
      }
      EXPECT_TRUE((removal_first ? removal : work)->Commit().committed()) << group;
      EXPECT_THAT((removal_first ? work : removal)->Commit().status, StatusIs(StatusCode::kAborted)) << group;
      const auto left = world_.Begin()->ListGroup(group);
      if (removal_first) {
        EXPECT_THAT(left, StatusIs(StatusCode::kNotFound)) << group;
      } else {
        EXPECT_EQ(left->size(), is_push ? 1u : 2u) << group;
      }
    }
  }
}

}  // namespace
}  // namespace repotxn::testing
