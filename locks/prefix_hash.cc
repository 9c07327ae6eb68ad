#include "locks/prefix_hash.h"

#include <xxhash.h>

#include "absl/random/random.h"

namespace repotxn::locks {
namespace {

// Names of different spaces never share a hash by their bytes alone.
enum class NameSpace : uint64_t {
  kFiles,
  kRefs,
  kPaths,
  kObjects,
  kKeys,
  kLinks,
  kMember,
  kPool,
  kRequests,
};

struct Seed {
  uint64_t low;
  uint64_t high;
};

const Seed& ProcessSeed() {
  static const Seed seed = [] {
    absl::BitGen random;
    return Seed{absl::Uniform<uint64_t>(random), absl::Uniform<uint64_t>(random)};
  }();
  return seed;
}

PrefixHash Extend(const PrefixHash& hash, absl::string_view bytes) {
  return PrefixHash{XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash.low),
                    XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash.high)};
}

PrefixHash Start(NameSpace space, const RepositoryId& id) {
  const Seed& seed = ProcessSeed();
  // The odd factors keep the starts of two name spaces apart in both halves.
  const PrefixHash start{seed.low + static_cast<uint64_t>(space) * 0x9E3779B97F4A7C15u,
                         seed.high + static_cast<uint64_t>(space) * 0xC2B2AE3D27D4EB4Fu};
  return Extend(start, id.bytes());
}

void VisitComponents(PrefixHash hash, absl::string_view name,
                     absl::FunctionRef<void(const PrefixHash&)> visit) {
  visit(hash);
  while (!name.empty()) {
    const size_t slash = name.find('/');
    const bool is_last = slash == absl::string_view::npos;
    hash = Extend(hash, name.substr(0, is_last ? name.size() : slash));
    visit(hash);
    name.remove_prefix(is_last ? name.size() : slash + 1);
  }
}

}  // namespace

void ForEachPrefixHash(const HashedName& name,
                       absl::FunctionRef<void(const PrefixHash&)> visit) {
  switch (name.kind) {
    case KeyKind::kEntry:
    case KeyKind::kChildren:
    case KeyKind::kSubtree:
      VisitComponents(Start(NameSpace::kFiles, name.id), name.bytes, visit);
      if (name.kind == KeyKind::kSubtree && name.bytes.empty()) {
        visit(Start(NameSpace::kRefs, name.id));
        visit(Start(NameSpace::kObjects, name.id));
      }
      return;
    case KeyKind::kPathEntry:
    case KeyKind::kPathChildren:
    case KeyKind::kPathSubtree:
      return VisitComponents(Start(NameSpace::kPaths, RepositoryId()), name.bytes, visit);
    case KeyKind::kRef:
      return VisitComponents(Start(NameSpace::kRefs, name.id), name.bytes, visit);
    case KeyKind::kRefPrefix: {
      const size_t slash = name.bytes.rfind('/');
      const bool has_directory = slash != absl::string_view::npos;
      return VisitComponents(Start(NameSpace::kRefs, name.id),
                             name.bytes.substr(0, has_directory ? slash : 0), visit);
    }
    case KeyKind::kObjects:
      return visit(Start(NameSpace::kObjects, name.id));
    case KeyKind::kKey: {
      const PrefixHash all = Start(NameSpace::kKeys, RepositoryId());
      visit(all);
      return visit(Extend(all, name.bytes));
    }
    case KeyKind::kKeyRange:
      return visit(Start(NameSpace::kKeys, RepositoryId()));
    case KeyKind::kLink: {
      const auto pool = RepositoryId::FromBytes(name.bytes);
      visit(Start(NameSpace::kMember, name.id));
      visit(Start(NameSpace::kPool, pool.ok() ? *pool : RepositoryId()));
      return visit(Extend(Start(NameSpace::kLinks, name.id), name.bytes));
    }
    case KeyKind::kLinksOfMember:
      return visit(Start(NameSpace::kMember, name.id));
    case KeyKind::kLinksToPool:
      return visit(Start(NameSpace::kPool, name.id));
    case KeyKind::kRequest:
      return visit(Extend(Start(NameSpace::kRequests, RepositoryId()), name.bytes));
  }
}

}  // namespace repotxn::locks
