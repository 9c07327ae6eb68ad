// Reads the text of a Git configuration file.
//
// Syntax taken: `[section]`, `[section "subsection"]`, the old `[section.subsection]`, `key = value`
// and bare `key` (true), comments with '#' and ';', quotes, the escapes \\ \" \n \t \b, and a
// backslash at the end of a line. Section and key names compare without regard to case, subsections
// exactly. `include` sections are not followed: files outside the snapshot decide nothing.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_GIT_CONFIG_H_
#define REPOTXN_DAEMON_GIT_CONFIG_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::daemon {

class GitConfig {
 public:
  GitConfig() = default;
  // kInvalidArgument with the number of the line that breaks the syntax.
  static absl::StatusOr<GitConfig> Parse(absl::string_view text);

  // Values of `key` ("receive.denydeletes"; section and name in lower case) in file order.
  std::vector<std::string> All(absl::string_view key) const;
  // The last value as a truth value: true, yes, on, any number but 0, and a bare key; `fallback`
  // when absent or none of Git's words.
  bool Bool(absl::string_view key, bool fallback) const;

 private:
  struct Entry {
    std::string key;
    std::string value;
    bool is_bare = false;
  };
  friend class GitConfigReader;
  std::vector<Entry> entries_;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_GIT_CONFIG_H_
