// Says what an object names, and walks what many objects name with the help of Git's reader.
//
// Links of an object: of a commit its tree and its parents, of a tree its entries, of a tag its
// target. Gitlinks (mode 160000) are no links: their commits live elsewhere. The empty tree is a
// link like others; it exists everywhere (ObjectSet says so). Replace refs and grafts are not
// applied; in a shallow repository the parents of the commits listed in `shallow` are no links.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_OBJECT_LINKS_H_
#define REPOTXN_OBJECTS_OBJECT_LINKS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "objects/git_child.h"
#include "objects/object_type.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Commits whose parents are no links.
using ShallowCommits = absl::flat_hash_set<ObjectId>;

// Links of an object with this content, in order, duplicates kept: of a commit the tree is first.
// None of a blob.
//
// kDataLoss when the content is not one of its type.
absl::StatusOr<std::vector<ObjectId>> ParseObjectLinks(ObjectType type, absl::string_view content,
                                                       ObjectFormat format);

// Commits that the repository's `shallow` lists; none without that file. kDataLoss when malformed.
absl::StatusOr<ShallowCommits> ReadShallow(storage::FileSystem& fs,
                                           const storage::StorePath& repository,
                                           ObjectFormat format);

struct LinkScan {
  // Absolute path of the repository or snapshot in which Git reads.
  std::string repository;
  ObjectFormat format = ObjectFormat::kSha1;
  ShallowCommits shallow;
  // Bound on the whole scan.
  absl::Duration timeout = absl::Hours(1);
  // Largest commit, tree or tag, in bytes.
  int64_t content_bytes_max = int64_t{256} << 20;
  int lock_fd = -1;
  std::string program = "git";
};

// Called with each commit, tree and tag, and its links.
using LinkVisitor =
    std::function<absl::Status(const ObjectId&, ObjectType, absl::Span<const ObjectId>)>;

// Reads the objects that `ids` lists (hex lines) and shows `visit` what they name. Two Git children
// in a row: one tells types, so that blobs are not read, one reads the others. Memory is bounded by
// the largest of them, whatever their number.
//
// Errors
//   kDataLoss           an object is missing or cannot be read; detail "oid" where Git said which,
//                       "stderr".
//   kResourceExhausted  an object is larger than `content_bytes_max`.
//   kDeadlineExceeded   the timeout passed.
// and those of `ids` and `visit`. No child is left.
absl::Status ScanLinks(const LinkScan& scan, InputSource ids, const LinkVisitor& visit);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_LINKS_H_
