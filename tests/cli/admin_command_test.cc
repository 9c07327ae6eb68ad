// Goal: a verb means the same on a store and on a server: the same answers, exit codes and state.
// Method: each story runs twice, once with --store and once with --server; after each refusal the
// whole state (Picture) is what it was.
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "daemon/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

enum class Where { kStore, kServer };

struct Answer {
  ExitCode code;
  std::string out;
  std::string err;
};

class AdminCommandTest : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() == Where::kStore) {
      place_ = {"--store", root()};
      ASSERT_EQ(Run({"init"}).code, ExitCode::kOk);
      return;
    }
    daemon::ServerOptions options;
    options.store = root();
    options.token_file = directory_.path() + "/tokens";
    std::ofstream(options.token_file) << "writer-token-0123456789 rw\nreader-token-0123456789 ro\n";
    auto server = daemon::Server::Start(options);
    ASSERT_OK(server.status());
    server_ = *std::move(server);
    place_ = {"--server", server_->url(), "--token-file", options.token_file};
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    EXPECT_OK(server_->Stop());
  }
  std::string root() const { return directory_.path() + "/store"; }

  Answer Run(Words words) {
    words.insert(words.begin(), place_.begin(), place_.end());
    std::ostringstream out, err;
    const ExitCode code = Main(words, out, err);
    return {code, out.str(), err.str()};
  }
  json RunJson(Words words, ExitCode expected = ExitCode::kOk) {
    words.insert(words.begin(), "--json");
    const Answer answer = Run(words);
    EXPECT_EQ(answer.code, expected) << answer.out << answer.err;
    return json::parse(answer.out, nullptr, /*allow_exceptions=*/false);
  }
  json Picture() {
    json all = {{"top", RunJson({"group", "list"})}, {"keys", RunJson({"key", "list"})}};
    const json listed = RunJson({"repo", "list"});
    for (const json& row : listed["repositories"]) {
      const std::string path = row["path"];
      all[path] = RunJson({"repo", "show", path});
      all[path]["keys"] = RunJson({"key", "list", "--repository", path});
    }
    return all;
  }
  // Refused with the code, and nothing changes.
  void ExpectRefused(const std::vector<std::pair<Words, std::string>>& refusals) {
    const json before = Picture();
    for (const auto& [words, code] : refusals) {
      EXPECT_EQ(RunJson(words, ExitCode::kRefused)["error"]["code"], code) << words[0] << words[1];
    }
    EXPECT_EQ(Picture(), before);
  }
  std::string Id(const std::string& path) { return RunJson({"repo", "show", path})["id"]; }

  testing::TempDirectory directory_;
  Words place_;
  std::unique_ptr<daemon::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(BothWays, AdminCommandTest,
                         ::testing::Values(Where::kStore, Where::kServer),
                         [](const auto& param) {
                           return param.param == Where::kStore ? "Store" : "Server";
                         });

TEST_P(AdminCommandTest, RepositoriesAreMadeMovedDeletedAndBroughtBack) {
  const json made = RunJson({"repo", "create", "a/one.git", "--object-format", "sha256"});
  EXPECT_EQ(made["format"], "sha256");
  const Answer list = Run({"repo", "list"});
  EXPECT_EQ(list.out, made["id"].get<std::string>() + "  sha256  a/one\n");

  RunJson({"repo", "move", "a/one", "b/two"});
  RunJson({"group", "remove", "a"});
  RunJson({"repo", "create", "taken"});
  EXPECT_EQ(RunJson({"repo", "delete", "b/two"})["id"], made["id"]);
  ExpectRefused({{{"repo", "show", "b/two"}, "not_found"},
                 {{"repo", "delete", "b/two"}, "not_found"},
                 {{"repo", "move", "taken", "b"}, "already_exists"},
                 {{"repo", "create", "taken"}, "already_exists"},
                 {{"repo", "undelete", "xyz", "c"}, "invalid_argument"},
                 {{"repo", "undelete", made["id"], "taken"}, "already_exists"},
                 {{"group", "remove", "absent"}, "not_found"}});

  RunJson({"repo", "undelete", made["id"], "c"});
  EXPECT_EQ(Id("c"), made["id"]);
  EXPECT_EQ(Run({"group", "list"}).out, "group  b\nrepository  c\nrepository  taken\n");
}

