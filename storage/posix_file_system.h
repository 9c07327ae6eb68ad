// The FileSystem of a real directory tree.
//
// The root is held by descriptor. Each path is opened beneath it by the kernel with no symlink
// followed and no mount trick honoured (openat2), so that neither a name nor a link planted in a
// repository leads outside. Nothing is cached: each call asks the kernel.
//
// Errors of the factory: kNotFound or kFailedPrecondition when `root` is no directory,
// kUnimplemented when the kernel has no openat2 (before Linux 5.6). It creates nothing.
//
// Durability, thread-safety: storage/file_system.h. File descriptors are close-on-exec.
#ifndef REPOTXN_STORAGE_POSIX_FILE_SYSTEM_H_
#define REPOTXN_STORAGE_POSIX_FILE_SYSTEM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"

namespace repotxn::storage {

// `root` may be reached through symlinks: it is the operator's own word.
absl::StatusOr<std::unique_ptr<FileSystem>> OpenPosixFileSystem(absl::string_view root);

// Makes the directory `root` and missing ancestors; an existing one is fine.
absl::Status MakeRootDirectory(absl::string_view root);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_POSIX_FILE_SYSTEM_H_
