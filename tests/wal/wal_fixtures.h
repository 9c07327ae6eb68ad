// What the tests of the log share: small entries, a log on a file system in memory, and readers of
// all of it.
#ifndef REPOTXN_TESTS_WAL_WAL_FIXTURES_H_
#define REPOTXN_TESTS_WAL_WAL_FIXTURES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fault_file_system.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"
#include "wal/entry_codec.h"
#include "wal/local_replicator.h"
#include "wal/manifest_codec.h"
#include "wal/recovery.h"

namespace repotxn::wal {

using testing::CrashOptions;
using testing::CrashSurvival;
using testing::FaultFileSystem;
using testing::FaultRule;
using testing::FileOperation;
using testing::IsOk;
using testing::MemoryFileSystem;
using testing::StatusIs;

inline absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

template <typename Id>
Id IdOf(uint64_t n) {
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(n >> (8 * i));
  bytes[15] = 0x5a;
  return Id(bytes);
}

// The manifest of transaction n: one key, with a value of `value_bytes` bytes.
inline Manifest ManifestOf(uint64_t n, size_t value_bytes = 20) {
  Manifest manifest;
  manifest.transaction_id = IdOf<TransactionId>(n);
  manifest.created_at = absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(n);
  manifest.operations.push_back(PutKey{7, "key-" + std::to_string(n),
                                       std::string(value_bytes, static_cast<char>('a' + n % 26))});
  return manifest;
}

inline PreparedEntry Prepared(uint64_t n, size_t value_bytes = 20) {
  absl::StatusOr<PreparedEntry> prepared = PrepareEntry(ManifestOf(n, value_bytes));
  EXPECT_OK(prepared);
  return *std::move(prepared);
}

// Entries first..first+count-1 that continue `tail`; entry n is transaction n.
inline std::vector<SealedEntry> SealRun(const LogPosition& after, size_t count, uint64_t epoch = 1,
                                        size_t value_bytes = 20) {
  std::vector<SealedEntry> run;
  ChainChecksum chain = after.chain;
  for (size_t i = 1; i <= count; ++i) {
    const Lsn lsn(after.lsn.value() + i);
    run.push_back(SealEntry(Prepared(lsn.value(), value_bytes), lsn, epoch, chain, ""));
    chain = run.back().chain;
  }
  return run;
}

inline LogPosition PositionOf(const SealedEntry& entry) { return {entry.lsn, entry.chain}; }

inline LocalReplicator::Options SmallLog() {
  LocalReplicator::Options options;
  options.segment_bytes = kSegmentBytesMin;
  return options;
}

inline std::unique_ptr<LocalReplicator> OpenLog(storage::FileSystem* fs,
                                                const LogPosition& base = {},
                                                LocalReplicator::Options options = SmallLog()) {
  absl::StatusOr<std::unique_ptr<LocalReplicator>> log =
      LocalReplicator::Create(fs, base, std::move(options));
  EXPECT_OK(log);
  return *std::move(log);
}

// Appends a group and waits for it.
inline AppendOutcome AppendGroup(Replicator* log, std::vector<SealedEntry> group,
                                 absl::Status* status = nullptr) {
  absl::Status ignored;
  return log->Append(std::move(group))->Wait(status == nullptr ? &ignored : status);
}

// Everything from `from` to the committed end.
inline absl::StatusOr<std::vector<DecodedEntry>> ReadAll(Replicator* log, Lsn from) {
  REPOTXN_ASSIGN_OR_RETURN(const std::unique_ptr<EntryCursor> cursor, log->Follow(from));
  std::vector<DecodedEntry> entries;
  while (true) {
    absl::StatusOr<DecodedEntry> entry = cursor->Next();
    if (absl::IsOutOfRange(entry.status())) return entries;
    if (!entry.ok()) return entry.status();
    entries.push_back(*std::move(entry));
  }
}

// All segment files, with what was found in them.
inline std::vector<ScannedFile> ScannedFiles(storage::FileSystem* fs) {
  absl::StatusOr<std::vector<ScannedFile>> files = ScanLog(fs, storage::StorePath::Literal("log"));
  EXPECT_OK(files);
  return *std::move(files);
}

// The `occurrence`th matching call on a file of the log fails.
inline FaultRule FaultAt(FileOperation operation, int64_t occurrence = 1) {
  FaultRule rule;
  rule.operation = operation;
  rule.path_prefix = "log";
  rule.occurrence = occurrence;
  rule.status = absl::UnavailableError("injected");
  return rule;
}

// The transaction numbers of the entries, checked to be dense from `from` on and to carry their own
// manifests.
inline std::vector<uint64_t> NumbersOf(const std::vector<DecodedEntry>& entries, Lsn from) {
  std::vector<uint64_t> numbers;
  for (const DecodedEntry& entry : entries) {
    EXPECT_EQ(entry.lsn, from);
    from = from.Next();
    const auto& put = std::get<PutKey>(entry.manifest.operations.at(0));
    numbers.push_back(std::stoull(put.key.substr(4)));
    EXPECT_EQ(entry.transaction_id, IdOf<TransactionId>(numbers.back()));
  }
  return numbers;
}

inline std::vector<uint64_t> Range(uint64_t first, uint64_t last) {
  std::vector<uint64_t> numbers;
  for (uint64_t n = first; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

}  // namespace repotxn::wal

#endif  // REPOTXN_TESTS_WAL_WAL_FIXTURES_H_
