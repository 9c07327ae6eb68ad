#include "objects/alternates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "objects/error_detail.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

// Most links followed in one resolution. Ways multiply where chains meet again.
constexpr int kStepsMax = 1024;

std::vector<std::string> ComponentsOf(absl::string_view path) {
  return absl::StrSplit(path, '/', absl::SkipEmpty());
}

// Takes the C-quoted string that `line` consists of. False when malformed or followed by more.
bool Unquote(absl::string_view line, std::string* out) {
  size_t at = 1;
  while (at < line.size()) {
    const char c = line[at++];
    if (c == '"') return at == line.size();
    if (c != '\\') {
      out->push_back(c);
      continue;
    }
    if (at >= line.size()) return false;
    const char escape = line[at++];
    constexpr absl::string_view kNames = "abfnrtv\\\"";
    constexpr absl::string_view kBytes = "\a\b\f\n\r\t\v\\\"";
    const size_t known = kNames.find(escape);
    if (known != absl::string_view::npos) {
      out->push_back(kBytes[known]);
      continue;
    }
    if (escape < '0' || escape > '3' || line.size() - at < 2) return false;
    int value = escape - '0';
    for (int i = 0; i < 2; ++i) {
      const char digit = line[at++];
      if (digit < '0' || digit > '7') return false;
      value = value * 8 + (digit - '0');
    }
    out->push_back(static_cast<char>(value));
  }
  return false;
}

// Resolves the dots of `path` on top of `base`. False when it leaves the root.
bool Normalise(std::vector<std::string> base, absl::string_view path,
               std::vector<std::string>* out) {
  for (std::string& component : ComponentsOf(path)) {
    if (component == ".") continue;
    if (component != "..") {
      base.push_back(std::move(component));
      continue;
    }
    if (base.empty()) return false;
    base.pop_back();
  }
  *out = std::move(base);
  return true;
}

// Components below the store's root of an absolute path. False when it lies elsewhere.
bool BelowRoot(absl::string_view path, absl::string_view store_root,
               std::vector<std::string>* out) {
  std::vector<std::string> root;
  std::vector<std::string> all;
  if (store_root.empty() || !Normalise({}, store_root, &root) || !Normalise({}, path, &all)) {
    return false;
  }
  if (all.size() <= root.size() || !std::equal(root.begin(), root.end(), all.begin())) return false;
  out->assign(all.begin() + static_cast<std::ptrdiff_t>(root.size()), all.end());
  return true;
}

absl::StatusOr<StorePath> ResolveLine(absl::string_view line, const StorePath& object_directory,
                                      absl::string_view store_root) {
  std::string unquoted;
  if (line[0] == '"') {
    if (!Unquote(line, &unquoted) || unquoted.empty()) {
      return absl::InvalidArgumentError("alternates line is malformed");
    }
    line = unquoted;
  }
  std::vector<std::string> components;
  const bool is_inside = line[0] == '/'
                             ? BelowRoot(line, store_root, &components)
                             : Normalise(ComponentsOf(object_directory.text()), line, &components);
  if (!is_inside || components.empty()) {
    return absl::InvalidArgumentError("alternate lies outside the store");
  }
  const auto target = StorePath::Parse(absl::StrJoin(components, "/"));
  if (!target.ok()) return absl::InvalidArgumentError("alternates line is malformed");
  if (*target == object_directory) {
    return absl::InvalidArgumentError("alternate names its own directory");
  }
  return target;
}

// Walks the links of object directories, depth first.
class ChainWalker {
 public:
  explicit ChainWalker(storage::FileSystem& fs) : fs_(fs) {
    // A tree that is on no disk has no absolute alternates.
    if (auto root = fs.AbsolutePath(StorePath()); root.ok()) store_root_ = *std::move(root);
  }

