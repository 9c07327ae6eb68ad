// Goal: each command answers with the right exit code and a readable or parseable answer, and
// `verify` tells every fault that is planted in a store on a real disk, changes nothing in its
// repositories, and is content with a store in order.
#include "cli/commands.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"
#include "txn/store.h"

namespace repotxn::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Answer {
  ExitCode code;
  std::string out;
  std::string err;
};

class CommandsTest : public ::testing::Test {
 protected:
  std::string root() const { return directory_.path() + "/store"; }

  Answer Run(std::vector<std::string> words) {
    words.insert(words.begin(), {"--store", root()});
    std::ostringstream out, err;
    const ExitCode code = Main(words, out, err);
    return {code, out.str(), err.str()};
  }
  nlohmann::json RunJson(std::vector<std::string> words, ExitCode expected) {
    words.push_back("--json");
    const Answer answer = Run(words);
    EXPECT_EQ(answer.code, expected) << answer.out << answer.err;
    return nlohmann::json::parse(answer.out, nullptr, /*allow_exceptions=*/false);
  }

  // A store with two repositories, at rest.
  void MakeStore() {
    ASSERT_EQ(Run({"init"}).code, ExitCode::kOk);
    ASSERT_EQ(Run({"repo", "create", "demo"}).code, ExitCode::kOk);
    ASSERT_EQ(Run({"repo", "create", "group/wide", "--object-format", "sha256"}).code,
              ExitCode::kOk);
  }
  void Write(const std::string& path, const std::string& content) {
    const fs::path full = fs::path(root()) / path;
    fs::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << content;
  }
  // "check subject" of everything that verify finds.
  std::vector<std::string> Findings() {
    const nlohmann::json document = RunJson({"verify"}, ExitCode::kFoundWrong);
    std::vector<std::string> found;
    for (const nlohmann::json& finding : document["findings"]) {
      found.push_back(finding["check"].get<std::string>() + " " +
                      finding["subject"].get<std::string>());
    }
    return found;
  }
  // Path and content of every file below repositories/.
  std::map<std::string, std::string> RepositoryFiles() {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root() + "/repositories")) {
      std::string content;
      if (entry.is_symlink()) {
        content = fs::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        std::ifstream in(entry.path(), std::ios::binary);
        content.assign(std::istreambuf_iterator<char>(in), {});
      }
      files[entry.path().string()] = content;
    }
    return files;
  }

  testing::TempDirectory directory_;
};

TEST_F(CommandsTest, CreatesListsAndShowsRepositories) {
  MakeStore();

  const Answer list = Run({"repo", "list"});
  EXPECT_EQ(list.code, ExitCode::kOk);
  EXPECT_THAT(list.out, HasSubstr("sha1  demo\n"));
  EXPECT_THAT(list.out, HasSubstr("sha256  group/wide\n"));

  const nlohmann::json shown = RunJson({"repo", "show", "group/wide.git"}, ExitCode::kOk);
  EXPECT_EQ(shown["path"], "group/wide");
  EXPECT_EQ(shown["format"], "sha256");
  EXPECT_EQ(shown["head"], "ref: refs/heads/main");
  EXPECT_THAT(shown["refs"], IsEmpty());
  EXPECT_EQ(shown["id"].get<std::string>().size(), 32u);
}

TEST_F(CommandsTest, ExitCodesTellUsageAbsenceAndRefusalApart) {
  EXPECT_EQ(Run({"frobnicate"}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"repo", "list"}).code, ExitCode::kCannotOpen);
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kCannotOpen);
  EXPECT_FALSE(fs::exists(root())) << "a question made a store";
  MakeStore();

  EXPECT_EQ(Run({"init"}).code, ExitCode::kRefused);
  EXPECT_EQ(Run({"repo", "create", "demo"}).code, ExitCode::kRefused);
  EXPECT_EQ(Run({"repo", "create", "demo/below"}).code, ExitCode::kRefused);
  EXPECT_EQ(Run({"repo", "show", "absent"}).code, ExitCode::kRefused);
  EXPECT_EQ(Run({"verify", "absent"}).code, ExitCode::kRefused);
  const nlohmann::json error = RunJson({"repo", "show", "absent"}, ExitCode::kRefused);
  EXPECT_EQ(error["error"]["code"], "not_found");
}

TEST_F(CommandsTest, ListsAndDropsConsumers) {
  MakeStore();
  {
    auto store = txn::Store::Open(root(), {});
    ASSERT_THAT(store, testing::IsOk());
    ASSERT_THAT((*store)->CreateConsumer("webhook", {}), testing::IsOk());
    for (const char* group : {"one", "two"}) {
      ASSERT_TRUE((*store)->Run({}, [&](txn::Transaction& txn) { return txn.EnsureGroup(group); }).committed());
    }
    ASSERT_THAT((*store)->CreateConsumer("mail", {}), testing::IsOk());
    ASSERT_THAT((*store)->Close(), testing::IsOk());
  }

  const nlohmann::json list = RunJson({"consumers", "list"}, ExitCode::kOk);
  ASSERT_EQ(list["consumers"].size(), 2u);
  EXPECT_EQ(list["consumers"][0]["name"], "mail");
  EXPECT_EQ(list["consumers"][0]["lag_entries"], 0);
  EXPECT_EQ(list["consumers"][0]["dropped"], false);
  EXPECT_EQ(list["consumers"][1]["lag_entries"], 2);
  EXPECT_THAT(Run({"consumers", "list"}).out,
              HasSubstr("  behind by 2 entries, "));
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"consumers", "drop", "webhook"}).code, ExitCode::kOk);
  EXPECT_EQ(RunJson({"consumers", "drop", "webhook"}, ExitCode::kRefused)["error"]["code"], "not_found");
  EXPECT_EQ(RunJson({"consumers", "list"}, ExitCode::kOk)["consumers"].size(), 1u);
  EXPECT_EQ(Run({"consumers", "drop"}).code, ExitCode::kUsage);
}

