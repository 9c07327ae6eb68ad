// Text of others, made safe to show to people and terminals.
//
// Pure. Thread-compatible.
#ifndef REPOTXN_ADMIN_CLEAN_TEXT_H_
#define REPOTXN_ADMIN_CLEAN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace repotxn::admin {

// One line of text that is safe to show: control characters and what is no UTF-8 become '?', at
// most `bytes_max` bytes, "unknown reason" when nothing is left.
std::string CleanLine(absl::string_view text, size_t bytes_max = 1000);
// The same for text of several lines; newlines and tabs stay. May be empty.
std::string CleanText(absl::string_view text);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_CLEAN_TEXT_H_
