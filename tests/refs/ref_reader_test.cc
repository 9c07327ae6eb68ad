#include "refs/ref_reader.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refs/ref_operations.h"
#include "tests/refs/read_hook_file_system.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::ApplyRefOperation;
using ::repotxn::testing::ApplyRefOperations;
using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::MemoryFileSystem;
using ::repotxn::testing::PutBytes;
using ::repotxn::testing::ReadHookFileSystem;
using ::repotxn::testing::ReplacePackedRefs;
using ::repotxn::testing::RepositoryIdOf;
using ::repotxn::testing::StatusIs;
using ::repotxn::testing::SymbolicTo;
using ::repotxn::testing::ValueOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHeader[] = "# pack-refs with: peeled fully-peeled sorted \n";

std::string Line(uint64_t number, const std::string& name) {
  return HexOfNumber(number) + " " + name + "\n";
}
RefName Name(absl::string_view text) { return RefName::Literal(text); }

// Goal: a repository directory is read as Git means it, loose over packed, also while another
// process packs or deletes between two system calls of the reader. The hook runs that other process
// at a chosen call. A live ref missed, or an older value, fails.
class RefReaderTest : public ::testing::Test {
 protected:
  RefReaderTest() : hooked_(fs_), reader_(hooked_, Repository(), ObjectFormat::kSha1) {
    EXPECT_OK(storage::MakeDirectories(fs_, Repository() / "refs/heads"));
    EXPECT_OK(storage::MakeDirectories(fs_, Repository() / "refs/tags"));
    PutBytes(fs_, "r.git/HEAD", "ref: refs/heads/main\n");
  }

  static storage::StorePath Repository() { return storage::StorePath::Literal("r.git"); }
  void PutLoose(const std::string& name, uint64_t number) {
    PutBytes(fs_, "r.git/" + name, HexOfNumber(number) + "\n");
  }
  void RemoveLoose(const std::string& name) {
    ASSERT_OK(fs_.Remove(Repository().Child(name).value()));
  }
  void PutPacked(const std::string& lines) { ReplacePackedRefs(fs_, "r.git", kHeader + lines); }

  // Runs `action` once, before the `occurrence`-th call of `op` on `path`.
  void At(const std::string& op, const std::string& path, int occurrence,
          std::function<void()> action) {
    hooked_.SetHook(
        [=, count = 0](absl::string_view seen_op, const storage::StorePath& seen) mutable {
          if (seen_op == op && seen.text() == path && ++count == occurrence) action();
        });
  }

  std::map<std::string, std::string> Listed(absl::string_view prefix) {
    std::map<std::string, std::string> refs;
    const auto listing = reader_.List(prefix);
    EXPECT_OK(listing);
    if (!listing.ok()) return refs;
    std::string last;
    for (const NamedRef& ref : listing->refs) {
      EXPECT_LT(last, ref.name.text());
      last = ref.name.text();
      refs[last] = ref.value.ToString();
    }
    return refs;
  }

  MemoryFileSystem fs_;
  ReadHookFileSystem hooked_;
  RefReader reader_;
};

TEST_F(RefReaderTest, LooseValueWinsOverPackedOne) {
  PutPacked(Line(1, "refs/heads/a") + Line(2, "refs/heads/b"));
  PutLoose("refs/heads/a", 3);

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(3)));
  EXPECT_THAT(reader_.Read(Name("refs/heads/b")), IsOkAndHolds(ValueOf(2)));
  EXPECT_THAT(reader_.Read(Name("refs/heads/c")), IsOkAndHolds(RefValue::Absent()));
}

// C027: a ref that is only packed exists.
TEST_F(RefReaderTest, PackedOnlyRefsHaveTheirValuesOneByOne) {
  std::string lines;
  for (uint64_t i = 1000; i < 2000; ++i) lines += Line(i, "refs/heads/b" + std::to_string(i));
  PutPacked(lines);

  for (uint64_t i = 1000; i < 2000; ++i) {
    ASSERT_THAT(reader_.Read(Name("refs/heads/b" + std::to_string(i))), IsOkAndHolds(ValueOf(i)));
  }
}

