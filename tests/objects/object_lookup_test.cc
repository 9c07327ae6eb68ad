#include "objects/object_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "objects/object_set.h"
#include "objects/alternates.h"
#include "objects/closure_check.h"
#include "objects/error_detail.h"
#include "storage/check.h"
#include "tests/objects/pack_builder.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/status_matchers.h"

namespace repotxn::objects {
namespace {

using repotxn::testing::Deflated;
using repotxn::testing::IsOk;
using repotxn::testing::IsOkAndHolds;
using repotxn::testing::LooseText;
using repotxn::testing::MemoryFileSystem;
using repotxn::testing::OidOf;
using repotxn::testing::PackBuilder;
using repotxn::testing::StatusIs;
using storage::StorePath;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ObjectFormat kFormat = ObjectFormat::kSha1;

// Goal: a lookup answers from the files that count and from no others. Method: object directories
// in memory, changed under it as commits, removals and unlinks change them. An answer from a
// condemned, unlinked or foreign file fails.
class ObjectLookupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const StorePath& objects : {live_, pool_, quarantine_}) {
      ASSERT_THAT(storage::MakeDirectories(fs_, objects / "pack"), IsOk());
      ASSERT_THAT(storage::MakeDirectories(fs_, objects / "info"), IsOk());
    }
  }

  // Writes a pack of blobs with the given contents.
  void WritePack(const StorePath& objects, const std::string& name,
                 const std::vector<std::string>& blobs) {
    PackBuilder builder(kFormat);
    for (const std::string& blob : blobs) builder.Add(ObjectType::kBlob, blob);
    WriteParts(objects, name, builder);
  }
  // Whole files appear under their names, the index last, as when packs are linked.
  void WriteParts(const StorePath& objects, const std::string& name, const PackBuilder& builder) {
    WriteWhole(objects / ("pack/" + name + ".pack"), builder.Pack());
    WriteWhole(objects / ("pack/" + name + ".idx"), builder.Index());
  }
  void WriteWhole(const StorePath& path, const std::string& bytes) {
    const StorePath temporary = StorePath::Literal("staging/file");
    ASSERT_THAT(storage::WriteFile(fs_, temporary, bytes), IsOk());
    ASSERT_THAT(fs_.Rename(temporary, path), IsOk());
  }
  void RemovePack(const StorePath& objects, const std::string& name) {
    ASSERT_THAT(fs_.Remove(objects / ("pack/" + name + ".idx")), IsOk());
    ASSERT_THAT(fs_.Remove(objects / ("pack/" + name + ".pack")), IsOk());
  }
  ObjectId WriteLoose(const StorePath& objects, ObjectType type, const std::string& content) {
    const ObjectId oid = OidOf(type, content, kFormat);
    const StorePath path = objects / LooseObjectName(oid);
    EXPECT_THAT(storage::MakeDirectories(fs_, path.Parent()), IsOk());
    EXPECT_THAT(storage::WriteFile(fs_, path, Deflated(LooseText(type, content))), IsOk());
    return oid;
  }
  static ObjectId Blob(const std::string& content) {
    return OidOf(ObjectType::kBlob, content, kFormat);
  }
  std::shared_ptr<ObjectLookup> Open(ObjectLookup::Options options = {}) {
    auto lookup = ObjectLookup::Open(&fs_, live_, std::move(options));
    EXPECT_THAT(lookup, IsOk());
    return *lookup;
  }

  MemoryFileSystem fs_;
  const StorePath live_ = StorePath::Literal("r/live.git/objects");
  const StorePath pool_ = StorePath::Literal("r/pool.git/objects");
  const StorePath quarantine_ = StorePath::Literal("staging/1/objects");
};

