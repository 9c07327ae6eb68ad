// The I/O of recovery. The steps are numbered in the header.
#include "wal/recovery.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::wal {
namespace {

using storage::FileSystem;
using storage::ReadableFile;
using storage::StorePath;
using storage::WritableFile;

// A copied group ends before the entry that would bring it above one of these.
constexpr int64_t kCopyBytes = 1 << 20;
constexpr size_t kCopyEntries = 1024;

StorePath FileOf(const StorePath& directory, uint64_t number) {
  const std::string name = SegmentFileName(number);
  return directory / absl::string_view(name.data(), name.size());
}

absl::StatusOr<ScannedFile> ScanFile(FileSystem* file_system, const StorePath& directory,
                                     uint64_t number) {
  ScannedFile scanned;
  scanned.number = number;
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                           file_system->OpenPastCache(FileOf(directory, number)));
  REPOTXN_ASSIGN_OR_RETURN(scanned.size, file->Size());
  std::string head(static_cast<size_t>(kSegmentHeaderBytes), '\0');
  REPOTXN_ASSIGN_OR_RETURN(const size_t read,
                           file->ReadAt(0, absl::Span<char>(&head[0], head.size())));
  absl::StatusOr<SegmentHeader> header =
      DecodeSegmentHeader(absl::string_view(head.data(), read), number);
  if (header.ok()) {
    scanned.header = *header;
    REPOTXN_ASSIGN_OR_RETURN(scanned.scan, ScanSegment(*file, *header));
    return scanned;
  }
  if (!absl::IsNotFound(header.status())) return header.status();
  REPOTXN_ASSIGN_OR_RETURN(scanned.traces, FindOrphanTraces(*file, number));
  return scanned;
}

// Steps 2 to 5 of one run.
class Rewriter {
 public:
  Rewriter(FileSystem* file_system, const LogPosition& base, const RecoveryOptions& options,
           std::vector<ScannedFile> files, RecoveryPlan plan)
      : file_system_(file_system),
        base_(base),
        options_(options),
        files_(std::move(files)),
        plan_(std::move(plan)) {}

  absl::StatusOr<RecoveredLog> Run() {
    DescribeLog();
    REPOTXN_RETURN_IF_ERROR(TakeFreshFile());
    REPOTXN_ASSIGN_OR_RETURN(file_,
                             file_system_->OpenForWrite(FreshPath(), storage::OpenMode::kExisting));
    REPOTXN_RETURN_IF_ERROR(CopyTail());
    REPOTXN_RETURN_IF_ERROR(file_->Sync());
    // Only now: whoever sees this header may believe all that is behind it.
    const std::string header = EncodeSegmentHeader(log_.header);
    REPOTXN_RETURN_IF_ERROR(file_->WriteAt(0, absl::string_view(header.data(), header.size())));
    REPOTXN_RETURN_IF_ERROR(file_->Sync());
    REPOTXN_RETURN_IF_ERROR(file_->Close());
    REPOTXN_RETURN_IF_ERROR(RetireOlderFiles());
    return std::move(log_);
  }

 private:
  StorePath FreshPath() const { return FileOf(options_.directory, log_.header.number); }

  void DescribeLog() {
    log_.number_max = files_.empty() ? 1 : files_.back().number + 1;
    log_.end = plan_.end;
    log_.torn_bytes = plan_.torn_bytes;
    log_.groups = 1;  // what is copied has the ordinal 1, what follows more
    log_.end_offset = kSegmentHeaderBytes;
    SegmentHeader& header = log_.header;
    header.number = log_.number_max;
    header.salt = options_.random_salt();
    header.epoch = plan_.newest_epoch + 1;
    header.first_lsn = base_.lsn.Next();
    header.supersedes_from = header.first_lsn;
    header.durable_lsn = plan_.end.lsn;
    header.previous_chain = base_.chain;
    int64_t bytes = kSegmentHeaderBytes;
    for (const RecoveryPlan::Source& source : plan_.tail) {
      for (const ScannedEntry& entry : source.entries) {
        // As if each had a group record: an upper bound.
        bytes += kGroupRecordBytes + EntryRecordBytes(entry.entry_bytes - kEntryHeaderBytes, 0);
      }
    }
    const int64_t whole_blocks = (bytes + 4095) / 4096 * 4096;
    log_.file_bytes = std::max(options_.segment_bytes, whole_blocks);
  }

