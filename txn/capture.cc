#include "txn/capture.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/check.h"
#include "txn/entry_effects.h"
#include "txn/snapshot_maker.h"

namespace repotxn::txn {
namespace {

using storage::FileKind;

constexpr absl::string_view kForeignUrl = "repotxn/foreign-changes";
constexpr absl::string_view kObjects = "objects/";
constexpr absl::string_view kPacks = "objects/pack/";
constexpr absl::string_view kAlternates = "objects/info/alternates";

bool IsScratch(absl::string_view path) {
  return path == "FETCH_HEAD" || path == "COMMIT_EDITMSG" || path == "TAG_EDITMSG" ||
         path == "NOTES_EDITMSG" || path == "EDIT_DESCRIPTION";
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "aa/bbbb…" of that format.
bool IsLooseObject(absl::string_view name, size_t hex_size) {
  return name.size() == hex_size + 1 && name[2] == '/' && IsHex(name.substr(0, 2)) &&
         IsHex(name.substr(3));
}

class Differ {
 public:
  Differ(const DirectoryState& before, const DirectoryState& after, ObjectFormat format)
      : before_(before), after_(after), hex_size_(format == ObjectFormat::kSha1 ? 40 : 64) {}

  DirectoryDifference Diff() {
    for (const auto& [path, item] : after_) {
      const auto old = before_.find(path);
      JudgePresent(path, old == before_.end() ? nullptr : &old->second, item);
    }
    for (const auto& [path, item] : before_) {
      if (after_.count(path) == 0) JudgeRemoved(path, item);
    }
    TakePacks();
    return std::move(result_);
  }

 private:
  void Report(ForeignKind kind, const std::string& path) {
    result_.foreign.push_back(ForeignChange{RepositoryId(), kind, path});
  }

  // Something that stands there afterwards; `old` is what stood there before, or null.
  void JudgePresent(const std::string& path, const DirectoryItem* old, const DirectoryItem& item) {
    const bool is_directory = item.kind == FileKind::kDirectory;
    if (item.kind == FileKind::kSymlink) return Report(ForeignKind::kSymlink, path);
    if (item.kind == FileKind::kOther) return Report(ForeignKind::kSpecialFile, path);
    if (old != nullptr && old->kind != item.kind) {
      // Where refs live, a file in the place of a directory is a matter of names: a for a/b.
      if (absl::StartsWith(path, "refs/")) return JudgeRefFile(path, is_directory);
      return Report(ForeignKind::kKindChanged, path);
    }
    if (is_directory) {
      if (old == nullptr) JudgeNewDirectory(path);
      return;
    }
    if (old != nullptr && IsUntouched(*old, item)) return;
    if (IsScratch(path)) return;
    // The same inode, still shared with the live repository. Shared with nobody it is a number used again.
    if (old != nullptr && old->inode == item.inode && item.link_count > 1) {
      return Report(ForeignKind::kWrittenInPlace, path);
    }
    JudgeFile(path);
  }

  // A new or replaced file.
  void JudgeFile(const std::string& path) {
    if (absl::EndsWith(path, ".lock") || path == "gc.pid") return Report(ForeignKind::kLockFile, path);
    if (absl::StartsWith(path, "logs/")) return Report(ForeignKind::kReflog, path);
    if (path == "HEAD" || absl::StartsWith(path, "refs/")) return JudgeRefFile(path, false);
    if (path == "packed-refs") {
      result_.packed_refs_touched = true;
      return;
    }
    if (absl::StartsWith(path, kObjects)) return JudgeObjectFile(path);
    if (!IsOrdinary(path)) return Report(ForeignKind::kReservedPath, path);
    result_.put_files.push_back(path);
  }

  void JudgeRefFile(const std::string& path, bool is_directory) {
    if (!is_directory && !refs::RefName::Parse(path).ok()) {
      return Report(ForeignKind::kUnreadableRef, path);
    }
    result_.touched_refs.insert(path);
  }

  void JudgeObjectFile(const std::string& path) {
    if (path == kAlternates) return Report(ForeignKind::kAlternates, path);
    absl::string_view name(path.data(), path.size());
    if (absl::ConsumePrefix(&name, kPacks)) {
      const size_t dot = name.rfind('.');
      const absl::string_view stem = name.substr(0, dot);
      const absl::string_view suffix = dot == absl::string_view::npos ? "" : name.substr(dot);
      const bool is_named = absl::StartsWith(stem, "pack-") && stem.size() == 5 + hex_size_ && IsHex(stem.substr(5));
      if (is_named && (suffix == ".pack" || suffix == ".idx" || suffix == ".rev")) {
        pack_files_[std::string(stem.data(), stem.size())].insert(std::string(suffix.data(), suffix.size()));
        return;
      }
    } else if (absl::ConsumePrefix(&name, kObjects) && IsLooseObject(name, hex_size_)) {
      result_.loose_objects.emplace_back(name.data(), name.size());
      return;
    }
    Report(ForeignKind::kObjectFile, path);
  }

  void JudgeNewDirectory(const std::string& path) {
    // Git makes and leaves empty directories there as it likes; files in them are judged by themselves.
    if (absl::StartsWith(path, "refs/") || absl::StartsWith(path, kObjects) || path == "logs" ||
        absl::StartsWith(path, "logs/")) {
      return;
    }
    if (!IsOrdinary(path)) return Report(ForeignKind::kReservedPath, path);
    result_.made_directories.push_back(path);
  }

  void JudgeRemoved(const std::string& path, const DirectoryItem& item) {
    const bool is_directory = item.kind == FileKind::kDirectory;
    if (path == "refs" || path == "objects") return Report(ForeignKind::kReservedPath, path);
    if (path == kAlternates) return Report(ForeignKind::kAlternates, path);
    if (absl::StartsWith(path, kObjects) || IsScratch(path)) return;
    if (path == "logs" || absl::StartsWith(path, "logs/")) {
      if (!is_directory) Report(ForeignKind::kReflog, path);
      return;
    }
    if (path == "HEAD") return Report(ForeignKind::kUnreadableRef, path);
    if (path == "packed-refs") {
      result_.packed_refs_touched = true;
    } else if (absl::StartsWith(path, "refs/")) {
      if (!is_directory) result_.touched_refs.insert(path);
    } else if (!IsOrdinary(path)) {
      Report(ForeignKind::kReservedPath, path);
    } else {
      (is_directory ? result_.removed_directories : result_.removed_files).push_back(path);
    }
  }

  // A pack is one with its index; what is left of an unfinished one is named.
  void TakePacks() {
    for (const auto& [stem, suffixes] : pack_files_) {
      if (suffixes.count(".pack") > 0 && suffixes.count(".idx") > 0) {
        result_.packs.push_back(stem);
        continue;
      }
      for (const std::string& suffix : suffixes) {
        Report(ForeignKind::kObjectFile, absl::StrCat(kPacks, stem, suffix));
      }
    }
  }

  // Whether a file of a repository may have this path and a snapshot shows it.
  static bool IsOrdinary(const std::string& path) {
    return CheckWritablePath(path).ok() &&
           (path.find('/') != std::string::npos || !IsLeftOutOfSnapshots(path));
  }

  const DirectoryState& before_;
  const DirectoryState& after_;
  const size_t hex_size_;
  std::map<std::string, std::set<std::string>> pack_files_;  // suffixes by stem
  DirectoryDifference result_;
};

}  // namespace

absl::string_view ForeignKindText(ForeignKind kind) {
  switch (kind) {
    case ForeignKind::kSymlink: return "symlink";
    case ForeignKind::kSpecialFile: return "special file";
    case ForeignKind::kLockFile: return "lock file";
    case ForeignKind::kReflog: return "reflog";
    case ForeignKind::kObjectFile: return "object file";
    case ForeignKind::kAlternates: return "alternates";
    case ForeignKind::kWrittenInPlace: return "written in place";
    case ForeignKind::kKindChanged: return "kind changed";
    case ForeignKind::kReservedPath: return "reserved path";
    case ForeignKind::kUnreadableRef: return "unreadable ref";
    case ForeignKind::kConfiguration: return "configuration";
    case ForeignKind::kTooLarge: return "too large";
  }
  return "unknown";
}

// Records, each "<id, hex>\0<kind>\0<path>\0": no path holds NUL.
absl::Status ForeignChangesError(const std::vector<ForeignChange>& changes) {
  REPOTXN_DCHECK(!changes.empty());
  std::string bytes;
  const std::string nul(1, '\0');
  for (const ForeignChange& change : changes) {
    absl::StrAppend(&bytes, change.id.ToHex(), nul, static_cast<int>(change.kind), nul, change.path, nul);
  }
  absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("a child left what cannot be part of a transaction: ", ForeignKindText(changes[0].kind)));
  status.SetPayload(kForeignUrl, absl::Cord(bytes));
  return status;
}

std::vector<ForeignChange> ForeignChangesOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kForeignUrl);
  if (!payload) return {};
  const std::string bytes(*payload);
  const std::vector<std::string> fields = absl::StrSplit(bytes, '\0');
  std::vector<ForeignChange> changes;
  for (size_t i = 0; i + 3 <= fields.size(); i += 3) {
    const auto id = RepositoryId::FromHex(fields[i]);
    int kind = 0;
    if (!id.ok() || !absl::SimpleAtoi(fields[i + 1], &kind)) return {};
    changes.push_back(ForeignChange{*id, static_cast<ForeignKind>(kind), fields[i + 2]});
  }
  return changes;
}

DirectoryDifference DiffDirectories(const DirectoryState& before, const DirectoryState& after,
                                    ObjectFormat format) {
  return Differ(before, after, format).Diff();
}

std::vector<CapturedRef> DiffRefs(const RefValues& before, const RefValues& after) {
  std::vector<CapturedRef> refs;
  const auto add = [&refs](const std::string& name, const refs::RefValue& old, const refs::RefValue& next) {
    if (old.SameAs(next)) return;
    auto parsed = refs::RefName::Parse(name);
    if (parsed.ok()) refs.push_back(CapturedRef{*std::move(parsed), old, next});
  };
  auto old = before.begin();
  for (const auto& [name, value] : after) {
    for (; old != before.end() && old->first < name; ++old) {
      add(old->first, old->second, refs::RefValue::Absent());
    }
    const bool was_there = old != before.end() && old->first == name;
    add(name, was_there ? old->second : refs::RefValue::Absent(), value);
    if (was_there) ++old;
  }
  for (; old != before.end(); ++old) add(old->first, old->second, refs::RefValue::Absent());
  return refs;
}

}  // namespace repotxn::txn
