#include "daemon/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace repotxn::daemon {
namespace {

void AppendHead(absl::string_view name, absl::string_view type, absl::string_view help,
                std::string* out) {
  absl::StrAppend(out, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

struct Sample {
  const char* name;
  const char* type;
  const char* help;
  double value;
};

}  // namespace

const char* RequestKindName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kAdvertise: return "advertise";
    case RequestKind::kPush: return "push";
    case RequestKind::kFetch: return "fetch";
    case RequestKind::kRest: return "rest";
    case RequestKind::kProbe: return "probe";
    case RequestKind::kOther: return "other";
  }
  return "other";
}

void RequestMetrics::End(RequestKind kind, int status, absl::Duration latency) {
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  PerKind& counters = kinds_[static_cast<size_t>(kind)];
  const size_t status_class = static_cast<size_t>(std::clamp(status / 100, 0, 5));
  counters.by_class[status_class].fetch_add(1, std::memory_order_relaxed);
  const double seconds = absl::ToDoubleSeconds(latency);
  size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  counters.buckets[bucket].fetch_add(1, std::memory_order_relaxed);
  counters.total_microseconds.fetch_add(absl::ToInt64Microseconds(latency),
                                        std::memory_order_relaxed);
}

void RequestMetrics::AppendText(std::string* out) const {
  AppendHead("repotxn_requests_in_flight", "gauge", "HTTP requests being served.", out);
  absl::StrAppend(out, "repotxn_requests_in_flight ", in_flight(), "\n");
  AppendHead("repotxn_requests_total", "counter", "HTTP requests by kind and status class.", out);
  for (size_t k = 0; k < kRequestKinds; ++k) {
    for (size_t c = 1; c < kinds_[k].by_class.size(); ++c) {
      const int64_t count = kinds_[k].by_class[c].load(std::memory_order_relaxed);
      if (count == 0) continue;
      absl::StrAppend(out, "repotxn_requests_total{kind=\"",
                      RequestKindName(static_cast<RequestKind>(k)), "\",class=\"", c, "xx\"} ",
                      count, "\n");
    }
  }
  AppendHead("repotxn_request_seconds", "histogram", "Time of an HTTP request.", out);
  for (size_t k = 0; k < kRequestKinds; ++k) {
    const char* kind = RequestKindName(static_cast<RequestKind>(k));
    int64_t count = 0;
    for (size_t b = 0; b <= kBounds.size(); ++b) {
      count += kinds_[k].buckets[b].load(std::memory_order_relaxed);
      absl::StrAppend(out, "repotxn_request_seconds_bucket{kind=\"", kind, "\",le=\"");
      if (b < kBounds.size()) {
        absl::StrAppend(out, kBounds[b]);
      } else {
        absl::StrAppend(out, "+Inf");
      }
      absl::StrAppend(out, "\"} ", count, "\n");
    }
    const int64_t micros = kinds_[k].total_microseconds.load(std::memory_order_relaxed);
    absl::StrAppend(out, "repotxn_request_seconds_sum{kind=\"", kind, "\"} ",
                    static_cast<double>(micros) * 1e-6, "\n", "repotxn_request_seconds_count{kind=\"",
                    kind, "\"} ", count, "\n");
  }
}

void AppendConsumerMetrics(const std::vector<txn::ConsumerInfo>& consumers, std::string* out) {
  if (consumers.empty()) return;
  const auto append = [&](absl::string_view name, absl::string_view help, auto value_of) {
    AppendHead(name, "gauge", help, out);
    for (const txn::ConsumerInfo& consumer : consumers) {
      // Names have no character that would need escaping.
      absl::StrAppend(out, name, "{consumer=\"", consumer.name, "\"} ", value_of(consumer), "\n");
    }
  };
  append("repotxn_consumer_lag_entries", "Entries that a consumer has not acknowledged.",
         [](const auto& consumer) { return consumer.lag_entries; });
  append("repotxn_consumer_lag_bytes", "Bytes of log that a consumer has not acknowledged.",
         [](const auto& consumer) { return consumer.lag_bytes; });
  append("repotxn_consumer_dropped", "1 when a consumer lagged too far and gets nothing any more.",
         [](const auto& consumer) { return consumer.is_dropped ? 1 : 0; });
}

