// What the native readers say about repositories that stock Git made, compared with what stock Git
// says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "objects/object_lookup.h"
#include "tests/objects/git_sandbox.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::GitSandbox;
using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;
using storage::StorePath;

// Goal: existence, type, size, content, peeling and parents agree with Git for every object,
// however it is stored. Method: seeded histories by fast-import, laid out in every way; any
// difference fails and names the object.
class GitAgreementTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  void SetUp() override {
    const std::string format = GetParam() == ObjectFormat::kSha1 ? "sha1" : "sha256";
    git_.Write("history", RandomHistory(11, 120));
    git_.Run("git init -q --bare -b main --object-format=" + format +
             " a.git\n"
             "cd a.git\n"
             "git fast-import --quiet --done < ../history\n"
             "git tag -a -m x tagged main~3\n"
             "git tag -a -m y nested tagged\n"
             "git tag -a -m z tree main^{tree}\n"
             "git tag light main~5\n");
  }
  std::shared_ptr<ObjectLookup> Open(const std::string& repository) {
    auto lookup = ObjectLookup::Open(&git_.fs(), StorePath::Literal(repository + "/objects"),
                                     {.format = GetParam()});
    EXPECT_THAT(lookup, IsOk());
    return *lookup;
  }

  // Compares every object; returns their number.
  int Compare(const std::string& repository) {
    const auto lookup = Open(repository);
    std::istringstream listed(
        git_.Run("cd " + repository + " && git cat-file --batch-all-objects --batch-check"));
    int objects = 0;
    for (std::string hex, type, size; listed >> hex >> type >> size; ++objects) {
      const ObjectId oid = *ObjectId::FromHex(hex);
      EXPECT_THAT(lookup->Exists(oid), IsOkAndHolds(true)) << hex;
      const auto info = lookup->Info(oid);
      if (!info.ok()) {
        ADD_FAILURE() << hex << " " << info.status();
        continue;
      }
      const absl::string_view name = ObjectTypeName(info->type);
      EXPECT_EQ(std::string(name.data(), name.size()), type) << hex;
      EXPECT_EQ(std::to_string(info->size), size) << hex;
      // An id that differs in its last byte is in none of these repositories.
      std::string absent = hex;
      absent.back() = absent.back() == '0' ? '1' : '0';
      EXPECT_THAT(lookup->Exists(*ObjectId::FromHex(absent)), IsOkAndHolds(false)) << absent;
    }
    return objects;
  }
  // Compares contents, parents and peeled values.
  void CompareContents(const std::string& repository) {
    const auto lookup = Open(repository);
    std::istringstream bytes(
        git_.Run("cd " + repository + " && git cat-file --batch-all-objects --batch"));
    for (std::string hex, type, size; bytes >> hex >> type >> size;) {
      bytes.get();
      std::string content(std::stoul(size), '\0');
      bytes.read(&content[0], static_cast<std::streamsize>(content.size()));
      const auto object = lookup->Read(*ObjectId::FromHex(hex));
      ASSERT_THAT(object, IsOk()) << hex;
      ASSERT_EQ(object->content, content) << hex;
    }
    std::istringstream parents(git_.Run("cd " + repository + " && git rev-list --parents --all"));
    for (std::string line; std::getline(parents, line);) {
      std::istringstream words(line);
      std::string hex;
      words >> hex;
      std::vector<ObjectId> expected;
      const ObjectId commit = *ObjectId::FromHex(hex);
      while (words >> hex) expected.push_back(*ObjectId::FromHex(hex));
      EXPECT_THAT(lookup->CommitParents(commit), IsOkAndHolds(expected)) << line;
    }
  }
  void ComparePeeling(const std::string& repository) {
    const auto lookup = Open(repository);
    for (const char* ref : {"tagged", "nested", "tree", "light", "main", "main^{tree}"}) {
      const std::string in = "cd " + repository + " && git rev-parse '" + ref;
      const auto peeled = lookup->Peel(git_.Oid(in + "'"));
      ASSERT_THAT(peeled, IsOk()) << ref;
      EXPECT_EQ(peeled->oid, git_.Oid(in + "^{}'")) << ref;
    }
  }

  GitSandbox git_;
};

