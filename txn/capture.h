// What the children of a write snapshot did, as changes of a repository: a pure difference of two states.
//
// Compared are values, not layout: a ref that moved from its own file into packed-refs is no change [hard case B6],
// and neither is a file that was written again as it was. Directories below refs/ are nobody's.
//
// What a transaction can say
//   refs                 created, updated, deleted, symbolic or not; HEAD set. From loose files and packed-refs.
//   files                put with their permission bits, removed
//   directories          made, removed when empty
//   objects              new loose objects and packs; see txn/captured_objects.h
// What Git leaves for its own use and nobody misses, ignored at the top of the repository: FETCH_HEAD, COMMIT_EDITMSG,
// TAG_EDITMSG, NOTES_EDITMSG, EDIT_DESCRIPTION (scratch files); FETCH_HEAD is written in place, so snapshots have none.
// Everything else is foreign (ForeignKind): it is reported by name and makes the capture fail; nothing is dropped.
//
// Thread-safe: pure functions.
#ifndef REPOTXN_TXN_CAPTURE_H_
#define REPOTXN_TXN_CAPTURE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "txn/directory_state.h"

namespace repotxn::txn {

// Why something that a child left cannot be part of a transaction. Numbers are not stored anywhere.
enum class ForeignKind : uint8_t {
  kSymlink = 1,
  kSpecialFile,     // device, socket, pipe
  kLockFile,        // *.lock, gc.pid: something was interrupted, or still runs
  kReflog,          // a store keeps no reflogs
  kObjectFile,      // below objects/ and neither a loose object nor a pack with its index: keep files, graphs, temporaries
  kAlternates,      // objects/info/alternates was changed
  kWrittenInPlace,  // a hard link to the live file was written instead of replaced: the live repository has changed too,
                    // and the operator has to look at it
  kKindChanged,     // a file where a directory was, or the other way round
  kReservedPath,    // a name that no file of a repository may have, or that snapshots leave out
  kUnreadableRef,   // a file below refs/, packed-refs, or HEAD that holds no value, or has no ref's name; HEAD removed
  kConfiguration,   // a configuration file that is malformed or includes another one
  kTooLarge,        // a file that is larger than a transaction may write
};
// "symlink", "lock file", ...
absl::string_view ForeignKindText(ForeignKind kind);

struct ForeignChange {
  RepositoryId id;
  ForeignKind kind = ForeignKind::kSymlink;
  std::string path;  // inside the repository

  friend bool operator==(const ForeignChange&, const ForeignChange&) = default;
};

// kFailedPrecondition that carries the list, and names the first of it for people.
absl::Status ForeignChangesError(const std::vector<ForeignChange>& changes);
// The list that an error carries; empty when it carries none.
std::vector<ForeignChange> ForeignChangesOf(const absl::Status& status);

// A ref whose value differs.
struct CapturedRef {
  refs::RefName name;
  refs::RefValue before, after;

  friend bool operator==(const CapturedRef&, const CapturedRef&) = default;
};

// What was captured from one repository; paths and names sorted.
struct CapturedChanges {
  RepositoryId id;
  std::vector<CapturedRef> refs;
  std::vector<std::string> put_files, removed_files;
  std::vector<std::string> made_directories, removed_directories;
  int64_t new_objects = 0;  // loose ones and those in packs, the latter also when the repository had them

  bool empty() const {
    return refs.empty() && put_files.empty() && removed_files.empty() && made_directories.empty() &&
           removed_directories.empty() && new_objects == 0;
  }
  friend bool operator==(const CapturedChanges&, const CapturedChanges&) = default;
};

// What differs between two looks at a directory. Whether a replaced file has another content, and a touched ref another
// value, is for whoever can read them.
struct DirectoryDifference {
  std::vector<std::string> put_files, removed_files;                   // sorted
  std::vector<std::string> made_directories, removed_directories;      // sorted: parents first
  std::set<std::string> touched_refs;                                  // "HEAD", and files below refs/
  bool packed_refs_touched = false;
  std::vector<std::string> loose_objects;                              // "aa/bb…", below objects/
  std::vector<std::string> packs;                                      // stems, below objects/pack/
  std::vector<ForeignChange> foreign;                                  // without ids
};
DirectoryDifference DiffDirectories(const DirectoryState& before, const DirectoryState& after, ObjectFormat format);

// Values by ref name, HEAD included; absent refs need not be listed.
using RefValues = std::map<std::string, refs::RefValue>;
// Refs whose values differ, sorted by name. Names that are no ref names are skipped: they are foreign.
std::vector<CapturedRef> DiffRefs(const RefValues& before, const RefValues& after);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CAPTURE_H_
