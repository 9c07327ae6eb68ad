#include "txn/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace repotxn::txn::layout {
namespace {

std::string DirectoryText(const RepositoryId& id) {
  const std::string hex = id.ToHex();
  return absl::StrCat("@id/", hex.substr(0, 2), "/", hex, ".git");
}

}  // namespace

storage::StorePath RepositoryDirectory(const RepositoryId& id) {
  return Repositories() / DirectoryText(id);
}

storage::StorePath PackFile(const RepositoryId& id, absl::string_view name, absl::string_view suffix) {
  return RepositoryDirectory(id) / absl::StrCat("objects/pack/", name, suffix);
}

storage::StorePath AdoptionTrash(const RepositoryId& id) {
  return LostFound() / absl::StrCat("adopt-", id.ToHex());
}

storage::StorePath RepositoryLink(absl::string_view path) {
  return Repositories() / absl::StrCat(path, ".git");
}

std::string RepositoryLinkTarget(absl::string_view path, const RepositoryId& id) {
  std::string target;
  for (auto depth = std::count(path.begin(), path.end(), '/'); depth > 0; --depth) target += "../";
  return target + DirectoryText(id);
}

}  // namespace repotxn::txn::layout
