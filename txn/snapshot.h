// Directories for Git children: what one repository looks like at one LSN.
//
// Every file of the repository but objects/, logs/, FETCH_HEAD, locks and temporary files is hard-linked; objects/ is
// new and its alternates file is one absolute line naming the live object directory, so the cost does not depend on
// the number of objects. Snapshots of one repository at the same state are shared. Stock Git reads them; nobody
// writes them.
//
// Must not outlive its Store. Thread-safe.
#ifndef REPOTXN_TXN_SNAPSHOT_H_
#define REPOTXN_TXN_SNAPSHOT_H_

#include <string>
#include <vector>

#include "storage/id128.h"
#include "storage/object_id.h"
#include "storage/store_path.h"
#include "wal/lsn.h"

namespace repotxn::txn {

// Removed from disk when the last reference is gone and the state it shows is no longer the newest.
class SnapshotDirectory {
 public:
  virtual ~SnapshotDirectory() = default;
  // A bare repository, for GIT_DIR.
  virtual const std::string& absolute_path() const = 0;
  virtual const storage::StorePath& path() const = 0;
  // Newest LSN that the directory shows.
  virtual wal::Lsn lsn() const = 0;
  virtual ObjectFormat format() const = 0;
  // Settings (`key=value`, for objects::GitCommand) that a child which reads here needs: none, unless a file that Git
  // derives of the repository or of its pools is damaged, which would end the child. To be asked for each child.
  virtual std::vector<std::string> GitSettings() const = 0;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_SNAPSHOT_H_
