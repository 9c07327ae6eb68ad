// What borrowers of a repository need of objects that it would lose: private to txn/.
//
// Every object of a borrower counts, reachable or not, loose or packed, and every ref, at the transaction's snapshot. A
// borrower that is removed counts too: it may come back. Where a borrower's history is cut (`shallow`) may change, so parents
// are taken for links all the same.
//
// Externally synchronised by the owner of the transaction.
#ifndef REPOTXN_TXN_BORROWER_NEEDS_H_
#define REPOTXN_TXN_BORROWER_NEEDS_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "storage/store_path.h"
#include "txn/object_looks.h"
#include "txn/staged_changes.h"

namespace repotxn::txn {

// Adds to `tips`, sorted then and each once, what those who borrow from `id`, at any distance, name of the objects in
// `directories` (…/objects) and have not themselves. `watched` gets what was looked at of each.
absl::Status CollectNeedsOfBorrowers(StagedChanges* changes, const RepositoryId& id,
                                     const std::vector<storage::StorePath>& directories,
                                     std::map<RepositoryId, WatchedUser>* watched, std::vector<ObjectId>* tips);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_BORROWER_NEEDS_H_
