// In-memory FileSystem with the strict persistence model, to be cloned as after a crash.
//
// What a crash may take (strict profile):
//   * data of a file is pending until the file is synced: any subset survives, writes torn at 512
//   bytes, the size
//     without the data (zeroes) and the data without the size;
//   * a name (create, link, symlink, mkdir, remove, rmdir, rename) is pending until the directory
//   that holds it is
//     synced, for a rename the directory of the new name; a rename is atomic;
//   * a sync of a file does not persist its name, a sync of a directory not the data of its files.
// Permissions and times survive with their file: nothing relies on losing them.
//
//   fs.SetMutationHook([&](int64_t index, absl::string_view op, const StorePath& path) {
//     clones.push_back(fs.CrashClone({.survival = CrashSurvival::kNothing}));
//   });
//
// Thread-safe.
#ifndef REPOTXN_TESTS_SUPPORT_MEMORY_FILE_SYSTEM_H_
#define REPOTXN_TESTS_SUPPORT_MEMORY_FILE_SYSTEM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "storage/file_system.h"

namespace repotxn::testing {

enum class CrashSurvival : uint8_t {
  kNothing,     // only what was synced
  kEverything,  // all there was
  kRandom,      // a seeded subset of the pending changes, torn
  kChosen,      // those pending changes whose bit is set in keep_mask
};

struct CrashOptions {
  CrashSurvival survival = CrashSurvival::kNothing;
  uint64_t seed = 0;  // of kRandom
  // Of kChosen: bit i keeps the i-th oldest pending change, whole; changes past the 64th are lost.
  uint64_t keep_mask = 0;
};

// Called before every mutating call, with no lock held, so it may clone. `index` counts from 0.
// `op` is one of create, truncate, append, write, sync, sync-directory, sync-all, mkdir, remove,
// rmdir, rename, link, symlink, set-modified, set-permissions, lock. `path` is the file's path at
// its opening, or the new name of a rename or link.
using MutationHook =
    std::function<void(int64_t index, absl::string_view op, const storage::StorePath& path)>;

class MemoryFileSystem final : public storage::FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // A new file system as a restart after a crash at this moment would find it; everything in it is
  // durable. Locks and the hook are not cloned, and open files of this one do not see the clone.
  std::unique_ptr<MemoryFileSystem> CrashClone(const CrashOptions& options) const;
  // Number of changes that a crash could take now; kChosen enumerates their subsets.
  int64_t PendingChangeCount() const;

  // An empty function removes the hook.
  void SetMutationHook(MutationHook hook);
  int64_t mutation_count() const;

  // The live tree as text, a line a path in byte order: kind, mode, size, link count and XXH3 of
  // content or target.
  std::string DumpTree() const;
  std::string DumpTree(const storage::StorePath& prefix) const;

  // What FreeBytes() says; 1 TiB at first.
  void SetFreeBytes(int64_t bytes);
  // Flips one bit of the live and the durable content: damage at rest. kNotFound, kOutOfRange.
  absl::Status FlipBit(const storage::StorePath& path, int64_t offset, int bit);
  // Most links of one file, past which Link() gives EMLINK; 65,000 at first as on ext4.
  void SetLinkCountMax(int64_t count);

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
  // Always kUnimplemented.
  absl::StatusOr<std::string> AbsolutePath(const storage::StorePath& path) override;

  // The tree and its pending changes; shared with open files. Defined in memory_tree.h.
  class Tree;

 private:
  explicit MemoryFileSystem(std::shared_ptr<Tree> tree);

  const std::shared_ptr<Tree> tree_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_MEMORY_FILE_SYSTEM_H_
