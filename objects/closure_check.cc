#include "objects/closure_check.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "storage/status_macros.h"

namespace repotxn::objects {

absl::string_view TipFaultReason(TipFaultKind kind) {
  switch (kind) {
    case TipFaultKind::kMissing:
      return "missing necessary objects";
    case TipFaultKind::kNotACommit:
      return "failed to update ref: non-commit object";
    case TipFaultKind::kOtherFormat:
      return "failed to update ref: wrong object format";
  }
  return "failed to update ref";
}

absl::StatusOr<std::vector<TipFault>> CheckTips(ObjectLookup& lookup, absl::Span<const Tip> tips) {
  std::vector<TipFault> faults;
  for (size_t i = 0; i < tips.size(); ++i) {
    const Tip& tip = tips[i];
    if (tip.oid.empty() || tip.oid.IsZero()) continue;  // a deletion
    if (tip.oid.format() != lookup.format()) {
      faults.push_back({i, TipFaultKind::kOtherFormat});
      continue;
    }
    // Existence alone, which reads less, where any type will do.
    if (!absl::StartsWith(tip.ref_name, "refs/heads/")) {
      REPOTXN_ASSIGN_OR_RETURN(const bool exists, lookup.Exists(tip.oid));
      if (!exists) faults.push_back({i, TipFaultKind::kMissing});
      continue;
    }
    const auto type = lookup.Type(tip.oid);
    if (absl::IsNotFound(type.status())) {
      faults.push_back({i, TipFaultKind::kMissing});
    } else if (!type.ok()) {
      return type.status();
    } else if (*type != ObjectType::kCommit) {
      faults.push_back({i, TipFaultKind::kNotACommit});
    }
  }
  return faults;
}

absl::StatusOr<std::vector<ObjectId>> MissingObjects(ObjectLookup& lookup,
                                                     absl::Span<const ObjectId> oids) {
  std::vector<ObjectId> missing;
  for (const ObjectId& oid : oids) {
    REPOTXN_ASSIGN_OR_RETURN(const bool exists, lookup.Exists(oid));
    if (!exists) missing.push_back(oid);
  }
  return missing;
}

}  // namespace repotxn::objects