TEST_P(GitAgreementTest, HoldsForAPackWithDeepDeltas) {
  git_.Run("cd a.git && git repack -q -adf --depth=50 --window=10");
  ASSERT_THAT(git_.Run("cd a.git && git verify-pack -v objects/pack/*.idx | grep '^chain'"),
              ::testing::HasSubstr("chain length = 20: "));

  EXPECT_GT(Compare("a.git"), 300);
  CompareContents("a.git");
  ComparePeeling("a.git");
}

TEST_P(GitAgreementTest, HoldsForDeltasByIdAndSeveralPacks) {
  git_.Run(
      "cd a.git\n"
      "git -c repack.useDeltaBaseOffset=false repack -q -adf --depth=50\n"
      "git tag -a -m later later main~2\n"
      "git repack -q -d\n"
      "git multi-pack-index write\n"
      "git commit-graph write --reachable\n");

  EXPECT_GT(Compare("a.git"), 300);
  CompareContents("a.git");
}

TEST_P(GitAgreementTest, HoldsForLooseObjects) {
  git_.Run(
      "cd a.git\n"
      "mkdir ../packs && mv objects/pack/* ../packs\n"
      "for pack in ../packs/*.pack; do git unpack-objects -q < $pack; done\n"
      "test -z \"$(ls objects/pack)\"\n");

  EXPECT_GT(Compare("a.git"), 300);
  CompareContents("a.git");
  ComparePeeling("a.git");
}

TEST_P(GitAgreementTest, HoldsAcrossTwoLevelsOfAlternates) {
  git_.Run(
      "git clone -q --bare --shared a.git b.git\n"
      "git clone -q --bare --shared b.git c.git\n"
      "echo ../../b.git/objects > c.git/objects/info/alternates\n"
      "cd c.git\n"
      "git update-ref refs/heads/new "
      "$(git commit-tree -p main -m new $(printf '100644 blob %s\\tfile\\n' "
      "$(echo new | git hash-object -w --stdin) | git mktree))\n");

  EXPECT_GT(Compare("c.git"), 300);
  CompareContents("c.git");
  ComparePeeling("c.git");
  EXPECT_EQ(Open("c.git")->alternates().size(), 2u);
}

// A commit-graph remembers commits whose objects are gone; a lookup must not.
TEST_P(GitAgreementTest, DoesNotAnswerFromACommitGraph) {
  git_.Run(
      "cd a.git && git commit-graph write --reachable && git rev-parse main > ../tip\n"
      "rm -f objects/pack/*");
  const auto lookup = Open("a.git");

  EXPECT_THAT(lookup->Exists(*ObjectId::FromHex(git_.Line("cat tip"))), IsOkAndHolds(false));
}

TEST_P(GitAgreementTest, SurvivesFlippedBitsInFilesThatGitMade) {
  git_.Run(
      "cd a.git && git repack -q -adf && git rev-parse main > ../tip && git cat-file "
      "--batch-all-objects --batch-check='%(objectname)' | head -40 > ../some\n"
      "chmod -R u+w objects; cd objects/pack; mv *.idx ../../../idx; mv *.pack "
      "../../../pack; rm -f *.rev; touch p.idx p.pack");
  const std::string index = git_.Read("idx");
  const std::string pack = git_.Read("pack");
  std::vector<ObjectId> oids;
  std::istringstream some(git_.Read("some"));
  for (std::string hex; some >> hex;) oids.push_back(*ObjectId::FromHex(hex));
  repotxn::testing::SeededRandom random(5);
  int refused = 0;

  for (int round = 0; round < 60; ++round) {
    std::string damaged_index = index;
    std::string damaged_pack = pack;
    std::string& victim = round % 2 == 0 ? damaged_index : damaged_pack;
    for (int flips = 0; flips < 20; ++flips) {
      char& byte = victim[random.Below(victim.size())];
      byte = static_cast<char>(byte ^ (1 << random.Below(8)));
    }
    git_.Write("a.git/objects/pack/p.idx", damaged_index);
    git_.Write("a.git/objects/pack/p.pack", damaged_pack);
    const auto lookup = Open("a.git");
    for (const ObjectId& oid : oids) {
      const auto read = lookup->Read(oid);
      if (!read.ok()) ++refused;
    }
  }

  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, GitAgreementTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& suite) {
                           return suite.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256";
                         });

}  // namespace
}  // namespace repotxn::objects
