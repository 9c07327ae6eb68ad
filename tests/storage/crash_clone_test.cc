// What a crash clone of the in-memory file system keeps and loses. The crash tests of every other
// folder stand on this.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/errno_status.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::testing {
namespace {

using storage::FileSystem;
using storage::OpenMode;
using storage::StorePath;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

StorePath P(absl::string_view text) { return StorePath::Literal(text); }

class CrashClone : public ::testing::Test {
 protected:
  void Write(absl::string_view path, absl::string_view data) {
    ASSERT_OK(storage::WriteFile(fs_, P(path), data));
  }
  void Durable(absl::string_view path, absl::string_view data) {
    Write(path, data);
    ASSERT_OK(fs_.SyncAll());
  }
  // Names and contents after a crash, "name=content" separated by blanks; directories end in a
  // slash.
  static std::string Describe(FileSystem& fs, const StorePath& directory = StorePath()) {
    std::string out;
    const auto entries = fs.List(directory);
    EXPECT_THAT(entries, IsOk());
    for (const auto& entry : entries.value()) {
      const StorePath path = directory / entry.name;
      if (entry.kind == storage::FileKind::kDirectory) {
        absl::StrAppend(&out, path.text(), "/ ", Describe(fs, path));
      } else {
        absl::StrAppend(&out, path.text(), "=", *storage::ReadFile(fs, path), " ");
      }
    }
    return out;
  }
  std::string After(const CrashOptions& options) { return Describe(*fs_.CrashClone(options)); }
  std::string Least() { return After({.survival = CrashSurvival::kNothing}); }
  std::string Most() { return After({.survival = CrashSurvival::kEverything}); }
  // Every state that whole changes can give.
  std::set<std::string> AllStates() {
    std::set<std::string> states;
    const int64_t changes = fs_.PendingChangeCount();
    EXPECT_LE(changes, 12);
    for (uint64_t mask = 0; mask < uint64_t{1} << changes; ++mask) {
      states.insert(After({.survival = CrashSurvival::kChosen, .keep_mask = mask}));
    }
    return states;
  }

  MemoryFileSystem fs_;
};

TEST_F(CrashClone, DataIsLostUntilItsFileIsSynced) {
  Durable("f", "old");
  Write("f", "new");
  EXPECT_EQ(Least(), "f=old ");
  EXPECT_EQ(Most(), "f=new ");
  ASSERT_OK(fs_.SyncFile(P("f")));
  EXPECT_EQ(Least(), "f=new ");
  EXPECT_EQ(fs_.PendingChangeCount(), 0);
}

TEST_F(CrashClone, ASyncedFileHasNoNameUntilItsDirectoryIsSynced) {
  ASSERT_OK(storage::WriteFileSynced(fs_, P("f"), "data"));
  EXPECT_EQ(Least(), "");
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_EQ(Least(), "f=data ");
}

// C015: a name without its data is the empty file that Git hosts find after a power cut.
TEST_F(CrashClone, ADirectorySyncDoesNotSyncTheData) {
  Write("f", "data");
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_EQ(Least(), "f= ");
}

TEST_F(CrashClone, AParentsNameIsNotDurableWithItsEntries) {
  ASSERT_OK(storage::MakeDirectories(fs_, P("a/b")));
  ASSERT_OK(storage::WriteFileSynced(fs_, P("a/b/f"), "x"));
  ASSERT_OK(fs_.SyncDirectory(P("a/b")));
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_EQ(Least(), "a/ ");
  ASSERT_OK(fs_.SyncDirectory(P("a")));
  EXPECT_EQ(Least(), "a/ a/b/ a/b/f=x ");
}

TEST_F(CrashClone, ARemovalIsPendingUntilItsDirectoryIsSynced) {
  Durable("f", "x");
  ASSERT_OK(fs_.Remove(P("f")));
  EXPECT_EQ(Least(), "f=x ");
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_EQ(Least(), "");
}

TEST_F(CrashClone, ARenameIsOldOrNewNeverHalf) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  Durable("a", "new");
  Durable("d/b", "old");
  ASSERT_OK(fs_.Rename(P("a"), P("d/b")));
  EXPECT_THAT(AllStates(), UnorderedElementsAre("a=new d/ d/b=old ", "d/ d/b=new "));
  // The old name's directory does not make the new name durable.
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_EQ(Least(), "a=new d/ d/b=old ");
  ASSERT_OK(fs_.SyncDirectory(P("d")));
  EXPECT_EQ(Least(), "d/ d/b=new ");
}

TEST_F(CrashClone, AChainOfRenamesNeverShowsTheFileTwice) {
  Durable("a", "x");
  ASSERT_OK(fs_.Rename(P("a"), P("b")));
  ASSERT_OK(fs_.Rename(P("b"), P("c")));
  EXPECT_THAT(AllStates(), UnorderedElementsAre("a=x ", "b=x ", "c=x "));
  ASSERT_OK(fs_.Remove(P("c")));
  EXPECT_THAT(AllStates(), UnorderedElementsAre("a=x ", "b=x ", "c=x ", ""));
}

TEST_F(CrashClone, AReplacedNameIsOldOrNewOrOnTheWay) {
  Durable("a", "1");
  ASSERT_OK(fs_.Remove(P("a")));
  ASSERT_OK(storage::WriteFileSynced(fs_, P("a"), "2"));
  EXPECT_THAT(AllStates(), UnorderedElementsAre("a=1 ", "a=2 ", ""));
}

