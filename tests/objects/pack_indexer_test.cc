#include "objects/pack_indexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/error_detail.h"
#include "objects/object_lookup.h"
#include "objects/quarantine.h"
#include "objects/repository_skeleton.h"
#include "tests/objects/git_sandbox.h"
#include "tests/objects/pack_builder.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::BigEndian;
using repotxn::testing::GitSandbox;
using repotxn::testing::HashOf;
using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::PackBuilder;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Goal: a pack is accepted exactly when it is sound and all it names is there, in both object
// formats. Method: a live repository with the older half of a history; packs of the newer half,
// whole and spoilt, go into object snapshots.
class PackIndexerTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  void SetUp() override {
    format_name_ = GetParam() == ObjectFormat::kSha1 ? "sha1" : "sha256";
    git_.Write("history", RandomHistory(21, 60));
    git_.Run("git init -q --bare -b main --object-format=" + format_name_ + " client.git\n" +
             "cd client.git && git fast-import --quiet --done < ../history && git repack -qadf\n" +
             "cd .. && git init -q --bare -b main --object-format=" + format_name_ + " live.git\n" +
             "git -C client.git push -q ../live.git main~5:refs/heads/main\n");
    thin_ = Packed("--thin --revs", "main\n^main~5");
    full_ = Packed("--revs", "main");
  }

  // Bytes of a pack that the client makes.
  std::string Packed(const std::string& options, const std::string& input) {
    git_.Write("input", input + "\n");
    return git_.Run("git -C client.git pack-objects -q --stdout " + options + " < input");
  }
  // A pack of everything new except the object named `left_out`.
  std::string PackedWithout(const std::string& left_out) {
    git_.Run(
        "git -C client.git rev-list --objects main ^main~5 | cut -d' ' -f1 | grep -v "
        "$(git -C client.git rev-parse '" +
        left_out + "') > input");
    return git_.Run("git -C client.git pack-objects -q --stdout < input");
  }
  // What a client sends when the other side has all it pushes.
  std::string PackedEmpty() {
    const std::string header = "PACK" + BigEndian(2, 4) + BigEndian(0, 4);
    return header + HashOf(header, GetParam());
  }
  void MakeSnapshot(std::optional<StorePath> live = StorePath::Literal("live.git")) {
    snapshot_ = StorePath::Literal("snapshot" + std::to_string(++snapshots_));
    ObjectSnapshotOptions options;
    options.format = GetParam();
    options.live_repository = live;
    ASSERT_THAT(MakeObjectSnapshot(git_.fs(), snapshot_, options), IsOk());
  }
  absl::StatusOr<PackIndexer::Result> Index(const std::string& pack,
                                            PackIndexer::Options options = {}) {
    return PackIndexer(options).Index(git_.path() + "/" + snapshot_.text(), GetParam(),
                                      TextSource(pack));
  }
  absl::StatusOr<PackIndexer::Result> IndexAfresh(const std::string& pack,
                                                  PackIndexer::Options options = {}) {
    MakeSnapshot();
    return Index(pack, std::move(options));
  }

  GitSandbox git_;
  std::string format_name_;
  std::string thin_;
  std::string full_;
  StorePath snapshot_;
  int snapshots_ = 0;
};

// Git's exit code 1 of --check-self-contained-and-connected means sound with links that point
// outside.
TEST_P(PackIndexerTest, AcceptsAThinPackWithExitCodeOne) {
  MakeSnapshot();
  GitCommand command;
  command.repository = git_.path() + "/" + snapshot_.text();
  command.arguments = {"index-pack", "--stdin", "--fix-thin",
                       "--check-self-contained-and-connected"};
  ASSERT_OK_AND_ASSIGN(const GitResult raw, RunGit(command, TextSource(thin_), {}));
  EXPECT_EQ(raw.exit_code, 1);
  EXPECT_THAT(raw.output, ::testing::StartsWith("pack\t"));

  ASSERT_OK_AND_ASSIGN(const auto indexed, IndexAfresh(thin_));

  EXPECT_FALSE(indexed.is_empty);
  EXPECT_FALSE(indexed.is_self_contained);
  EXPECT_EQ(indexed.sent_bytes, static_cast<int64_t>(thin_.size()));
  ASSERT_OK_AND_ASSIGN(const auto packs, ListStagedPacks(git_.fs(), snapshot_));
  ASSERT_THAT(packs, SizeIs(1));
  EXPECT_EQ(packs[0].name, indexed.pack_name);
  ASSERT_THAT(packs[0].files, SizeIs(3));
  EXPECT_THAT(packs[0].files[0].text(), HasSubstr(".pack"));
  EXPECT_THAT(packs[0].files[1].text(), HasSubstr(".rev"));
  EXPECT_THAT(packs[0].files[2].text(), HasSubstr(".idx"));
}

