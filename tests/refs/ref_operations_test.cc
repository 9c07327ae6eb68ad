#include "refs/ref_operations.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::ApplyRefOperations;
using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::MemoryFileSystem;
using ::repotxn::testing::OidBytes;
using ::repotxn::testing::OidOf;
using ::repotxn::testing::PutBytes;
using ::repotxn::testing::RepositoryIdOf;
using ::repotxn::testing::StatusIs;
using ::repotxn::testing::SymbolicTo;
using ::repotxn::testing::ValueOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RepositoryId kRepository = RepositoryIdOf(1);
const RepositoryId kOther = RepositoryIdOf(2);

wal::RefChange Change(const std::string& name, const RefValue& from, const RefValue& to,
                      const RepositoryId& id = kRepository) {
  return {id, name, from.ToLogged(), to.ToLogged()};
}
wal::Operation Put(const std::string& path, const std::string& content,
                   const RepositoryId& id = kRepository) {
  wal::PutFile put{id, path, 0644, {}};
  put.content.inline_bytes = content;
  return put;
}
wal::Operation Remove(const std::string& path, const RepositoryId& id = kRepository) {
  return wal::RemoveFile{id, path};
}
wal::Operation Edit(std::vector<wal::PackedRef> set, std::vector<std::string> remove,
                    const RepositoryId& id = kRepository) {
  return wal::EditPackedRefs{id, std::move(set), std::move(remove)};
}

wal::Manifest ManifestOf(std::vector<wal::RefChange> changes, std::vector<wal::RefsPacked> packed,
                         const RefOperationOptions& options = {}) {
  wal::Manifest manifest;
  manifest.operations = DeriveRefOperations(changes, packed, options);
  manifest.note.ref_changes = std::move(changes);
  manifest.note.refs_packed = std::move(packed);
  return manifest;
}

// Goal: ref changes become exactly these operations, in this order, whatever the disk looks like.
// Any other list breaks the replicas' equality or shows an old value between two operations.
class RefDerivationTest : public ::testing::Test {};

// RR-01.
TEST_F(RefDerivationTest, NothingComesOfNothing) {
  EXPECT_THAT(DeriveRefOperations({}, {}), IsEmpty());
}

// RR-02.
TEST_F(RefDerivationTest, CreationsPutLooseFilesByName) {
  const std::vector<wal::RefChange> changes = {
      Change("refs/heads/b/c", {}, ValueOf(2)), Change("refs/heads/a", {}, ValueOf(1)),
      Change("refs/tags/t", {}, RefValue::Object(OidOf(3), OidOf(4)))};

  EXPECT_THAT(DeriveRefOperations(changes, {}),
              ElementsAre(Put("refs/heads/a", HexOfNumber(1) + "\n"),
                          Put("refs/heads/b/c", HexOfNumber(2) + "\n"),
                          Put("refs/tags/t", HexOfNumber(3) + "\n")));
}

// RR-03, RR-04: one list for a loose and for a packed ref. [C020, C093]
TEST_F(RefDerivationTest, DeletionRemovesTheLineFirstAndThenTheFile) {
  EXPECT_THAT(DeriveRefOperations(std::vector{Change("refs/heads/a", ValueOf(1), {})}, {}),
              ElementsAre(Edit({}, {"refs/heads/a"}), Remove("refs/heads/a")));
}

// RR-05, RR-08.
TEST_F(RefDerivationTest, ManyDeletionsEditPackedRefsOnce) {
  std::vector<wal::RefChange> changes;
  for (int i = 9; i >= 0; --i) {
    changes.push_back(Change("refs/heads/d/" + std::to_string(i), ValueOf(1), {}));
  }

  const auto operations = DeriveRefOperations(changes, {});

  ASSERT_EQ(operations.size(), 11u);
  const auto* edit = std::get_if<wal::EditPackedRefs>(&operations[0]);
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->remove.size(), 10u);
  EXPECT_TRUE(std::is_sorted(edit->remove.begin(), edit->remove.end()));
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(operations[i + 1], Remove("refs/heads/d/" + std::to_string(i)));
  }
}

