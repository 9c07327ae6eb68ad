#include "objects/borrowed_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/object_set.h"
#include "objects/error_detail.h"
#include "objects/quarantine.h"
#include "tests/objects/git_sandbox.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::GitSandbox;
using repotxn::testing::IsOk;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::HasSubstr;

// Goal: a repository that leaves a pool keeps all that any of its objects names, and copies nothing
// else, in both object formats. Method: a pool with a history, and members made by stock Git; after
// the pack is put beside the member's own and the alternates line is gone, stock Git walks from
// every object of the member.
class BorrowedObjectsTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  void SetUp() override {
    format_name_ = GetParam() == ObjectFormat::kSha1 ? "sha1" : "sha256";
    git_.Write("history", RandomHistory(33, 40));
    Init("pool");
    git_.Run("cd pool.git && git fast-import --quiet --done < ../history && git repack -qadf");
    Init("member");
    Borrow("member", {"pool"});
  }

  void Init(const std::string& name) {
    git_.Run("git init -q --bare -b main --object-format=" + format_name_ + " " + name + ".git");
  }
  void Borrow(const std::string& name, const std::vector<std::string>& pools) {
    std::string lines;
    for (const std::string& pool : pools) lines += "../../" + pool + ".git/objects\n";
    git_.Write(name + ".git/objects/info/alternates", lines);
  }
  // Makes a commit in `name` whose parent and tree are those of `of` in the pool; returns its id.
  std::string CommitOn(const std::string& name, const std::string& of) {
    const std::string base = git_.Line("git -C pool.git rev-parse " + of);
    return git_.Line("cd " + name + ".git && echo own | git commit-tree -p " + base + " '" + base +
                     "^{tree}'");
  }
  BorrowedObjects Request(const std::string& name, const std::vector<std::string>& still = {}) {
    BorrowedObjects request;
    request.snapshot = StorePath::Literal("snapshot" + std::to_string(++snapshots_));
    request.objects = StorePath::Literal(name + ".git/objects");
    for (const std::string& pool : still) {
      request.still_borrowed.push_back(StorePath::Literal(pool + ".git/objects"));
    }
    ObjectSnapshotOptions options;
    options.format = GetParam();
    options.live_repository = StorePath::Literal(name + ".git");
    EXPECT_THAT(MakeObjectSnapshot(git_.fs(), request.snapshot, options), IsOk());
    return request;
  }
  ObjectPackingOptions Options() {
    ObjectPackingOptions options;
    options.format = GetParam();
    return options;
  }
  absl::StatusOr<PackedObjects> Pack(const BorrowedObjects& request) {
    return PackBorrowedObjects(git_.fs(), request, Options());
  }
  // Everything below the snapshot.
  std::string Tree(const BorrowedObjects& request) {
    return git_.Run("cd " + request.snapshot.text() + " && find . | sort");
  }
  // What unlinking does with the pack: beside the member's own, then the new alternates.
  void Apply(const std::string& name, const BorrowedObjects& request,
             const std::vector<std::string>& still = {}) {
    git_.Run("cp -n " + request.snapshot.text() + "/objects/pack/pack-* " + name +
             ".git/objects/pack/ 2>/dev/null || true");
    Borrow(name, still);
  }
  // Number of the repository's own objects, each counted once.
  int OwnObjects(const std::string& name) {
    return std::stoi(
        git_.Line("cd " + name +
                  ".git && mv objects/info/alternates ../kept-lines && "
                  "git cat-file --batch-all-objects --unordered --batch-check | wc -l; "
                  "mv ../kept-lines objects/info/alternates"));
  }
  // Walks from every object that the repository has; fails on a hole anywhere.
  void ExpectClosed(const std::string& name) {
    std::string output;
    EXPECT_EQ(
        git_.TryRun("cd " + name +
                        ".git && git cat-file --batch-all-objects --unordered "
                        "--batch-check='%(objectname)' > ../all && git -c core.commitGraph=false "
                        "rev-list --objects --stdin --quiet < ../all && git fsck --full "
                        "--no-progress --no-dangling",
                    &output),
        0)
        << git_.Read("errors");
  }

  GitSandbox git_;
  std::string format_name_;
  int snapshots_ = 0;
};

