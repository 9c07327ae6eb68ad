// Wrapper that makes chosen calls on a FileSystem fail, counts all, and shows each mutating one to
// a watcher.
//
//   FaultFileSystem fs(&memory);
//   fs.AddRule({.operation = FileOperation::kSync, .path_prefix = "log/", .occurrence = 2,
//               .status = absl::UnavailableError("sync"), .is_sticky = true});
//
// Thread-safe. Lifetime: `base` must outlive the wrapper and every file opened through it; so must
// the wrapper.
#ifndef REPOTXN_TESTS_SUPPORT_FAULT_FILE_SYSTEM_H_
#define REPOTXN_TESTS_SUPPORT_FAULT_FILE_SYSTEM_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "storage/sync.h"
#include "storage/file_system.h"

namespace repotxn::testing {

enum class FileOperation : uint8_t {
  kOpenForRead,
  kOpenPastCache,
  kOpenForWrite,
  kReadAt,
  kReadSize,
  kAppend,
  kWriteAt,
  kTruncate,
  kWriteSize,
  kSync,
  kClose,
  kStat,
  kList,
  kMakeDirectory,
  kRemove,
  kRemoveDirectory,
  kRename,
  kLink,
  kSymlink,
  kReadLink,
  kSetModified,
  kSetPermissions,
  kSyncFile,
  kSyncDirectory,
  kSyncAll,
  kLock,
  kFreeBytes,
  kAbsolutePath,
};
inline constexpr size_t kFileOperations = 28;

absl::string_view FileOperationName(FileOperation operation);
bool IsMutating(FileOperation operation);

struct FaultRule {
  // nullopt: every operation.
  std::optional<FileOperation> operation{};
  // A call matches when its path (new name of a rename or link) has both.
  std::string path_prefix{};
  std::string path_suffix{};
  // The rule fires at this matching call, counted from 1 since the rule was added.
  int64_t occurrence = 1;
  absl::Status status{};
  // Fires at every later matching call too.
  bool is_sticky = false;
  // Append and WriteAt: this many bytes reach the base before the failure.
  int64_t partial_bytes = 0;
  // Sync, SyncFile, SyncAll: what happens after the reported failure. false: the data stays
  // pending, the next sync does its work. true: the next syncs of the file "succeed" without
  // syncing anything, as when the kernel has marked the pages clean.
  bool later_syncs_lie = false;
};

class FaultFileSystem final : public storage::FileSystem {
 public:
  explicit FaultFileSystem(storage::FileSystem* base);
  ~FaultFileSystem() override;

  void AddRule(FaultRule rule);
  // Removes all rules; files whose syncs lie become honest.
  void ClearRules();
  // How often any rule fired.
  int64_t fault_count() const;
  int64_t CallCount(FileOperation operation) const;
  int64_t TotalCallCount() const;

  // Called before every mutating call that reaches the base, with no lock held.
  using Watcher = std::function<void(FileOperation operation, const storage::StorePath& path)>;
  void SetWatcher(Watcher watcher);

  absl::StatusOr<std::unique_ptr<storage::ReadableFile>> OpenForRead(
      const storage::StorePath& path) override;
  absl::StatusOr<std::unique_ptr<storage::ReadableFile>> OpenPastCache(
      const storage::StorePath& path) override;
  absl::StatusOr<std::unique_ptr<storage::WritableFile>> OpenForWrite(
      const storage::StorePath& path, storage::OpenMode mode, uint32_t permissions = 0644) override;
  absl::StatusOr<storage::FileInfo> Stat(const storage::StorePath& path) override;
  absl::StatusOr<std::vector<storage::DirectoryEntry>> List(
      const storage::StorePath& path) override;
  absl::Status MakeDirectory(const storage::StorePath& path, uint32_t permissions = 0755) override;
  absl::Status Remove(const storage::StorePath& path) override;
  absl::Status RemoveDirectory(const storage::StorePath& path) override;
  absl::Status Rename(const storage::StorePath& from, const storage::StorePath& to) override;
  absl::Status Link(const storage::StorePath& from, const storage::StorePath& to) override;
  absl::Status Symlink(absl::string_view target, const storage::StorePath& path) override;
  absl::StatusOr<std::string> ReadLink(const storage::StorePath& path) override;
  absl::Status SetModified(const storage::StorePath& path, absl::Time time) override;
  absl::Status SetPermissions(const storage::StorePath& path, uint32_t permissions) override;
  absl::Status SyncFile(const storage::StorePath& path) override;
  absl::Status SyncDirectory(const storage::StorePath& path) override;
  absl::Status SyncAll() override;
  absl::StatusOr<std::unique_ptr<storage::FileLock>> Lock(const storage::StorePath& path,
                                                          absl::string_view holder_note) override;
  absl::StatusOr<int64_t> FreeBytes() override;
  absl::StatusOr<std::string> AbsolutePath(const storage::StorePath& path) override;

 private:
  friend class FaultReadableFile;
  friend class FaultWritableFile;

  struct ActiveRule {
    FaultRule rule;
    int64_t matches = 0;
  };
  // What a call is to do: go on, fail with a status, or lie.
  struct Decision {
    absl::Status status;
    int64_t partial_bytes = 0;
    bool lie = false;
  };

  // Counts the call, finds the rule that fires, and tells the watcher when the call goes through.
  Decision Decide(FileOperation operation, const storage::StorePath& path);

  storage::FileSystem* const base_;
  mutable storage::Mutex mutex_{storage::MutexRank::kInnermost};
  std::vector<ActiveRule> rules_ ABSL_GUARDED_BY(mutex_);
  std::array<int64_t, kFileOperations> calls_ ABSL_GUARDED_BY(mutex_){};
  int64_t faults_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> lying_paths_ ABSL_GUARDED_BY(mutex_);
  Watcher watcher_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_FAULT_FILE_SYSTEM_H_
