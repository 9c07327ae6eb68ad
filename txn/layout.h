// Where things stand below a store's root.
//
//   STORE  CLEAN  LOCK  log/  payload/  staging/  snapshots/  pending-delete/  lost-found/  meta/
//   repositories/@id/<aa>/<id>.git   the directory of a repository; aa = first two hex digits of its id
//   repositories/<path>.git          relative symlink to it, for people and stock Git
#ifndef REPOTXN_TXN_LAYOUT_H_
#define REPOTXN_TXN_LAYOUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "storage/store_path.h"

namespace repotxn::txn::layout {

inline storage::StorePath StoreFile() { return storage::StorePath::Literal("STORE"); }
inline storage::StorePath CleanMarker() { return storage::StorePath::Literal("CLEAN"); }
inline storage::StorePath LockFile() { return storage::StorePath::Literal("LOCK"); }
inline storage::StorePath Repositories() { return storage::StorePath::Literal("repositories"); }
inline storage::StorePath Log() { return storage::StorePath::Literal("log"); }
inline storage::StorePath Payload() { return storage::StorePath::Literal("payload"); }
inline storage::StorePath Staging() { return storage::StorePath::Literal("staging"); }
inline storage::StorePath Snapshots() { return storage::StorePath::Literal("snapshots"); }
inline storage::StorePath PendingDelete() { return storage::StorePath::Literal("pending-delete"); }
inline storage::StorePath LostFound() { return storage::StorePath::Literal("lost-found"); }
inline storage::StorePath Metadata() { return storage::StorePath::Literal("meta"); }

// repositories/@id
inline storage::StorePath RepositoryDirectories() { return storage::StorePath::Literal("repositories/@id"); }
// repositories/@id/<aa>/<id>.git
storage::StorePath RepositoryDirectory(const RepositoryId& id);
// repositories/@id/<aa>/<id>.git/objects/pack/<name><suffix>
storage::StorePath PackFile(const RepositoryId& id, absl::string_view name, absl::string_view suffix);
// lost-found/adopt-<id>: what the adoption of a repository set aside.
storage::StorePath AdoptionTrash(const RepositoryId& id);
// repositories/<path>.git
storage::StorePath RepositoryLink(absl::string_view path);
// What the symlink at RepositoryLink(path) says: relative to the directory that holds it.
std::string RepositoryLinkTarget(absl::string_view path, const RepositoryId& id);

}  // namespace repotxn::txn::layout

#endif  // REPOTXN_TXN_LAYOUT_H_
