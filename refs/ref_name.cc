#include "refs/ref_name.h"

#include <cstdint>

#include "refs/ref_error.h"
#include "storage/check.h"

namespace repotxn::refs {
namespace {

constexpr absl::string_view kRefsDirectory = "refs/";
constexpr absl::string_view kBranches = "refs/heads/";
constexpr absl::string_view kTags = "refs/tags/";
constexpr absl::string_view kLockSuffix = ".lock";

bool StartsWith(absl::string_view text, absl::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool EndsWith(absl::string_view text, absl::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// The bytes that Git keeps for its revision syntax and for patterns.
bool IsReservedByte(uint8_t byte) {
  switch (byte) {
    case ' ':
    case '~':
    case '^':
    case ':':
    case '?':
    case '*':
    case '[':
    case '\\':
      return true;
    default:
      return false;
  }
}

std::optional<RefNameFault> FindByteFault(absl::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<uint8_t>(name[i]);
    const char next = i + 1 < name.size() ? name[i + 1] : '\0';
    if (byte < 0x20 || byte == 0x7f) return RefNameFault{i, "control byte"};
    if (IsReservedByte(byte)) return RefNameFault{i, "byte reserved for revisions and patterns"};
    if (byte == '.' && next == '.') return RefNameFault{i, "two dots"};
    if (byte == '@' && next == '{') return RefNameFault{i, "reflog selector @{"};
  }
  return std::nullopt;
}

// `begin` is the offset of `component` in the name.
std::optional<RefNameFault> FindComponentFault(absl::string_view component, size_t begin) {
  if (component.empty()) return RefNameFault{begin, "empty component"};
  if (component.front() == '.') return RefNameFault{begin, "component begins with a dot"};
  if (EndsWith(component, kLockSuffix)) {
    return RefNameFault{begin + component.size() - kLockSuffix.size(), "component ends in .lock"};
  }
  if (component.size() > kRefComponentBytesMax) {
    return RefNameFault{begin + kRefComponentBytesMax, "component longer than 255 bytes"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<RefNameFault> FindRefNameFault(absl::string_view name) {
  if (name == kHeadText) return std::nullopt;
  if (!StartsWith(name, kRefsDirectory)) return RefNameFault{0, "neither HEAD nor below refs/"};
  if (name.size() > kRefNameBytesMax) {
    return RefNameFault{kRefNameBytesMax, "name longer than 1,024 bytes"};
  }
  if (auto fault = FindByteFault(name)) return fault;
  size_t begin = kRefsDirectory.size();
  while (true) {
    const size_t slash = name.find('/', begin);
    const size_t end = slash == absl::string_view::npos ? name.size() : slash;
    if (auto fault = FindComponentFault(name.substr(begin, end - begin), begin)) return fault;
    if (slash == absl::string_view::npos) break;
    begin = slash + 1;
  }
  if (name.back() == '.') return RefNameFault{name.size() - 1, "name ends in a dot"};
  if (name == "refs/heads" || name == "refs/tags") {
    return RefNameFault{kRefsDirectory.size(), "directory that every repository has"};
  }
  return std::nullopt;
}

absl::StatusOr<RefName> RefName::Parse(absl::string_view name) {
  if (const auto fault = FindRefNameFault(name)) {
    return RefNameError(name, fault->offset, fault->rule);
  }
  return RefName(std::string(name.data(), name.size()));
}

RefName RefName::Literal(absl::string_view name) {
  auto parsed = Parse(name);
  REPOTXN_DCHECK(parsed.ok());
  return std::move(parsed).value();
}

bool RefName::IsBranch() const { return StartsWith(view(), kBranches); }
bool RefName::IsTag() const { return StartsWith(view(), kTags); }

absl::string_view RefName::ShortText() const {
  if (IsBranch()) return view().substr(kBranches.size());
  if (IsTag()) return view().substr(kTags.size());
  return view();
}

std::vector<absl::string_view> RefName::ParentNames() const {
  std::vector<absl::string_view> parents;
  if (IsHead()) return parents;
  const absl::string_view name = view();
  for (size_t slash = name.find('/', kRefsDirectory.size()); slash != absl::string_view::npos;
       slash = name.find('/', slash + 1)) {
    const absl::string_view parent = name.substr(0, slash);
    // refs/heads is no name, and neither is a prefix such as "refs/a." that ends in a dot.
    if (!FindRefNameFault(parent)) parents.push_back(parent);
  }
  return parents;
}

bool RefName::IsBelow(absl::string_view directory) const {
  return text_.size() > directory.size() && text_[directory.size()] == '/' &&
         StartsWith(view(), directory);
}

}  // namespace repotxn::refs
