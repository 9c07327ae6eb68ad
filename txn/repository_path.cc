#include "txn/repository_path.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace repotxn::txn {
namespace {

constexpr size_t kPathBytesMax = 1000;
constexpr size_t kComponentBytesMax = 200;  // leaves room for ".git" in a directory entry
constexpr int kComponentsMax = 8;

absl::Status Malformed(size_t offset, absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrFormat("malformed repository path: %s (offset %d)", rule, offset));
}

bool IsAllowed(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '@' || c == '~' || c == '-';
}

absl::Status CheckComponent(absl::string_view component, size_t offset) {
  if (component.empty()) return Malformed(offset, "empty component");
  if (component.size() > kComponentBytesMax) return Malformed(offset, "component too long");
  if (component[0] == '.' || component[0] == '-') {
    return Malformed(offset, "component begins with '.' or '-'");
  }
  for (size_t i = 0; i < component.size(); ++i) {
    if (!IsAllowed(component[i])) return Malformed(offset + i, "byte that is not allowed");
  }
  if (component == "@id") return Malformed(offset, "reserved component");
  // Case-insensitively: a file system may fold names, and people's tools do.
  if (absl::EndsWithIgnoreCase(component, ".git") || absl::EndsWithIgnoreCase(component, ".lock")) {
    return Malformed(offset, "component ends in .git or .lock");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RepositoryPath> RepositoryPath::Parse(absl::string_view text) {
  if (text.empty()) return Malformed(0, "empty");
  if (text.size() > kPathBytesMax) return Malformed(kPathBytesMax, "too long");
  int components = 0;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = text.find('/', begin);
    if (end == absl::string_view::npos) end = text.size();
    if (absl::Status s = CheckComponent(text.substr(begin, end - begin), begin); !s.ok()) return s;
    if (++components > kComponentsMax) return Malformed(begin, "too many components");
    begin = end + 1;
  }
  return RepositoryPath(std::string(text.data(), text.size()));
}

absl::StatusOr<RepositoryPath> RepositoryPath::ParseUrl(absl::string_view text) {
  if (absl::StartsWith(text, "/")) text.remove_prefix(1);
  if (absl::EndsWith(text, ".git")) text.remove_suffix(4);
  return Parse(text);
}

std::vector<std::string> RepositoryPath::Ancestors() const {
  std::vector<std::string> ancestors;
  for (size_t at = text_.find('/'); at != std::string::npos; at = text_.find('/', at + 1)) {
    ancestors.push_back(text_.substr(0, at));
  }
  return ancestors;
}

}  // namespace repotxn::txn