// RR-07.
TEST_F(RefDerivationTest, MixKeepsTheOrderEditRemovePut) {
  const std::vector<wal::RefChange> changes = {Change("refs/heads/a", {}, ValueOf(1)),
                                               Change("refs/heads/b", ValueOf(1), ValueOf(2)),
                                               Change("refs/heads/c", ValueOf(3), {})};

  EXPECT_THAT(DeriveRefOperations(changes, {}),
              ElementsAre(Edit({}, {"refs/heads/c"}), Remove("refs/heads/c"),
                          Put("refs/heads/a", HexOfNumber(1) + "\n"),
                          Put("refs/heads/b", HexOfNumber(2) + "\n")));
}

// RR-09, REF-07.
TEST_F(RefDerivationTest, ParentIsRemovedBeforeItsChildIsPut) {
  const std::vector<wal::RefChange> changes = {Change("refs/heads/p/child", {}, ValueOf(2)),
                                               Change("refs/heads/p", ValueOf(1), {})};

  EXPECT_THAT(DeriveRefOperations(changes, {}),
              ElementsAre(Edit({}, {"refs/heads/p"}), Remove("refs/heads/p"),
                          Put("refs/heads/p/child", HexOfNumber(2) + "\n")));
}

// RR-06, RR-09, RR-10: on a disk, in both directions; heads and tags stay.
TEST_F(RefDerivationTest, DirectoriesFollowTheRefs) {
  MemoryFileSystem fs;
  const auto exists = [&](const char* path) {
    return storage::Exists(fs, storage::StorePath::Literal(path));
  };
  ASSERT_OK(storage::MakeDirectories(fs, storage::StorePath::Literal("r.git/refs/tags")));
  PutBytes(fs, "r.git/refs/heads/p", HexOfNumber(1) + "\n");

  ApplyRefOperations(fs, "r.git",
                     DeriveRefOperations(std::vector{Change("refs/heads/p", ValueOf(1), {}),
                                                     Change("refs/heads/p/c", {}, ValueOf(2))},
                                         {}));
  EXPECT_THAT(exists("r.git/refs/heads/p/c"), IsOkAndHolds(true));

  ApplyRefOperations(fs, "r.git",
                     DeriveRefOperations(std::vector{Change("refs/heads/p/c", ValueOf(2), {}),
                                                     Change("refs/heads/p", {}, ValueOf(3))},
                                         {}));
  EXPECT_THAT(storage::ReadFile(fs, storage::StorePath::Literal("r.git/refs/heads/p")),
              IsOkAndHolds(HexOfNumber(3) + "\n"));
  EXPECT_THAT(exists("r.git/refs/tags"), IsOkAndHolds(true));
}

// RR-11.
TEST_F(RefDerivationTest, HeadAndSymbolicRefsAreAlwaysPut) {
  std::vector<wal::RefChange> changes = {
      Change("HEAD", SymbolicTo("refs/heads/main"), SymbolicTo("refs/heads/dev")),
      Change("refs/heads/sym", {}, SymbolicTo("refs/heads/dev"))};

  const auto operations = DeriveRefOperations(changes, {}, {.packed_threshold = 0});

  EXPECT_THAT(operations, ElementsAre(Put("HEAD", "ref: refs/heads/dev\n"),
                                      Put("refs/heads/sym", "ref: refs/heads/dev\n")));
  changes = {Change("HEAD", SymbolicTo("refs/heads/main"), ValueOf(1))};
  EXPECT_THAT(DeriveRefOperations(changes, {}, {.packed_threshold = 0}),
              ElementsAre(Put("HEAD", HexOfNumber(1) + "\n")));
}

TEST_F(RefDerivationTest, PackingSetsLinesAndRemovesFiles) {
  const std::vector<wal::RefsPacked> packed = {
      {kRepository,
       {{"refs/heads/a", OidBytes(1), ""}, {"refs/tags/t", OidBytes(2), OidBytes(3)}}}};

  EXPECT_THAT(DeriveRefOperations({}, packed),
              ElementsAre(Edit(packed[0].refs, {}), Remove("refs/heads/a"), Remove("refs/tags/t")));
}