// Field case: unlink from a pool that was deleted afterwards must lose nothing.
TEST_P(BorrowedObjectsTest, BringsInAllThatReachableObjectsName) {
  const std::string tip = CommitOn("member", "main");
  git_.Run("git -C member.git update-ref refs/heads/main " + tip);
  const int own = OwnObjects("member");
  const int needed = std::stoi(
      git_.Line("git -C member.git rev-list --objects --no-object-names main | sort -u | wc -l"));
  const BorrowedObjects request = Request("member");

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  EXPECT_EQ(packed.objects, needed - own);
  Apply("member", request);
  git_.Run("mv pool.git pool.gone");
  ExpectClosed("member");
  EXPECT_EQ(OwnObjects("member"), needed);
  // .rev comes along.
  EXPECT_TRUE(
      *storage::Exists(git_.fs(), request.snapshot / "objects/pack" / (packed.pack_name + ".rev")));
}

// Hard case A9 (c): an unreachable own object names pool objects that no ref of the member reaches.
// C062
TEST_P(BorrowedObjectsTest, BringsInWhatUnreachableObjectsName) {
  const std::string stray = CommitOn("member", "main~3");
  const std::string blob = git_.Line("git -C pool.git rev-parse main:drifting");
  const std::string tree =
      git_.Line("cd member.git && printf '100644 blob " + blob + "\\tfile\\n' | git mktree");
  const std::string tag =
      git_.Line("cd member.git && printf 'object " + blob +
                "\\ntype blob\\ntag t\\ntagger C <c@example.org> 1 +0000\\n\\nx\\n' | "
                "git hash-object -t tag -w --stdin");
  git_.Run("cd member.git && git repack -qadl 2>/dev/null; git rev-list --objects --no-walk " +
           stray + " >/dev/null");
  const BorrowedObjects request = Request("member");

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  EXPECT_NE(packed.pack_name, "");
  Apply("member", request);
  git_.Run("mv pool.git pool.gone");
  ExpectClosed("member");
  git_.Run("cd member.git && git rev-list --objects --quiet " + stray + " " + tree + " " + tag);
  // What neither names, stayed behind: the newest commit of the pool.
  std::string output;
  const std::string newest = git_.Line("git -C pool.gone rev-parse main");
  EXPECT_NE(git_.TryRun("git -C member.git cat-file -e " + newest, &output), 0);
}

TEST_P(BorrowedObjectsTest, BringsInExtraTipsOfAMemberWithoutOwnObjects) {
  BorrowedObjects request = Request("member");
  request.tips = {git_.Oid("git -C pool.git rev-parse main~7")};

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  EXPECT_EQ(packed.objects, std::stoi(git_.Line("git -C pool.git rev-list --objects main~7 | "
                                                "cut -d' ' -f1 | sort -u | wc -l")));
  Apply("member", request);
  git_.Run("mv pool.git pool.gone && git -C member.git rev-list --objects --quiet " +
           request.tips[0].ToHex());
}

TEST_P(BorrowedObjectsTest, MakesNoPackWhenNothingIsBorrowed) {
  git_.Run(
      "git -C member.git update-ref refs/heads/main "
      "$(cd member.git && git commit-tree -m own $(git mktree </dev/null))");
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  EXPECT_EQ(packed, PackedObjects());
  EXPECT_EQ(Tree(request), before);
}

