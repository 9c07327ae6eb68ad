// The fault wrapper itself: which call a rule hits, and what failed syncs leave.
#include "tests/support/fault_file_system.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::testing {
namespace {

using storage::OpenMode;
using storage::StorePath;
using ::testing::ElementsAre;

StorePath P(absl::string_view text) { return StorePath::Literal(text); }

class FaultRules : public ::testing::Test {
 protected:
  FaultRules() : fs_(&memory_) {}

  // Content of `path` as the least that a crash leaves.
  std::string Least(absl::string_view path) {
    const auto clone = memory_.CrashClone({.survival = CrashSurvival::kNothing});
    const auto data = storage::ReadFile(*clone, P(path));
    return data.ok() ? *data : data.status().ToString();
  }

  const absl::Status injected_ = absl::DataLossError("injected");
  MemoryFileSystem memory_;
  FaultFileSystem fs_;
};

TEST_F(FaultRules, HitTheChosenOccurrenceOfOperationAndPath) {
  fs_.AddRule({.operation = FileOperation::kMakeDirectory,
               .path_prefix = "a/",
               .path_suffix = "x",
               .occurrence = 2,
               .status = injected_});
  EXPECT_OK(fs_.MakeDirectory(P("a")));
  EXPECT_OK(fs_.MakeDirectory(P("a/1x")));
  EXPECT_OK(fs_.MakeDirectory(P("a/y")));
  EXPECT_OK(storage::WriteFile(fs_, P("a/fx"), ""));
  EXPECT_EQ(fs_.MakeDirectory(P("a/2x")), injected_);
  EXPECT_OK(fs_.MakeDirectory(P("a/2x")));
  EXPECT_EQ(fs_.fault_count(), 1);
  EXPECT_EQ(fs_.CallCount(FileOperation::kMakeDirectory), 5);
}

TEST_F(FaultRules, AStickyRuleHitsUntilCleared) {
  fs_.AddRule({.occurrence = 2, .status = injected_, .is_sticky = true});
  EXPECT_OK(fs_.MakeDirectory(P("a")));
  EXPECT_EQ(fs_.MakeDirectory(P("b")), injected_);
  EXPECT_EQ(fs_.Stat(P("a")).status(), injected_);
  fs_.ClearRules();
  EXPECT_OK(fs_.Stat(P("a")));
}

TEST_F(FaultRules, APartialWriteReachesTheBase) {
  fs_.AddRule({.operation = FileOperation::kAppend, .status = injected_, .partial_bytes = 3});
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kCreateNew));
  EXPECT_EQ(file->Append("abcdef"), injected_);
  EXPECT_EQ(*storage::ReadFile(fs_, P("f")), "abc");
}

TEST_F(FaultRules, AfterAnHonestFailureTheNextSyncWorks) {
  ASSERT_OK(storage::WriteFile(fs_, P("f"), "data"));
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  fs_.AddRule({.operation = FileOperation::kSyncFile, .status = injected_});
  EXPECT_EQ(fs_.SyncFile(P("f")), injected_);
  EXPECT_EQ(Least("f"), "");
  EXPECT_OK(fs_.SyncFile(P("f")));
  EXPECT_EQ(Least("f"), "data");
}

// What three file systems really do: the failed pages are marked clean, so the next sync has
// nothing to report.
TEST_F(FaultRules, AfterALyingFailureTheNextSyncSucceedsAndSyncsNothing) {
  ASSERT_OK(storage::WriteFile(fs_, P("f"), "data"));
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  fs_.AddRule(
      {.operation = FileOperation::kSyncFile, .status = injected_, .later_syncs_lie = true});
  EXPECT_EQ(fs_.SyncFile(P("f")), injected_);
  EXPECT_OK(fs_.SyncFile(P("f")));
  EXPECT_OK(fs_.SyncAll());
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForWrite(P("f"), OpenMode::kExisting));
  EXPECT_OK(file->Sync());
  EXPECT_EQ(Least("f"), "");
}

TEST_F(FaultRules, TheWatcherSeesMutationsThatGoThrough) {
  std::vector<std::string> seen;
  fs_.SetWatcher([&seen](FileOperation operation, const StorePath& path) {
    seen.push_back(absl::StrCat(FileOperationName(operation), " ", path.text()));
  });
  fs_.AddRule({.operation = FileOperation::kRemove, .status = injected_});
  ASSERT_OK(storage::WriteFileSynced(fs_, P("a"), "x"));
  ASSERT_OK(fs_.Stat(P("a")));
  EXPECT_EQ(fs_.Remove(P("a")), injected_);
  ASSERT_OK(fs_.Rename(P("a"), P("b")));
  ASSERT_OK(fs_.SyncDirectory(StorePath()));
  EXPECT_THAT(seen,
              ElementsAre("open-for-write a", "append a", "sync a", "rename b", "sync-directory "));
}

}  // namespace
}  // namespace repotxn::testing
