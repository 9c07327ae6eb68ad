// Merges the ref updates of one transaction in one repository into ref changes.
//
// Rules
//   * The first update of a ref is judged against the snapshot; a later one sees the value staged
//   before it. So the
//     first expectation meets the snapshot and the last value wins.
//   * An update to the value that the snapshot holds is no change and is dropped; so is the
//   deletion of an absent ref.
//   * An update of a symbolic ref goes to the end of its chain, unless `no_deref`; giving a ref a
//   symbolic value always
//     writes that ref itself. HEAD can be set, not deleted.
//   * An initial value recorded before the first update of a ref is a first expectation; an absent
//   one says nothing (the
//     real value is used), one recorded after an update is ignored.
// Every value of the snapshot that decided something was asked for through the lookup, which is
// where the caller notes its read keys; own staged writes are not asked for. The D/F rule is judged
// on the result (refs/directory_file_rule.h).
//
// Example:
//   RefStaging staging;
//   REPOTXN_RETURN_IF_ERROR(staging.Stage({.name = name, .expected = old, .value = next},
//   lookup).status()); note.ref_changes = staging.Changes(repository_id);
//
// Externally synchronised by the transaction.
#ifndef REPOTXN_REFS_REF_UPDATE_H_
#define REPOTXN_REFS_REF_UPDATE_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "refs/ref_name.h"
#include "refs/ref_reader.h"
#include "refs/ref_value.h"
#include "wal/operation.h"

namespace repotxn::refs {

struct RefUpdate {
  RefName name;
  // Old value demanded. No value: whatever it is; absent: the ref must not exist.
  std::optional<RefValue> expected = std::nullopt;
  // New value; absent deletes.
  RefValue value = {};
  // Writes a symbolic ref itself instead of what it names.
  bool no_deref = false;
};

class RefStaging {
 public:
  // Stages one update. Returns the name that is written, which differs from update.name behind a
  // symbolic ref. On error nothing of this update is staged and the staging stays usable.
  //   kFailedPrecondition: the expectation does not hold (RefMismatchDetail), or a chain of
  //   symbolic
  //     refs is too long;
  //   kInvalidArgument: HEAD deleted, a ref that would name itself;
  //   the errors of `lookup`, which gives the snapshot's values.
  absl::StatusOr<RefName> Stage(const RefUpdate& update, RefLookup lookup);
  // Notes the value that a ref is known to have had before the transaction. Stages nothing by
  // itself.
  void RecordInitial(const RefName& name, const RefValue& value);

  // The transaction's own view of a ref it has staged; no value for one it has not. Absent means
  // deleted.
  std::optional<RefValue> Staged(const RefName& name) const;
  // Names staged so far, also those whose value came back to the snapshot's; sorted.
  std::vector<RefName> StagedNames() const;
  // The merged changes, sorted by name, without no-ops.
  std::vector<wal::RefChange> Changes(const RepositoryId& id) const;
  // Names that did not exist in the snapshot and do afterwards, and the reverse; for the D/F rule.
  // Sorted.
  std::vector<RefName> Created() const;
  std::vector<RefName> Deleted() const;
  bool empty() const { return staged_.empty(); }

 private:
  struct Values {
    RefValue before, after;
  };

  absl::StatusOr<RefValue> View(const RefName& name, RefLookup lookup) const;
  // The ref that an update writes, with its value as the transaction sees it.
  absl::StatusOr<ResolvedRef> Target(const RefUpdate& update, RefLookup lookup) const;

  std::map<RefName, Values> staged_;
  std::map<RefName, RefValue> initial_;
};

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_UPDATE_H_
