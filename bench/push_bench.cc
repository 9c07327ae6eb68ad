// How many pushes of one small commit a second into one repository, durable, beside Git's own
// receive-pack?
//
// Both sides get the same prepared pushes (bench/prepared_push.h), the same number in every round,
// so that both repositories hold the same all the time. Ours: POSTs over HTTP to the server of
// repotxnd in this process, a connection a push. Peer: one `git receive-pack --stateless-rpc` a
// push with core.fsync=all, without HTTP in front of it and without its automatic housekeeping,
// which makes it faster than it is in a real server.
//
// After the last round the store is closed, `git fsck` runs over both repositories, and both must
// show the same refs.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/git_peer.h"
#include "bench/load.h"
#include "bench/prepared_push.h"
#include "bench/rounds.h"
#include "daemon/server.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::bench {
namespace {

// Pushes of one round, by writers.
int64_t PushesOfRound(const Options& options, int writers) {
  const auto full = static_cast<int64_t>((writers == 1 ? 50 : 100) * options.seconds);
  return std::max<int64_t>(full, writers);
}

// The whole answer to a POST on a connection of its own.
absl::StatusOr<std::string> Post(int port, const std::string& path, const std::string& body) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      absl::StrCat("POST ", path,
                   " HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Type: "
                   "application/x-git-receive-pack-request\r\nContent-Length: ",
                   body.size(), "\r\n\r\n", body);
  std::string answer;
  bool is_sent = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  for (size_t sent = 0; is_sent && sent < request.size();) {
    const ssize_t n = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    is_sent = n > 0;
    sent += is_sent ? static_cast<size_t>(n) : 0;
  }
  char buffer[4096];
  for (ssize_t n = 0; is_sent && (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  if (!is_sent) return absl::UnavailableError("the server does not listen");
  return answer;
}

absl::Status Judge(const absl::StatusOr<std::string>& answer, const PreparedPush& push) {
  REPOTXN_RETURN_IF_ERROR(answer.status());
  if (IsAccepted(*answer, push)) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("push of ", push.ref, " was not taken: ", *answer));
}

// Where pushes go.
class Target {
 public:
  virtual ~Target() = default;
  // Makes the repository with the first push.
  virtual absl::Status Open() = 0;
  virtual absl::Status Push(const PreparedPush& push) = 0;
  // Directory of the finished repository, for stock Git.
  virtual absl::StatusOr<std::string> Finish() = 0;
};

class OurServer final : public Target {
 public:
  explicit OurServer(std::string root) : root_(std::move(root)) {}

  absl::Status Open() override {
    daemon::ServerOptions options;
    options.store = root_;
    options.create_on_push = true;
    REPOTXN_ASSIGN_OR_RETURN(server_, daemon::Server::Start(options));
    const std::string url = server_->url();
    if (!absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port_)) {
      return absl::InternalError("the server's URL has no port");
    }
    return Push(FirstPush());
  }
  absl::Status Push(const PreparedPush& push) override {
    return Judge(Post(port_, "/bench/repository.git/git-receive-pack", push.body), push);
  }
  absl::StatusOr<std::string> Finish() override {
    REPOTXN_RETURN_IF_ERROR(server_->Stop());
    return root_ + "/repositories/bench/repository.git";
  }

 private:
  const std::string root_;
  std::unique_ptr<daemon::Server> server_;
  int port_ = 0;
};

class GitReceivePack final : public Target {
 public:
  explicit GitReceivePack(std::string directory) : directory_(std::move(directory)) {}

  absl::Status Open() override {
    REPOTXN_RETURN_IF_ERROR(RunGit({"init", "-q", "--bare", "-b", "main", directory_}).status());
    return Push(FirstPush());
  }
  absl::Status Push(const PreparedPush& push) override {
    return Judge(RunGit({"-c", "core.fsync=all", "-c", "receive.autogc=false", "receive-pack",
                         "--stateless-rpc", directory_},
                        push.body),
                 push);
  }
  absl::StatusOr<std::string> Finish() override { return directory_; }

