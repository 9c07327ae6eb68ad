// Transactions that have nothing to do with one another never abort one another.
//
// A million random pairs of transactions, made of operations and reads as a user states them. Whether two are disjoint is
// told by their names alone: each operation has zones, a zone is a name of one kind in one repository, and two meet when
// one is the other or lies below it. No lock, rule or hash of locks/ is asked. Of every disjoint pair either may commit
// first.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "locks/conflict_history.h"
#include "tests/locks/scenario.h"

namespace repotxn::locks {
namespace {

constexpr int kDisjointPairs = 1'000'000;

// What a transaction does, and the zones of it.
struct Drawn {
  wal::Manifest manifest;
  DeclaredReads reads;
  std::vector<std::string> zones;
};

bool Meet(const std::string& a, const std::string& b) {
  const std::string& shorter = a.size() < b.size() ? a : b;
  const std::string& longer = a.size() < b.size() ? b : a;
  return absl::StartsWith(longer, shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}
bool AreDisjoint(const Drawn& one, const Drawn& two) {
  for (const std::string& a : one.zones) {
    for (const std::string& b : two.zones) {
      if (Meet(a, b)) return false;
    }
  }
  return true;
}

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed) {}

  Drawn Transaction() {
    Drawn drawn;
    for (uint64_t i = Below(3) + 1; i > 0; --i) Step(&drawn);
    return drawn;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  std::string Name(int depth) {
    std::string name;
    for (int i = 0; i < depth; ++i) absl::StrAppend(&name, i == 0 ? "" : "/", std::string(1, static_cast<char>('a' + Below(6))));
    return name;
  }
  static wal::RefChange Change(const RepositoryId& id, const std::string& name, bool was, bool is) {
    using Kind = wal::LoggedRefValue::Kind;
    wal::RefChange change;
    change.id = id;
    change.name = name;
    change.old_value.kind = was ? Kind::kObject : Kind::kAbsent;
    change.new_value.kind = is ? Kind::kObject : Kind::kAbsent;
    return change;
  }

  void Step(Drawn* drawn) {
    // Repositories without links: who borrows is another story.
    const char letter = static_cast<char>('0' + Below(4));
    const RepositoryId id = ScenarioId(letter);
    const std::string root(1, letter);
    const std::string ref = absl::StrCat("refs/heads/", Name(2)), dir = absl::StrCat("d", Below(5)),
                      file = absl::StrCat(dir, "/f", Below(5)), key = absl::StrCat("k", Below(20));
    auto& operations = drawn->manifest.operations;
    switch (Below(12)) {
      case 0:
      case 1:
        drawn->manifest.note.ref_changes.push_back(Change(id, ref, Below(2) == 0, true));
        drawn->zones.push_back(absl::StrCat(root, "/ref/", ref));
        break;
      case 2:
        drawn->manifest.note.ref_changes.push_back(Change(id, ref, true, false));
        drawn->zones.push_back(absl::StrCat(root, "/ref/", ref));
        break;
      case 3:
        drawn->reads.refs.push_back({id, ref});
        drawn->zones.push_back(absl::StrCat(root, "/ref/", ref));
        break;
      case 4: {
        const std::string below = absl::StrCat("refs/heads/", Name(1), "/");
        drawn->reads.ref_prefixes.push_back({id, below});
        drawn->zones.push_back(absl::StrCat(root, "/ref/", below.substr(0, below.size() - 1)));
        break;
      }
      case 5:
        operations.push_back(wal::PutFile{id, file, 0644, {}});
        drawn->zones.push_back(absl::StrCat(root, "/file/", file));
        break;
      case 6:
        drawn->reads.files.push_back({id, file});
        drawn->zones.push_back(absl::StrCat(root, "/file/", file));
        break;
      case 7:
        drawn->reads.directories.push_back({id, dir});
        drawn->zones.push_back(absl::StrCat(root, "/file/", dir));
        break;
      case 8:
        operations.push_back(wal::PutKey{7, key, "v"});
        drawn->zones.push_back(absl::StrCat("keys/", key));
        break;
      case 9:
        drawn->reads.keys.push_back({7, key});
        drawn->zones.push_back(absl::StrCat("keys/", key));
        break;
      case 10:
        operations.push_back(wal::AddPack{id, absl::StrCat("pack-", Below(1000)), {}, {}, {}});
        drawn->zones.push_back(absl::StrCat(root, "/packs"));
        break;
      default:
        if (Below(4) != 0) {
          drawn->reads.repository_paths.push_back(absl::StrCat("g/", Name(1)));
          drawn->zones.push_back(absl::StrCat("paths/", drawn->reads.repository_paths.back()));
        } else {
          operations.push_back(wal::RemoveRepository{id});
          drawn->zones.push_back(root);
        }
        break;
    }
  }

  std::mt19937_64 random_;
};

Footprint FootprintOf(const Drawn& drawn) {
  // All in one partition, as hard as it gets.
  return Footprint(DeriveLocks(drawn.manifest, drawn.reads, ScenarioFacts()));
}

TEST(DisjointTransactionsTest, NeverAbortOneAnotherInEitherOrder) {
  Drawer drawer(20240607);
  const wal::Lsn begun(1);
  int disjoint = 0, met = 0, aborted = 0;
  while (disjoint < kDisjointPairs) {
    const Drawn one = drawer.Transaction();
    const Drawn two = drawer.Transaction();
    const bool are_disjoint = AreDisjoint(one, two);
    // Pairs that meet are only looked at to see that the check does something.
    if (!are_disjoint && met >= 10'000) continue;
    const Footprint first = FootprintOf(one), second = FootprintOf(two);
    for (const auto& [committed, late] : {std::make_pair(&first, &second), std::make_pair(&second, &first)}) {
      ConflictHistory history(begun);
      history.Record(*committed, begun.Next(), TransactionId());
      const CheckResult result = history.Check(*late, begun);
      if (are_disjoint) {
        ASSERT_TRUE(result.ok()) << ToStatus(result, *late) << "\n"
                                 << one.zones[0] << " ... beside " << two.zones[0];
      } else if (!result.ok()) {
        ++aborted;
      }
    }
    ++(are_disjoint ? disjoint : met);
  }
  EXPECT_GT(met, 1'000);
  EXPECT_GT(aborted, met / 4);
}

}  // namespace
}  // namespace repotxn::locks
