#include "cli/log_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

// Where reading starts: in front of the first entry of the newest segment that recovery made, or of
// the oldest segment there is. What was trimmed before that is in the repositories and needs no
// log.
wal::LogPosition FirstPosition(const std::vector<wal::ScannedFile>& files) {
  const wal::SegmentHeader* start = nullptr;
  for (const wal::ScannedFile& file : files) {
    if (!file.header.has_value()) continue;
    if (start == nullptr || file.header->is_recovered()) start = &*file.header;
  }
  if (start == nullptr) return wal::LogPosition();
  return wal::LogPosition{.lsn = start->first_lsn.Previous(), .chain = start->previous_chain};
}

// Body of an entry whose manifest is a payload file; empty optional when the file is gone, which it
// is after the checkpoint that covers the entry.
absl::StatusOr<std::string> PayloadBody(storage::FileSystem& fs, const wal::EntryHeader& header) {
  const StorePath path =
      txn::layout::Payload() / header.transaction_id.ToHex() / absl::StrCat(header.payload_index);
  return storage::ReadFile(fs, path);
}

// Decodes one entry wholly.
absl::Status CheckEntry(storage::FileSystem& fs, const storage::ReadableFile& file, uint64_t salt,
                        const wal::ScannedEntry& entry) {
  std::string bytes;
  REPOTXN_ASSIGN_OR_RETURN(const wal::EntryHeader header,
                           wal::ReadEntryRecord(file, salt, entry.offset, entry.lsn, &bytes));
  const absl::string_view all(bytes.data(), bytes.size());
  const absl::string_view body = all.substr(wal::kEntryHeaderBytes, header.body_bytes);
  const absl::string_view dropped =
      all.substr(wal::kEntryHeaderBytes + header.body_bytes, header.dropped_bytes);
  if (!header.body_is_payload) return wal::DecodeEntry(header, body, dropped).status();
  const auto payload = PayloadBody(fs, header);
  if (absl::IsNotFound(payload.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(payload.status());
  return wal::DecodeEntry(header, absl::string_view(payload->data(), payload->size()), dropped)
      .status();
}

absl::Status CheckEntries(storage::FileSystem& fs, const wal::RecoveryPlan::Source& source,
                          uint64_t salt, Findings& findings) {
  const StorePath path = txn::layout::Log() / wal::SegmentFileName(source.number);
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(path));
  for (const wal::ScannedEntry& entry : source.entries) {
    findings.Looked(kCheck);
    const absl::Status status = CheckEntry(fs, *file, salt, entry);
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
