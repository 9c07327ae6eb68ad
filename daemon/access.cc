#include "daemon/access.h"

#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace repotxn::daemon {
namespace {

constexpr size_t kTokenBytesMin = 16;

// The secret that a client presented; empty when there is none.
std::string PresentedToken(absl::string_view authorization) {
  const size_t blank = authorization.find(' ');
  if (blank == absl::string_view::npos) return "";
  const absl::string_view scheme = authorization.substr(0, blank);
  const absl::string_view value = absl::StripAsciiWhitespace(authorization.substr(blank));
  if (absl::EqualsIgnoreCase(scheme, "bearer")) return std::string(value.data(), value.size());
  std::string pair;
  if (!absl::EqualsIgnoreCase(scheme, "basic") || !absl::Base64Unescape(value, &pair)) return "";
  const size_t colon = pair.find(':');
  return colon == std::string::npos ? "" : pair.substr(colon + 1);
}

}  // namespace

AccessList AccessList::Open() {
  AccessList list;
  list.is_open_ = true;
  return list;
}

absl::StatusOr<AccessList> AccessList::Parse(absl::string_view text) {
  AccessList list;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words[0][0] == '#') continue;
    const auto fault = [number](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("token file, line ", number, ": ", what));
    };
    if (words[0].size() < kTokenBytesMin) return fault("a token has at least 16 bytes");
    if (words.size() > 3) return fault("more than token, name and right");
    Token token{words[0], words.size() > 1 ? words[1] : "", Right::kWrite};
    // A line of two words may leave out the name.
    const std::string& last = words.back();
    if (words.size() > 1 && (last == "ro" || last == "rw")) {
      token.right = last == "ro" ? Right::kRead : Right::kWrite;
      if (words.size() == 2) token.name.clear();
    } else if (words.size() == 3) {
      return fault("the right is ro or rw");
    }
    for (const Token& other : list.tokens_) {
      if (other.token == token.token) return fault("the token stands there twice");
    }
    list.tokens_.push_back(std::move(token));
  }
  if (list.tokens_.empty()) return absl::InvalidArgumentError("the token file holds no token");
  return list;
}

absl::StatusOr<AccessList> AccessList::Load(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    return absl::NotFoundError("the token file cannot be read, or is empty");
  }
  return Parse(text.str());
}

Caller AccessList::Judge(absl::string_view authorization) const {
  if (is_open_) return Caller{Right::kWrite, ""};
  const std::string presented = PresentedToken(authorization);
  // All tokens are compared, so that the time does not tell which one was near.
  Caller caller;
  for (const Token& token : tokens_) {
    if (EqualInConstantTime(token.token, presented)) caller = Caller{token.right, token.name};
  }
  return caller;
}

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

bool IsLoopback(absl::string_view host) {
  if (host == "::1" || absl::EqualsIgnoreCase(host, "localhost")) return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  if (parts.size() != 4 || parts[0] != "127") return false;
  for (const absl::string_view part : parts) {
    int value = 0;
    // Digits only: a resolver takes what is no plain address for a name.
    if (part.find_first_not_of("0123456789") != absl::string_view::npos) return false;
    if (part.size() > 3 || !absl::SimpleAtoi(part, &value) || value < 0 || value > 255) return false;
  }
  return true;
}

}  // namespace repotxn::daemon
