#include "locks/lock_key.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace repotxn::locks {
namespace {

LockKey Make(KeyKind kind, const RepositoryId& id, absl::string_view bytes) {
  LockKey key;
  key.kind = kind;
  key.id = id;
  key.bytes.assign(bytes.data(), bytes.size());
  return key;
}

}  // namespace

LockKey LockKey::Entry(const RepositoryId& id, absl::string_view path) {
  return Make(KeyKind::kEntry, id, path);
}
LockKey LockKey::Children(const RepositoryId& id, absl::string_view path) {
  return Make(KeyKind::kChildren, id, path);
}
LockKey LockKey::Subtree(const RepositoryId& id, absl::string_view path) {
  return Make(KeyKind::kSubtree, id, path);
}
LockKey LockKey::Ref(const RepositoryId& id, absl::string_view name) {
  return Make(KeyKind::kRef, id, name);
}
LockKey LockKey::RefPrefix(const RepositoryId& id, absl::string_view prefix) {
  return Make(KeyKind::kRefPrefix, id, prefix);
}
LockKey LockKey::Objects(const RepositoryId& id) { return Make(KeyKind::kObjects, id, ""); }

LockKey LockKey::Key(wal::PartitionId partition, absl::string_view key) {
  LockKey result = Make(KeyKind::kKey, RepositoryId(), key);
  result.partition = partition;
  return result;
}

LockKey LockKey::KeyRange(wal::PartitionId partition, absl::string_view first,
                          absl::string_view end) {
  LockKey result = Make(KeyKind::kKeyRange, RepositoryId(), first);
  result.partition = partition;
  result.end.assign(end.data(), end.size());
  return result;
}

LockKey LockKey::PathEntry(absl::string_view path) {
  return Make(KeyKind::kPathEntry, RepositoryId(), path);
}
LockKey LockKey::PathChildren(absl::string_view path) {
  return Make(KeyKind::kPathChildren, RepositoryId(), path);
}
LockKey LockKey::PathSubtree(absl::string_view path) {
  return Make(KeyKind::kPathSubtree, RepositoryId(), path);
}
LockKey LockKey::Link(const RepositoryId& member, const RepositoryId& pool) {
  return Make(KeyKind::kLink, member, pool.bytes());
}
LockKey LockKey::LinksOfMember(const RepositoryId& member) {
  return Make(KeyKind::kLinksOfMember, member, "");
}
LockKey LockKey::LinksToPool(const RepositoryId& pool) {
  return Make(KeyKind::kLinksToPool, pool, "");
}
LockKey LockKey::Request(absl::string_view request_id) {
  return Make(KeyKind::kRequest, RepositoryId(), request_id);
}

std::string LockKey::ToString() const {
  const auto escaped = [](const std::string& text) {
    return absl::CHexEscape(absl::string_view(text.data(), text.size()));
  };
  const absl::string_view name = KeyKindName(kind);
  switch (kind) {
    case KeyKind::kKey:
      return absl::StrCat(name, " ", partition, ":", escaped(bytes));
    case KeyKind::kKeyRange:
      return absl::StrCat(name, " ", partition, ":[", escaped(bytes), ",", escaped(end), ")");
    case KeyKind::kLink: {
      const auto pool = RepositoryId::FromBytes(absl::string_view(bytes.data(), bytes.size()));
      return absl::StrCat(name, " ", id.ToHex(), " -> ",
                          pool.ok() ? pool->ToHex() : escaped(bytes));
    }
    case KeyKind::kObjects:
    case KeyKind::kLinksOfMember:
    case KeyKind::kLinksToPool:
      return absl::StrCat(name, " ", id.ToHex());
    case KeyKind::kPathEntry:
    case KeyKind::kPathChildren:
    case KeyKind::kPathSubtree:
    case KeyKind::kRequest:
      return absl::StrCat(name, " ", escaped(bytes));
    default:
      return absl::StrCat(name, " ", id.ToHex(), "/", escaped(bytes));
  }
}

absl::string_view KeyKindName(KeyKind kind) {
  switch (kind) {
    case KeyKind::kEntry:
      return "entry";
    case KeyKind::kChildren:
      return "children";
    case KeyKind::kSubtree:
      return "subtree";
    case KeyKind::kRef:
      return "ref";
    case KeyKind::kRefPrefix:
      return "ref_prefix";
    case KeyKind::kObjects:
      return "objects";
    case KeyKind::kKey:
      return "key";
    case KeyKind::kKeyRange:
      return "key_range";
    case KeyKind::kPathEntry:
      return "path_entry";
    case KeyKind::kPathChildren:
      return "path_children";
    case KeyKind::kPathSubtree:
      return "path_subtree";
    case KeyKind::kLink:
      return "link";
    case KeyKind::kLinksOfMember:
      return "links_of_member";
    case KeyKind::kLinksToPool:
      return "links_to_pool";
    case KeyKind::kRequest:
      return "request";
  }
  return "unknown";
}

}  // namespace repotxn::locks
