// What became of a transaction or of a request.
#include "absl/time/time.h"
#include "admin/error_json.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

// An outcome that was found is an answer, whatever it is; what cannot be known is an error.
Reply ToReply(const txn::CommitResult& result) {
  if (result.outcome == txn::CommitOutcome::kUnknown) {
    Reply reply = ErrorReply(result.status.ok() ? absl::UnavailableError("outcome is not known")
                                                : result.status);
    reply.body["outcome"] = txn::CommitOutcomeName(result.outcome);
    return reply;
  }
  Reply reply;
  reply.body["outcome"] = txn::CommitOutcomeName(result.outcome);
  if (!result.transaction_id.IsZero()) {
    reply.body["transaction_id"] = result.transaction_id.ToHex();
  }
  if (result.committed()) reply.body["lsn"] = result.lsn.value();
  return reply;
}

}  // namespace

absl::StatusOr<Reply> OutcomeOfTransaction(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const TransactionId id, TransactionId::FromHex(matched.item));
  return ToReply(matched.store.OutcomeOf(id));
}

absl::StatusOr<Reply> OutcomeOfRequest(const Matched& matched) {
  const std::string id = QueryOr(matched.call, "id", "");
  if (id.empty()) return FieldError("a parameter is missing", "id");
  // Without it nobody could tell "never committed" from "forgotten since".
  absl::Time issued_at;
  std::string fault;
  if (!absl::ParseTime(absl::RFC3339_full, QueryOr(matched.call, "issued_at", ""), &issued_at,
                       &fault)) {
    return FieldError("a time such as 2026-01-31T12:00:00Z is needed", "issued_at");
  }
  return ToReply(matched.store.OutcomeOfRequest(id, issued_at));
}

}  // namespace repotxn::admin
