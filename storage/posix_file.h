// Open files of the POSIX file system. Private to storage/.
//
// Thread-safety and errors: storage/file_system.h.
#ifndef REPOTXN_STORAGE_POSIX_FILE_H_
#define REPOTXN_STORAGE_POSIX_FILE_H_

#include <memory>

#include "storage/descriptor.h"
#include "storage/file_system.h"
#include "storage/store_path.h"

namespace repotxn::storage {

// `path` is for messages.
std::unique_ptr<ReadableFile> NewPosixReadableFile(OwnedDescriptor fd, const StorePath& path);
// Of a descriptor that was opened for direct reads: offsets, sizes and memory are aligned inside.
// Where the file system refuses direct reads only when they come, goes on with the cache dropped.
std::unique_ptr<ReadableFile> NewDirectReadableFile(OwnedDescriptor fd, const StorePath& path);
// Append() goes to the end of the file as it is now.
absl::StatusOr<std::unique_ptr<WritableFile>> NewPosixWritableFile(OwnedDescriptor fd,
                                                                   const StorePath& path);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_POSIX_FILE_H_
