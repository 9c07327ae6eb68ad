#include "txn/transaction_life.h"

#include <algorithm>

#include "storage/check.h"

namespace repotxn::txn {

absl::Status TransactionLife::EnterCall() {
  const storage::MutexLock lock(&mutex_);
  if (!end_.ok()) return end_;  // I1
  ++calls_;
  return absl::OkStatus();
}

bool TransactionLife::LeaveCall(absl::Duration now) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_DCHECK(calls_ > 0 && end_.ok());
  used_at_ = std::max(used_at_, now);
  if (--calls_ > 0 || asked_.ok()) return false;
  end_ = asked_;
  return true;
}

bool TransactionLife::End(const absl::Status& why) {
  REPOTXN_DCHECK(!why.ok());
  const storage::MutexLock lock(&mutex_);
  if (!end_.ok()) return false;
  if (calls_ > 0) {
    if (asked_.ok()) asked_ = why;  // I2
    return false;
  }
  end_ = asked_.ok() ? why : asked_;
  return true;
}

void TransactionLife::NoteUse(absl::Duration now) {
  const storage::MutexLock lock(&mutex_);
  used_at_ = std::max(used_at_, now);
}

bool TransactionLife::EndIfIdleSince(absl::Duration since, const absl::Status& why) {
  REPOTXN_DCHECK(!why.ok());
  const storage::MutexLock lock(&mutex_);
  if (!end_.ok() || calls_ > 0 || used_at_ > since) return false;
  end_ = asked_.ok() ? why : asked_;
  return true;
}

}  // namespace repotxn::txn
