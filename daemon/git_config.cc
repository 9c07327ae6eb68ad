#include "daemon/git_config.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {

// One pass over the text, byte by byte: a value may go on behind a newline.
class GitConfigReader {
 public:
  explicit GitConfigReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<GitConfig> Read() {
    if (absl::StartsWith(text_, "\xef\xbb\xbf")) at_ = 3;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (c == '#' || c == ';') {
        SkipLine();
      } else if (c == '[') {
        REPOTXN_RETURN_IF_ERROR(ReadSection());
      } else {
        REPOTXN_RETURN_IF_ERROR(ReadEntry());
      }
    }
    return std::move(config_);
  }

 private:
  absl::Status Fault() const {
    return absl::InvalidArgumentError(absl::StrCat("malformed configuration in line ", line_));
  }
  // 0 at the end.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipLine() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void SkipBlanks() {
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\r') ++at_;
  }

  absl::Status ReadSection() {
    ++at_;
    section_.clear();
    while (absl::ascii_isalnum(static_cast<unsigned char>(Peek())) || Peek() == '-' ||
           Peek() == '.') {
      section_.push_back(absl::ascii_tolower(static_cast<unsigned char>(text_[at_++])));
    }
    if (section_.empty()) return Fault();
    SkipBlanks();
    if (Peek() == '"') {
      ++at_;
      section_.push_back('.');
      while (Peek() != '"') {
        if (Peek() == '\\') ++at_;
        if (at_ >= text_.size() || text_[at_] == '\n') return Fault();
        section_.push_back(text_[at_++]);
      }
      ++at_;
    }
    if (Peek() != ']') return Fault();
    ++at_;
    return absl::OkStatus();
  }

  absl::Status ReadEntry() {
    if (section_.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(Peek()))) {
      return Fault();
    }
    std::string name;
    while (absl::ascii_isalnum(static_cast<unsigned char>(Peek())) || Peek() == '-') {
      name.push_back(absl::ascii_tolower(static_cast<unsigned char>(text_[at_++])));
    }
    GitConfig::Entry entry{absl::StrCat(section_, ".", name), "", false};
    SkipBlanks();
    if (Peek() == '=') {
      ++at_;
      SkipBlanks();
      REPOTXN_RETURN_IF_ERROR(ReadValue(&entry.value));
    } else if (at_ >= text_.size() || Peek() == '\n' || Peek() == '#' || Peek() == ';') {
      entry.is_bare = true;
      SkipLine();
    } else {
      return Fault();
    }
    config_.entries_.push_back(std::move(entry));
    return absl::OkStatus();
  }

  absl::Status ReadEscape(std::string* value) {
    ++at_;
    if (Peek() == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    const char c = Peek();
    switch (c) {
      case '\n': ++line_; break;  // goes on in the next line
      case 'n': value->push_back('\n'); break;
      case 't': value->push_back('\t'); break;
      case 'b': value->push_back('\b'); break;
      case '\\':
      case '"': value->push_back(c); break;
      default: return Fault();
    }
    ++at_;
    return absl::OkStatus();
  }

  // Up to the end of the line; blanks at its end count only inside quotes.
  absl::Status ReadValue(std::string* value) {
    bool is_quoted = false;
    size_t keep = 0;
    while (at_ < text_.size() && (text_[at_] != '\n')) {
      const char c = text_[at_];
      if (c == '\\') {
        REPOTXN_RETURN_IF_ERROR(ReadEscape(value));
        keep = value->size();
      } else if (c == '"') {
        is_quoted = !is_quoted;
        keep = value->size();
        ++at_;
      } else if (!is_quoted && (c == '#' || c == ';')) {
        SkipLine();
      } else {
        value->push_back(c);
        ++at_;
        if (is_quoted || !absl::ascii_isspace(static_cast<unsigned char>(c))) keep = value->size();
      }
    }
    if (is_quoted) return Fault();
    value->resize(keep);
    return absl::OkStatus();
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::string section_;  // with its subsection: "remote.origin"
  GitConfig config_;
};

absl::StatusOr<GitConfig> GitConfig::Parse(absl::string_view text) {
  return GitConfigReader(text).Read();
}

std::vector<std::string> GitConfig::All(absl::string_view key) const {
  std::vector<std::string> values;
  for (const Entry& entry : entries_) {
    if (key == entry.key) values.push_back(entry.is_bare ? "true" : entry.value);
  }
  return values;
}

bool GitConfig::Bool(absl::string_view key, bool fallback) const {
  const std::vector<std::string> values = All(key);
  if (values.empty()) return fallback;
  const std::string& value = values.back();
  for (const char* word : {"true", "yes", "on"}) {
    if (absl::EqualsIgnoreCase(value, word)) return true;
  }
  for (const char* word : {"false", "no", "off", ""}) {
    if (absl::EqualsIgnoreCase(value, word)) return false;
  }
  int64_t number = 0;
  return absl::SimpleAtoi(value, &number) ? number != 0 : fallback;
}

}  // namespace repotxn::daemon
