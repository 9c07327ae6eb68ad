// A path beneath a store's root, normalised and validated.
//
// Bytes, not text: ref names need not be UTF-8. The empty path is the root itself. Components are separated by one
// '/', none is empty, "." or "..", none holds NUL, none is longer than 255 bytes, the whole at most 4,095. The lexical
// rule is the first line of defence; the file system opens beneath the root without following symlinks as the second.
//
// Errors: Parse() and Child() give kInvalidArgument with the offset of the offending byte; nothing else can fail.
//
// Thread-compatible.
#ifndef REPOTXN_STORAGE_STORE_PATH_H_
#define REPOTXN_STORAGE_STORE_PATH_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::storage {

class StorePath {
 public:
  // The root.
  StorePath() = default;

  // Validates a relative path of any number of components; "" is the root.
  static absl::StatusOr<StorePath> Parse(absl::string_view path);
  // For literals in our own code: aborts when malformed.
  static StorePath Literal(absl::string_view path);

  // This path with `relative` (one or more components) below it.
  absl::StatusOr<StorePath> Child(absl::string_view relative) const;
  // The same for names that our own code made and that are valid by construction (ids, numbers).
  StorePath operator/(absl::string_view relative) const;

  // Path of the directory that holds this one; the root's parent is the root.
  StorePath Parent() const;
  // Last component; empty for the root.
  absl::string_view Name() const;
  bool IsRoot() const { return text_.empty(); }
  // Whether this path is `ancestor` or lies below it.
  bool IsWithin(const StorePath& ancestor) const;
  const std::string& text() const { return text_; }

  friend bool operator==(const StorePath& a, const StorePath& b) { return a.text_ == b.text_; }
  friend bool operator<(const StorePath& a, const StorePath& b) { return a.text_ < b.text_; }
  template <typename H>
  friend H AbslHashValue(H h, const StorePath& path) {
    return H::combine(std::move(h), path.text_);
  }

 private:
  explicit StorePath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_STORE_PATH_H_
