#include "bench/git_peer.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "storage/status_macros.h"

namespace repotxn::bench {
namespace {

absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n <= 0) return absl::UnavailableError("git does not read");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

storage::ChildOptions GitCommand(const std::vector<std::string>& arguments) {
  storage::ChildOptions options;
  options.argv = {"git", "-c", "gc.auto=0", "-c", "maintenance.auto=false"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
                         "GIT_CONFIG_GLOBAL=/dev/null"};
  options.stdin_stream = storage::ChildStream::NewPipe();
  options.stdout_stream = storage::ChildStream::NewPipe();
  return options;
}

absl::StatusOr<std::string> RunGit(const std::vector<std::string>& arguments,
                                   absl::string_view input) {
  storage::ChildOptions options = GitCommand(arguments);
  options.stderr_stream = storage::ChildStream::NewPipe();
  REPOTXN_ASSIGN_OR_RETURN(auto child, storage::ChildProcess::Start(options));
  REPOTXN_ASSIGN_OR_RETURN(storage::ChildOutput output,
                           child->Communicate(input, {}, absl::Minutes(10)));
  if (!output.exit.ok()) {
    return absl::UnknownError(
        absl::StrCat("git ", arguments.back(), ": ", output.exit.ToString(), ": ", output.err));
  }
  return std::move(output.out);
}

absl::StatusOr<History> MakeHistory(const std::string& directory, int commits) {
  std::string stream;
  for (int n = 1; n <= commits; ++n) {
    const std::string text = absl::StrCat("line ", n, "\n");
    absl::StrAppend(&stream, "commit refs/heads/main\ncommitter A <a@example.org> ",
                    1'700'000'000 + n, " +0000\ndata ", text.size(), "\n", text,
                    "M 644 inline file\ndata ", text.size(), "\n", text, "\n");
  }
  REPOTXN_RETURN_IF_ERROR(RunGit({"init", "-q", "--bare", "-b", "main", directory}).status());
  const std::string at = absl::StrCat("--git-dir=", directory);
  REPOTXN_RETURN_IF_ERROR(RunGit({at, "fast-import", "--quiet"}, stream).status());
  REPOTXN_RETURN_IF_ERROR(RunGit({at, "repack", "-adq"}).status());
  REPOTXN_ASSIGN_OR_RETURN(const std::string listed,
                           RunGit({at, "rev-list", "--reverse", "refs/heads/main"}));
  History history{directory, {}};
  for (absl::string_view line : absl::StrSplit(listed, '\n', absl::SkipEmpty())) {
    REPOTXN_ASSIGN_OR_RETURN(ObjectId oid, ObjectId::FromHex(line));
    history.commits.push_back(oid);
  }
  return history;
}

absl::Status CopyPack(const History& history, const std::string& repository_directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = fs::path(repository_directory) / "objects" / "pack";
  fs::create_directories(target, error);
  fs::copy(fs::path(history.directory) / "objects" / "pack", target,
           fs::copy_options::recursive | fs::copy_options::skip_existing, error);
  if (error) return absl::UnknownError(absl::StrCat("copying a pack: ", error.message()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<UpdateRefSession>> UpdateRefSession::Start(
    const std::string& repository_directory) {
  REPOTXN_ASSIGN_OR_RETURN(auto child, storage::ChildProcess::Start(GitCommand(
                                           {absl::StrCat("--git-dir=", repository_directory), "-c",
                                            "core.fsync=reference", "update-ref", "--stdin"})));
  return std::unique_ptr<UpdateRefSession>(new UpdateRefSession(std::move(child)));
}

absl::Status UpdateRefSession::Set(absl::string_view ref, const ObjectId& oid) {
  REPOTXN_RETURN_IF_ERROR(
      WriteAll(child_->stdin_descriptor(),
               absl::StrCat("start\nupdate ", ref, " ", oid.ToHex(), "\ncommit\n")));
  std::string answer;
  while (!absl::EndsWith(answer, "commit: ok\n")) {
    char buffer[256];
    const ssize_t n = read(child_->stdout_descriptor(), buffer, sizeof(buffer));
    if (n <= 0) return absl::UnknownError("git update-ref ended");
    answer.append(buffer, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::bench
