#include "objects/git_child.h"

#include <algorithm>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/child_process.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr absl::string_view kNowhere = "/dev/null";
constexpr size_t kChunkBytes = 64 << 10;

absl::Status Validate(const GitCommand& command) {
  if (!absl::StartsWith(command.repository, "/") ||
      command.repository.find('\n') != std::string::npos) {
    return absl::InvalidArgumentError("repository of a Git child is not an absolute path");
  }
  if (!command.hooks_path.empty() && command.hooks_path[0] != '/') {
    return absl::InvalidArgumentError("hooks path of a Git child is not an absolute path");
  }
  if (command.program.empty() || command.arguments.empty() ||
      absl::StartsWith(command.arguments[0], "-")) {
    return absl::InvalidArgumentError("a Git child needs a program and a subcommand");
  }
  for (const auto& [name, value] : command.environment) {
    if (name.empty() || name.find('=') != std::string::npos ||
        absl::StartsWith(name, "GIT_CONFIG")) {
      return absl::InvalidArgumentError("variable of a Git child is not allowed");
    }
  }
  for (const std::string& setting : command.settings) {
    if (setting.find('=') == std::string::npos || absl::StartsWithIgnoreCase(setting, "include")) {
      return absl::InvalidArgumentError("setting of a Git child is not allowed");
    }
  }
  return absl::OkStatus();
}

GitResult ResultOf(storage::ChildOutput output) {
  GitResult result;
  result.exit_code = output.exit.was_signalled ? 128 + output.exit.code : output.exit.code;
  result.output = std::move(output.out);
  result.errors = std::move(output.err);
  return result;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClosedArguments(const GitCommand& command) {
  REPOTXN_RETURN_IF_ERROR(Validate(command));
  std::vector<std::string> settings = {
      "core.alternateRefsPrefixes=refs/none",
      absl::StrCat("core.hooksPath=",
                   command.hooks_path.empty() ? kNowhere : absl::string_view(command.hooks_path)),
      "core.logAllRefUpdates=false",
      "core.fsync=none",
      "core.fsmonitor=false",
      "core.untrackedCache=false",
      "core.attributesFile=/dev/null",
      "core.excludesFile=/dev/null",
      "core.sshCommand=false",
      "core.askPass=false",
      "core.editor=false",
      "core.pager=cat",
      "credential.helper=",
      "gpg.program=false",
      "gc.auto=0",
      "gc.autoDetach=false",
      "receive.autogc=false",
      "maintenance.auto=false",
      absl::StrCat("safe.directory=", command.repository),
  };
  if (command.is_check) {
    settings.push_back("core.commitGraph=false");
    settings.push_back("core.multiPackIndex=false");
  }
  settings.insert(settings.end(), command.settings.begin(), command.settings.end());
  std::vector<std::string> arguments = {command.program};
  for (std::string& setting : settings) {
    arguments.push_back("-c");
    arguments.push_back(std::move(setting));
  }
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  return arguments;
}

absl::StatusOr<std::vector<std::string>> ClosedEnvironment(const GitCommand& command) {
  REPOTXN_RETURN_IF_ERROR(Validate(command));
  std::map<std::string, std::string> variables = {
      {"GIT_ALLOW_PROTOCOL", "none"},
      {"GIT_ATTR_NOSYSTEM", "1"},
      {"GIT_CONFIG_GLOBAL", "/dev/null"},
      {"GIT_CONFIG_NOSYSTEM", "1"},
      {"GIT_DIR", command.repository},
      {"GIT_NO_LAZY_FETCH", "1"},
      {"GIT_OPTIONAL_LOCKS", "0"},
      {"GIT_TERMINAL_PROMPT", "0"},
      {"HOME", "/nonexistent"},
      {"LC_ALL", "C"},
      {"PATH", "/usr/local/bin:/usr/bin:/bin"},
      {"TZ", "UTC"},
      {"XDG_CONFIG_HOME", "/nonexistent"},
  };
  if (command.is_check) variables["GIT_NO_REPLACE_OBJECTS"] = "1";
  for (const auto& [name, value] : command.environment) variables[name] = value;
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

InputSource TextSource(std::string text) {
  auto rest = std::make_shared<std::string>(std::move(text));
  auto at = std::make_shared<size_t>(0);
  return [rest, at](absl::Span<char> out) -> absl::StatusOr<size_t> {
    const size_t n = rest->copy(out.data(), out.size(), *at);
    *at += n;
    return n;
  };
}

absl::Status FeedChild(const InputSource& input, storage::OwnedDescriptor pipe) {
  std::string chunk(kChunkBytes, '\0');
  for (;;) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, input(absl::MakeSpan(&chunk[0], chunk.size())));
    if (got == 0) return absl::OkStatus();
    const absl::Status written =
        storage::WriteDescriptor(pipe.get(), absl::string_view(chunk.data(), got));
    // The child is gone or wants no more; its exit code and its errors tell why.
    if (absl::IsUnavailable(written)) return absl::OkStatus();
    REPOTXN_RETURN_IF_ERROR(written);
  }
}

absl::StatusOr<GitResult> RunGit(const GitCommand& command, InputSource input,
                                 const RunLimits& limits) {
  storage::ChildOptions options;
  REPOTXN_ASSIGN_OR_RETURN(options.argv, ClosedArguments(command));
  REPOTXN_ASSIGN_OR_RETURN(options.environment, ClosedEnvironment(command));
  options.working_directory = command.repository;
  options.stdout_stream = storage::ChildStream::NewPipe();
  options.stderr_stream = storage::ChildStream::NewPipe();
  if (command.lock_fd >= 0) options.inherited_descriptors.push_back(command.lock_fd);
  storage::Pipe pipe;
  if (input) {
    REPOTXN_ASSIGN_OR_RETURN(pipe, storage::MakePipe());
    options.stdin_stream = storage::ChildStream::To(pipe.reader.get());
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ChildProcess> child,
                           storage::ChildProcess::Start(options));
  pipe.reader.Reset();
  const storage::CommunicateLimits output_limits{static_cast<size_t>(limits.output_bytes_max),
                                                 static_cast<size_t>(limits.error_bytes_max)};
  if (!input) {
    REPOTXN_ASSIGN_OR_RETURN(storage::ChildOutput output,
                             child->Communicate("", output_limits, limits.timeout));
    return ResultOf(std::move(output));
  }

  // Output is drained by a second thread, or a child that says much while it reads would stop us
  // both. The source is asked in the caller's thread.
  absl::StatusOr<storage::ChildOutput> output = absl::UnknownError("not run");
  std::thread drain;
  try {
    drain = std::thread([&] { output = child->Communicate("", output_limits, limits.timeout); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("no thread for a Git child");
  }
  const absl::Status fed = FeedChild(input, std::move(pipe.writer));
  if (!fed.ok()) child->KillGroup();
  drain.join();
  REPOTXN_RETURN_IF_ERROR(fed);
  if (!output.ok()) return output.status();
  return ResultOf(*std::move(output));
}

}  // namespace repotxn::objects
