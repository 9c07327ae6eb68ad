// Paths: the lexical rule as a table, and the kernel's refusal of what a table cannot see.
#include "storage/store_path.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/posix_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::IsOk;
using ::repotxn::testing::StatusIs;
using ::testing::HasSubstr;

std::string Times(int count, absl::string_view text) {
  std::string out;
  for (int i = 0; i < count; ++i) absl::StrAppend(&out, text);
  return out;
}

TEST(StorePath, AcceptsNormalisedPathsOfBytes) {
  const std::vector<std::string> accepted = {
      "",
      "a",
      "a/b",
      "a/b/c",
      "A",
      "0",
      "-",
      "--",
      "-a",
      "~",
      "@id",
      "...",
      "....",
      "..a",
      "a..",
      "a..b",
      ".a",
      "a.",
      ".git",
      ".../...",
      "a/..b/c",
      " ",
      " a ",
      "a b",
      "\t",
      "\n",
      "\r\n",
      "a\nb",
      "\x01",
      "\x7f",
      "\x80",
      "\xff",
      "\xc3\xa4",
      "\xc3",
      "\xe2\x80\xae",
      "\\",
      "a\\b",
      "..\\a",
      "c:",
      "c:\\a",
      "%2e%2e",
      "%00",
      "*",
      "?",
      "$HOME",
      "`a`",
      "'",
      "\"",
      "a.lock",
      "CON",
      "refs/heads/main",
      "repositories/@id/ab/abcd.git",
      std::string(255, 'x'),
      std::string(255, 'x') + "/y",
      Times(15, std::string(255, 'x') + "/") + std::string(255, 'y'),
  };
  for (const std::string& text : accepted) {
    const auto path = StorePath::Parse(text);
    ASSERT_OK(path) << text;
    EXPECT_EQ(path->text(), text);
  }
}

// C043 and its kin. [FSR-02, FSR-03]
TEST(StorePath, RefusesWhatIsNotNormalisedAndNamesTheOffset) {
  struct Case {
    std::string text;
    absl::string_view rule;
  };
  const std::vector<Case> refused = {
      {"/", "empty component at offset 0"},
      {"//", "empty component at offset 0"},
      {"/a", "empty component at offset 0"},
      {"//a", "empty component at offset 0"},
      {"/etc/passwd", "empty component at offset 0"},
      {"a/", "empty component at offset 2"},
      {"a//b", "empty component at offset 2"},
      {"a/b//", "empty component at offset 4"},
      {"a///b", "empty component at offset 2"},
      {".", "dot component at offset 0"},
      {"..", "dot component at offset 0"},
      {"./a", "dot component at offset 0"},
      {"a/.", "dot component at offset 2"},
      {"a/./b", "dot component at offset 2"},
      {"../a", "dot component at offset 0"},
      {"../../a", "dot component at offset 0"},
      {"a/..", "dot component at offset 2"},
      {"a/../b", "dot component at offset 2"},
      {"a/../../b", "dot component at offset 2"},
      {"a/b/../../../c", "dot component at offset 4"},
      {"./", "dot component at offset 0"},
      {"../", "dot component at offset 0"},
      {".../..", "dot component at offset 4"},
      {std::string("\0", 1), "NUL byte at offset 0"},
      {std::string("a\0b", 3), "NUL byte at offset 1"},
      {std::string("a/b\0", 4), "NUL byte at offset 3"},
      {std::string("..\0", 3), "NUL byte at offset 2"},
      {std::string("a/\0/b", 5), "NUL byte at offset 2"},
      {std::string(256, 'x'), "component too long at offset 255"},
      {"a/" + std::string(256, 'x'), "component too long at offset 257"},
      {Times(16, std::string(255, 'x') + "/") + "y", "path too long at offset 4095"},
  };
  for (const auto& [text, rule] : refused) {
    const absl::Status status = StorePath::Parse(text).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(rule))) << text;
  }
}

