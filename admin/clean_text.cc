#include "admin/clean_text.h"

namespace repotxn::admin {
namespace {

// Bytes of the UTF-8 sequence at `offset`, 0 when there is none.
size_t SequenceBytes(absl::string_view text, size_t offset) {
  const unsigned char lead = static_cast<unsigned char>(text[offset]);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 && lead <= 0xf4   ? 4
                      : lead >= 0xe0 && lead <= 0xef ? 3
                      : lead >= 0xc2 && lead <= 0xdf ? 2
                                                     : 0;
  if (size == 0 || offset + size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[offset + i]) & 0xc0) != 0x80) return 0;
  }
  // U+0080 to U+009F are control characters too, and terminals obey them.
  if (lead == 0xc2 && static_cast<unsigned char>(text[offset + 1]) < 0xa0) return 0;
  return size;
}

std::string Clean(absl::string_view text, bool keep_lines, size_t bytes_max) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t size = SequenceBytes(text, i);
    const bool is_kept_control = keep_lines && (c == '\n' || c == '\t');
    const bool is_control = (c < 0x20 || c == 0x7f) && !is_kept_control;
    const size_t take = size == 0 ? 1 : size;
    if (out.size() + take > bytes_max) break;
    if (size == 0 || is_control) {
      out.push_back('?');
    } else {
      out.append(text.data() + i, size);
    }
    i += take;
  }
  return out;
}

}  // namespace

std::string CleanLine(absl::string_view text, size_t bytes_max) {
  std::string line = Clean(text, /*keep_lines=*/false, bytes_max);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "unknown reason" : line;
}

std::string CleanText(absl::string_view text) {
  return Clean(text, /*keep_lines=*/true, text.size());
}

}  // namespace repotxn::admin
