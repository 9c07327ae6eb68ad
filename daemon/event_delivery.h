// Carries committed entries from a consumer of the store to one sink, in order, at least once.
//
// One thread: next entries, deliver each, acknowledge each. A delivery that fails is tried again after 1, 2, 4 ... 60 s, for
// ever: order would be lost otherwise. Meanwhile the consumer holds the log back up to its limit; beyond it the store drops
// it, which is logged, and nothing more is delivered until the operator has removed it (`repotxn consumers drop`) and the
// server is started again.
// Entries that change no ref are acknowledged and not told.
//
// If we die between delivery and acknowledgement, the entry is delivered again.
//
// Thread-safe. Lifetime: store and clock outlive it; it is stopped before the store is closed.
#ifndef REPOTXN_DAEMON_EVENT_DELIVERY_H_
#define REPOTXN_DAEMON_EVENT_DELIVERY_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/event_sink.h"
#include "storage/clock.h"
#include "storage/sync.h"
#include "txn/store.h"

namespace repotxn::daemon {

struct EventDeliveryOptions {
  absl::Duration backoff_first = absl::Seconds(1);
  absl::Duration backoff_max = absl::Seconds(60);
};

// Time to wait after so many failures in a row (1 or more).
absl::Duration BackoffAfter(int failures, const EventDeliveryOptions& options);

class EventDelivery {
 public:
  // Makes the consumer `name` when there is none, from now on, and starts.
  static absl::StatusOr<std::unique_ptr<EventDelivery>> Start(txn::Store* store, storage::Clock* clock,
                                                              const std::string& name,
                                                              std::unique_ptr<EventSink> sink,
                                                              const EventDeliveryOptions& options);
  ~EventDelivery() { Stop(); }

  // Breaks off what is under way; it is delivered again at the next start. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  EventDelivery(txn::Store* store, storage::Clock* clock, const std::string& name, std::unique_ptr<EventSink> sink,
                const EventDeliveryOptions& options)
      : store_(store), clock_(clock), name_(name), options_(options), sink_(std::move(sink)) {}

  void Run();
  absl::Status DeliverBatch();
  // False: stopped before it succeeded.
  bool DeliverUntilDone(const txn::ConsumedEntry& entry);
  // False: stopped.
  bool Pause(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_stopping() ABSL_LOCKS_EXCLUDED(mutex_);

  txn::Store* const store_;
  storage::Clock* const clock_;
  const std::string name_;
  const EventDeliveryOptions options_;
  const std::unique_ptr<EventSink> sink_;

  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  storage::CondVar stopping_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_EVENT_DELIVERY_H_