TEST(StorePath, ChildJoinsAndChecks) {
  const StorePath base = StorePath::Literal("a/b");
  EXPECT_EQ(base.Child("c/d")->text(), "a/b/c/d");
  EXPECT_EQ(StorePath().Child("c")->text(), "c");
  EXPECT_EQ((base / "c").text(), "a/b/c");
  for (const char* bad : {"", "..", "/c", "c/", "../c", "."}) {
    EXPECT_THAT(base.Child(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
  const StorePath longest =
      StorePath::Literal(Times(15, std::string(255, 'x') + "/") + std::string(253, 'y'));
  EXPECT_OK(longest.Child("z"));
  EXPECT_THAT(longest.Child("zz"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StorePath, ParentNameAndAncestry) {
  const StorePath path = StorePath::Literal("a/b/c");
  EXPECT_EQ(path.Parent().text(), "a/b");
  EXPECT_EQ(path.Name(), "c");
  EXPECT_TRUE(StorePath::Literal("a").Parent().IsRoot());
  EXPECT_TRUE(StorePath().Parent().IsRoot());
  EXPECT_EQ(StorePath().Name(), "");
  EXPECT_TRUE(path.IsWithin(StorePath()));
  EXPECT_TRUE(path.IsWithin(path));
  EXPECT_TRUE(path.IsWithin(StorePath::Literal("a/b")));
  // A prefix of the text is not an ancestor.
  EXPECT_FALSE(StorePath::Literal("a/bc").IsWithin(StorePath::Literal("a/b")));
  EXPECT_FALSE(StorePath::Literal("a").IsWithin(StorePath::Literal("a/b")));
  EXPECT_FALSE(StorePath().IsWithin(StorePath::Literal("a")));
}

TEST(StorePathDeathTest, AMalformedLiteralAborts) {
  EXPECT_DEATH(StorePath::Literal("../a"), "");
  EXPECT_DEATH(StorePath::Literal("a") / "..", "check failed");
}

// Symlinks that lead out of the root: planted where a repository could hold them.
class PosixEscape : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(outside_.path() + "/secret") << "secret";
    ASSERT_OK_AND_ASSIGN(fs_, OpenPosixFileSystem(inside_.path()));
    ASSERT_OK(fs_->Symlink(outside_.path(), P("absolute")));
    ASSERT_OK(fs_->Symlink("..", P("up")));
    ASSERT_OK(fs_->Symlink(outside_.path() + "/secret", P("file")));
    ASSERT_OK(fs_->Symlink("/proc/self/root", P("magic")));
    ASSERT_OK(fs_->MakeDirectory(P("d")));
    ASSERT_OK(fs_->Symlink("../up", P("d/chain")));
  }
  static StorePath P(absl::string_view text) { return StorePath::Literal(text); }

  repotxn::testing::TempDirectory inside_;
  repotxn::testing::TempDirectory outside_;
  std::unique_ptr<FileSystem> fs_;
};

// FSR-03, C043
TEST_F(PosixEscape, NoCallLeavesTheRootThroughASymlink) {
  const std::string name = outside_.path().substr(outside_.path().rfind('/') + 1);
  const std::vector<std::string> escapes = {"absolute/secret", absl::StrCat("up/", name, "/secret"),
                                            "file", absl::StrCat("d/chain/", name, "/secret"),
                                            absl::StrCat("magic", outside_.path(), "/secret")};
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  for (const std::string& escape : escapes) {
    SCOPED_TRACE(escape);
    const StorePath path = P(escape);
    EXPECT_THAT(fs_->OpenForRead(path), StatusIs(kRefused));
    EXPECT_THAT(fs_->OpenPastCache(path), StatusIs(kRefused));
    EXPECT_THAT(fs_->OpenForWrite(path, OpenMode::kCreateTruncate), StatusIs(kRefused));
    EXPECT_THAT(fs_->SetPermissions(path, 0777), StatusIs(kRefused));
    EXPECT_THAT(fs_->SyncFile(path), StatusIs(kRefused));
    EXPECT_THAT(fs_->List(path), StatusIs(kRefused));
  }
  EXPECT_THAT(fs_->Remove(P("absolute/secret")), StatusIs(kRefused));
  EXPECT_THAT(fs_->Rename(P("absolute/secret"), P("mine")), StatusIs(kRefused));
  EXPECT_THAT(fs_->Link(P("absolute/secret"), P("mine")), StatusIs(kRefused));
  EXPECT_THAT(fs_->MakeDirectory(P("absolute/made")), StatusIs(kRefused));
  EXPECT_THAT(fs_->Symlink("x", P("absolute/made")), StatusIs(kRefused));
  std::string content;
  std::ifstream(outside_.path() + "/secret") >> content;
  EXPECT_EQ(content, "secret");
}

TEST_F(PosixEscape, RemovingATreeRemovesTheLinksOnly) {
  for (const char* name : {"absolute", "up", "file", "magic", "d"}) {
    ASSERT_OK(RemoveTree(*fs_, P(name)));
  }
  EXPECT_TRUE(std::ifstream(outside_.path() + "/secret").good());
}

TEST_F(PosixEscape, TheRootMayBeReachedThroughASymlink) {
  ASSERT_OK_AND_ASSIGN(const auto other, OpenPosixFileSystem(inside_.path() + "/absolute"));
  EXPECT_OK(other->OpenForRead(P("secret")));
  EXPECT_EQ(*other->AbsolutePath(P("secret")), outside_.path() + "/secret");
}

TEST(PosixRoot, IsNeverCreated) {
  repotxn::testing::TempDirectory directory;
  EXPECT_THAT(OpenPosixFileSystem(directory.path() + "/absent"),
              StatusIs(absl::StatusCode::kNotFound));
  std::ofstream(directory.path() + "/file") << "x";
  EXPECT_THAT(OpenPosixFileSystem(directory.path() + "/file"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace repotxn::storage