TEST_F(CrashClone, HardLinksAreNamesOfTheirOwn) {
  Durable("a", "x");
  ASSERT_OK(fs_.Link(P("a"), P("b")));
  EXPECT_THAT(AllStates(), UnorderedElementsAre("a=x ", "a=x b=x "));
  const auto clone = fs_.CrashClone({.survival = CrashSurvival::kEverything});
  EXPECT_EQ(clone->Stat(P("a"))->inode, clone->Stat(P("b"))->inode);
  EXPECT_EQ(clone->Stat(P("a"))->link_count, 2);
  const auto least = fs_.CrashClone({.survival = CrashSurvival::kNothing});
  EXPECT_EQ(least->Stat(P("a"))->link_count, 1);
}

TEST_F(CrashClone, ChosenChangesAreCountedFromTheOldest) {
  Write("a", "");
  Write("b", "");
  Write("c", "");
  ASSERT_EQ(fs_.PendingChangeCount(), 3);
  EXPECT_EQ(After({.survival = CrashSurvival::kChosen, .keep_mask = 0b101}), "a= c= ");
}

TEST_F(CrashClone, RandomCrashesTearWritesAtSectors) {
  Durable("f", std::string(2048, 'o'));
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kExisting));
  ASSERT_OK(file->WriteAt(0, std::string(2048, 'n')));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto clone = fs_.CrashClone({.survival = CrashSurvival::kRandom, .seed = seed});
    const std::string data = *storage::ReadFile(*clone, P("f"));
    ASSERT_EQ(data.size(), 2048u);
    std::string sectors;
    for (size_t at = 0; at < 2048; at += 512) {
      ASSERT_EQ(data.substr(at, 512), std::string(512, data[at])) << "torn inside a sector";
      sectors.push_back(data[at]);
    }
    seen.insert(sectors);
  }
  EXPECT_EQ(seen.size(), 16u);
}

TEST_F(CrashClone, SizeAndDataSurviveIndependently) {
  Durable("f", "");
  Write("f", std::string(100, 'x'));
  bool size_without_data = false;
  bool data_without_size = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto clone = fs_.CrashClone({.survival = CrashSurvival::kRandom, .seed = seed});
    const std::string data = *storage::ReadFile(*clone, P("f"));
    ASSERT_TRUE(data.empty() || data == std::string(100, 'x') || data == std::string(100, '\0'));
    size_without_data |= data == std::string(100, '\0');
    data_without_size |= data.empty();
  }
  EXPECT_TRUE(size_without_data);
  EXPECT_TRUE(data_without_size);
}

TEST_F(CrashClone, OneSeedGivesOneState) {
  for (int i = 0; i < 20; ++i) Write(absl::StrCat("f", i), "x");
  const CrashOptions options = {.survival = CrashSurvival::kRandom, .seed = 5};
  EXPECT_EQ(After(options), After(options));
}

TEST_F(CrashClone, ACloneIsDurableUnlockedAndApart) {
  ASSERT_OK_AND_ASSIGN(const auto lock, fs_.Lock(P("LOCK"), "me"));
  Durable("f", "x");
  const auto clone = fs_.CrashClone({.survival = CrashSurvival::kEverything});
  EXPECT_EQ(clone->PendingChangeCount(), 0);
  EXPECT_OK(clone->Lock(P("LOCK"), "other").status());
  ASSERT_OK(storage::WriteFile(*clone, P("f"), "changed"));
  EXPECT_EQ(*storage::ReadFile(fs_, P("f")), "x");
  EXPECT_EQ(fs_.DumpTree(P("f")), fs_.CrashClone({})->DumpTree(P("f")));
  EXPECT_NE(fs_.DumpTree(P("f")), clone->DumpTree(P("f")));
}

TEST_F(CrashClone, TheHookSeesEveryMutationBeforeItHappens) {
  std::vector<std::string> seen;
  fs_.SetMutationHook([&](int64_t index, absl::string_view op, const StorePath& path) {
    seen.push_back(absl::StrCat(index, " ", op, " ", path.text(), " |", Describe(fs_)));
  });
  Write("a", "1");
  ASSERT_OK(fs_.SyncFile(P("a")));
  ASSERT_OK(fs_.Rename(P("a"), P("b")));
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  ASSERT_OK(fs_.Stat(P("b")).status());
  EXPECT_THAT(seen, ElementsAre("0 create a |", "1 append a |a= ", "2 sync a |a=1 ",
                                "3 rename b |a=1 ", "4 sync-directory  |b=1 "));
  EXPECT_EQ(fs_.mutation_count(), 5);
}

TEST_F(CrashClone, DumpTellsPathsKindsModesSizesAndContent) {
  ASSERT_OK(fs_.MakeDirectory(P("d"), 0700));
  Write("d/f", "abc");
  ASSERT_OK(fs_.Symlink("f", P("d/s")));
  EXPECT_EQ(fs_.DumpTree(P("d")),
            "\"d\" dir 0700\n"
            "\"d/f\" file 0644 size 3 links 1 xxh3 78af5f94892f3950\n"
            "\"d/s\" symlink 0777 size 1 links 1 xxh3 " +
                fs_.DumpTree(P("d/s")).substr(fs_.DumpTree(P("d/s")).rfind(' ') + 1));
  EXPECT_EQ(fs_.DumpTree(P("absent")), "");
}

TEST_F(CrashClone, LinksHaveALimitAsOnDisk) {
  fs_.SetLinkCountMax(2);
  Write("a", "");
  ASSERT_OK(fs_.Link(P("a"), P("b")));
  const absl::Status refused = fs_.Link(P("a"), P("c"));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(storage::ErrnoOf(refused), EMLINK);
}

}  // namespace
}  // namespace repotxn::testing
