#include "storage/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/child_spawner.h"
#include "storage/clock.h"
#include "storage/critical_section.h"
#include "storage/errno_status.h"
#include "storage/status_macros.h"

namespace repotxn::storage {
namespace {

constexpr size_t kReadBytes = 64 << 10;

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

absl::Status CheckOptions(const ChildOptions& options) {
  if (options.argv.empty() || options.argv[0].empty()) {
    return absl::InvalidArgumentError("a child needs a program");
  }
  const bool has_nul =
      std::any_of(options.argv.begin(), options.argv.end(), HasNul) ||
      std::any_of(options.environment.begin(), options.environment.end(), HasNul) ||
      HasNul(options.working_directory);
  if (has_nul) return absl::InvalidArgumentError("a child's string holds a NUL byte");
  if (!options.working_directory.empty() && options.working_directory[0] != '/') {
    return absl::InvalidArgumentError("a child's working directory is not absolute");
  }
  for (const int fd : options.inherited_descriptors) {
    if (fd <= STDERR_FILENO) return absl::InvalidArgumentError("inherited descriptor is too low");
  }
  for (const ChildStream& stream :
       {options.stdin_stream, options.stdout_stream, options.stderr_stream}) {
    if (stream.kind == ChildStream::Kind::kDescriptor && stream.fd < 0) {
      return absl::InvalidArgumentError("a child's stream has no descriptor");
    }
  }
  return absl::OkStatus();
}

// The path of the program: what has a slash is one, else the first executable in PATH of the
// child's environment. Done here and not in the child, where nothing may allocate.
absl::StatusOr<std::string> FindProgram(const ChildOptions& options) {
  const std::string& name = options.argv[0];
  if (name.find('/') != std::string::npos) return name;
  for (const std::string& variable : options.environment) {
    if (variable.rfind("PATH=", 0) != 0) continue;
    for (size_t begin = 5; begin <= variable.size();) {
      const size_t end = std::min(variable.find(':', begin), variable.size());
      std::string path = absl::StrCat(variable.substr(begin, end - begin), "/", name);
      // Relative entries would depend on who starts the child, and from where.
      if (path[0] == '/' && access(path.c_str(), X_OK) == 0) return path;
      begin = end + 1;
    }
  }
  return absl::NotFoundError("no such program in PATH of the child");
}

// Prepares one stream: the child's end goes to *child_fd (owned by *child_end when made here), ours
// to *our_end.
absl::Status PrepareStream(const ChildStream& stream, bool is_input, OwnedDescriptor* child_end,
                           OwnedDescriptor* our_end, int* child_fd) {
  switch (stream.kind) {
    case ChildStream::Kind::kNull: {
      REPOTXN_ASSIGN_OR_RETURN(*child_end, OpenNullDevice());
      *child_fd = child_end->get();
      return absl::OkStatus();
    }
    case ChildStream::Kind::kPipe: {
      REPOTXN_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
      *child_end = is_input ? std::move(pipe.reader) : std::move(pipe.writer);
      *our_end = is_input ? std::move(pipe.writer) : std::move(pipe.reader);
      *child_fd = child_end->get();
      return absl::OkStatus();
    }
    case ChildStream::Kind::kDescriptor:
      *child_fd = stream.fd;
      return absl::OkStatus();
  }
  return absl::InternalError("unknown kind of stream");
}

std::vector<char*> PointersTo(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  // exec takes them as not const and does not write to them.
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int ResourceNumber(ChildLimit::Resource resource) {
  switch (resource) {
    case ChildLimit::Resource::kCpuSeconds:
      return RLIMIT_CPU;
    case ChildLimit::Resource::kAddressSpaceBytes:
      return RLIMIT_AS;
    case ChildLimit::Resource::kFileBytes:
      return RLIMIT_FSIZE;
    case ChildLimit::Resource::kOpenFiles:
      return RLIMIT_NOFILE;
    case ChildLimit::Resource::kCoreBytes:
      return RLIMIT_CORE;
  }
  return RLIMIT_CORE;
}

// One pass of Communicate(): the streams, and what has been moved so far.
class Conversation {
 public:
  Conversation(int pid_fd, absl::string_view input, const CommunicateLimits& limits)
      : pid_fd_(pid_fd), input_(input), limits_(limits) {}

  // Moves data until the leader has ended and what it wrote is read. The descriptors of ended
  // streams are closed.
  absl::Status Run(OwnedDescriptor* in, OwnedDescriptor* out, OwnedDescriptor* err,
                   absl::Duration timeout);
  ChildOutput& output() { return output_; }

 private:
  // Gives what the pipe takes now; closes it when all is given or nobody reads.
  void Feed(OwnedDescriptor* in);
  // Takes what is there now; closes the pipe at its end.
  absl::Status DrainOut(OwnedDescriptor* out);
  absl::Status DrainErr(OwnedDescriptor* err);
  // One read that does not block: >0 bytes, 0 nothing now, -1 the end.
  ssize_t ReadSome(int fd, std::string* chunk);

  const int pid_fd_;
  absl::string_view input_;
  const CommunicateLimits& limits_;
  ChildOutput output_;
};

void MakeNonBlocking(const OwnedDescriptor& fd) {
  if (!fd.is_open()) return;
  const int flags = fcntl(fd.get(), F_GETFL);
  const bool done = flags >= 0 && fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == 0;
  REPOTXN_DCHECK(done);
  static_cast<void>(done);
}

absl::Status Conversation::Run(OwnedDescriptor* in, OwnedDescriptor* out, OwnedDescriptor* err,
                               absl::Duration timeout) {
  for (const OwnedDescriptor* fd : {in, out, err}) MakeNonBlocking(*fd);
  if (input_.empty()) in->Reset();
  Clock* const clock = Clock::System();
  const absl::Duration end = clock->Monotonic() + timeout;
  while (true) {
    // A negative descriptor is skipped by poll.
    struct pollfd items[4] = {{pid_fd_, POLLIN, 0},
                              {in->get(), POLLOUT, 0},
                              {out->get(), POLLIN, 0},
                              {err->get(), POLLIN, 0}};
    int wait_ms = -1;
    if (timeout != absl::InfiniteDuration()) {
      const absl::Duration left = end - clock->Monotonic();
      if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("child took too long");
      wait_ms = static_cast<int>(
          std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, int64_t{INT_MAX}));
    }
    if (poll(items, 4, wait_ms) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll child");
    // Ended before this reading: then all it wrote is in the pipes now, and the rest is other
    // processes'.
    const bool has_ended = (items[0].revents & POLLIN) != 0;
    if (items[1].revents != 0) Feed(in);
    REPOTXN_RETURN_IF_ERROR(DrainOut(out));
    REPOTXN_RETURN_IF_ERROR(DrainErr(err));
    if (has_ended) return absl::OkStatus();
  }
}

void Conversation::Feed(OwnedDescriptor* in) {
  const absl::StatusOr<size_t> put = WriteSomeDescriptor(in->get(), input_);
  // An error is a child that stopped reading, which is its right.
  if (put.ok()) input_.remove_prefix(*put);
  if (!put.ok() || input_.empty()) in->Reset();
}

ssize_t Conversation::ReadSome(int fd, std::string* chunk) {
  chunk->resize(kReadBytes);
  while (true) {
    const ssize_t got = read(fd, chunk->data(), chunk->size());
    if (got > 0) chunk->resize(static_cast<size_t>(got));
    if (got > 0) return got;
    if (got == 0) return -1;
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return -1;
  }
}

absl::Status Conversation::DrainOut(OwnedDescriptor* out) {
  std::string chunk;
  while (out->is_open()) {
    const ssize_t got = ReadSome(out->get(), &chunk);
    if (got == 0) break;
    if (got < 0) {
      out->Reset();
      break;
    }
    if (output_.out.size() + chunk.size() > limits_.stdout_bytes_max) {
      return absl::ResourceExhaustedError("child wrote more than its limit");
    }
    output_.out += chunk;
  }
  return absl::OkStatus();
}

absl::Status Conversation::DrainErr(OwnedDescriptor* err) {
  std::string chunk;
  // A chunk at a time: a child that never stops complaining must not keep us from looking at the
  // clock.
  const ssize_t got = err->is_open() ? ReadSome(err->get(), &chunk) : 0;
  if (got < 0) err->Reset();
  if (got <= 0) return absl::OkStatus();
  const size_t room = limits_.stderr_bytes_max - output_.err.size();
  output_.err.append(chunk, 0, room);
  output_.is_err_truncated |= chunk.size() > room;
  return absl::OkStatus();
}

}  // namespace

std::string ExitStatus::ToString() const {
  return absl::StrCat(was_signalled ? "signal " : "exit ", code);
}

ChildProcess::ChildProcess(int pid, OwnedDescriptor pid_descriptor)
    : pid_(pid), pid_descriptor_(std::move(pid_descriptor)) {}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  REPOTXN_OUTSIDE_CRITICAL_SECTION();
  REPOTXN_RETURN_IF_ERROR(CheckOptions(options));
  REPOTXN_ASSIGN_OR_RETURN(const std::string program, FindProgram(options));
  const std::vector<char*> argv = PointersTo(options.argv);
  const std::vector<char*> environment = PointersTo(options.environment);