 private:
  const std::string directory_;
};

class Pushes {
 public:
  Pushes(const Options* options, int writers, std::unique_ptr<Target> target)
      : options_(options), writers_(writers), target_(std::move(target)) {}

  void Run(benchmark::State& state) {
    for (auto _ : state) Report(state, Measure());
  }
  absl::StatusOr<std::string> Finish() { return target_->Finish(); }
  bool is_used() const { return next_ > 0; }

 private:
  LoadResult Measure() {
    LoadResult result;
    if (next_ == 0) result.status = target_->Open();
    if (!result.status.ok()) return result;
    const int64_t count = PushesOfRound(*options_, writers_);
    const ObjectId parent = FirstPush().commit;
    std::vector<PreparedPush> prepared;
    for (int64_t i = 0; i < count; ++i) prepared.push_back(PushNumber(++next_, parent));
    std::atomic<size_t> taken{0};
    return RunLoad(
        writers_, absl::InfiniteDuration(),
        [&](int, int64_t) { return target_->Push(prepared[taken.fetch_add(1)]); }, count);
  }

  const Options* const options_;
  const int writers_;
  const std::unique_ptr<Target> target_;
  int64_t next_ = 0;
};

using Pair = std::pair<std::shared_ptr<Pushes>, std::shared_ptr<Pushes>>;

void Register(const std::string& name, std::shared_ptr<Pushes> pushes) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [pushes](benchmark::State& state) { pushes->Run(state); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

// Both repositories are sound and show the same refs.
absl::Status Compare(const Pair& pair) {
  if (!pair.first->is_used() || !pair.second->is_used()) return absl::OkStatus();
  std::string refs[2];
  const std::shared_ptr<Pushes> sides[2] = {pair.first, pair.second};
  for (int i = 0; i < 2; ++i) {
    REPOTXN_ASSIGN_OR_RETURN(const std::string directory, sides[i]->Finish());
    const std::string at = "--git-dir=" + directory;
    REPOTXN_RETURN_IF_ERROR(RunGit({at, "fsck", "--strict"}).status());
    REPOTXN_ASSIGN_OR_RETURN(refs[i], RunGit({at, "for-each-ref"}));
  }
  if (refs[0] != refs[1]) return absl::DataLossError("the repositories differ");
  std::printf("both repositories hold the same %td refs and pass git fsck\n",
              std::count(refs[0].begin(), refs[0].end(), '\n'));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  static Options options = ParseOptions(&argc, argv);
  if (options.directory.empty()) {
    std::fprintf(stderr, "push_bench: give --dir DIR on a journaled file system\n");
    return 2;
  }
  storage::SetLogLevel(storage::LogLevel::kError);
  std::vector<Pair> pairs;
  std::vector<Question> questions;
  for (const int writers : {1, 16}) {
    const std::string n = absl::StrCat("/writers:", writers);
    const std::string directory = absl::StrCat(options.directory, "/", writers);
    pairs.emplace_back(
        std::make_shared<Pushes>(&options, writers,
                                 std::make_unique<OurServer>(directory + "-store")),
        std::make_shared<Pushes>(&options, writers,
                                 std::make_unique<GitReceivePack>(directory + "-git.git")));
    Register("DurablePush" + n, pairs.back().first);
    Register("GitReceivePack" + n, pairs.back().second);
    questions.push_back({absl::StrCat("durable pushes of one small commit, ", writers, " writer",
                                      writers == 1 ? "" : "s"),
                         "/s", "DurablePush" + n, "git receive-pack, core.fsync=all",
                         "GitReceivePack" + n});
  }
  const int code = RunRounds(options, questions);
  for (const Pair& pair : pairs) {
    const absl::Status status = Compare(pair);
    if (status.ok()) continue;
    std::fprintf(stderr, "push_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return code;
}

}  // namespace
}  // namespace repotxn::bench

int main(int argc, char** argv) { return repotxn::bench::Main(argc, argv); }
