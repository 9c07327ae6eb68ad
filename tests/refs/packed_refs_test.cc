#include "refs/packed_refs.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "refs/ref_error.h"
#include "tests/refs/ref_test_util.h"
#include "tests/support/status_matchers.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::HexOfNumber;
using ::repotxn::testing::IsOk;
using ::repotxn::testing::OidBytes;
using ::repotxn::testing::OidOf;
using ::repotxn::testing::StatusIs;
using ::testing::ElementsAre;

constexpr char kHeader[] = "# pack-refs with: peeled fully-peeled sorted \n";

std::string Line(uint64_t number, const std::string& name) {
  return HexOfNumber(number) + " " + name + "\n";
}
std::string Peeled(uint64_t number) { return "^" + HexOfNumber(number) + "\n"; }

std::vector<std::string> NamesOf(const PackedRefs& packed) {
  std::vector<std::string> names;
  for (size_t i = 0; i < packed.size(); ++i) names.emplace_back(packed.At(i).name);
  return names;
}

// Goal: exactly the files that Git writes and trusts are read, damage is named by line, and an edit
// changes the named lines and nothing else. A file read leniently, or a byte changed that was not
// named, fails.
class PackedRefsTest : public ::testing::Test {
 protected:
  static PackedRefs Parsed(const std::string& content) {
    auto packed = PackedRefs::Parse(content, ObjectFormat::kSha1);
    EXPECT_THAT(packed, IsOk());
    return packed.ok() ? std::move(packed).value() : PackedRefs();
  }
  static void ExpectDamage(const std::string& content, uint64_t line, const std::string& rule) {
    const auto packed = PackedRefs::Parse(content, ObjectFormat::kSha1);
    ASSERT_THAT(packed, StatusIs(absl::StatusCode::kDataLoss)) << content;
    const auto detail = RefFileDamageDetail(packed.status());
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(*detail, (RefFileDamage{"packed-refs", line, rule})) << content;
  }
  static PackedRefsEdit Edited(const PackedRefs& packed, const std::vector<wal::PackedRef>& set,
                               const std::vector<std::string>& remove) {
    auto edit = EditPackedRefs(packed, set, remove);
    EXPECT_THAT(edit, IsOk());
    return edit.ok() ? std::move(edit).value() : PackedRefsEdit();
  }
};

TEST_F(PackedRefsTest, ReadsRefsWithTheirPeeledIds) {
  const PackedRefs packed =
      Parsed(kHeader + Line(1, "refs/heads/a") + Line(2, "refs/tags/t") + Peeled(3));

  ASSERT_EQ(packed.size(), 2u);
  EXPECT_EQ(packed.peeling(), Peeling::kFully);
  EXPECT_EQ(packed.At(0).oid, OidOf(1));
  EXPECT_TRUE(packed.At(0).peeled.empty());
  ASSERT_TRUE(packed.Find("refs/tags/t").has_value());
  EXPECT_EQ(packed.Find("refs/tags/t")->oid, OidOf(2));
  EXPECT_EQ(packed.Find("refs/tags/t")->peeled, OidOf(3));
}

TEST_F(PackedRefsTest, FindsNothingThatIsNotThere) {
  const PackedRefs packed = Parsed(kHeader + Line(1, "refs/heads/b") + Line(2, "refs/heads/bb"));

  for (const char* name :
       {"refs/heads/a", "refs/heads/ba", "refs/heads/bbb", "refs/heads/", "", "z"}) {
    EXPECT_FALSE(packed.Find(name).has_value()) << name;
  }
}