// CORE-07
TEST_P(PackIndexerTest, StagedPackAnswersInFrontOfTheLiveDirectory) {
  ASSERT_THAT(IndexAfresh(thin_), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto live,
                       ObjectLookup::Open(&git_.fs(), StorePath::Literal("live.git/objects"),
                                          {.format = GetParam()}));
  const auto both = ObjectLookup::WithQuarantine(live, &git_.fs(), snapshot_ / "objects", {});
  const ObjectId tip = git_.Oid("git -C client.git rev-parse main");

  EXPECT_THAT(live->Exists(tip), IsOkAndHolds(false));
  EXPECT_THAT(both->Type(tip), IsOkAndHolds(ObjectType::kCommit));
  EXPECT_THAT(both->Type(git_.Oid("git -C client.git rev-parse main~9")),
              IsOkAndHolds(ObjectType::kCommit));
  // The same files, linked into the live directory, are what stock Git calls whole.
  git_.Run("cp " + snapshot_.text() +
           "/objects/pack/pack-* live.git/objects/pack/ && cd live.git && git update-ref "
           "refs/heads/main " +
           tip.ToHex() + " && git fsck --full --strict --no-progress");
}

TEST_P(PackIndexerTest, AcceptsASelfContainedPackIntoANewRepository) {
  MakeSnapshot(std::nullopt);

  ASSERT_OK_AND_ASSIGN(const auto indexed, Index(full_));
  EXPECT_TRUE(indexed.is_self_contained);
  EXPECT_GT(indexed.sent_objects, 100);
}

TEST_P(PackIndexerTest, GivesTheSameNameToTheSamePack) {
  ASSERT_OK_AND_ASSIGN(const auto first, IndexAfresh(full_));
  ASSERT_OK_AND_ASSIGN(const auto second, IndexAfresh(full_));

  EXPECT_EQ(first.pack_name, second.pack_name);
}

TEST_P(PackIndexerTest, RefusesAThinPackWhoseBaseIsNowhere) {
  MakeSnapshot(std::nullopt);

  const auto refused = Index(thin_);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(ErrorDetail(refused.status(), "stderr"), "");
}

// CORE-13
TEST_P(PackIndexerTest, RefusesMissingBlobsTreesAndParents) {
  for (const std::string spec : {"main:dir0/file3", "main^{tree}", "main~1", "main:dir1"}) {
    if (git_.Line("git -C client.git rev-list --objects main ^main~5 | grep -c $(git -C client.git "
                  "rev-parse '" +
                  spec + "') || true") == "0") {
      continue;  // this seed did not touch it
    }
    const auto refused = IndexAfresh(PackedWithout(spec));
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition)) << spec;
    EXPECT_EQ(ErrorDetail(refused.status(), "oid"),
              git_.Line("git -C client.git rev-parse '" + spec + "'"))
        << spec;
    EXPECT_THAT(ListStagedPacks(git_.fs(), snapshot_), IsOkAndHolds(IsEmpty()));
  }
}

// Links of objects that no tip reaches count too. [CORE-13, A9 (a)]
TEST_P(PackIndexerTest, RefusesAHoleBelowAnUnreachableObject) {
  PackBuilder builder(GetParam());
  const std::string absent(2 * ObjectIdBytes(GetParam()), 'e');
  builder.Add(ObjectType::kTag, "object " + absent + "\ntype blob\ntag t\n\nm\n");

  const auto refused = IndexAfresh(builder.Pack());
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(ErrorDetail(refused.status(), "oid"), absent);
}

