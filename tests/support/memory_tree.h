// The inodes, names and pending changes of a MemoryFileSystem.
//
// Two states side by side: each inode has its live content and the content that a crash leaves at
// least. The changes between the two are listed, oldest first; a sync applies some of them to the
// durable side, a crash chooses among the rest.
//
// Thread-safe: every public function locks.
#ifndef REPOTXN_TESTS_SUPPORT_MEMORY_TREE_H_
#define REPOTXN_TESTS_SUPPORT_MEMORY_TREE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "storage/sync.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/seeded_random.h"

namespace repotxn::testing {

struct MemoryInode;
using InodePtr = std::shared_ptr<MemoryInode>;
using NameMap = std::map<std::string, InodePtr>;

struct MemoryInode {
  uint64_t id = 0;
  storage::FileKind kind = storage::FileKind::kRegular;
  uint32_t mode = 0;
  int64_t link_count = 0;
  absl::Time modified;
  std::string target;  // of a symlink
  // Of a file.
  std::string data;
  std::string durable_data;
  // Of a directory.
  NameMap children;
  NameMap durable_children;
};

// One change that a crash could take or leave.
struct PendingChange {
  enum class Kind : uint8_t {
    kAddName,     // create, link, symlink, mkdir: directory[name] = inode
    kRemoveName,  // remove, rmdir
    kRenameName,  // directory[name] = inode, source[source_name] gone
    kWrite,       // bytes at offset
    kTruncate,    // size = offset
  };
  Kind kind = Kind::kWrite;
  InodePtr inode;
  InodePtr directory;
  std::string name;
  InodePtr source;
  std::string source_name;
  int64_t offset = 0;
  std::string bytes;

  bool IsData() const { return kind == Kind::kWrite || kind == Kind::kTruncate; }
};

class MemoryFileSystem::Tree {
 public:
  Tree();
  ~Tree();

  // Counts a mutating call and shows it to the hook.
  void Mutating(absl::string_view op, const storage::StorePath& path) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetHook(MutationHook hook) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t mutation_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetFreeBytes(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t free_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLinkCountMax(int64_t count) ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<Tree> CrashClone(const CrashOptions& options) const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t PendingChangeCount() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Dump(const storage::StorePath& prefix) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FlipBit(const storage::StorePath& path, int64_t offset, int bit)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls on paths. Each gives the status that the kernel would.
  absl::StatusOr<InodePtr> OpenExisting(const storage::StorePath& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<InodePtr> OpenForWrite(const storage::StorePath& path, storage::OpenMode mode,
                                        uint32_t permissions) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<storage::FileInfo> Stat(const storage::StorePath& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<storage::DirectoryEntry>> List(const storage::StorePath& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Add(const storage::StorePath& path, storage::FileKind kind, uint32_t permissions,
                   absl::string_view target, absl::string_view operation)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Remove(const storage::StorePath& path, bool is_directory)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Rename(const storage::StorePath& from, const storage::StorePath& to)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Link(const storage::StorePath& from, const storage::StorePath& to)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> ReadLink(const storage::StorePath& path) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetModified(const storage::StorePath& path, absl::Time time)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetPermissions(const storage::StorePath& path, uint32_t permissions)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SyncDirectory(const storage::StorePath& path) ABSL_LOCKS_EXCLUDED(mutex_);
  void SyncAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls on an open file.
  size_t ReadAt(const MemoryInode& inode, int64_t offset, absl::Span<char> out) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t SizeOf(const MemoryInode& inode) const ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteAt(const InodePtr& inode, int64_t offset, absl::string_view data)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Truncate(const InodePtr& inode, int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  void SyncData(const InodePtr& inode) ABSL_LOCKS_EXCLUDED(mutex_);

  // False when the inode is locked already.
  bool TryLock(const InodePtr& inode) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unlock(const InodePtr& inode) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class CrashBuilder;

  struct Place {
    InodePtr directory;
    std::string name;
    InodePtr inode;  // null when nothing has the name
  };

  absl::StatusOr<Place> Locate(const storage::StorePath& path, absl::string_view operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Locate(), with kNotFound when nothing is there.
  absl::StatusOr<Place> LocateExisting(const storage::StorePath& path,
                                       absl::string_view operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  InodePtr NewInode(storage::FileKind kind, uint32_t mode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddName(const Place& place, const InodePtr& inode) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteLocked(const InodePtr& inode, int64_t offset, absl::string_view data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TruncateLocked(const InodePtr& inode, int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable storage::Mutex mutex_{storage::MutexRank::kInnermost};
  InodePtr root_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_inode_ ABSL_GUARDED_BY(mutex_) = 2;
  std::list<PendingChange> pending_ ABSL_GUARDED_BY(mutex_);
  std::set<const MemoryInode*> locked_ ABSL_GUARDED_BY(mutex_);
  MutationHook hook_ ABSL_GUARDED_BY(mutex_);
  int64_t mutations_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t free_bytes_ ABSL_GUARDED_BY(mutex_) = int64_t{1} << 40;
  int64_t link_count_max_ ABSL_GUARDED_BY(mutex_) = 65'000;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_MEMORY_TREE_H_
