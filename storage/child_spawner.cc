#include "storage/child_spawner.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "storage/check.h"

namespace repotxn::storage {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr int kExecFailed = 127;

// --- In the child: system calls only. Each step gives false with errno set. ---

bool ResetSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    // Those that cannot be set, SIGKILL and the threading library's own, stay as they are.
    if (sigaction(signal, &action, nullptr) != 0 && errno != EINVAL) return false;
  }
  sigset_t none;
  sigemptyset(&none);
  return sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
}

// Asks the kernel to kill us with our parent; false with ESRCH when it is dead already.
bool DieWithParent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  errno = ESRCH;
  return getppid() == parent;
}

bool PlaceStreams(const int* streams) {
  int moved[3];
  // First out of the way of 0 to 2, where a source may sit that a later stream still needs. The
  // copies are close-on-exec, the final ones not.
  for (int i = 0; i < 3; ++i) {
    moved[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 3);
    if (moved[i] < 0) return false;
  }
  for (int i = 0; i < 3; ++i) {
    // The bare call: sanitizers keep books of dup2(), by numbers that are the parent's to them.
    if (syscall(SYS_dup3, moved[i], i, 0) < 0) return false;
  }
  return true;
}

// Closes everything but 0 to 2 and the inherited ones. Marks instead of closing: what a
// shared-memory child closes early it could still need on the way to exec.
bool KeepOnly(const std::vector<int>& inherited) {
  if (close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC) != 0) return false;
  for (const int fd : inherited) {
    if (fcntl(fd, F_SETFD, 0) != 0) return false;
  }
  return true;
}

bool SetLimits(const std::vector<std::pair<int, rlimit>>& limits) {
  for (const auto& [resource, limit] : limits) {
    if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return false;
  }
  return true;
}

#ifdef REPOTXN_TSAN
// The child shares our memory and never returns: what it does must not enter the books that are kept of this thread.
#define REPOTXN_IN_CHILD __attribute__((no_sanitize("thread"), disable_sanitizer_instrumentation))
#else
#define REPOTXN_IN_CHILD
#endif

struct ChildStart {
  SpawnRequest* request;
  pid_t parent;
};

REPOTXN_IN_CHILD int RunChild(void* argument) {
  const ChildStart& start = *static_cast<ChildStart*>(argument);
  SpawnRequest& request = *start.request;
  const auto fail = [&request](const char* step) {
    request.error = errno;
    request.failed_step = step;
    _exit(kExecFailed);
  };
  umask(022);
  if (!DieWithParent(start.parent)) fail("tie child to its parent");
  if (setpgid(0, 0) != 0) fail("set process group");
  if (!ResetSignals()) fail("reset signals");
  if (!PlaceStreams(request.streams)) fail("place streams");
  if (!KeepOnly(request.inherited)) fail("close descriptors");
  if (chdir(request.directory) != 0) fail("enter working directory");
  if (!SetLimits(request.limits)) fail("set limits");
  execve(request.program, request.argv, request.environment);
  fail("execute program");
  return kExecFailed;
}

// --- In the parent ---

// A stack for the child, below a page that cannot be touched. The start waits for the exec, so one
// is enough.
class ChildStack {
 public:
  ChildStack() {
    base_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (base_ == MAP_FAILED) std::abort();
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (mprotect(base_, page, PROT_NONE) != 0) std::abort();
  }
  void* top() const { return static_cast<char*>(base_) + kStackBytes; }

 private:
  void* base_;
};

#ifdef REPOTXN_TSAN
// ThreadSanitizer takes clone() for a fork, which a child that shares our memory is not: past its interceptor.
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);
#define StartChild __clone
#else
#define StartChild clone
#endif

void Spawn(SpawnRequest* request, const ChildStack& stack) {
  ChildStart start = {request, getpid()};
  // Signals are blocked in this thread, so no handler of the process runs in the child, on memory
  // it shares with us.
  const int pid = StartChild(RunChild, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
                        &start, &request->pid_fd);
  if (pid < 0) {
    request->error = errno;
    request->failed_step = "start child";
    request->pid_fd = -1;
    return;
  }
  request->pid = pid;
  if (request->error == 0) return;
  close(request->pid_fd);
  request->pid_fd = -1;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

class Spawner {
 public:
  Spawner() {
    // A new thread has the mask of its maker.
    sigset_t all;
    sigset_t old_mask;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_mask);
    std::thread([this] { Run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  }

  void Handle(SpawnRequest* request) {
    Work work = {request, false};
    const MutexLock lock(&mutex_);
    queue_.push_back(&work);
    changed_.SignalAll();
    while (!work.is_done) changed_.Wait(&mutex_);
  }

 private:
  struct Work {
    SpawnRequest* request;
    bool is_done;
  };

  [[noreturn]] void Run() {
    const ChildStack stack;
    while (true) {
      Work* work = nullptr;
      {
        const MutexLock lock(&mutex_);
        while (queue_.empty()) changed_.Wait(&mutex_);
        work = queue_.front();
        queue_.pop_front();
      }
      Spawn(work->request, stack);
      const MutexLock lock(&mutex_);
      work->is_done = true;
      changed_.SignalAll();
    }
  }

  Mutex mutex_{MutexRank::kInnermost};
  CondVar changed_;
  std::deque<Work*> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void SpawnOnSpawnerThread(SpawnRequest* request) {
  // Never destroyed: the thread must not end while a child lives, for its end would kill the child.
  static Spawner* const spawner = new Spawner;
  spawner->Handle(request);
}

}  // namespace repotxn::storage
