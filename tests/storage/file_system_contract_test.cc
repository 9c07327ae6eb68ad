// One suite for every FileSystem: what one does, the other does, errors included. The in-memory
// twin is only worth something for crash tests when it answers like the kernel.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/errno_status.h"
#include "storage/file_system.h"
#include "storage/posix_file_system.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::IsOk;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A file system under test, with what it stands on.
struct Subject {
  std::unique_ptr<repotxn::testing::TempDirectory> directory;
  std::unique_ptr<FileSystem> base;
  std::unique_ptr<FileSystem> fs;
};

Subject MakePosix() {
  Subject subject;
  subject.directory = std::make_unique<repotxn::testing::TempDirectory>();
  subject.fs = *OpenPosixFileSystem(subject.directory->path());
  return subject;
}

Subject MakeMemory() {
  Subject subject;
  subject.fs = std::make_unique<repotxn::testing::MemoryFileSystem>();
  return subject;
}

Subject MakeFaultless() {
  Subject subject;
  subject.base = std::make_unique<repotxn::testing::MemoryFileSystem>();
  subject.fs = std::make_unique<repotxn::testing::FaultFileSystem>(subject.base.get());
  return subject;
}

struct Maker {
  const char* name;
  Subject (*make)();

  friend void PrintTo(const Maker& maker, std::ostream* os) { *os << maker.name; }
};

class FileSystemContract : public ::testing::TestWithParam<Maker> {
 protected:
  FileSystemContract() : subject_(GetParam().make()), fs_(*subject_.fs) {}

  static StorePath P(absl::string_view text) { return StorePath::Literal(text); }
  absl::Status Write(absl::string_view path, absl::string_view data) {
    return WriteFile(fs_, P(path), data);
  }
  std::string Read(absl::string_view path) {
    const auto data = ReadFile(fs_, P(path));
    return data.ok() ? *data : data.status().ToString();
  }
  std::vector<std::string> Names(absl::string_view path) {
    std::vector<std::string> names;
    const auto entries = fs_.List(P(path));
    EXPECT_THAT(entries, IsOk());
    if (entries.ok()) {
      for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
    }
    return names;
  }

  Subject subject_;
  FileSystem& fs_;
};

TEST_P(FileSystemContract, FileReadsBackWhatWasWritten) {
  ASSERT_OK(Write("f", "hello"));
  EXPECT_EQ(Read("f"), "hello");
  ASSERT_OK_AND_ASSIGN(const FileInfo info, fs_.Stat(P("f")));
  EXPECT_EQ(info.kind, FileKind::kRegular);
  EXPECT_EQ(info.size, 5);
  EXPECT_EQ(info.mode, 0644u);
  EXPECT_EQ(info.link_count, 1);
}

TEST_P(FileSystemContract, NamesAreBytesAndNotText) {
  const std::string name = "\x01\xff \n\\";
  ASSERT_OK(Write(name, "x"));
  EXPECT_THAT(Names(""), ElementsAre(name));
  EXPECT_EQ(Read(name), "x");
}

TEST_P(FileSystemContract, OpenModesCreateKeepAndTruncateAsTheySay) {
  EXPECT_THAT(fs_.OpenForWrite(P("f"), OpenMode::kExisting), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.OpenForWrite(P("f"), OpenMode::kCreateNew), IsOk());
  EXPECT_THAT(fs_.OpenForWrite(P("f"), OpenMode::kCreateNew),
              StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_OK(Write("f", "one"));
  {
    ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kExisting));
    EXPECT_OK(file->Append(" two"));
  }
  EXPECT_EQ(Read("f"), "one two");
  {
    ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kCreateOrKeep));
    EXPECT_OK(file->Append(" three"));
  }
  EXPECT_EQ(Read("f"), "one two three");
  EXPECT_THAT(fs_.OpenForWrite(P("f"), OpenMode::kCreateTruncate), IsOk());
  EXPECT_EQ(Read("f"), "");
  EXPECT_THAT(fs_.OpenForWrite(P("g"), OpenMode::kCreateOrKeep), IsOk());
  EXPECT_EQ(Read("g"), "");
}

TEST_P(FileSystemContract, WritesAtOffsetsFillGapsWithZeroes) {
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kCreateNew));
  ASSERT_OK(file->WriteAt(4, "x"));
  ASSERT_OK(file->Append("y"));
  ASSERT_OK(file->WriteAt(0, "ab"));
  EXPECT_THAT(file->Size(), IsOkAndHolds(6));
  EXPECT_EQ(Read("f"), absl::string_view("ab\0\0xy", 6));
}