TEST_P(AdminCommandTest, RepositoriesAreForkedLinkedAndUnlinked) {
  RunJson({"repo", "create", "up"});
  RunJson({"repo", "create", "other"});
  RunJson({"repo", "fork", "up", "fork"});
  RunJson({"repo", "link", "other", "up"});
  EXPECT_EQ(RunJson({"repo", "show", "fork"})["alternates"],
            (json{{{"id", Id("up")}, {"path", "up"}}}));
  EXPECT_EQ(RunJson({"repo", "show", "up"})["members"].size(), 2u);
  ExpectRefused({{{"repo", "delete", "up"}, "failed_precondition"},
                 {{"repo", "link", "other", "up"}, "already_exists"},
                 {{"repo", "link", "up", "fork"}, "failed_precondition"},
                 {{"repo", "unlink", "up", "other"}, "not_found"},
                 {{"repo", "fork", "absent", "x"}, "not_found"}});
  RunJson({"repo", "unlink", "other", "up"});
  RunJson({"repo", "unlink", "fork", "up"});
  RunJson({"repo", "delete", "up"});
  RunJson({"repo", "pool", "fork", "pools/fork"});
  EXPECT_EQ(RunJson({"repo", "show", "pools/fork"})["members"][0]["path"], "fork");
}

TEST_P(AdminCommandTest, RefsAndHeadAreReadAndSetAgainstTheirOldValues) {
  RunJson({"repo", "create", "demo"});
  RunJson({"refs", "set", "demo", "refs/heads/alias", "ref: refs/heads/main", "--old", "absent"});
  RunJson({"refs", "set", "demo", "refs/heads/beta", "ref: refs/heads/main"});
  EXPECT_EQ(Run({"refs", "list", "demo"}).out,
            "ref: refs/heads/main  refs/heads/alias\nref: refs/heads/main  refs/heads/beta\n");
  EXPECT_EQ(RunJson({"refs", "list", "demo", "--limit", "1", "--after", "refs/heads/alias"})["refs"],
            (json{{{"name", "refs/heads/beta"}, {"value", "ref: refs/heads/main"}}}));
  ExpectRefused({{{"refs", "get", "demo", "refs/heads/x"}, "not_found"},
                 {{"refs", "delete", "demo", "refs/heads/x"}, "not_found"},
                 {{"refs", "set", "demo", "refs/heads/x", "rubbish"}, "invalid_argument"},
                 {{"refs", "set", "demo", "refs/heads/x", std::string(40, '7')}, "failed_precondition"},
                 {{"refs", "delete", "demo", "refs/heads/alias", "--old", "ref: refs/heads/x"},
                  "failed_precondition"},
                 {{"head", "set", "demo", "refs/heads/x", "--old", "ref: refs/heads/y"},
                  "failed_precondition"}});
  RunJson({"refs", "delete", "demo", "refs/heads/alias"});
  RunJson({"head", "set", "demo", "refs/heads/next"});
  EXPECT_EQ(RunJson({"head", "get", "demo"}), (json{{"name", "HEAD"}, {"value", "ref: refs/heads/next"}}));
}

