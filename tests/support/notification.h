// A one-time event between threads: like absl::Notification, and known to ThreadSanitizer.
//
// Thread-safe.
#ifndef REPOTXN_TESTS_SUPPORT_NOTIFICATION_H_
#define REPOTXN_TESTS_SUPPORT_NOTIFICATION_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "storage/sync.h"

namespace repotxn::testing {

class Notification {
 public:
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_) {
    const storage::MutexLock lock(&mutex_);
    notified_ = true;
    changed_.SignalAll();
  }
  bool HasBeenNotified() ABSL_LOCKS_EXCLUDED(mutex_) {
    const storage::MutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() ABSL_LOCKS_EXCLUDED(mutex_) {
    const storage::MutexLock lock(&mutex_);
    while (!notified_) changed_.Wait(&mutex_);
  }
  // Whether it came within `timeout`.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_) {
    const storage::MutexLock lock(&mutex_);
    while (!notified_) {
      if (changed_.WaitFor(&mutex_, timeout)) break;
    }
    return notified_;
  }

 private:
  storage::Mutex mutex_{storage::MutexRank::kInnermost};
  storage::CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_NOTIFICATION_H_
