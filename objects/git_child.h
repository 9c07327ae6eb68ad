// Runs stock Git in a closed environment: nothing of the machine's or the caller's configuration
// gets in.
//
// The environment is built from nothing: a fixed PATH, LC_ALL=C, no inherited GIT_* variable, no
// system and no global configuration, no terminal prompt. Settings that a repository's own
// configuration must not decide (hooks path, file system monitor, ssh command, automatic gc,
// reflogs, fsync) go on the command line as `-c`, which wins over the repository. Live refs are not
// advertised through alternates (`core.alternateRefsPrefixes=refs/none`). A configuration file that
// includes others is refused by CheckRepositoryConfig(): the included file is outside the snapshot
// and outside the log.
//
// ClosedArguments() and ClosedEnvironment() are pure; whoever streams to a child by itself
// (upload-pack) uses them with storage::ChildProcess. RunGit() is for children whose output is
// small.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_GIT_CHILD_H_
#define REPOTXN_OBJECTS_GIT_CHILD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/descriptor.h"

namespace repotxn::objects {

struct GitCommand {
  // Absolute path of the bare repository or snapshot: GIT_DIR and the only `safe.directory`. Names
  // no newline.
  std::string repository;
  // Subcommand and its arguments. Names given by users must stand behind `--end-of-options` or
  // `--`.
  std::vector<std::string> arguments;
  // Further variables (name, value), after the fixed ones; the same name replaces. GIT_CONFIG*
  // names are refused.
  std::vector<std::pair<std::string, std::string>> environment;
  // Further settings (`key=value`), after the fixed ones; the last wins.
  std::vector<std::string> settings;
  // Absolute directory of hooks; empty: none run.
  std::string hooks_path;
  // Connectivity and content checks: replace refs off, and what Git derives from objects: a
  // commit-graph hides holes, and a damaged multi-pack-index ends the child.
  bool is_check = false;
  // Descriptor of the store's LOCK, kept open in the child so that a new daemon waits for it; -1:
  // none.
  int lock_fd = -1;
  // Program; a name is looked for in the closed PATH.
  std::string program = "git";
};

// Whole command line: program, `-c` settings, arguments. kInvalidArgument when a field breaks its
// rule.
absl::StatusOr<std::vector<std::string>> ClosedArguments(const GitCommand& command);
// Whole environment, each "NAME=value", sorted by name. kInvalidArgument when a field breaks its
// rule.
absl::StatusOr<std::vector<std::string>> ClosedEnvironment(const GitCommand& command);

// Whether a repository's configuration file may be used by our children. `text` is the file.
//
// Errors
//   kInvalidArgument     not the syntax of a Git configuration file; detail "line".
//   kFailedPrecondition  an `include` or `includeIf` section, or a promisor (partial clone)
//   setting; detail "line".
absl::Status CheckRepositoryConfig(absl::string_view text);

// One setting of a configuration file: "section.key" in lower case, subsections left out, and its
// value as Git reads it.
struct ConfigSetting {
  std::string name;
  std::string value;

  friend bool operator==(const ConfigSetting&, const ConfigSetting&) = default;
};
// All settings of a configuration file that CheckRepositoryConfig() accepts, in order; its errors.
absl::StatusOr<std::vector<ConfigSetting>> ParseRepositoryConfig(absl::string_view text);

// Gives the child's input piece by piece: fills a prefix of the span and returns its length, 0 at
// the end. An error ends the child and becomes the result.
using InputSource = std::function<absl::StatusOr<size_t>(absl::Span<char>)>;
// The whole of `text`.
InputSource TextSource(std::string text);

// Gives all that `input` has to the child at the other end of `pipe`, which is closed then. A child
// that wants no more is no error. Errors of the source.
absl::Status FeedChild(const InputSource& input, storage::OwnedDescriptor pipe);

struct RunLimits {
  // Wall-clock bound; the child is killed when it passes. A source that waits at that moment is
  // waited for: it keeps a deadline of its own.
  absl::Duration timeout = absl::Minutes(10);
  // Most bytes kept of standard output; more is an error and kills the child.
  int64_t output_bytes_max = 1 << 20;
  // Bytes kept of standard error; the rest is read and dropped.
  int64_t error_bytes_max = 16 << 10;
};

struct GitResult {
  int exit_code = 0;  // 128 + signal when one ended the child
  std::string output;
  std::string errors;
};

// Runs the command to its end. A child that exits with any code is a result, not an error; so is
// one that closed its input early, after which the source is not asked again (`errors` tells why).
//
// Errors
//   kInvalidArgument    a field of the command breaks its rule.
//   kDeadlineExceeded   the timeout passed; the child and its process group are gone.
//   kResourceExhausted  more output than allowed, or no process could be made.
// and those of the source. No child is left behind after an error.
absl::StatusOr<GitResult> RunGit(const GitCommand& command, InputSource input,
                                 const RunLimits& limits);

// The first `lines_max` lines of a child's standard error for people: control characters other than
// newline replaced, lines cut at 200 bytes, absolute paths that begin with `private_prefix`
// shortened to what follows it.
std::string SanitisedErrors(absl::string_view errors, int lines_max,
                            absl::string_view private_prefix);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_GIT_CHILD_H_