TEST_F(RefReaderTest, ListMergesLooseAndPackedInOrder) {
  PutPacked(Line(1, "refs/heads/a") + Line(2, "refs/heads/c") + Line(3, "refs/tags/t"));
  PutLoose("refs/heads/b", 4);
  PutLoose("refs/heads/c", 5);
  PutBytes(fs_, "r.git/refs/heads/sym", "ref: refs/heads/a\n");

  EXPECT_THAT(Listed("refs/heads/"),
              ElementsAre(std::make_pair("refs/heads/a", HexOfNumber(1)),
                          std::make_pair("refs/heads/b", HexOfNumber(4)),
                          std::make_pair("refs/heads/c", HexOfNumber(5)),
                          std::make_pair("refs/heads/sym", "ref: refs/heads/a")));
  EXPECT_EQ(Listed("").size(), 5u);
  EXPECT_EQ(Listed("refs/t").size(), 1u);
  EXPECT_THAT(Listed("refs/none"), IsEmpty());
}

// C013: damage hides the packed value, and is reported instead of repaired by forgetting it.
TEST_F(RefReaderTest, EmptyLooseFileIsDamageAndHidesThePackedValue) {
  PutPacked(Line(1, "refs/heads/a") + Line(2, "refs/heads/b"));
  PutBytes(fs_, "r.git/refs/heads/a", "");

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), StatusIs(absl::StatusCode::kDataLoss));
  const auto listing = reader_.List("refs/");
  ASSERT_OK(listing);
  ASSERT_EQ(listing->refs.size(), 1u);
  EXPECT_EQ(listing->refs[0].name.text(), "refs/heads/b");
  ASSERT_EQ(listing->faults.size(), 1u);
  EXPECT_EQ(listing->faults[0].name, "refs/heads/a");
  EXPECT_THAT(listing->faults[0].status, StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(RefReaderTest, DamagedPackedRefsIsDataLossNotAbsence) {
  ReplacePackedRefs(fs_, "r.git", "garbage");

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(reader_.List("refs/"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(RefReaderTest, NoticesEveryReplacementOfPackedRefs) {
  for (uint64_t i = 1; i <= 20; ++i) {
    PutPacked(Line(i, "refs/heads/a"));
    ASSERT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(i)));
  }
  ASSERT_OK(fs_.Remove(Repository() / "packed-refs"));
  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(RefValue::Absent()));
}

TEST_F(RefReaderTest, KeepsTheParsedFileWhileItStays) {
  PutPacked(Line(1, "refs/heads/a"));

  ASSERT_OK_AND_ASSIGN(const auto first, reader_.Packed());
  ASSERT_OK_AND_ASSIGN(const auto second, reader_.Packed());
  PutPacked(Line(2, "refs/heads/a"));
  ASSERT_OK_AND_ASSIGN(const auto third, reader_.Packed());

  EXPECT_EQ(first, second);
  EXPECT_NE(first, third);
}

// C021: packed between the loose look and the packed look.
TEST_F(RefReaderTest, ReadFindsARefThatIsPackedMeanwhile) {
  PutLoose("refs/heads/a", 1);
  At("open", "r.git/refs/heads/a", 1, [this] {
    PutPacked(Line(1, "refs/heads/a"));
    RemoveLoose("refs/heads/a");
  });

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(1)));
}

// C021: packed-refs was read and kept before; the ref is packed at every later step of a read.
TEST_F(RefReaderTest, ReadIsRightWhereverAPackingFalls) {
  for (const char* op : {"open", "stat"}) {
    for (const char* path : {"r.git/refs/heads/a", "r.git/packed-refs"}) {
      for (int occurrence = 1; occurrence <= 3; ++occurrence) {
        PutPacked(Line(9, "refs/heads/z"));
        ASSERT_OK(reader_.Packed());
        PutLoose("refs/heads/a", 1);
        At(op, path, occurrence, [this] {
          PutPacked(Line(1, "refs/heads/a") + Line(9, "refs/heads/z"));
          RemoveLoose("refs/heads/a");
        });

        ASSERT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(1)))
            << op << " " << path << " " << occurrence;
        hooked_.SetHook(nullptr);
      }
    }
  }
}

// The case for the second loose look: loose, packed and loose again while one read runs.
TEST_F(RefReaderTest, ReadDoesNotGoBackWhenARefBecomesLooseAgain) {
  PutPacked(Line(1, "refs/heads/a"));
  At("stat", "r.git/packed-refs", 1, [this] {
    PutPacked(Line(1, "refs/heads/a") + Line(5, "refs/heads/b"));
    PutLoose("refs/heads/a", 2);
  });

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(2)));
}

