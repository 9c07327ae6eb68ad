// Which of the pending changes of a MemoryFileSystem a crash leaves, and the state that they give.
//
// Single-threaded (the cloning thread, with the tree's lock held).
#ifndef REPOTXN_TESTS_SUPPORT_MEMORY_CRASH_H_
#define REPOTXN_TESTS_SUPPORT_MEMORY_CRASH_H_

#include <list>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "tests/support/memory_tree.h"

namespace repotxn::testing {

// Applies the chosen changes to copies of inodes, durable side only.
class CrashState {
 public:
  explicit CrashState(const CrashOptions& options);

  // The root after the crash, with live and durable sides equal and link counts right.
  InodePtr Build(const InodePtr& root, const std::list<PendingChange>& pending);

 private:
  // A name in a directory of the copy.
  using Entry = std::pair<MemoryInode*, std::string>;

  InodePtr CopyOf(const InodePtr& original);
  bool Keeps(int64_t index);
  void ApplyName(const PendingChange& change, bool keep);
  void ApplyData(const PendingChange& change, bool keep);
  void WritePieces(MemoryInode& copy, const PendingChange& change, bool keep);
  // Where the inode that a dropped rename left behind still is.
  Entry Origin(MemoryInode* directory, const std::string& name, const MemoryInode* inode) const;
  void EraseIfSame(const Entry& entry, const MemoryInode* inode);
  // Makes the durable side of everything that can be reached the live one too.
  void Settle(const InodePtr& directory);

  const CrashOptions options_;
  SeededRandom random_;
  uint64_t keep_percent_ = 50;  // of kRandom
  std::map<const MemoryInode*, InodePtr> copies_;
  // Size of a file as the kept size changes left it; its bytes may go beyond.
  std::map<const MemoryInode*, int64_t> sizes_;
  std::map<std::tuple<MemoryInode*, std::string, const MemoryInode*>, Entry> origins_;
};

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_SUPPORT_MEMORY_CRASH_H_
