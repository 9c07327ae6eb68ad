// What became of a transaction: the outcome law of the error model, as types.
//
// Whoever called commit can always tell committed, not committed, or unknown. An unknown outcome is returned only when
// a sync failed, ownership was lost, or the wait ended after admission; Store::OutcomeOf answers later.
#ifndef REPOTXN_TXN_OUTCOME_H_
#define REPOTXN_TXN_OUTCOME_H_

#include <string>

#include "absl/status/status.h"
#include "storage/id128.h"
#include "wal/lsn.h"

namespace repotxn::txn {

enum class CommitOutcome : uint8_t {
  kCommitted,
  kNotCommitted,
  kUnknown,
  kPending,  // only from Store::OutcomeOf: the transaction still lives
};

// "committed", "not committed", "unknown", "pending".
const char* CommitOutcomeName(CommitOutcome outcome);

// Answer of Commit, Run and OutcomeOf.
struct CommitResult {
  CommitOutcome outcome = CommitOutcome::kNotCommitted;
  // Committed: its place in the log; Zero for a transaction that changed nothing.
  wal::Lsn lsn;
  TransactionId transaction_id;
  // OK when committed. Not committed: the reason (kAborted with a conflict detail, ...). Unknown: kUnavailable; or
  // kDeadlineExceeded, kCancelled when the wait ended after admission.
  absl::Status status;
  // Body runs that it took (Run only).
  int attempts = 1;

  bool committed() const { return outcome == CommitOutcome::kCommitted; }
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_OUTCOME_H_