TEST_F(CommandsTest, VerifyIsContentWithAStoreAtRestAndLeavesItsRepositoriesAlone) {
  MakeStore();
  const auto before = RepositoryFiles();

  const Answer verify = Run({"verify"});
  const nlohmann::json document = RunJson({"verify"}, ExitCode::kOk);

  EXPECT_EQ(verify.code, ExitCode::kOk) << verify.out;
  EXPECT_THAT(verify.out, HasSubstr("everything is fine"));
  EXPECT_EQ(document["looked_at"]["repositories"], 2);
  EXPECT_EQ(document["looked_at"]["fsck"], 2);
  EXPECT_GE(document["looked_at"]["refs"], 2);
  EXPECT_EQ(RepositoryFiles(), before);
}

// B8: without the clean marker nothing else is judged, nothing is mended, and recover puts it
// right.
TEST_F(CommandsTest, VerifyOfACrashedStoreAsksForRecoveryAndMendsNothing) {
  MakeStore();
  fs::remove(root() + "/CLEAN");
  Write("staging/half-done", "x");

  EXPECT_THAT(Findings(), ::testing::ElementsAre("clean-marker CLEAN"));
  EXPECT_TRUE(fs::exists(root() + "/staging/half-done"));
  const nlohmann::json recovered = RunJson({"recover"}, ExitCode::kOk);
  EXPECT_EQ(recovered["was_clean"], false);
  EXPECT_EQ(Run({"verify"}).code, ExitCode::kOk);
  EXPECT_FALSE(fs::exists(root() + "/staging/half-done"));
}

// CORE-17, C011
TEST_F(CommandsTest, VerifyTellsLeftOversBeforeOpeningWipesThem) {
  MakeStore();
  Write("staging/half-done", "x");
  Write("snapshots/old/HEAD", "x");
  Write("lost-found/thing", "x");
  Write("stranger", "x");

  const std::vector<std::string> found = Findings();

  for (const char* expected : {"left-over staging/half-done", "left-over snapshots/old",
                               "left-over lost-found/thing", "layout stranger"}) {
    EXPECT_THAT(found, Contains(expected));
  }
}

// C001, C002, C074
TEST_F(CommandsTest, VerifyTellsLocksInRepositoriesAndWhatTheCatalogueDoesNotKnow) {
  MakeStore();
  Write("repositories/demo.git/packed-refs.lock", "");
  fs::create_symlink("@id/00/nothing.git", root() + "/repositories/ghost.git");
  fs::remove(root() + "/repositories/group/wide.git");

  const std::vector<std::string> found = Findings();

  EXPECT_THAT(found, Contains(::testing::EndsWith("packed-refs.lock")));
  EXPECT_THAT(found, Contains("catalogue repositories/ghost.git"));
  EXPECT_THAT(found, Contains("catalogue group/wide"));
}

// C158: damage is found without anybody happening to read that object.
TEST_F(CommandsTest, VerifyTellsARefThatNamesAnObjectThatIsNotThere) {
  MakeStore();
  Write("repositories/demo.git/refs/heads/main", "1234567890123456789012345678901234567890\n");
  EXPECT_THAT(Findings(), Contains("fsck demo"));
}

// C106, C107: a log that lost its end looks whole; the clean marker knows better.
TEST_F(CommandsTest, VerifyTellsADamagedLogAndDoesNotOpenTheStore) {
  MakeStore();
  for (const auto& entry : fs::directory_iterator(root() + "/log")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(0);
    file << std::string(200, 'x');
  }

  EXPECT_THAT(Findings(), Contains(StartsWith("log ")));
  EXPECT_TRUE(fs::exists(root() + "/CLEAN")) << "the store was opened";
  EXPECT_EQ(Run({"log", "verify"}).code, ExitCode::kFoundWrong);
}

TEST_F(CommandsTest, LogVerifyCountsWhatAClosedStoreRetains) {
  MakeStore();
  const nlohmann::json document = RunJson({"log", "verify"}, ExitCode::kOk);
  EXPECT_TRUE(document["ok"].get<bool>());
  EXPECT_GE(document["log"]["segments"], 1);
  EXPECT_EQ(document["log"]["torn_bytes"], 0);
}

// LOG-05
TEST_F(CommandsTest, RefusesAStoreThatSomebodyHasOpen) {
  MakeStore();
  auto store = txn::Store::Open(root(), txn::StoreOptions());
  ASSERT_OK(store.status());

  const Answer verify = Run({"verify"});

  EXPECT_EQ(verify.code, ExitCode::kCannotOpen);
  EXPECT_THAT(verify.err, HasSubstr("in use"));
  EXPECT_EQ(Run({"log", "verify"}).code, ExitCode::kCannotOpen);
  EXPECT_OK((*store)->Close());
}

TEST_F(CommandsTest, HelpAndVersionNeedNoStore) {
  std::ostringstream out, err;
  EXPECT_EQ(Main({"--version"}, out, err), ExitCode::kOk);
  EXPECT_THAT(out.str(), StartsWith("repotxn "));
  EXPECT_EQ(Main({"--help"}, out, err), ExitCode::kOk);
  EXPECT_THAT(out.str(), HasSubstr("usage:"));
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace repotxn::cli
