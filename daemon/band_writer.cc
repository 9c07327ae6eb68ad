#include "daemon/band_writer.h"

#include "daemon/pkt_line.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {

BandWriter::BandWriter(ResponseWriter& out, const PushCapabilities& capabilities,
                       absl::Duration keep_alive_interval)
    : out_(out), capabilities_(capabilities), interval_(keep_alive_interval) {}

void BandWriter::Send(absl::string_view bytes) {
  IgnoreBecause(out_.Write(bytes), "a client that is gone does not stop its push");
  has_sent_ = true;
}

void BandWriter::Progress(absl::string_view text) {
  if (!capabilities_.side_band_64k || text.empty()) return;
  std::string frames;
  AppendBand(Band::kProgress, text, &frames);
  storage::MutexLock lock(&mutex_);
  Send(frames);
}

void BandWriter::StartTicking() {
  if (!capabilities_.side_band_64k || ticker_.joinable()) return;
  ticker_ = std::thread([this] { Tick(); });
}

void BandWriter::Tick() {
  std::string frame;
  AppendKeepAlive(&frame);
  storage::MutexLock lock(&mutex_);
  while (!is_ended_) {
    has_sent_ = false;
    const bool is_silent = changed_.WaitFor(&mutex_, interval_) && !has_sent_;
    if (is_silent && !is_ended_) Send(frame);
  }
}

void BandWriter::StopTicking() {
  {
    storage::MutexLock lock(&mutex_);
    is_ended_ = true;
    changed_.SignalAll();
  }
  if (ticker_.joinable()) ticker_.join();
}

void BandWriter::Finish(const PushReport& report) {
  StopTicking();
  storage::MutexLock lock(&mutex_);
  Send(EncodePushReport(report, capabilities_));
}

}  // namespace repotxn::daemon
