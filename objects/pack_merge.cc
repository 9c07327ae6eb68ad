#include "objects/pack_merge.h"

#include <algorithm>
#include <tuple>

namespace repotxn::objects {

std::vector<std::string> PacksToMerge(std::vector<PackSize> packs, int64_t factor) {
  std::sort(packs.begin(), packs.end(), [](const PackSize& a, const PackSize& b) {
    return std::tie(a.objects, a.name) < std::tie(b.objects, b.name);
  });
  // Everything below the largest pack that breaks the rule goes into the merged one.
  size_t merged = 0;
  int64_t below = 0;
  for (size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].objects < factor * below) merged = i + 1;
    below += packs[i].objects;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < merged; ++i) names.push_back(packs[i].name);
  return names;
}

}  // namespace repotxn::objects
