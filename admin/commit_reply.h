// A write of the administration: one transaction, and an answer that always tells its outcome.
//
//   committed      the route's status; {"outcome", "transaction_id", "lsn"}; LSN 0: nothing changed
//   not committed  the status of the error; {"error", "outcome", "transaction_id"}
//   unknown        202 when only the wait ended, 503 when a sync failed or the store stops;
//                  {"error", "outcome", "transaction_id", "ask"}: where to ask for the outcome
//
// A second call with the same request id finds the first, changes nothing, and gets its answer.
//
// Thread-safe.
#ifndef REPOTXN_ADMIN_COMMIT_REPLY_H_
#define REPOTXN_ADMIN_COMMIT_REPLY_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin/call.h"
#include "txn/store.h"

namespace repotxn::admin {

Reply Commit(txn::Store& store, const Call& call, absl::FunctionRef<absl::Status(txn::Transaction&)> body,
             int committed_status = 200);

// The answer that a result gets.
Reply ResultReply(const txn::CommitResult& result, int committed_status);

// A transaction that only reads.
absl::StatusOr<std::unique_ptr<txn::Transaction>> BeginRead(txn::Store& store, const Call& call);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_COMMIT_REPLY_H_