// Hard case A12: beyond the threshold, and with the peeled ids.
TEST_F(RefDerivationTest, LargeBatchGoesStraightToPackedRefs) {
  std::vector<wal::RefChange> changes;
  for (int i = 0; i < 64; ++i) {
    changes.push_back(
        Change("refs/tags/t" + std::to_string(100 + i), {}, RefValue::Object(OidOf(1), OidOf(2))));
  }

  const auto at_threshold = DeriveRefOperations(changes, {});
  EXPECT_EQ(at_threshold.size(), 64u);
  EXPECT_TRUE(std::holds_alternative<wal::PutFile>(at_threshold[0]));

  changes.push_back(Change("refs/heads/one-more", {}, ValueOf(5)));
  changes.push_back(Change("refs/heads/sym", {}, SymbolicTo("refs/heads/one-more")));
  changes.push_back(Change("refs/heads/gone", ValueOf(4), {}));
  const auto beyond = DeriveRefOperations(changes, {});
  ASSERT_EQ(beyond.size(), 1u + 66u + 1u);
  const auto* edit = std::get_if<wal::EditPackedRefs>(&beyond[0]);
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->set.size(), 65u);
  EXPECT_EQ(edit->set[1], (wal::PackedRef{"refs/tags/t100", OidBytes(1), OidBytes(2)}));
  EXPECT_THAT(edit->remove, ElementsAre("refs/heads/gone"));
  EXPECT_EQ(beyond.back(), Put("refs/heads/sym", "ref: refs/heads/one-more\n"));
}

TEST_F(RefDerivationTest, RepositoriesAreOrderedByIdAndCountedApart) {
  std::vector<wal::RefChange> changes;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "refs/heads/b" + std::to_string(i);
    changes.push_back(Change(name, {}, ValueOf(1), kOther));
    if (i < 2) changes.push_back(Change(name, {}, ValueOf(1), kRepository));
  }

  const auto operations = DeriveRefOperations(changes, {}, {.packed_threshold = 2});

  ASSERT_EQ(operations.size(), 2u + 4u);
  EXPECT_EQ(operations[0], Put("refs/heads/b0", HexOfNumber(1) + "\n", kRepository));
  EXPECT_EQ(operations[1], Put("refs/heads/b1", HexOfNumber(1) + "\n", kRepository));
  EXPECT_TRUE(std::holds_alternative<wal::EditPackedRefs>(operations[2]));
  EXPECT_EQ(operations[3], Remove("refs/heads/b0", kOther));
}

TEST_F(RefDerivationTest, OrderOfTheChangesDoesNotMatter) {
  std::vector<wal::RefChange> changes = {
      Change("refs/heads/a", {}, ValueOf(1)), Change("refs/heads/b", ValueOf(1), {}),
      Change("refs/heads/c", {}, ValueOf(1), kOther), Change("HEAD", {}, ValueOf(1), kOther)};
  const auto operations = DeriveRefOperations(changes, {});

  std::reverse(changes.begin(), changes.end());

  EXPECT_EQ(DeriveRefOperations(changes, {}), operations);
}

// Goal: a manifest whose two descriptions differ in anything is refused, whoever made it; one that
// was derived is accepted with any threshold.
class RefVerificationTest : public ::testing::Test {
 protected:
  static wal::Manifest Sample() {
    return ManifestOf(
        {Change("HEAD", SymbolicTo("refs/heads/a"), SymbolicTo("refs/heads/b")),
         Change("refs/heads/a", ValueOf(1), {}), Change("refs/heads/b", {}, ValueOf(2)),
         Change("refs/heads/b", {}, ValueOf(2), kOther)},
        {{kRepository, {{"refs/tags/t", OidBytes(3), OidBytes(4)}}}});
  }
  static void ExpectRefused(const wal::Manifest& manifest, const char* why) {
    EXPECT_THAT(VerifyRefOperations(manifest), StatusIs(absl::StatusCode::kDataLoss)) << why;
  }
};

TEST_F(RefVerificationTest, AcceptsWhatWasDerivedWithAnyThreshold) {
  EXPECT_OK(VerifyRefOperations(wal::Manifest()));
  EXPECT_OK(VerifyRefOperations(Sample()));
  const std::vector<wal::RefChange> changes = {Change("refs/heads/a", {}, ValueOf(1)),
                                               Change("refs/heads/b", {}, ValueOf(1))};
  for (const size_t threshold : {size_t{0}, size_t{1}, size_t{2}, size_t{64}}) {
    EXPECT_OK(VerifyRefOperations(ManifestOf(changes, {}, {.packed_threshold = threshold})));
  }
}

