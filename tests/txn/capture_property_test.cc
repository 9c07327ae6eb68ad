#include "txn/capture.h"

#include "absl/strings/match.h"
#include "tests/support/seeded_random.h"
#include "tests/txn/world.h"
#include "txn/directory_state.h"

namespace repotxn::testing {
namespace {

using storage::FileKind;
using txn::DirectoryDifference;
using txn::DirectoryItem;
using txn::DirectoryState;
using txn::ForeignKind;
using txn::RefValues;

// The pure difference of two states, over generated ones. It fails when the difference, applied to the state before,
// does not give the state after, or when anything outside the vocabulary is not named.
class CapturePropertyTest : public ::testing::Test {
 protected:
  static constexpr int kRounds = 3000;

  uint64_t Draw(uint64_t below) { return storage::NextUint64(random_) % below; }

  static std::string Hex(char digit, size_t size) { return std::string(size, digit); }
  static std::vector<std::string> OrdinaryPaths() {
    return {"config", "description", "info/attributes", "info/exclude", "hooks/update", "a/b/c", "a/b/d", "a/e"};
  }
  static std::vector<std::string> RefPaths() { return {"refs/heads/x", "refs/heads/y/z", "refs/tags/v", "HEAD"}; }
  // Each with the kind under which it is named when it is new.
  static std::vector<std::pair<std::string, ForeignKind>> ForeignPaths() {
    return {{"x.lock", ForeignKind::kLockFile},
            {"refs/heads/x.lock", ForeignKind::kLockFile},
            {"gc.pid", ForeignKind::kLockFile},
            {"logs/HEAD", ForeignKind::kReflog},
            {"objects/info/packs", ForeignKind::kObjectFile},
            {"objects/pack/tmp_pack_1", ForeignKind::kObjectFile},
            {absl::StrCat("objects/pack/pack-", Hex('c', 40), ".idx"), ForeignKind::kObjectFile},
            {absl::StrCat("objects/pack/pack-", Hex('b', 40), ".keep"), ForeignKind::kObjectFile},
            {"objects/zz/1234", ForeignKind::kObjectFile},
            {"tmp_1", ForeignKind::kReservedPath},
            {"refs/heads/..", ForeignKind::kUnreadableRef}};
  }

  static void AddParents(const std::string& path, DirectoryState* state) {
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      (*state)[path.substr(0, slash)].kind = FileKind::kDirectory;
    }
  }
  // A file as if made anew: with an inode of its own.
  void Put(const std::string& path, DirectoryState* state) {
    AddParents(path, state);
    DirectoryItem item;
    item.mode = 0644;
    item.inode = ++inodes_;
    item.size = static_cast<int64_t>(Draw(3));
    item.link_count = 1;
    (*state)[path] = item;
  }
  static DirectoryState Skeleton() {
    DirectoryState state;
    for (const char* path : {"refs", "refs/heads", "refs/tags", "objects", "objects/info", "objects/pack"}) {
      state[path].kind = FileKind::kDirectory;
    }
    return state;
  }
  static bool IsOrdinary(const std::string& path) {
    for (const std::string& each : OrdinaryPaths()) {
      if (each == path || absl::StartsWith(each, path + "/")) return true;
    }
    return path == "empty";
  }
  // What a state says of ordinary files and directories.
  static std::map<std::string, uint64_t> OrdinaryPart(const DirectoryState& state) {
    std::map<std::string, uint64_t> part;
    for (const auto& [path, item] : state) {
      if (IsOrdinary(path)) part[path] = item.inode;
    }
    return part;
  }

