// Stock clients against the server: what they push is what they and others fetch.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/pkt_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/daemon/served_store.h"

namespace repotxn::daemon {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using repotxn::testing::GitClient;
using repotxn::testing::GitOutcome;
using repotxn::testing::ServedStore;
using repotxn::testing::StatusOfAnswer;

// Goal: everyday work of a Git client. Method: the stock program, in several protocol versions.
// Fails when a client is refused, sees another state than was pushed, or gets a damaged clone.
class PushFetchTest : public ServedStore {
 protected:
  void SetUp() override { Serve(); }
  // A work tree with one commit that is pushed to `repository`.
  std::string Start(const std::string& tree, const std::string& repository) {
    git_.Init(tree);
    const std::string id = git_.Commit(tree, "a", "first\n");
    git_.Must(tree, {"remote", "add", "origin", Url(repository)});
    git_.Must(tree, {"push", "-q", "origin", "main"});
    return id;
  }
};

// CORE-07, MW-10 to MW-13
TEST_F(PushFetchTest, ClonesWhatWasPushedInEveryProtocolVersion) {
  const std::string id = Start("one", "group/demo");
  for (const char* version : {"0", "1", "2"}) {
    const std::string tree = absl::StrCat("clone", version);
    git_.Must("", {"-c", absl::StrCat("protocol.version=", version), "clone", "-q",
                   Url("group/demo"), git_.Tree(tree)});
    EXPECT_EQ(git_.Must(tree, {"rev-parse", "HEAD"}), id);
    EXPECT_EQ(git_.Must(tree, {"symbolic-ref", "HEAD"}), "refs/heads/main");
    git_.Must(tree, {"fsck", "--strict"});
  }
  git_.Must("", {"clone", "-q", absl::StrCat(server_->url(), "/group/demo"), git_.Tree("plain")});
}

TEST_F(PushFetchTest, FetchesUpdatesForcedUpdatesTagsAndDeletions) {
  Start("one", "demo");
  git_.Must("", {"clone", "-q", Url("demo"), git_.Tree("two")});
  const std::string second = git_.Commit("one", "b", "second\n");
  git_.Must("one", {"tag", "-a", "-m", "release", "v1"});
  git_.Must("one", {"push", "-q", "origin", "main", "v1", "main:refs/heads/topic"});
  git_.Must("two", {"pull", "-q"});
  EXPECT_EQ(git_.Must("two", {"rev-parse", "HEAD"}), second);
  EXPECT_THAT(Refs("demo"), HasSubstr("refs/tags/v1^{}"));

  git_.Must("one", {"reset", "-q", "--hard", "HEAD~1"});
  const std::string other = git_.Commit("one", "c", "other\n");
  EXPECT_FALSE(git_.Run("one", {"push", "origin", "main"}).ok());
  git_.Must("one", {"push", "-q", "--force", "origin", "main"});
  git_.Must("one", {"push", "-q", "origin", ":topic", ":v1"});
  git_.Must("two", {"fetch", "-q", "--prune", "--force", "origin"});
  EXPECT_EQ(git_.Must("two", {"rev-parse", "origin/main"}), other);
  EXPECT_THAT(Refs("demo"), Not(AnyOf(HasSubstr("topic"), HasSubstr("v1"))));
}

TEST_F(PushFetchTest, KeepsEverythingOverARestart) {
  const std::string id = Start("one", "demo");
  Restart();
  EXPECT_THAT(Refs("demo"), HasSubstr(id));
  git_.Must("", {"clone", "-q", Url("demo"), git_.Tree("two")});
}

TEST_F(PushFetchTest, StreamsAPackLargerThanEveryBuffer) {
  git_.Init("one");
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 6'000'000; ++i) {
    state = state * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(state >> 24));
  }
  git_.Commit("one", "noise", noise);
  // Above http.postBuffer: probe, then a chunked body.
  git_.Must("one", {"push", "-q", Url("big"), "main"});
  git_.Must("", {"clone", "-q", Url("big"), git_.Tree("two")});
  EXPECT_EQ(std::filesystem::file_size(git_.Tree("two") + "/noise"), noise.size());
}

