// What a push may not do, and what it is told: names, policy, atomicity, damaged requests, hooks.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/pkt_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/daemon/served_store.h"
#include "txn/store.h"

namespace repotxn::daemon {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using repotxn::testing::GitOutcome;
using repotxn::testing::IsOk;
using repotxn::testing::PostHead;
using repotxn::testing::RawConnection;
using repotxn::testing::RawExchange;
using repotxn::testing::ServedStore;
using repotxn::testing::StatusOfAnswer;

const char kZero[] = "0000000000000000000000000000000000000000";
const char kMissing[] = "1234567890123456789012345678901234567890";

// Goal: a refused push changes nothing, leaves nothing in staging (checked after every test), and
// says why. Method: stock clients where they can do it, bytes on a socket where they would refuse
// themselves.
class PushRulesTest : public ServedStore {
 protected:
  void SetUp() override {
    Serve();
    git_.Init("one");
    first_ = git_.Commit("one", "a", "first\n");
    git_.Must("one", {"remote", "add", "origin", Url("demo")});
    git_.Must("one", {"push", "-q", "origin", "main"});
    before_ = Refs("demo");
  }
  // Puts files into the repository through a transaction, with the server stopped in between.
  void PutFiles(const std::vector<std::pair<std::string, txn::FileValue>>& files) {
    ASSERT_THAT(server_->Stop(), IsOk());
    server_.reset();
    absl::StatusOr<std::unique_ptr<txn::Store>> store = txn::Store::Open(options_.store, {});
    ASSERT_THAT(store, IsOk());
    const txn::CommitResult result =
        (*store)->Run({}, [&](txn::Transaction& txn) -> absl::Status {
          REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path,
                                   txn::RepositoryPath::Parse("demo"));
          REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, txn.OpenRepository(path));
          for (const auto& [name, value] : files) {
            REPOTXN_RETURN_IF_ERROR(txn.PutFile(id, name, value));
          }
          return absl::OkStatus();
        });
    ASSERT_THAT(result.status, IsOk());
    ASSERT_THAT((*store)->Close(), IsOk());
    store->reset();
    Serve();
    git_.Must("one", {"remote", "set-url", "origin", Url("demo")});
  }
  void Configure(const std::string& more) {
    PutFiles({{"config", {absl::StrCat("[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
                                       more),
                          0644}}});
  }
  void Hook(const std::string& name, const std::string& script) {
    PutFiles({{absl::StrCat("hooks/", name), {absl::StrCat("#!/bin/sh\n", script, "\n"), 0755}}});
  }
  std::string PushRaw(const std::string& body, const std::string& repository = "demo") {
    return RawExchange(port(),
                       PostHead(absl::StrCat("/", repository, ".git/git-receive-pack"),
                                absl::StrCat("Content-Type: application/x-git-receive-pack-request"
                                             "\r\nContent-Length: ",
                                             body.size(), "\r\n")) +
                           body);
  }
  static std::string Command(const std::string& before, const std::string& after,
                             const std::string& name) {
    std::string line = absl::StrCat(before, " ", after, " ", name);
    line.push_back('\0');
    std::string body;
    AppendPkt(line + " report-status object-format=sha1", &body);
    AppendFlush(&body);
    return body;
  }
  // A pack of no objects, as clients send it.
  static std::string EmptyPack() {
    std::string pack("PACK\0\0\0\2\0\0\0\0", 12);
    pack += "\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";
    return pack;
  }
  void ExpectUnchanged() { EXPECT_EQ(Refs("demo"), before_); }

  std::string first_;
  std::string before_;
};

