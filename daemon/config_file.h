// The configuration file of repotxnd: `key = value`, one a line.
//
// Format
//   * Lines end with '\n'; a '\r' in front of it is dropped. Blanks around key and value do not count.
//   * Empty lines, and lines whose first character is '#', say nothing. A '#' further on is part of
//     the value: there are no comments behind a value.
//   * A key is [a-z][a-z0-9-]*: a long option of the command line without its dashes. A value has at
//     least one byte and no control character. A key stands there once.
//   * At most kConfigBytesMax bytes.
// What the keys mean, and whether they exist, is not decided here.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_DAEMON_CONFIG_FILE_H_
#define REPOTXN_DAEMON_CONFIG_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace repotxn::daemon {

inline constexpr size_t kConfigBytesMax = 64 << 10;

struct Setting {
  int line = 0;  // from 1
  std::string key;
  std::string value;

  friend bool operator==(const Setting&, const Setting&) = default;
};

// The settings in their order. kInvalidArgument with the number of the line.
absl::StatusOr<std::vector<Setting>> ParseConfig(absl::string_view text);

// kInvalidArgument about a line.
absl::Status ConfigError(int line, absl::string_view what);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_CONFIG_FILE_H_