TEST_F(RefVerificationTest, OtherOperationsMayStandBetween) {
  wal::Manifest manifest = Sample();
  manifest.operations.insert(manifest.operations.begin() + 2, Put("config", "x"));
  manifest.operations.insert(manifest.operations.begin(), wal::PutKey{1, "k", "v"});
  manifest.operations.push_back(Put("refsx/heads/a", "x"));

  EXPECT_OK(VerifyRefOperations(manifest));
}

TEST_F(RefVerificationTest, RefusesEveryOperationLeftOutOrDoneTwice) {
  const wal::Manifest good = Sample();
  for (size_t i = 0; i < good.operations.size(); ++i) {
    wal::Manifest without = good;
    without.operations.erase(without.operations.begin() + static_cast<long>(i));
    ExpectRefused(without, "left out");
    wal::Manifest twice = good;
    twice.operations.push_back(twice.operations[i]);
    ExpectRefused(twice, "twice");
  }
}

TEST_F(RefVerificationTest, RefusesEveryChangeLeftOutOfTheNote) {
  const wal::Manifest good = Sample();
  for (size_t i = 0; i < good.note.ref_changes.size(); ++i) {
    wal::Manifest without = good;
    without.note.ref_changes.erase(without.note.ref_changes.begin() + static_cast<long>(i));
    ExpectRefused(without, good.note.ref_changes[i].name.c_str());
  }
  wal::Manifest without = good;
  without.note.refs_packed.clear();
  ExpectRefused(without, "packing");
}

TEST_F(RefVerificationTest, RefusesOperationsOnRefsThatNoChangeDerives) {
  const std::vector<wal::Operation> foreign = {
      Put("refs/heads/x", HexOfNumber(1) + "\n"),
      Remove("refs/heads/x"),
      Put("packed-refs", ""),
      Remove("packed-refs"),
      Put("HEAD", "ref: refs/heads/x\n"),
      Remove("HEAD"),
      Remove("refs"),
      wal::MakeDirectory{kRepository, "refs/heads/x"},
      wal::RemoveDirectory{kRepository, "refs/heads"},
      Edit({}, {"refs/heads/x"}),
      Put("refs/heads/x", HexOfNumber(1) + "\n", RepositoryIdOf(9)),
  };
  for (const wal::Operation& operation : foreign) {
    EXPECT_TRUE(IsRefOperation(operation));
    wal::Manifest manifest = Sample();
    manifest.operations.push_back(operation);
    ExpectRefused(manifest, "foreign");
  }
}

TEST_F(RefVerificationTest, RefusesAValueAModeOrAPeeledIdThatDiffers) {
  const wal::Manifest good = Sample();
  for (size_t i = 0; i < good.operations.size(); ++i) {
    wal::Manifest changed = good;
    if (auto* put = std::get_if<wal::PutFile>(&changed.operations[i])) {
      put->content.inline_bytes[0] ^= 1;
      ExpectRefused(changed, "content");
      changed = good;
      std::get<wal::PutFile>(changed.operations[i]).mode = 0755;
    } else if (auto* edit = std::get_if<wal::EditPackedRefs>(&changed.operations[i])) {
      if (edit->set.empty()) continue;
      edit->set[0].peeled.clear();
    } else {
      std::get<wal::RemoveFile>(changed.operations[i]).path += "x";
    }
    ExpectRefused(changed, "differs");
  }
}

TEST_F(RefVerificationTest, RefusesAnotherOrder) {
  wal::Manifest manifest = Sample();
  ASSERT_TRUE(std::holds_alternative<wal::EditPackedRefs>(manifest.operations[0]));
  std::swap(manifest.operations[0], manifest.operations[1]);

  ExpectRefused(manifest, "the loose file would go before the packed line");
}

