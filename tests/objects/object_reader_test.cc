#include "objects/object_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/error_detail.h"
#include "tests/objects/pack_builder.h"
#include "tests/objects/text_file.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::BigEndian;
using repotxn::testing::Deflated;
using repotxn::testing::IsOk;
using repotxn::testing::LooseText;
using repotxn::testing::PackBuilder;
using repotxn::testing::SmallDelta;
using repotxn::testing::StatusIs;
using repotxn::testing::TextFile;

constexpr ObjectFormat kFormat = ObjectFormat::kSha1;

ObjectId SomeId(char fill) { return *ObjectId::FromBytes(std::string(20, fill)); }

absl::StatusOr<std::shared_ptr<const Pack>> Opened(const std::string& pack,
                                                   const std::string& index) {
  auto parsed = PackIndex::FromFile(std::make_unique<TextFile>(index), "p.idx", kFormat);
  if (!parsed.ok()) return parsed.status();
  auto file = PackFile::FromFile(std::make_unique<TextFile>(pack), "p.pack", kFormat);
  if (!file.ok()) return file.status();
  return Pack::FromParts(*std::move(parsed), *std::move(file));
}

// Goal: entries, deltas and their chains are decoded as the format says, and damage never passes or
// crashes. Method: packs built entry by entry, with damage placed exactly.
class PackTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Pack> Open(const PackBuilder& builder) {
    auto pack = Opened(builder.Pack(), builder.Index());
    EXPECT_THAT(pack, IsOk());
    return *pack;
  }
  static int64_t OffsetOf(const Pack& pack, const ObjectId& oid) {
    return pack.index().Find(oid)->value();
  }
};

