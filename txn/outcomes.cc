// Answers what became of a transaction or request. "Not committed" is said only behind a fence.
#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

// Transaction ids begin with the time they were drawn at, in milliseconds since 1970, six bytes, most significant
// first; the other 80 bits are random. So an id tells whether its outcome can still be known.
constexpr size_t kTimeBytes = 6;

absl::Time DrawnAt(const TransactionId& id) {
  int64_t milliseconds = 0;
  for (size_t i = 0; i < kTimeBytes; ++i) {
    milliseconds = milliseconds << 8 | static_cast<uint8_t>(id.bytes()[i]);
  }
  return absl::FromUnixMillis(milliseconds);
}

CommitResult Answer(const TransactionId& id, CommitOutcome outcome, absl::Status status) {
  CommitResult result;
  result.outcome = outcome;
  result.transaction_id = id;
  result.status = std::move(status);
  return result;
}

CommitResult CommittedAt(const TransactionId& id, wal::Lsn lsn) {
  CommitResult result = Answer(id, CommitOutcome::kCommitted, absl::OkStatus());
  result.lsn = lsn;
  return result;
}

}  // namespace

TransactionId StoreCore::NewTransactionId() {
  std::array<uint8_t, TransactionId::kBytes> bytes{};
  environment_.random->Fill(bytes.data(), bytes.size());
  int64_t milliseconds = absl::ToUnixMillis(environment_.clock->Now());
  for (size_t i = kTimeBytes; i-- > 0; milliseconds >>= 8) {
    bytes[i] = static_cast<uint8_t>(milliseconds & 0xff);
  }
  return TransactionId(bytes);
}

CommitResult StoreCore::OutcomeOf(const TransactionId& id) {
  // Fence, then look: whatever was committed before the fence has its row.
  const auto state = live_.Fence(id);
  if (!state.ok()) return Answer(id, CommitOutcome::kUnknown, state.status());
  if (*state == LiveTransactions::State::kLive) {
    return Answer(id, CommitOutcome::kPending, absl::OkStatus());
  }
  const auto row = rows_->Get(TransactionKey(id), publisher_->committed_lsn());
  if (!row.ok()) return Answer(id, CommitOutcome::kUnknown, row.status());
  if (*row) return CommittedAt(id, (*row)->version);
  if (*state == LiveTransactions::State::kUnknown) {
    return Answer(id, CommitOutcome::kUnknown,
                  absl::UnavailableError("outcome is decided when the store is opened again"));
  }
  if (DrawnAt(id) < OldestKnown()) {
    return Answer(id, CommitOutcome::kUnknown,
                  absl::OutOfRangeError("outcome is older than the retention time"));
  }
  return Answer(id, CommitOutcome::kNotCommitted, absl::NotFoundError("transaction was not committed"));
}

absl::StatusOr<std::optional<CommitResult>> StoreCore::RecordedRequest(absl::string_view request_id,
                                                                       wal::Lsn at) {
  if (request_id.empty()) return std::optional<CommitResult>();
  REPOTXN_ASSIGN_OR_RETURN(const std::optional<Row> row, rows_->Get(RequestKey(request_id), at));
  if (!row) return std::optional<CommitResult>();
  REPOTXN_ASSIGN_OR_RETURN(const RequestRow request, DecodeRequestRow(row->value));
  if (request.committed) return std::optional<CommitResult>(CommittedAt(*request.committed, row->version));
  return std::optional<CommitResult>(
      Answer(TransactionId(), CommitOutcome::kNotCommitted,
             absl::FailedPreconditionError("request was given up: its outcome was asked for")));
}

CommitResult StoreCore::OutcomeOfRequest(absl::string_view request_id, absl::Time issued_at) {
  while (true) {
    auto recorded = RecordedRequest(request_id, publisher_->committed_lsn());
    if (!recorded.ok()) return Answer(TransactionId(), CommitOutcome::kUnknown, recorded.status());
    if (*recorded) return **std::move(recorded);
    if (live_.HasRequest(request_id)) {
      return Answer(TransactionId(), CommitOutcome::kPending, absl::OkStatus());
    }
    if (issued_at < OldestKnown()) {
      return Answer(TransactionId(), CommitOutcome::kUnknown,
                    absl::OutOfRangeError("outcome is older than the retention time"));
    }
    // The fence is an entry of its own: it meets a commit of this request, so one of the two comes first.
    BeginOptions begin;
    auto fence = Begin(begin, false);
    if (!fence.ok()) return Answer(TransactionId(), CommitOutcome::kUnknown, fence.status());
    StagedChanges* changes = (*fence)->changes_.get();
    // It may have been committed since the first look: this one is at the fence's own snapshot.
    recorded = RecordedRequest(request_id, changes->snapshot_lsn);
    if (!recorded.ok() || *recorded) continue;
    changes->request_id = std::string(request_id.data(), request_id.size());
    changes->fences_request = true;
    CommitResult fenced = (*fence)->Commit();
    if (fenced.committed()) {
      return Answer(TransactionId(), CommitOutcome::kNotCommitted,
                    absl::NotFoundError("request was not committed"));
    }
    if (!absl::IsAborted(fenced.status)) {
      fenced.outcome = CommitOutcome::kUnknown;
      return fenced;
    }
  }
}

}  // namespace repotxn::txn