// C042: a hand-made entry.
TEST_F(RefVerificationTest, RefusesAMalformedNote) {
  const auto refuse_changes = [](std::vector<wal::RefChange> changes, const char* why) {
    wal::Manifest manifest;
    manifest.note.ref_changes = std::move(changes);
    for (const wal::RefChange& change : manifest.note.ref_changes) {
      manifest.operations.push_back(Put(change.name, HexOfNumber(1) + "\n"));
    }
    ExpectRefused(manifest, why);
  };
  for (const char* name : {"refs/heads/a.lock", "refs/heads/../../x", "refs/heads/.a", "main", "",
                           "refs/heads/a@{", "refs/heads/a\\b", "refs/heads/a/"}) {
    refuse_changes({Change(name, {}, ValueOf(1))}, name);
  }
  refuse_changes({Change("refs/heads/a", {}, ValueOf(1)), Change("refs/heads/a", {}, ValueOf(1))},
                 "two changes of one ref");
  refuse_changes({Change("HEAD", ValueOf(1), {})}, "HEAD deleted");
  wal::RefChange bad_value = Change("refs/heads/a", {}, ValueOf(1));
  bad_value.new_value.bytes = "short";
  refuse_changes({bad_value}, "value");
  bad_value = Change("refs/heads/a", {}, ValueOf(1));
  bad_value.old_value.bytes = "not absent";
  refuse_changes({bad_value}, "old value");

  const wal::PackedRef a = {"refs/heads/a", OidBytes(1), ""};
  const wal::PackedRef b = {"refs/heads/b", OidBytes(1), ""};
  ExpectRefused(ManifestOf({}, {{kRepository, {b, a}}}), "unsorted");
  ExpectRefused(ManifestOf({}, {{kRepository, {a, a}}}), "twice");
  ExpectRefused(ManifestOf({}, {{kRepository, {}}}), "packing of nothing");
  ExpectRefused(ManifestOf({}, {{kRepository, {a}}, {kRepository, {b}}}), "two packings");
  ExpectRefused(ManifestOf({}, {{kRepository, {{"HEAD", OidBytes(1), ""}}}}), "HEAD packed");
  ExpectRefused(ManifestOf({}, {{kRepository, {{"refs/heads/a", "x", ""}}}}), "packed id");
  ExpectRefused(ManifestOf({Change("refs/heads/a", {}, ValueOf(1))}, {{kRepository, {a}}}),
                "changed and packed");
}

// Goal: names taken out at commit leave a manifest that still verifies and that leaves exactly
// their refs alone.
class RefDroppingTest : public ::testing::Test {
 protected:
  static std::vector<wal::RefsPacked> Packing() {
    return {{kRepository,
             {{"refs/heads/a", OidBytes(1), ""},
              {"refs/heads/b", OidBytes(2), ""},
              {"refs/heads/c", OidBytes(3), ""}}},
            {kOther, {{"refs/heads/a", OidBytes(4), ""}}}};
  }
};

// C022.
TEST_F(RefDroppingTest, DroppedNameLeavesNoteLineAndRemoval) {
  wal::Manifest manifest = ManifestOf({Change("refs/heads/d", ValueOf(1), {})}, Packing());

  ASSERT_OK(ApplyDropped(std::vector<wal::DroppedRef>{{kRepository, "refs/heads/b"}}, manifest));

  EXPECT_OK(VerifyRefOperations(manifest));
  std::vector<wal::RefsPacked> reduced = Packing();
  reduced[0].refs.erase(reduced[0].refs.begin() + 1);
  EXPECT_EQ(manifest, ManifestOf({Change("refs/heads/d", ValueOf(1), {})}, reduced));
}

TEST_F(RefDroppingTest, DroppingAllLeavesNothing) {
  wal::Manifest manifest = ManifestOf({}, Packing());

  ASSERT_OK(ApplyDropped(std::vector<wal::DroppedRef>{{kRepository, "refs/heads/a"},
                                                      {kRepository, "refs/heads/b"},
                                                      {kRepository, "refs/heads/c"},
                                                      {kOther, "refs/heads/a"}},
                         manifest));

  EXPECT_EQ(manifest, wal::Manifest());
}

TEST_F(RefDroppingTest, DroppingNothingChangesNothing) {
  wal::Manifest manifest = ManifestOf({}, Packing());
  const wal::Manifest before = manifest;

  ASSERT_OK(ApplyDropped({}, manifest));

  EXPECT_EQ(manifest, before);
}