  // A file that does not hold entries that count, and has the wanted size; 0 when there is none.
  uint64_t FileToReuse(int64_t bytes) {
    for (ScannedFile& file : files_) {
      const bool counts = file.header.has_value() && file.number >= plan_.first_needed;
      if (counts || file.size != bytes || file.number == 0) continue;
      return std::exchange(file.number, 0);
    }
    return 0;
  }

  // Step 2. Whatever a reused file holds has another number and another salt, so it does not count
  // under its new name.
  absl::Status TakeFreshFile() {
    const uint64_t reused = FileToReuse(log_.file_bytes);
    if (reused != 0) {
      REPOTXN_RETURN_IF_ERROR(
          file_system_->Rename(FileOf(options_.directory, reused), FreshPath()));
    } else {
      REPOTXN_RETURN_IF_ERROR(MakeZeroFilled(file_system_, FreshPath(), log_.file_bytes));
    }
    return file_system_->SyncDirectory(options_.directory);
  }

  // Step 3.
  absl::Status CopyTail() {
    for (const RecoveryPlan::Source& source : plan_.tail) {
      if (source.entries.empty()) continue;
      const ScannedFile& from = FileNumbered(source.number);
      REPOTXN_ASSIGN_OR_RETURN(
          const std::unique_ptr<ReadableFile> in,
          file_system_->OpenPastCache(FileOf(options_.directory, source.number)));
      for (const ScannedEntry& entry : source.entries) {
        REPOTXN_RETURN_IF_ERROR(CopyEntry(*in, from.header->salt, entry));
      }
    }
    return WriteCopies();
  }

  absl::Status CopyEntry(const ReadableFile& in, uint64_t salt, const ScannedEntry& entry) {
    std::string bytes;
    // Checked again after reading, so that what is written is what was decided upon.
    REPOTXN_ASSIGN_OR_RETURN(const EntryHeader header,
                             ReadEntryRecord(in, salt, entry.offset, entry.lsn, &bytes));
    if (header.chain != entry.chain) return absl::DataLossError("log entry is damaged");
    const int64_t record_bytes =
        EntryRecordBytes(static_cast<int64_t>(bytes.size()) - kEntryHeaderBytes, 0);
    if (static_cast<int64_t>(copies_.size()) + record_bytes > kCopyBytes ||
        copied_.size() >= kCopyEntries) {
      REPOTXN_RETURN_IF_ERROR(WriteCopies());
    }
    ScannedEntry copy = entry;
    copy.offset = log_.end_offset + kGroupRecordBytes + static_cast<int64_t>(copies_.size());
    AppendEntryRecord(log_.header.salt, absl::string_view(bytes.data(), bytes.size()), &copies_);
    copied_.push_back(copy);
    return absl::OkStatus();
  }

  // Writes the collected entries as one group.
  absl::Status WriteCopies() {
    if (copied_.empty()) return absl::OkStatus();
    GroupHeader group;
    group.segment_number = log_.header.number;
    group.first_lsn = copied_.front().lsn;
    group.entries = static_cast<uint32_t>(copied_.size());
    group.durable_before = base_.lsn;
    group.known_committed = base_.lsn;
    std::string bytes;
    AppendGroupRecord(log_.header.salt, group, &bytes);
    bytes.append(copies_);
    REPOTXN_DCHECK(log_.end_offset + static_cast<int64_t>(bytes.size()) <= log_.file_bytes);
    REPOTXN_RETURN_IF_ERROR(
        file_->WriteAt(log_.end_offset, absl::string_view(bytes.data(), bytes.size())));
    log_.end_offset += static_cast<int64_t>(bytes.size());
    log_.entries.insert(log_.entries.end(), copied_.begin(), copied_.end());
    copied_.clear();
    copies_.clear();
    return absl::OkStatus();
  }

  const ScannedFile& FileNumbered(uint64_t number) const {
    return *std::find_if(files_.begin(), files_.end(),
                         [&](const ScannedFile& file) { return file.number == number; });
  }

