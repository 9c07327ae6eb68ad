#include "txn/adoption_plan.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace repotxn::txn {
namespace {

using storage::FileKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// Goal: each thing that stock Git, or a crash of it, leaves in a bare repository gets its verdict. Method: listings by
// hand.
class AdoptionPlanTest : public ::testing::Test {
 protected:
  AdoptionPlanTest() {
    Directory("objects");
    Directory("refs");
    File("HEAD");
    File("config");
    listing_.head = "ref: refs/heads/trunk\n";
    listing_.config = "[core]\n\tbare = true\n";
  }
  void Add(const std::string& path, FileKind kind, absl::Duration age, int64_t size) {
    listing_.entries.push_back({path, kind, size, kNow - age});
  }
  void File(const std::string& path, absl::Duration age = absl::Hours(48), int64_t size = 1) {
    Add(path, FileKind::kRegular, age, size);
  }
  void Directory(const std::string& path) { Add(path, FileKind::kDirectory, absl::Hours(48), 0); }
  AdoptionPlan Plan() {
    std::sort(listing_.entries.begin(), listing_.entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return PlanAdoption(listing_, kNow, absl::Hours(1));
  }
  std::vector<std::string> SetAside() {
    std::vector<std::string> paths;
    for (const AdoptionFinding& finding : Plan().set_aside) paths.push_back(finding.path);
    return paths;
  }
  std::vector<std::string> Refused() {
    std::vector<std::string> paths;
    for (const AdoptionFinding& finding : Plan().refusals) paths.push_back(finding.path + ": " + finding.reason);
    return paths;
  }

  AdoptionListing listing_;
};

TEST_F(AdoptionPlanTest, KeepsWhatARepositoryConsistsOf) {
  for (const char* path : {"packed-refs", "description", "shallow", "info/exclude", "refs/heads/trunk",
                           "hooks/x.lock", "objects/pack/multi-pack-index", "objects/info/commit-graph",
                           "objects/pack/pack-1.pack", "objects/pack/pack-1.idx", "objects/pack/pack-1.bitmap"}) {
    File(path);
  }

  const AdoptionPlan plan = Plan();

  EXPECT_THAT(plan.set_aside, IsEmpty());
  EXPECT_THAT(plan.refusals, IsEmpty());
  EXPECT_EQ(plan.head_target, "refs/heads/trunk");
  EXPECT_EQ(plan.format, ObjectFormat::kSha1);
}

// Field cases of kind A: stale locks and leftover temporary state.
TEST_F(AdoptionPlanTest, SetsAsideWhatCrashedProcessesLeft) {
  for (const char* path : {"packed-refs.lock", "config.lock", "HEAD.lock", "refs/heads/trunk.lock", "shallow.lock",
                           "gc.pid", "objects/info/commit-graphs/commit-graph-chain.lock", "objects/ab/tmp_obj_x",
                           "objects/pack/tmp_pack_x", "objects/pack/.tmp-1-pack-2.pack", "FETCH_HEAD",
                           "objects/pack/pack-1.keep", "objects/pack/pack-2.pack", "objects/pack/pack-3.idx",
                           "objects/pack/pack-3.rev", "packed-refs.new"}) {
    File(path);
  }
  Directory("objects/incoming-x");
  File("objects/incoming-x/ab/cd");
  File("objects/pack/pack-1.pack");
  File("objects/pack/pack-1.idx");

  EXPECT_THAT(Refused(), IsEmpty());
  EXPECT_THAT(SetAside(),
              UnorderedElementsAre("packed-refs.lock", "config.lock", "HEAD.lock", "refs/heads/trunk.lock",
                                   "shallow.lock", "gc.pid", "objects/info/commit-graphs/commit-graph-chain.lock",
                                   "objects/ab/tmp_obj_x", "objects/pack/tmp_pack_x",
                                   "objects/pack/.tmp-1-pack-2.pack", "FETCH_HEAD", "objects/pack/pack-1.keep",
                                   "objects/pack/pack-2.pack", "objects/pack/pack-3.idx",
                                   "objects/pack/pack-3.rev", "packed-refs.new", "objects/incoming-x"));
}

TEST_F(AdoptionPlanTest, SetsReflogsAsideWhole) {
  Directory("logs");
  File("logs/HEAD");
  Directory("logs/refs");

  EXPECT_THAT(SetAside(), ElementsAre("logs"));
}

TEST_F(AdoptionPlanTest, RefusesALockThatIsYoung) {
  File("packed-refs.lock", absl::Minutes(59));

  EXPECT_THAT(Refused(), ElementsAre("packed-refs.lock: somebody may hold this lock"));
  EXPECT_THAT(SetAside(), IsEmpty());
}

TEST_F(AdoptionPlanTest, RefusesWhatAStoreCannotHonour) {
  File("info/grafts");
  File("objects/pack/pack-1.promisor");
  File("worktrees/w");
  Add("hooks", FileKind::kSymlink, absl::Hours(1), 0);
  Add("pipe", FileKind::kOther, absl::Hours(1), 0);

  EXPECT_THAT(Refused(), UnorderedElementsAre("info/grafts: grafts", "objects/pack/pack-1.promisor: partial clone",
                                              "worktrees/w: linked work tree", "hooks: symbolic link",
                                              "pipe: special file"));
}

TEST_F(AdoptionPlanTest, JudgesTheConfiguration) {
  const std::pair<const char*, const char*> refused[] = {
      {"[include]\npath=x\n", "config: configuration includes another file, line 1"},
      {"[core]\nbare=false\n", "config: repository is not bare"},
      {"[core]\nworktree=/x\n", "config: repository has a work tree"},
      {"[core]\nrepositoryformatversion=2\n", "config: repository has an unknown format version"},
      {"[extensions]\nrefstorage=reftable\n", "config: repository needs the extension refstorage"},
  };
  for (const auto& [config, reason] : refused) {
    listing_.config = config;
    EXPECT_THAT(Refused(), ElementsAre(reason)) << config;
  }
  listing_.config = "[core]\nrepositoryformatversion=1\n[extensions]\nobjectFormat=sha256\n";
  EXPECT_THAT(Refused(), IsEmpty());
  EXPECT_EQ(Plan().format, ObjectFormat::kSha256);
}

TEST_F(AdoptionPlanTest, TakesADetachedHeadAndRefusesAMalformedOne) {
  listing_.head = std::string(40, 'a') + "\n";
  EXPECT_THAT(Refused(), IsEmpty());
  EXPECT_EQ(Plan().head_target, "refs/heads/main");
  listing_.head = "ref: ../x\n";
  EXPECT_THAT(Refused(), ElementsAre("HEAD: HEAD names no ref"));
  listing_.head = "";
  EXPECT_THAT(Refused(), ElementsAre("HEAD: HEAD is malformed"));
}

}  // namespace
}  // namespace repotxn::txn
