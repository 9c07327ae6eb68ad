// Checks the new tips of a transaction that brings no objects, natively.
//
// Under the closure invariant an object that exists has all it names, so nothing is walked: each
// tip must exist, in the repository, its alternates or the transaction's quarantine, and be a
// commit below refs/heads/. Other namespaces take any type. Deletions (zero or no id) need no
// object.
//
// Thread-safe (no state).
#ifndef REPOTXN_OBJECTS_CLOSURE_CHECK_H_
#define REPOTXN_OBJECTS_CLOSURE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "objects/object_lookup.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// The value that a transaction gives to a ref.
struct Tip {
  std::string ref_name;
  ObjectId oid;
};

enum class TipFaultKind : uint8_t {
  kMissing,      // the object is nowhere
  kNotACommit,   // below refs/heads/ and something else
  kOtherFormat,  // id of the other object format
};

struct TipFault {
  size_t tip = 0;  // position in the list given
  TipFaultKind kind = TipFaultKind::kMissing;

  friend bool operator==(const TipFault&, const TipFault&) = default;
};

// Reason for a client, in the words that tools know from stock Git.
absl::string_view TipFaultReason(TipFaultKind kind);

// All faults of `tips`, in order. Errors: only damage or a failing disk, as ObjectLookup.
absl::StatusOr<std::vector<TipFault>> CheckTips(ObjectLookup& lookup, absl::Span<const Tip> tips);

// The objects of `oids` that do not exist, in order. For checks at commit when objects were removed
// meanwhile.
absl::StatusOr<std::vector<ObjectId>> MissingObjects(ObjectLookup& lookup,
                                                     absl::Span<const ObjectId> oids);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_CLOSURE_CHECK_H_
