// A bounded pipe of bytes between two threads of this process.
//
// Carries a body from the thread that reads the connection to the thread that runs the handler, and
// the answer back; the bound is what keeps a slow end from filling the memory.
//
// Thread-safe: one writer and one reader; Close and Break from anywhere.
#ifndef REPOTXN_DAEMON_BYTE_PIPE_H_
#define REPOTXN_DAEMON_BYTE_PIPE_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/sync.h"

namespace repotxn::daemon {

class BytePipe {
 public:
  // Holds at most `bytes_max` bytes, at least one.
  explicit BytePipe(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Hands over all of `bytes`, waiting for room. kDeadlineExceeded when that takes beyond
  // `deadline`; the reason of Break() when it was called.
  absl::Status Write(absl::string_view bytes, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for at least one byte. 0: closed and empty.
  absl::StatusOr<size_t> Read(absl::Span<char> out, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The writer has finished; what is inside can still be read. Idempotent.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // Both ends fail with `reason` from now on, also those that wait. The first reason stays.
  void Break(absl::Status reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Waits for a change; kDeadlineExceeded when `deadline` has passed.
  absl::Status Wait(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t bytes_max_;
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar changed_;
  std::string buffer_ ABSL_GUARDED_BY(mutex_);
  size_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_BYTE_PIPE_H_
