// Parses, writes and follows `objects/info/alternates`: the object directories that a repository
// borrows from.
//
// Format: lines ended by newline (the last may lack it); empty lines and lines beginning with '#'
// say nothing; a line beginning with '"' is C-quoted; any other is a path as it is. An absolute
// path must lie below the store's root; a relative one is resolved against the object directory
// whose file it is, also at deeper levels. We write relative lines only, one a target:
// `../../../<aa>/<id>.git/objects`.
//
// Valid when: (1) no line leaves the store; (2) no line names its own directory, and no chain comes
// back to a directory it has passed; (3) each target exists and is a directory; (4) a chain has at
// most kAlternatesDepthMax links. Stock Git ignores lines that break (2) to (4), and their objects
// are then just missing; here they are errors.
//
// Crash argument: the file is replaced by rename, whole; a reader sees the old lines or the new
// ones.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_ALTERNATES_H_
#define REPOTXN_OBJECTS_ALTERNATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/store_path.h"

namespace repotxn::objects {

// Most links of a chain that work in every combination of snapshot and quarantine (one more breaks
// there).
inline constexpr int kAlternatesDepthMax = 4;
// Most object directories that one chain may reach, and most bytes of one file.
inline constexpr int kAlternatesCountMax = 64;
inline constexpr int64_t kAlternatesBytesMax = 64 << 10;

// Object directories named by `text`, the alternates file of `object_directory`, in order,
// duplicates kept.
//
// `store_root` is the absolute path of the store; empty refuses absolute lines (a tree that is on
// no disk).
//
// Errors
//   kInvalidArgument  a malformed line, or one that leaves the store or names `object_directory`
//   itself; detail
//                     "line" (its number, from 1) and "path".
absl::StatusOr<std::vector<storage::StorePath>> ParseAlternates(
    absl::string_view text, const storage::StorePath& object_directory,
    absl::string_view store_root);

// The path of `target` relative to `object_directory`, as an alternates line without newline.
std::string RelativeAlternate(const storage::StorePath& object_directory,
                              const storage::StorePath& target);
// The whole file that makes `object_directory` borrow from `targets`, in order.
std::string FormatAlternates(const storage::StorePath& object_directory,
                             const std::vector<storage::StorePath>& targets);
// One line, with newline, for the absolute path `path`; C-quoted only when it must be.
std::string AbsoluteAlternateLine(absl::string_view path);

// Object directories that `object_directory` borrows from, at all levels, nearest first (depth
// first, in the order of lines); a directory reached twice by different ways is listed once. Empty
// without an alternates file.
//
// Errors
//   kInvalidArgument     as ParseAlternates(), at any level.
//   kFailedPrecondition  a circle, a chain too deep, too many directories, a missing target; detail
//   "path".
absl::StatusOr<std::vector<storage::StorePath>> ResolveChain(
    storage::FileSystem& fs, const storage::StorePath& object_directory);

// Longest chain of links that begins at `object_directory`; 0 without alternates. Errors as
// ResolveChain().
absl::StatusOr<int> ChainDepth(storage::FileSystem& fs, const storage::StorePath& object_directory);

// Whether `object_directory` may borrow from `target`: the target exists, is not reached from
// itself through the new link, and neither it nor its chain makes one longer than
// kAlternatesDepthMax. Borrowers of `object_directory` are the caller's: `borrower_depth` is the
// longest chain of links that ends in it. Errors as ResolveChain().
absl::Status CheckNewAlternate(storage::FileSystem& fs, const storage::StorePath& object_directory,
                               const storage::StorePath& target, int borrower_depth);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_ALTERNATES_H_