  // Recursion is bounded by kAlternatesDepthMax.
  absl::Status Walk(const StorePath& directory) {
    path_.push_back(directory);
    depth_ = std::max(depth_, static_cast<int>(path_.size()) - 1);
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<StorePath> targets, TargetsOf(directory));
    for (const StorePath& target : targets) {
      REPOTXN_RETURN_IF_ERROR(Check(target));
      if (std::find(reached_.begin(), reached_.end(), target) == reached_.end()) {
        reached_.push_back(target);
      }
      if (reached_.size() > static_cast<size_t>(kAlternatesCountMax) || ++steps_ > kStepsMax) {
        return Refused("too many alternates", target);
      }
      REPOTXN_RETURN_IF_ERROR(Walk(target));
    }
    path_.pop_back();
    return absl::OkStatus();
  }

  std::vector<StorePath> TakeReached() { return std::move(reached_); }
  int depth() const { return depth_; }

 private:
  static absl::Status Refused(absl::string_view what, const StorePath& path) {
    return WithDetail(absl::FailedPreconditionError(what), "path", path.text());
  }

  absl::StatusOr<std::vector<StorePath>> TargetsOf(const StorePath& directory) {
    const auto text = storage::ReadFile(fs_, directory / "info/alternates", kAlternatesBytesMax);
    if (absl::IsNotFound(text.status())) return std::vector<StorePath>();
    if (!text.ok()) return text.status();
    auto targets = ParseAlternates(*text, directory, store_root_);
    if (!targets.ok()) return WithDetail(targets.status(), "file", directory.text());
    return targets;
  }

  absl::Status Check(const StorePath& target) {
    if (std::find(path_.begin(), path_.end(), target) != path_.end()) {
      return Refused("alternates form a circle", target);
    }
    if (path_.size() > static_cast<size_t>(kAlternatesDepthMax)) {
      return Refused("alternates are too deep", target);
    }
    const auto info = fs_.Stat(target);
    if (absl::IsNotFound(info.status()) || absl::IsFailedPrecondition(info.status())) {
      return Refused("alternate does not exist", target);
    }
    // A symlink in the way leads the kernel elsewhere than the store thinks.
    if (absl::IsInvalidArgument(info.status())) {
      return WithDetail(info.status(), "path", target.text());
    }
    if (!info.ok()) return info.status();
    if (info->kind != storage::FileKind::kDirectory) {
      return Refused("alternate is no directory", target);
    }
    return absl::OkStatus();
  }

  storage::FileSystem& fs_;
  std::string store_root_;
  std::vector<StorePath> path_;     // from the start to the directory being walked
  std::vector<StorePath> reached_;  // in the order in which they were first met
  int depth_ = 0;
  int steps_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<StorePath>> ParseAlternates(absl::string_view text,
                                                       const StorePath& object_directory,
                                                       absl::string_view store_root) {
  std::vector<StorePath> targets;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    auto target = ResolveLine(line, object_directory, store_root);
    if (!target.ok()) {
      return WithDetail(WithDetail(target.status(), "line", absl::StrCat(number)), "path", line);
    }
    targets.push_back(*std::move(target));
  }
  return targets;
}

std::string RelativeAlternate(const StorePath& object_directory, const StorePath& target) {
  const std::vector<std::string> from = ComponentsOf(object_directory.text());
  const std::vector<std::string> to = ComponentsOf(target.text());
  size_t common = 0;
  while (common < from.size() && common < to.size() && from[common] == to[common]) ++common;
  std::vector<std::string> components(from.size() - common, "..");
  components.insert(components.end(), to.begin() + static_cast<std::ptrdiff_t>(common), to.end());
  std::string line = absl::StrJoin(components, "/");
  // What a line begins with must not give it another meaning.
  if (!line.empty() && (line[0] == '#' || line[0] == '"')) line.insert(0, "./");
  return line;
}

std::string FormatAlternates(const StorePath& object_directory,
                             const std::vector<StorePath>& targets) {
  std::string text;
  for (const StorePath& target : targets) {
    absl::StrAppend(&text, RelativeAlternate(object_directory, target), "\n");
  }
  return text;
}

std::string AbsoluteAlternateLine(absl::string_view path) {
  const bool must_quote = path.find('\n') != absl::string_view::npos ||
                          absl::StartsWith(path, "\"") || absl::StartsWith(path, "#");
  if (!must_quote) return absl::StrCat(path, "\n");
  std::string quoted = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') {
      quoted.push_back('\\');
      quoted.push_back(c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "\"\n";
}

absl::StatusOr<std::vector<StorePath>> ResolveChain(storage::FileSystem& fs,
                                                    const StorePath& object_directory) {
  ChainWalker walker(fs);
  REPOTXN_RETURN_IF_ERROR(walker.Walk(object_directory));
  return walker.TakeReached();
}

absl::StatusOr<int> ChainDepth(storage::FileSystem& fs, const StorePath& object_directory) {
  ChainWalker walker(fs);
  REPOTXN_RETURN_IF_ERROR(walker.Walk(object_directory));
  return walker.depth();
}

absl::Status CheckNewAlternate(storage::FileSystem& fs, const StorePath& object_directory,
                               const StorePath& target, int borrower_depth) {
  if (object_directory == target) {
    return WithDetail(absl::InvalidArgumentError("alternate names its own directory"), "path",
                      target.text());
  }
  const auto info = fs.Stat(target);
  if (absl::IsNotFound(info.status())) {
    return WithDetail(absl::FailedPreconditionError("alternate does not exist"), "path",
                      target.text());
  }
  if (!info.ok()) return info.status();
  if (info->kind != storage::FileKind::kDirectory) {
    return WithDetail(absl::FailedPreconditionError("alternate is no directory"), "path",
                      target.text());
  }
  ChainWalker walker(fs);
  REPOTXN_RETURN_IF_ERROR(walker.Walk(target));
  const std::vector<StorePath> reached = walker.TakeReached();
  if (std::find(reached.begin(), reached.end(), object_directory) != reached.end()) {
    return WithDetail(absl::FailedPreconditionError("alternates form a circle"), "path",
                      target.text());
  }
  if (borrower_depth + 1 + walker.depth() > kAlternatesDepthMax) {
    return WithDetail(absl::FailedPreconditionError("alternates are too deep"), "path",
                      target.text());
  }
  return absl::OkStatus();
}

}  // namespace repotxn::objects
