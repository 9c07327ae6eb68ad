// What a repository borrows, as `.have` lines tell it to a client that pushes.
//
// A push to a fork negotiates against the pool too: a client that knows these ids sends nothing that
// they reach. Only ids are told, no names.
//
// Thread-compatible.
#ifndef REPOTXN_DAEMON_BORROWED_TIPS_H_
#define REPOTXN_DAEMON_BORROWED_TIPS_H_

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "storage/object_id.h"
#include "txn/transaction.h"

namespace repotxn::daemon {

// Most ids told; branches go before other refs, near repositories before far ones.
inline constexpr size_t kBorrowedTipsMax = 2000;

// Values of the refs of all repositories on the alternates chain of `id`, each once, without those in
// `known` and those that the owner of the ref hides (its transfer.hideRefs). At most `tips_max`.
absl::StatusOr<std::vector<ObjectId>> BorrowedTips(txn::Transaction& transaction,
                                                   const RepositoryId& id,
                                                   absl::flat_hash_set<ObjectId> known,
                                                   size_t tips_max = kBorrowedTipsMax);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_BORROWED_TIPS_H_