// Chains: member -> middle -> pool, and member -> other. Leaving middle keeps what other lends.
TEST_P(BorrowedObjectsTest, CopiesOnlyWhatNoOtherPoolLends) {
  Init("middle");
  Borrow("middle", {"pool"});
  const std::string middle_tip = CommitOn("middle", "main");
  Init("other");
  git_.Run("git -C pool.git push -q ../other.git main~5:refs/heads/main");
  Borrow("member", {"middle", "other"});
  const std::string tip = git_.Line("cd member.git && echo own | git commit-tree -p " + middle_tip +
                                    " '" + middle_tip + "^{tree}'");
  git_.Run("git -C member.git update-ref refs/heads/main " + tip);
  const BorrowedObjects request = Request("member", {"other"});

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  const int missing = std::stoi(git_.Line(
      "git -C member.git rev-list --objects main | cut -d' ' -f1 | sort -u > needed && git -C "
      "other.git cat-file --batch-all-objects --batch-check='%(objectname)' | sort > lent && "
      "comm -23 needed lent | wc -l"));
  EXPECT_EQ(packed.objects, missing - OwnObjects("member"));
  Apply("member", request, {"other"});
  git_.Run("mv middle.git middle.gone && mv pool.git pool.gone");
  ExpectClosed("member");
}

// The pool that is left is still reached through another one: nothing to copy but what only the
// dropped link gave.
TEST_P(BorrowedObjectsTest, CopiesNothingWhenTheDroppedLinkWasAShortCut) {
  Init("middle");
  Borrow("middle", {"pool"});
  Borrow("member", {"pool", "middle"});
  git_.Run("git -C member.git update-ref refs/heads/main " + CommitOn("member", "main"));
  const BorrowedObjects request = Request("member", {"middle"});

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  EXPECT_EQ(packed, PackedObjects());
}

// A condemned pack answers nothing any more, so its objects are borrowed like others (hard case
// A4).
TEST_P(BorrowedObjectsTest, DoesNotCountCondemnedPacksAsOwn) {
  git_.Run("cp pool.git/objects/pack/pack-*.* member.git/objects/pack/");
  git_.Run("git -C member.git update-ref refs/heads/main " + CommitOn("member", "main"));
  const BorrowedObjects request = Request("member");
  ObjectPackingOptions options = Options();

  ASSERT_OK_AND_ASSIGN(const PackedObjects with_pack,
                       PackBorrowedObjects(git_.fs(), request, options));
  options.is_condemned = [](const StorePath& path) {
    return path.IsWithin(StorePath::Literal("member.git/objects/pack"));
  };
  ASSERT_OK_AND_ASSIGN(const PackedObjects without,
                       PackBorrowedObjects(git_.fs(), request, options));

  EXPECT_EQ(with_pack, PackedObjects());
  EXPECT_EQ(without.objects,
            std::stoi(git_.Line("git -C pool.git rev-list --objects main | cut -d' ' -f1 | "
                                "sort -u | wc -l")));
}

// In a shallow repository the parents of the commits listed are no links.
TEST_P(BorrowedObjectsTest, DoesNotFollowParentsOfShallowCommits) {
  const std::string tip = CommitOn("member", "main");
  git_.Run("git -C member.git update-ref refs/heads/main " + tip);
  git_.Write("member.git/shallow", tip + "\n");
  const BorrowedObjects request = Request("member");

  ASSERT_OK_AND_ASSIGN(const PackedObjects packed, Pack(request));

  // The trees and blobs of one commit.
  EXPECT_EQ(packed.objects,
            std::stoi(git_.Line("git -C pool.git rev-list --objects "
                                "'main^{tree}' | cut -d' ' -f1 | sort -u | wc -l")));
  Apply("member", request);
  git_.Run("mv pool.git pool.gone");
  ExpectClosed("member");
}

TEST_P(BorrowedObjectsTest, RefusesADamagedOwnObjectAndWritesNothing) {
  const std::string tip = CommitOn("member", "main");
  git_.Run(
      "cd member.git/objects && f=$(find ?? -type f) && chmod u+w $f && "
      "printf 'garbage' > $f");
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);

  const auto packed = Pack(request);

  EXPECT_THAT(packed, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Tree(request), before);
}

