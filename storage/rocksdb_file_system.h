// Lets RocksDB work on a storage::FileSystem. Private to storage/.
//
// Names that RocksDB uses are taken as absolute paths in the FileSystem: "/meta/CURRENT" is the
// StorePath meta/CURRENT. Derived from RocksDB's abstract class and not from its wrapper: a call
// that is not implemented here is refused, never passed on to the real disk.
//
// Thread-safe. Lifetime: `fs` must outlive the result.
#ifndef REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_
#define REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_

#include <memory>

#include "storage/file_system.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace repotxn::storage {

std::shared_ptr<rocksdb::FileSystem> NewRocksdbFileSystem(FileSystem* fs);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_ROCKSDB_FILE_SYSTEM_H_
