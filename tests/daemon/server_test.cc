// The server as a whole: rights, REST, probes, limits, start and stop.
#include "daemon/server.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/child_process.h"
#include "storage/descriptor.h"
#include "tests/daemon/served_store.h"

namespace repotxn::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using repotxn::testing::IsOk;
using repotxn::testing::RawConnection;
using repotxn::testing::RawExchange;
using repotxn::testing::ServedStore;
using repotxn::testing::StatusIs;
using repotxn::testing::StatusOfAnswer;

// Goal: only tokens of the file, only with their right.
class TokenTest : public ServedStore {
 protected:
  void SetUp() override {
    options_.token_file = store_.path() + "/tokens";
    std::ofstream(options_.token_file) << "reader-token-0123456789 alice ro\n"
                                          "writer-token-0123456789 bob rw\n";
    Serve();
  }
  std::string UrlWith(const std::string& token, const std::string& repository) {
    return absl::StrCat("http://any:", token, "@", server_->url().substr(7), "/", repository,
                        ".git");
  }
};

TEST_F(TokenTest, ReadersFetchAndWritersPush) {
  git_.Init("one");
  git_.Commit("one", "a", "x");
  EXPECT_FALSE(git_.Run("one", {"push", Url("demo"), "main"}).ok());
  EXPECT_FALSE(git_.Run("one", {"push", UrlWith("reader-token-0123456789", "demo"), "main"}).ok());
  git_.Must("one", {"push", "-q", UrlWith("writer-token-0123456789", "demo"), "main"});
  git_.Must("", {"clone", "-q", UrlWith("reader-token-0123456789", "demo"), git_.Tree("two")});
  EXPECT_FALSE(git_.Run("", {"clone", "-q", Url("demo"), git_.Tree("three")}).ok());

  EXPECT_EQ(StatusOfAnswer(Get("/healthz")), 200);
  EXPECT_EQ(StatusOfAnswer(Get("/metrics")), 401);
  EXPECT_THAT(Get("/api/repositories"), HasSubstr("WWW-Authenticate: Basic"));
  EXPECT_EQ(StatusOfAnswer(RawExchange(
                port(), "POST /api/repositories HTTP/1.1\r\nAuthorization: Bearer "
                        "reader-token-0123456789\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")),
            403);
}

// Goal: starting refuses what would be unsafe, limits hold, and stopping loses nothing.
class ServerTest : public ServedStore {
 protected:
  absl::Status TryStart() { return Server::Start(options_).status(); }
};

TEST_F(ServerTest, RefusesToServeTheWorldWithoutTokens) {
  options_.host = "0.0.0.0";
  EXPECT_THAT(TryStart(), StatusIs(absl::StatusCode::kFailedPrecondition));
  options_.token_file = store_.path() + "/absent";
  EXPECT_THAT(TryStart(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ServerTest, ServesAnIpv6Address) {
  options_.host = "::1";
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options_);
  if (!server.ok()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_THAT((*server)->url(), StartsWith("http://[::1]:"));
  git_.Init("one");
  git_.Commit("one", "a", "x");
  git_.Must("one", {"push", "-q", (*server)->url() + "/x.git", "main"});
}

TEST_F(ServerTest, TurnsAwayPushesBeyondTheBoundAndTakesThemLater) {
  options_.pushes_max = 1;
  Serve();
  git_.Init("one");
  git_.Commit("one", "a", "x");
  // A push that waits for its own body holds the only place. Whoever of the two comes second is
  // turned away, so that it may take a few rounds.
  std::string answer;
  for (int round = 0; round < 100 && StatusOfAnswer(answer) != 503; ++round) {
    RawConnection slow(port());
    slow.Send(testing::PostHead("/demo.git/git-receive-pack",
                                "Content-Type: application/x-git-receive-pack-request\r\n"
                                "Content-Length: 100\r\n"));
    answer = Get("/demo.git/info/refs?service=git-receive-pack");
    slow.EndSending();
    slow.Read();
  }
  EXPECT_EQ(StatusOfAnswer(answer), 503);
  EXPECT_THAT(answer, HasSubstr("Retry-After"));

  git_.Must("one", {"push", "-q", Url("demo"), "main"});
}

TEST_F(ServerTest, RefusesAPackAboveTheLimit) {
  options_.body_bytes_max = 100'000;
  Serve();
  git_.Init("one");
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i) {
    state = state * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(state >> 24));
  }
  git_.Commit("one", "noise", noise);
  EXPECT_FALSE(git_.Run("one", {"push", Url("demo"), "main"}).ok());
  EXPECT_EQ(StatusOfAnswer(Get("/demo.git/info/refs?service=git-upload-pack")), 404);
}

// Goal: the program itself. Method: the built binary as a child.
class DaemonProgramTest : public ServedStore {
 protected:
  std::unique_ptr<storage::ChildProcess> Start(std::vector<std::string> arguments) {
    storage::ChildOptions options;
    options.argv = {std::string(REPOTXN_BINARY_DIR) + "/repotxnd"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.environment = {"PATH=/usr/bin:/bin"};
    // A sanitizer's options are for the program too.
    for (const char* name : {"TSAN_OPTIONS", "ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
      if (const char* value = std::getenv(name)) {
        options.environment.push_back(absl::StrCat(name, "=", value));
      }
    }
    options.stdout_stream = storage::ChildStream::NewPipe();
    options.stderr_stream = storage::ChildStream::NewPipe();
    auto child = storage::ChildProcess::Start(options);
    EXPECT_THAT(child, IsOk());
    return child.ok() ? *std::move(child) : nullptr;
  }
};

TEST_F(DaemonProgramTest, SaysWhereItListensAndStopsCleanlyOnASignal) {
  for (int round = 0; round < 2; ++round) {
    auto child = Start({"serve", "--store", options_.store, "--listen", "127.0.0.1:0",
                        "--create-on-push"});
    ASSERT_NE(child, nullptr);
    storage::DescriptorReader reader(child->stdout_descriptor());
    const absl::StatusOr<std::string> line = reader.ReadLine(200);
    ASSERT_THAT(line, IsOk());
    ASSERT_THAT(*line, StartsWith("listening on http://127.0.0.1:"));
    const std::string url = line->substr(13) + "/demo.git";
    if (round == 0) {
      git_.Init("one");
      git_.Commit("one", "a", "x");
      git_.Must("one", {"push", "-q", url, "main"});
    }
    EXPECT_THAT(git_.Must("", {"ls-remote", url}), HasSubstr("refs/heads/main"));
    ASSERT_EQ(kill(child->pid(), round == 0 ? SIGTERM : SIGINT), 0);
    const auto exit = child->Wait(absl::Minutes(1));
    ASSERT_THAT(exit, IsOk());
    EXPECT_TRUE(exit->ok()) << exit->ToString();
    EXPECT_TRUE(std::ifstream(options_.store + "/CLEAN").good());
  }
}

TEST_F(DaemonProgramTest, ExplainsAWrongCommandLine) {
  auto child = Start({"serve", "--bogus", "1"});
  ASSERT_NE(child, nullptr);
  const auto output = child->Communicate("", {}, absl::Minutes(1));
  ASSERT_THAT(output, IsOk());
  EXPECT_EQ(output->exit.code, 2);
  EXPECT_THAT(output->err, HasSubstr("--bogus"));
}

}  // namespace
}  // namespace repotxn::daemon