// C021, in small: every listing has every ref, wherever a packing falls.
TEST_F(RefReaderTest, ListingIsCompleteWhereverAPackingFalls) {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"list", "r.git/refs"},         {"list", "r.git/refs/heads"},
      {"open", "r.git/refs/heads/a"}, {"open", "r.git/refs/heads/b"},
      {"open", "r.git/refs/heads/c"}, {"stat", "r.git/packed-refs"},
      {"open", "r.git/packed-refs"}};
  for (const auto& [op, path] : places) {
    for (int occurrence = 1; occurrence <= 3; ++occurrence) {
      PutPacked("");
      for (const char* name : {"refs/heads/a", "refs/heads/b", "refs/heads/c"}) PutLoose(name, 1);
      At(op, path, occurrence, [this] {
        PutPacked(Line(1, "refs/heads/a") + Line(1, "refs/heads/b") + Line(1, "refs/heads/c"));
        for (const char* name : {"refs/heads/a", "refs/heads/b", "refs/heads/c"}) RemoveLoose(name);
      });

      const auto listed = Listed("refs/heads/");
      ASSERT_EQ(listed.size(), 3u) << op << " " << path << " " << occurrence;
      for (const auto& [name, value] : listed) ASSERT_EQ(value, HexOfNumber(1));
      hooked_.SetHook(nullptr);
    }
  }
}

TEST_F(RefReaderTest, PackedRefsReplacedForEverIsUnavailable) {
  PutPacked(Line(1, "refs/heads/a"));
  uint64_t number = 1;
  hooked_.SetHook([&](absl::string_view op, const storage::StorePath& path) {
    if (op == "stat" && path.text() == "r.git/packed-refs") {
      PutPacked(Line(++number, "refs/heads/a"));
    }
  });

  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(reader_.List("refs/"), StatusIs(absl::StatusCode::kUnavailable));
}

// C020: packed at 1, loose at 2; deleted. Read after each single file operation.
TEST_F(RefReaderTest, DeletionNeverShowsTheAncientPackedValue) {
  PutPacked(Line(1, "refs/heads/a"));
  PutLoose("refs/heads/a", 2);
  const std::vector<wal::RefChange> deletion = {
      {RepositoryIdOf(1), "refs/heads/a", ValueOf(2).ToLogged(), {}}};

  const auto operations = DeriveRefOperations(deletion, {});
  ASSERT_EQ(operations.size(), 2u);
  ApplyRefOperation(fs_, "r.git", operations[0]);
  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(ValueOf(2)));
  ApplyRefOperation(fs_, "r.git", operations[1]);
  EXPECT_THAT(reader_.Read(Name("refs/heads/a")), IsOkAndHolds(RefValue::Absent()));
}

// C028: the four states of a ref on disk, deleted, also a second time as redo does it.
TEST_F(RefReaderTest, DeletedRefIsAbsentWhateverItWas) {
  const std::vector<wal::RefChange> deletion = {
      {RepositoryIdOf(1), "refs/heads/d", ValueOf(1).ToLogged(), {}}};
  const auto operations = DeriveRefOperations(deletion, {});
  size_t keeps_other = 0;  // The file of an earlier round still has it.
  for (const int loose : {0, 1, 2}) {
    for (const int packed : {0, 1}) {
      if (packed != 0) PutPacked(Line(1, "refs/heads/d") + Line(7, "refs/heads/other"));
      if (loose != 0) PutLoose("refs/heads/d", static_cast<uint64_t>(loose));

      for (int round = 0; round < 2; ++round) {
        ApplyRefOperations(fs_, "r.git", operations);
        EXPECT_THAT(reader_.Read(Name("refs/heads/d")), IsOkAndHolds(RefValue::Absent()));
        EXPECT_EQ(Listed("refs/").count("refs/heads/d"), 0u);
      }
      EXPECT_EQ(Listed("refs/").count("refs/heads/other"), packed == 0 ? keeps_other : 1u);
      keeps_other = Listed("refs/").count("refs/heads/other");
    }
  }
}

