// Answer of a push while it is being worked out: messages as they come, an empty frame when nothing
// has come for a while, the report at the end.
//
// Without side bands only the report is sent. A client that went away is no error: what was asked
// for is done anyway.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_BAND_WRITER_H_
#define REPOTXN_DAEMON_BAND_WRITER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/http_message.h"
#include "daemon/push_report.h"
#include "daemon/push_request.h"
#include "storage/sync.h"

namespace repotxn::daemon {

class BandWriter {
 public:
  // `out` must be started and must outlive it.
  BandWriter(ResponseWriter& out, const PushCapabilities& capabilities,
             absl::Duration keep_alive_interval);
  ~BandWriter() { StopTicking(); }

  // Text for people, as it is.
  void Progress(absl::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on an empty frame goes out after each interval of silence.
  void StartTicking();
  // The end of the answer.
  void Finish(const PushReport& report) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void StopTicking() ABSL_LOCKS_EXCLUDED(mutex_);
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ResponseWriter& out_;
  const PushCapabilities capabilities_;
  const absl::Duration interval_;
  std::thread ticker_;
  // Held while a frame is written, so that frames of two threads do not mix. The pipe behind the
  // writer has a mutex of its own.
  storage::Mutex mutex_{storage::MutexRank::kRegistry};
  storage::CondVar changed_;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_sent_ ABSL_GUARDED_BY(mutex_) = false;  // since the last tick
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_BAND_WRITER_H_
