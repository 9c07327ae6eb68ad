// Translates between absl::Status and the statuses of RocksDB; the only place that does. Private to
// storage/.
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_ROCKSDB_STATUS_H_
#define REPOTXN_STORAGE_ROCKSDB_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class IOStatus;
class Status;
}  // namespace rocksdb

namespace repotxn::storage {

// `operation` begins the message. Damage is kDataLoss, an absent key kNotFound, a newer format
// kUnimplemented, no space kResourceExhausted, a failed call on the disk or a held lock
// kUnavailable.
absl::Status FromRocksdb(const rocksdb::Status& status, absl::string_view operation);
// What a file system answers to RocksDB. Never marked retryable: a failed write is not to be tried
// again behind us.
rocksdb::IOStatus ToRocksdb(const absl::Status& status);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_ROCKSDB_STATUS_H_
