// Lets RocksDB work on a storage::FileSystem. Private to storage/.
//
// Names that RocksDB uses are taken as absolute paths in the FileSystem: "/meta/CURRENT" is the
// StorePath meta/CURRENT. Derived from RocksDB's abstract class and not from its wrapper: a call
// that is not implemented here is refused, never passed on to the real disk.
//
// Thread-safe. Lifetime: `fs` must outlive the result.
#ifndef REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_
#define REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "storage/file_system.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace repotxn::storage {

// Called with each failed sync of a file or directory, from any thread. RocksDB itself keeps quiet
// about some of them.
using FailedSyncObserver = std::function<void(const absl::Status& status)>;

std::shared_ptr<rocksdb::FileSystem> NewRocksdbFileSystem(FileSystem* fs,
                                                          FailedSyncObserver on_failed_sync);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_