TEST_P(AdminCommandTest, KeysLiveInTheirSpaces) {
  RunJson({"repo", "create", "demo"});
  const std::string partition = RunJson({"repo", "show", "demo"})["partition"];
  const std::string raw = "\xff\x01/%";
  for (const Words& space : {Words{}, Words{"--partition", partition}, Words{"--repository", "demo"}}) {
    const auto in = [&space](Words words) {
      words.insert(words.end(), space.begin(), space.end());
      return words;
    };
    RunJson(in({"key", "put", "a", "one"}));
    RunJson(in({"key", "put", raw, raw}));
    EXPECT_EQ(RunJson(in({"key", "get", "a"})), (json{{"key", "a"}, {"value", "one"}}));
    EXPECT_EQ(RunJson(in({"key", "get", raw}))["value_hex"], "ff012f25");
    EXPECT_EQ(RunJson(in({"key", "list", "--first", "b"}))["keys"].size(), 1u);
    ExpectRefused({{in({"key", "get", "absent"}), "not_found"},
                   {in({"key", "put", std::string(2000, 'k'), "x"}), "invalid_argument"}});
    RunJson(in({"key", "delete", raw}));
    EXPECT_EQ(Run(in({"key", "list"})).out, "a  one\n");
  }
}

TEST_P(AdminCommandTest, FilesArePutFromAnArgumentOrAFileAndComeBackByteForByte) {
  RunJson({"repo", "create", "demo"});
  const std::string hook = std::string("#!/bin/sh\nexit 0\n\xff\0", 20);
  const std::string local = directory_.path() + "/hook";
  std::ofstream(local, std::ios::binary) << hook;
  RunJson({"file", "put", "demo", "hooks/update", "--content-of", local, "--mode", "0755"});
  RunJson({"file", "put", "demo", "description", "what it is\n"});
  EXPECT_EQ(Run({"file", "get", "demo", "hooks/update"}).out, hook);
  EXPECT_EQ(RunJson({"file", "get", "demo", "hooks/update"})["mode"], "0755");
  EXPECT_EQ(RunJson({"file", "get", "demo", "description"}),
            (json{{"path", "description"}, {"mode", "0644"}, {"content", "what it is\n"}}));
  EXPECT_EQ(Run({"file", "list", "demo", "hooks"}).out, "update\n");
  EXPECT_THAT(Run({"file", "list", "demo"}).out, HasSubstr("description\n"));
  ExpectRefused({{{"file", "get", "demo", "absent"}, "not_found"},
                 {{"file", "put", "demo", "../x", "y"}, "invalid_argument"},
                 {{"file", "put", "demo", "refs/heads/x", "y"}, "invalid_argument"},
                 {{"file", "put", "demo", "x", "y", "--mode", "9"}, "invalid_argument"},
                 {{"file", "delete", "demo", "absent"}, "not_found"}});
  EXPECT_EQ(Run({"file", "put", "demo", "x"}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"file", "put", "demo", "x", "y", "--content-of", local}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"file", "put", "demo", "x", "--content-of", directory_.path() + "/absent"}).code, ExitCode::kUsage);
  RunJson({"file", "delete", "demo", "hooks/update"});
  EXPECT_EQ(Run({"file", "get", "demo", "hooks/update"}).code, ExitCode::kRefused);
}

TEST_P(AdminCommandTest, HousekeepingIsPlannedRunAndTold) {
  RunJson({"repo", "create", "demo"});
  RunJson({"refs", "set", "demo", "refs/heads/alias", "ref: refs/heads/main"});
  EXPECT_EQ(RunJson({"housekeeping", "plan", "demo"})["plan"], json::array());
  EXPECT_EQ(Run({"housekeeping", "run", "demo"}).out, "");
  EXPECT_EQ(Run({"housekeeping", "run", "demo", "--task", "pack-refs,merge-packs"}).out,
            "pack-refs  nothing to do  -\nmerge-packs  nothing to do  -\n");
  const std::string status = Run({"housekeeping", "status", "demo"}).out;
  // What is remembered is since the store was opened.
  EXPECT_THAT(status, HasSubstr(GetParam() == Where::kServer ? "pack-refs  nothing to do  " : "pack-refs  -  "));
  const json all = RunJson({"housekeeping", "plan"});
  EXPECT_EQ(all["tasks"], json::array());

  EXPECT_EQ(RunJson({"housekeeping", "pause"})["paused"], true);
  EXPECT_EQ(RunJson({"housekeeping", "status"})["paused"], GetParam() == Where::kServer);
  EXPECT_EQ(RunJson({"housekeeping", "resume"})["paused"], false);
  ExpectRefused({{{"housekeeping", "run", "absent"}, "not_found"}, {{"housekeeping", "plan", "absent"}, "not_found"}});
  for (const Words& words : {Words{"housekeeping", "run", "demo", "--expire", "soon"},
                             Words{"housekeeping", "run", "demo", "--task", "gc"},
                             Words{"housekeeping", "run", "demo", "--all", "--task", "repack"},
                             Words{"housekeeping", "plan", "demo", "--all"}, Words{"housekeeping", "pause", "demo"},
                             Words{"repo", "show", "demo", "--all"}}) {
    EXPECT_EQ(Run(words).code, ExitCode::kUsage) << words[1] << " " << words.back();
  }
}

