#include "daemon/byte_pipe.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {

absl::Status BytePipe::Wait(absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("the exchange took too long");
  changed_.WaitFor(&mutex_, left);
  return absl::OkStatus();
}

absl::Status BytePipe::Write(absl::string_view bytes, absl::Time deadline) {
  storage::MutexLock lock(&mutex_);
  while (!bytes.empty()) {
    if (!broken_.ok()) return broken_;
    const size_t held = buffer_.size() - consumed_;
    if (held >= bytes_max_) {
      REPOTXN_RETURN_IF_ERROR(Wait(deadline));
      continue;
    }
    if (consumed_ > 0) {
      buffer_.erase(0, consumed_);
      consumed_ = 0;
    }
    const absl::string_view piece = bytes.substr(0, bytes_max_ - held);
    buffer_.append(piece.data(), piece.size());
    bytes.remove_prefix(piece.size());
    changed_.SignalAll();
  }
  return broken_;
}

absl::StatusOr<size_t> BytePipe::Read(absl::Span<char> out, absl::Time deadline) {
  storage::MutexLock lock(&mutex_);
  while (true) {
    if (!broken_.ok()) return broken_;
    const size_t held = buffer_.size() - consumed_;
    if (held > 0) {
      const size_t size = std::min(out.size(), held);
      std::copy_n(buffer_.data() + consumed_, size, out.data());
      consumed_ += size;
      changed_.SignalAll();
      return size;
    }
    if (is_closed_) return size_t{0};
    REPOTXN_RETURN_IF_ERROR(Wait(deadline));
  }
}

void BytePipe::Close() {
  storage::MutexLock lock(&mutex_);
  is_closed_ = true;
  changed_.SignalAll();
}

void BytePipe::Break(absl::Status reason) {
  storage::MutexLock lock(&mutex_);
  if (broken_.ok()) broken_ = std::move(reason);
  changed_.SignalAll();
}

}  // namespace repotxn::daemon