// C096
TEST_F(PushRulesTest, RefusesEverythingOrNothingWithAtomic) {
  git_.Commit("one", "b", "second\n");
  git_.Must("one", {"push", "-q", "origin", "main"});
  git_.Must("one", {"reset", "-q", "--hard", first_});
  git_.Commit("one", "c", "other\n");
  before_ = Refs("demo");
  std::string body;
  std::string line = absl::StrCat(kZero, " ", first_, " refs/heads/new");
  line.push_back('\0');
  AppendPkt(line + " report-status atomic", &body);
  AppendPkt(absl::StrCat(first_, " ", first_, " refs/heads/main"), &body);
  AppendFlush(&body);

  EXPECT_THAT(PushRaw(body + EmptyPack()),
              AllOf(HasSubstr("ng refs/heads/new atomic transaction failed"),
                    HasSubstr("ng refs/heads/main failed to update ref")));
  ExpectUnchanged();
}

// C096
TEST_F(PushRulesTest, WithoutAtomicTheGoodOnesGoOn) {
  std::string body;
  std::string line = absl::StrCat(kZero, " ", first_, " refs/heads/new");
  line.push_back('\0');
  AppendPkt(line + " report-status", &body);
  AppendPkt(absl::StrCat(kZero, " ", first_, " refs/heads/main"), &body);
  AppendFlush(&body);

  EXPECT_THAT(PushRaw(body + EmptyPack()),
              AllOf(HasSubstr("ok refs/heads/new"), HasSubstr("ng refs/heads/main failed")));
  EXPECT_THAT(Refs("demo"), HasSubstr("refs/heads/new"));
}

// C045 – names that reach outside their root.
TEST_F(PushRulesTest, RefusesNamesThatAreNoRefs) {
  for (const char* name :
       {"HEAD", "refs/heads/../../x", "refs/heads/a..b", "refs/heads/.a", "refs/heads/a.lock",
        "heads/a", "refs/heads/a b", "refs/heads//a", "refs/heads", "/etc/passwd", "config"}) {
    EXPECT_THAT(PushRaw(Command(kZero, first_, name) + EmptyPack()), HasSubstr("funny refname"))
        << name;
  }
  ExpectUnchanged();
}

TEST_F(PushRulesTest, RefusesARefThatIsADirectoryOfAnother) {
  const GitOutcome outcome = git_.Run("one", {"push", "origin", "main:refs/heads/main/sub"});
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.out, HasSubstr("failed to update ref"));
  ExpectUnchanged();
}

TEST_F(PushRulesTest, LetsARefTakeThePlaceOfADeletedDirectory) {
  git_.Must("one", {"push", "-q", "origin", "main:refs/heads/d/f"});
  git_.Must("one", {"push", "-q", "origin", ":refs/heads/d/f", "main:refs/heads/d"});
  EXPECT_THAT(Refs("demo"), HasSubstr("refs/heads/d"));
}

TEST_F(PushRulesTest, RefusesTipsThatAreMissingOrNoCommits) {
  EXPECT_THAT(PushRaw(Command(kZero, kMissing, "refs/heads/x") + EmptyPack()),
              HasSubstr("missing necessary objects"));
  const std::string tree = git_.Must("one", {"rev-parse", "HEAD^{tree}"});
  EXPECT_THAT(PushRaw(Command(kZero, tree, "refs/heads/x") + EmptyPack()),
              HasSubstr("non-commit object"));
  ExpectUnchanged();
  EXPECT_THAT(PushRaw(Command(kZero, tree, "refs/tags/tree") + EmptyPack()),
              HasSubstr("ok refs/tags/tree"));
}

