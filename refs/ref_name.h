// Names of refs, validated: "HEAD" or a full name below "refs/".
//
// One documented rule decides what a name may be (that of `git check-ref-format` for full names,
// and four more of ours):
//   * it is "HEAD", or begins with "refs/" and has something behind it;
//   * no component is empty, begins with '.' or ends in ".lock";
//   * it holds no "..", no "@{", no byte below 0x20, no 0x7f, none of blank ~ ^ : ? * [ backslash,
//     and does not end in '.'; bytes from 0x80 on are allowed, a name need not be UTF-8;
//   * ours: "refs/heads" and "refs/tags" are no names, a repository always has these directories;
//   * ours: other names without "refs/" (FETCH_HEAD, ORIG_HEAD) are no refs of a store;
//   * ours: a component has at most 255 bytes, because it must be able to become a file;
//   * ours: a name has at most 1,024 bytes, so that the absolute path of its file stays below the
//     kernel's 4,096 also in a snapshot directory, and a lock key stays small.
// `refs/heads/HEAD`, `refs/heads/@` and `refs/heads/-x` follow that rule and are therefore
// accepted, as Git's plumbing does; refusing them is the embedder's policy. Names that differ in
// letter case are different names.
//
// Example:
//   REPOTXN_ASSIGN_OR_RETURN(const RefName name, RefName::Parse("refs/heads/main"));
//
// Value type. Thread-compatible.
#ifndef REPOTXN_REFS_REF_NAME_H_
#define REPOTXN_REFS_REF_NAME_H_

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::refs {

inline constexpr size_t kRefNameBytesMax = 1024;
inline constexpr size_t kRefComponentBytesMax = 255;
inline constexpr absl::string_view kHeadText = "HEAD";

// Where and why a name breaks the rule.
struct RefNameFault {
  size_t offset =
      0;  // of the first offending byte; the length of the name when something is missing
  absl::string_view rule;  // constant text, lower case

  friend bool operator==(const RefNameFault&, const RefNameFault&) = default;
};

// The rule itself; no value when `name` follows it. Allocates nothing.
std::optional<RefNameFault> FindRefNameFault(absl::string_view name);

class RefName {
 public:
  // kInvalidArgument with offset and rule (RefNameFaultDetail of refs/ref_error.h).
  static absl::StatusOr<RefName> Parse(absl::string_view name);
  static RefName Head() { return RefName(std::string(kHeadText.data(), kHeadText.size())); }
  // For literals in our own code: aborts when malformed.
  static RefName Literal(absl::string_view name);

  const std::string& text() const { return text_; }
  absl::string_view view() const { return absl::string_view(text_.data(), text_.size()); }
  // The same text is the path of the loose file inside the repository.
  bool IsHead() const { return view() == kHeadText; }
  // Below refs/heads/.
  bool IsBranch() const;
  // Below refs/tags/.
  bool IsTag() const;
  // "feat/x" for refs/heads/feat/x; for a branch or a tag only, otherwise the whole name. For
  // people, never for lookup.
  absl::string_view ShortText() const;
  // Every proper prefix, at a slash, that could itself be a ref, shortest first: refs/heads/a and
  // refs/heads/a/b for refs/heads/a/b/c. Views into this name.
  std::vector<absl::string_view> ParentNames() const;
  // Whether this name lies strictly below `directory`, component-wise.
  bool IsBelow(absl::string_view directory) const;

  friend bool operator==(const RefName&, const RefName&) = default;
  // By bytes, the order of packed-refs.
  friend std::strong_ordering operator<=>(const RefName& a, const RefName& b) {
    return a.text_.compare(b.text_) <=> 0;
  }
  template <typename H>
  friend H AbslHashValue(H h, const RefName& name) {
    return H::combine(std::move(h), name.text_);
  }

 private:
  explicit RefName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace repotxn::refs

#endif  // REPOTXN_REFS_REF_NAME_H_
