// Name of a repository for people: normalised and validated.
//
// One or more components of [A-Za-z0-9._+@~-], none beginning with '.' or '-', none equal to "@id", none ending in
// ".git" or ".lock", separated by one '/'; at most 8 components and 1,000 bytes. So the symlink `a.git`, the directory
// `a/` and `@id` can never collide below repositories/.
//
// Errors: kInvalidArgument with the offset of the offending byte and the rule.
// Thread-compatible.
#ifndef REPOTXN_TXN_REPOSITORY_PATH_H_
#define REPOTXN_TXN_REPOSITORY_PATH_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::txn {

class RepositoryPath {
 public:
  RepositoryPath() = default;

  static absl::StatusOr<RepositoryPath> Parse(absl::string_view text);
  // As it stands in a URL: one leading '/' and one ".git" suffix are stripped first.
  static absl::StatusOr<RepositoryPath> ParseUrl(absl::string_view text);

  const std::string& text() const { return text_; }
  // Every proper ancestor, outermost first: "a/b/c" gives "a", "a/b".
  std::vector<std::string> Ancestors() const;

  friend bool operator==(const RepositoryPath&, const RepositoryPath&) = default;

 private:
  explicit RepositoryPath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_REPOSITORY_PATH_H_
