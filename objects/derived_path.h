// Which files below objects/ Git derives from objects and refs, and in which order they are replaced.
//
//   objects/info/commit-graph                            the whole graph in one file
//   objects/info/commit-graphs/graph-<hex>.graph         one layer of a graph that is a chain
//   objects/info/commit-graphs/commit-graph-chain        names its layers
//   objects/pack/multi-pack-index                        which pack holds which object
//   objects/pack/multi-pack-index-<hex>.bitmap, .rev     belong to the index with that checksum
//
// <hex> is 40 or 64 lower-case digits. They can be made again from nothing, so none of them is ever worth a failed
// read: but a reader that meets a name before the file that it names warns its client.
//
// Thread-safe (pure).
#ifndef REPOTXN_OBJECTS_DERIVED_PATH_H_
#define REPOTXN_OBJECTS_DERIVED_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace repotxn::objects {

inline constexpr absl::string_view kCommitGraph = "objects/info/commit-graph";
inline constexpr absl::string_view kCommitGraphs = "objects/info/commit-graphs";
inline constexpr absl::string_view kCommitGraphChain = "objects/info/commit-graphs/commit-graph-chain";
inline constexpr absl::string_view kMultiPackIndex = "objects/pack/multi-pack-index";

enum class DerivedKind : uint8_t {
  kPart,   // named by another: a layer, a bitmap, a reverse index
  kIndex,  // names others: the chain, the multi-pack-index
  kWhole,  // the graph in one file
};

// Of a path relative to the repository; nothing when it is no derived file.
std::optional<DerivedKind> DerivedKindOf(absl::string_view path);

// Path of the layer with this hash.
std::string LayerPath(absl::string_view hash);
// Hashes of the layers that a chain names, the first first; nothing when it is damaged or empty.
std::optional<std::vector<std::string>> ParseCommitGraphChain(absl::string_view text);

// Place of a replacement or removal among those of one entry, ascending: parts are put before what names them, and
// removed after it.
int DerivedOrder(DerivedKind kind, bool is_removal);

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_DERIVED_PATH_H_
