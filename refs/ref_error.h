// Data that travels with the errors of this folder, as payloads of absl::Status.
//
// Messages are constant; what differs from case to case (names, ids, offsets) is here. A payload is
// a few length-prefixed byte strings; it is never stored, so it has no format level.
//
// Example:
//   if (const auto detail = RefMismatchDetail(status)) Report(detail->name, detail->expected,
//   detail->found);
//
// Thread-safe: pure functions.
#ifndef REPOTXN_REFS_REF_ERROR_H_
#define REPOTXN_REFS_REF_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace repotxn::refs {

// Why a text is not a ref name; with kInvalidArgument.
struct RefNameFaultText {
  std::string name;
  uint64_t offset = 0;
  std::string rule;
};

// The expected old value differs from what the transaction's snapshot (or its own staged write)
// holds; with kFailedPrecondition. Values as RefValue::ToString().
struct RefMismatch {
  std::string name;
  std::string expected;
  std::string found;

  friend bool operator==(const RefMismatch&, const RefMismatch&) = default;
};

// One name is a directory of the other, so both cannot be refs; with kFailedPrecondition. Full
// names.
struct DirectoryFileConflict {
  std::string wanted;
  std::string blocked_by;

  friend bool operator==(const DirectoryFileConflict&, const DirectoryFileConflict&) = default;
};

// Damage of a ref file; with kDataLoss.
struct RefFileDamage {
  std::string file;   // path inside the repository: "packed-refs", "refs/heads/main"
  uint64_t line = 0;  // from 1; 0 when the whole file is meant
  std::string rule;   // what it breaks

  friend bool operator==(const RefFileDamage&, const RefFileDamage&) = default;
};

absl::Status RefNameError(absl::string_view name, size_t offset, absl::string_view rule);
absl::Status RefMismatchError(const RefMismatch& mismatch);
absl::Status DirectoryFileError(const DirectoryFileConflict& conflict);
absl::Status RefFileDamageError(const RefFileDamage& damage);

// The payload, when `status` carries one of that kind.
std::optional<RefNameFaultText> RefNameFaultDetail(const absl::Status& status);
std::optional<RefMismatch> RefMismatchDetail(const absl::Status& status);
std::optional<DirectoryFileConflict> DirectoryFileDetail(const absl::Status& status);
std::optional<RefFileDamage> RefFileDamageDetail(const absl::Status& status);

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_ERROR_H_
