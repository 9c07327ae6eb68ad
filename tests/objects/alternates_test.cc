#include "objects/alternates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/error_detail.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::MemoryFileSystem;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

StorePath Path(const char* text) { return StorePath::Literal(text); }

// Goal: every form of line that stock Git reads is read, and nothing that leaves the store passes.
// Method: tables.
class AlternatesTextTest : public ::testing::Test {
 protected:
  const StorePath here_ = Path("repositories/@id/aa/aa01.git/objects");

  absl::StatusOr<std::vector<StorePath>> Parse(const std::string& text) {
    return ParseAlternates(text, here_, "/srv/store");
  }
};

TEST_F(AlternatesTextTest, ReadsRelativeAbsoluteAndQuotedLines) {
  EXPECT_THAT(Parse("../../../bb/bb01.git/objects\n"),
              IsOkAndHolds(ElementsAre(Path("repositories/@id/bb/bb01.git/objects"))));
  EXPECT_THAT(Parse("/srv/store/x/objects"), IsOkAndHolds(ElementsAre(Path("x/objects"))));
  EXPECT_THAT(Parse("# comment\n\n//srv/./store//x/y/../objects/\n"),
              IsOkAndHolds(ElementsAre(Path("x/objects"))));
  EXPECT_THAT(Parse("\"/srv/store/with \\\"quote\\\" \\303\\244\"\n"),
              IsOkAndHolds(ElementsAre(Path("with \"quote\" \303\244"))));
  EXPECT_THAT(Parse("/srv/store/a b:c\n../../x\n"),
              IsOkAndHolds(ElementsAre(Path("a b:c"), Path("repositories/@id/aa/x"))));
  EXPECT_THAT(Parse(""), IsOkAndHolds(IsEmpty()));
}

