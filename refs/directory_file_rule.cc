#include "refs/directory_file_rule.h"

#include <set>

#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

using NameSet = std::set<absl::string_view>;

DirectoryFileConflict ConflictOf(absl::string_view wanted, absl::string_view blocked_by) {
  return DirectoryFileConflict{std::string(wanted.data(), wanted.size()),
                               std::string(blocked_by.data(), blocked_by.size())};
}

// A parent of `name` that is a ref afterwards.
absl::StatusOr<std::optional<DirectoryFileConflict>> FindParent(const RefName& name,
                                                                const NameSet& created,
                                                                const NameSet& deleted,
                                                                ExistingRefs& existing) {
  for (const absl::string_view parent : name.ParentNames()) {
    bool remains = created.count(parent) > 0;
    if (!remains && deleted.count(parent) == 0) {
      REPOTXN_ASSIGN_OR_RETURN(remains, existing.Exists(parent));
    }
    if (remains) return std::optional(ConflictOf(name.view(), parent));
  }
  return std::optional<DirectoryFileConflict>();
}

// A ref below `name` from before that is not deleted. One created below is found as its parent.
absl::StatusOr<std::optional<DirectoryFileConflict>> FindBelow(const RefName& name,
                                                               const NameSet& deleted,
                                                               ExistingRefs& existing) {
  std::string after;
  while (true) {
    REPOTXN_ASSIGN_OR_RETURN(
        const std::optional<std::string> next,
        existing.NextBelow(name.view(), absl::string_view(after.data(), after.size())));
    if (!next) return std::optional<DirectoryFileConflict>();
    const absl::string_view found(next->data(), next->size());
    REPOTXN_DCHECK(*next > after);
    if (deleted.count(found) == 0) return std::optional(ConflictOf(name.view(), found));
    after = *next;
  }
}

}  // namespace

absl::StatusOr<std::optional<DirectoryFileConflict>> FindDirectoryFileConflict(
    absl::Span<const RefName> created, absl::Span<const RefName> deleted, ExistingRefs& existing) {
  NameSet created_names;
  NameSet deleted_names;
  std::set<const RefName*, decltype([](const RefName* a, const RefName* b) { return *a < *b; })>
      in_order;
  for (const RefName& name : deleted) deleted_names.insert(name.view());
  for (const RefName& name : created) {
    created_names.insert(name.view());
    in_order.insert(&name);
  }
  for (const RefName* name : in_order) {
    if (name->IsHead()) continue;
    REPOTXN_ASSIGN_OR_RETURN(auto conflict,
                             FindParent(*name, created_names, deleted_names, existing));
    if (conflict) return conflict;
    REPOTXN_ASSIGN_OR_RETURN(conflict, FindBelow(*name, deleted_names, existing));
    if (conflict) return conflict;
  }
  return std::optional<DirectoryFileConflict>();
}

}  // namespace repotxn::refs