TEST_P(AdminCommandTest, HousekeepingThatSomethingStoodInTheWayOfIsNoSuccess) {
  const std::string id = RunJson({"repo", "create", "demo"})["id"];
  // Not by its symlink, which comes a moment later.
  const std::string packs =
      absl::StrCat(root(), "/repositories/@id/", id.substr(0, 2), "/", id, ".git/objects/pack");
  ASSERT_TRUE(std::ofstream(packs + "/multi-pack-index.d").is_open());
  const Answer answer = Run({"housekeeping", "run", "demo", "--task", "pack-refs,merge-packs", "--expire", "3d"});
  EXPECT_EQ(answer.code, ExitCode::kRefused);
  EXPECT_THAT(answer.out, HasSubstr("pack-refs  nothing to do"));
  EXPECT_THAT(answer.out, HasSubstr("merge-packs  stood in the way  "));
  EXPECT_THAT(answer.err, HasSubstr("multi-pack-index.d"));
  const json told = RunJson({"housekeeping", "run", "--task", "merge-packs"}, ExitCode::kRefused);
  EXPECT_EQ(told["tasks"][0]["path"], "demo");
  EXPECT_EQ(told["error"]["code"], "failed_precondition");
  std::filesystem::remove(packs + "/multi-pack-index.d");
  EXPECT_EQ(Run({"housekeeping", "run", "demo", "--task", "merge-packs"}).code, ExitCode::kOk);
}

TEST_P(AdminCommandTest, ACommandWithOneRequestIdIsDoneOnceAndItsOutcomeIsTold) {
  const json made = RunJson({"repo", "create", "demo", "--request-id", "r-1"});
  EXPECT_EQ(RunJson({"repo", "create", "demo", "--request-id", "r-1"}), made);
  EXPECT_EQ(RunJson({"outcome", made["transaction_id"]})["lsn"], made["lsn"]);
  EXPECT_EQ(RunJson({"outcome", "--request", "r-1", "--issued-at", "2020-01-01T00:00:00Z"})["outcome"],
            "committed");
  EXPECT_EQ(RunJson({"outcome", "nonsense"}, ExitCode::kRefused)["error"]["code"], "invalid_argument");
}

TEST_P(AdminCommandTest, LongListsAreReadToTheirEnd) {
  for (int i = 0; i < 3; ++i) RunJson({"key", "put", std::string(1, static_cast<char>('a' + i)), "v"});
  EXPECT_EQ(RunJson({"key", "list", "--limit", "2"}),
            (json{{"keys", {{{"key", "a"}, {"value", "v"}}, {{"key", "b"}, {"value", "v"}}}}, {"next", "c"}}));
  EXPECT_EQ(RunJson({"key", "list"})["keys"].size(), 3u);
}

// Goal: what only a server can answer.
class ServerCommandTest : public AdminCommandTest {};
INSTANTIATE_TEST_SUITE_P(Only, ServerCommandTest, ::testing::Values(Where::kServer));