TEST_F(PushFetchTest, ShowsAnEmptyRepositoryAndLetsItGrow) {
  EXPECT_EQ(StatusOfAnswer(PostJson("/api/repositories", "{\"path\":\"empty\"}")), 201);
  git_.Must("", {"clone", "-q", Url("empty"), git_.Tree("one")});
  git_.Must("one", {"checkout", "-q", "-b", "main"});
  git_.Commit("one", "a", "x");
  git_.Must("one", {"push", "-q", "origin", "main"});
  EXPECT_THAT(Refs("empty"), HasSubstr("HEAD"));
}

TEST_F(PushFetchTest, ServesSha256Repositories) {
  EXPECT_EQ(StatusOfAnswer(
                PostJson("/api/repositories", "{\"path\":\"wide\",\"format\":\"sha256\"}")),
            201);
  git_.Init("one", {"--object-format=sha256"});
  const std::string id = git_.Commit("one", "a", "x");
  ASSERT_EQ(id.size(), 64u);
  git_.Must("one", {"push", "-q", Url("wide"), "main"});
  git_.Must("", {"clone", "-q", Url("wide"), git_.Tree("two")});
  EXPECT_EQ(git_.Must("two", {"rev-parse", "HEAD"}), id);

  // A client of the other format is told so, and nothing changes.
  git_.Init("narrow");
  git_.Commit("narrow", "a", "x");
  EXPECT_FALSE(git_.Run("narrow", {"push", Url("wide"), "main:refs/heads/n"}).ok());
  EXPECT_THAT(Refs("wide"), Not(HasSubstr("refs/heads/n")));
}

// C098
TEST_F(PushFetchTest, ServesShallowAndPartialClones) {
  Start("one", "demo");
  git_.Commit("one", "b", "second\n");
  git_.Commit("one", "c", "third\n");
  git_.Must("one", {"push", "-q", "origin", "main"});

  git_.Must("", {"clone", "-q", "--depth", "1", Url("demo"), git_.Tree("shallow")});
  EXPECT_EQ(git_.Must("shallow", {"rev-list", "--count", "HEAD"}), "1");
  const std::string pushed = git_.Commit("shallow", "d", "from shallow\n");
  git_.Must("shallow", {"push", "-q", "origin", "main"});
  EXPECT_THAT(Refs("demo"), HasSubstr(pushed));
  git_.Must("shallow", {"fetch", "-q", "--unshallow"});
  EXPECT_EQ(git_.Must("shallow", {"rev-list", "--count", "HEAD"}), "4");

  git_.Must("", {"clone", "-q", "--no-checkout", "--filter=blob:none", Url("demo"),
                 git_.Tree("partial")});
  EXPECT_THAT(git_.Must("partial", {"rev-list", "--objects", "--missing=print", "HEAD"}),
              HasSubstr("?"));
  git_.Must("partial", {"checkout", "-q", "main"});
}

// C083, C084
TEST_F(PushFetchTest, SetsHeadOfAnEmptyRepositoryToWhatWasPushed) {
  git_.Init("one");
  git_.Commit("one", "a", "x");
  git_.Must("one", {"push", "-q", Url("old"), "main:refs/heads/dev", "main:refs/heads/master"});
  EXPECT_THAT(git_.Must("", {"ls-remote", "--symref", Url("old"), "HEAD"}),
              HasSubstr("ref: refs/heads/master"));
  git_.Must("one", {"push", "-q", Url("odd"), "main:refs/heads/trunk"});
  EXPECT_THAT(git_.Must("", {"ls-remote", "--symref", Url("odd"), "HEAD"}),
              HasSubstr("ref: refs/heads/trunk"));
  // Not once a branch is there.
  git_.Must("one", {"push", "-q", Url("odd"), "main:refs/heads/master"});
  EXPECT_THAT(git_.Must("", {"ls-remote", "--symref", Url("odd"), "HEAD"}),
              HasSubstr("ref: refs/heads/trunk"));
}