TEST_F(PushRulesTest, RefusesDamagedPacksAndPacksWithoutWhatTheyName) {
  EXPECT_THAT(PushRaw(Command(kZero, kMissing, "refs/heads/x") + "PACKgarbage"),
              AllOf(HasSubstr("unpack "), HasSubstr("ng refs/heads/x unpacker error")));
  EXPECT_THAT(PushRaw(Command(kZero, first_, "refs/heads/x")), HasSubstr("unpacker error"));
  EXPECT_THAT(PushRaw(Command(kZero, first_, "refs/heads/x") + EmptyPack() + "more"),
              HasSubstr("unpacker error"));

  // A commit whose tree and parent stay at home.
  git_.Commit("one", "b", "second\n");
  git_.Must("one", {"config", "core.looseCompression", "0"});
  const GitOutcome pack = git_.RunProgram(
      "one", {"sh", "-c", "git rev-parse HEAD | git pack-objects -q --stdout > ../pack"});
  ASSERT_TRUE(pack.ok()) << pack.out;
  std::ifstream file(git_.home() + "/pack", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(PushRaw(Command(kZero, git_.Must("one", {"rev-parse", "HEAD"}), "refs/heads/x") +
                      bytes),
              HasSubstr("ng refs/heads/x missing necessary objects"));
  ExpectUnchanged();
}

TEST_F(PushRulesTest, RefusesMalformedRequestsAndTakesTheProbe) {
  EXPECT_EQ(StatusOfAnswer(PushRaw("0000")), 200);
  EXPECT_EQ(StatusOfAnswer(PushRaw("zzzz")), 400);
  EXPECT_EQ(StatusOfAnswer(PushRaw("")), 400);
  EXPECT_EQ(StatusOfAnswer(PushRaw(Command(kZero, first_, "refs/heads/x").substr(0, 60))), 400);
  EXPECT_EQ(StatusOfAnswer(RawExchange(
                port(), PostHead("/demo.git/git-receive-pack", "Content-Length: 4\r\n") + "0000")),
            415);
  ExpectUnchanged();
}

// C011 – cancelled pushes leave nothing behind. [C001, MW-09]
TEST_F(PushRulesTest, ForgetsAPushWhoseClientGoesAway) {
  {
    RawConnection connection(port());
    connection.Send(PostHead("/demo.git/git-receive-pack",
                             "Content-Type: application/x-git-receive-pack-request\r\n"
                             "Content-Length: 1000000\r\n") +
                    Command(kZero, first_, "refs/heads/x") + std::string("PACK\0\0\0\2", 8));
    connection.EndSending();
    connection.Read();
  }
  ExpectUnchanged();
}

// MW-03
TEST_F(PushRulesTest, RefusesAddressesOutsideTheStore) {
  for (const char* path : {"/../demo.git", "/a/../demo.git", "//demo.git", "/a%2fdemo.git",
                           "/%2e%2e/demo.git", "/.git", "/@id/aa.git", "/a.lock/b.git"}) {
    const std::string answer = Get(absl::StrCat(path, "/info/refs?service=git-upload-pack"));
    EXPECT_THAT(StatusOfAnswer(answer), AnyOf(400, 404)) << path << answer;
  }
  EXPECT_EQ(StatusOfAnswer(Get("/absent.git/info/refs?service=git-upload-pack")), 404);
  EXPECT_EQ(StatusOfAnswer(Get("/demo.git/info/refs")), 403);
  EXPECT_EQ(StatusOfAnswer(Get("/demo.git/HEAD")), 404);
}

TEST_F(PushRulesTest, ProtectsTheCurrentBranch) {
  git_.Must("one", {"push", "-q", "origin", "main:refs/heads/other"});
  const GitOutcome outcome = git_.Run("one", {"push", "origin", ":main"});
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.out, HasSubstr("deletion of the current branch prohibited"));
  git_.Must("one", {"push", "-q", "origin", ":other"});
  ExpectUnchanged();
}

TEST_F(PushRulesTest, HonoursTheConfigurationOfTheRepository) {
  Configure("[receive]\n\tdenyDeletes = true\n\tdenyNonFastForwards = true\n"
            "[transfer]\n\thideRefs = refs/internal\n");
  git_.Must("one", {"push", "-q", "origin", "main:refs/heads/other"});
  EXPECT_THAT(git_.Run("one", {"push", "origin", ":other"}).out, HasSubstr("deletion prohibited"));

  git_.Commit("one", "b", "second\n");
  git_.Must("one", {"push", "-q", "origin", "main"});
  git_.Must("one", {"commit", "-q", "--amend", "-m", "rewritten"});
  EXPECT_THAT(git_.Run("one", {"push", "--force", "origin", "main"}).out,
              HasSubstr("non-fast-forward"));
  EXPECT_THAT(git_.Run("one", {"push", "origin", "main:refs/internal/x"}).out,
              HasSubstr("deny updating a hidden ref"));
}