TEST_F(RefDroppingTest, NameThatIsNotPackedIsRefusedAndNothingChanges) {
  wal::Manifest manifest = ManifestOf({Change("refs/heads/z", {}, ValueOf(1))}, Packing());
  const wal::Manifest before = manifest;

  for (const wal::DroppedRef& wrong :
       std::vector<wal::DroppedRef>{{kOther, "refs/heads/b"},
                                    {kRepository, "refs/heads/z"},
                                    {RepositoryIdOf(9), "refs/heads/a"}}) {
    EXPECT_THAT(
        ApplyDropped(std::vector<wal::DroppedRef>{{kRepository, "refs/heads/a"}, wrong}, manifest),
        StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_EQ(manifest, before);
  }
}

// C022 on a disk: a packing that read d at 1; d was deleted, e moved to 9 before it commits.
TEST_F(RefDroppingTest, PackingRevivesNoDeletedRefAndUndoesNoUpdate) {
  MemoryFileSystem fs;
  for (const char* name : {"d", "e", "f"}) {
    PutBytes(fs, std::string("r.git/refs/heads/") + name, HexOfNumber(1) + "\n");
  }
  wal::Manifest packing = ManifestOf({}, {{kRepository,
                                           {{"refs/heads/d", OidBytes(1), ""},
                                            {"refs/heads/e", OidBytes(1), ""},
                                            {"refs/heads/f", OidBytes(1), ""}}}});
  ApplyRefOperations(
      fs, "r.git",
      DeriveRefOperations(std::vector{Change("refs/heads/d", ValueOf(1), {}),
                                      Change("refs/heads/e", ValueOf(1), ValueOf(9))},
                          {}));

  ASSERT_OK(ApplyDropped(
      std::vector<wal::DroppedRef>{{kRepository, "refs/heads/d"}, {kRepository, "refs/heads/e"}},
      packing));
  for (int replay = 0; replay < 2; ++replay) {
    ApplyRefOperations(fs, "r.git", packing.operations);

    const auto bytes = storage::ReadFile(fs, storage::StorePath::Literal("r.git/packed-refs"));
    ASSERT_OK(bytes);
    const auto packed = PackedRefs::Parse(*bytes, ObjectFormat::kSha1);
    ASSERT_OK(packed);
    EXPECT_EQ(packed->size(), 1u);
    EXPECT_TRUE(packed->Find("refs/heads/f").has_value());
    EXPECT_THAT(storage::ReadFile(fs, storage::StorePath::Literal("r.git/refs/heads/e")),
                IsOkAndHolds(HexOfNumber(9) + "\n"));
    EXPECT_THAT(storage::Exists(fs, storage::StorePath::Literal("r.git/refs/heads/d")),
                IsOkAndHolds(false));
  }
}

class RefPlacementTest : public ::testing::Test {};

TEST_F(RefPlacementTest, SaysWhereEachChangeIsLeft) {
  const std::vector<wal::RefChange> changes = {
      Change("refs/heads/a", {}, ValueOf(1)), Change("refs/heads/b", ValueOf(1), {}),
      Change("refs/heads/sym", {}, SymbolicTo("refs/heads/a")), Change("HEAD", {}, ValueOf(1)),
      Change("refs/heads/a", {}, ValueOf(1), kOther)};

  const auto expect_placement = [&](size_t threshold, RefPlacement of_update) {
    const wal::Manifest manifest = ManifestOf(changes, {}, {.packed_threshold = threshold});
    const RefPlacements placements(manifest);
    EXPECT_EQ(placements.Of(changes[0]), of_update);
    EXPECT_EQ(placements.Of(changes[1]), RefPlacement::kAbsent);
    EXPECT_EQ(placements.Of(changes[2]), RefPlacement::kLoose);
    EXPECT_EQ(placements.Of(changes[3]), RefPlacement::kLoose);
    EXPECT_EQ(placements.Of(changes[4]), of_update);
  };

  expect_placement(64, RefPlacement::kLoose);
  expect_placement(0, RefPlacement::kPacked);
}

}  // namespace
}  // namespace repotxn::refs
