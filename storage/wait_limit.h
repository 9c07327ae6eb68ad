// How long a caller is willing to wait: a deadline and a way to call it off.
//
//   CancellationSource source;            // kept by whoever may call it off
//   options.cancellation = source.get_token();
//   source.request_stop();                // from any thread, with no lock held that a waiter may need
//
// A wait that can be limited registers a CancellationWaker before it takes its mutex, and waits with WaitWithin().
//
// Thread-compatible; the source and its tokens are thread-safe.
#ifndef REPOTXN_STORAGE_WAIT_LIMIT_H_
#define REPOTXN_STORAGE_WAIT_LIMIT_H_

#include <functional>
#include <optional>
#include <stop_token>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/clock.h"
#include "storage/sync.h"

namespace repotxn::storage {

using CancellationSource = std::stop_source;
using CancellationToken = std::stop_token;

struct WaitLimit {
  Clock* clock = nullptr;  // needed with a deadline
  absl::Time deadline = absl::InfiniteFuture();
  CancellationToken cancellation{};

  // OK while the wait may go on. kCancelled; kDeadlineExceeded after the deadline.
  absl::Status Check() const;
};

// Wakes whoever waits on `cond` under `mutex` when the limit's token is cancelled. Made and destroyed without the mutex.
class CancellationWaker {
 public:
  CancellationWaker(const WaitLimit& limit, Mutex* mutex, CondVar* cond) ABSL_LOCKS_EXCLUDED(mutex);
  CancellationWaker(const CancellationWaker&) = delete;
  CancellationWaker& operator=(const CancellationWaker&) = delete;

 private:
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

// Waits until `cond` is signalled or it is time to Check() again; may wake spuriously. `patience` bounds it further.
void WaitWithin(const WaitLimit& limit, CondVar* cond, Mutex* mutex,
                absl::Duration patience = absl::InfiniteDuration()) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_WAIT_LIMIT_H_
