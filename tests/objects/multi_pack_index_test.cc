#include "objects/multi_pack_index.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "objects/derived_path.h"
#include "objects/trailing_checksum.h"
#include "tests/objects/git_sandbox.h"
#include "tests/objects/text_file.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using absl::StatusCode;
using ::testing::AnyOf;
using repotxn::testing::GitSandbox;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;
using repotxn::testing::TextFile;

// An index that Git wrote over three packs.
class MultiPackIndexTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  MultiPackIndexTest() {
    git_.Run(absl::StrCat("git init -q --bare -b main --object-format=", ObjectFormatName(GetParam()), " r.git\n",
                          "cd r.git\n"
                          "for n in 1 2 3; do echo $n | git hash-object -w --stdin |"
                          " git pack-objects -q objects/pack/pack > ../name; done\n"
                          "git multi-pack-index write --no-progress\n"
                          "cd objects/pack && ls *.pack | sed s/.pack$// | LC_ALL=C sort > ../../../packs"));
    bytes_ = git_.Read("r.git/objects/pack/multi-pack-index");
  }
  absl::StatusOr<std::vector<std::string>> Names(const std::string& bytes, ObjectFormat format = GetParam()) {
    return ReadPackNames(TextFile(bytes), "file", format);
  }

  GitSandbox git_;
  std::string bytes_;
};
INSTANTIATE_TEST_SUITE_P(BothFormats, MultiPackIndexTest, ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

TEST_P(MultiPackIndexTest, NamesThePacksThatGitPutIn) {
  const std::vector<std::string> packs = absl::StrSplit(git_.Read("packs"), '\n', absl::SkipEmpty());
  ASSERT_EQ(packs.size(), 3u);
  const auto names = Names(bytes_);
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(*names, packs);
  EXPECT_THAT(VerifyTrailingChecksum(TextFile(bytes_), "file", GetParam()), IsOk());
}

TEST_P(MultiPackIndexTest, IsRefusedWhereverItIsCut) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const std::string cut = bytes_.substr(0, size);
    EXPECT_THAT(Names(cut), StatusIs(StatusCode::kDataLoss)) << size;
    EXPECT_THAT(VerifyTrailingChecksum(TextFile(cut), "file", GetParam()), StatusIs(StatusCode::kDataLoss)) << size;
  }
}

TEST_P(MultiPackIndexTest, IsReadOrRefusedWhateverByteIsWrong) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string wrong = bytes_;
      wrong[at] = static_cast<char>(wrong[at] ^ flip);
      const auto names = Names(wrong);
      if (!names.ok()) {
        EXPECT_THAT(names, AnyOf(StatusIs(StatusCode::kDataLoss), StatusIs(StatusCode::kUnimplemented))) << at;
      }
      EXPECT_THAT(VerifyTrailingChecksum(TextFile(wrong), "file", GetParam()), StatusIs(StatusCode::kDataLoss)) << at;
    }
  }
}

TEST_P(MultiPackIndexTest, IsRefusedWhenItIsNotWhatItShouldBe) {
  const auto with = [&](size_t at, char byte) {
    std::string bytes = bytes_;
    bytes[at] = byte;
    return bytes;
  };
  EXPECT_THAT(Names(with(0, 'X')), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(Names(with(4, 2)), StatusIs(StatusCode::kUnimplemented));
  EXPECT_THAT(Names(with(7, 1)), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(Names(with(11, 2)), StatusIs(StatusCode::kDataLoss));  // one pack less than names
  EXPECT_THAT(Names(with(11, 4)), StatusIs(StatusCode::kDataLoss));
  EXPECT_THAT(Names(bytes_, GetParam() == ObjectFormat::kSha1 ? ObjectFormat::kSha256 : ObjectFormat::kSha1),
              StatusIs(StatusCode::kDataLoss));
  std::string elsewhere = bytes_;
  elsewhere.replace(elsewhere.find("pack-"), 5, "../..");
  EXPECT_THAT(Names(elsewhere), StatusIs(StatusCode::kDataLoss));
}

TEST(DerivedPathTest, KnowsExactlyTheFilesThatGitDerives) {
  const std::string sha1(40, 'a'), sha256(64, '0');
  for (const std::string& hash : {sha1, sha256}) {
    EXPECT_EQ(DerivedKindOf("objects/info/commit-graphs/graph-" + hash + ".graph"), DerivedKind::kPart);
    EXPECT_EQ(DerivedKindOf("objects/pack/multi-pack-index-" + hash + ".bitmap"), DerivedKind::kPart);
    EXPECT_EQ(DerivedKindOf("objects/pack/multi-pack-index-" + hash + ".rev"), DerivedKind::kPart);
  }
  EXPECT_EQ(DerivedKindOf(kCommitGraphChain), DerivedKind::kIndex);
  EXPECT_EQ(DerivedKindOf(kMultiPackIndex), DerivedKind::kIndex);
  EXPECT_EQ(DerivedKindOf(kCommitGraph), DerivedKind::kWhole);
  for (const std::string& other :
       {std::string(), std::string("objects/info/alternates"), std::string("objects/info/commit-graphs"),
        "objects/info/commit-graphs/../graph-" + sha1 + ".graph", "objects/pack/pack-" + sha1 + ".bitmap",
        "objects/pack/multi-pack-index-" + sha1 + ".lock", "objects/pack/multi-pack-index-" + std::string(40, 'A') + ".rev",
        "objects/info/commit-graphs/graph-" + sha1.substr(1) + ".graph", std::string("objects/pack/multi-pack-index.lock")}) {
    EXPECT_FALSE(DerivedKindOf(other)) << other;
  }
}

TEST(DerivedPathTest, PutsPartsBeforeWhatNamesThemAndRemovesThemAfter) {
  EXPECT_LT(DerivedOrder(DerivedKind::kPart, false), DerivedOrder(DerivedKind::kIndex, false));
  EXPECT_LT(DerivedOrder(DerivedKind::kIndex, false), DerivedOrder(DerivedKind::kWhole, true));
  EXPECT_LT(DerivedOrder(DerivedKind::kIndex, true), DerivedOrder(DerivedKind::kPart, true));
  EXPECT_LT(DerivedOrder(DerivedKind::kIndex, false), DerivedOrder(DerivedKind::kPart, true));
}

}  // namespace
}  // namespace repotxn::objects