TEST_P(FileSystemContract, TruncateShortensLengthensAndMovesTheEnd) {
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kCreateNew));
  ASSERT_OK(file->Append("abcdef"));
  ASSERT_OK(file->Truncate(2));
  ASSERT_OK(file->Append("X"));
  EXPECT_EQ(Read("f"), "abX");
  ASSERT_OK(file->Truncate(5));
  EXPECT_EQ(Read("f"), absl::string_view("abX\0\0", 5));
}

TEST_P(FileSystemContract, ReadsStopAtTheEndOfTheFile) {
  ASSERT_OK(Write("f", "abcdef"));
  for (const bool past_cache : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto file,
                         past_cache ? fs_.OpenPastCache(P("f")) : fs_.OpenForRead(P("f")));
    char buffer[8] = {};
    EXPECT_THAT(file->ReadAt(4, absl::MakeSpan(buffer, 8)), IsOkAndHolds(size_t{2}));
    EXPECT_EQ(std::string(buffer, 2), "ef");
    EXPECT_THAT(file->ReadAt(6, absl::MakeSpan(buffer, 8)), IsOkAndHolds(size_t{0}));
    EXPECT_THAT(file->ReadAt(60, absl::MakeSpan(buffer, 8)), IsOkAndHolds(size_t{0}));
    EXPECT_THAT(file->Size(), IsOkAndHolds(6));
  }
}