TEST_F(ObjectLookupTest, FindsPackedAndLooseObjects) {
  WritePack(live_, "pack-1", {"a", "b"});
  const ObjectId loose = WriteLoose(live_, ObjectType::kTag, "tag text");
  const auto lookup = Open();

  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
  EXPECT_THAT(lookup->Type(loose), IsOkAndHolds(ObjectType::kTag));
  EXPECT_THAT(lookup->Exists(Blob("c")), IsOkAndHolds(false));
  const auto absent = lookup->Type(Blob("c"));
  EXPECT_THAT(absent, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ErrorDetail(absent.status(), "oid"), Blob("c").ToHex());
  EXPECT_THAT(lookup->Exists(EmptyTree(ObjectFormat::kSha256)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(lookup->Exists(ObjectId()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ObjectLookupTest, KnowsTheEmptyTreeWithoutAFileButNotTheEmptyBlob) {
  const auto lookup = Open();

  EXPECT_EQ(EmptyTree(kFormat), OidOf(ObjectType::kTree, "", kFormat));
  EXPECT_EQ(EmptyTree(ObjectFormat::kSha256), OidOf(ObjectType::kTree, "", ObjectFormat::kSha256));
  EXPECT_THAT(lookup->Exists(EmptyTree(kFormat)), IsOkAndHolds(true));
  EXPECT_THAT(lookup->Info(EmptyTree(kFormat)), IsOkAndHolds(ObjectInfo{ObjectType::kTree, 0}));
  EXPECT_THAT(lookup->Exists(Blob("")), IsOkAndHolds(false));
}

TEST_F(ObjectLookupTest, NoticesPacksThatComeAndGoBehindItsBack) {
  const auto lookup = Open();
  ASSERT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(false));

  WritePack(live_, "pack-1", {"a"});
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));

  RemovePack(live_, "pack-1");
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(false));
  EXPECT_EQ(lookup->open_packs(), 0);

  // Repacked: the object is elsewhere now, and still there.
  WritePack(live_, "pack-2", {"a"});
  ASSERT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
  RemovePack(live_, "pack-2");
  WritePack(live_, "pack-3", {"a", "b"});
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
}

TEST_F(ObjectLookupTest, IgnoresAPackWhoseIndexIsNotThereYet) {
  PackBuilder builder(kFormat);
  builder.Add(ObjectType::kBlob, "a");
  ASSERT_THAT(storage::WriteFile(fs_, live_ / "pack/pack-1.pack", builder.Pack()), IsOk());
  const auto lookup = Open();

  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(false));
}

TEST_F(ObjectLookupTest, TakesNoteOfAddedAndRemovedPacks) {
  const auto lookup = Open();
  WritePack(live_, "pack-1", {"a"});

  lookup->NotePackAdded("pack-1");
  lookup->NotePackAdded("pack-1");
  ASSERT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
  ASSERT_EQ(lookup->open_packs(), 1);
  RemovePack(live_, "pack-1");
  lookup->NotePackRemoved("pack-1");

  EXPECT_EQ(lookup->open_packs(), 0);
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(false));
}

// Hard case A4: a removed pack that is still in its place answers nothing. Hard case A5: it answers
// again once its condemnation is cancelled.
TEST_F(ObjectLookupTest, NeverAnswersFromACondemnedFile) {
  WritePack(live_, "pack-1", {"a"});
  const ObjectId loose = WriteLoose(live_, ObjectType::kBlob, "l");
  std::set<StorePath> condemned;
  const auto lookup = Open(
      {.is_condemned = [&condemned](const StorePath& file) { return condemned.contains(file); }});
  ASSERT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));

  condemned = {live_ / "pack/pack-1.pack", live_ / LooseObjectName(loose)};
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(false));
  EXPECT_THAT(lookup->Type(loose), StatusIs(absl::StatusCode::kNotFound));
  {
    PlantedBug bug("lookup answers from condemned files");
    EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true)) << "the plant has no effect";
  }

  // Another pack still has it.
  WritePack(live_, "pack-2", {"a"});
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
  RemovePack(live_, "pack-2");

  condemned.clear();
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
}

TEST_F(ObjectLookupTest, LooksIntoTheQuarantineFirstAndThenIntoTheLiveDirectory) {
  WritePack(live_, "pack-1", {"live"});
  WritePack(quarantine_, "pack-2", {"new"});
  const auto live = Open();
  const auto both = ObjectLookup::WithQuarantine(live, &fs_, quarantine_, {});

  EXPECT_THAT(both->Exists(Blob("new")), IsOkAndHolds(true));
  EXPECT_THAT(both->Exists(Blob("live")), IsOkAndHolds(true));
  EXPECT_THAT(both->Exists(Blob("none")), IsOkAndHolds(false));
  EXPECT_THAT(live->Exists(Blob("new")), IsOkAndHolds(false));
  const auto created = ObjectLookup::WithQuarantine(nullptr, &fs_, quarantine_, {});
  EXPECT_THAT(created->Exists(Blob("new")), IsOkAndHolds(true));
  EXPECT_THAT(created->Exists(Blob("live")), IsOkAndHolds(false));
}

