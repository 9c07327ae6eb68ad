#include "txn/adoption.h"

#include <algorithm>
#include <map>

#include "tests/objects/git_sandbox.h"
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using storage::StorePath;
using txn::AdoptionFinding;
using txn::AdoptionReport;
using txn::AdoptOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kConfig[] = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";

// Content of every file below `directory`, by its path in it; symlinks by their targets.
std::map<std::string, std::string> Files(storage::FileSystem& fs, const StorePath& directory) {
  std::map<std::string, std::string> files;
  std::vector<StorePath> waiting = {directory};
  while (!waiting.empty()) {
    const StorePath at = waiting.back();
    waiting.pop_back();
    const auto entries = fs.List(at);
    if (!entries.ok()) continue;
    for (const storage::DirectoryEntry& entry : *entries) {
      const StorePath path = at / entry.name;
      if (entry.kind == storage::FileKind::kDirectory) {
        waiting.push_back(path);
      } else {
        files[path.text().substr(directory.text().size() + 1)] = storage::ReadFile(fs, path).value_or("?");
      }
    }
  }
  return files;
}

// Goal: whatever the moment of a crash, a repository is afterwards untouched at its place, or adopted whole. Method: an
// in-memory disk with a bare repository as Git leaves it, junk included, cloned before every mutating call.
class AdoptionCrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    Put("HEAD", "ref: refs/heads/main\n");
    Put("config", kConfig);
    Put("refs/heads/main", World::At(1).oid().ToHex() + "\n");
    Put("packed-refs", "# pack-refs with: peeled fully-peeled sorted \n" + World::At(2).oid().ToHex() +
                           " refs/heads/side\n");
    for (int n : {1, 2}) PutObject(MakeCommit(n));
    // Its parent is nowhere, and no ref leads to it.
    open_ = MakeLooseObject("commit", "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent " +
                                          std::string(40, '7') +
                                          "\nauthor A <a@example.org> 1 +0000\ncommitter A <a@example.org> 1 "
                                          "+0000\n\nx\n");
    PutObject(open_);
    Put("logs/HEAD", "a reflog\n");
    Put("FETCH_HEAD", "");
    Put("refs/heads/main.lock", "");
    Put("objects/pack/tmp_pack_x", "half a pack");
    Put("hooks/update", "#!/bin/sh\n");
    ASSERT_THAT(world_.fs().SyncAll(), IsOk());
    options_.lock_age_min = absl::ZeroDuration();
  }
  void Put(const std::string& path, const std::string& content) {
    const StorePath file = kSource / path;
    ASSERT_THAT(storage::MakeDirectories(world_.fs(), file.Parent()), IsOk());
    ASSERT_THAT(storage::WriteFile(world_.fs(), file, content), IsOk());
  }
  void PutObject(const LooseObject& object) {
    const std::string hex = object.oid.ToHex();
    Put("objects/" + hex.substr(0, 2) + "/" + hex.substr(2), object.file);
  }
  std::vector<std::string> SetAsidePaths() {
    const std::string hex = open_.oid.ToHex();
    std::vector<std::string> paths = {"FETCH_HEAD", "logs", "objects/" + hex.substr(0, 2) + "/" + hex.substr(2),
                                      "objects/pack/tmp_pack_x", "refs/heads/main.lock"};
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  bool IsSetAside(const std::string& file) {
    for (const std::string& path : SetAsidePaths()) {
      if (file == path || absl::StartsWith(file, path + "/")) return true;
    }
    return false;
  }

  const StorePath kSource = StorePath::Literal("incoming/a.git");
  World world_;
  LooseObject open_;
  AdoptOptions options_;
};

