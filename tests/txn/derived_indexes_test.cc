// Goal: commit-graph, multi-pack-index and bitmap are written beside everything else, are what stock Git would have written,
// never name what is gone, and are never worth a failed read or push [hard case B17]. Judged by stock Git.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "objects/derived_files.h"
#include "tests/txn/git_store.h"

namespace repotxn::txn {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using repotxn::testing::GitStore;
using repotxn::testing::IsOk;
using repotxn::testing::RandomHistory;
using repotxn::testing::StatusIs;

class DerivedIndexesTest : public ::testing::TestWithParam<ObjectFormat> {
 protected:
  static constexpr int kPushes = 6;
  DerivedIndexesTest() : world_(GetParam()) {
    git().Write("history", RandomHistory(7, 60));
    git().Run(absl::StrCat("git init -q --bare -b main --object-format=", ObjectFormatName(GetParam()),
                           " source.git\ncd source.git && git fast-import --quiet --done < ../history\n"
                           "git rev-list --reverse --first-parent main > ../commits"));
    commits_ = absl::StrSplit(git().Run("cat commits"), '\n', absl::SkipEmpty());
    id_ = world_.Create("r");
    for (int n = 0; n < kPushes; ++n) Push(n);
  }
  testing::GitSandbox& git() { return world_.git(); }
  Store& store() { return world_.store(); }
  const std::string& CommitAt(int n) const {
    return commits_[commits_.size() * static_cast<size_t>(n + 1) / (kPushes + 5)];
  }
  // The n-th push: what its commit has beyond the one before.
  void Push(int n) {
    ASSERT_THAT(world_.Push("source.git", CommitAt(n), "r", "refs/heads/main",
                            n == 0 ? "" : absl::StrCat("^", CommitAt(n - 1))),
                IsOk());
  }
  DerivedIndexes Write(const RepositoryId& id) {
    DerivedIndexes written;
    EXPECT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(written, txn.WriteDerivedIndexes(id));
                  return absl::OkStatus();
                }),
                IsOk());
    return written;
  }
  DerivedIndexes Write() { return Write(id_); }
  PackMerge MergeAll() {
    PackMerge merge;
    EXPECT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
                  REPOTXN_ASSIGN_OR_RETURN(merge, txn.MergePacks(id_, {.all = true}));
                  return absl::OkStatus();
                }),
                IsOk());
    return merge;
  }
  // Derived files of the repository, relative to it.
  std::vector<std::string> Files(const RepositoryId& id) {
    const auto files = objects::ListDerivedFiles(git().fs(), *storage::StorePath::Parse(GitStore::Directory(id)));
    EXPECT_THAT(files, IsOk());
    return files.ok() ? *files : std::vector<std::string>();
  }
  std::vector<std::string> Files() { return Files(id_); }
  std::vector<std::string> FilesLike(const std::string& part) {
    std::vector<std::string> files = Files();
    std::erase_if(files, [&](const std::string& file) { return file.find(part) == std::string::npos; });
    return files;
  }
  std::string Absolute(const std::string& file) { return GitStore::Directory(id_) + "/" + file; }
  // Stock Git's judgement of what is there; "" when all is well.
  std::string Verify(const RepositoryId& id) {
    std::string output;
    const int code = git().TryRun("cd " + GitStore::Directory(id) +
                                      "\ngit commit-graph verify --no-progress 2>&1\n"
                                      "git multi-pack-index verify --no-progress 2>&1",
                                  &output);
    const std::string fsck = world_.Fsck(id);
    return code == 0 ? output + fsck : absl::StrCat("exit ", code, ": ", output, fsck);
  }
  std::string Verify() { return Verify(id_); }
  // Number of commits in the commit-graph.
  int64_t CommitsInGraph() {
    // Hidden from Git, the packs cannot answer.
    return std::stoll(git().Line("for f in $(cat " + Absolute("objects/info/commit-graphs/commit-graph-chain") + "); do\n" +
                                 "  f=" + Absolute("objects/info/commit-graphs/graph-") + "$f.graph\n"
                                 "  python3 -c \"import sys,struct; d=open('$f','rb').read(); n=d[6]; "
                                 "t=dict(struct.unpack('>4sQ',d[8+12*i:20+12*i]) for i in range(n)); o=t[b'OIDF']; "
                                 "print(struct.unpack('>I',d[o+1020:o+1024])[0])\"\n"
                                 "done | paste -sd+ | bc"));
  }
  std::string CommitsOf(const std::string& revision) {
    return git().Line("git -C source.git rev-list --count " + revision);
  }
  // Turns bytes in the middle of a file round.
  void Damage(const std::string& file) {
    git().Run("python3 -c \"import os; p='" + Absolute(file) +
              "'; d=bytearray(open(p,'rb').read()); n=len(d)\n"
              "for i in range(n//3, n-25): d[i]^=255\n"
              "open(p+'.new','wb').write(d); os.replace(p+'.new',p)\"");
  }
  void Overwrite(const std::string& file, const std::string& bytes) {
    git().Run("rm -f " + Absolute(file));
    git().Write(Absolute(file), bytes);
  }
  bool Exists(const std::string& oid) {
    return *(*store().Begin({}))->ObjectExists(id_, *ObjectId::FromHex(oid, GetParam()));
  }

  GitStore world_;
  std::vector<std::string> commits_;
  RepositoryId id_;
};
INSTANTIATE_TEST_SUITE_P(BothFormats, DerivedIndexesTest, ::testing::Values(ObjectFormat::kSha1, ObjectFormat::kSha256),
                         [](const auto& parameter) { return parameter.param == ObjectFormat::kSha1 ? "Sha1" : "Sha256"; });

