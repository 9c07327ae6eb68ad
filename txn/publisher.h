// Publication in LSN order: what makes a durable entry visible, and the only thing that advances the committed LSN.
//
// An entry is published when it is durable, its directory work is done, and every entry before it has been published.
// The log's leader publishes a whole group at once, before anybody of it is woken; an entry with directory work is
// published by whoever completes the gap-free prefix. Answers go out only afterwards [hard case A14].
//
// Invariants
//   I1  Entries are published in the order of their LSNs, each once, without gaps.
//   I2  committed_lsn covers an LSN only after its versions are in the overlay.
//   I3  After Fail() nothing more is published.
//
// Thread-safe. Mutex: rank kPublish. Register() takes none, so that it may be called in the critical section.
#ifndef REPOTXN_TXN_PUBLISHER_H_
#define REPOTXN_TXN_PUBLISHER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"
#include "wal/entry_codec.h"
#include "wal/lsn.h"

namespace repotxn::txn {

struct PendingCommit;

class Publisher {
 public:
  // Entries that may be between reservation and publication. A power of two; admission keeps below it.
  static constexpr uint64_t kInFlightMax = 1 << 16;

  // `publish` puts the versions of an entry into the overlay; it is called under the mutex, in LSN order.
  Publisher(const wal::LogPosition& committed, std::function<void(const PendingCommit&)> publish);

  // Makes a reserved entry known. In the critical section: one store, nothing else.
  void Register(PendingCommit* commit);
  // Everything up to `lsn` is durable. Publishes what can be.
  void OnDurable(wal::Lsn lsn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells that the directory work of a durable entry is done, and waits until it is published. False: Fail() came
  // first; the entry is durable and not visible.
  bool AwaitPublished(PendingCommit* commit) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first half of it: never waits.
  void MarkReady(PendingCommit* commit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether AwaitPublished() would return at once.
  bool IsDecided(const PendingCommit& commit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until `lsn` is committed, the log or the publisher failed, or the limit came. Returns whether it is committed.
  bool AwaitCommitted(wal::Lsn lsn, const storage::WaitLimit& limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // For readers of the log. Waits until `lsn` is committed, somebody calls WakeWaiters(), or `timeout` passed; not at all
  // when `stop` is set, which is set before WakeWaiters() is called. May wake for nothing: look again.
  enum class Wake : uint8_t { kChanged, kTimedOut, kFailed };
  Wake AwaitChange(wal::Lsn lsn, absl::Duration timeout, const std::atomic<bool>& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeWaiters() ABSL_LOCKS_EXCLUDED(mutex_);
  // The log takes nothing more: whoever waits for an LSN beyond it gives up. What is durable is still published.
  void NoteLogFailed() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops for ever and wakes all waiters.
  void Fail() ABSL_LOCKS_EXCLUDED(mutex_);

  wal::Lsn committed_lsn() const { return wal::Lsn(committed_lsn_.load(std::memory_order_acquire)); }
  const std::atomic<uint64_t>* committed_lsn_cell() const { return &committed_lsn_; }
  // The committed LSN with its chain.
  wal::LogPosition committed_position() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::atomic<PendingCommit*>& SlotOf(uint64_t lsn) { return slots_[lsn % kInFlightMax]; }

  const std::function<void(const PendingCommit&)> publish_;
  const std::unique_ptr<std::atomic<PendingCommit*>[]> slots_;
  std::atomic<uint64_t> durable_lsn_;
  std::atomic<uint64_t> committed_lsn_;  // I2

  mutable storage::Mutex mutex_{storage::MutexRank::kPublish};
  storage::CondVar advanced_;
  int committed_waiters_ ABSL_GUARDED_BY(mutex_) = 0;
  wal::LogPosition position_ ABSL_GUARDED_BY(mutex_);
  bool is_failed_ ABSL_GUARDED_BY(mutex_) = false;  // I3
  bool is_log_failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_PUBLISHER_H_
