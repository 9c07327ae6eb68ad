#include "admin/commit_reply.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "admin/error_json.h"
#include "locks/verdict.h"

namespace repotxn::admin {
namespace {

// What a replay finds wrong is the doing of whoever the attempt before lost against: that is told too.
absl::Status WithConflict(absl::Status status, const absl::Status& previous) {
  const absl::optional<absl::Cord> payload = previous.GetPayload(locks::kConflictPayloadUrl);
  if (!status.ok() && payload && !status.GetPayload(locks::kConflictPayloadUrl)) {
    status.SetPayload(locks::kConflictPayloadUrl, *payload);
  }
  return status;
}

}  // namespace

Reply ResultReply(const txn::CommitResult& result, int committed_status) {
  Reply reply;
  reply.status = committed_status;
  const bool is_unknown = result.outcome == txn::CommitOutcome::kUnknown;
  if (!result.committed()) {
    reply = ErrorReply(result.status.ok() ? absl::InternalError("an outcome without a reason")
                                          : result.status);
  }
  if (is_unknown) {
    const bool waits = absl::IsDeadlineExceeded(result.status) || absl::IsCancelled(result.status);
    reply.status = waits ? 202 : 503;
  }
  reply.body["outcome"] = txn::CommitOutcomeName(result.outcome);
  if (!result.transaction_id.IsZero()) {
    reply.body["transaction_id"] = result.transaction_id.ToHex();
    if (is_unknown) {
      reply.body["ask"] = absl::StrCat("/api/transactions/", result.transaction_id.ToHex());
    }
  }
  if (result.committed()) reply.body["lsn"] = result.lsn.value();
  return reply;
}

Reply Commit(txn::Store& store, const Call& call,
             absl::FunctionRef<absl::Status(txn::Transaction&)> body, int committed_status) {
  txn::RunOptions options;
  options.begin.request_id = call.request_id;
  options.begin.deadline = call.deadline;
  const txn::CommitResult result = store.Run(options, [&](txn::Transaction& transaction) {
    transaction.SetActor(call.actor, call.origin);
    return WithConflict(body(transaction), transaction.previous_conflict());
  });
  return ResultReply(result, committed_status);
}

absl::StatusOr<std::unique_ptr<txn::Transaction>> BeginRead(txn::Store& store, const Call& call) {
  txn::BeginOptions begin;
  begin.access = txn::Access::kReadOnly;
  begin.deadline = call.deadline;
  return store.Begin(begin);
}

}  // namespace repotxn::admin
