#include "daemon/git_hook.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/child_process.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

// A silent hook is looked at this often, to notice its end when something it started still holds
// its output open.
constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

// Object directory that a repository borrows, from the first line of its alternates file; empty
// when there is none.
std::string LentObjects(const std::string& directory) {
  std::ifstream file(absl::StrCat(directory, "/objects/info/alternates"), std::ios::binary);
  std::string line;
  return std::getline(file, line) ? line : "";
}

// Hands over what is there, up to the end or for as long as something comes.
absl::Status Drain(int fd, const HookOutput& output) {
  std::array<char, 4096> buffer;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_readable,
                             storage::WaitReadable(fd, absl::ZeroDuration()));
    if (!is_readable) return absl::OkStatus();
    REPOTXN_ASSIGN_OR_RETURN(const size_t size,
                             storage::ReadDescriptor(fd, absl::MakeSpan(buffer)));
    if (size == 0) return absl::OkStatus();
    output(absl::string_view(buffer.data(), size));
  }
}

// Relays output until the hook ends. kDeadlineExceeded when it does not in time.
absl::StatusOr<storage::ExitStatus> Relay(storage::ChildProcess& child, int fd, absl::Time deadline,
                                          const HookOutput& output) {
  std::array<char, 4096> buffer;
  bool is_open = true;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("a hook took too long");
    if (!is_open) return child.Wait(left);
    REPOTXN_ASSIGN_OR_RETURN(const bool is_readable,
                             storage::WaitReadable(fd, std::min(left, kPollInterval)));
    if (is_readable) {
      REPOTXN_ASSIGN_OR_RETURN(const size_t size,
                               storage::ReadDescriptor(fd, absl::MakeSpan(buffer)));
      is_open = size > 0;
      if (is_open) output(absl::string_view(buffer.data(), size));
      continue;
    }
    absl::StatusOr<storage::ExitStatus> exit = child.Wait(absl::ZeroDuration());
    if (exit.ok()) {
      child.KillGroup();
      REPOTXN_RETURN_IF_ERROR(Drain(fd, output));
      return exit;
    }
    if (!absl::IsDeadlineExceeded(exit.status())) return exit;
  }
}

}  // namespace

std::vector<std::string> HookEnvironment(const HookPlace& place) {
  std::vector<std::string> environment = {
      absl::StrCat("GIT_DIR=", place.directory),
      "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_CONFIG_NOSYSTEM=1",
      "GIT_TERMINAL_PROMPT=0",
      "LC_ALL=C",
      "PATH=/usr/local/bin:/usr/bin:/bin",
      absl::StrCat("REPOTXN_TRANSACTION_ID=", place.transaction_id),
  };
  if (place.is_quarantine) {
    const std::string objects = absl::StrCat(place.directory, "/objects");
    environment.push_back(absl::StrCat("GIT_OBJECT_DIRECTORY=", objects));
    environment.push_back(absl::StrCat("GIT_QUARANTINE_PATH=", objects));
    const std::string lent = LentObjects(place.directory);
    if (!lent.empty()) {
      environment.push_back(absl::StrCat("GIT_ALTERNATE_OBJECT_DIRECTORIES=", lent));
    }
  }
  if (place.has_push_options) {
    environment.push_back(absl::StrCat("GIT_PUSH_OPTION_COUNT=", place.push_options.size()));
    for (size_t i = 0; i < place.push_options.size(); ++i) {
      environment.push_back(absl::StrCat("GIT_PUSH_OPTION_", i, "=", place.push_options[i]));
    }
  }
  std::sort(environment.begin(), environment.end());
  return environment;
}

absl::StatusOr<bool> RunHook(const HookPlace& place, absl::string_view name,
                             const std::vector<std::string>& arguments, absl::string_view input,
                             absl::Duration timeout, const HookOutput& output) {
  // Both output streams go to the client, in the order in which they were written.
  REPOTXN_ASSIGN_OR_RETURN(storage::Pipe pipe, storage::MakePipe());
  storage::ChildOptions options;
  options.argv = {absl::StrCat(place.directory, "/hooks/", name)};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = HookEnvironment(place);
  options.working_directory = place.directory;
  options.stdin_stream = storage::ChildStream::NewPipe();
  options.stdout_stream = storage::ChildStream::To(pipe.writer.get());
  options.stderr_stream = storage::ChildStream::To(pipe.writer.get());
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<storage::ChildProcess> child,
                           storage::ChildProcess::Start(options));
  pipe.writer.Reset();

  // A hook may write before it reads, so its input must not hold up its output. One that does not
  // read all of it is no error; one that never ends is killed below, which ends the thread.
  std::thread feeder([&child, input] {
    if (!input.empty()) {
      IgnoreBecause(storage::WriteDescriptor(child->stdin_descriptor(), input),
                    "a hook need not read its input");
    }
    child->CloseStdin();
  });
  const absl::StatusOr<storage::ExitStatus> exit =
      Relay(*child, pipe.reader.get(), absl::Now() + timeout, output);
  child->KillGroup();
  feeder.join();
  if (!exit.ok()) return exit.status();
  return exit->ok();
}

}  // namespace repotxn::daemon
