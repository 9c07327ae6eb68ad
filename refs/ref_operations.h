// The one place where ref changes become file operations, and where both are checked to say the
// same.
//
// An entry describes its ref changes twice: logically (note: lock keys, history, overlay) and as
// files. The derivation never depends on what the disk looked like at staging:
//   update          PutFile of the loose file
//   deletion        RemoveFile of the loose file and a line removed from packed-refs
//   packing         a line set in packed-refs and RemoveFile of the loose file
//   large batch     updates to object ids are placed like a packing: straight into packed-refs
//   symbolic, HEAD  PutFile, always; never packed
// Removals are unconditional: the transaction holds its refs exclusively, and a packed name written
// meanwhile is dropped from the entry at commit.
//
// Order, the same everywhere: repositories by id; in each the edit of packed-refs, then removed
// files, then put files, each by name. Whoever applies them in that order never exposes a shadowed
// value.
//
// Thread-safe: pure functions.
#ifndef REPOTXN_REFS_REF_OPERATIONS_H_
#define REPOTXN_REFS_REF_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/id128.h"
#include "wal/operation.h"

namespace repotxn::refs {

struct RefOperationOptions {
  // More updates to object ids than this in one repository go straight to packed-refs.
  size_t packed_threshold = 64;
};

// Derives the operations. Requires what VerifyRefOperations demands of a note: well-formed names
// and values, one change a ref, packed names sorted and not among the changes.
std::vector<wal::Operation> DeriveRefOperations(absl::Span<const wal::RefChange> ref_changes,
                                                absl::Span<const wal::RefsPacked> refs_packed,
                                                const RefOperationOptions& options = {});

// Whether an operation belongs to this derivation: HEAD, packed-refs, anything at or below refs/.
bool IsRefOperation(const wal::Operation& operation);

// Judges a manifest before encoding, after decoding and in recovery: the note is well-formed, and
// its ref operations are, repository by repository and in order, those derived from the note (loose
// or, for a large batch, packed; the threshold is an option and not part of the format). kDataLoss
// otherwise.
absl::Status VerifyRefOperations(const wal::Manifest& manifest);

// Takes names out of the manifest's packing: from RefsPacked, EditPackedRefs::set and the
// RemoveFile of the loose file. The result verifies when the manifest did. kDataLoss, manifest
// unchanged: a name that the manifest does not pack.
absl::Status ApplyDropped(absl::Span<const wal::DroppedRef> dropped, wal::Manifest& manifest);

// Where an entry leaves the ref of one of its changes.
enum class RefPlacement : uint8_t { kAbsent, kLoose, kPacked };

// Answers that for all changes of one manifest. Borrows the manifest, which must outlive it.
class RefPlacements {
 public:
  explicit RefPlacements(const wal::Manifest& manifest);
  // Placement of a change of that manifest. O(log of the lines set).
  RefPlacement Of(const wal::RefChange& change) const;

 private:
  std::map<RepositoryId, const wal::EditPackedRefs*> edits_;
};

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_OPERATIONS_H_