// ALT-11, C067
TEST_F(ObjectLookupTest, FollowsAlternatesAndTheirChanges) {
  WritePack(pool_, "pack-1", {"borrowed"});
  const auto lookup = Open();
  ASSERT_THAT(lookup->Exists(Blob("borrowed")), IsOkAndHolds(false));

  ASSERT_THAT(storage::WriteFile(fs_, live_ / "info/alternates", FormatAlternates(live_, {pool_})),
              IsOk());
  ASSERT_THAT(lookup->NoteAlternatesChanged(), IsOk());
  EXPECT_THAT(lookup->Exists(Blob("borrowed")), IsOkAndHolds(true));
  EXPECT_THAT(lookup->alternates(), ElementsAre(pool_));

  ASSERT_THAT(fs_.Remove(live_ / "info/alternates"), IsOk());
  ASSERT_THAT(lookup->NoteAlternatesChanged(), IsOk());
  EXPECT_THAT(lookup->Exists(Blob("borrowed")), IsOkAndHolds(false));
  EXPECT_THAT(lookup->alternates(), IsEmpty());
}

// C064
TEST_F(ObjectLookupTest, DoesNotCallAbsentWhatAnUnreadableChainMayHold) {
  ASSERT_THAT(storage::WriteFile(fs_, live_ / "info/alternates", "../../gone.git/objects\n"),
              IsOk());

  EXPECT_THAT(ObjectLookup::Open(&fs_, live_, {}), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A merge links its pack and condemns the old one just between the listing of the directory and the question about the old one.
TEST_F(ObjectLookupTest, FindsWhatIsMergedIntoAnotherPackWhileItIsLookedFor) {
  int asked = 0;
  const auto lookup = Open({.is_condemned = [&](const StorePath& file) {
    if (file.Name() != "pack-1.pack") return false;
    if (++asked == 1) WritePack(live_, "pack-2", {"a"});
    return true;
  }});
  // Not in the listing that the lookup has; in the next one, and condemned by the time it is asked for.
  WritePack(live_, "pack-1", {"a", "lost"});
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
  EXPECT_GT(asked, 0);
  // What the condemned one alone has is gone.
  EXPECT_THAT(lookup->Exists(Blob("lost")), IsOkAndHolds(false));
}

TEST_F(ObjectLookupTest, ASetHasWhatIsMergedIntoAnotherPackWhileItIsListed) {
  for (int at = 1; at <= 3; ++at) {
    SCOPED_TRACE(at);
    WritePack(live_, "pack-1", {"a"});
    int asked = 0;
    const auto set = ObjectSet::Open(fs_, {live_}, kFormat, [&](const StorePath& file) {
      if (file.Name() != "pack-1.pack") return false;
      if (++asked == at) WritePack(live_, "pack-2", {"a", "b"});
      return asked >= at;
    });
    ASSERT_THAT(set, IsOk());
    EXPECT_THAT((*set)->Contains(Blob("a")), IsOkAndHolds(true));
    EXPECT_THAT((*set)->Contains(Blob("b")), IsOkAndHolds(asked >= at));

    RemovePack(live_, "pack-1");
    if (asked >= at) RemovePack(live_, "pack-2");
  }
}

TEST_F(ObjectLookupTest, ReportsDamageOnlyWhenNoSoundCopyIsLeft) {
  WritePack(live_, "pack-1", {"a"});
  const auto lookup = Open();
  ASSERT_THAT(storage::WriteFile(fs_, live_ / "pack/pack-1.idx", "not an index"), IsOk());

  const auto damaged = lookup->Exists(Blob("a"));
  EXPECT_THAT(damaged, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(ErrorDetail(damaged.status(), "file"), "r/live.git/objects/pack/pack-1.idx");
  // Nor is anything else called absent: that index may have held it.
  EXPECT_THAT(lookup->Exists(Blob("zzz")), StatusIs(absl::StatusCode::kDataLoss));

  WriteLoose(live_, ObjectType::kBlob, "a");
  EXPECT_THAT(lookup->Exists(Blob("a")), IsOkAndHolds(true));
}

TEST_F(ObjectLookupTest, ReadsTheSoundCopyWhenThePackedOneIsDamaged) {
  WritePack(live_, "pack-1", {std::string(500, 'q')});
  WriteLoose(live_, ObjectType::kBlob, std::string(500, 'q'));
  ASSERT_THAT(fs_.FlipBit(live_ / "pack/pack-1.pack", 20, 3), IsOk());
  const auto lookup = Open();

  ASSERT_OK_AND_ASSIGN(const ObjectContent object, lookup->Read(Blob(std::string(500, 'q'))));
  EXPECT_EQ(object.content, std::string(500, 'q'));
}

// I2.
TEST_F(ObjectLookupTest, KeepsFewPacksOpenAndStillFindsAll) {
  for (int i = 0; i < 20; ++i) {
    WritePack(live_, "pack-" + std::to_string(i), {"blob " + std::to_string(i)});
  }
  const auto lookup = Open({.open_packs_max = 3});
  const int64_t evictions = ProbeCount("object lookup evicts an open pack");

  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(lookup->Exists(Blob("blob " + std::to_string(i))), IsOkAndHolds(true));
      EXPECT_LE(lookup->open_packs(), 3);
    }
  }

  EXPECT_GT(ProbeCount("object lookup evicts an open pack"), evictions);
}

TEST_F(ObjectLookupTest, PeelsChainsOfTagsWithinTheBound) {
  PackBuilder builder(kFormat);
  const ObjectId commit = builder.Add(
      ObjectType::kCommit, "tree " + EmptyTree(kFormat).ToHex() + "\nauthor a\ncommitter c\n\nm\n");
  std::vector<ObjectId> tags = {commit};
  for (int i = 0; i <= kTagChainMax; ++i) {
    tags.push_back(builder.Add(ObjectType::kTag, "object " + tags.back().ToHex() + "\ntype " +
                                                     (i == 0 ? "commit" : "tag") + "\ntag t\n"));
  }
  const ObjectId liar =
      builder.Add(ObjectType::kTag, "object " + commit.ToHex() + "\ntype tree\ntag t\n");
  const ObjectId dangling =
      builder.Add(ObjectType::kTag, "object " + Blob("nowhere").ToHex() + "\ntype blob\ntag t\n");
  WriteParts(live_, "pack-1", builder);
  const auto lookup = Open();

  ASSERT_OK_AND_ASSIGN(const auto self, lookup->Peel(commit));
  EXPECT_EQ(self.oid, commit);
  EXPECT_EQ(self.tags, 0);
  ASSERT_OK_AND_ASSIGN(const auto longest, lookup->Peel(tags[kTagChainMax]));
  EXPECT_EQ(longest.oid, commit);
  EXPECT_EQ(longest.type, ObjectType::kCommit);
  EXPECT_EQ(longest.tags, kTagChainMax);
  EXPECT_THAT(lookup->Peel(tags.back()), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(lookup->Peel(liar), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(lookup->Peel(dangling), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(lookup->CommitParents(commit), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(lookup->CommitParents(liar), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ObjectLookupTest, AnswersManyThreadsWhilePacksComeAndGo) {
  WritePack(live_, "pack-keep", {"kept"});
  const auto lookup = Open({.open_packs_max = 2});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto kept = lookup->Exists(Blob("kept"));
        const auto never = lookup->Exists(Blob("never"));
        if (!kept.ok() || !*kept || !never.ok() || *never) ++wrong;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const std::string name = "pack-" + std::to_string(i);
    WritePack(live_, name, {"x" + std::to_string(i)});
    lookup->NotePackAdded(name);
    RemovePack(live_, name);
    lookup->NotePackRemoved(name);
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(wrong, 0);
}

// Goal: the tips of a transaction without new objects are judged by existence and, under
// refs/heads/, by type.
TEST_F(ObjectLookupTest, TipsMustExistAndBranchesMustBeCommits) {
  const ObjectId blob = WriteLoose(live_, ObjectType::kBlob, "b");
  const ObjectId commit = WriteLoose(live_, ObjectType::kCommit, "tree ...");
  const ObjectId tag = WriteLoose(live_, ObjectType::kTag, "object ...");
  const auto lookup = Open();
  const std::vector<Tip> tips = {
      {"refs/heads/good", commit},
      {"refs/heads/blob", blob},
      {"refs/heads/tag", tag},
      {"refs/tags/blob", blob},
      {"refs/heads/absent", Blob("absent")},
      {"refs/notes/absent", Blob("absent")},
      {"refs/heads/gone", ObjectId::Zero(kFormat)},
      {"refs/heads/gone-too", ObjectId()},
      {"refs/heads/other", EmptyTree(ObjectFormat::kSha256)},
      {"refs/headsX", blob},
  };

  EXPECT_THAT(CheckTips(*lookup, tips),
              IsOkAndHolds(ElementsAre(
                  TipFault{1, TipFaultKind::kNotACommit}, TipFault{2, TipFaultKind::kNotACommit},
                  TipFault{4, TipFaultKind::kMissing}, TipFault{5, TipFaultKind::kMissing},
                  TipFault{8, TipFaultKind::kOtherFormat})));
  EXPECT_THAT(MissingObjects(*lookup, {blob, Blob("absent"), EmptyTree(kFormat)}),
              IsOkAndHolds(ElementsAre(Blob("absent"))));
  EXPECT_EQ(TipFaultReason(TipFaultKind::kMissing), "missing necessary objects");
}

}  // namespace
}  // namespace repotxn::objects
