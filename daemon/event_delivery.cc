#include "daemon/event_delivery.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {

absl::Duration BackoffAfter(int failures, const EventDeliveryOptions& options) {
  absl::Duration backoff = options.backoff_first;
  for (int n = 1; n < failures && backoff < options.backoff_max; ++n) backoff *= 2;
  return std::min(backoff, options.backoff_max);
}

absl::StatusOr<std::unique_ptr<EventDelivery>> EventDelivery::Start(txn::Store* store, storage::Clock* clock,
                                                                    const std::string& name,
                                                                    std::unique_ptr<EventSink> sink,
                                                                    const EventDeliveryOptions& options) {
  const absl::Status made = store->CreateConsumer(name, {});
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  std::unique_ptr<EventDelivery> delivery(new EventDelivery(store, clock, name, std::move(sink), options));
  delivery->thread_ = std::thread([raw = delivery.get()] { raw->Run(); });
  return delivery;
}

void EventDelivery::Stop() {
  {
    const storage::MutexLock lock(&mutex_);
    is_stopping_ = true;
    stopping_.SignalAll();
  }
  if (!thread_.joinable()) return;
  sink_->Cancel();
  // Removed meanwhile: then its wait has ended too.
  if (absl::Status status = store_->InterruptConsumer(name_); !status.ok() && !absl::IsNotFound(status)) {
    storage::LogWarning(absl::StrCat("delivery of events: ", status.message()));
  }
  thread_.join();
}

bool EventDelivery::is_stopping() {
  const storage::MutexLock lock(&mutex_);
  return is_stopping_;
}

void EventDelivery::Run() {
  // A receiver may be gone when the HTTP library writes to it: that is an error of the call, no end of the process.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  absl::Status status;
  while (status.ok() && !is_stopping()) {
    status = DeliverBatch();
    if (absl::IsCancelled(status)) status = absl::OkStatus();
  }
  if (!status.ok()) {
    storage::LogError(absl::StrCat("delivery of events to ", name_, " has ended: ", status.message()));
  }
}

absl::Status EventDelivery::DeliverBatch() {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<txn::ConsumedEntry> entries, store_->NextEntries(name_, {}));
  if (!entries.empty() && REPOTXN_PLANT("daemon.acknowledge_before_delivery")) {
    REPOTXN_RETURN_IF_ERROR(store_->AcknowledgeEntries(name_, entries.back().lsn));
  }
  for (const txn::ConsumedEntry& entry : entries) {
    if (!entry.ref_changes.empty() && !DeliverUntilDone(entry)) return absl::CancelledError("stopping");
    REPOTXN_RETURN_IF_ERROR(store_->AcknowledgeEntries(name_, entry.lsn));
  }
  return absl::OkStatus();
}

bool EventDelivery::DeliverUntilDone(const txn::ConsumedEntry& entry) {
  for (int failures = 1; !is_stopping(); ++failures) {
    const absl::Status status = sink_->Deliver(entry);
    if (status.ok()) return true;
    if (is_stopping()) return false;
    storage::LogWarning(absl::StrCat("event of LSN ", entry.lsn.value(), " is not delivered to ", name_,
                                     " yet: ", status.message()));
    if (!Pause(BackoffAfter(failures, options_))) return false;
  }
  return false;
}

bool EventDelivery::Pause(absl::Duration time) {
  const absl::Duration until = clock_->Monotonic() + time;
  const storage::MutexLock lock(&mutex_);
  while (!is_stopping_ && clock_->Monotonic() < until) {
    if (stopping_.WaitFor(&mutex_, until - clock_->Monotonic())) break;
  }
  return !is_stopping_;
}

}  // namespace repotxn::daemon