// CG-01
TEST_P(DerivedIndexesTest, AreWrittenWhereThereAreNoneAndOnlyOnce) {
  ASSERT_THAT(Files(), IsEmpty());
  const DerivedIndexes written = Write();
  EXPECT_TRUE(written.is_changed && written.has_commit_graph && written.has_multi_pack_index && written.has_bitmap);
  EXPECT_THAT(FilesLike("graph-"), SizeIs(2));  // a layer and the chain
  EXPECT_THAT(FilesLike("multi-pack-index"), SizeIs(2));
  EXPECT_EQ(absl::StrCat(CommitsInGraph()), CommitsOf(CommitAt(kPushes - 1)));
  const DerivedIndexes again = Write();
  EXPECT_FALSE(again.is_changed);
  EXPECT_TRUE(again.has_commit_graph && again.has_multi_pack_index && again.has_bitmap);
  world_.Close();
  EXPECT_EQ(Verify(), "");
  EXPECT_EQ(git().Line("git -C " + GitStore::Directory(id_) + " rev-list --objects --count --use-bitmap-index main"),
            git().Line("git -C source.git rev-list --objects --count " + CommitAt(kPushes - 1)));
}

// CG-02
TEST_P(DerivedIndexesTest, AreNotWrittenForAnEmptyRepository) {
  const RepositoryId empty = world_.Create("empty");
  const DerivedIndexes written = Write(empty);
  EXPECT_FALSE(written.is_changed || written.has_commit_graph || written.has_multi_pack_index || written.has_bitmap);
  EXPECT_THAT(Files(empty), IsEmpty());
}

