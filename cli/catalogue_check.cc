#include "cli/catalogue_check.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"

namespace repotxn::cli {
namespace {

using storage::DirectoryEntry;
using storage::FileKind;
using storage::StorePath;

constexpr absl::string_view kCheck = "catalogue";

using txn::layout::Repositories;

// What is on disk below repositories/.
struct Tree {
  std::set<std::string> directories;         // paths of the store
  std::map<std::string, std::string> links;  // path without ".git" -> target
};

absl::StatusOr<std::vector<DirectoryEntry>> ListOrNothing(storage::FileSystem& fs,
                                                          const StorePath& path) {
  auto entries = fs.List(path);
  if (absl::IsNotFound(entries.status())) return std::vector<DirectoryEntry>();
  return entries;
}

absl::Status ReadIdDirectories(storage::FileSystem& fs, Tree& tree, Findings& findings) {
  const StorePath ids = Repositories() / "@id";
  REPOTXN_ASSIGN_OR_RETURN(const auto fans, ListOrNothing(fs, ids));
  for (const DirectoryEntry& fan : fans) {
    if (fan.kind != FileKind::kDirectory) {
      findings.Add(kCheck, (ids / fan.name).text(), "no directory of repositories");
      continue;
    }
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListOrNothing(fs, ids / fan.name));
    for (const DirectoryEntry& entry : entries) {
      if (entry.kind == FileKind::kDirectory) {
        tree.directories.insert((ids / fan.name / entry.name).text());
      } else {
        findings.Add(kCheck, (ids / fan.name / entry.name).text(), "no repository directory");
      }
    }
  }
  return absl::OkStatus();
}

// `group` is the path below repositories/, empty for repositories/ itself. Paths have at most 8
// components (txn/repository_path.h), which bounds the recursion; a deeper directory is a finding.
absl::Status ReadGroup(storage::FileSystem& fs, const std::string& group, int depth, Tree& tree,
                       Findings& findings) {
  const StorePath directory = group.empty() ? Repositories() : Repositories() / group;
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, ListOrNothing(fs, directory));
  for (const DirectoryEntry& entry : entries) {
    if (group.empty() && entry.name == "@id") continue;
    const std::string path = group.empty() ? entry.name : absl::StrCat(group, "/", entry.name);
    if (entry.kind == FileKind::kSymlink && absl::EndsWith(entry.name, ".git")) {
      REPOTXN_ASSIGN_OR_RETURN(tree.links[path.substr(0, path.size() - 4)],
                               fs.ReadLink(directory / entry.name));
    } else if (entry.kind == FileKind::kDirectory && !absl::EndsWith(entry.name, ".git") &&
               depth < 8) {
      REPOTXN_RETURN_IF_ERROR(ReadGroup(fs, path, depth + 1, tree, findings));
    } else {
      findings.Add(kCheck, (directory / entry.name).text(),
                   "neither a group nor the symlink of a repository");
    }
  }
  return absl::OkStatus();
}

// One row against the tree; takes what belongs to it out of the tree.
void MatchRow(const txn::RepositoryInfo& row, Tree& tree, Findings& findings) {
  findings.Looked(kCheck);
  const StorePath directory = txn::layout::RepositoryDirectory(row.id);
  if (tree.directories.erase(directory.text()) == 0) {
    findings.Add(kCheck, row.path, absl::StrCat("has no directory ", directory.text()));
  }
  const auto link = tree.links.find(row.path);
  if (link == tree.links.end()) {
    findings.Add(kCheck, row.path, absl::StrCat("has no symlink repositories/", row.path, ".git"));
    return;
  }
  if (const std::string expected = txn::layout::RepositoryLinkTarget(row.path, row.id);
      link->second != expected) {
    findings.Add(kCheck, row.path,
                 absl::StrCat("its symlink leads to ", link->second, " instead of ", expected));
  }
  tree.links.erase(link);
}

}  // namespace

absl::Status CheckCatalogue(storage::FileSystem& fs, const std::vector<txn::RepositoryInfo>& rows,
                            Findings& findings) {
  Tree tree;
  REPOTXN_RETURN_IF_ERROR(ReadIdDirectories(fs, tree, findings));
  REPOTXN_RETURN_IF_ERROR(ReadGroup(fs, "", 1, tree, findings));
  findings.Looked(kCheck, 0);
  for (const txn::RepositoryInfo& row : rows) MatchRow(row, tree, findings);
  for (const std::string& directory : tree.directories) {
    findings.Add(kCheck, absl::StrCat("repositories/", directory),
                 "a directory without a catalogue row");
  }
  for (const auto& [path, target] : tree.links) {
    findings.Add(kCheck, absl::StrCat("repositories/", path, ".git"),
                 absl::StrCat("a symlink to ", target, " without a catalogue row"));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::cli
