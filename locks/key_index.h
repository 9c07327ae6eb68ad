// Ordered index of the written keys of a partition's key space, which answers "newest write in [first, end)".
//
// A treap whose nodes carry the newest LSN of their subtree, so that a range costs O(log n) however many keys it holds.
// Priorities come from the hash of the key: a newer write of the same key takes the old node's place. Nodes belong to
// the records (RecordLog); the index allocates nothing.
//
// Externally synchronised; const calls may be concurrent.
// Lifetime: a node must outlive its place in the index.
#ifndef REPOTXN_LOCKS_KEY_INDEX_H_
#define REPOTXN_LOCKS_KEY_INDEX_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "wal/lsn.h"

namespace repotxn::locks {

struct KeyNode {
  KeyNode* left = nullptr;
  KeyNode* right = nullptr;
  wal::Lsn lsn;
  wal::Lsn newest;              // of this node and all below it
  const char* key_data = nullptr;
  uint32_t key_size = 0;
  uint32_t priority = 0;
  bool attached = false;        // in the index; false once a newer write has its place

  absl::string_view key() const { return absl::string_view(key_data, key_size); }
};

class KeyIndex {
 public:
  // Puts `node` in; its lsn is above that of any node with the same key, which it replaces.
  void Insert(KeyNode* node);
  // Takes `node` out when it is still in.
  void Erase(KeyNode* node);
  // Newest write of a key k with first <= k < end ("" is no bound), or zero.
  wal::Lsn NewestIn(absl::string_view first, absl::string_view end) const;

  bool empty() const { return root_ == nullptr; }

 private:
  KeyNode* root_ = nullptr;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_KEY_INDEX_H_
