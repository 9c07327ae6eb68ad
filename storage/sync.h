// Mutex and condition wrappers with scheduling points.
//
// The only primitives the code above storage/ waits on. Each acquisition, release and wait passes a scheduling point:
// nothing today in production; a scheduler can be installed there that runs transactions as fibres and chooses who
// goes on, without touching a caller.
//
// Every mutex has a rank. In test builds a thread that acquires a mutex whose rank is not above all it already holds
// aborts: that is the lock order, checked. Ranks, outermost first, are in MutexRank; two mutexes of rank kPartition
// may be held together, acquired in the order of their partition ids (the caller's duty).
//
// Thread-safe.
#ifndef REPOTXN_STORAGE_SYNC_H_
#define REPOTXN_STORAGE_SYNC_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// ThreadSanitizer does not see what a packaged, uninstrumented Abseil does: the order that a mutex makes is told to it here.
#if defined(__SANITIZE_THREAD__)
#define REPOTXN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REPOTXN_TSAN 1
#endif
#endif
#ifdef REPOTXN_TSAN
#include <sanitizer/tsan_interface.h>
#define REPOTXN_TSAN_ACQUIRE(address) __tsan_acquire(address)
#define REPOTXN_TSAN_RELEASE(address) __tsan_release(address)
#else
#define REPOTXN_TSAN_ACQUIRE(address) static_cast<void>(0)
#define REPOTXN_TSAN_RELEASE(address) static_cast<void>(0)
#endif

namespace repotxn::storage {

// Outermost first: a thread may only acquire ranks above what it holds.
enum class MutexRank : uint8_t {
  kLifecycle = 10,    // open and close of a store
  kSnapshot = 20,     // cache of snapshot directories
  kMaterializer = 30, // latch of one repository
  kPartition = 40,    // critical section; several at once, in id order
  kLog = 50,          // log mutex: reservation and queue
  kPublish = 60,      // publication in LSN order
  kOverlay = 70,      // versions of one repository
  kRegistry = 80,     // open transactions and snapshot LSNs
  kMetadata = 90,     // the one writer of the metadata store
  kLeaf = 100,        // nothing of ours is acquired below it
  kInnermost = 255,   // log sink, child spawner, test doubles: callable below anything
};

// Called at scheduling points. Installed by tests only.
class SchedulingHook {
 public:
  virtual ~SchedulingHook() = default;
  virtual void OnSchedulingPoint() = 0;
};
// Installs `hook` (nullptr: none) for the whole process. The hook must outlive its installation.
void SetSchedulingHook(SchedulingHook* hook);
namespace internal {
extern std::atomic<SchedulingHook*> scheduling_hook;
void PushRank(MutexRank rank);
void PopRank(MutexRank rank);
}  // namespace internal

inline void SchedulingPoint() {
  if (SchedulingHook* hook = internal::scheduling_hook.load(std::memory_order_acquire)) {
    hook->OnSchedulingPoint();
  }
}

class ABSL_LOCKABLE Mutex {
 public:
  explicit Mutex(MutexRank rank) : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    SchedulingPoint();
#ifdef REPOTXN_TESTING
    internal::PushRank(rank_);
#endif
    mutex_.Lock();
    REPOTXN_TSAN_ACQUIRE(&mutex_);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
#ifdef REPOTXN_TESTING
    // Before the release: whoever gets the mutex next may destroy it, and this object with it.
    internal::PopRank(rank_);
#endif
    REPOTXN_TSAN_RELEASE(&mutex_);
    mutex_.Unlock();
    SchedulingPoint();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    SchedulingPoint();
    if (!mutex_.TryLock()) return false;
    REPOTXN_TSAN_ACQUIRE(&mutex_);
#ifdef REPOTXN_TESTING
    internal::PushRank(rank_);
#endif
    return true;
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

 private:
  friend class CondVar;
  absl::Mutex mutex_;
  const MutexRank rank_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class CondVar {
 public:
  // Waits until signalled; may wake spuriously.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    SchedulingPoint();
    REPOTXN_TSAN_RELEASE(&mutex->mutex_);
    cond_.Wait(&mutex->mutex_);
    REPOTXN_TSAN_ACQUIRE(&mutex->mutex_);
  }
  // Returns true when the time-out passed first.
  bool WaitFor(Mutex* mutex, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    SchedulingPoint();
    REPOTXN_TSAN_RELEASE(&mutex->mutex_);
    const bool timed_out = cond_.WaitWithTimeout(&mutex->mutex_, timeout);
    REPOTXN_TSAN_ACQUIRE(&mutex->mutex_);
    return timed_out;
  }
  void Signal() { cond_.Signal(); }
  void SignalAll() { cond_.SignalAll(); }

 private:
  absl::CondVar cond_;
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_SYNC_H_
