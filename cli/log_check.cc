#include "cli/log_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/log_entries.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"
#include "wal/entry_codec.h"
#include "wal/recovery.h"
#include "wal/segment.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;

constexpr absl::string_view kCheck = "log";

// Most findings told of one log; after damage everything behind it is suspect anyway.
constexpr size_t kFindingsMax = 20;

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsUnimplemented(status);
}

absl::Status CheckEntries(storage::FileSystem& fs, const wal::RecoveryPlan::Source& source,
                          uint64_t salt, Findings& findings) {
  const StorePath path = txn::layout::Log() / wal::SegmentFileName(source.number);
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(path));
  for (const wal::ScannedEntry& entry : source.entries) {
    findings.Looked(kCheck);
    const absl::Status status = ReadLogRecord(fs, *file, salt, entry).status();
    if (status.ok()) continue;
    if (!IsDamage(status)) return status;
    if (findings.list().size() < kFindingsMax) {
      findings.Add(kCheck, path.text(),
                   absl::StrCat("entry ", entry.lsn.value(), ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogSummary> CheckLog(storage::FileSystem& fs, Findings& findings) {
  LogSummary summary;
  findings.Looked(kCheck, 0);
  const auto scanned = wal::ScanLog(&fs, txn::layout::Log());
  if (IsDamage(scanned.status())) {
    findings.Add(kCheck, "log", scanned.status().message());
    return summary;
  }
  REPOTXN_RETURN_IF_ERROR(scanned.status());
  std::map<uint64_t, uint64_t> salts;
  for (const wal::ScannedFile& file : *scanned) {
    ++(file.header.has_value() ? summary.segments : summary.spare_segments);
    if (file.header.has_value()) salts[file.number] = file.header->salt;
  }
  const wal::LogPosition first = FirstPosition(*scanned);
  const auto plan = wal::PlanRecovery(first, *scanned);
  if (IsDamage(plan.status())) {
    findings.Add(kCheck, "log", plan.status().message());
    return summary;
  }
  REPOTXN_RETURN_IF_ERROR(plan.status());
  summary.torn_bytes = plan->torn_bytes;
  summary.end = plan->end;
  for (const wal::RecoveryPlan::Source& source : plan->tail) {
    summary.entries += static_cast<int64_t>(source.entries.size());
    REPOTXN_RETURN_IF_ERROR(CheckEntries(fs, source, salts[source.number], findings));
  }
  if (summary.entries > 0) {
    summary.first_lsn = first.lsn.Next().value();
    summary.last_lsn = plan->end.lsn.value();
  }
  return summary;
}

absl::Status CheckLogEnd(storage::FileSystem& fs, const LogSummary& log, Findings& findings) {
  REPOTXN_ASSIGN_OR_RETURN(const std::string clean,
                           storage::ReadFile(fs, txn::layout::CleanMarker(), 4096));
  const std::string found =
      absl::StrCat("lsn ", log.end.lsn.value(), "\nchain ", log.end.chain.ToHex(), "\n");
  if (clean != found) {
    findings.Add(kCheck, "log",
                 absl::StrCat("ends at LSN ", log.end.lsn.value(),
                              ", which is not where the clean close left it"));
  }
  if (log.torn_bytes > 0)
    findings.Add(kCheck, "log", "has a torn tail although it was closed cleanly");
  return absl::OkStatus();
}

}  // namespace repotxn::cli
