// Lines in front of hot keys: writers who would only lose against each other come one after the other.
//
// The conflict check is optimistic: of 64 writers of one ref that begin together one commits and 63 have worked for nothing,
// and the more they are, the longer one of them may lose. A writer that has lost on a key stands in line for it before its
// body runs again; one that is about to commit a key for which somebody stands in line joins the line instead. Whoever
// has the turn begins with what the one before has committed.
//
// For speed alone: the check decides as before, and whoever has waited for his patience goes on without a turn. So a holder
// that hangs delays the others and stops nobody.
//
// A writer enters the lines of all its keys at once and has its turn when it heads all of them: any two stand in the
// same order in every line that they share, and nobody waits in a circle [hard case B12]. It holds one turn at a time.
//
// Who has lost on a range (all refs, the packs of a repository), such as the unlinking of a repository that is pushed to all
// the time, stands in the line of the repository's root, which every writer in the repository *passes*: those wait until he
// has had his turn, and then go on side by side [hard case B10]. A line with nobody but such passers is none.
//
// Thread-safe. Mutex: rank kLeaf.
#ifndef REPOTXN_LOCKS_INTENT_QUEUE_H_
#define REPOTXN_LOCKS_INTENT_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "locks/footprint.h"
#include "locks/lock_key.h"
#include "storage/sync.h"
#include "storage/wait_limit.h"

namespace repotxn::locks {

class IntentQueue {
 public:
  // A line to stand in. Who only passes goes on beside others who do.
  struct Claim {
    LockKey key;
    bool passes = false;

    friend bool operator==(const Claim&, const Claim&) = default;
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };

 private:
  struct Place {
    std::vector<Claim> claims;  // sorted, each key once
    storage::CondVar moved;
  };

 public:
  // A place at the head of one's lines; given up when it is destroyed, by the thread that got it. Must not outlive the
  // queue.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept = default;
    Turn& operator=(Turn&& other) noexcept;
    ~Turn() { GiveUp(); }

    bool is_held() const { return place_ != nullptr; }
    void GiveUp();

   private:
    friend class IntentQueue;
    Turn(IntentQueue* queue, std::unique_ptr<Place> place) : queue_(queue), place_(std::move(place)) {}
    IntentQueue* queue_ = nullptr;
    std::unique_ptr<Place> place_;
  };

  // Waits in the lines of `claims` for a turn, in the order of coming. A turn that is not held: the limit came, or
  // `patience` of the limit's clock passed, or this thread holds a turn already (a transaction inside the body of
  // another waits for nobody).
  Turn LineUp(std::vector<Claim> claims, const storage::WaitLimit& limit, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The keys that `footprint` writes, or roots that it passes, and for which somebody stands in line. One atomic look when
  // there is no line at all.
  std::vector<Claim> Contended(const Footprint& footprint) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The line in which waiting helps who has lost on `key`: its own, when it is a ref, a file or a key of the key space; the
  // root's, when it is a range within a repository. None for a directory that everybody passes.
  static std::optional<Claim> LineFor(const LockKey& key);

  // Those who stand in line or have their turn.
  int size() const { return size_.load(); }

 private:
  struct Standing {
    Place* place;
    bool passes;
  };
  using Line = std::list<Standing>;
  static bool IsRoot(const LockKey& key) { return key.kind == KeyKind::kEntry && key.bytes.empty(); }
  bool HeadsAllLines(const Place& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Place* place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<int> size_{0};
  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  absl::btree_map<LockKey, Line> lines_ ABSL_GUARDED_BY(mutex_);  // none is empty
};

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_INTENT_QUEUE_H_