namespace {

void AppendHousekeepingMetrics(const txn::StoreMetrics& metrics, std::string* out) {
  AppendHead("repotxn_housekeeping_tasks_total", "counter", "Tasks of housekeeping by name and outcome.", out);
  for (const txn::HousekeepingTask task : txn::kAllHousekeeping) {
    for (size_t o = 0; o < txn::kTaskOutcomes; ++o) {
      const int64_t count = metrics.housekeeping_results[static_cast<size_t>(task)][o];
      absl::StrAppend(out, "repotxn_housekeeping_tasks_total{task=\"", txn::HousekeepingTaskName(task), "\",outcome=\"",
                      txn::TaskOutcomeName(static_cast<txn::TaskOutcome>(o)), "\"} ", count, "\n");
    }
  }
  const Sample samples[] = {
      {"repotxn_housekeeping_repositories_waiting", "gauge", "Repositories that need housekeeping.",
       static_cast<double>(metrics.repositories_needing_housekeeping)},
      {"repotxn_housekeeping_oldest_need_seconds", "gauge", "How long one of them has been waiting.",
       absl::ToDoubleSeconds(metrics.housekeeping_oldest_need)},
      {"repotxn_housekeeping_paused", "gauge", "1 while the background begins no task.",
       metrics.housekeeping_is_paused ? 1.0 : 0.0},
      {"repotxn_condemned_bytes", "gauge", "Bytes of removed packs that older readers still keep on disk.",
       static_cast<double>(metrics.condemned_bytes)},
  };
  for (const Sample& sample : samples) {
    AppendHead(sample.name, sample.type, sample.help, out);
    absl::StrAppend(out, sample.name, " ", static_cast<int64_t>(sample.value), "\n");
  }
}

}  // namespace

void AppendStoreMetrics(const txn::StoreMetrics& metrics, std::string* out) {
  AppendHousekeepingMetrics(metrics, out);
  const auto number = [](auto value) { return static_cast<double>(value); };
  const Sample samples[] = {
      {"commits_total", "counter", "Transactions committed.", number(metrics.commits)},
      {"conflicts_total", "counter", "Commits refused by a conflict.", number(metrics.conflicts)},
      {"writers_in_line", "gauge", "Writers in line for a hot key.", number(metrics.writers_in_line)},
      {"commits_waiting", "gauge", "Commits in admission queues.", number(metrics.commits_waiting)},
      {"commits_detached", "gauge", "Commits under way whose callers have left.",
       number(metrics.commits_detached)},
      {"transactions_ended_idle_total", "counter", "Transactions ended because nobody used them.",
       number(metrics.transactions_ended_idle)},
      {"transactions_ended_too_old_total", "counter",
       "Transactions ended because their snapshots kept too much.",
       number(metrics.transactions_ended_too_old)},
      {"history_bytes", "gauge", "Memory of the conflict histories.", number(metrics.history_bytes)},
      {"retries_total", "counter", "Bodies run again.", number(metrics.retries)},
      {"log_syncs_total", "counter", "Syncs of the log.", number(metrics.log_syncs)},
      {"materialized_batches_total", "counter", "Batches written into repositories.",
       number(metrics.materialized_batches)},
      {"ref_packings_total", "counter", "Packings of loose refs.", number(metrics.ref_packings)},
      {"checkpoints_total", "counter", "Checkpoints.", number(metrics.checkpoints)},
      {"discrepancies", "gauge", "Differences between catalogue and disk at the last look.",
       number(metrics.discrepancies)},
      {"reconciled_total", "counter", "Acts of reconciliation.", number(metrics.reconciled)},
      {"snapshots_made_total", "counter", "Snapshot directories made.",
       number(metrics.snapshots_made)},
      {"snapshots_shared_total", "counter", "Requests served from a shared snapshot directory.",
       number(metrics.snapshots_shared)},
      {"snapshots_live", "gauge", "Snapshot directories in use.", number(metrics.snapshots_live)},
      {"open_transactions", "gauge", "Transactions open.", number(metrics.open_transactions)},
      {"overlay_bytes", "gauge", "Bytes of versions in memory.", number(metrics.overlay_bytes)},
      {"repositories", "gauge", "Repositories.", number(metrics.repositories)},
      {"committed_lsn", "gauge", "Newest committed LSN.", number(metrics.committed_lsn)},
      {"materialized_lsn", "gauge", "Newest LSN written into repositories.",
       number(metrics.materialized_lsn)},
      {"applied_lsn", "gauge", "Newest LSN durable outside the log.", number(metrics.applied_lsn)},
      {"oldest_snapshot_lsn", "gauge", "Oldest snapshot LSN in use.",
       number(metrics.oldest_snapshot_lsn)},
      {"pack_merges_total", "counter", "Merges of the packs of a repository.", static_cast<double>(metrics.pack_merges)},
      {"packs_condemned", "gauge", "Removed packs that older readers still keep on disk.",
       static_cast<double>(metrics.packs_condemned)},
      {"repositories_set_aside", "gauge", "Repositories whose directories cannot be written.",
       static_cast<double>(metrics.repositories_set_aside)},
      {"poisoned", "gauge", "1 when the store takes no more writes.",
       metrics.poisoned ? 1.0 : 0.0},
  };
  for (const Sample& sample : samples) {
    const std::string name = absl::StrCat("repotxn_store_", sample.name);
    AppendHead(name, sample.type, sample.help, out);
    // Whole numbers in full: %g would cut an LSN to six digits.
    absl::StrAppend(out, name, " ", static_cast<int64_t>(sample.value), "\n");
  }
}

}  // namespace repotxn::daemon
