// Reads the refs of one repository directory on disk: loose over packed.
//
// Order. Whoever packs writes packed-refs first and removes loose files afterwards; so the loose
// file is read first and packed-refs second, and when packed-refs was replaced since the read
// began, the loose side is read again (bounded): no live ref is missed, none goes back in time.
// That covers one name. A listing that must equal exactly one LSN is taken under the repository's
// materializer latch, which is txn's business.
//
// The parsed packed-refs is kept and revalidated by stat; its file stays open, so that its inode
// number cannot come back while it is remembered.
//
// Thread-compatible with one exception: calls on one RefReader are externally synchronised, since
// they refresh what it keeps.
#ifndef REPOTXN_REFS_REF_READER_H_
#define REPOTXN_REFS_REF_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refs/loose_refs.h"
#include "refs/packed_refs.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"

namespace repotxn::refs {

// Refs read while following one name, the last one included; Git's own bound.
inline constexpr int kSymbolicDepthMax = 5;

// Value of one ref, not followed; absent is a value, not an error.
using RefLookup = absl::FunctionRef<absl::StatusOr<RefValue>(const RefName&)>;

struct ResolvedRef {
  RefName name;               // the ref at the end of the chain
  RefValue value;             // absent or an object id
  std::vector<RefName> hops;  // the symbolic refs passed, in order; empty when `name` was asked for
};

// Follows symbolic refs from `name`. Pure but for `lookup`, which is asked once for every hop and
// for the end. kFailedPrecondition when the chain is longer than kSymbolicDepthMax or a circle;
// errors of `lookup` pass through.
absl::StatusOr<ResolvedRef> ResolveSymbolic(const RefName& name, RefLookup lookup);

struct RefListing {
  std::vector<NamedRef> refs;  // sorted by name; loose over packed
  std::vector<RefFault>
      faults;  // as of ListLooseRefs; a damaged loose ref hides its packed value here too
};

class RefReader {
 public:
  // `fs` must outlive the reader. `repository` is the bare repository's directory.
  RefReader(storage::FileSystem& fs, storage::StorePath repository, ObjectFormat format);
  ~RefReader();

  // kDataLoss for a damaged loose file or packed-refs; otherwise the file system's errors.
  absl::StatusOr<RefValue> Read(const RefName& name);
  // Read() through symbolic refs.
  absl::StatusOr<ResolvedRef> Resolve(const RefName& name);
  // What HEAD holds, not followed. kNotFound when the repository has none.
  absl::StatusOr<RefValue> Head();
  // Refs whose names begin with `prefix`, any bytes; "refs/" for all. HEAD is not among them.
  // kDataLoss for a damaged packed-refs; a damaged loose file is in `faults`.
  absl::StatusOr<RefListing> List(absl::string_view prefix);
  // packed-refs as it is now.
  absl::StatusOr<std::shared_ptr<const PackedRefs>> Packed();

 private:
  struct PackedFile;

  // Identity of packed-refs on disk; no value when there is none.
  absl::StatusOr<std::optional<storage::FileInfo>> StatPacked();
  // Brings kept_ up to date. Returns whether it was replaced.
  absl::StatusOr<bool> RefreshPacked();

  storage::FileSystem& fs_;
  const storage::StorePath repository_;
  const ObjectFormat format_;
  std::unique_ptr<PackedFile> kept_;
};

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_READER_H_
