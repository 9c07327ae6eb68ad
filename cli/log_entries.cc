#include "cli/log_entries.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "cli/answer.h"
#include "cli/entry_json.h"
#include "cli/verify.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"
#include "wal/segment.h"

namespace repotxn::cli {
namespace {

using storage::StorePath;

// Calls `visit` for each retained entry from `from` on, until it says that it has enough.
absl::Status VisitLog(storage::FileSystem& fs, uint64_t from,
                      absl::FunctionRef<bool(const LogRecord&)> visit) {
  REPOTXN_ASSIGN_OR_RETURN(const auto scanned, wal::ScanLog(&fs, txn::layout::Log()));
  std::map<uint64_t, uint64_t> salts;
  for (const wal::ScannedFile& file : scanned) {
    if (file.header.has_value()) salts[file.number] = file.header->salt;
  }
  REPOTXN_ASSIGN_OR_RETURN(const auto plan, wal::PlanRecovery(FirstPosition(scanned), scanned));
  for (const wal::RecoveryPlan::Source& source : plan.tail) {
    const StorePath path = txn::layout::Log() / wal::SegmentFileName(source.number);
    REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(path));
    for (const wal::ScannedEntry& entry : source.entries) {
      if (entry.lsn.value() < from) continue;
      REPOTXN_ASSIGN_OR_RETURN(const LogRecord record,
                               ReadLogRecord(fs, *file, salts[source.number], entry));
      if (!visit(record)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// The file system of a store that nobody has open, and the lock that keeps it so.
struct ClosedStore {
  std::unique_ptr<storage::FileSystem> fs;
  std::unique_ptr<storage::FileLock> lock;
};

absl::StatusOr<ClosedStore> OpenClosed(const std::string& root) {
  ClosedStore store;
  REPOTXN_ASSIGN_OR_RETURN(store.fs, OpenRoot(root));
  REPOTXN_ASSIGN_OR_RETURN(store.lock, TakeLock(*store.fs));
  return store;
}

}  // namespace

wal::LogPosition FirstPosition(const std::vector<wal::ScannedFile>& files) {
  const wal::SegmentHeader* start = nullptr;
  for (const wal::ScannedFile& file : files) {
    if (!file.header.has_value()) continue;
    if (start == nullptr || file.header->is_recovered()) start = &*file.header;
  }
  if (start == nullptr) return wal::LogPosition();
  return wal::LogPosition{.lsn = start->first_lsn.Previous(), .chain = start->previous_chain};
}

absl::StatusOr<LogRecord> ReadLogRecord(storage::FileSystem& fs, const storage::ReadableFile& file,
                                        uint64_t salt, const wal::ScannedEntry& entry) {
  std::string bytes;
  LogRecord record;
  REPOTXN_ASSIGN_OR_RETURN(record.header,
                           wal::ReadEntryRecord(file, salt, entry.offset, entry.lsn, &bytes));
  const wal::EntryHeader& header = record.header;
  const absl::string_view all(bytes.data(), bytes.size());
  absl::string_view body = all.substr(wal::kEntryHeaderBytes, header.body_bytes);
  const absl::string_view dropped =
      all.substr(wal::kEntryHeaderBytes + header.body_bytes, header.dropped_bytes);
  absl::StatusOr<std::string> payload;
  if (header.body_is_payload) {
    const StorePath path =
        txn::layout::Payload() / header.transaction_id.ToHex() / absl::StrCat(header.payload_index);
    payload = storage::ReadFile(fs, path);
    if (absl::IsNotFound(payload.status())) return record;
    REPOTXN_RETURN_IF_ERROR(payload.status());
    body = *payload;
  }
  REPOTXN_ASSIGN_OR_RETURN(record.entry, wal::DecodeEntry(header, body, dropped));
  return record;
}

Outcome RunLogList(const CommandLine& command, const std::string& root, std::ostream& out) {
  const auto store = OpenClosed(root);
  if (!store.ok()) return Outcome::CannotOpen(store.status());
  Json list = Json::array();
  const absl::Status status = VisitLog(*store->fs, command.from_lsn, [&](const LogRecord& record) {
    Json line = SummaryToJson(record);
    if (!command.json) {
      out << line["lsn"].dump() << "  " << line["transaction_id"].get<std::string>() << "  "
          << line["bytes"].dump() << " bytes  " << Printable(line["summary"].get<std::string>())
          << "\n";
    }
    list.push_back(std::move(line));
    return command.limit == 0 || list.size() < command.limit;
  });
  if (!status.ok()) return Outcome::CannotOpen(status);
  if (command.json) WriteJson(out, Json{{"entries", std::move(list)}});
  return {};
}

Outcome RunLogShow(const CommandLine& command, const std::string& root, std::ostream& out) {
  const auto store = OpenClosed(root);
  if (!store.ok()) return Outcome::CannotOpen(store.status());
  Json shown;
  const absl::Status status = VisitLog(*store->fs, command.from_lsn, [&](const LogRecord& record) {
    if (record.header.lsn.value() == command.from_lsn) shown = EntryToJson(record);
    return false;
  });
  if (!status.ok()) return Outcome::CannotOpen(status);
  if (shown.is_null()) return Outcome::Refused(absl::NotFoundError("the log does not hold this LSN"));
  // The indented document is what people read, too: an entry is a tree.
  WriteJson(out, shown);
  return {};
}

}  // namespace repotxn::cli
