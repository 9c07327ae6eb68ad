// Goal: left-over files, unpaired packs, alternates that lead nowhere, damage in `git fsck` output
// and any difference between Git's view and a transaction's are told; a repository in order gives
// no finding.
#include "cli/repository_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Texts(const Findings& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings.list())
    texts.push_back(finding.subject + ": " + finding.text);
  return texts;
}

class RepositoryFilesCheckTest : public ::testing::Test {
 protected:
  RepositoryFilesCheckTest() {
    row_.id = *RepositoryId::FromHex("00112233445566778899aabbccddeeff");
    row_.path = "demo";
    Put("HEAD", "ref: refs/heads/main\n");
    Put("config", "[core]\n");
    Put("refs/heads/main", "0123\n");
    for (const char* suffix : {"pack", "idx", "rev"})
      Put(absl::StrCat("objects/pack/pack-1.", suffix), "x");
  }

  void Put(const std::string& path, const std::string& content) {
    const StorePath full = txn::layout::RepositoryDirectory(row_.id) / path;
    EXPECT_OK(storage::MakeDirectories(fs_, full.Parent()));
    EXPECT_OK(storage::WriteFile(fs_, full, absl::string_view(content.data(), content.size())));
  }
  void Drop(const std::string& path) {
    EXPECT_OK(fs_.Remove(txn::layout::RepositoryDirectory(row_.id) / path));
  }

  std::vector<std::string> Check() {
    Findings findings;
    EXPECT_OK(CheckRepositoryFiles(fs_, row_, findings));
    EXPECT_GT(findings.looked().at("files"), 0);
    return Texts(findings);
  }

  testing::MemoryFileSystem fs_;
  txn::RepositoryInfo row_;
};

TEST_F(RepositoryFilesCheckTest, FindsNothingInARepositoryAtRest) {
  EXPECT_THAT(Check(), IsEmpty());
}

// C001, C002, C004, C006, C007: stale locks of every kind are seen wherever they stand.
TEST_F(RepositoryFilesCheckTest, TellsEveryLockFile) {
  Put("refs/heads/main.lock", "");
  Put("packed-refs.lock", "");
  Put("objects/pack/multi-pack-index.lock", "");
  Put("objects/info/commit-graphs/commit-graph-chain.lock", "");
  Put("gc.pid", "1 host");

  EXPECT_THAT(Check(), SizeIs(5 + 1));  // refs/heads/main.lock is also a loose ref without content
}

// C011, C052
TEST_F(RepositoryFilesCheckTest, TellsTemporaryAndKeepFiles) {
  Put("objects/pack/tmp_pack_abc", "x");
  Put("objects/pack/.tmp-1-pack", "x");
  Put("objects/pack/pack-1.keep", "");

  EXPECT_THAT(Check(), ElementsAre(HasSubstr(".tmp-1-pack: a temporary file"),
                                   HasSubstr("pack-1.keep: a keep file"),
                                   HasSubstr("tmp_pack_abc: a temporary file")));
}

// C013
TEST_F(RepositoryFilesCheckTest, TellsALooseRefWithoutContent) {
  Put("refs/heads/empty", "");
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("refs/heads/empty: a loose ref without content")));
}

TEST_F(RepositoryFilesCheckTest, TellsUnpairedPackFiles) {
  Drop("objects/pack/pack-1.rev");
  Put("objects/pack/pack-2.idx", "x");

  EXPECT_THAT(Check(), ElementsAre(HasSubstr("pack-1.pack: has no .rev"),
                                   HasSubstr("pack-2.idx: has no .pack")));
}

TEST_F(RepositoryFilesCheckTest, TellsSymlinks) {
  ASSERT_OK(fs_.Symlink("/etc/passwd", txn::layout::RepositoryDirectory(row_.id) / "description"));
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("description: no regular file")));
}

// C060, C064
TEST_F(RepositoryFilesCheckTest, TellsAlternatesThatAreAbsoluteLeaveTheStoreOrLeadNowhere) {
  Put("objects/info/alternates",
      "../../../ff/ff112233445566778899aabbccddeeff.git/objects\n"
      "/srv/elsewhere/objects\n"
      "../../../../../../../../outside\n");

  EXPECT_THAT(Check(), ElementsAre(HasSubstr("leads nowhere"), HasSubstr("absolute"),
                                   HasSubstr("out of the store")));
}

TEST_F(RepositoryFilesCheckTest, AcceptsAnAlternateThatIsThere) {
  Put("objects/info/alternates", "../../../ff/ff112233445566778899aabbccddeeff.git/objects\n");
  ASSERT_OK(storage::MakeDirectories(
      fs_, StorePath::Literal("repositories/@id/ff/ff112233445566778899aabbccddeeff.git/objects")));
  EXPECT_THAT(Check(), IsEmpty());
}

TEST(RefComparisonTest, EqualListingsGiveNothing) {
  Findings findings;
  CompareRefListings("demo", "HEAD ref: refs/heads/main\nrefs/heads/main 01\n",
                     "HEAD ref: refs/heads/main\nrefs/heads/main 01\n", findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(findings.looked().at("refs"), 2);
}

// C022, C028: a ref that came back, one that went, one with another value, each by its full name
// (C045).
TEST(RefComparisonTest, TellsEveryDifferenceByName) {
  Findings findings;
  CompareRefListings("demo", "refs/heads/a 01\nrefs/heads/back 02\nrefs/tags/x 03\n",
                     "refs/heads/a 01\nrefs/heads/gone 02\nrefs/tags/x 04\n", findings);
  EXPECT_THAT(
      Texts(findings),
      ElementsAre(HasSubstr("refs/heads/back: git sees 02, a transaction does not see it"),
                  HasSubstr("refs/tags/x: git sees 03, a transaction sees 04"),
                  HasSubstr("refs/heads/gone: a transaction sees 02, git does not see it")));
}

TEST(RefComparisonTest, StopsTellingAfterTwenty) {
  std::string git;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&git, "refs/heads/b", i, " 01\n");
  Findings findings;
  CompareRefListings("demo", git, "", findings);
  EXPECT_THAT(findings.list(), SizeIs(20));
}

// C156: dangling and unreachable objects are ordinary; so are faults in the content of old objects,
// which pushes may bring.
TEST(FsckOutputTest, TakesOnlyDamageForDamage) {
  EXPECT_THAT(DamageInFsckOutput(
                  "Checking object directories: 100% (256/256), done.\n"
                  "notice: HEAD points to an unborn branch (main)\n"
                  "dangling commit 0123\n"
                  "error in commit 0123: missingSpaceBeforeDate: invalid author/committer line\n"
                  "warning in tree 0123: zeroPaddedFilemode: contains zero-padded file modes\n\n"),
              IsEmpty());
}

TEST(FsckOutputTest, TellsMissingBrokenAndCorruptObjects) {
  EXPECT_THAT(DamageInFsckOutput("missing blob 0123\n"
                                 "broken link from    tree 0123\n"
                                 "              to    blob 4567\n"
                                 "error: refs/heads/x: invalid sha1 pointer 0000\n"
                                 "fatal: loose object 0123 is corrupt\n"),
              SizeIs(5));
}

}  // namespace
}  // namespace repotxn::cli
