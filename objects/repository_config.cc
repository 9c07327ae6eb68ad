// The part of git_child.h that judges text: a repository's configuration, a child's standard error.
#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "objects/error_detail.h"
#include "objects/git_child.h"

namespace repotxn::objects {
namespace {

constexpr size_t kErrorLineBytesMax = 200;
constexpr int kEnd = -1;

// Walks a configuration file: sections and keys, case folded; values are read over.
class ConfigScanner {
 public:
  explicit ConfigScanner(absl::string_view text, std::vector<ConfigSetting>* settings = nullptr)
      : text_(text), settings_(settings) {
    // A byte order mark is skipped, as Git does.
    if (absl::StartsWith(text_, "\xef\xbb\xbf")) at_ = 3;
  }

  absl::Status Scan() {
    for (int c = Next(); c != kEnd; c = Next()) {
      bool is_sound = true;
      if (c == '#' || c == ';') {
        SkipLine();
      } else if (c == '[') {
        is_sound = ScanSection();
        if (is_sound && (section_ == "include" || section_ == "includeif")) {
          return Fault(absl::FailedPreconditionError("configuration includes another file"));
        }
      } else if (!IsBlank(c) && c != '\n') {
        is_sound = ScanKey(c);
        if (is_sound && IsRefusedKey()) {
          return Fault(absl::FailedPreconditionError("configuration has a refused setting"));
        }
        is_sound = is_sound && ScanValue();
        if (is_sound && settings_ != nullptr) {
          settings_->push_back({absl::StrCat(section_, ".", key_), value_});
        }
      }
      if (!is_sound) return Fault(absl::InvalidArgumentError("configuration is malformed"));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsBlank(int c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
  }
  static bool IsKeyByte(int c) { return c != kEnd && (absl::ascii_isalnum(Byte(c)) || c == '-'); }
  static unsigned char Byte(int c) { return static_cast<unsigned char>(c); }

  absl::Status Fault(absl::Status status) const {
    return WithDetail(std::move(status), "line", absl::StrCat(line_));
  }

  int Peek() const {
    if (at_ >= text_.size()) return kEnd;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') return '\n';
    return Byte(text_[at_]);
  }
  int Next() {
    // The line of what was returned last, so that a fault names the line it is on.
    if (is_line_over_) ++line_;
    const int c = Peek();
    is_line_over_ = c == '\n';
    if (c == kEnd) return c;
    at_ += text_[at_] == '\r' && c == '\n' ? 2 : 1;
    return c;
  }

  void SkipLine() {
    while (Peek() != kEnd && Next() != '\n') {
    }
  }

  // Behind '['. The subsection is read over; of `[a.b]`, the old form, the part before the dot is
  // the section.
  bool ScanSection() {
    section_.clear();
    int c = Next();
    for (; IsKeyByte(c) || c == '.'; c = Next()) {
      section_.push_back(static_cast<char>(absl::ascii_tolower(Byte(c))));
    }
    if (section_.empty()) return false;
    section_ = section_.substr(0, section_.find('.'));
    if (c == ']') return true;
    while (IsBlank(c)) c = Next();
    if (c != '"') return false;
    for (c = Next(); c != '"'; c = Next()) {
      if (c == '\\') c = Next();
      if (c == kEnd || c == '\n') return false;
    }
    return Next() == ']';
  }

  bool ScanKey(int first) {
    key_.clear();
    if (section_.empty() || !absl::ascii_isalpha(Byte(first))) return false;
    key_.push_back(static_cast<char>(absl::ascii_tolower(Byte(first))));
    while (IsKeyByte(Peek())) key_.push_back(static_cast<char>(absl::ascii_tolower(Byte(Next()))));
    return true;
  }

  // Fills value_: without quotes, with escapes undone, without blanks at both ends; "true" when
  // there is no '='.
  bool ScanValue() {
    value_ = "true";
    while (Peek() == ' ' || Peek() == '\t') Next();
    if (Peek() == kEnd || Peek() == '\n') return true;
    if (Next() != '=') return false;
    value_.clear();
    size_t kept = 0;  // bytes of value_ that are no blanks at its end
    bool is_quoted = false;
    for (int c = Next(); c != kEnd && c != '\n'; c = Next()) {
      if (!is_quoted && (c == '#' || c == ';')) {
        SkipLine();
        break;
      }
      if (c == '"') {
        is_quoted = !is_quoted;
        continue;
      }
      if (!is_quoted && IsBlank(c)) {
        if (!value_.empty()) value_.push_back(' ');
        continue;
      }
      if (c == '\\') {
        c = Next();
        if (c == kEnd || !absl::StrContains("\ntbn\"\\", static_cast<char>(c))) return false;
        if (c == '\n') continue;
        c = c == 't' ? '\t' : c == 'b' ? '\b' : c == 'n' ? '\n' : c;
      }
      value_.push_back(static_cast<char>(c));
      kept = value_.size();
    }
    value_.resize(kept);
    return !is_quoted;
  }

  bool IsRefusedKey() const {
    // Promisor repositories are not supported: a missing object is taken for one to be fetched.
    if (section_ == "extensions") return key_ == "partialclone";
    if (section_ == "remote") return key_ == "promisor" || key_ == "partialclonefilter";
    // Cannot be switched off from outside: any value that is set is run.
    return section_ == "core" && key_ == "alternaterefscommand";
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool is_line_over_ = false;
  std::string section_;
  std::string key_;
  std::string value_;
  std::vector<ConfigSetting>* const settings_;
};

}  // namespace

absl::Status CheckRepositoryConfig(absl::string_view text) { return ConfigScanner(text).Scan(); }

absl::StatusOr<std::vector<ConfigSetting>> ParseRepositoryConfig(absl::string_view text) {
  std::vector<ConfigSetting> settings;
  if (absl::Status scanned = ConfigScanner(text, &settings).Scan(); !scanned.ok()) return scanned;
  return settings;
}

std::string SanitisedErrors(absl::string_view errors, int lines_max,
                            absl::string_view private_prefix) {
  std::string result;
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(errors, '\n', absl::SkipEmpty())) {
    if (lines++ >= lines_max) break;
    std::string text(line.data(), line.size());
    for (size_t at = 0; !private_prefix.empty();) {
      at = text.find(private_prefix.data(), at, private_prefix.size());
      if (at == std::string::npos) break;
      text.erase(at, private_prefix.size());
    }
    for (char& c : text) {
      if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
    }
    absl::StrAppend(&result, text.substr(0, kErrorLineBytesMax), "\n");
  }
  return result;
}

}  // namespace repotxn::objects
