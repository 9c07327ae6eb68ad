// Goal: rows, directories and symlinks that do not belong together are told, one finding for each,
// and a store where all three agree gives none. Method: an in-memory tree that is right, and one
// thing at a time made wrong.
#include "cli/catalogue_check.h"

#include <string>
#include <vector>

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

class CatalogueCheckTest : public ::testing::Test {
 protected:
  CatalogueCheckTest() {
    AddRepository("demo", "00112233445566778899aabbccddeeff");
    AddRepository("group/sub/tool", "ff112233445566778899aabbccddeeff");
  }

  void AddRepository(const std::string& path, const std::string& hex) {
    txn::RepositoryInfo row;
    row.id = *RepositoryId::FromHex(absl::string_view(hex.data(), hex.size()));
    row.path = path;
    rows_.push_back(row);
    EXPECT_OK(storage::MakeDirectories(fs_, txn::layout::RepositoryDirectory(row.id)));
    const StorePath link = StorePath::Literal("repositories") / (path + ".git");
    EXPECT_OK(storage::MakeDirectories(fs_, link.Parent()));
    const std::string target = txn::layout::RepositoryLinkTarget(path, row.id);
    EXPECT_OK(fs_.Symlink(absl::string_view(target.data(), target.size()), link));
  }

  std::vector<std::string> Texts() {
    Findings findings;
    EXPECT_OK(CheckCatalogue(fs_, rows_, findings));
    std::vector<std::string> texts;
    for (const Finding& finding : findings.list())
      texts.push_back(finding.subject + ": " + finding.text);
    return texts;
  }

  testing::MemoryFileSystem fs_;
  std::vector<txn::RepositoryInfo> rows_;
};

TEST_F(CatalogueCheckTest, FindsNothingWhenAllAgree) {
  Findings findings;
  ASSERT_OK(CheckCatalogue(fs_, rows_, findings));
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(findings.looked().at("catalogue"), 2);
}

TEST_F(CatalogueCheckTest, LinksClimbOneStepForEachGroup) {
  EXPECT_EQ(txn::layout::RepositoryLinkTarget("demo", rows_[0].id),
            "@id/00/00112233445566778899aabbccddeeff.git");
  EXPECT_EQ(txn::layout::RepositoryLinkTarget("group/sub/tool", rows_[1].id),
            "../../@id/ff/ff112233445566778899aabbccddeeff.git");
}

// C074
TEST_F(CatalogueCheckTest, TellsARowWithoutDirectoryAndWithoutSymlink) {
  ASSERT_OK(fs_.RemoveDirectory(txn::layout::RepositoryDirectory(rows_[0].id)));
  ASSERT_OK(fs_.Remove(StorePath::Literal("repositories/demo.git")));

  EXPECT_THAT(Texts(),
              ElementsAre(HasSubstr("demo: has no directory"), HasSubstr("demo: has no symlink")));
}

// C061, C159: what the catalogue says and what the disk says must be the same thing, in both
// directions.
TEST_F(CatalogueCheckTest, TellsDirectoriesAndSymlinksWithoutRow) {
  rows_.erase(rows_.begin());

  EXPECT_THAT(Texts(), ElementsAre(HasSubstr("a directory without a catalogue row"),
                                   HasSubstr("demo.git: a symlink to")));
}

TEST_F(CatalogueCheckTest, TellsASymlinkThatLeadsElsewhere) {
  ASSERT_OK(fs_.Remove(StorePath::Literal("repositories/demo.git")));
  ASSERT_OK(fs_.Symlink("../outside", StorePath::Literal("repositories/demo.git")));

  EXPECT_THAT(Texts(), ElementsAre(HasSubstr("leads to ../outside")));
}

TEST_F(CatalogueCheckTest, TellsStrangersAmongGroups) {
  ASSERT_OK(storage::WriteFile(fs_, StorePath::Literal("repositories/group/notes.txt"), "x"));
  ASSERT_OK(storage::MakeDirectories(fs_, StorePath::Literal("repositories/real.git")));

  EXPECT_THAT(Texts(),
              ElementsAre(HasSubstr("group/notes.txt: neither"), HasSubstr("real.git: neither")));
}

TEST_F(CatalogueCheckTest, AcceptsEmptyGroups) {
  ASSERT_OK(storage::MakeDirectories(fs_, StorePath::Literal("repositories/group/empty")));
  EXPECT_THAT(Texts(), IsEmpty());
}

TEST_F(CatalogueCheckTest, EndsOnATreeThatIsTooDeep) {
  std::string deep = "repositories";
  for (int i = 0; i < 40; ++i) deep += "/d";
  ASSERT_OK(storage::MakeDirectories(
      fs_, *StorePath::Parse(absl::string_view(deep.data(), deep.size()))));
  EXPECT_THAT(Texts(), ElementsAre(HasSubstr("neither a group")));
}

}  // namespace
}  // namespace repotxn::cli