TEST_F(PackTest, ReadsObjectsOfEveryTypeAndSize) {
  PackBuilder builder(kFormat);
  std::vector<std::pair<ObjectId, ObjectContent>> all;
  for (const size_t size : {0u, 1u, 15u, 16u, 2'047u, 2'048u, 300'000u}) {
    for (const ObjectType type :
         {ObjectType::kCommit, ObjectType::kTree, ObjectType::kBlob, ObjectType::kTag}) {
      const std::string content(size, static_cast<char>('a' + size % 26));
      all.emplace_back(builder.Add(type, content), ObjectContent{type, content});
    }
  }
  const auto pack = Open(builder);

  for (const auto& [oid, expected] : all) {
    ASSERT_OK_AND_ASSIGN(const ObjectInfo info, pack->Info(OffsetOf(*pack, oid)));
    EXPECT_EQ(info.type, expected.type);
    EXPECT_EQ(info.size, static_cast<int64_t>(expected.content.size()));
    ASSERT_OK_AND_ASSIGN(const ObjectContent object, pack->Read(OffsetOf(*pack, oid)));
    EXPECT_EQ(object.type, expected.type);
    EXPECT_EQ(object.content, expected.content);
  }
}

TEST_F(PackTest, FollowsChainsOfBothKindsOfDelta) {
  PackBuilder builder(kFormat);
  const std::string base = "the quick brown fox jumps over the lazy dog";
  const int64_t base_offset = builder.NextOffset();
  builder.Add(ObjectType::kTag, base);
  const int64_t first_offset = builder.NextOffset();
  builder.AddOffsetDelta(SomeId(1), base_offset, SmallDelta(base.size(), 4, 15, " sits"));
  builder.AddIdDelta(SomeId(2), SomeId(1), SmallDelta(20, 6, 14, "!"));
  const auto pack = Open(builder);

  ASSERT_OK_AND_ASSIGN(const ObjectContent first, pack->Read(first_offset));
  EXPECT_EQ(first.content, "quick brown fox sits");
  ASSERT_OK_AND_ASSIGN(const ObjectContent second, pack->Read(OffsetOf(*pack, SomeId(2))));
  EXPECT_EQ(second.type, ObjectType::kTag);
  EXPECT_EQ(second.content, "brown fox sits!");
  ASSERT_OK_AND_ASSIGN(const ObjectInfo info, pack->Info(OffsetOf(*pack, SomeId(2))));
  EXPECT_EQ(info, (ObjectInfo{ObjectType::kTag, 15}));
}

TEST_F(PackTest, RefusesCirclesAndMissingBasesOfDeltas) {
  PackBuilder builder(kFormat);
  builder.AddIdDelta(SomeId(1), SomeId(2), SmallDelta(10, 0, 5, ""));
  builder.AddIdDelta(SomeId(2), SomeId(1), SmallDelta(10, 0, 5, ""));
  builder.AddIdDelta(SomeId(3), SomeId(9), SmallDelta(10, 0, 5, ""));
  const auto pack = Open(builder);

  EXPECT_THAT(pack->Info(OffsetOf(*pack, SomeId(1))), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(pack->Read(OffsetOf(*pack, SomeId(2))), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(pack->Read(OffsetOf(*pack, SomeId(3))), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(PackTest, RefusesContentBeyondTheBound) {
  PackBuilder builder(kFormat);
  const ObjectId big = builder.Add(ObjectType::kBlob, std::string(1'001, 'x'));
  const auto pack = Open(builder);

  EXPECT_THAT(pack->Read(OffsetOf(*pack, big), 1'000), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(pack->Read(OffsetOf(*pack, big), 1'001), IsOk());
}

TEST_F(PackTest, RefusesAnIndexOfAnotherPack) {
  PackBuilder one(kFormat);
  one.Add(ObjectType::kBlob, "1");
  PackBuilder two = one;
  two.Add(ObjectType::kBlob, "2");

  EXPECT_THAT(Opened(one.Pack(), two.Index()), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(PackTest, SurvivesEveryFlippedBitAndEveryTruncation) {
  PackBuilder builder(kFormat);
  const std::string base(200, 'b');
  const int64_t base_offset = builder.NextOffset();
  const ObjectId whole = builder.Add(ObjectType::kCommit, base);
  builder.AddOffsetDelta(SomeId(1), base_offset, SmallDelta(base.size(), 3, 100, "tail"));
  const std::string sound = builder.Pack();
  const std::string index = builder.Index();
  const std::string content = std::string(100, 'b') + "tail";
  int refused = 0;

  const auto probe = [&](const std::string& bytes) {
    const auto pack = Opened(bytes, index);
    if (!pack.ok()) {
      ++refused;
      return;
    }
    for (const ObjectId& oid : {whole, SomeId(1)}) {
      const auto read = (*pack)->Read(OffsetOf(**pack, oid));
      // zlib's own checksum makes a damaged content impossible; only the type may lie.
      if (read.ok()) {
        EXPECT_TRUE(read->content == base || read->content == content);
      } else {
        ++refused;
      }
      (void)(*pack)->Info(OffsetOf(**pack, oid)).ok();
    }
  };
  for (size_t byte = 0; byte < sound.size() - 20; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = sound;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      probe(damaged);
    }
  }
  for (size_t size = 0; size < sound.size() - 20; ++size) probe(sound.substr(0, size));

  EXPECT_GT(refused, 300);
}

// Goal: headers and deltas at the edges of their formats.
TEST(PackEntryHeaderTest, ParsesSizesAndDistances) {
  const auto parse = [](const std::string& bytes) { return ParsePackEntryHeader(bytes, kFormat); };
  ASSERT_OK_AND_ASSIGN(const auto small, parse("\x3f"));
  EXPECT_EQ(small.kind, PackEntryKind::kBlob);
  EXPECT_EQ(small.size, 15);
  ASSERT_OK_AND_ASSIGN(const auto large, parse("\x9f\x81\x01"));
  EXPECT_EQ(large.size, 15 + (1 << 4) + (1 << 11));
  ASSERT_OK_AND_ASSIGN(const auto delta, parse(std::string("\x63\x80\x00", 3)));
  EXPECT_EQ(delta.distance, 128);
  EXPECT_EQ(delta.header_bytes, 3);

  EXPECT_THAT(parse(""), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x9f"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x0f"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x5f"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse(std::string("\x63\x00", 2)), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x63" + std::string(12, '\xff')), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x9f" + std::string(12, '\xff')), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse("\x73 too short"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(PackHeaderTest, CountsEntriesAndRefusesOtherFiles) {
  EXPECT_EQ(*PackHeaderCount("PACK" + BigEndian(2, 4) + BigEndian(0, 4)), 0);
  EXPECT_EQ(*PackHeaderCount("PACK" + BigEndian(3, 4) + BigEndian(70'000, 4)), 70'000);
  EXPECT_THAT(PackHeaderCount("PACK" + BigEndian(4, 4) + BigEndian(1, 4)),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(PackHeaderCount("PACX" + BigEndian(2, 4) + BigEndian(1, 4)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PackHeaderCount("PACK"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DeltaTest, CopiesSixtyFourKibibytesWhenTheLengthIsZero) {
  const std::string base(0x10000, 'z');
  const std::string delta = std::string("\x80\x80\x04\x80\x80\x04\x80", 7);

  ASSERT_OK_AND_ASSIGN(const std::string result, ApplyDelta(base, delta, 1 << 20));
  EXPECT_EQ(result, base);
  EXPECT_THAT(ApplyDelta(base, delta, 0xffff), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(DeltaTest, RefusesWhatLeavesBaseOrResult) {
  const std::string base = "0123456789";
  const auto apply = [&base](const std::string& delta) { return ApplyDelta(base, delta, 100); };

  EXPECT_EQ(*apply(SmallDelta(10, 2, 8, "x")), "23456789x");
  EXPECT_THAT(apply(SmallDelta(11, 2, 8, "x")), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply(SmallDelta(10, 3, 8, "x")), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply(std::string("\x0a\x03\x00", 3)), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply("\x0a\x03\x03xx"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply("\x0a\x03\x02xx"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply("\x0a\x01\x02xx"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply("\x0a\x05\x91"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(apply(""), StatusIs(absl::StatusCode::kDataLoss));
}

// Goal: loose objects are read whole and strictly.
TEST(LooseObjectTest, ReadsHeaderAndContent) {
  const std::string file = Deflated(LooseText(ObjectType::kTag, std::string(5'000, 't')));

  ASSERT_OK_AND_ASSIGN(const ObjectInfo info, ParseLooseInfo(file));
  EXPECT_EQ(info, (ObjectInfo{ObjectType::kTag, 5'000}));
  ASSERT_OK_AND_ASSIGN(const ObjectContent object, ParseLooseObject(file, 5'000));
  EXPECT_EQ(object.content, std::string(5'000, 't'));
  EXPECT_THAT(ParseLooseObject(file, 4'999), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(LooseObjectTest, RefusesEveryDamage) {
  const std::string text = LooseText(ObjectType::kBlob, "content");
  const std::string file = Deflated(text);
  const auto parse = [](const std::string& bytes) { return ParseLooseObject(bytes, 100); };
  const auto deflated = [&parse](std::string raw) { return parse(Deflated(raw)); };
  using std::string_literals::operator""s;

  EXPECT_THAT(parse(file), IsOk());
  EXPECT_THAT(parse(""), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse(file + "x"), StatusIs(absl::StatusCode::kDataLoss));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(parse(file.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
  EXPECT_THAT(deflated("blob 6\0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("blob 8\0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("blob -7\0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("blob \0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("blob7\0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("slab 7\0content"s), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(deflated("blob 99999999999999999999\0content"s),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ObjectTextTest, ParsesTagTargetsAndCommitParents) {
  const std::string a(40, 'a');
  const std::string b(40, 'b');

  ASSERT_OK_AND_ASSIGN(const TagTarget target,
                       ParseTagTarget("object " + a + "\ntype tree\ntag x\n", kFormat));
  EXPECT_EQ(target.oid.ToHex(), a);
  EXPECT_EQ(target.type, ObjectType::kTree);
  ASSERT_OK_AND_ASSIGN(const auto parents, ParseCommitParents("tree " + a + "\nparent " + b +
                                                                  "\nparent " + a + "\nauthor x\n",
                                                              kFormat));
  EXPECT_EQ(parents, (std::vector<ObjectId>{*ObjectId::FromHex(b), *ObjectId::FromHex(a)}));
  // A message that begins like a header is none.
  ASSERT_OK_AND_ASSIGN(
      const auto root,
      ParseCommitParents("tree " + a + "\nauthor x\n\nparent " + b + "\n", kFormat));
  EXPECT_TRUE(root.empty());

  EXPECT_THAT(ParseTagTarget("object " + a + "\n", kFormat), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseTagTarget("object " + a, kFormat), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseTagTarget("object aa", kFormat), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseCommitParents("author x\n", kFormat), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseCommitParents("tree " + a + "\nparent b\n", kFormat),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace repotxn::objects
