// Runs a repository's own hooks for one push.
//
// `pre-receive` and `update` run in the staging directory completed with refs, where the objects of
// the push lie in quarantine; `post-receive` runs after the commit in a read snapshot. Whatever they
// write there reaches no repository. Their output goes to the client as it comes, a line at most
// 1,000 bytes a frame. They get exactly the environment of HookEnvironment(), a process group of
// their own and no descriptor but the standard three: not the store's LOCK, because what a hook
// leaves behind would keep the store shut [B16].
//
// Thread-compatible.
#ifndef REPOTXN_DAEMON_GIT_HOOK_H_
#define REPOTXN_DAEMON_GIT_HOOK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace repotxn::daemon {

// Where a hook runs and what it may see.
struct HookPlace {
  // Absolute path of a directory that is a repository: GIT_DIR and the working directory.
  std::string directory;
  // Its objects/ is the quarantine of a push that is not committed yet.
  bool is_quarantine = false;
  std::vector<std::string> push_options;
  bool has_push_options = false;  // the client asked for the capability
  std::string transaction_id;
};

// The whole environment, each "NAME=value", sorted:
//   GIT_DIR                           the directory
//   GIT_OBJECT_DIRECTORY, GIT_ALTERNATE_OBJECT_DIRECTORIES, GIT_QUARANTINE_PATH
//                                     in quarantine: its objects/, and what that directory borrows
//                                     (the live objects), for tools that read no alternates file
//   GIT_PUSH_OPTION_COUNT, GIT_PUSH_OPTION_<n>     with the capability
//   GIT_CONFIG_NOSYSTEM, GIT_CONFIG_GLOBAL, GIT_TERMINAL_PROMPT, LC_ALL, PATH, REPOTXN_TRANSACTION_ID
std::vector<std::string> HookEnvironment(const HookPlace& place);

// Takes output of a hook as it comes.
using HookOutput = std::function<void(absl::string_view text)>;

// Runs `hooks/<name>` of the place with `arguments`, `input` on its standard input.
//
// Returns whether it exited with 0. What it left running in its process group is killed.
//
// Errors
//   kDeadlineExceeded    the timeout passed; the group was killed.
//   kNotFound            its interpreter or the file is absent.
//   kResourceExhausted   no process.
absl::StatusOr<bool> RunHook(const HookPlace& place, absl::string_view name,
                             const std::vector<std::string>& arguments, absl::string_view input,
                             absl::Duration timeout, const HookOutput& output);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_GIT_HOOK_H_