TEST_P(ServerCommandTest, TellsMissingRightsAndMissingServersApart) {
  const std::string file = directory_.path() + "/token";
  const auto with = [&](const std::string& token, Words words) {
    std::ofstream(file) << token << "\n";
    words.insert(words.begin(), {"--json", "--server", server_->url(), "--token-file", file});
    std::ostringstream out, err;
    const ExitCode code = Main(words, out, err);
    return std::make_pair(code, json::parse(out.str(), nullptr, false)["error"]["code"]);
  };
  const json before = Picture();
  EXPECT_EQ(with("reader-token-0123456789", {"repo", "create", "x"}),
            std::make_pair(ExitCode::kRefused, json("permission_denied")));
  EXPECT_EQ(with("wrong-token-00123456789", {"repo", "list"}),
            std::make_pair(ExitCode::kRefused, json("unauthenticated")));
  EXPECT_EQ(with("", {"repo", "list"}), std::make_pair(ExitCode::kUsage, json("invalid_argument")));
  EXPECT_EQ(Picture(), before);

  EXPECT_OK(server_->Stop());
  const Answer gone = Run({"repo", "list"});
  EXPECT_EQ(gone.code, ExitCode::kCannotOpen);
  EXPECT_THAT(gone.err, HasSubstr("no answer"));
  server_.reset();
}

// Goal: the log of a closed store can be read entry by entry.
class LogCommandTest : public AdminCommandTest {};
INSTANTIATE_TEST_SUITE_P(Only, LogCommandTest, ::testing::Values(Where::kStore));

TEST_P(LogCommandTest, ShowsWhatACrashedStoreRetains) {
  // Copied while it is open: what a crash leaves. A clean close trims the log.
  daemon::ServerOptions options;
  options.store = directory_.path() + "/live";
  auto server = daemon::Server::Start(options);
  ASSERT_OK(server.status());
  place_ = {"--server", (*server)->url()};
  RunJson({"repo", "create", "demo", "--request-id", "r-1"});
  RunJson({"refs", "set", "demo", "refs/heads/alias", "ref: refs/heads/main"});
  RunJson({"key", "put", "k", "value"});
  RunJson({"key", "put", "k", "value", "--repository", "demo"});
  const std::string id = Id("demo");
  std::filesystem::copy(options.store, directory_.path() + "/copy",
                        std::filesystem::copy_options::recursive |
                            std::filesystem::copy_options::copy_symlinks);
  place_ = {"--store", directory_.path() + "/copy"};

  const json entries = RunJson({"log", "list"})["entries"];
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0]["lsn"], 1);
  EXPECT_THAT(entries[0]["summary"].get<std::string>(), HasSubstr("create_repository 1"));
  EXPECT_EQ(RunJson({"log", "list", "--from", "2", "--limit", "1"})["entries"], json::array({entries[1]}));
  const json shown = RunJson({"log", "show", "2"});
  EXPECT_EQ(shown["transaction_id"], entries[1]["transaction_id"]);
  EXPECT_EQ(shown["note"]["ref_changes"][0]["name"], "refs/heads/alias");
  EXPECT_EQ(shown["note"]["ref_changes"][0]["new"], "ref: refs/heads/main");
  const json put = RunJson({"log", "show", "3"})["operations"][0];
  EXPECT_EQ(put["operation"], "put_key");
  EXPECT_EQ(put["key"], "k");
  EXPECT_EQ(put["bytes"], 5);
  const json of_repository = RunJson({"log", "show", "4"})["operations"][0];
  EXPECT_EQ(of_repository["key"], "k");
  EXPECT_EQ(of_repository["repository"], id);
  EXPECT_EQ(RunJson({"log", "show", "1"})["request_id"], "r-1");
  EXPECT_EQ(RunJson({"log", "show", "9"}, ExitCode::kRefused)["error"]["code"], "not_found");

  EXPECT_OK((*server)->Stop());
}

}  // namespace
}  // namespace repotxn::cli
