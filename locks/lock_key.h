// Names what a transaction read or wrote, precisely enough to decide whether two transactions meet.
//
// One value type for every kind of thing. `bytes` and `end` mean, by kind:
//
//   kind            id          bytes                 end
//   kEntry          repository  path; "" is the root
//   kChildren       repository  path of a directory
//   kSubtree        repository  path
//   kRef            repository  full ref name
//   kRefPrefix      repository  any string prefix
//   kObjects        repository                        removal of objects, for the query NewestWrite()
//   kKey            (partition) key
//   kKeyRange       (partition) first key             first key behind; "" is no bound
//   kPathEntry, kPathChildren, kPathSubtree           the same as the first three over repository paths
//   kLink           member      id bytes of the pool
//   kLinksOfMember  member                            every link row of this member
//   kLinksToPool    pool                              every link row to this pool
//   kRequest                    request id
//
// From kPathEntry on a key belongs to partition 0; kKey and kKeyRange name their partition; the others belong to the
// partition of their repository.
//
// Which keys meet: the same key; entry(p) and subtree(q) when p is q or below q; children(d) and an entry or subtree
// one level below d; two subtrees when one holds the other; ref(n) and ref_prefix(p) when n begins with p;
// subtree(root) and every ref and objects key of its repository; a key and a range that holds it; a link row and the
// rows of its member or pool.
//
// Paths are normalised: no leading, trailing or doubled '/'.
//
// Thread-compatible.
#ifndef REPOTXN_LOCKS_LOCK_KEY_H_
#define REPOTXN_LOCKS_LOCK_KEY_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/id128.h"
#include "wal/operation.h"

namespace repotxn::locks {

enum class KeyKind : uint8_t {
  kEntry,
  kChildren,
  kSubtree,
  kRef,
  kRefPrefix,
  kObjects,
  kKey,
  kKeyRange,
  kPathEntry,
  kPathChildren,
  kPathSubtree,
  kLink,
  kLinksOfMember,
  kLinksToPool,
  kRequest,
};

enum class LockMode : uint8_t { kShared, kExclusive };

struct LockKey {
  KeyKind kind = KeyKind::kEntry;
  wal::PartitionId partition = wal::kNameSpacePartition;  // of kKey and kKeyRange, else 0
  RepositoryId id;
  std::string bytes;
  std::string end;

  static LockKey Root(const RepositoryId& id) { return Entry(id, ""); }
  static LockKey Entry(const RepositoryId& id, absl::string_view path);
  static LockKey Children(const RepositoryId& id, absl::string_view path);
  static LockKey Subtree(const RepositoryId& id, absl::string_view path);
  static LockKey Ref(const RepositoryId& id, absl::string_view name);
  static LockKey RefPrefix(const RepositoryId& id, absl::string_view prefix);
  static LockKey Objects(const RepositoryId& id);
  static LockKey Key(wal::PartitionId partition, absl::string_view key);
  // Keys k with first <= k < end; an empty `end` is no bound.
  static LockKey KeyRange(wal::PartitionId partition, absl::string_view first,
                          absl::string_view end);
  static LockKey PathEntry(absl::string_view path);
  static LockKey PathChildren(absl::string_view path);
  static LockKey PathSubtree(absl::string_view path);
  static LockKey Link(const RepositoryId& member, const RepositoryId& pool);
  static LockKey LinksOfMember(const RepositoryId& member);
  static LockKey LinksToPool(const RepositoryId& pool);
  static LockKey Request(absl::string_view request_id);

  // Whether the key belongs to a repository, and so to that repository's partition.
  bool IsOfRepository() const { return kind <= KeyKind::kObjects; }
  bool IsOfNameSpace() const { return kind >= KeyKind::kPathEntry; }

  // For people: kind, id and the bytes escaped.
  std::string ToString() const;

  friend bool operator==(const LockKey&, const LockKey&) = default;
  friend auto operator<=>(const LockKey&, const LockKey&) = default;
};

// Lower-case name of a kind: "entry", "ref_prefix".
absl::string_view KeyKindName(KeyKind kind);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_LOCK_KEY_H_
