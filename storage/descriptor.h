// Owned descriptors and the few calls on pipes and sockets that the code above needs, so that it
// includes no system header.
//
// Thread-safety: functions are Thread-safe; OwnedDescriptor and DescriptorReader are Externally
// synchronised by their owner.
#ifndef REPOTXN_STORAGE_DESCRIPTOR_H_
#define REPOTXN_STORAGE_DESCRIPTOR_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace repotxn::storage {

// Closes its descriptor when destroyed. -1 is none.
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  explicit OwnedDescriptor(int fd) : fd_(fd) {}
  ~OwnedDescriptor() { Reset(); }
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(other.Release()) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  // Closes what is held and takes `fd`.
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  OwnedDescriptor reader;
  OwnedDescriptor writer;
};
// Both ends are close-on-exec. kResourceExhausted when descriptors ran out.
absl::StatusOr<Pipe> MakePipe();
// A null device opened for reading and writing.
absl::StatusOr<OwnedDescriptor> OpenNullDevice();

// Reads at least one byte, at most out.size(); waits for it also on a non-blocking descriptor. 0 is
// the end.
absl::StatusOr<size_t> ReadDescriptor(int fd, absl::Span<char> out);
// Writes all of `data`; waits also on a non-blocking descriptor. A reader that is gone gives
// kUnavailable (EPIPE); no SIGPIPE reaches the process.
absl::Status WriteDescriptor(int fd, absl::string_view data);
// Writes what a non-blocking descriptor takes now; 0 when it takes nothing. Errors as above.
absl::StatusOr<size_t> WriteSomeDescriptor(int fd, absl::string_view data);
// Whether a read would not block (data or the end) before `timeout` has passed.
absl::StatusOr<bool> WaitReadable(int fd, absl::Duration timeout);

// Buffered reading of lines and counted bytes from one descriptor, which it borrows.
class DescriptorReader {
 public:
  explicit DescriptorReader(int fd) : fd_(fd) {}

  // Next line without its newline. kOutOfRange at the end (an unfinished last line included:
  // `*unfinished` gets it when not null), kResourceExhausted when longer than `bytes_max`.
  absl::StatusOr<std::string> ReadLine(size_t bytes_max, std::string* unfinished = nullptr);
  // Exactly `size` bytes; kOutOfRange when the end comes first.
  absl::StatusOr<std::string> ReadExactly(size_t size);

 private:
  // Appends what one read gives; false at the end.
  absl::StatusOr<bool> Fill();

  const int fd_;
  std::string buffer_;
  size_t consumed_ = 0;  // bytes of buffer_ that were handed out
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_DESCRIPTOR_H_
