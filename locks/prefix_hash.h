// Seeded 128-bit hashes of a name's component prefixes, each made from the one before it.
//
// The conflict history stores 80 bits of a hash instead of a name. Two names that share them would make a false
// conflict, never a missed one: with 10^6 records and 10^7 probes a second that is once in some thousand years. The
// seed is random in each process, so nobody can prepare names that meet.
//
// Thread-safe.
#ifndef REPOTXN_LOCKS_PREFIX_HASH_H_
#define REPOTXN_LOCKS_PREFIX_HASH_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "locks/lock_key.h"
#include "storage/id128.h"

namespace repotxn::locks {

struct PrefixHash {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const PrefixHash&, const PrefixHash&) = default;
};

// What a key is hashed from. A history is of one partition, so that the partition needs no part in it.
struct HashedName {
  KeyKind kind = KeyKind::kEntry;  // kinds over one name space hash alike
  RepositoryId id;
  absl::string_view bytes;
};

// Calls `visit` with the hashes of a name, the most general first:
//   entry, children, subtree   every component prefix, the root first, the whole path last; subtree(root) adds the
//                              hash of all refs and that of objects of its repository
//   ref                        every component prefix, the hash of all refs first, the whole name last
//   ref_prefix                 the directories above its last, perhaps partial, component
//   key                        all keys; the key          key_range   all keys
//   link                       its member; its pool; the row
//   the others                 one
// Cost: linear in the bytes of the name.
void ForEachPrefixHash(const HashedName& name, absl::FunctionRef<void(const PrefixHash&)> visit);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_PREFIX_HASH_H_