TEST_F(AlternatesTextTest, RefusesLinesThatLeaveTheStore) {
  for (const char* line :
       {"/etc/objects", "/srv/storex/objects", "/srv/store", "/srv", "/", "/srv/store/../other",
        "../../../../../../store/x", "../../../../../..", "/../srv/store/x", "../../../../.."}) {
    EXPECT_THAT(Parse(line), StatusIs(absl::StatusCode::kInvalidArgument)) << line;
  }
  // A tree that is on no disk has no absolute lines.
  EXPECT_THAT(ParseAlternates("/srv/store/x", here_, ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AlternatesTextTest, RefusesMalformedLinesAndItself) {
  for (const char* line : {"\"/srv/store/x", "\"/srv/store/x\" y", "\"\"", "\"/srv/store/\\x\"",
                           "\"/srv/store/\\8\"", "\"\\", ".", "../objects/", "\"a\\0001\""}) {
    EXPECT_THAT(Parse(line), StatusIs(absl::StatusCode::kInvalidArgument)) << line;
  }
  const auto refused = Parse("x\n# two\n/etc\n");
  EXPECT_EQ(ErrorDetail(refused.status(), "line"), "3");
  EXPECT_EQ(ErrorDetail(refused.status(), "path"), "/etc");
}

TEST_F(AlternatesTextTest, WritesRelativeLinesThatReadBack) {
  const std::vector<StorePath> targets = {Path("repositories/@id/bb/bb01.git/objects"),
                                          Path("repositories/@id/aa/aa02.git/objects"),
                                          Path("elsewhere")};

  const std::string text = FormatAlternates(here_, targets);

  EXPECT_EQ(text,
            "../../../bb/bb01.git/objects\n../../aa02.git/objects\n../../../../../elsewhere\n");
  EXPECT_THAT(Parse(text), IsOkAndHolds(targets));
}

TEST_F(AlternatesTextTest, QuotesAbsoluteLinesOnlyWhenTheyNeedIt) {
  EXPECT_EQ(AbsoluteAlternateLine("/a b/c\"d\\e"), "/a b/c\"d\\e\n");
  EXPECT_EQ(AbsoluteAlternateLine("/a\nb\\\""), "\"/a\\nb\\\\\\\"\"\n");
}

// Goal: chains are followed to their end and refused where stock Git would silently lose objects.
// Method: object directories in memory, linked at will.
class AlternatesChainTest : public ::testing::Test {
 protected:
  void Make(const std::string& name, const std::vector<std::string>& targets) {
    const StorePath directory = At(name);
    ASSERT_THAT(storage::MakeDirectories(fs_, directory / "info"), IsOk());
    std::vector<StorePath> paths;
    for (const std::string& target : targets) paths.push_back(At(target));
    ASSERT_THAT(
        storage::WriteFile(fs_, directory / "info/alternates", FormatAlternates(directory, paths)),
        IsOk());
  }
  static StorePath At(const std::string& name) { return Path("r") / (name + ".git/objects"); }
  absl::StatusOr<std::vector<StorePath>> Chain(const std::string& name) {
    return ResolveChain(fs_, At(name));
  }

  MemoryFileSystem fs_;
};

// C067
TEST_F(AlternatesChainTest, FollowsFourLevelsAndRefusesTheFifth) {
  Make("e", {});
  Make("d", {"e"});
  Make("c", {"d"});
  Make("b", {"c"});
  Make("a", {"b"});
  Make("z", {"a"});

  EXPECT_THAT(Chain("e"), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Chain("a"), IsOkAndHolds(ElementsAre(At("b"), At("c"), At("d"), At("e"))));
  EXPECT_THAT(ChainDepth(fs_, At("a")), IsOkAndHolds(4));
  EXPECT_THAT(Chain("z"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// ALT-15, ALT-16
TEST_F(AlternatesChainTest, ListsADirectoryReachedTwiceOnce) {
  Make("d", {});
  Make("b", {"d"});
  Make("c", {"d"});
  Make("a", {"b", "c"});

  EXPECT_THAT(Chain("a"), IsOkAndHolds(ElementsAre(At("b"), At("d"), At("c"))));
}

// C065, C068
TEST_F(AlternatesChainTest, RefusesCirclesMissingTargetsAndFiles) {
  Make("a", {"b"});
  Make("b", {"a"});
  Make("m", {"nowhere"});
  Make("f", {"file"});
  ASSERT_THAT(fs_.MakeDirectory(Path("r/file.git")), IsOk());
  ASSERT_THAT(storage::WriteFile(fs_, At("file"), "no directory"), IsOk());

  EXPECT_THAT(Chain("a"), StatusIs(absl::StatusCode::kFailedPrecondition));
  const auto missing = Chain("m");
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(ErrorDetail(missing.status(), "path"), "r/nowhere.git/objects");
  EXPECT_THAT(Chain("f"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// C068
TEST_F(AlternatesChainTest, EndsWhenWaysMultiply) {
  // Each level names both directories of the next twice: a thousand ways, five directories.
  Make("e", {});
  Make("d", {"e", "e", "e", "e", "e", "e"});
  Make("c", {"d", "d", "d", "d", "d", "d"});
  Make("b", {"c", "c", "c", "c", "c", "c"});
  Make("a", {"b", "b", "b", "b", "b", "b"});

  EXPECT_THAT(Chain("a"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(AlternatesChainTest, RefusesNewLinksThatWouldBreakARule) {
  Make("e", {});
  Make("d", {"e"});
  Make("c", {"d"});
  Make("b", {"c"});
  Make("n", {});

  EXPECT_THAT(CheckNewAlternate(fs_, At("n"), At("b"), 0), IsOk());
  EXPECT_THAT(CheckNewAlternate(fs_, At("n"), At("b"), 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(CheckNewAlternate(fs_, At("e"), At("b"), 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(CheckNewAlternate(fs_, At("n"), At("n"), 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckNewAlternate(fs_, At("n"), At("nowhere"), 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace repotxn::objects
