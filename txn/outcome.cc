#include "txn/outcome.h"

namespace repotxn::txn {

const char* CommitOutcomeName(CommitOutcome outcome) {
  switch (outcome) {
    case CommitOutcome::kCommitted: return "committed";
    case CommitOutcome::kNotCommitted: return "not committed";
    case CommitOutcome::kUnknown: return "unknown";
    case CommitOutcome::kPending: return "pending";
  }
  return "unknown";
}

}  // namespace repotxn::txn
