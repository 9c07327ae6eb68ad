#include "txn/transaction_payload.h"

#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::txn {

TransactionPayload::~TransactionPayload() {
  const storage::MutexLock lock(&mutex_);
  if (staged_ != nullptr && !belongs_to_log_.load()) {
    IgnoreBecause(staged_->Discard(), "a payload without entry is removed at open");
  }
}

absl::Status TransactionPayload::EnsureCreated() {
  if (staged_ != nullptr) return absl::OkStatus();
  auto created = store_->Create(id_);
  if (!created.ok()) return created.status();
  staged_ = *std::move(created);
  return absl::OkStatus();
}

absl::StatusOr<wal::PayloadFile> TransactionPayload::AddBytes(absl::string_view content) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_RETURN_IF_ERROR(EnsureCreated());
  return staged_->AddBytes(content);
}

absl::StatusOr<wal::PayloadFile> TransactionPayload::AddLinked(const storage::StorePath& source) {
  const storage::MutexLock lock(&mutex_);
  REPOTXN_RETURN_IF_ERROR(EnsureCreated());
  return staged_->AddLinked(source);
}

absl::Status TransactionPayload::Seal() {
  const storage::MutexLock lock(&mutex_);
  if (staged_ == nullptr || REPOTXN_PLANT("txn.skip_payload_sync")) return absl::OkStatus();
  return staged_->Seal();
}

std::vector<wal::PayloadFile> TransactionPayload::files() {
  const storage::MutexLock lock(&mutex_);
  return staged_ == nullptr ? std::vector<wal::PayloadFile>() : staged_->files();
}

std::shared_ptr<TransactionPayload> TransactionPayloads::Of(const TransactionId& id) {
  const storage::MutexLock lock(&mutex_);
  if (payloads_.size() >= sweep_at_) {
    absl::erase_if(payloads_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * payloads_.size() + 64;
  }
  std::weak_ptr<TransactionPayload>& known = payloads_[id];
  std::shared_ptr<TransactionPayload> payload = known.lock();
  if (payload == nullptr) {
    payload = std::make_shared<TransactionPayload>(store_, id);
    known = payload;
  }
  return payload;
}

}  // namespace repotxn::txn