// Hard case A12: a large batch over a loose file of another value.
TEST_F(RefReaderTest, BatchWrittenToPackedRefsIsNotShadowedByAnOlderLooseFile) {
  PutLoose("refs/heads/x", 5);
  const std::vector<wal::RefChange> batch = {
      {RepositoryIdOf(1), "refs/heads/x", ValueOf(5).ToLogged(), ValueOf(6).ToLogged()}};

  ApplyRefOperations(fs_, "r.git", DeriveRefOperations(batch, {}, {.packed_threshold = 0}));

  EXPECT_THAT(reader_.Read(Name("refs/heads/x")), IsOkAndHolds(ValueOf(6)));
  EXPECT_THAT(storage::Exists(fs_, Repository() / "refs/heads/x"), IsOkAndHolds(false));
}

TEST_F(RefReaderTest, HeadIsReadAndItsAbsenceIsAnError) {
  EXPECT_THAT(reader_.Head(), IsOkAndHolds(SymbolicTo("refs/heads/main")));
  ASSERT_OK(fs_.Remove(Repository() / "HEAD"));
  EXPECT_THAT(reader_.Head(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(RefReaderTest, ResolvesHeadToAPackedBranchAndToAnUnbornOne) {
  ASSERT_OK_AND_ASSIGN(const ResolvedRef unborn, reader_.Resolve(RefName::Head()));
  EXPECT_EQ(unborn.name.text(), "refs/heads/main");
  EXPECT_TRUE(unborn.value.is_absent());

  PutPacked(Line(4, "refs/heads/main"));
  ASSERT_OK_AND_ASSIGN(const ResolvedRef born, reader_.Resolve(RefName::Head()));
  EXPECT_EQ(born.value, ValueOf(4));
  EXPECT_THAT(born.hops, ElementsAre(RefName::Head()));
}

// Goal: symbolic refs are followed to their end, each hop is told, and a circle ends.
class SymbolicRefTest : public ::testing::Test {
 protected:
  absl::StatusOr<ResolvedRef> Resolve(absl::string_view name) {
    return ResolveSymbolic(Name(name), [this](const RefName& hop) -> absl::StatusOr<RefValue> {
      asked_.push_back(hop.text());
      const auto value = values_.find(hop.text());
      return value == values_.end() ? RefValue::Absent() : value->second;
    });
  }

  std::map<std::string, RefValue> values_;
  std::vector<std::string> asked_;
};

TEST_F(SymbolicRefTest, AsksForEveryHopOnce) {
  values_["refs/a"] = SymbolicTo("refs/b");
  values_["refs/b"] = SymbolicTo("refs/c");
  values_["refs/c"] = ValueOf(3);

  ASSERT_OK_AND_ASSIGN(const ResolvedRef resolved, Resolve("refs/a"));
  EXPECT_EQ(resolved.name.text(), "refs/c");
  EXPECT_EQ(resolved.value, ValueOf(3));
  EXPECT_THAT(resolved.hops, ElementsAre(Name("refs/a"), Name("refs/b")));
  EXPECT_THAT(asked_, ElementsAre("refs/a", "refs/b", "refs/c"));
}

TEST_F(SymbolicRefTest, FollowsFourHopsAndNotFive) {
  for (int i = 1; i <= 4; ++i) {
    values_["refs/s" + std::to_string(i)] = SymbolicTo("refs/s" + std::to_string(i + 1));
  }
  values_["refs/s5"] = ValueOf(5);
  values_["refs/s0"] = SymbolicTo("refs/s1");

  EXPECT_OK(Resolve("refs/s1"));
  EXPECT_THAT(Resolve("refs/s0"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(SymbolicRefTest, CircleEnds) {
  values_["refs/a"] = SymbolicTo("refs/b");
  values_["refs/b"] = SymbolicTo("refs/a");

  EXPECT_THAT(Resolve("refs/a"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(asked_.size(), static_cast<size_t>(kSymbolicDepthMax));
}

TEST_F(SymbolicRefTest, ErrorOfTheLookupPassesThrough) {
  const auto resolved = ResolveSymbolic(
      Name("refs/a"),
      [](const RefName&) -> absl::StatusOr<RefValue> { return absl::DataLossError("damaged"); });

  EXPECT_THAT(resolved, StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace repotxn::refs
