// New objects of one transaction on their way from a client's bytes to a payload file.
//
//   IndexPack()          one `git index-pack` in an object snapshot (a directory below staging/ whose objects/ borrows the
//                        live repository's), which proves every link the pack makes against repository and alternates
//   CompleteWithRefs()   only when a hook has to run: fills the directory up to a whole snapshot with refs at the newest
//                        LSN; the new objects are visible there
//   Seal()               links .pack, .idx, .rev into payload/<transaction id>/ and syncs them, before any critical section
//
// The owner keeps it until the outcome of the transaction is known: not committed removes the payload, committed hands
// it to the log. Dropping it removes the staging directory in any case.
//
// Errors
//   kInvalidArgument     not a pack, damaged, trailing bytes, wrong object format, too many bytes.
//   kFailedPrecondition  an object that the pack names is neither in it nor in the repository (detail "oid").
//   kDeadlineExceeded, kResourceExhausted, kUnavailable as everywhere.
// After an error nothing is staged.
//
// Must not outlive its Store. Single-threaded.
#ifndef REPOTXN_TXN_OBJECT_STAGING_H_
#define REPOTXN_TXN_OBJECT_STAGING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/id128.h"

namespace repotxn::txn {

// Gives the next bytes: number read, 0 at the end.
using ByteSource = std::function<absl::StatusOr<size_t>(absl::Span<char>)>;

struct IndexPackOptions {
  int64_t pack_bytes_max = int64_t{4} << 30;  // bytes
  absl::Duration timeout = absl::Hours(1);
  bool fsck_objects = false;                  // content checks of receive.fsckObjects
};

class ObjectStaging {
 public:
  virtual ~ObjectStaging() = default;

  virtual absl::Status IndexPack(const ByteSource& source, const IndexPackOptions& options) = 0;
  // Whether a pack with at least one object was indexed.
  virtual bool has_pack() const = 0;

  virtual absl::Status CompleteWithRefs() = 0;
  // The directory, for GIT_DIR of a hook; its objects/ is the quarantine.
  virtual const std::string& absolute_path() const = 0;

  virtual absl::Status Seal() = 0;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_OBJECT_STAGING_H_
