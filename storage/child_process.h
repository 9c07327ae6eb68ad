// Runs a program as a child that dies with us, sees only what it was given, and is never left
// behind.
//
// All children are started by one thread that lives as long as the process: the kernel ties "die
// with the parent" to the parent *thread*. A child gets exactly the environment and descriptors of
// its options, default signal handling, umask 022 and a process group of its own. Its leader stays
// unreaped until the ChildProcess is destroyed, so the group's number cannot be reused while
// somebody may still signal it.
//
//   ChildOptions options;
//   options.argv = {"git", "index-pack", "--stdin"};
//   options.environment = {"PATH=/usr/bin:/bin"};
//   options.stdin_stream = ChildStream::NewPipe();
//   REPOTXN_ASSIGN_OR_RETURN(auto child, ChildProcess::Start(options));
//   REPOTXN_ASSIGN_OR_RETURN(ChildOutput output, child->Communicate(pack, {}, absl::Minutes(1)));
//
// Time-outs are measured on the monotonic clock; absl::InfiniteDuration() never ends.
//
// Start() is Thread-safe. A ChildProcess may be used by several threads at once for different
// streams; KillGroup() and Wait() are Thread-safe.
//
// Limitation: not to be used in a process that was forked without exec from one that had started
// children.
#ifndef REPOTXN_STORAGE_CHILD_PROCESS_H_
#define REPOTXN_STORAGE_CHILD_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/descriptor.h"

namespace repotxn::storage {

// Where one of a child's three standard streams leads.
struct ChildStream {
  enum class Kind : uint8_t { kNull, kPipe, kDescriptor };

  Kind kind = Kind::kNull;
  int fd = -1;  // of kDescriptor; borrowed until Start() returns

  static ChildStream Null() { return {}; }
  static ChildStream NewPipe() { return {Kind::kPipe, -1}; }
  static ChildStream To(int descriptor) { return {Kind::kDescriptor, descriptor}; }
};

// A limit set in the child before it runs; both the soft and the hard one.
struct ChildLimit {
  enum class Resource : uint8_t {
    kCpuSeconds,
    kAddressSpaceBytes,
    kFileBytes,
    kOpenFiles,
    kCoreBytes
  };
  Resource resource = Resource::kCpuSeconds;
  uint64_t value = 0;
};

struct ChildOptions {
  // argv[0] is the program: a path with a slash, or a name looked up in PATH of `environment`.
  std::vector<std::string> argv;
  // "NAME=value"; the whole environment, nothing is inherited.
  std::vector<std::string> environment;
  // Absolute; "" is "/".
  std::string working_directory;
  ChildStream stdin_stream;
  ChildStream stdout_stream;
  ChildStream stderr_stream;
  // Descriptors above 2 that the child keeps under the same number (the store's LOCK). All others
  // are closed.
  std::vector<int> inherited_descriptors;
  std::vector<ChildLimit> limits;
};

// How a child ended.
struct ExitStatus {
  bool was_signalled = false;
  int code = 0;  // exit code, or the signal's number

  bool ok() const { return !was_signalled && code == 0; }
  // "exit 128" or "signal 9".
  std::string ToString() const;
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

struct CommunicateLimits {
  // Past this the child's group is killed and the call fails.
  size_t stdout_bytes_max = 64 << 20;
  // Past this the rest is read and dropped.
  size_t stderr_bytes_max = 64 << 10;
};

struct ChildOutput {
  ExitStatus exit;
  std::string out;
  std::string err;
  bool is_err_truncated = false;
};

class ChildProcess {
 public:
  // Errors
  //   kInvalidArgument     argv is empty, or a string holds NUL, or a descriptor is out of range.
  //   kNotFound            there is no such program or working directory.
  //   kResourceExhausted   processes, memory or descriptors ran out.
  //   other                what exec said; in every case no child is left.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);

  // Kills the group and reaps its leader.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const { return pid_; }

  // Our ends of the pipes; -1 where the stream is no pipe or was closed. Owned by the child object.
  int stdin_descriptor() const { return stdin_.get(); }
  int stdout_descriptor() const { return stdout_.get(); }
  int stderr_descriptor() const { return stderr_.get(); }
  // Gives the child the end of its input. Not while another thread writes to it.
  void CloseStdin() { stdin_.Reset(); }

  // Waits for the leader's end. kDeadlineExceeded when `timeout` passed first; the child goes on.
  // May be called again.
  absl::StatusOr<ExitStatus> Wait(absl::Duration timeout);

  // Feeds `input`, closes stdin, and reads stdout and stderr (those that are pipes) until the
  // leader has ended. What the leader wrote is complete; what other members of the group still
  // write after its end is cut off, and they are killed. A child that ends without reading its
  // input is no error.
  //
  // Errors
  //   kDeadlineExceeded    `timeout` passed; the group was killed.
  //   kResourceExhausted   stdout passed its limit; the group was killed.
  absl::StatusOr<ChildOutput> Communicate(absl::string_view input, const CommunicateLimits& limits,
                                          absl::Duration timeout);

  // Kills the leader and all that stayed in its group. Idempotent.
  void KillGroup();

 private:
  ChildProcess(int pid, OwnedDescriptor pid_descriptor);

  const int pid_;
  const OwnedDescriptor pid_descriptor_;  // readable when the leader has ended
  OwnedDescriptor stdin_;
  OwnedDescriptor stdout_;
  OwnedDescriptor stderr_;
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_CHILD_PROCESS_H_
