// The ids of all objects that a few object directories hold, for walking and for membership.
//
// ObjectLookup answers single questions about a live repository and looks again before it believes
// a miss. This one is for whole walks: it opens the indexes once and answers from what it found
// then, so that a hundred thousand misses cost as little as as many hits. Alternates are not
// followed: the caller names the directories. Condemned packs and loose objects are left out.
//
// Loose objects are read from their names alone; memory is 40 bytes each, and more than
// kLooseObjectsMax of them are refused.
//
// Thread-compatible: const calls may be concurrent. A Cursor is Externally synchronised.
//
// Lifetime: the file system must outlive it, the set its cursors.
#ifndef REPOTXN_OBJECTS_OBJECT_SET_H_
#define REPOTXN_OBJECTS_OBJECT_SET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "objects/git_child.h"
#include "objects/object_lookup.h"
#include "objects/pack_index.h"
#include "storage/file_system.h"
#include "storage/object_id.h"

namespace repotxn::objects {

// Most loose objects of one set.
inline constexpr size_t kLooseObjectsMax = 4 << 20;

// Calls `visit` with each loose object of the object directory `objects`, until it gives an error. What is gone meanwhile is left
// out.
absl::Status VisitLooseObjects(storage::FileSystem& fs, const storage::StorePath& objects, ObjectFormat format,
                               absl::FunctionRef<absl::Status(const ObjectId&)> visit);

// Loose objects of the object directory `objects`, condemned ones left out, in ascending order.
// kResourceExhausted when they are more than kLooseObjectsMax.
absl::StatusOr<std::vector<ObjectId>> ListLooseObjects(
    storage::FileSystem& fs, const storage::StorePath& objects, ObjectFormat format,
    const ObjectLookup::CondemnedPredicate& is_condemned = nullptr);

class ObjectSet {
 public:
  // Reads the directories (…/objects each; a missing one holds nothing).
  //
  // Errors
  //   kDataLoss           a pack index is damaged; detail "file".
  //   kResourceExhausted  too many loose objects.
  static absl::StatusOr<std::unique_ptr<ObjectSet>> Open(
      storage::FileSystem& fs, const std::vector<storage::StorePath>& directories,
      ObjectFormat format, const ObjectLookup::CondemnedPredicate& is_condemned = nullptr);

  // Whether an object of this id is in one of the directories. The empty tree always is.
  absl::StatusOr<bool> Contains(const ObjectId& oid) const;

  // Number of objects, one that is in several files counted as often.
  int64_t count() const;

  // Walks all ids: those of packs in the order of each index, then loose ones. An id that is in
  // several files comes several times.
  class Cursor {
   public:
    explicit Cursor(const ObjectSet* set);
    // Up to `n` further ids; none at the end.
    absl::StatusOr<std::vector<ObjectId>> Next(int64_t n);

   private:
    const ObjectSet* const set_;
    size_t pack_ = 0;
    int64_t row_ = 0;
    absl::flat_hash_set<ObjectId>::const_iterator loose_;
  };

  // All ids, one hex line each, for the input of a Git child.
  InputSource HexLines() const;

 private:
  ObjectSet() = default;
  absl::Status AddPacks(storage::FileSystem& fs, const storage::StorePath& directory,
                        const ObjectLookup::CondemnedPredicate& is_condemned);

  // Constant after Open().
  ObjectFormat format_ = ObjectFormat::kSha1;
  std::vector<std::unique_ptr<PackIndex>> packs_;
  absl::flat_hash_set<ObjectId> loose_;
};

// Remembers ids seen lately, in bounded memory, so that what comes again and again (trees name the
// same blobs) is looked up once. Forgets at will; never remembers what it was not told.
//
// Thread-compatible.
class RecentIds {
 public:
  RecentIds() : slots_(kSlots) {}
  // False when `oid` was put here and is not forgotten.
  bool Insert(const ObjectId& oid);

 private:
  static constexpr size_t kSlots = 1 << 17;
  std::vector<ObjectId> slots_;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_SET_H_