TEST_F(AdoptionCrashTest, TakesTheDirectoryOverAndSetsJunkAside) {
  const auto before = Files(world_.fs(), kSource);

  ASSERT_OK_AND_ASSIGN(const AdoptionReport report,
                       world_.store().Adopt("incoming/a.git", Path("g/a"), options_));

  EXPECT_TRUE(report.is_adopted());
  EXPECT_EQ(report.refs, 2);
  EXPECT_EQ(report.objects, 3);
  EXPECT_THAT(report.open_objects, ElementsAre(open_.oid));
  std::vector<std::string> set_aside;
  for (const AdoptionFinding& finding : report.set_aside) set_aside.push_back(finding.path);
  EXPECT_EQ(set_aside, SetAsidePaths());
  EXPECT_EQ(world_.Refs(report.id), "HEAD ref: refs/heads/main\nrefs/heads/main c1\nrefs/heads/side c2\n");
  EXPECT_THAT(world_.fs().Stat(kSource), StatusIs(absl::StatusCode::kNotFound));
  std::map<std::string, std::string> kept, moved;
  for (const auto& [path, content] : before) (IsSetAside(path) ? moved : kept)[path] = content;
  EXPECT_EQ(Files(world_.fs(), txn::layout::RepositoryDirectory(report.id)), kept);
  EXPECT_EQ(Files(world_.fs(), StorePath::Literal(report.trash)), moved);
  // It is a repository like any other.
  EXPECT_TRUE(world_.Set(report.id, Branch("main"), World::At(2)).committed());
  ASSERT_THAT(world_.Reopen(), IsOk());
  EXPECT_EQ(world_.Refs(report.id), "HEAD ref: refs/heads/main\nrefs/heads/main c2\nrefs/heads/side c2\n");
}

TEST_F(AdoptionCrashTest, DryRunChangesNothing) {
  options_.dry_run = true;
  const std::string before = world_.fs().DumpTree();
  const wal::Lsn committed = world_.store().committed_lsn();

  ASSERT_OK_AND_ASSIGN(const AdoptionReport report, world_.store().Adopt("incoming/a.git", Path("a"), options_));

  EXPECT_FALSE(report.is_adopted());
  EXPECT_THAT(report.refusals, IsEmpty());
  EXPECT_THAT(report.set_aside, SizeIs(5));
  EXPECT_EQ(world_.fs().DumpTree(), before);
  EXPECT_EQ(world_.store().committed_lsn(), committed);
}

TEST_F(AdoptionCrashTest, IsUntouchedOrAdoptedWholeAfterACrashAtAnyCall) {
  const auto before = Files(world_.fs(), kSource);
  std::map<std::string, std::string> kept, moved;
  for (const auto& [path, content] : before) (IsSetAside(path) ? moved : kept)[path] = content;
  CrashSweep sweep(&world_.fs());
  sweep.Record([&] {
    ASSERT_THAT(world_.store().Adopt("incoming/a.git", Path("g/a"), options_), IsOk());
    sweep.NoteAcknowledged();
  });

  int untouched = 0, adopted = 0;
  for (CrashSweep::Image& image : sweep.images()) {
    SCOPED_TRACE("crash before " + image.when);
    World after(7);
    after.owned_fs() = std::move(image.fs);
    ASSERT_THAT(after.Open(), IsOk());
    const auto listed = after.store().ListRepositories("", "", 10);
    ASSERT_THAT(listed, IsOk());
    if (listed->empty()) {
      ASSERT_FALSE(image.is_acknowledged);
      ASSERT_EQ(Files(after.fs(), kSource), before);
      ++untouched;
      continue;
    }
    const RepositoryId id = (*listed)[0].id;
    ASSERT_EQ(after.Refs(id), "HEAD ref: refs/heads/main\nrefs/heads/main c1\nrefs/heads/side c2\n");
    ASSERT_EQ(Files(after.fs(), txn::layout::RepositoryDirectory(id)), kept);
    ASSERT_EQ(Files(after.fs(), txn::layout::AdoptionTrash(id)), moved);
    ASSERT_THAT(after.fs().Stat(kSource), StatusIs(absl::StatusCode::kNotFound));
    ++adopted;
  }
  EXPECT_GT(untouched, 0);
  EXPECT_GT(adopted, 0);
}