TEST_P(BorrowedObjectsTest, RefusesAMissingBorrowedObjectAndWritesNothing) {
  git_.Run("git -C member.git update-ref refs/heads/main " + CommitOn("member", "main"));
  const std::string lost = git_.Line("git -C pool.git rev-parse main~20:drifting");
  // The pool without one blob, by way of loose objects.
  git_.Run(
      "cd pool.git && mv objects/pack/*.pack ../pack && rm objects/pack/* && "
      "git unpack-objects -q < ../pack && rm objects/$(echo " +
      lost + " | sed 's,^..,&/,')");
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);

  const auto packed = Pack(request);

  EXPECT_THAT(packed, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ErrorDetail(packed.status(), "stderr"), HasSubstr(lost));
  EXPECT_EQ(Tree(request), before);
}

// Sound to look at, but not what its name says: the pack is hashed anew.
TEST_P(BorrowedObjectsTest, RefusesABorrowedObjectWithTheContentOfAnother) {
  git_.Run("git -C member.git update-ref refs/heads/main " + CommitOn("member", "main"));
  const std::string spoilt = git_.Line("git -C pool.git rev-parse main~20:drifting");
  git_.Run(
      "cd pool.git && mv objects/pack/*.pack ../pack && rm objects/pack/* && "
      "git unpack-objects -q < ../pack && o=$(echo other | git hash-object -w --stdin) && "
      "path() { echo objects/$(echo $1 | sed 's,^..,&/,'); } && mv -f $(path $o) $(path " +
      spoilt + ")");
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);

  const auto packed = Pack(request);

  EXPECT_THAT(packed, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Tree(request), before);
}

// ALT-04
TEST_P(BorrowedObjectsTest, PacksAllLooseObjects) {
  git_.Run(
      "cd pool.git && mv objects/pack/*.pack ../pack && rm objects/pack/* && "
      "git unpack-objects -q < ../pack && git repack -q && git prune-packed && "
      "echo loose | git hash-object -w --stdin && "
      "git update-ref refs/heads/x $(git commit-tree -p main -m x 'main~4^{tree}')");
  const int loose = std::stoi(git_.Line("cd pool.git/objects && find ?? -type f | wc -l"));
  ASSERT_GT(loose, 1);
  const BorrowedObjects request = Request("pool");

  ASSERT_OK_AND_ASSIGN(const std::vector<ObjectId> ids,
                       ListLooseObjects(git_.fs(), request.objects, GetParam()));
  ASSERT_OK_AND_ASSIGN(const PackedObjects packed,
                       PackObjects(git_.fs(), request.snapshot, ids, Options()));

  EXPECT_EQ(packed.objects, loose);
  git_.Run("mv " + request.snapshot.text() +
           "/objects/pack/pack-* pool.git/objects/pack/ && "
           "rm -r pool.git/objects/[0-9a-f][0-9a-f]");
  ExpectClosed("pool");
}

TEST_P(BorrowedObjectsTest, RefusesADamagedLooseObject) {
  CommitOn("member", "main");
  git_.Run(
      "cd member.git/objects && f=$(find ?? -type f) && chmod u+w $f && "
      "printf 'garbage' > $f");
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);

  ASSERT_OK_AND_ASSIGN(const std::vector<ObjectId> ids,
                       ListLooseObjects(git_.fs(), request.objects, GetParam()));
  EXPECT_THAT(PackObjects(git_.fs(), request.snapshot, ids, Options()),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(Tree(request), before);
}

TEST_P(BorrowedObjectsTest, EndsTheChildrenWhenTheTimeIsOver) {
  git_.Run("git -C member.git update-ref refs/heads/main " + CommitOn("member", "main"));
  const BorrowedObjects request = Request("member");
  const std::string before = Tree(request);
  ObjectPackingOptions options = Options();
  options.timeout = absl::ZeroDuration();

  EXPECT_THAT(PackBorrowedObjects(git_.fs(), request, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(Tree(request), before);
}

INSTANTIATE_TEST_SUITE_P(Formats, BorrowedObjectsTest,
                         ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& format) {
                           return std::string(ObjectFormatName(format.param));
                         });

}  // namespace
}  // namespace repotxn::objects