  SpawnRequest request;
  request.program = program.c_str();
  request.argv = argv.data();
  request.environment = environment.data();
  request.directory = options.working_directory.empty() ? "/" : options.working_directory.c_str();
  OwnedDescriptor child_ends[3];
  OwnedDescriptor our_ends[3];
  const ChildStream* const streams[3] = {&options.stdin_stream, &options.stdout_stream,
                                         &options.stderr_stream};
  for (size_t i = 0; i < 3; ++i) {
    REPOTXN_RETURN_IF_ERROR(PrepareStream(*streams[i], /*is_input=*/i == 0, &child_ends[i],
                                          &our_ends[i], &request.streams[i]));
  }
  request.inherited = options.inherited_descriptors;
  std::sort(request.inherited.begin(), request.inherited.end());
  request.inherited.erase(std::unique(request.inherited.begin(), request.inherited.end()),
                          request.inherited.end());
  for (const ChildLimit& limit : options.limits) {
    request.limits.emplace_back(ResourceNumber(limit.resource), rlimit{limit.value, limit.value});
  }

  SpawnOnSpawnerThread(&request);
  if (request.error != 0) return ErrnoStatus(request.error, request.failed_step);
  std::unique_ptr<ChildProcess> child(
      new ChildProcess(request.pid, OwnedDescriptor(request.pid_fd)));
  child->stdin_ = std::move(our_ends[0]);
  child->stdout_ = std::move(our_ends[1]);
  child->stderr_ = std::move(our_ends[2]);
  return child;
}

ChildProcess::~ChildProcess() {
  KillGroup();
  int ignored = 0;
  while (waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
  }
}

absl::StatusOr<ExitStatus> ChildProcess::Wait(absl::Duration timeout) {
  REPOTXN_ASSIGN_OR_RETURN(const bool has_ended, WaitReadable(pid_descriptor_.get(), timeout));
  if (!has_ended) return absl::DeadlineExceededError("child is still running");
  // Looks without reaping: the number stays ours until the destructor.
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) {
    // ECHILD: the process ignores SIGCHLD or somebody else reaped; the status is lost.
    if (errno != EINTR) return ErrnoStatus(errno, "wait for child");
  }
  return ExitStatus{info.si_code != CLD_EXITED, info.si_status};
}

absl::StatusOr<ChildOutput> ChildProcess::Communicate(absl::string_view input,
                                                      const CommunicateLimits& limits,
                                                      absl::Duration timeout) {
  Conversation conversation(pid_descriptor_.get(), input, limits);
  const absl::Status status = conversation.Run(&stdin_, &stdout_, &stderr_, timeout);
  // Whether it went well or not, nothing of the group is to go on.
  KillGroup();
  REPOTXN_RETURN_IF_ERROR(status);
  REPOTXN_ASSIGN_OR_RETURN(conversation.output().exit, Wait(absl::InfiniteDuration()));
  return std::move(conversation.output());
}

void ChildProcess::KillGroup() { kill(-pid_, SIGKILL); }

}  // namespace repotxn::storage
