#include "storage/wait_limit.h"

#include <algorithm>

namespace repotxn::storage {
namespace {

// The clock of a deadline may be set, or be a test's: it is looked at again at least so often.
constexpr absl::Duration kLookAgain = absl::Milliseconds(50);
constexpr absl::Duration kShortestWait = absl::Milliseconds(1);

}  // namespace

absl::Status WaitLimit::Check() const {
  if (cancellation.stop_requested()) return absl::CancelledError("call was cancelled");
  if (deadline != absl::InfiniteFuture() && clock->Now() > deadline) {
    return absl::DeadlineExceededError("deadline passed");
  }
  return absl::OkStatus();
}

CancellationWaker::CancellationWaker(const WaitLimit& limit, Mutex* mutex, CondVar* cond) {
  if (!limit.cancellation.stop_possible()) return;
  callback_.emplace(limit.cancellation, [mutex, cond] {
    const MutexLock lock(mutex);
    cond->SignalAll();
  });
}

void WaitWithin(const WaitLimit& limit, CondVar* cond, Mutex* mutex, absl::Duration patience) {
  if (limit.deadline != absl::InfiniteFuture()) {
    patience = std::min({patience, limit.deadline - limit.clock->Now(), kLookAgain});
  }
  if (patience == absl::InfiniteDuration()) return cond->Wait(mutex);
  cond->WaitFor(mutex, std::max(patience, kShortestWait));
}

}  // namespace repotxn::storage
