#include "storage/descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "storage/clock.h"
#include "storage/errno_status.h"
#include "storage/status_macros.h"

namespace repotxn::storage {
namespace {

constexpr size_t kReadBytes = 64 << 10;

// Keeps the SIGPIPE of a write from the process: held back while this lives, and taken out if the
// write raised it. The embedder's handlers and masks stay as they are.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &old_mask_);
  }
  ~NoSigpipe() {
    if (raised_ && !was_pending_) {
      const struct timespec at_once = {0, 0};
      while (sigtimedwait(&sigpipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  void Raised() { raised_ = true; }

 private:
  sigset_t sigpipe_;
  sigset_t old_mask_;
  bool was_pending_ = false;
  bool raised_ = false;
};

// Waits until `fd` has one of `events` or hangs up. False when the time is over.
absl::StatusOr<bool> WaitFor(int fd, int16_t events, absl::Duration timeout) {
  Clock* const clock = Clock::System();
  const absl::Duration end = clock->Monotonic() + timeout;
  while (true) {
    struct pollfd item = {fd, events, 0};
    int64_t wait_ms = -1;
    if (timeout != absl::InfiniteDuration()) {
      const absl::Duration left = std::max(end - clock->Monotonic(), absl::ZeroDuration());
      wait_ms =
          std::min<int64_t>(absl::ToInt64Milliseconds(left + absl::Nanoseconds(999'999)), INT_MAX);
    }
    const int ready = poll(&item, 1, static_cast<int>(wait_ms));
    if (ready > 0 && (item.revents & POLLNVAL) != 0) return ErrnoStatus(EBADF, "poll");
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
    if (ready == 0 && clock->Monotonic() >= end) return false;
  }
}

}  // namespace

void OwnedDescriptor::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old >= 0) close(old);
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return Pipe{OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

absl::StatusOr<OwnedDescriptor> OpenNullDevice() {
  OwnedDescriptor fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "open null device");
  return fd;
}

absl::StatusOr<size_t> ReadDescriptor(int fd, absl::Span<char> out) {
  while (true) {
    const ssize_t got = read(fd, out.data(), out.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN) {
      REPOTXN_RETURN_IF_ERROR(WaitFor(fd, POLLIN, absl::InfiniteDuration()).status());
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "read");
    }
  }
}

absl::StatusOr<size_t> WriteSomeDescriptor(int fd, absl::string_view data) {
  NoSigpipe no_sigpipe;
  while (true) {
    const ssize_t put = write(fd, data.data(), data.size());
    if (put >= 0) {
      // A pipe whose reader goes while part is written says so by the signal alone.
      if (static_cast<size_t>(put) < data.size()) no_sigpipe.Raised();
      return static_cast<size_t>(put);
    }
    const int error = errno;
    if (error == EAGAIN) return 0;
    if (error == EINTR) continue;
    if (error == EPIPE) no_sigpipe.Raised();
    return ErrnoStatus(error, "write");
  }
}

absl::Status WriteDescriptor(int fd, absl::string_view data) {
  while (!data.empty()) {
    REPOTXN_ASSIGN_OR_RETURN(const size_t put, WriteSomeDescriptor(fd, data));
    data.remove_prefix(put);
    if (put == 0) {
      REPOTXN_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, absl::InfiniteDuration()).status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> WaitReadable(int fd, absl::Duration timeout) {
  return WaitFor(fd, POLLIN, timeout);
}

absl::StatusOr<bool> DescriptorReader::Fill() {
  if (consumed_ > 0) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const absl::StatusOr<size_t> got =
      ReadDescriptor(fd_, absl::MakeSpan(buffer_.data() + old_size, kReadBytes));
  buffer_.resize(old_size + (got.ok() ? *got : 0));
  REPOTXN_RETURN_IF_ERROR(got.status());
  return *got > 0;
}

absl::StatusOr<std::string> DescriptorReader::ReadLine(size_t bytes_max, std::string* unfinished) {
  size_t searched = 0;  // bytes after consumed_ known to hold no newline
  while (true) {
    const size_t newline = buffer_.find('\n', consumed_ + searched);
    const size_t length = (newline == std::string::npos ? buffer_.size() : newline) - consumed_;
    if (length > bytes_max) return absl::ResourceExhaustedError("line is too long");
    if (newline != std::string::npos) {
      std::string line = buffer_.substr(consumed_, length);
      consumed_ = newline + 1;
      return line;
    }
    searched = length;
    REPOTXN_ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) {
      if (unfinished != nullptr) *unfinished = buffer_;
      buffer_.clear();
      return absl::OutOfRangeError("end of stream");
    }
  }
}

absl::StatusOr<std::string> DescriptorReader::ReadExactly(size_t size) {
  while (buffer_.size() - consumed_ < size) {
    REPOTXN_ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return absl::OutOfRangeError("end of stream");
  }
  std::string data = buffer_.substr(consumed_, size);
  consumed_ += size;
  return data;
}

}  // namespace repotxn::storage
