#include "wal/manifest_codec.h"

#include <string>
#include <vector>

#include "tests/support/seeded_random.h"
#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

PayloadFile Payload(uint32_t index, int64_t size) {
  return PayloadFile{index, size, std::string(32, static_cast<char>('A' + index))};
}

// A manifest with every operation and every kind of note.
Manifest FullManifest() {
  const auto r = IdOf<RepositoryId>(11);
  const auto q = IdOf<RepositoryId>(12);
  const std::string oid(20, '\x01');
  const std::string wide(32, '\xff');
  Manifest m;
  m.transaction_id = IdOf<TransactionId>(1);
  m.request_id = "request";
  m.created_at = absl::FromUnixNanos(1'700'000'000'123'456'789);
  m.operations = {
      CreateRepository{r, "a/b", 5, ObjectFormat::kSha256, "refs/heads/main"},
      CreateRepository{q, "d", 6, ObjectFormat::kSha1, "refs/heads/x", "in/d.git", {"logs", "gc.pid"}},
      RemoveRepository{q, "d/e", {7, ObjectFormat::kSha256, {r}, 99}, true},
      RemoveRepository{r, "f", {7, ObjectFormat::kSha1, {}, 99}, true, "out/f.git"},
      SetPath{r, "c", "b", {8, ObjectFormat::kSha1, {q}}},
      EnsureGroup{"a"},
      RemoveGroup{"z"},
      PutFile{r, "description", 0644, FileContent{std::string("x\0y", 3), {}}},
      PutFile{r, "empty", 0755, FileContent{}},
      PutFile{r, "large", 0644, FileContent{"", Payload(3, 1 << 20)}},
      RemoveFile{r, "config"},
      MakeDirectory{r, "hooks"},
      RemoveDirectory{r, "hooks"},
      EditPackedRefs{r, {{"refs/heads/a", oid, ""}, {"refs/tags/t", oid, wide}}, {"refs/heads/b"}},
      AddPack{r, "pack-00", Payload(0, 10), Payload(1, 20), Payload(2, 0)},
      RemovePack{r, "pack-01"},
      ReplaceDerived{r, "objects/info/commit-graph", false, FileContent{"", Payload(4, 9)}},
      ReplaceDerived{r, "objects/pack/multi-pack-index", true, FileContent{}},
      LinkAlternate{r, q, {q}},
      UnlinkAlternate{r, q},
      PutKey{0, "k", "v"},
      DeleteKey{9, ""},
  };
  using Kind = LoggedRefValue::Kind;
  m.note.ref_changes = {
      {r, "HEAD", {}, {Kind::kSymbolic, "refs/heads/main", ""}},
      {r, "refs/tags/t", {Kind::kObject, oid, ""}, {Kind::kObject, wide, oid}},
      {r, "refs/heads/gone", {Kind::kObject, oid, ""}, {}},
  };
  m.note.refs_packed = {{r, {{"refs/heads/a", oid, ""}}}};
  m.note.objects_removed = {{q, {oid, wide}}};
  m.note.actor = "someone";
  m.note.origin = "192.0.2.1";
  m.note.push_options = {"", "ci.skip"};
  m.note.fences_request = true;
  return m;
}

// Goal: one manifest, one encoding, and nothing else accepted. Fails when an operation or field is
// forgotten on either side, or when damage or a newer form passes.
TEST(ManifestCodecTest, KeepsEveryOperationAndNote) {
  const Manifest manifest = FullManifest();

  const std::string bytes = EncodeManifest(manifest);

  ASSERT_OK_AND_ASSIGN(const Manifest decoded, DecodeManifest(View(bytes)));
  EXPECT_EQ(decoded, manifest);
  EXPECT_EQ(EncodeManifest(decoded), bytes);
}

TEST(ManifestCodecTest, CoversEveryAlternativeOfOperation) {
  std::vector<bool> seen(std::variant_size_v<Operation>, false);
  for (const Operation& operation : FullManifest().operations) seen[operation.index()] = true;

  EXPECT_EQ(seen, std::vector<bool>(std::variant_size_v<Operation>, true));
}