// CG-03
TEST_P(DerivedIndexesTest, ReplaceTheirPartsAndLeaveNoneThatNobodyNames) {
  Write();
  const std::vector<std::string> first = Files();
  for (int n = kPushes; n < kPushes + 4; ++n) {
    Push(n);
    EXPECT_TRUE(Write().is_changed);
    EXPECT_EQ(absl::StrCat(CommitsInGraph()), CommitsOf(CommitAt(n)));
    EXPECT_EQ(FilesLike(".bitmap").size(), 1u);
    const std::string chain = git().Read(Absolute("objects/info/commit-graphs/commit-graph-chain"));
    const std::vector<std::string> layers = absl::StrSplit(chain, '\n', absl::SkipEmpty());
    EXPECT_EQ(FilesLike(".graph").size(), layers.size());
  }
  EXPECT_NE(Files(), first);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// CG-05
TEST_P(DerivedIndexesTest, ReplaceAGraphInOneFileByAChain) {
  git().Run("git -C " + GitStore::Directory(id_) + " commit-graph write --no-progress < /dev/null");
  ASSERT_THAT(Files(), ElementsAre("objects/info/commit-graph"));
  EXPECT_TRUE(Write().has_commit_graph);
  EXPECT_THAT(FilesLike("info/commit-graph"), SizeIs(2));
  EXPECT_THAT(Files(), Not(::testing::Contains("objects/info/commit-graph")));
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// C056: a bad derived file is replaced, whichever it is and whatever is wrong with it.
TEST_P(DerivedIndexesTest, AreMadeAnewWhereTheyAreDamaged) {
  Write();
  const std::vector<std::string> sound = Files();
  for (const std::string& file : sound) {
    const std::string before = git().Read(Absolute(file));
    Damage(file);
    EXPECT_TRUE(Write().is_changed) << file;
    EXPECT_EQ(Verify(), "") << file;
    Overwrite(file, "");
    EXPECT_TRUE(Write().is_changed) << file;
    Overwrite(file, "garbage\n");
    EXPECT_TRUE(Write().is_changed) << file;
    EXPECT_EQ(Verify(), "") << file;
  }
  // A chain that names nothing, a layer without its chain.
  git().Run("rm " + Absolute("objects/info/commit-graphs/commit-graph-chain"));
  EXPECT_TRUE(Write().is_changed);
  git().Run("rm " + Absolute("objects/info/commit-graphs/") + "*.graph");
  EXPECT_TRUE(Write().is_changed);
  EXPECT_FALSE(Write().is_changed);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// B17: whatever is wrong with a derived file, objects are found and pushes go through.
TEST_P(DerivedIndexesTest, FailNoReadAndNoPushWhenTheyAreDamaged) {
  Write();
  int n = kPushes;
  for (const std::string& file : Files()) {
    const std::string before = git().Read(Absolute(file));
    Damage(file);
    EXPECT_TRUE(Exists(CommitAt(0))) << file;
    Overwrite(file, "XXXX" + before.substr(std::min<size_t>(4, before.size())));
    EXPECT_TRUE(Exists(CommitAt(1))) << file;
    Push(n++);
  }
  EXPECT_TRUE(Write().is_changed);
  EXPECT_EQ(MergeAll().packs_merged, n);
  EXPECT_TRUE(Write().is_changed);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// B17: nor does a child that reads a snapshot: it is told to do without what is damaged.
TEST_P(DerivedIndexesTest, FailNoChildThatReadsASnapshot) {
  Write();
  const std::string expected = git().Line("git -C source.git rev-list --objects --count " + CommitAt(kPushes - 1));
  const auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(snapshot, IsOk());
  const auto clone = [&] {
    std::string settings, output;
    for (const std::string& setting : (*snapshot)->GitSettings()) settings += " -c " + setting;
    const int code = git().TryRun("rm -rf clone.git\ngit clone -q --no-local --bare -u 'git" + settings + " upload-pack' " +
                                      (*snapshot)->absolute_path() + " clone.git 2>&1\n"
                                      "git -C clone.git rev-list --objects --count main",
                                  &output);
    return code == 0 ? std::string(absl::StripAsciiWhitespace(output)) : absl::StrCat("exit ", code, ": ", output);
  };
  EXPECT_THAT((*snapshot)->GitSettings(), IsEmpty());
  EXPECT_EQ(clone(), expected);
  for (const std::string& file : Files()) {
    const std::string before = git().Read(Absolute(file));
    Damage(file);
    EXPECT_EQ(clone(), expected) << file;
    Overwrite(file, "XXXX" + before.substr(std::min<size_t>(4, before.size())));
    EXPECT_EQ(clone(), expected) << file;
    Overwrite(file, before);
    EXPECT_THAT((*snapshot)->GitSettings(), IsEmpty()) << file;
  }
  // An index whose packs somebody took away.
  git().Run("mkdir away && git -C " + GitStore::Directory(id_) + " repack -q -a && cd " + GitStore::Directory(id_) +
            "/objects/pack && for p in $(ls -t *.pack | tail -n +2); do mv ${p%.pack}.* ../../../../../../../away/; done");
  EXPECT_THAT((*snapshot)->GitSettings(), Not(IsEmpty()));
  EXPECT_EQ(clone(), expected);
}

TEST_P(DerivedIndexesTest, MeetNoPushThatComesMeanwhile) {
  auto writing = store().Begin({});
  ASSERT_THAT((*writing)->WriteDerivedIndexes(id_), IsOk());
  Push(kPushes);
  EXPECT_TRUE((*writing)->Commit().committed());
  auto pushing = store().Begin({});
  ASSERT_THAT((*pushing)->UpdateRef(id_, {.name = refs::RefName::Literal("refs/heads/old"),
                                          .value = refs::RefValue::Object(*ObjectId::FromHex(CommitAt(2), GetParam()))}),
              IsOk());
  EXPECT_TRUE(Write().is_changed);
  EXPECT_TRUE((*pushing)->Commit().committed());
  writing->reset();
  pushing->reset();
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// The packs that came after the transaction began are named all the same.
TEST_P(DerivedIndexesTest, CoverWhatWasPushedAfterTheTransactionBegan) {
  auto writing = store().Begin({});
  ASSERT_THAT((*writing)->OpenRepository(GitStore::Path("r")), IsOk());
  Push(kPushes);
  ASSERT_THAT((*writing)->WriteDerivedIndexes(id_), IsOk());
  EXPECT_TRUE((*writing)->Commit().committed());
  EXPECT_EQ(absl::StrCat(CommitsInGraph()), CommitsOf(CommitAt(kPushes)));
  EXPECT_FALSE(Write().is_changed);
}

// C055, C033: of a writing and a removal of packs the second is aborted, whichever it is.
TEST_P(DerivedIndexesTest, NeverNameAPackThatIsRemovedMeanwhile) {
  for (const bool has_any_before : {false, true}) {
    auto writing = store().Begin({}), merging = store().Begin({});
    ASSERT_THAT((*writing)->WriteDerivedIndexes(id_), IsOk());
    ASSERT_THAT((*merging)->MergePacks(id_, {.all = true}), IsOk());
    CommitResult lost;
    if (has_any_before) {
      EXPECT_TRUE((*merging)->Commit().committed());
      lost = (*writing)->Commit();
    } else {
      EXPECT_TRUE((*writing)->Commit().committed());
      lost = (*merging)->Commit();
    }
    EXPECT_EQ(lost.outcome, CommitOutcome::kNotCommitted);
    EXPECT_THAT(lost.status, StatusIs(StatusCode::kAborted));
    EXPECT_EQ(Verify(), "");
    Push(kPushes + (has_any_before ? 1 : 0));
  }
  // Of two writings too.
  auto first = store().Begin({}), second = store().Begin({});
  ASSERT_THAT((*first)->WriteDerivedIndexes(id_), IsOk());
  ASSERT_THAT((*second)->WriteDerivedIndexes(id_), IsOk());
  EXPECT_TRUE((*first)->Commit().committed());
  EXPECT_THAT((*second)->Commit().status, StatusIs(StatusCode::kAborted));
  first->reset();
  second->reset();
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// C055: whoever clones meanwhile finds everything, with all that Git derives switched on; and every push goes through.
TEST_P(DerivedIndexesTest, StayWholeBesidePushesMergesAndClones) {
  Write();
  std::atomic<bool> is_over{false};
  std::vector<absl::Status> failures;  // of the thread, read when it has ended
  std::thread housekeeping([&] {
    do {
      for (const bool merges : {false, true}) {
        const CommitResult result = store().Run({}, [&](Transaction& txn) {
          return merges ? txn.MergePacks(id_, {.all = true}).status() : txn.WriteDerivedIndexes(id_).status();
        });
        if (!result.committed() && !absl::IsAborted(result.status)) failures.push_back(result.status);
        failures.push_back(store().RunBackgroundWork());
      }
    } while (!is_over.load());
  });
  for (int n = kPushes; n < kPushes + 4; ++n) {
    Push(n);
    const auto snapshot = store().ReadSnapshot(GitStore::Path("r"));
    ASSERT_THAT(snapshot, IsOk());
    git().Run("rm -rf clone.git && git clone -q --no-local --bare " + (*snapshot)->absolute_path() + " clone.git");
    EXPECT_EQ(git().Line("git -C clone.git rev-list --objects --count main"),
              git().Line("git -C source.git rev-list --objects --count " + CommitAt(n)));
  }
  is_over.store(true);
  housekeeping.join();
  for (const absl::Status& failure : failures) EXPECT_THAT(failure, IsOk());
  EXPECT_TRUE(Write().has_commit_graph);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

// C055: the index goes in the entry that removes what it names, and comes back with the next writing.
TEST_P(DerivedIndexesTest, GoWithTheFirstOfTheirPacks) {
  Write();
  auto older = store().ReadSnapshot(GitStore::Path("r"));
  ASSERT_THAT(older, IsOk());
  EXPECT_EQ(MergeAll().packs_merged, kPushes);
  EXPECT_THAT(FilesLike("multi-pack-index"), IsEmpty());
  EXPECT_THAT(FilesLike(".graph"), Not(IsEmpty()));  // no object is gone
  EXPECT_EQ(git().Line("git -C " + (*older)->absolute_path() + " rev-list --objects main --count"),
            git().Line("git -C source.git rev-list --objects --count " + CommitAt(kPushes - 1)));
  older->reset();
  Push(kPushes);
  EXPECT_TRUE(Write().has_bitmap);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

TEST_P(DerivedIndexesTest, NameKeptPacksWhichAMergeLeavesOut) {
  const std::string pack = git().Line("cd " + GitStore::Directory(id_) + "/objects/pack && ls *.pack | head -n 1");
  const std::string keep = Absolute("objects/pack/" + pack.substr(0, pack.size() - 5) + ".keep");
  git().Run("touch " + keep);
  EXPECT_TRUE(Write().has_bitmap);
  const PackMerge merge = MergeAll();
  EXPECT_EQ(merge.packs_before, kPushes);
  EXPECT_EQ(merge.packs_merged, kPushes - 1);
  EXPECT_TRUE(Write().has_bitmap);
  world_.Close();
  EXPECT_EQ(git().Line("ls " + Absolute("objects/pack/") + "*.pack | wc -l"), "2");
  EXPECT_EQ(Verify(), "");
}

// One graph and one bitmap in a network of forks: Git reads the pool's through the link.
TEST_P(DerivedIndexesTest, OfAPoolServeItsMembers) {
  EXPECT_TRUE(Write().has_commit_graph);
  RepositoryId pool;
  ASSERT_THAT(world_.Do([&](Transaction& txn) -> absl::Status {
                REPOTXN_ASSIGN_OR_RETURN(pool, txn.CreatePool(id_, GitStore::Path("pool")));
                return absl::OkStatus();
              }),
              IsOk());
  Push(kPushes);
  const DerivedIndexes of_member = Write();
  EXPECT_TRUE(of_member.is_changed && of_member.has_multi_pack_index);
  EXPECT_FALSE(of_member.has_commit_graph || of_member.has_bitmap);
  EXPECT_THAT(FilesLike("graph"), IsEmpty());
  EXPECT_THAT(FilesLike(".bitmap"), IsEmpty());
  EXPECT_TRUE(Write(pool).has_commit_graph);
  EXPECT_FALSE(Write(pool).is_changed);
  world_.Close();
  EXPECT_EQ(Verify(), "");
  EXPECT_EQ(Verify(pool), "");
}

TEST_P(DerivedIndexesTest, AreNoGraphAndNoBitmapOfAShallowRepository) {
  Write();
  ASSERT_THAT(world_.Do([&](Transaction& txn) { return txn.PutFile(id_, "shallow", {CommitAt(0) + "\n", 0644}); }),
              IsOk());
  ASSERT_THAT(store().RunBackgroundWork(), IsOk());
  const DerivedIndexes written = Write();
  EXPECT_TRUE(written.is_changed && written.has_multi_pack_index);
  EXPECT_FALSE(written.has_commit_graph || written.has_bitmap);
  EXPECT_THAT(Files(), ElementsAre("objects/pack/multi-pack-index"));
}

// What a crash takes of them is there again after it.
TEST_P(DerivedIndexesTest, AreLinkedAgainByRecovery) {
  ASSERT_THAT(store().Checkpoint(), IsOk());
  Write();
  Push(kPushes);
  Write();
  const std::vector<std::string> files = Files();
  std::string bytes;
  for (const std::string& file : files) bytes += git().Read(Absolute(file));
  git().Run("cp -a store copy && rm -f copy/LOCK");
  world_.Close();
  git().Run("rm -rf store && mv copy store && rm -rf " + Absolute("objects/info/commit-graphs") + " " +
            Absolute("objects/pack/multi-pack-index") + "*");
  world_.Open();
  EXPECT_EQ(Files(), files);
  std::string now;
  for (const std::string& file : Files()) now += git().Read(Absolute(file));
  EXPECT_EQ(now, bytes);
  EXPECT_FALSE(Write().is_changed);
  world_.Close();
  EXPECT_EQ(Verify(), "");
}

}  // namespace
}  // namespace repotxn::txn
