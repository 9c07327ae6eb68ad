// Transactions that write what Git derives from objects and refs: commit-graph, multi-pack-index, bitmap.
#include "txn/transaction.h"

namespace repotxn::txn {

absl::StatusOr<DerivedIndexes> Transaction::WriteDerivedIndexes(const RepositoryId&) {
  return absl::UnimplementedError("derived indexes");
}

}  // namespace repotxn::txn
