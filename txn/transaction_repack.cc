// Transactions that rewrite the packs of a repository, and with them what it keeps.
#include "txn/transaction.h"

namespace repotxn::txn {

absl::StatusOr<Repack> Transaction::RepackObjects(const RepositoryId&, const RepackOptions&) {
  return absl::UnimplementedError("repack");
}

}  // namespace repotxn::txn