  SeededRandom random_{7};
  uint64_t inodes_ = 0;
};

TEST_F(CapturePropertyTest, GivesTheStateAfterWhenAppliedToTheStateBefore) {
  for (int round = 0; round < kRounds; ++round) {
    DirectoryState before = Skeleton(), after = Skeleton();
    std::set<std::string> touched;
    for (const std::string& path : OrdinaryPaths()) {
      const uint64_t fate = Draw(5);  // absent, kept, replaced, removed, new
      if (fate == 1 || fate == 2 || fate == 3) Put(path, &before);
      if (fate == 1) {
        AddParents(path, &after);
        after[path] = before[path];
        after[path].link_count = 2;  // a link more is no difference
      }
      if (fate == 2 || fate == 4) Put(path, &after);
    }
    if (Draw(2) == 0) before["empty"].kind = FileKind::kDirectory;
    if (Draw(2) == 0) after["empty"].kind = FileKind::kDirectory;
    for (const std::string& path : RefPaths()) {
      Put(path, &before);
      after[path] = before[path];
      AddParents(path, &after);
      if (Draw(2) == 0) {
        Put(path, &after);
        touched.insert(path);
      }
    }

    const DirectoryDifference found = DiffDirectories(before, after, ObjectFormat::kSha1);

    std::map<std::string, uint64_t> applied = OrdinaryPart(before);
    for (const std::string& path : found.removed_files) EXPECT_EQ(applied.erase(path), 1u);
    for (auto path = found.removed_directories.rbegin(); path != found.removed_directories.rend(); ++path) {
      const auto next = applied.upper_bound(*path + "/");
      EXPECT_TRUE(next == applied.end() || !absl::StartsWith(next->first, *path + "/")) << *path << " is not empty";
      EXPECT_EQ(applied.erase(*path), 1u);
    }
    for (const std::string& path : found.made_directories) EXPECT_TRUE(applied.emplace(path, 0).second);
    for (const std::string& path : found.put_files) applied[path] = after.at(path).inode;
    EXPECT_EQ(applied, OrdinaryPart(after));
    EXPECT_EQ(found.touched_refs, touched);
    EXPECT_FALSE(found.packed_refs_touched);
    EXPECT_TRUE(found.foreign.empty());
    EXPECT_TRUE(found.loose_objects.empty() && found.packs.empty());
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(CapturePropertyTest, NamesEverythingForeignAndTakesEveryObject) {
  const std::string loose = absl::StrCat("aa/", Hex('1', 38)), pack = absl::StrCat("pack-", Hex('a', 40));
  for (int round = 0; round < kRounds; ++round) {
    const DirectoryState before = Skeleton();
    DirectoryState after = Skeleton();
    std::map<std::string, ForeignKind> foreign;
    for (const auto& [path, kind] : ForeignPaths()) {
      if (Draw(3) > 0) continue;
      Put(path, &after);
      foreign[path] = kind;
    }
    const bool has_loose = Draw(2) == 0, has_pack = Draw(2) == 0;
    if (has_loose) Put(absl::StrCat("objects/", loose), &after);
    if (has_pack) {
      for (const char* suffix : {".pack", ".idx", ".rev"}) Put(absl::StrCat("objects/pack/", pack, suffix), &after);
    }
    for (const char* scratch : {"FETCH_HEAD", "COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_EDITMSG", "EDIT_DESCRIPTION"}) {
      if (Draw(2) == 0) Put(scratch, &after);
    }

    const DirectoryDifference found = DiffDirectories(before, after, ObjectFormat::kSha1);

    std::map<std::string, ForeignKind> named;
    for (const txn::ForeignChange& change : found.foreign) named[change.path] = change.kind;
    EXPECT_EQ(named, foreign);
    EXPECT_EQ(found.loose_objects, has_loose ? std::vector<std::string>{loose} : std::vector<std::string>());
    EXPECT_EQ(found.packs, has_pack ? std::vector<std::string>{pack} : std::vector<std::string>());
    EXPECT_TRUE(found.put_files.empty() && found.removed_files.empty() && found.made_directories.empty());
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(CapturePropertyTest, TellsAFileWrittenInPlaceFromAnInodeUsedAgain) {
  DirectoryState before = Skeleton();
  Put("config", &before);
  before["config"].link_count = 2;
  DirectoryState after = before;
  after["config"].modified += absl::Nanoseconds(1);

  const auto shared = DiffDirectories(before, after, ObjectFormat::kSha1);
  after["config"].link_count = 1;
  const auto alone = DiffDirectories(before, after, ObjectFormat::kSha1);

  ASSERT_EQ(shared.foreign.size(), 1u);
  EXPECT_EQ(shared.foreign[0].kind, ForeignKind::kWrittenInPlace);
  EXPECT_TRUE(shared.put_files.empty());
  EXPECT_TRUE(alone.foreign.empty());
  EXPECT_EQ(alone.put_files, std::vector<std::string>{"config"});
}

TEST_F(CapturePropertyTest, TakesOnlyObjectsOfTheRepositorysFormat) {
  DirectoryState after = Skeleton();
  const std::string of_sha1 = absl::StrCat("objects/aa/", Hex('1', 38)), of_sha256 = absl::StrCat("objects/aa/", Hex('1', 62));
  Put(of_sha1, &after);
  Put(of_sha256, &after);

  const auto found = DiffDirectories(Skeleton(), after, ObjectFormat::kSha256);

  EXPECT_EQ(found.loose_objects, std::vector<std::string>{of_sha256.substr(8)});
  ASSERT_EQ(found.foreign.size(), 1u);
  EXPECT_EQ(found.foreign[0].path, of_sha1);
}

TEST_F(CapturePropertyTest, GivesTheRefsAfterWhenAppliedToTheRefsBefore) {
  const std::vector<std::string> names = {"HEAD", "refs/heads/a", "refs/heads/a/b", "refs/heads/c", "refs/tags/v"};
  const std::vector<refs::RefValue> values = {refs::RefValue::Absent(), World::At(1), World::At(2),
                                              refs::RefValue::Symbolic(Branch("c"))};
  for (int round = 0; round < kRounds; ++round) {
    RefValues before, after;
    for (const std::string& name : names) {
      if (Draw(2) == 0) before[name] = values[Draw(values.size())];
      if (Draw(2) == 0) after[name] = values[Draw(values.size())];
    }

    const std::vector<txn::CapturedRef> changed = txn::DiffRefs(before, after);

    RefValues applied = before;
    for (const txn::CapturedRef& ref : changed) {
      EXPECT_TRUE(applied[ref.name.text()].SameAs(ref.before));
      EXPECT_FALSE(ref.before.SameAs(ref.after));
      applied[ref.name.text()] = ref.after;
    }
    for (const std::string& name : names) EXPECT_TRUE(applied[name].SameAs(after[name])) << name;
    EXPECT_TRUE(std::is_sorted(changed.begin(), changed.end(),
                               [](const auto& a, const auto& b) { return a.name < b.name; }));
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(CapturePropertyTest, CarriesTheWholeListInTheError) {
  std::vector<txn::ForeignChange> changes = {{RepositoryId(), ForeignKind::kTooLarge, "a\nb"},
                                             {storage::NewId<RepositoryId>(random_), ForeignKind::kSymlink, "\xff"}};

  const absl::Status status = txn::ForeignChangesError(changes);

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(txn::ForeignChangesOf(status), changes);
  EXPECT_TRUE(txn::ForeignChangesOf(absl::AbortedError("other")).empty());
}

}  // namespace
}  // namespace repotxn::testing
