// Makes catalogue and disk agree, slowly: reports what differs, and acts only when it goes on differing.
//
// A store's own code never needs this: recovery and materializer bring the disk to what the log says. It is for what
// others do to the directories, and for what a bug would leave. What it finds, and does about it:
//
//   unregistered directory   repositories/@id/… without a row          moved to lost-found/ (never deleted)
//   missing directory        a row without its directory               reported
//   dangling link            alternates that name what is not there    reported
//   symlink missing, wrong   repositories/<path>.git                   made again
//   stale symlink            one whose path has no row                 removed
//
// A look at a live store sees things half done (a repository is created directory first, row later), so one look proves
// nothing: an act needs `misses_min` consecutive rounds that saw the same and `grace` since the first, and looks once
// more before it acts. At most `acts_max` acts a round, so that a mistake in the catalogue cannot empty a store at once.
//
// The decision is pure (Reconciler); the look and the acts are Store::Reconcile().
#ifndef REPOTXN_TXN_RECONCILER_H_
#define REPOTXN_TXN_RECONCILER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace repotxn::txn {

enum class DiscrepancyKind : uint8_t {
  kUnregisteredDirectory,
  kMissingDirectory,
  kDanglingLink,
  kMissingSymlink,
  kWrongSymlink,
  kStaleSymlink,
};
// "unregistered directory", …: constant, for people and scripts.
absl::string_view DiscrepancyName(DiscrepancyKind kind);
// Whether anything is done about it.
bool IsReconcilable(DiscrepancyKind kind);

struct Discrepancy {
  DiscrepancyKind kind = DiscrepancyKind::kMissingDirectory;
  std::string path;    // below the store's root
  std::string detail;  // what it says, or should

  friend auto operator<=>(const Discrepancy&, const Discrepancy&) = default;
};

struct ReconcileOptions {
  // Looks, reports, counts; does nothing.
  bool dry_run = false;
  // Consecutive rounds, this one included, that must have seen a discrepancy, and the time since the first.
  int misses_min = 3;
  absl::Duration grace = absl::Minutes(30);
  // Most acts of one round.
  int acts_max = 10;
};

struct ReconcileReport {
  std::vector<Discrepancy> found;  // sorted
  std::vector<Discrepancy> acted;  // of those
};

// Remembers what earlier rounds saw and decides what is due. Thread-compatible.
class Reconciler {
 public:
  // Takes what a round found (sorted, each once) at `now`; returns what is to be done about, in order.
  std::vector<Discrepancy> Decide(const std::vector<Discrepancy>& found, absl::Time now,
                                  const ReconcileOptions& options);

 private:
  struct Seen {
    int rounds = 0;
    absl::Time first;
  };
  std::map<Discrepancy, Seen> seen_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_RECONCILER_H_
