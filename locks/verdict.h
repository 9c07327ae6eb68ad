// What the conflict check decided, and the status that tells a caller.
//
// A Verdict is made inside the critical section and so holds no text; DetailOf() adds the text outside. The status is
// kAborted ("begin a new transaction") with the detail as a typed payload.
//
// Thread-compatible.
#ifndef REPOTXN_LOCKS_VERDICT_H_
#define REPOTXN_LOCKS_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "locks/footprint.h"
#include "storage/id128.h"
#include "wal/lsn.h"

namespace repotxn::locks {

enum class Verdict : uint8_t { kCommit, kConflict, kTooOld };

// Why two transactions meet. Values stand in payloads; never renumbered.
enum class ConflictRule : uint8_t {
  kNone = 0,
  kTooOld = 1,              // the history no longer reaches back to the snapshot
  kEntryWritten = 2,        // file, directory or repository path written, removed or ensured
  kChildrenWritten = 3,     // something directly inside a listed directory was written
  kSubtreeWritten = 4,      // something inside a subtree of mine was written
  kAncestorRemoved = 5,     // a subtree that holds my key was removed or moved, or a directory on my way changed
  kRefWritten = 6,
  kRefPrefixWritten = 7,    // a ref under a listed prefix was written
  kRefAbove = 8,            // D/F: a ref now exists at a prefix of the name that I create
  kRefBelow = 9,            // D/F: a ref now exists below the name that I create
  kKeyWritten = 10,
  kKeyRangeWritten = 11,
  kLinkWritten = 12,
  kRequestUsed = 13,
};

// The message of a rule: constant, lower case. Unknown values give the text of kNone.
absl::string_view ConflictRuleText(ConflictRule rule);

// Verdict with its evidence. Trivially copyable; no text, no allocation.
struct CheckResult {
  Verdict verdict = Verdict::kCommit;
  ConflictRule rule = ConflictRule::kNone;
  uint32_t lock_index = 0;            // in the footprint that was checked; kConflict only
  wal::Lsn snapshot_lsn;              // mine
  wal::Lsn conflicting_lsn;           // the other's newest write; kTooOld: the oldest LSN that can be checked
  TransactionId conflicting_transaction;  // zero when kTooOld

  bool ok() const { return verdict == Verdict::kCommit; }
};

// What the caller is told.
struct ConflictDetail {
  ConflictRule rule = ConflictRule::kNone;
  std::string key;                    // LockKey::ToString() of my key; empty when too old
  wal::Lsn snapshot_lsn;
  wal::Lsn conflicting_lsn;
  TransactionId conflicting_transaction;

  absl::string_view rule_text() const { return ConflictRuleText(rule); }
  friend bool operator==(const ConflictDetail&, const ConflictDetail&) = default;
};

// Evidence of `result` with the text of the key. `footprint` is the one that was checked.
ConflictDetail DetailOf(const CheckResult& result, const Footprint& footprint);

// Address of the payload in the status.
inline constexpr absl::string_view kConflictPayloadUrl = "repotxn/conflict";

// OK for kCommit; else kAborted with the detail as payload.
absl::Status ToStatus(const CheckResult& result, const Footprint& footprint);
absl::Status ToStatus(const ConflictDetail& detail);

// The detail that ToStatus() put in, nothing when there is none or it is malformed.
std::optional<ConflictDetail> ConflictDetailOf(const absl::Status& status);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_VERDICT_H_