TEST_P(PackIndexerTest, RefusesDamageAndTruncationAnywhere) {
  repotxn::testing::SeededRandom random(7);
  for (int round = 0; round < 12; ++round) {
    std::string damaged = full_;
    char& byte = damaged[12 + random.Below(full_.size() - 12)];
    byte = static_cast<char>(byte ^ (1 << random.Below(8)));
    const auto refused = IndexAfresh(damaged);
    EXPECT_FALSE(refused.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status()) ||
                absl::IsFailedPrecondition(refused.status()))
        << refused.status();
    const std::string cut = full_.substr(0, random.Below(full_.size()));
    EXPECT_THAT(IndexAfresh(cut), StatusIs(absl::StatusCode::kInvalidArgument)) << cut.size();
  }
  EXPECT_THAT(IndexAfresh(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(IndexAfresh("GET / HTTP/1.1"), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Git itself takes what follows a pack silently.
TEST_P(PackIndexerTest, RefusesBytesBehindThePackHoweverReadsFall) {
  for (const size_t piece : {size_t{1} << 20, size_t{4096}, full_.size(), size_t{1000}}) {
    MakeSnapshot();
    for (const std::string& tail : {std::string("x"), std::string(100'000, 't')}) {
      const std::string bytes = full_ + tail;
      size_t at = 0;
      const auto source = [&](absl::Span<char> out) -> absl::StatusOr<size_t> {
        const size_t n = bytes.copy(out.data(), std::min(piece, out.size()), at);
        at += n;
        return n;
      };
      MakeSnapshot();
      EXPECT_THAT(PackIndexer({}).Index(git_.path() + "/" + snapshot_.text(), GetParam(), source),
                  StatusIs(absl::StatusCode::kInvalidArgument))
          << piece << " " << tail.size();
    }
  }
}

TEST_P(PackIndexerTest, RecognisesAPackOfNoObjectsAndStagesNothing) {
  ASSERT_EQ(PackedEmpty(), git_.Run("git -C client.git pack-objects -q --stdout < /dev/null"));

  ASSERT_OK_AND_ASSIGN(const auto indexed, IndexAfresh(PackedEmpty()));

  EXPECT_TRUE(indexed.is_empty);
  EXPECT_EQ(indexed.pack_name, "");
  EXPECT_THAT(ListStagedPacks(git_.fs(), snapshot_), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(IndexAfresh(PackedEmpty() + "x"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(IndexAfresh(PackedEmpty().substr(0, 20)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  std::string wrong_trailer = PackedEmpty();
  wrong_trailer.back() = static_cast<char>(wrong_trailer.back() ^ 1);
  EXPECT_THAT(IndexAfresh(wrong_trailer), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(PackIndexerTest, RefusesAPackOfTheOtherObjectFormat) {
  const bool is_sha1 = GetParam() == ObjectFormat::kSha1;
  PackBuilder builder(is_sha1 ? ObjectFormat::kSha256 : ObjectFormat::kSha1);
  builder.Add(ObjectType::kBlob, "content");

  EXPECT_THAT(IndexAfresh(builder.Pack()), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Hard case B21: stock Git takes such commits by default, and so do we; with fsck they are refused.
TEST_P(PackIndexerTest, AcceptsOldHistoryUnlessContentChecksAreOn) {
  PackBuilder builder(GetParam());
  builder.Add(ObjectType::kCommit, "tree " + EmptyTree(GetParam()).ToHex() +
                                       "\nauthor A<a@b> 1 +0000\ncommitter C <c@d> 1 +0000\n\nm\n");
  PackIndexer::Options strict;
  strict.fsck = true;
  PackIndexer::Options lenient = strict;
  lenient.fsck_severities = "missingSpaceBeforeEmail=ignore";
  PackIndexer::Options malformed = strict;
  malformed.fsck_severities = "skiplist=/etc/passwd";

  EXPECT_THAT(IndexAfresh(builder.Pack()), IsOk());
  const auto refused = IndexAfresh(builder.Pack(), strict);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ErrorDetail(refused.status(), "stderr"), HasSubstr("missingSpaceBeforeEmail"));
  EXPECT_THAT(IndexAfresh(builder.Pack(), lenient), IsOk());
  EXPECT_THAT(IndexAfresh(builder.Pack(), malformed), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(PackIndexerTest, HonoursLimitsOfSizeAndTime) {
  PackIndexer::Options exact;
  exact.input_bytes_max = static_cast<int64_t>(full_.size());
  PackIndexer::Options small = exact;
  small.input_bytes_max -= 1;
  PackIndexer::Options quick;
  quick.timeout = absl::ZeroDuration();

  EXPECT_THAT(IndexAfresh(full_, exact), IsOk());
  EXPECT_THAT(IndexAfresh(full_, small), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(IndexAfresh(full_, quick), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(PackIndexerTest, GivesBackTheErrorOfTheSource) {
  MakeSnapshot();
  int calls = 0;
  size_t at = 0;
  const auto source = [&](absl::Span<char> out) -> absl::StatusOr<size_t> {
    // The header has been read by then, and a part behind it.
    if (calls++ == 2) return absl::CancelledError("client went away");
    const size_t n = full_.copy(out.data(), std::min<size_t>(out.size(), 1000), at);
    at += n;
    return n;
  };

  EXPECT_THAT(PackIndexer({}).Index(git_.path() + "/" + snapshot_.text(), GetParam(), source),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(ListStagedPacks(git_.fs(), snapshot_), IsOkAndHolds(IsEmpty()));
}

// Parents of commits that `shallow` lists are no links.
TEST_P(PackIndexerTest, TakesShallowOfTheLiveRepositoryIntoAccount) {
  git_.Run(
      "git -c protocol.file.allow=always clone -q --bare --depth=1 -b main "
      "file://$PWD/client.git shallow.git\n"
      "test -s shallow.git/shallow\n");
  const std::string graft = git_.Read("shallow.git/shallow");
  git_.Run(
      "cd client.git && git rev-parse main > ../tips && "
      "git rev-list --objects --no-object-names main^{tree} >> ../tips");
  const std::string only_tip = git_.Run("git -C client.git pack-objects -q --stdout < tips");
  MakeSnapshot(std::nullopt);
  EXPECT_THAT(Index(only_tip), StatusIs(absl::StatusCode::kFailedPrecondition));

  MakeSnapshot(StorePath::Literal("shallow.git"));
  EXPECT_EQ(git_.Read(snapshot_.text() + "/shallow"), graft);
  EXPECT_THAT(Index(only_tip), IsOk());
}

// C162
TEST(IndexPackVerdictTest, AcceptsExactlyOnePackLine) {
  const std::string hex(40, 'a');
  const auto judge = [](int exit_code, const std::string& output, const std::string& errors = "") {
    return JudgeIndexPack({exit_code, output, errors}, ObjectFormat::kSha1, "/srv/x");
  };

  EXPECT_THAT(judge(0, "pack\t" + hex + "\n"), IsOkAndHolds("pack-" + hex));
  EXPECT_THAT(judge(1, "pack\t" + hex + "\n"), IsOkAndHolds("pack-" + hex));
  for (const std::string& output :
       {std::string(), "keep\t" + hex + "\n", "pack\t" + hex, "pack\t" + hex + "\nx",
        "pack\t" + hex + "\npack\t" + hex + "\n", "pack\t" + hex + "aa\n", "pack " + hex + "\n"}) {
    EXPECT_THAT(judge(1, output), StatusIs(absl::StatusCode::kInvalidArgument)) << output;
  }
  EXPECT_THAT(judge(2, "pack\t" + hex + "\n"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(judge(128, "", "fatal: write error: No space left on device\n"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(judge(137, ""), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(judge(128, "", "fatal: pack has 3 unresolved deltas\n"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(Formats, PackIndexerTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& suite) {
                           return suite.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256";
                         });

}  // namespace
}  // namespace repotxn::objects
