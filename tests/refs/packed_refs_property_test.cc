#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "refs/packed_refs.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::OidBytes;
using ::repotxn::testing::OidOf;
using ::repotxn::testing::SeededRandom;

// Name -> number of the id and of the peeled id, 0 for none.
using Model = std::map<std::string, std::pair<uint64_t, uint64_t>>;

// Goal: any sequence of edits keeps the file equal to a map of names, whatever order the first file
// had. Fails when an edit loses, keeps or reorders a line, or calls a change none.
class PackedRefsEditTest : public ::testing::Test {
 protected:
  static std::string RandomName(SeededRandom& random) {
    static const char* const kDirectories[] = {"refs/heads/", "refs/tags/", "refs/heads/a/",
                                               "refs/x/"};
    return kDirectories[random.Below(4)] +
           std::string(1, static_cast<char>('a' + random.Below(26))) +
           (random.Below(3) == 0 ? "\xff" : "");
  }

  static void ExpectEqual(const PackedRefs& packed, const Model& model) {
    ASSERT_EQ(packed.size(), model.size());
    size_t position = 0;
    for (const auto& [name, numbers] : model) {
      const PackedRefs::Entry entry = packed.At(position++);
      ASSERT_EQ(entry.name, name);
      ASSERT_EQ(entry.oid, OidOf(numbers.first));
      ASSERT_EQ(entry.peeled, numbers.second == 0 ? ObjectId() : OidOf(numbers.second));
      ASSERT_TRUE(packed.Find(name).has_value());
    }
  }

  // The first file: in a random order without a header, or as we write it.
  static std::string FirstFile(SeededRandom& random, Model& model) {
    std::vector<std::string> lines;
    for (uint64_t i = random.Below(30); i > 0; --i) {
      const std::string name = RandomName(random);
      const uint64_t peeled = random.Below(2) * (1000 + i);
      if (!model.emplace(name, std::make_pair(i, peeled)).second) continue;
      std::string line = HexOfNumber(i) + " " + name + "\n";
      if (peeled != 0) line += "^" + HexOfNumber(peeled) + "\n";
      lines.insert(lines.begin() + static_cast<long>(random.Below(lines.size() + 1)), line);
    }
    std::string content = random.Below(2) == 0 ? "" : "# pack-refs with: peeled \n";
    for (const std::string& line : lines) content += line;
    return content;
  }
};

TEST_F(PackedRefsEditTest, RandomEditsAgreeWithAMapOfNames) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    Model model;
    std::string content = FirstFile(random, model);
    for (int round = 0; round < 25; ++round) {
      const auto packed = PackedRefs::Parse(content, ObjectFormat::kSha1);
      ASSERT_OK(packed);
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(*packed, model));

      Model next = model;
      std::map<std::string, wal::PackedRef> set;
      std::map<std::string, bool> remove;
      for (uint64_t i = random.Below(6); i > 0; --i) {
        const std::string name = RandomName(random);
        if (set.count(name) + remove.count(name) > 0) continue;
        if (random.Below(2) == 0) {
          remove[name] = true;
          next.erase(name);
        } else {
          const uint64_t number = 1 + random.Below(5);
          const uint64_t peeled = random.Below(2) * 7;
          set[name] = {name, OidBytes(number), peeled == 0 ? "" : OidBytes(peeled)};
          next[name] = {number, peeled};
        }
      }
      std::vector<wal::PackedRef> set_list;
      std::vector<std::string> remove_list;
      for (const auto& [name, ref] : set) set_list.push_back(ref);
      for (const auto& [name, yes] : remove) remove_list.push_back(name);

      const auto edit = EditPackedRefs(*packed, set_list, remove_list);
      ASSERT_OK(edit);
      ASSERT_EQ(edit->changed, next != model);
      if (edit->changed) content = edit->content;
      model = next;
    }
  }
}

}  // namespace
}  // namespace repotxn::refs