// WAL-04 to WAL-06
TEST(ManifestCodecTest, KeepsEachOperationAlone) {
  for (const Operation& operation : FullManifest().operations) {
    Manifest manifest;
    manifest.transaction_id = IdOf<TransactionId>(2);
    manifest.created_at = absl::UnixEpoch();
    manifest.operations = {operation};
    ASSERT_OK_AND_ASSIGN(const Manifest decoded, DecodeManifest(View(EncodeManifest(manifest))));
    EXPECT_EQ(decoded, manifest) << "alternative " << operation.index();
  }
}

TEST(ManifestCodecTest, RefusesEveryTruncation) {
  const std::string bytes = EncodeManifest(FullManifest());

  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto decoded = DecodeManifest(absl::string_view(bytes.data(), size));
    // A cut between two fields is an encoding of another manifest; anything else is malformed.
    if (decoded.ok()) {
      EXPECT_EQ(EncodeManifest(*decoded), bytes.substr(0, size));
    }
  }
  EXPECT_THAT(DecodeManifest(""), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ManifestCodecTest, NeverMistakesDamageForTheSameManifest) {
  const Manifest manifest = FullManifest();
  const std::string bytes = EncodeManifest(manifest);

  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char flip : {'\x01', '\x08', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto decoded = DecodeManifest(View(damaged));
      if (!decoded.ok()) continue;
      EXPECT_NE(*decoded, manifest) << "offset " << i;
      EXPECT_EQ(EncodeManifest(*decoded), damaged) << "offset " << i;
    }
  }
}

TEST(ManifestCodecTest, RefusesNewerFormatLevelAsUnimplemented) {
  std::string bytes = EncodeManifest(ManifestOf(1));
  ASSERT_EQ(bytes.substr(0, 2), std::string("\x08\x01", 2));  // field 1, value 1

  bytes[1] = 2;

  EXPECT_THAT(DecodeManifest(View(bytes)), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(ManifestCodecTest, RefusesUnknownOperationAsUnimplemented) {
  std::string bytes = EncodeManifest(ManifestOf(1));
  // Field 5 (operations), 4 bytes: field 100, 1 byte.
  bytes += std::string("\x2a\x04\xa2\x06\x01\x00", 6);

  EXPECT_THAT(DecodeManifest(View(bytes)), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(ManifestCodecTest, RefusesEmptyOperationUnknownFieldAndSpeltOutDefault) {
  const std::string bytes = EncodeManifest(ManifestOf(1));

  EXPECT_THAT(DecodeManifest(View(bytes + std::string("\x2a\x00", 2))),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeManifest(View(bytes + std::string("\x78\x01", 2))),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(DecodeManifest(View(bytes + std::string("\x32\x00", 2))),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ManifestCodecTest, EncodesEmptyDroppedListAsNothing) {
  EXPECT_EQ(EncodeDropped({}), "");
  ASSERT_OK_AND_ASSIGN(const auto decoded, DecodeDropped(""));
  EXPECT_TRUE(decoded.empty());
}

TEST(ManifestCodecTest, KeepsDroppedListAndRefusesItsDamage) {
  const std::vector<DroppedRef> dropped = {{IdOf<RepositoryId>(1), "refs/heads/a"},
                                           {IdOf<RepositoryId>(2), "refs/heads/\xff"}};
  const std::string bytes = EncodeDropped(dropped);

  ASSERT_OK_AND_ASSIGN(const auto decoded, DecodeDropped(View(bytes)));
  EXPECT_EQ(decoded, dropped);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    const auto other = DecodeDropped(View(damaged));
    if (other.ok()) {
      EXPECT_NE(*other, dropped) << "offset " << i;
    }
  }
  std::string newer = bytes;
  newer[1] = 9;
  EXPECT_THAT(DecodeDropped(View(newer)), StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace repotxn::wal