TEST_P(FileSystemContract, ReadsPastTheCacheGiveTheSameBytesAtEveryOffset) {
  std::string data;
  for (uint32_t i = 0; i < 700'000; ++i) data.push_back(static_cast<char>(i * 7919 >> 5));
  ASSERT_OK(WriteFileSynced(fs_, P("f"), data));
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenPastCache(P("f")));
  for (const int64_t at : {0, 1, 511, 4095, 4096, 4097, 262'143, 262'144, 262'145, 699'999}) {
    const auto offset = static_cast<size_t>(at);
    std::string out(300'000, '\0');
    ASSERT_OK_AND_ASSIGN(const size_t got,
                         file->ReadAt(static_cast<int64_t>(offset), absl::MakeSpan(out)));
    out.resize(got);
    EXPECT_TRUE(out == data.substr(offset, 300'000)) << offset;
  }
}

TEST_P(FileSystemContract, AnOpenFileOutlivesItsName) {
  ASSERT_OK(Write("f", "kept"));
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForRead(P("f")));
  ASSERT_OK(fs_.Remove(P("f")));
  ASSERT_OK(Write("f", "other"));
  char buffer[8] = {};
  EXPECT_THAT(file->ReadAt(0, absl::MakeSpan(buffer, 8)), IsOkAndHolds(size_t{4}));
}

TEST_P(FileSystemContract, ModesAreExactWhateverTheUmask) {
  ASSERT_OK(WriteFile(fs_, P("f"), "", 0666));
  ASSERT_OK(fs_.MakeDirectory(P("d"), 0777));
  ASSERT_OK(WriteFile(fs_, P("read-only"), "x", 0444));
  EXPECT_EQ(fs_.Stat(P("f"))->mode, 0666u);
  EXPECT_EQ(fs_.Stat(P("d"))->mode, 0777u);
  EXPECT_EQ(fs_.Stat(P("read-only"))->mode, 0444u);
  ASSERT_OK(fs_.SetPermissions(P("f"), 0400));
  EXPECT_EQ(fs_.Stat(P("f"))->mode, 0400u);
  // Content is kept, so is the mode of what is there already.
  ASSERT_OK(WriteFile(fs_, P("f"), "", 0600));
  EXPECT_EQ(fs_.Stat(P("f"))->mode, 0400u);
}

TEST_P(FileSystemContract, TimesAreSetAndTold) {
  ASSERT_OK(Write("f", ""));
  const absl::Time time = absl::FromUnixMillis(1'234'567'890'123);
  ASSERT_OK(fs_.SetModified(P("f"), time));
  EXPECT_EQ(fs_.Stat(P("f"))->modified, time);
  EXPECT_THAT(fs_.SetModified(P("g"), time), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(FileSystemContract, DirectoriesListSortedWithKinds) {
  ASSERT_OK(fs_.MakeDirectory(P("b")));
  ASSERT_OK(Write("c", ""));
  ASSERT_OK(fs_.Symlink("b", P("a")));
  EXPECT_THAT(fs_.List(StorePath()),
              IsOkAndHolds(ElementsAre(DirectoryEntry{"a", FileKind::kSymlink},
                                       DirectoryEntry{"b", FileKind::kDirectory},
                                       DirectoryEntry{"c", FileKind::kRegular})));
  EXPECT_THAT(fs_.List(P("b")), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(fs_.List(P("c")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.List(P("d")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(fs_.Stat(StorePath())->kind, FileKind::kDirectory);
  EXPECT_EQ(fs_.Stat(StorePath())->link_count, 3);
}

TEST_P(FileSystemContract, MakeDirectoryRefusesWhatIsThere) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  EXPECT_THAT(fs_.MakeDirectory(P("d")), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs_.MakeDirectory(P("x/y")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.MakeDirectory(StorePath()), StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_OK(Write("f", ""));
  EXPECT_THAT(fs_.MakeDirectory(P("f")), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs_.MakeDirectory(P("f/g")), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(FileSystemContract, RemovalsTellFilesFromDirectories) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  ASSERT_OK(Write("d/f", ""));
  EXPECT_THAT(fs_.Remove(P("d")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.RemoveDirectory(P("d/f")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.RemoveDirectory(P("d")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.Remove(P("absent")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.RemoveDirectory(P("absent")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.Remove(StorePath()), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(fs_.RemoveDirectory(StorePath()), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(fs_.Remove(P("d/f")));
  EXPECT_OK(fs_.RemoveDirectory(P("d")));
  EXPECT_THAT(Names(""), IsEmpty());
}

TEST_P(FileSystemContract, RenameReplacesFilesAndMovesDirectories) {
  ASSERT_OK(Write("a", "new"));
  ASSERT_OK(Write("b", "old"));
  ASSERT_OK(fs_.Rename(P("a"), P("b")));
  EXPECT_EQ(Read("b"), "new");
  EXPECT_THAT(fs_.Stat(P("a")), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(MakeDirectories(fs_, P("d/e")));
  ASSERT_OK(Write("d/e/f", "deep"));
  ASSERT_OK(fs_.MakeDirectory(P("empty")));
  ASSERT_OK(fs_.Rename(P("d"), P("empty")));
  EXPECT_EQ(Read("empty/e/f"), "deep");
  EXPECT_THAT(Names(""), ElementsAre("b", "empty"));
}

TEST_P(FileSystemContract, RenameRefusesWhatTheKernelRefuses) {
  ASSERT_OK(Write("f", ""));
  ASSERT_OK(MakeDirectories(fs_, P("d/e")));
  ASSERT_OK(MakeDirectories(fs_, P("full/x")));
  ASSERT_OK(Write("d/g", ""));
  EXPECT_THAT(fs_.Rename(P("absent"), P("f")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.Rename(P("f"), P("no/f")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.Rename(P("f"), P("d/e")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.Rename(P("d"), P("f")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.Rename(P("d"), P("full")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.Rename(P("d/g"), P("d")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.Rename(P("d"), P("d/e/d")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(fs_.Rename(StorePath(), P("d")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(fs_.Rename(P("d"), P("d")));
}

TEST_P(FileSystemContract, RenameOfTwoNamesOfOneFileKeepsBoth) {
  ASSERT_OK(Write("a", "x"));
  ASSERT_OK(fs_.Link(P("a"), P("b")));
  ASSERT_OK(fs_.Rename(P("a"), P("b")));
  EXPECT_THAT(Names(""), ElementsAre("a", "b"));
}

TEST_P(FileSystemContract, HardLinksShareOneFile) {
  ASSERT_OK(Write("a", "x"));
  ASSERT_OK(fs_.Link(P("a"), P("b")));
  EXPECT_EQ(fs_.Stat(P("a"))->inode, fs_.Stat(P("b"))->inode);
  EXPECT_EQ(fs_.Stat(P("a"))->link_count, 2);
  EXPECT_THAT(fs_.Link(P("a"), P("b")), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs_.Link(P("absent"), P("c")), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  EXPECT_THAT(fs_.Link(P("d"), P("e")), StatusIs(absl::StatusCode::kPermissionDenied));
  ASSERT_OK(fs_.Remove(P("a")));
  EXPECT_EQ(Read("b"), "x");
  EXPECT_EQ(fs_.Stat(P("b"))->link_count, 1);
}

TEST_P(FileSystemContract, SymlinksAreKeptAsTextAndNeverFollowed) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  ASSERT_OK(Write("d/f", "secret"));
  ASSERT_OK(fs_.Symlink("d", P("to-directory")));
  ASSERT_OK(fs_.Symlink("d/f", P("to-file")));
  ASSERT_OK(fs_.Symlink("nowhere", P("dangling")));
  EXPECT_THAT(fs_.ReadLink(P("to-file")), IsOkAndHolds("d/f"));
  EXPECT_EQ(fs_.Stat(P("to-file"))->kind, FileKind::kSymlink);
  EXPECT_EQ(fs_.Stat(P("dangling"))->size, 7);
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(fs_.OpenForRead(P("to-file")), StatusIs(kRefused));
  EXPECT_THAT(fs_.OpenPastCache(P("to-file")), StatusIs(kRefused));
  EXPECT_THAT(fs_.OpenForRead(P("to-directory/f")), StatusIs(kRefused));
  EXPECT_THAT(fs_.OpenForWrite(P("to-file"), OpenMode::kCreateTruncate), StatusIs(kRefused));
  EXPECT_THAT(fs_.OpenForWrite(P("dangling"), OpenMode::kCreateOrKeep), StatusIs(kRefused));
  EXPECT_THAT(fs_.OpenForWrite(P("dangling"), OpenMode::kCreateNew),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(fs_.OpenForWrite(P("to-directory/new"), OpenMode::kCreateNew), StatusIs(kRefused));
  EXPECT_THAT(fs_.Stat(P("to-directory/f")), StatusIs(kRefused));
  EXPECT_THAT(fs_.List(P("to-directory")), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(fs_.MakeDirectory(P("to-directory/new")), StatusIs(kRefused));
  EXPECT_THAT(fs_.Remove(P("to-directory/f")), StatusIs(kRefused));
  EXPECT_THAT(fs_.Rename(P("to-directory/f"), P("g")), StatusIs(kRefused));
  EXPECT_THAT(fs_.Rename(P("d/f"), P("to-directory/g")), StatusIs(kRefused));
  EXPECT_THAT(fs_.Link(P("to-directory/f"), P("g")), StatusIs(kRefused));
  EXPECT_THAT(fs_.SetPermissions(P("to-file"), 0600), StatusIs(kRefused));
  EXPECT_THAT(fs_.SyncFile(P("to-file")), StatusIs(kRefused));
  EXPECT_THAT(fs_.SyncDirectory(P("to-directory")), StatusIs(kRefused));
  EXPECT_THAT(fs_.Lock(P("to-file"), "me"), StatusIs(kRefused));
  // The link itself is linked, renamed and removed.
  ASSERT_OK(fs_.Link(P("to-file"), P("second")));
  EXPECT_EQ(fs_.Stat(P("second"))->kind, FileKind::kSymlink);
  ASSERT_OK(fs_.Rename(P("second"), P("third")));
  ASSERT_OK(fs_.Remove(P("third")));
  EXPECT_EQ(Read("d/f"), "secret");
}

TEST_P(FileSystemContract, ReadLinkOfWhatIsNoLinkFails) {
  ASSERT_OK(Write("f", ""));
  EXPECT_THAT(fs_.ReadLink(P("f")), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(fs_.ReadLink(P("g")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.Symlink("x", P("f")), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_P(FileSystemContract, DirectoriesAreNotOpenedAsFiles) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  EXPECT_THAT(fs_.OpenForRead(P("d")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.OpenForRead(StorePath()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.OpenForWrite(P("d"), OpenMode::kExisting),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.OpenForWrite(StorePath(), OpenMode::kCreateNew),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.SyncFile(P("d")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fs_.OpenForRead(P("d/absent")), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(FileSystemContract, SyncsSucceedOnWhatIsThere) {
  ASSERT_OK(fs_.MakeDirectory(P("d")));
  ASSERT_OK(Write("d/f", "x"));
  EXPECT_OK(fs_.SyncFile(P("d/f")));
  EXPECT_OK(fs_.SyncDirectory(P("d")));
  EXPECT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_OK(fs_.SyncAll());
  EXPECT_THAT(fs_.SyncFile(P("g")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.SyncDirectory(P("g")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fs_.SyncDirectory(P("d/f")), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// C113: a second opening in this process neither gets the lock nor drops the first one's.
TEST_P(FileSystemContract, ALockIsHeldOnceEvenInsideOneProcess) {
  ASSERT_OK_AND_ASSIGN(auto lock, fs_.Lock(P("LOCK"), "pid 1"));
  EXPECT_THAT(fs_.Lock(P("LOCK"), "pid 2"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Read("LOCK"), "pid 1");
  EXPECT_THAT(fs_.Lock(P("LOCK"), "pid 2"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(fs_.Lock(P("OTHER"), "pid 2"), IsOk());
  lock.reset();
  EXPECT_THAT(fs_.Lock(P("LOCK"), "3"), IsOk());
  EXPECT_EQ(Read("LOCK"), "3");
}

TEST_P(FileSystemContract, ErrorsNameOperationAndStorePathOnly) {
  const absl::Status status = fs_.OpenForRead(P("a/b\n")).status();
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("open \"a/b\\n\": ENOENT"));
  EXPECT_EQ(ErrnoOf(status), ENOENT);
}

TEST_P(FileSystemContract, FreeSpaceIsTold) {
  ASSERT_OK_AND_ASSIGN(const int64_t free, fs_.FreeBytes());
  EXPECT_GT(free, 0);
}

TEST_P(FileSystemContract, ReadFileKeepsItsBound) {
  ASSERT_OK(Write("f", "12345"));
  EXPECT_THAT(ReadFile(fs_, P("f"), 5), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadFile(fs_, P("f"), 4), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(ReadFile(fs_, P("f"), 0), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_P(FileSystemContract, MakeDirectoriesMakesWhatIsMissing) {
  ASSERT_OK(MakeDirectories(fs_, P("a/b/c")));
  ASSERT_OK(MakeDirectories(fs_, P("a/b/c")));
  ASSERT_OK(MakeDirectories(fs_, P("a/b/d/e"), 0700));
  ASSERT_OK(MakeDirectories(fs_, StorePath()));
  EXPECT_EQ(fs_.Stat(P("a/b/d"))->mode, 0700u);
  ASSERT_OK(Write("f", ""));
  EXPECT_THAT(MakeDirectories(fs_, P("f")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeDirectories(fs_, P("f/g")), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(FileSystemContract, RemoveTreeRemovesWhateverIsThereAndFollowsNoLink) {
  ASSERT_OK(MakeDirectories(fs_, P("keep")));
  ASSERT_OK(Write("keep/f", "kept"));
  ASSERT_OK(MakeDirectories(fs_, P("a/b/c")));
  ASSERT_OK(Write("a/b/f", ""));
  ASSERT_OK(fs_.Symlink("../keep", P("a/link")));
  ASSERT_OK(RemoveTree(fs_, P("a")));
  ASSERT_OK(RemoveTree(fs_, P("a")));
  EXPECT_THAT(Names(""), ElementsAre("keep"));
  EXPECT_EQ(Read("keep/f"), "kept");
  EXPECT_THAT(Exists(fs_, P("keep/f")), IsOkAndHolds(true));
  EXPECT_THAT(Exists(fs_, P("a")), IsOkAndHolds(false));
}

TEST_P(FileSystemContract, RemoveEmptyParentsStopsAtContentAndAtTheGivenAncestor) {
  ASSERT_OK(MakeDirectories(fs_, P("r/a/b/c")));
  ASSERT_OK(Write("r/a/b/c/f", ""));
  ASSERT_OK(Write("r/a/g", ""));
  ASSERT_OK(RemoveEmptyParents(fs_, P("r/a/b/c/f"), P("r")));
  EXPECT_THAT(Names("r/a"), ElementsAre("g"));
  ASSERT_OK(RemoveEmptyParents(fs_, P("r/a/g"), P("r")));
  EXPECT_THAT(Names("r"), IsEmpty());
  ASSERT_OK(RemoveEmptyParents(fs_, P("r/x/y"), P("r")));
  EXPECT_THAT(Names(""), ElementsAre("r"));
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemContract,
                         ::testing::Values(Maker{"Posix", MakePosix}, Maker{"Memory", MakeMemory},
                                           Maker{"Faultless", MakeFaultless}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace repotxn::storage
