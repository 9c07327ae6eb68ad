// Ids of transactions that live, were given up (fenced), or whose outcome nobody knows.
//
// What lets OutcomeOf() say "not committed" honestly: an id that is not live is fenced first, so that no late commit
// can come, and only then its row is looked for.
//
// Thread-safe. Mutex: rank kRegistry.
#ifndef REPOTXN_TXN_LIVE_TRANSACTIONS_H_
#define REPOTXN_TXN_LIVE_TRANSACTIONS_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "storage/sync.h"

namespace repotxn::txn {

class LiveTransactions {
 public:
  // Ids that may be fenced in one life of the store; beyond it Fence() refuses, never forgets.
  static constexpr size_t kFencedMax = 1 << 20;

  // kFailedPrecondition: the id lives already or was fenced. kUnavailable: closing.
  absl::Status Enter(const TransactionId& id, absl::string_view request_id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(const TransactionId& id, bool outcome_unknown) ABSL_LOCKS_EXCLUDED(mutex_);

  // The transaction was ended from outside: the id is fenced for ever, so that nobody commits under it.
  void GiveUp(const TransactionId& id) ABSL_LOCKS_EXCLUDED(mutex_);

  enum class State : uint8_t { kLive, kUnknown, kFenced };
  // Fences the id unless it lives or is unknown. kResourceExhausted at kFencedMax.
  absl::StatusOr<State> Fence(const TransactionId& id) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRequest(absl::string_view request_id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses every later Enter().
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable storage::Mutex mutex_{storage::MutexRank::kRegistry};
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<TransactionId, std::string> live_ ABSL_GUARDED_BY(mutex_);  // with request id
  absl::flat_hash_set<TransactionId> fenced_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<TransactionId> unknown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_LIVE_TRANSACTIONS_H_
