// Wrapper that calls a function before each opening for read, stat or listing: the moment at which
// a test lets another writer change the directory.
//
// Single-threaded. `base` must outlive the wrapper.
#ifndef REPOTXN_TESTS_REFS_READ_HOOK_FILE_SYSTEM_H_
#define REPOTXN_TESTS_REFS_READ_HOOK_FILE_SYSTEM_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/file_system.h"

namespace repotxn::testing {

class ReadHookFileSystem final : public storage::FileSystem {
 public:
  using Path = storage::StorePath;
  // `op` is "open", "stat" or "list".
  using Hook = std::function<void(absl::string_view op, const Path& path)>;

  explicit ReadHookFileSystem(storage::FileSystem& base) : base_(base) {}
  void SetHook(Hook hook) { hook_ = std::move(hook); }

  absl::StatusOr<std::unique_ptr<storage::ReadableFile>> OpenForRead(const Path& path) override {
    Call("open", path);
    return base_.OpenForRead(path);
  }
  absl::StatusOr<storage::FileInfo> Stat(const Path& path) override {
    Call("stat", path);
    return base_.Stat(path);
  }
  absl::StatusOr<std::vector<storage::DirectoryEntry>> List(const Path& path) override {
    Call("list", path);
    return base_.List(path);
  }

  absl::StatusOr<std::unique_ptr<storage::ReadableFile>> OpenPastCache(const Path& path) override {
    return base_.OpenPastCache(path);
  }
  absl::StatusOr<std::unique_ptr<storage::WritableFile>> OpenForWrite(
      const Path& path, storage::OpenMode mode, uint32_t permissions = 0644) override {
    return base_.OpenForWrite(path, mode, permissions);
  }
  absl::Status MakeDirectory(const Path& path, uint32_t permissions = 0755) override {
    return base_.MakeDirectory(path, permissions);
  }
  absl::Status Remove(const Path& path) override { return base_.Remove(path); }
  absl::Status RemoveDirectory(const Path& path) override { return base_.RemoveDirectory(path); }
  absl::Status Rename(const Path& from, const Path& to) override { return base_.Rename(from, to); }
  absl::Status Link(const Path& from, const Path& to) override { return base_.Link(from, to); }
  absl::Status Symlink(absl::string_view target, const Path& path) override {
    return base_.Symlink(target, path);
  }
  absl::StatusOr<std::string> ReadLink(const Path& path) override { return base_.ReadLink(path); }
  absl::Status SetModified(const Path& path, absl::Time time) override {
    return base_.SetModified(path, time);
  }
  absl::Status SetPermissions(const Path& path, uint32_t permissions) override {
    return base_.SetPermissions(path, permissions);
  }
  absl::Status SyncFile(const Path& path) override { return base_.SyncFile(path); }
  absl::Status SyncDirectory(const Path& path) override { return base_.SyncDirectory(path); }
  absl::Status SyncAll() override { return base_.SyncAll(); }
  absl::StatusOr<std::unique_ptr<storage::FileLock>> Lock(const Path& path,
                                                          absl::string_view note) override {
    return base_.Lock(path, note);
  }
  absl::StatusOr<int64_t> FreeBytes() override { return base_.FreeBytes(); }
  absl::StatusOr<std::string> AbsolutePath(const Path& path) override {
    return base_.AbsolutePath(path);
  }

 private:
  // The hook may read through this wrapper itself without being called again.
  void Call(absl::string_view op, const Path& path) {
    if (!hook_ || is_inside_) return;
    is_inside_ = true;
    hook_(op, path);
    is_inside_ = false;
  }

  storage::FileSystem& base_;
  Hook hook_;
  bool is_inside_ = false;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_REFS_READ_HOOK_FILE_SYSTEM_H_
