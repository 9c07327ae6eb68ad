// The D/F rule: no ref may be named like a directory of another one.
//
// Git's readers list both without complaint, so this is the only guard. Judged is the state after
// the transaction: a parent that it deletes does not block a child that it creates, and the other
// way round.
//
// Pure; the refs that exist are asked for through an interface, so the same rule serves the
// snapshot's refs and a model.
#ifndef REPOTXN_REFS_DIRECTORY_FILE_RULE_H_
#define REPOTXN_REFS_DIRECTORY_FILE_RULE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "refs/ref_error.h"
#include "refs/ref_name.h"

namespace repotxn::refs {

// The refs before the transaction, ordered by name.
class ExistingRefs {
 public:
  virtual ~ExistingRefs() = default;
  virtual absl::StatusOr<bool> Exists(absl::string_view name) = 0;
  // The first ref strictly below directory `name` whose name is greater than `after` ("" for the
  // first one).
  virtual absl::StatusOr<std::optional<std::string>> NextBelow(absl::string_view name,
                                                               absl::string_view after) = 0;
};

// Judges the names that a transaction creates (absent before, present after) and deletes (present
// before, absent after). Each name is asked for with its parents, and below it at most one more ref
// than are deleted there. HEAD never conflicts. Returns the first conflict in order of names; none:
// no value. Errors of `existing` pass through. DirectoryFileError() turns a conflict into a status.
absl::StatusOr<std::optional<DirectoryFileConflict>> FindDirectoryFileConflict(
    absl::Span<const RefName> created, absl::Span<const RefName> deleted, ExistingRefs& existing);

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_DIRECTORY_FILE_RULE_H_
