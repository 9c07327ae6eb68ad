// Counters of the server and of its store, as Prometheus text.
//
// Thread-safe.
#ifndef REPOTXN_DAEMON_METRICS_H_
#define REPOTXN_DAEMON_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "txn/store.h"

namespace repotxn::daemon {

// What a request was for; the label `kind`.
enum class RequestKind : uint8_t { kAdvertise, kPush, kFetch, kRest, kProbe, kOther };
inline constexpr size_t kRequestKinds = 6;
const char* RequestKindName(RequestKind kind);

class RequestMetrics {
 public:
  // Upper bounds of the latency buckets in seconds; one more for what is above.
  static constexpr std::array<double, 10> kBounds = {0.001, 0.005, 0.01, 0.05, 0.1,
                                                     0.5,   1,     5,    30,   300};

  void Begin() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  // `status` is the HTTP status that was answered.
  void End(RequestKind kind, int status, absl::Duration latency);
  int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  // Appends the text of these counters.
  void AppendText(std::string* out) const;

 private:
  struct PerKind {
    std::array<std::atomic<int64_t>, 6> by_class{};  // status / 100
    std::array<std::atomic<int64_t>, kBounds.size() + 1> buckets{};
    std::atomic<int64_t> total_microseconds{0};
  };
  std::atomic<int64_t> in_flight_{0};
  std::array<PerKind, kRequestKinds> kinds_;
};

// Appends how far each consumer of committed entries lags.
void AppendConsumerMetrics(const std::vector<txn::ConsumerInfo>& consumers, std::string* out);
// Appends the text of a store's counters.
void AppendStoreMetrics(const txn::StoreMetrics& metrics, std::string* out);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_METRICS_H_
