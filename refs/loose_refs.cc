// Layout of a loose ref.
//
//   file   = hex [space *byte] / "ref:" *space name *space
//   hex    = 40 or 64 digits, by the repository's object format
//   space  = blank / tab / carriage return / newline
//
// What is written: "<hex>\n" or "ref: <name>\n". A file of zeros, an empty one and the zero id are
// damage: they are what a power cut leaves behind a writer that did not sync.
//
// Crash argument. The file is never created in place: it is renamed in from outside the repository,
// so a reader meets the old content or the new one, and redo overwrites it without looking at it.
#include "refs/loose_refs.h"

#include <algorithm>
#include <utility>

#include "refs/ref_error.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

constexpr absl::string_view kSymbolicStart = "ref:";
constexpr absl::string_view kRefsRoot = "refs";

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

bool StartsWith(absl::string_view text, absl::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool IsSpace(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

absl::Status Damaged(absl::string_view path, absl::string_view rule) {
  return RefFileDamageError({Text(path), 0, Text(rule)});
}

absl::StatusOr<RefValue> ParseSymbolic(absl::string_view target, absl::string_view path) {
  while (!target.empty() && IsSpace(target.front())) target.remove_prefix(1);
  while (!target.empty() && IsSpace(target.back())) target.remove_suffix(1);
  auto name = RefName::Parse(target);
  if (!name.ok() || name->IsHead()) return Damaged(path, "malformed target of a symbolic ref");
  return RefValue::Symbolic(std::move(name).value());
}

// Whether a failed read only says that no file is at that place: nothing, or a directory there or a
// file in place of a parent.
bool SaysNoFile(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

// Walks directories below refs/ without recursion.
class LooseRefWalk {
 public:
  LooseRefWalk(storage::FileSystem& fs, const storage::StorePath& repository,
               absl::string_view prefix, ObjectFormat format)
      : fs_(fs), repository_(repository), prefix_(prefix), format_(format) {}

  absl::StatusOr<LooseRefListing> Run() {
    pending_.push_back(StartDirectory());
    const bool begins_at_root = View(pending_.back()) == kRefsRoot;
    if (!begins_at_root && DirectoryFault(View(pending_.back()))) return LooseRefListing();
    bool is_first = true;
    while (!pending_.empty()) {
      const std::string directory = std::move(pending_.back());
      pending_.pop_back();
      const absl::Status status = TakeDirectory(directory);
      const bool vanished = SaysNoFile(status) && !(is_first && begins_at_root);
      if (!status.ok() && !vanished) return status;
      is_first = false;
    }
    std::sort(listing_.refs.begin(), listing_.refs.end(),
              [](const NamedRef& a, const NamedRef& b) { return a.name < b.name; });
    std::sort(listing_.faults.begin(), listing_.faults.end(),
              [](const RefFault& a, const RefFault& b) { return a.name < b.name; });
    return std::move(listing_);
  }

 private:
  // The deepest directory that holds every name with the prefix.
  std::string StartDirectory() const {
    if (!StartsWith(prefix_, "refs/")) return Text(kRefsRoot);
    return Text(prefix_.substr(0, prefix_.rfind('/')));
  }

  // A directory may be named what a ref may not (refs/heads, a trailing dot): judged is a ref in
  // it.
  static std::optional<RefNameFault> DirectoryFault(absl::string_view directory) {
    return FindRefNameFault(View(Text(directory) + "/x"));
  }

  absl::Status TakeDirectory(const std::string& directory) {
    REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath path, repository_.Child(View(directory)));
    REPOTXN_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, fs_.List(path));
    for (const storage::DirectoryEntry& entry : entries) {
      const std::string name = directory + "/" + entry.name;
      if (entry.kind == storage::FileKind::kDirectory) {
        ConsiderDirectory(name);
      } else if (StartsWith(View(name), prefix_)) {
        REPOTXN_RETURN_IF_ERROR(TakeFile(name, entry.kind));
      }
    }
    return absl::OkStatus();
  }

  void ConsiderDirectory(const std::string& name) {
    const std::string inside = name + "/";
    if (!StartsWith(View(inside), prefix_) && !StartsWith(prefix_, View(inside))) return;
    if (const auto fault = DirectoryFault(View(name))) {
      listing_.faults.push_back(
          RefFault{name, RefNameError(View(name), fault->offset, fault->rule)});
      return;
    }
    pending_.push_back(name);
  }

  absl::Status TakeFile(const std::string& text, storage::FileKind kind) {
    auto name = RefName::Parse(View(text));
    if (!name.ok()) {
      listing_.faults.push_back(RefFault{text, name.status()});
      return absl::OkStatus();
    }
    if (kind != storage::FileKind::kRegular) {
      listing_.faults.push_back(RefFault{text, Damaged(View(text), "not a regular file")});
      return absl::OkStatus();
    }
    auto value = ReadLooseRef(fs_, repository_, *name, format_);
    if (absl::IsDataLoss(value.status())) {
      listing_.faults.push_back(RefFault{text, value.status()});
      return absl::OkStatus();
    }
    REPOTXN_RETURN_IF_ERROR(value.status());
    if (value->is_absent()) return absl::OkStatus();  // Vanished since it was listed.
    listing_.refs.push_back(NamedRef{std::move(name).value(), std::move(value).value()});
    return absl::OkStatus();
  }

  storage::FileSystem& fs_;
  const storage::StorePath& repository_;
  const absl::string_view prefix_;
  const ObjectFormat format_;
  std::vector<std::string> pending_;
  LooseRefListing listing_;
};

}  // namespace

absl::StatusOr<RefValue> ParseLooseRef(absl::string_view content, ObjectFormat format,
                                       absl::string_view path) {
  if (content.empty()) return Damaged(path, "empty file");
  if (StartsWith(content, kSymbolicStart)) {
    return ParseSymbolic(content.substr(kSymbolicStart.size()), path);
  }
  const size_t digits = 2 * ObjectIdBytes(format);
  const auto oid = ObjectId::FromHex(content.substr(0, digits), format);
  if (!oid.ok() || (content.size() > digits && !IsSpace(content[digits]))) {
    return Damaged(path, "neither an object id nor a symbolic ref");
  }
  if (oid->IsZero()) return Damaged(path, "zero object id");
  return RefValue::Object(*oid);
}

std::string EncodeLooseRef(const RefValue& value) {
  REPOTXN_DCHECK(!value.is_absent());
  if (value.is_symbolic()) return "ref: " + value.target().text() + "\n";
  return value.oid().ToHex() + "\n";
}

absl::StatusOr<RefValue> ReadLooseRef(storage::FileSystem& fs, const storage::StorePath& repository,
                                      const RefName& name, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::StorePath path, repository.Child(name.view()));
  const auto content = storage::ReadFile(fs, path, kLooseRefBytesMax);
  if (SaysNoFile(content.status())) return RefValue::Absent();
  if (absl::IsOutOfRange(content.status())) return Damaged(name.view(), "file too large");
  REPOTXN_RETURN_IF_ERROR(content.status());
  return ParseLooseRef(View(*content), format, name.view());
}

absl::StatusOr<LooseRefListing> ListLooseRefs(storage::FileSystem& fs,
                                              const storage::StorePath& repository,
                                              absl::string_view prefix, ObjectFormat format) {
  return LooseRefWalk(fs, repository, prefix, format).Run();
}

}  // namespace repotxn::refs