TEST_F(AdoptionCrashTest, GivesTheDirectoryBackAsItWas) {
  const auto before = Files(world_.fs(), kSource);
  ASSERT_OK_AND_ASSIGN(const AdoptionReport report, world_.store().Adopt("incoming/a.git", Path("a"), options_));

  CrashSweep sweep(&world_.fs());
  sweep.Record([&] {
    ASSERT_THAT(world_.store().Unadopt(report.id, "incoming/back.git"), IsOk());
    sweep.NoteAcknowledged();
  });

  const StorePath back = StorePath::Literal("incoming/back.git");
  EXPECT_EQ(Files(world_.fs(), back), before);
  for (CrashSweep::Image& image : sweep.images()) {
    SCOPED_TRACE("crash before " + image.when);
    World after(7);
    after.owned_fs() = std::move(image.fs);
    ASSERT_THAT(after.Open(), IsOk());
    const StorePath directory = txn::layout::RepositoryDirectory(report.id);
    const bool is_given_back = after.fs().Stat(back).ok();
    ASSERT_NE(is_given_back, after.fs().Stat(directory).ok());
    ASSERT_TRUE(is_given_back || !image.is_acknowledged);
    if (is_given_back) {
      ASSERT_EQ(Files(after.fs(), back), before);
    }
    // Started again, it comes to its end.
    if (!is_given_back) {
      ASSERT_THAT(after.store().Unadopt(report.id, "incoming/back.git"), IsOk());
      ASSERT_EQ(Files(after.fs(), back), before);
    }
  }
}