  // Step 5. Renamed, not kept: a spare's number is above that of the segment before it.
  absl::Status RetireOlderFiles() {
    bool changed = false;
    for (const ScannedFile& file : files_) {
      if (file.number == 0) continue;
      const StorePath path = FileOf(options_.directory, file.number);
      const bool keep = file.size == options_.segment_bytes &&
                        log_.spares.size() < static_cast<size_t>(options_.spare_segments);
      if (keep) {
        const uint64_t number = ++log_.number_max;
        REPOTXN_RETURN_IF_ERROR(file_system_->Rename(path, FileOf(options_.directory, number)));
        log_.spares.push_back(number);
      } else {
        REPOTXN_RETURN_IF_ERROR(file_system_->Remove(path));
      }
      changed = true;
    }
    return changed ? file_system_->SyncDirectory(options_.directory) : absl::OkStatus();
  }

  FileSystem* const file_system_;
  const LogPosition base_;
  const RecoveryOptions& options_;
  std::vector<ScannedFile> files_;  // number 0: taken as the fresh file
  const RecoveryPlan plan_;
  RecoveredLog log_;
  std::unique_ptr<WritableFile> file_;
  std::string copies_;                // records of the group being collected
  std::vector<ScannedEntry> copied_;  // their places
};

}  // namespace

absl::StatusOr<std::vector<ScannedFile>> ScanLog(FileSystem* file_system,
                                                 const StorePath& directory) {
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries,
                           file_system->List(directory));
  std::vector<uint64_t> numbers;
  for (const storage::DirectoryEntry& entry : entries) {
    const uint64_t number =
        SegmentNumberOf(absl::string_view(entry.name.data(), entry.name.size()));
    if (number != 0 && entry.kind == storage::FileKind::kRegular) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<ScannedFile> files;
  for (const uint64_t number : numbers) {
    REPOTXN_ASSIGN_OR_RETURN(ScannedFile file, ScanFile(file_system, directory, number));
    files.push_back(std::move(file));
  }
  return files;
}

absl::Status MakeZeroFilled(FileSystem* file_system, const StorePath& path, int64_t bytes) {
  constexpr int64_t kChunk = 1 << 20;
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                           file_system->OpenForWrite(path, storage::OpenMode::kCreateTruncate));
  const std::string zeros(static_cast<size_t>(std::min(bytes, kChunk)), '\0');
  for (int64_t written = 0; written < bytes;) {
    const int64_t chunk = std::min(bytes - written, kChunk);
    REPOTXN_RETURN_IF_ERROR(
        file->Append(absl::string_view(zeros.data(), static_cast<size_t>(chunk))));
    written += chunk;
  }
  REPOTXN_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::StatusOr<RecoveredLog> RecoverLog(FileSystem* file_system, const LogPosition& base,
                                        const RecoveryOptions& options) {
  REPOTXN_RETURN_IF_ERROR(storage::MakeDirectories(*file_system, options.directory));
  REPOTXN_RETURN_IF_ERROR(file_system->SyncDirectory(options.directory.Parent()));
  REPOTXN_ASSIGN_OR_RETURN(std::vector<ScannedFile> files, ScanLog(file_system, options.directory));
  const LogPosition& durable = options.durable.lsn > base.lsn ? options.durable : base;
  REPOTXN_ASSIGN_OR_RETURN(RecoveryPlan plan, PlanRecovery(base, durable, files));
  if (REPOTXN_PLANT("wal.drop_last_entry") && !plan.tail.empty() &&
      !plan.tail.back().entries.empty()) {
    plan.tail.back().entries.pop_back();
    plan.end.lsn = plan.end.lsn.Previous();
  }
  if (plan.torn_bytes > 0) {
    const std::string message = absl::StrCat("torn tail of the log cut behind lsn ",
                                             plan.end.lsn.value(), ": ", plan.torn_bytes, " bytes");
    storage::LogWarning(absl::string_view(message.data(), message.size()));
  }
  return Rewriter(file_system, base, options, std::move(files), std::move(plan)).Run();
}

}  // namespace repotxn::wal
