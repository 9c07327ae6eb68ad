#include "daemon/config_file.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace repotxn::daemon {
namespace {

absl::string_view WithoutBlanks(absl::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == absl::string_view::npos) return absl::string_view();
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool IsKey(absl::string_view text) {
  if (text.empty() || text[0] < 'a' || text[0] > 'z') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
         absl::string_view::npos;
}

bool HasControl(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

absl::Status ConfigError(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("configuration file, line ", line, ": ", what));
}

absl::StatusOr<std::vector<Setting>> ParseConfig(absl::string_view text) {
  if (text.size() > kConfigBytesMax) {
    return absl::InvalidArgumentError("the configuration file is too large");
  }
  std::vector<Setting> settings;
  std::set<std::string> keys;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = WithoutBlanks(absl::StripSuffix(line, "\r"));
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) return ConfigError(number, "not of the form key = value");
    const absl::string_view key = WithoutBlanks(line.substr(0, equals));
    const absl::string_view value = WithoutBlanks(line.substr(equals + 1));
    if (!IsKey(key)) return ConfigError(number, "a key has small letters, digits and '-'");
    if (value.empty()) return ConfigError(number, "the value is missing");
    if (HasControl(value)) return ConfigError(number, "a control character in the value");
    Setting setting{number, std::string(key.data(), key.size()),
                    std::string(value.data(), value.size())};
    if (!keys.insert(setting.key).second) return ConfigError(number, "the key stands there twice");
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace repotxn::daemon