TEST_F(AdoptionCrashTest, RefusesWhatLeadsToAMissingObject) {
  Put("refs/heads/broken", open_.oid.ToHex() + "\n");
  Put("refs/heads/lost", std::string(40, '3') + "\n");
  const std::string before = world_.fs().DumpTree();

  options_.dry_run = true;
  ASSERT_OK_AND_ASSIGN(const AdoptionReport report, world_.store().Adopt("incoming/a.git", Path("a"), options_));
  EXPECT_THAT(report.refusals,
              ElementsAre(AdoptionFinding{"refs/heads/broken", "leads to an object that is missing"},
                          AdoptionFinding{"refs/heads/lost", "names an object that is missing"}));
  options_.dry_run = false;
  EXPECT_THAT(world_.store().Adopt("incoming/a.git", Path("a"), options_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(world_.fs().DumpTree(), before);
}

TEST_F(AdoptionCrashTest, RefusesPathsThatAreTakenAndTheStoresOwnDirectories) {
  world_.Create("taken");

  EXPECT_THAT(world_.store().Adopt("incoming/a.git", Path("taken"), options_),
              StatusIs(absl::StatusCode::kAlreadyExists));
  for (const char* ours : {"log", "repositories", "repositories/@id/aa", "", "staging/x"}) {
    EXPECT_THAT(world_.store().Adopt(ours, Path("a"), options_), StatusIs(absl::StatusCode::kInvalidArgument)) << ours;
  }
  EXPECT_THAT(world_.store().Adopt("nowhere", Path("a"), options_), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(world_.fs().Stat(kSource).ok());
}

// Goal: repositories that stock Git made, with packs, pools and holes, are taken over so that stock Git finds nothing
// amiss afterwards. Method: a store on a real disk.
class GitAdoptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage::SetLogLevel(storage::LogLevel::kNone);
    txn::StoreOptions options;
    options.create_if_missing = true;
    options.background_thread = false;
    auto store = txn::Store::Open(git_.path() + "/store", options);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    git_.Write("history", RandomHistory(3, 30));
    git_.Run("mkdir store/incoming && cd store/incoming && git init -q --bare -b main a.git && cd a.git && "
             "git fast-import --quiet --done < ../../../history && git repack -qad");
  }
  std::string DirectoryOf(const AdoptionReport& report) {
    return "store/" + txn::layout::RepositoryDirectory(report.id).text();
  }

  GitSandbox git_;
  std::unique_ptr<txn::Store> store_;
};

// Hard case A9 (a): a hole below an unreachable object in a pack, which git fsck accepts.
TEST_F(GitAdoptionTest, SplitsAPackThatHoldsAnObjectWithAMissingChild) {
  git_.Run("cd store/incoming/a.git && b=$(echo lost | git hash-object -w --stdin) && "
           "t=$(printf '100644 blob %s\\tfile\\n' $b | git mktree) && c=$(echo x | git commit-tree $t) && "
           "git cat-file --batch-all-objects --batch-check='%(objectname)' | grep -v $b > ../../../ids && "
           "mkdir ../../../new && git pack-objects -q ../../../new/pack < ../../../ids >/dev/null && "
           "rm -rf objects/pack objects/[0-9a-f][0-9a-f] && mv ../../../new objects/pack && "
           "git commit-graph write --reachable 2>/dev/null && git fsck --full --no-progress");
  const std::string refs = git_.Run("git -C store/incoming/a.git for-each-ref");

  ASSERT_OK_AND_ASSIGN(const AdoptionReport report, store_->Adopt("incoming/a.git", Path("a"), {}));

  EXPECT_THAT(report.missing_links, SizeIs(1));
  EXPECT_THAT(report.open_objects, SizeIs(2));
  git_.Run("cd " + DirectoryOf(report) +
           " && git cat-file --batch-all-objects --batch-check='%(objectname)' > ../all && "
           "git rev-list --objects --stdin --quiet < ../all && git fsck --full --no-progress");
  EXPECT_EQ(git_.Run("git -C " + DirectoryOf(report) + " for-each-ref"), refs);
}

// Pools come along: one transaction, relative links, nothing dangling.
TEST_F(GitAdoptionTest, AdoptsATreeWhoseRepositoriesBorrowFromOneAnother) {
  git_.Run("cd store/incoming && mkdir g && git init -q --bare -b main g/member.git && "
           "echo ../../../a.git/objects > g/member.git/objects/info/alternates && cd g/member.git && "
           "git update-ref refs/heads/main $(echo own | git commit-tree -p $(git -C ../../a.git rev-parse main) "
           "$(git -C ../../a.git rev-parse 'main^{tree}'))");

  AdoptOptions dry;
  dry.dry_run = true;
  ASSERT_OK_AND_ASSIGN(const AdoptionReport alone, store_->Adopt("incoming/g/member.git", Path("m"), dry));
  ASSERT_THAT(alone.refusals, SizeIs(1));
  EXPECT_THAT(alone.refusals[0].reason, HasSubstr("adopt both at once"));

  ASSERT_OK_AND_ASSIGN(const auto reports, store_->AdoptTree("incoming", "team", {}));

  ASSERT_THAT(reports, SizeIs(2));
  for (const AdoptionReport& report : reports) EXPECT_TRUE(report.is_adopted()) << report.source;
  EXPECT_EQ(reports[0].lsn, reports[1].lsn);
  const AdoptionReport& member = reports[0].path == "team/a" ? reports[1] : reports[0];
  EXPECT_EQ(member.path, "team/g/member");
  git_.Run("cd " + DirectoryOf(member) + " && git fsck --full --no-progress && git rev-list --objects --quiet main");
  EXPECT_THAT(git_.Read(DirectoryOf(member) + "/objects/info/alternates"), HasSubstr("../../../"));
}

// An object whose content is not what its name says would be trusted by every later link check.
TEST_F(GitAdoptionTest, RefusesDamagedContent) {
  git_.Run("cd store/incoming/a.git && a=$(echo one | git hash-object -w --stdin) && "
           "b=$(echo two | git hash-object -w --stdin) && path() { echo objects/$(echo $1 | sed 's,^..,&/,'); } && "
           "mv -f $(path $a) $(path $b)");

  const auto report = store_->Adopt("incoming/a.git", Path("a"), {});

  EXPECT_THAT(report, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("git fsck"));
  EXPECT_TRUE(git_.Line("ls store/incoming") == "a.git");
}

}  // namespace
}  // namespace repotxn::testing
