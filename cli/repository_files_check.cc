// The part of repository_check.h that reads files: locks, temporary files, packs, alternates.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/repository_check.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

using storage::DirectoryEntry;
using storage::FileKind;
using storage::StorePath;

// Deeper than any ref name can be; a tree beyond it is not ours.
constexpr int kDepthMax = 600;

// Why a file of this name has no business in a repository at rest; empty when it may be there.
absl::string_view Leftover(const StorePath& directory, const std::string& name) {
  if (absl::EndsWith(name, ".lock")) return "a lock file that nobody holds";
  if (name == "gc.pid") return "the mark of a running gc";
  const bool in_objects =
      absl::StrContains(absl::StrCat("/", directory.text(), "/"), ".git/objects/");
  if (in_objects && (absl::StartsWith(name, "tmp_") || absl::StartsWith(name, ".tmp-"))) {
    return "a temporary file";
  }
  if (in_objects && absl::EndsWith(name, ".keep"))
    return "a keep file, which holds its pack for ever";
  return "";
}

absl::Status Walk(storage::FileSystem& fs, const StorePath& directory, int depth,
                  Findings& findings) {
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(directory));
  for (const DirectoryEntry& entry : entries) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, directory.Child(entry.name));
    if (entry.kind == FileKind::kDirectory && depth < kDepthMax) {
      REPOTXN_RETURN_IF_ERROR(Walk(fs, path, depth + 1, findings));
      continue;
    }
    findings.Looked("files");
    if (entry.kind != FileKind::kRegular) {
      findings.Add("files", path.text(), "no regular file");
    } else if (const absl::string_view why = Leftover(directory, entry.name); !why.empty()) {
      findings.Add("files", path.text(), why);
    }
  }
  return absl::OkStatus();
}

// A loose ref without content hides the packed value of its name, so it is damage although Git only
// warns.
absl::Status CheckLooseRefs(storage::FileSystem& fs, const StorePath& directory, int depth,
                            Findings& findings) {
  auto entries = fs.List(directory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, directory.Child(entry.name));
    if (entry.kind == FileKind::kDirectory && depth < kDepthMax) {
      REPOTXN_RETURN_IF_ERROR(CheckLooseRefs(fs, path, depth + 1, findings));
    } else if (entry.kind == FileKind::kRegular) {
      REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(path));
      if (info.size == 0) findings.Add("files", path.text(), "a loose ref without content");
    }
  }
  return absl::OkStatus();
}

std::string WithoutSuffix(const std::string& name, absl::string_view suffix) {
  return name.substr(0, name.size() - suffix.size());
}

absl::Status CheckPacks(storage::FileSystem& fs, const StorePath& repository, Findings& findings) {
  const StorePath directory = repository / "objects/pack";
  auto entries = fs.List(directory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(entries.status());
  std::set<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.insert(entry.name);
  for (const std::string& name : names) {
    if (absl::EndsWith(name, ".pack")) {
      findings.Looked("packs");
      for (const absl::string_view suffix : {".idx", ".rev"}) {
        if (names.count(absl::StrCat(WithoutSuffix(name, ".pack"), suffix)) == 0) {
          findings.Add("packs", (directory / name).text(), absl::StrCat("has no ", suffix));
        }
      }
    }
    for (const absl::string_view suffix : {".idx", ".rev", ".bitmap", ".mtimes"}) {
      const bool of_pack = absl::StartsWith(name, "pack-") && absl::EndsWith(name, suffix);
      if (of_pack && names.count(WithoutSuffix(name, suffix) + ".pack") == 0) {
        findings.Add("packs", (directory / name).text(), "has no .pack");
      }
    }
  }
  return absl::OkStatus();
}

// The path that `line` names from the directory `objects`; not OK when it leaves the store.
absl::StatusOr<StorePath> ResolveAlternate(const StorePath& objects, absl::string_view line) {
  StorePath path = objects;
  for (const absl::string_view component : absl::StrSplit(line, '/', absl::SkipEmpty())) {
    if (component == ".") continue;
    if (component != "..") {
      REPOTXN_ASSIGN_OR_RETURN(path, path.Child(component));
      continue;
    }
    if (path.IsRoot()) return absl::InvalidArgumentError("leaves the store");
    path = path.Parent();
  }
  return path;
}

absl::Status CheckAlternates(storage::FileSystem& fs, const StorePath& repository,
                             Findings& findings) {
  const StorePath file = repository / "objects/info/alternates";
  auto content = storage::ReadFile(fs, file, 1 << 20);
  if (absl::IsNotFound(content.status())) return absl::OkStatus();
  REPOTXN_RETURN_IF_ERROR(content.status());
  const absl::string_view text(content->data(), content->size());
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    findings.Looked("alternates");
    if (line[0] == '/') {
      findings.Add("alternates", file.text(), "is absolute, so it breaks when the store moves");
      continue;
    }
    const auto target = ResolveAlternate(repository / "objects", line);
    if (!target.ok()) {
      findings.Add("alternates", file.text(), absl::StrCat("leads out of the store: ", line));
      continue;
    }
    REPOTXN_ASSIGN_OR_RETURN(const bool there, storage::Exists(fs, *target));
    if (!there) findings.Add("alternates", file.text(), absl::StrCat("leads nowhere: ", line));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRepositoryFiles(storage::FileSystem& fs, const txn::RepositoryInfo& row,
                                  Findings& findings) {
  const StorePath repository = txn::layout::RepositoryDirectory(row.id);
  REPOTXN_RETURN_IF_ERROR(Walk(fs, repository, 0, findings));
  REPOTXN_RETURN_IF_ERROR(CheckLooseRefs(fs, repository / "refs", 0, findings));
  REPOTXN_RETURN_IF_ERROR(CheckPacks(fs, repository, findings));
  return CheckAlternates(fs, repository, findings);
}

}  // namespace repotxn::cli