// C089, C094 – hooks see the new objects, each its own input, once.
TEST_F(PushRulesTest, RunsEachHookOnceWithItsOwnInputAndTheObjectsInSight) {
  const std::string log = git_.home() + "/log";
  PutFiles({
      {"hooks/pre-receive",
       {absl::StrCat("#!/bin/sh\nwhile read o n r; do git cat-file -e $n && "
                     "echo \"pre $r $GIT_PUSH_OPTION_COUNT $GIT_PUSH_OPTION_0\" >> ", log,
                     "; done\ngit update-ref refs/heads/stray HEAD && echo written >> ", log,
                     "\necho hello from the hook\n"),
        0755}},
      {"hooks/update",
       {absl::StrCat("#!/bin/sh\necho \"update $1\" >> ", log, "\ntest \"$1\" != refs/heads/a-no\n"),
        0755}},
      {"hooks/post-receive",
       {absl::StrCat("#!/bin/sh\nwhile read o n r; do "
                     "test \"$(git rev-parse $r)\" = $n && echo \"post $r\" >> ", log, "; done\n"),
        0755}},
  });
  git_.Commit("one", "b", "second\n");

  const GitOutcome outcome =
      git_.Run("one", {"push", "-o", "ci.skip", "origin", "main:refs/heads/a-no",
                       "main:refs/heads/b-yes"});

  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("hello from the hook"), HasSubstr("hook declined")));
  std::ifstream file(log);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "pre refs/heads/a-no 1 ci.skip\npre refs/heads/b-yes 1 ci.skip\n"
                  "update refs/heads/a-no\nupdate refs/heads/b-yes\npost refs/heads/b-yes\n");
  EXPECT_THAT(Refs("demo"), AllOf(HasSubstr("refs/heads/b-yes"), Not(HasSubstr("refs/heads/a-no\n")),
                                  Not(HasSubstr("stray"))));
}

// C092
TEST_F(PushRulesTest, RefusesAllWhenThePreReceiveHookSaysNo) {
  Hook("pre-receive", "echo not today >&2; exit 1");
  git_.Commit("one", "b", "second\n");
  const GitOutcome outcome = git_.Run("one", {"push", "origin", "main"});
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("not today"), HasSubstr("pre-receive hook declined")));
  ExpectUnchanged();
}

// C086 – a hook without the executable bit does not run.
TEST_F(PushRulesTest, RunsOnlyExecutableHooks) {
  PutFiles({{"hooks/pre-receive", {"#!/bin/sh\nexit 1\n", 0644}}});
  git_.Commit("one", "b", "second\n");
  git_.Must("one", {"push", "-q", "origin", "main"});
}

TEST_F(PushRulesTest, RunsHooksForDeletionsToo) {
  git_.Must("one", {"push", "-q", "origin", "main:refs/heads/other"});
  Hook("pre-receive", "while read o n r; do echo saw $r; done");
  EXPECT_THAT(git_.Must("one", {"push", "origin", ":other"}), HasSubstr("saw refs/heads/other"));
}

// C075, MW-01
TEST_F(PushRulesTest, NeedsAnExistingRepositoryUnlessPushesMakeThem) {
  ASSERT_THAT(server_->Stop(), IsOk());
  server_.reset();
  options_.create_on_push = false;
  Serve();
  EXPECT_FALSE(git_.Run("one", {"push", Url("fresh"), "main"}).ok());
  EXPECT_EQ(StatusOfAnswer(Get("/fresh.git/info/refs?service=git-receive-pack")), 404);
  EXPECT_EQ(StatusOfAnswer(PushRaw(Command(kZero, first_, "refs/heads/x") + EmptyPack(), "fresh")),
            404);
}

}  // namespace
}  // namespace repotxn::daemon
