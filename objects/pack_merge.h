// Which packs of a repository are worth being merged into one: a pure decision from their sizes.
//
// Rule (as `git repack --geometric`, whose documentation explains it): with the packs in the order
// of their numbers of objects, each that stays holds at least `factor` times as many objects as all
// that are smaller together. So there are O(log objects) packs, and an object is copied O(log
// objects) times in its life.
//
// Thread-safe (pure).
#ifndef REPOTXN_OBJECTS_PACK_MERGE_H_
#define REPOTXN_OBJECTS_PACK_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace repotxn::objects {

struct PackSize {
  std::string name;  // "pack-<hex>"
  int64_t objects = 0;
};

// The smallest packs that have to become one so that the rule holds; fewer than two: none. `factor` is at least 1.
std::vector<std::string> PacksToMerge(std::vector<PackSize> packs, int64_t factor);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_PACK_MERGE_H_
