#include "txn/live_transactions.h"

namespace repotxn::txn {

absl::Status LiveTransactions::Enter(const TransactionId& id, absl::string_view request_id) {
  const storage::MutexLock lock(&mutex_);
  if (is_closed_) return absl::UnavailableError("store is closing");
  if (fenced_.contains(id)) {
    return absl::FailedPreconditionError("transaction id was given up: its outcome was asked for, or it was ended");
  }
  if (unknown_.contains(id) ||
      !live_.try_emplace(id, std::string(request_id.data(), request_id.size())).second) {
    return absl::FailedPreconditionError("transaction id is in use");
  }
  return absl::OkStatus();
}

void LiveTransactions::Leave(const TransactionId& id, bool outcome_unknown) {
  const storage::MutexLock lock(&mutex_);
  live_.erase(id);
  if (outcome_unknown) unknown_.insert(id);
}

void LiveTransactions::GiveUp(const TransactionId& id) {
  const storage::MutexLock lock(&mutex_);
  live_.erase(id);
  fenced_.insert(id);
}

absl::StatusOr<LiveTransactions::State> LiveTransactions::Fence(const TransactionId& id) {
  const storage::MutexLock lock(&mutex_);
  if (live_.contains(id)) return State::kLive;
  if (unknown_.contains(id)) return State::kUnknown;
  if (fenced_.size() >= kFencedMax && !fenced_.contains(id)) {
    return absl::ResourceExhaustedError("too many transaction ids were given up");
  }
  fenced_.insert(id);
  return State::kFenced;
}

bool LiveTransactions::HasRequest(absl::string_view request_id) const {
  const storage::MutexLock lock(&mutex_);
  for (const auto& [id, request] : live_) {
    if (absl::string_view(request) == request_id) return true;
  }
  return false;
}

void LiveTransactions::Close() {
  const storage::MutexLock lock(&mutex_);
  is_closed_ = true;
}

size_t LiveTransactions::count() const {
  const storage::MutexLock lock(&mutex_);
  return live_.size();
}

}  // namespace repotxn::txn
