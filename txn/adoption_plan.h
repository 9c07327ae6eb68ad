// Judges a bare repository that stock Git made, before it is adopted. Pure: from a listing to a plan.
//
// Three verdicts on what lies in the directory
//   kept       what a store's repository consists of: HEAD, config, refs, objects, hooks, info, shallow and other files;
//   set aside  what a store has no use for and must not have: stale locks, temporary files of Git, reflogs, FETCH_HEAD,
//              gc.pid, keep files, packs without index. It is moved to lost-found/adopt-<id>/, under the same names;
//   refused    what a store cannot honour: promisor repositories, grafts, linked worktrees, included configuration,
//              extensions it does not know, symbolic links and special files, a lock so young that somebody may hold it.
// A repository with one refusal is not adopted; all refusals are listed, so that the operator needs one look.
//
// Thread-safe (no state).
#ifndef REPOTXN_TXN_ADOPTION_PLAN_H_
#define REPOTXN_TXN_ADOPTION_PLAN_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::txn {

// One thing in the directory. Loose objects under their proper names are left out: they are many, and fine.
struct AdoptionEntry {
  std::string path;  // relative to the repository
  storage::FileKind kind = storage::FileKind::kRegular;
  int64_t size = 0;  // bytes, of a file
  absl::Time modified;
};

struct AdoptionListing {
  std::vector<AdoptionEntry> entries;  // sorted by path
  // Contents; empty when the file is not there.
  std::string head;
  std::string config;
};

// A path in the repository ("" is the whole) and what is to be said about it.
struct AdoptionFinding {
  std::string path;
  std::string reason;
  friend bool operator==(const AdoptionFinding&, const AdoptionFinding&) = default;
};

struct AdoptionPlan {
  ObjectFormat format = ObjectFormat::kSha1;
  // What HEAD names, or main when it names no ref (a detached HEAD stays as it is).
  std::string head_target = "refs/heads/main";
  std::vector<AdoptionFinding> set_aside;  // sorted by path; nothing below a directory that is set aside whole
  std::vector<AdoptionFinding> refusals;
};

// `now` and `lock_age_min`: locks and pid files younger than this are refused instead of set aside.
AdoptionPlan PlanAdoption(const AdoptionListing& listing, absl::Time now, absl::Duration lock_age_min);

// Whether `name` in objects/<2 hex>/ is a loose object of either format.
bool IsLooseObjectName(absl::string_view name);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ADOPTION_PLAN_H_
