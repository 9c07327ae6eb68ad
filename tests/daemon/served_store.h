// A server over a store in a temporary directory, as a fixture for tests with real clients.
#ifndef REPOTXN_TESTS_DAEMON_SERVED_STORE_H_
#define REPOTXN_TESTS_DAEMON_SERVED_STORE_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/server.h"
#include "gtest/gtest.h"
#include "tests/daemon/git_client.h"
#include "tests/daemon/raw_http.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::testing {

class ServedStore : public ::testing::Test {
 protected:
  ServedStore() {
    options_.store = store_.path() + "/store";
    options_.create_on_push = true;
    options_.stop_grace = absl::Seconds(20);
  }

  void Serve() {
    absl::StatusOr<std::unique_ptr<daemon::Server>> server = daemon::Server::Start(options_);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  void Restart() {
    EXPECT_THAT(server_->Stop(), IsOk());
    server_.reset();
    Serve();
  }
  // Nothing may be left of any request, good or bad.
  void TearDown() override {
    if (server_ == nullptr) return;
    EXPECT_THAT(server_->Stop(), IsOk());
    EXPECT_EQ(StagingEntries(), 0u);
  }
  size_t StagingEntries() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options_.store + "/staging")) {
      if (entry.path().filename().string().rfind("objects-", 0) == 0) ++count;
    }
    return count;
  }
  std::string Url(const std::string& repository) const {
    return absl::StrCat(server_->url(), "/", repository, ".git");
  }
  int port() const {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server_->url().substr(server_->url().rfind(':') + 1), &port));
    return port;
  }
  // "name hash" lines as a client sees them.
  std::string Refs(const std::string& repository) const {
    return git_.Must("", {"ls-remote", Url(repository)});
  }
  // The directory of the only repository.
  std::string RepositoryDirectory() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             options_.store + "/repositories/@id")) {
      if (entry.path().extension() == ".git" && entry.is_directory()) return entry.path();
    }
    return "";
  }
  std::string Get(const std::string& path) const {
    return RawExchange(port(), absl::StrCat("GET ", path, " HTTP/1.1\r\nConnection: close\r\n\r\n"));
  }
  std::string PostJson(const std::string& path, const std::string& json) const {
    return RawExchange(port(), PostHead(path, absl::StrCat("Content-Length: ", json.size(), "\r\n")) +
                                   json);
  }

  TempDirectory store_;
  GitClient git_;
  daemon::ServerOptions options_;
  std::unique_ptr<daemon::Server> server_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_DAEMON_SERVED_STORE_H_