TEST_F(PackedRefsTest, ReadsWhatGitReadsWithoutComplaint) {
  const std::string refs = Line(1, "refs/heads/a") + Line(2, "refs/heads/b");

  EXPECT_TRUE(Parsed("").empty());
  EXPECT_TRUE(Parsed(kHeader).empty());
  EXPECT_EQ(Parsed(refs).peeling(), Peeling::kUnknown);
  EXPECT_EQ(Parsed("# pack-refs with: sorted\n" + refs).size(), 2u);
  EXPECT_EQ(Parsed("# pack-refs with: peeled \n" + refs).peeling(), Peeling::kTags);
  EXPECT_EQ(Parsed("# pack-refs with: peeled fully-peeled sorted\n" + refs).peeling(),
            Peeling::kFully);
  EXPECT_EQ(Parsed("# pack-refs with: novel sorted other \n" + refs).size(), 2u);
  EXPECT_EQ(Parsed("# pack-refs with:\n" + refs).size(), 2u);
}

TEST_F(PackedRefsTest, SortsAFileThatDoesNotClaimToBeSorted) {
  const PackedRefs packed = Parsed("# pack-refs with: peeled \n" + Line(3, "refs/tags/t") +
                                   Peeled(4) + Line(1, "refs/heads/b") + Line(2, "refs/heads/a"));

  EXPECT_THAT(NamesOf(packed), ElementsAre("refs/heads/a", "refs/heads/b", "refs/tags/t"));
  EXPECT_EQ(packed.Find("refs/tags/t")->peeled, OidOf(4));
  EXPECT_EQ(packed.Find("refs/heads/a")->oid, OidOf(2));
}

TEST_F(PackedRefsTest, RefusesDamageAndNamesTheLine) {
  const std::string a = Line(1, "refs/heads/a");
  const std::string b = Line(2, "refs/heads/b");

  ExpectDamage(kHeader + a + a, 3, "second line of a ref");
  ExpectDamage(b + a + b, 3, "second line of a ref");
  ExpectDamage(kHeader + b + a, 3, "unsorted although the header says sorted");
  ExpectDamage(kHeader + a + b.substr(0, b.size() - 1), 3, "last line has no newline");
  ExpectDamage("# pack-refs with: sorted", 1, "last line has no newline");
  ExpectDamage(kHeader + a + "\n", 3, "empty line");
  ExpectDamage(kHeader + Peeled(1) + a, 2, "peeled line without a ref");
  ExpectDamage(kHeader + a + Peeled(1) + Peeled(2), 4, "peeled line without a ref");
  ExpectDamage(kHeader + a + "^abc\n", 3, "malformed object id");
  ExpectDamage(kHeader + a + kHeader, 3, "comment that is not the header");
  ExpectDamage("# other\n" + a, 1, "comment that is not the header");
  ExpectDamage(kHeader + std::string("refs/heads/a\n"), 2, "line that is no ref");
  ExpectDamage(kHeader + HexOfNumber(1) + "\trefs/heads/a\n", 2, "line that is no ref");
  ExpectDamage(kHeader + HexOfNumber(1) + " \n", 2, "line that is no ref");
  ExpectDamage(kHeader + std::string(40, 'g') + " refs/heads/a\n", 2, "malformed object id");
  ExpectDamage(kHeader + std::string(40, '0') + " refs/heads/a\n", 2, "malformed object id");
  ExpectDamage(kHeader + Line(1, "refs/heads/a..b"), 2, "malformed ref name");
  ExpectDamage(kHeader + Line(1, "refs/heads/a.lock"), 2, "malformed ref name");
  ExpectDamage(kHeader + Line(1, "HEAD"), 2, "malformed ref name");
  ExpectDamage(kHeader + Line(1, "refs/heads/a\r"), 2, "malformed ref name");
  ExpectDamage(kHeader + Line(1, " refs/heads/a"), 2, "malformed ref name");
}

