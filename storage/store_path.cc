#include "storage/store_path.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "storage/check.h"

namespace repotxn::storage {
namespace {

constexpr size_t kComponentBytesMax = 255;
constexpr size_t kPathBytesMax = 4095;

absl::Status Malformed(absl::string_view rule, size_t offset) {
  return absl::InvalidArgumentError(
      absl::StrCat("malformed store path: ", rule, " at offset ", offset));
}

absl::Status CheckComponent(absl::string_view component, size_t offset) {
  if (component.empty()) return Malformed("empty component", offset);
  if (component == "." || component == "..") return Malformed("dot component", offset);
  if (component.size() > kComponentBytesMax) {
    return Malformed("component too long", offset + kComponentBytesMax);
  }
  const size_t nul = component.find('\0');
  if (nul != absl::string_view::npos) return Malformed("NUL byte", offset + nul);
  return absl::OkStatus();
}

// Rules for one or more components; the empty text has one empty component and fails.
absl::Status CheckComponents(absl::string_view path) {
  if (path.size() > kPathBytesMax) return Malformed("path too long", kPathBytesMax);
  size_t begin = 0;
  while (true) {
    const size_t slash = path.find('/', begin);
    const size_t end = slash == absl::string_view::npos ? path.size() : slash;
    absl::Status status = CheckComponent(path.substr(begin, end - begin), begin);
    if (!status.ok() || slash == absl::string_view::npos) return status;
    begin = slash + 1;
  }
}

std::string Joined(const std::string& parent, absl::string_view relative) {
  return parent.empty() ? std::string(relative) : absl::StrCat(parent, "/", relative);
}

}  // namespace

absl::StatusOr<StorePath> StorePath::Parse(absl::string_view path) {
  if (path.empty()) return StorePath();
  if (absl::Status status = CheckComponents(path); !status.ok()) return status;
  return StorePath(std::string(path));
}

StorePath StorePath::Literal(absl::string_view path) {
  absl::StatusOr<StorePath> parsed = Parse(path);
  if (!parsed.ok()) std::abort();
  return *std::move(parsed);
}

absl::StatusOr<StorePath> StorePath::Child(absl::string_view relative) const {
  if (absl::Status status = CheckComponents(relative); !status.ok()) return status;
  std::string joined = Joined(text_, relative);
  if (joined.size() > kPathBytesMax) {
    return Malformed("path too long", kPathBytesMax - (joined.size() - relative.size()));
  }
  return StorePath(std::move(joined));
}

StorePath StorePath::operator/(absl::string_view relative) const {
  REPOTXN_DCHECK(CheckComponents(relative).ok());
  return StorePath(Joined(text_, relative));
}

StorePath StorePath::Parent() const {
  const size_t slash = text_.rfind('/');
  return slash == std::string::npos ? StorePath() : StorePath(text_.substr(0, slash));
}

absl::string_view StorePath::Name() const {
  const size_t slash = text_.rfind('/');
  const absl::string_view text(text_.data(), text_.size());
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

bool StorePath::IsWithin(const StorePath& ancestor) const {
  if (ancestor.IsRoot()) return true;
  if (text_.compare(0, ancestor.text_.size(), ancestor.text_) != 0) return false;
  return text_.size() == ancestor.text_.size() || text_[ancestor.text_.size()] == '/';
}

}  // namespace repotxn::storage
