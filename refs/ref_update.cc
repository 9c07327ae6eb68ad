#include "refs/ref_update.h"

#include <utility>

#include "absl/status/status.h"
#include "refs/ref_error.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

absl::Status CheckExpectation(const RefName& name, const RefValue& expected,
                              const RefValue& found) {
  if (expected.SameAs(found)) return absl::OkStatus();
  return RefMismatchError({name.text(), expected.ToString(), found.ToString()});
}

absl::Status CheckNewValue(const RefName& name, const RefValue& value) {
  if (name.IsHead() && value.is_absent()) {
    return absl::InvalidArgumentError("HEAD cannot be deleted");
  }
  if (value.is_symbolic() && value.target() == name) {
    return absl::InvalidArgumentError("symbolic ref would name itself");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RefValue> RefStaging::View(const RefName& name, RefLookup lookup) const {
  if (const auto staged = staged_.find(name); staged != staged_.end()) {
    return staged->second.after;
  }
  return lookup(name);
}

absl::StatusOr<ResolvedRef> RefStaging::Target(const RefUpdate& update, RefLookup lookup) const {
  if (update.no_deref || update.value.is_symbolic()) {
    REPOTXN_ASSIGN_OR_RETURN(RefValue value, View(update.name, lookup));
    return ResolvedRef{update.name, std::move(value), {}};
  }
  return ResolveSymbolic(update.name, [&](const RefName& hop) { return View(hop, lookup); });
}

absl::StatusOr<RefName> RefStaging::Stage(const RefUpdate& update, RefLookup lookup) {
  REPOTXN_ASSIGN_OR_RETURN(const ResolvedRef target, Target(update, lookup));
  REPOTXN_RETURN_IF_ERROR(CheckNewValue(target.name, update.value));
  const auto staged = staged_.find(target.name);
  if (staged == staged_.end()) {
    const auto initial = initial_.find(target.name);
    if (initial != initial_.end() && !initial->second.is_absent()) {
      REPOTXN_RETURN_IF_ERROR(CheckExpectation(target.name, initial->second, target.value));
    }
  }
  if (update.expected) {
    REPOTXN_RETURN_IF_ERROR(CheckExpectation(target.name, *update.expected, target.value));
  }
  if (staged == staged_.end()) {
    staged_.emplace(target.name, Values{target.value, update.value});
  } else {
    REPOTXN_DCHECK(staged->second.after == target.value);
    staged->second.after = update.value;
  }
  return target.name;
}

void RefStaging::RecordInitial(const RefName& name, const RefValue& value) {
  if (staged_.count(name) > 0) return;
  initial_.insert_or_assign(name, value);
}

std::optional<RefValue> RefStaging::Staged(const RefName& name) const {
  const auto staged = staged_.find(name);
  if (staged == staged_.end()) return std::nullopt;
  return staged->second.after;
}

std::vector<RefName> RefStaging::StagedNames() const {
  std::vector<RefName> names;
  names.reserve(staged_.size());
  for (const auto& [name, values] : staged_) names.push_back(name);
  return names;
}

std::vector<wal::RefChange> RefStaging::Changes(const RepositoryId& id) const {
  std::vector<wal::RefChange> changes;
  for (const auto& [name, values] : staged_) {
    if (values.before.SameAs(values.after)) continue;
    changes.push_back(
        wal::RefChange{id, name.text(), values.before.ToLogged(), values.after.ToLogged()});
  }
  return changes;
}

std::vector<RefName> RefStaging::Created() const {
  std::vector<RefName> names;
  for (const auto& [name, values] : staged_) {
    if (values.before.is_absent() && !values.after.is_absent()) names.push_back(name);
  }
  return names;
}

std::vector<RefName> RefStaging::Deleted() const {
  std::vector<RefName> names;
  for (const auto& [name, values] : staged_) {
    if (!values.before.is_absent() && values.after.is_absent()) names.push_back(name);
  }
  return names;
}

}  // namespace repotxn::refs
