// Hash table from (domain, 80 bits of a name's hash) to a 48-bit value, that grows and shrinks a page at a time.
//
// Extendible hashing: a directory of 2^depth pointers, indexed by the top bits of the hash, to pages of 256 slots of 16
// bytes with linear probing inside. A full page splits alone, so that the longest step moves 200 slots, whatever the
// table holds; doubling the directory copies 8 bytes a page. Two buddies that have become nearly empty join again, and
// an empty table holds no memory.
//
// The domains of one name share their place, so that they are found in one cache line.
//
// Slot: low 64 bits of the hash | 16 more bits of it, mixed with the domain | 48 bits of value; value 0 is an empty slot.
// An LSN has 47 bits here: 10^5 commits a second for forty years.
//
// Externally synchronised; const calls may be concurrent.
#ifndef REPOTXN_LOCKS_LSN_TABLE_H_
#define REPOTXN_LOCKS_LSN_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "locks/prefix_hash.h"
#include "wal/lsn.h"

namespace repotxn::locks {

// What a value tells about a name.
enum class Domain : uint8_t {
  kEntryWrite,      // newest change of exactly this path
  kEntryEnsure,     // newest Ensured or Announced of exactly this path
  kChildrenWrite,   // newest write one level below
  kBelowWrite,      // newest write at any level below
  kSubtreeWrite,    // newest exclusive subtree exactly here
  kRefWrite,        // newest write of exactly this ref, and whether it left the ref live: see RefState
  kRefBelow,        // newest write of a ref below, of a ref_prefix here or below
  kRefLive,         // number of refs below whose newest write in the history left them live
  kRefPrefixWrite,  // newest exclusive ref_prefix exactly here
  kRefPrefixBelow,  // newest exclusive ref_prefix here or below
  kObjectsWrite,
  kKeyWrite,
  kAllKeysWrite,    // newest exclusive key_range
  kLinkWrite,       // of a link row, of a member, of a pool
  kRequestWrite,
};
inline constexpr size_t kDomainCount = 15;

class LsnTable {
 public:
  static constexpr uint64_t kValueMax = (uint64_t{1} << 48) - 1;

  LsnTable();
  ~LsnTable();
  LsnTable(const LsnTable&) = delete;
  LsnTable& operator=(const LsnTable&) = delete;

  // The value, 0 when there is none.
  uint64_t Get(Domain domain, const PrefixHash& hash) const;
  wal::Lsn GetLsn(Domain domain, const PrefixHash& hash) const {
    return wal::Lsn(Get(domain, hash));
  }
  // Sets a value in [1, kValueMax].
  void Set(Domain domain, const PrefixHash& hash, uint64_t value);
  void Erase(Domain domain, const PrefixHash& hash);
  // Erases when the value is `value`: the write that is evicted is still the newest.
  bool EraseIfIs(Domain domain, const PrefixHash& hash, uint64_t value);
  // Adds to a count; a count of 0 is absent.
  void Add(Domain domain, const PrefixHash& hash, int64_t delta);

  void Prefetch(const PrefixHash& hash) const;
  // Whether any name has a value in this domain; spares the probes of rare ones.
  bool Has(Domain domain) const { return counts_[static_cast<size_t>(domain)] > 0; }

  size_t size() const { return size_; }
  // Memory held, in bytes.
  size_t bytes() const;

 private:
  struct Slot {
    uint64_t low = 0;
    uint64_t tagged = 0;  // 16 bits of tag above 48 bits of value
  };
  struct Page;

  size_t DirectoryIndex(uint64_t low) const { return depth_ == 0 ? 0 : low >> (64 - depth_); }
  Slot* Find(Domain domain, const PrefixHash& hash) const;
  Page* PageForInsert(uint64_t low);
  void Split(Page* page, uint64_t low);
  void JoinBuddies(uint64_t low);
  void Clear();
  void EraseSlot(Domain domain, const PrefixHash& hash, Slot* slot);
  static void InsertInto(Page* page, const Slot& slot);

  std::vector<Page*> directory_;  // 2^depth_ pointers, or none; a page owns 2^(depth_ - its depth) of them
  int depth_ = 0;
  size_t page_count_ = 0;
  size_t size_ = 0;
  std::array<size_t, kDomainCount> counts_{};
};

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_LSN_TABLE_H_
