#include "objects/derived_path.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace repotxn::objects {
namespace {

bool IsHash(absl::string_view text) {
  return (text.size() == 40 || text.size() == 64) && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::optional<DerivedKind> DerivedKindOf(absl::string_view path) {
  if (path == kCommitGraph) return DerivedKind::kWhole;
  if (path == kCommitGraphChain || path == kMultiPackIndex) return DerivedKind::kIndex;
  absl::string_view hash = path;
  const bool is_layer =
      absl::ConsumePrefix(&hash, "objects/info/commit-graphs/graph-") && absl::ConsumeSuffix(&hash, ".graph");
  if (is_layer && IsHash(hash)) return DerivedKind::kPart;
  hash = path;
  const bool is_beside = absl::ConsumePrefix(&hash, "objects/pack/multi-pack-index-") &&
                         (absl::ConsumeSuffix(&hash, ".bitmap") || absl::ConsumeSuffix(&hash, ".rev"));
  if (is_beside && IsHash(hash)) return DerivedKind::kPart;
  return std::nullopt;
}

std::string LayerPath(absl::string_view hash) { return absl::StrCat(kCommitGraphs, "/graph-", hash, ".graph"); }

std::optional<std::vector<std::string>> ParseCommitGraphChain(absl::string_view text) {
  std::vector<std::string> hashes = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (hashes.empty() || !std::all_of(hashes.begin(), hashes.end(), IsHash)) return std::nullopt;
  return hashes;
}

int DerivedOrder(DerivedKind kind, bool is_removal) {
  switch (kind) {
    case DerivedKind::kPart: return is_removal ? 4 : 0;
    case DerivedKind::kIndex: return is_removal ? 2 : 1;
    case DerivedKind::kWhole: break;
  }
  // Git reads it in front of the chain: it goes once the chain is there.
  return is_removal ? 3 : 1;
}

}  // namespace repotxn::objects