TEST_F(PackedRefsTest, ReadsIdsOfTheRepositorysFormatOnly) {
  const std::string wide = std::string(64, 'b') + " refs/heads/a\n";

  const auto packed = PackedRefs::Parse(kHeader + wide, ObjectFormat::kSha256);
  ASSERT_THAT(packed, IsOk());
  EXPECT_EQ(packed->At(0).oid.ToHex(), std::string(64, 'b'));
  EXPECT_THAT(PackedRefs::Parse(kHeader + wide, ObjectFormat::kSha1),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(PackedRefs::Parse(kHeader + Line(1, "refs/heads/a"), ObjectFormat::kSha256),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(PackedRefsTest, PrefixRangeTakesAnyBytes) {
  const PackedRefs packed = Parsed(kHeader + Line(1, "refs/heads/a") + Line(2, "refs/heads/ab/c") +
                                   Line(3, "refs/heads/b") + Line(4, "refs/tags/a"));
  const auto count = [&](absl::string_view prefix) {
    const PackedRefs::Range range = packed.PrefixRange(prefix);
    return std::make_pair(range.begin, range.end);
  };

  EXPECT_EQ(count(""), std::make_pair(size_t{0}, size_t{4}));
  EXPECT_EQ(count("refs/heads/"), std::make_pair(size_t{0}, size_t{3}));
  EXPECT_EQ(count("refs/heads/a"), std::make_pair(size_t{0}, size_t{2}));
  EXPECT_EQ(count("refs/heads/ab"), std::make_pair(size_t{1}, size_t{2}));
  EXPECT_EQ(count("refs/heads/aa"), std::make_pair(size_t{1}, size_t{1}));
  EXPECT_EQ(count("refs/tags/a"), std::make_pair(size_t{3}, size_t{4}));
  EXPECT_EQ(count("zz"), std::make_pair(size_t{4}, size_t{4}));
}

TEST_F(PackedRefsTest, WritesTheFirstFileAsGitDoes) {
  const PackedRefsEdit edit =
      Edited(PackedRefs(),
             {{"refs/heads/a", OidBytes(1), ""}, {"refs/tags/t", OidBytes(2), OidBytes(3)}}, {});

  EXPECT_TRUE(edit.changed);
  EXPECT_EQ(edit.content, kHeader + Line(1, "refs/heads/a") + Line(2, "refs/tags/t") + Peeled(3));
}

TEST_F(PackedRefsTest, SetsAndRemovesNamedLinesAndKeepsTheRest) {
  const PackedRefs packed =
      Parsed(kHeader + Line(1, "refs/heads/a") + Line(2, "refs/heads/b") + Peeled(12) +
             Line(3, "refs/heads/c") + Peeled(13) + Line(4, "refs/heads/d"));

  const PackedRefsEdit edit = Edited(packed,
                                     {{"refs/heads/Z", OidBytes(20), ""},
                                      {"refs/heads/b", OidBytes(22), ""},
                                      {"refs/heads/ca", OidBytes(23), OidBytes(33)},
                                      {"refs/heads/e", OidBytes(24), ""}},
                                     {"refs/heads/c", "refs/heads/x"});

  EXPECT_TRUE(edit.changed);
  EXPECT_EQ(edit.content, kHeader + Line(20, "refs/heads/Z") + Line(1, "refs/heads/a") +
                              Line(22, "refs/heads/b") + Line(23, "refs/heads/ca") + Peeled(33) +
                              Line(4, "refs/heads/d") + Line(24, "refs/heads/e"));
}

TEST_F(PackedRefsTest, EditThatChangesNothingSaysSo) {
  const PackedRefs packed =
      Parsed(kHeader + Line(1, "refs/heads/a") + Line(2, "refs/tags/t") + Peeled(3));

  EXPECT_FALSE(Edited(packed, {}, {}).changed);
  EXPECT_FALSE(Edited(packed, {}, {"refs/heads/b", "refs/heads/c"}).changed);
  EXPECT_FALSE(Edited(packed, {{"refs/tags/t", OidBytes(2), OidBytes(3)}}, {}).changed);
  EXPECT_FALSE(Edited(PackedRefs(), {}, {"refs/heads/a"}).changed);
  // The peeled id is part of the line.
  EXPECT_TRUE(Edited(packed, {{"refs/tags/t", OidBytes(2), ""}}, {}).changed);
  EXPECT_TRUE(Edited(packed, {{"refs/tags/t", OidBytes(2), OidBytes(4)}}, {}).changed);
}

TEST_F(PackedRefsTest, RemovingTheLastRefLeavesTheHeader) {
  const PackedRefs packed = Parsed(kHeader + Line(1, "refs/tags/t") + Peeled(2));

  EXPECT_EQ(Edited(packed, {}, {"refs/tags/t"}).content, kHeader);
}

TEST_F(PackedRefsTest, EditOfAFileThatVouchesForLessDoesNotVouchForMore) {
  const PackedRefs tags = Parsed("# pack-refs with: peeled \n" + Line(1, "refs/heads/b"));
  const PackedRefs unknown = Parsed(Line(1, "refs/heads/b"));
  const std::vector<wal::PackedRef> set = {{"refs/heads/a", OidBytes(2), ""}};

  EXPECT_EQ(Edited(tags, set, {}).content, "# pack-refs with: peeled sorted \n" +
                                               Line(2, "refs/heads/a") + Line(1, "refs/heads/b"));
  EXPECT_EQ(Edited(unknown, set, {}).content,
            "# pack-refs with: sorted \n" + Line(2, "refs/heads/a") + Line(1, "refs/heads/b"));
}

TEST_F(PackedRefsTest, EditSortsAnUnsortedFile) {
  const PackedRefs packed = Parsed(Line(3, "refs/tags/t") + Peeled(4) + Line(1, "refs/heads/b") +
                                   Line(2, "refs/heads/a"));

  EXPECT_EQ(
      Edited(packed, {}, {"refs/heads/b"}).content,
      "# pack-refs with: sorted \n" + Line(2, "refs/heads/a") + Line(3, "refs/tags/t") + Peeled(4));
}

TEST_F(PackedRefsTest, RefusesAMalformedEdit) {
  const PackedRefs packed;
  const wal::PackedRef a = {"refs/heads/a", OidBytes(1), ""};
  const wal::PackedRef b = {"refs/heads/b", OidBytes(1), ""};
  const auto expect_refused = [&](const std::vector<wal::PackedRef>& set,
                                  const std::vector<std::string>& remove) {
    EXPECT_THAT(EditPackedRefs(packed, set, remove), StatusIs(absl::StatusCode::kInvalidArgument));
  };

  expect_refused({b, a}, {});
  expect_refused({a, a}, {});
  expect_refused({}, {"refs/heads/b", "refs/heads/a"});
  expect_refused({}, {"refs/heads/a", "refs/heads/a"});
  expect_refused({a, b}, {"refs/heads/b"});
  expect_refused({{"HEAD", OidBytes(1), ""}}, {});
  expect_refused({{"refs/heads/a b", OidBytes(1), ""}}, {});
  expect_refused({}, {"refs/heads/a\nb"});
  expect_refused({{"refs/heads/a", "short", ""}}, {});
  expect_refused({{"refs/heads/a", std::string(32, '\x11'), ""}}, {});
  expect_refused({{"refs/heads/a", std::string(20, '\0'), ""}}, {});
  expect_refused({{"refs/heads/a", OidBytes(1), std::string(20, '\0')}}, {});
}

TEST_F(PackedRefsTest, ManyRefsCostTheirBytesAndAFewMore) {
  constexpr uint64_t kRefs = 100'000;
  std::vector<wal::PackedRef> set;
  for (uint64_t i = 0; i < kRefs; ++i) {
    set.push_back({"refs/heads/b" + std::to_string(1'000'000 + i), OidBytes(i + 1), ""});
  }

  const PackedRefs packed = Parsed(Edited(PackedRefs(), set, {}).content);

  EXPECT_EQ(packed.size(), kRefs);
  EXPECT_LE(packed.MemoryBytes(), packed.content().size() + 8 * kRefs);
  EXPECT_EQ(packed.Find("refs/heads/b1050000")->oid, OidOf(50'001));
}

}  // namespace
}  // namespace repotxn::refs
