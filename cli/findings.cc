#include "cli/findings.h"

#include <utility>

namespace repotxn::cli {
namespace {

Finding Make(absl::string_view check, absl::string_view subject, absl::string_view text) {
  return Finding{
      .check = std::string(check), .subject = std::string(subject), .text = std::string(text)};
}

}  // namespace

void Findings::Looked(absl::string_view check, int64_t count) {
  looked_[std::string(check)] += count;
}

void Findings::Add(absl::string_view check, absl::string_view subject, absl::string_view text) {
  findings_.push_back(Make(check, subject, text));
}

void Findings::AddNote(absl::string_view check, absl::string_view subject, absl::string_view text) {
  notes_.push_back(Make(check, subject, text));
}

}  // namespace repotxn::cli