// B17: a multi-pack-index that ends every Git program that reads it ends no push and no fetch.
TEST_F(PushFetchTest, GoesOnWhenWhatGitDerivesIsDamaged) {
  Start("one", "demo");
  git_.Commit("one", "b", "second\n");
  git_.Must("one", {"push", "-q", "origin", "main"});
  const std::string live = RepositoryDirectory();
  git_.Must("", {"-C", live, "multi-pack-index", "write", "--bitmap"});
  const std::string index = live + "/objects/pack/multi-pack-index";
  std::filesystem::permissions(index, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  std::ofstream(index, std::ios::in | std::ios::out) << "XXXX";
  ASSERT_FALSE(git_.Run("", {"-C", live, "rev-list", "--objects", "--all"}).ok());

  const std::string third = git_.Commit("one", "c", "third\n");
  git_.Must("one", {"push", "-q", "origin", "main"});
  git_.Must("", {"clone", "-q", Url("demo"), git_.Tree("two")});
  EXPECT_EQ(git_.Must("two", {"rev-parse", "HEAD"}), third);
}

// C034 – two first pushes; here sixteen.
TEST_F(PushFetchTest, SixteenClientsPushTheirOwnBranchesAtOnce) {
  constexpr int kClients = 16;
  for (int i = 0; i < kClients; ++i) {
    git_.Init(absl::StrCat("t", i));
    git_.Commit(absl::StrCat("t", i), "a", absl::StrCat("client ", i));
  }
  std::vector<std::thread> clients;
  std::vector<GitOutcome> outcomes(kClients);
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      outcomes[static_cast<size_t>(i)] =
          git_.Run(absl::StrCat("t", i),
                   {"push", Url("shared"), absl::StrCat("main:refs/heads/b", i)});
    });
  }
  for (std::thread& client : clients) client.join();
  const std::string refs = Refs("shared") + "\n";
  for (int i = 0; i < kClients; ++i) {
    EXPECT_TRUE(outcomes[static_cast<size_t>(i)].ok()) << outcomes[static_cast<size_t>(i)].out;
    EXPECT_THAT(refs, HasSubstr(absl::StrCat("refs/heads/b", i, "\n"))) << i;
  }
}

// C024 – a lost update is never reported as done. [MW-07, MW-08]
TEST_F(PushFetchTest, OfSixteenClientsOnOneBranchExactlyOneWinsAndTheOthersLearnWhy) {
  constexpr int kClients = 16;
  Start("base", "race");
  for (int i = 0; i < kClients; ++i) {
    git_.Must("", {"clone", "-q", Url("race"), git_.Tree(absl::StrCat("t", i))});
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<GitOutcome> outcomes(kClients);
    std::vector<std::string> ids;
    for (int i = 0; i < kClients; ++i) {
      git_.Must(absl::StrCat("t", i), {"fetch", "-q"});
      git_.Must(absl::StrCat("t", i), {"reset", "-q", "--hard", "origin/main"});
      ids.push_back(git_.Commit(absl::StrCat("t", i), "f", absl::StrCat(round, " of ", i)));
    }
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&, i] {
        outcomes[static_cast<size_t>(i)] =
            git_.Run(absl::StrCat("t", i), {"push", "origin", "main"});
      });
    }
    for (std::thread& client : clients) client.join();
    int winners = 0;
    for (int i = 0; i < kClients; ++i) {
      const GitOutcome& outcome = outcomes[static_cast<size_t>(i)];
      if (outcome.ok()) {
        ++winners;
        EXPECT_THAT(Refs("race"), HasSubstr(ids[static_cast<size_t>(i)]));
      } else {
        // Refused by the server, or by the client itself when it came late.
        EXPECT_THAT(outcome.out, AnyOf(HasSubstr("changed by transaction"),
                                       HasSubstr("fetch first")));
      }
    }
    EXPECT_EQ(winners, 1) << "round " << round;
  }
}

TEST_F(PushFetchTest, ServesWhatAVersionZeroClientWasShownThoughItIsNoTipAnyMore) {
  const std::string id = Start("one", "demo");
  // The advertisement that a client saw.
  EXPECT_THAT(Get("/demo.git/info/refs?service=git-upload-pack"), HasSubstr(id));
  git_.Must("one", {"commit", "-q", "--amend", "-m", "another"});
  git_.Must("one", {"push", "-q", "--force", "origin", "main"});

  const auto want = [&](const std::string& oid) {
    std::string line = absl::StrCat("want ", oid, " side-band-64k ofs-delta\n");
    std::string body;
    AppendPkt(line, &body);
    AppendFlush(&body);
    AppendPkt("done\n", &body);
    return testing::RawExchange(
        port(), testing::PostHead("/demo.git/git-upload-pack",
                                  absl::StrCat("Content-Type: application/x-git-upload-pack-request"
                                               "\r\nContent-Length: ",
                                               body.size(), "\r\n")) +
                    body);
  };
  EXPECT_THAT(want(id), HasSubstr("PACK"));
  EXPECT_THAT(want(std::string(40, 'a')), HasSubstr("not our ref"));
}

}  // namespace
}  // namespace repotxn::daemon
