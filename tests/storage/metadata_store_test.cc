// The metadata store against an ordered map, through crashes at every mutating call, and with a
// failing disk.
#include "storage/metadata_store.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/posix_file_system.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/notification.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::storage {
namespace {

using ::repotxn::testing::CrashSurvival;
using ::repotxn::testing::FaultFileSystem;
using ::repotxn::testing::FileOperation;
using ::repotxn::testing::IsOk;
using ::repotxn::testing::IsOkAndHolds;
using ::repotxn::testing::MemoryFileSystem;
using ::repotxn::testing::SeededRandom;
using ::repotxn::testing::StatusIs;
using Content = std::map<std::string, std::string>;

StorePath Meta() { return StorePath::Literal("meta"); }

MetadataBatch PutOf(absl::string_view key, absl::string_view value) {
  MetadataBatch batch;
  batch.Put(key, value);
  return batch;
}

absl::StatusOr<Content> AllOf(MetadataStore& store) {
  Content content;
  const absl::Status status =
      store.Scan("", "", [&content](absl::string_view key, absl::string_view value) {
        content.emplace(key, value);
        return true;
      });
  if (!status.ok()) return status;
  return content;
}

void ApplyTo(Content* content, const MetadataBatch& batch) {
  for (const MetadataBatch::Edit& edit : batch.edits()) {
    switch (edit.kind) {
      case MetadataBatch::Edit::Kind::kPut:
        (*content)[edit.key] = edit.value;
        break;
      case MetadataBatch::Edit::Kind::kDelete:
        content->erase(edit.key);
        break;
      case MetadataBatch::Edit::Kind::kDeleteRange:
        content->erase(content->lower_bound(edit.key), content->lower_bound(edit.value));
        break;
    }
  }
}

MetadataBatch RandomBatch(SeededRandom& random, size_t value_bytes) {
  MetadataBatch batch;
  const auto key = [&random] { return absl::StrCat("k", random.Below(40)); };
  for (uint64_t i = random.Below(4) + 1; i > 0; --i) {
    switch (random.Below(6)) {
      case 0:
        batch.Delete(key());
        break;
      case 1:
        batch.DeleteRange(key(), key());
        break;
      default:
        batch.Put(key(), std::string(value_bytes, static_cast<char>('a' + random.Below(26))));
    }
  }
  return batch;
}

TEST(MetadataStore, KeysAreBytesInByteOrder) {
  MemoryFileSystem fs;
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
  const std::string nul("a\0b", 3);
  MetadataBatch batch;
  batch.Put("\xff", "last");
  batch.Put(nul, "");
  batch.Put("a", "x");
  ASSERT_OK(store->Write(batch, MetadataSync::kSynced));
  EXPECT_THAT(store->Get(nul), IsOkAndHolds(""));
  EXPECT_THAT(store->Get("\xff"), IsOkAndHolds("last"));
  EXPECT_THAT(store->Get("b"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(AllOf(*store), IsOkAndHolds(Content{{"a", "x"}, {nul, ""}, {"\xff", "last"}}));
  ASSERT_OK(store->Close());
}

TEST(MetadataStore, ScanKeepsItsBoundsAndStopsWhenTold) {
  MemoryFileSystem fs;
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
  MetadataBatch batch;
  for (const char* key : {"a", "b/1", "b/2", "b0", "c"}) batch.Put(key, key);
  ASSERT_OK(store->Write(batch, MetadataSync::kUnsynced));
  std::vector<std::string> seen;
  const auto visit = [&seen](absl::string_view key, absl::string_view /*value*/) {
    seen.emplace_back(key);
    return seen.size() < 3;
  };
  ASSERT_OK(store->Scan("b/", PrefixEnd("b/"), visit));
  EXPECT_THAT(seen, ::testing::ElementsAre("b/1", "b/2"));
  seen.clear();
  ASSERT_OK(store->Scan("", "", visit));
  EXPECT_THAT(seen, ::testing::ElementsAre("a", "b/1", "b/2"));
}

TEST(MetadataStore, PrefixEndIsTheSmallestKeyAboveThePrefix) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("a\xff"), "b");
  EXPECT_EQ(PrefixEnd("a\xff\x7f"), "a\xff\x80");
  EXPECT_EQ(PrefixEnd("\xff\xff"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

TEST(MetadataStore, EqualsAnOrderedMapOverManyBatchesAndReopenings) {
  MemoryFileSystem fs;
  SeededRandom random(7);
  Content model;
  for (int opening = 0; opening < 4; ++opening) {
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
    EXPECT_THAT(AllOf(*store), IsOkAndHolds(model));
    for (int i = 0; i < 200; ++i) {
      const MetadataBatch batch = RandomBatch(random, 100);
      ASSERT_OK(store->Write(batch, MetadataSync::kUnsynced));
      ApplyTo(&model, batch);
    }
    EXPECT_THAT(AllOf(*store), IsOkAndHolds(model));
    ASSERT_OK(store->Close());
  }
}

TEST(MetadataStore, WorksOnARealDisk) {
  repotxn::testing::TempDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto fs, OpenPosixFileSystem(directory.path()));
  for (int opening = 0; opening < 2; ++opening) {
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(fs.get(), Meta()));
    EXPECT_EQ(store->Get("k").ok(), opening == 1);
    ASSERT_OK(store->Write(PutOf("k", "v"), MetadataSync::kSynced));
    EXPECT_THAT(store->Get("k"), IsOkAndHolds("v"));
    EXPECT_THAT(MetadataStore::Open(fs.get(), Meta()), StatusIs(absl::StatusCode::kUnavailable));
    ASSERT_OK(store->Close());
  }
  EXPECT_THAT(Exists(*fs, StorePath::Literal("meta/LOG")), IsOkAndHolds(false));
}

// Enough data to fill memtables, so that flushes, compactions and switches of the log take place.
TEST(MetadataStore, SurvivesFlushesOfItsMemtables) {
  MemoryFileSystem fs;
  SeededRandom random(11);
  Content model;
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
  for (int i = 0; i < 300; ++i) {
    const MetadataBatch batch = RandomBatch(random, 64 << 10);
    ASSERT_OK(store->Write(batch, MetadataSync::kUnsynced));
    ApplyTo(&model, batch);
  }
  ASSERT_OK(store->Sync());
  const auto crashed = fs.CrashClone({.survival = CrashSurvival::kNothing});
  ASSERT_OK_AND_ASSIGN(const auto reopened, MetadataStore::Open(crashed.get(), Meta()));
  ASSERT_OK_AND_ASSIGN(const Content found, AllOf(*reopened));
  EXPECT_TRUE(found == model);
}

// A crash at every mutating call of a run of synced and unsynced batches. What is found is the
// state after some prefix of the batches (I1), and the prefix reaches every batch whose synced
// write had returned.
class MetadataStoreCrash : public ::testing::Test {
 protected:
  struct Clone {
    std::unique_ptr<MemoryFileSystem> fs;
    size_t written_min;  // batches that must be there
    size_t written_max;  // batches that may be there
    std::string at;
  };

  void Record(std::string at) {
    constexpr CrashSurvival kSurvivals[] = {CrashSurvival::kNothing, CrashSurvival::kEverything,
                                            CrashSurvival::kRandom, CrashSurvival::kRandom};
    for (const CrashSurvival survival : kSurvivals) {
      clones_.push_back({fs_.CrashClone({.survival = survival, .seed = clones_.size()}), synced_,
                         begun_, absl::StrCat(at, " #", clones_.size())});
    }
  }

  void RunBatches() {
    fs_.SetMutationHook([this](int64_t index, absl::string_view op, const StorePath& path) {
      Record(absl::StrCat(index, " ", op, " ", path.text()));
    });
    states_.push_back({});
    for (int opening = 0; opening < 2; ++opening) {
      ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs_, Meta()));
      for (int i = 0; i < 12; ++i) {
        const MetadataBatch batch = RandomBatch(random_, 300);
        states_.push_back(states_.back());
        ApplyTo(&states_.back(), batch);
        ++begun_;
        const bool is_synced = i % 3 == 2;
        ASSERT_OK(store->Write(batch, is_synced ? MetadataSync::kSynced : MetadataSync::kUnsynced));
        if (is_synced) synced_ = begun_;
      }
      ASSERT_OK(store->Close());
      synced_ = begun_;
    }
    Record("end");
    fs_.SetMutationHook(nullptr);
  }

  void Check(const Clone& clone) {
    SCOPED_TRACE(clone.at);
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(clone.fs.get(), Meta()));
    ASSERT_OK_AND_ASSIGN(const Content found, AllOf(*store));
    bool is_prefix = false;
    for (size_t i = clone.written_min; i <= clone.written_max; ++i) {
      is_prefix |= found == states_[i];
    }
    EXPECT_TRUE(is_prefix) << "batches " << clone.written_min << " to " << clone.written_max;
    // And it can be used.
    EXPECT_OK(store->Write(PutOf("after", "crash"), MetadataSync::kSynced));
  }

  MemoryFileSystem fs_;
  SeededRandom random_{3};
  std::vector<Content> states_;  // after so many batches
  size_t begun_ = 0;
  size_t synced_ = 0;
  std::vector<Clone> clones_;
};

TEST_F(MetadataStoreCrash, EveryCrashLeavesAPrefixWithAllSyncedBatches) {
  RunBatches();
  ASSERT_GT(clones_.size(), 300u);
  for (const Clone& clone : clones_) {
    Check(clone);
    if (HasFailure()) return;
  }
}

class MetadataStoreFault : public ::testing::Test {
 protected:
  MetadataStoreFault() : fs_(&memory_) {}

  void FailOnce(FileOperation operation) {
    fs_.AddRule({.operation = operation,
                 .path_prefix = "meta/",
                 .path_suffix = ".log",
                 .status = absl::UnavailableError("injected")});
  }

  MemoryFileSystem memory_;
  FaultFileSystem fs_;
};

// I2; C017: no write after a failed sync is acknowledged, though the disk would take it.
TEST_F(MetadataStoreFault, AFailedSyncPoisonsUntilReopened) {
  {
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs_, Meta()));
    ASSERT_OK(store->Write(PutOf("a", "1"), MetadataSync::kSynced));
    FailOnce(FileOperation::kSync);
    EXPECT_THAT(store->Write(PutOf("b", "2"), MetadataSync::kSynced),
                StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(fs_.fault_count(), 1);
    EXPECT_THAT(store->Write(PutOf("c", "3"), MetadataSync::kUnsynced),
                StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(store->Sync(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(store->Get("a"), IsOkAndHolds("1"));
    EXPECT_THAT(store->Close(), StatusIs(absl::StatusCode::kUnavailable));
  }
  const auto crashed = memory_.CrashClone({.survival = CrashSurvival::kNothing});
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(crashed.get(), Meta()));
  EXPECT_THAT(AllOf(*store), IsOkAndHolds(Content{{"a", "1"}}));
}

TEST_F(MetadataStoreFault, AFailedAppendPoisons) {
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs_, Meta()));
  FailOnce(FileOperation::kAppend);
  EXPECT_THAT(store->Write(PutOf("a", "1"), MetadataSync::kUnsynced),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Write(PutOf("b", "2"), MetadataSync::kSynced),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(fs_.fault_count(), 1);
}

// CORE-19
TEST_F(MetadataStoreFault, EveryFailedCallWhileOpeningIsReported) {
  // N = 1, 2, ... until the opening passes without meeting the fault.
  for (int64_t occurrence = 1;; ++occurrence) {
    MemoryFileSystem memory;
    {
      ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&memory, Meta()));
      ASSERT_OK(store->Write(PutOf("a", "1"), MetadataSync::kSynced));
    }
    FaultFileSystem fs(&memory);
    fs.AddRule({.operation = FileOperation::kSyncDirectory,
                .occurrence = occurrence,
                .status = absl::UnavailableError("injected"),
                .is_sticky = true});
    const auto failed = MetadataStore::Open(&fs, Meta());
    if (fs.fault_count() == 0) {
      EXPECT_THAT(failed, IsOk());
      EXPECT_GT(occurrence, 1);
      return;
    }
    EXPECT_THAT(failed, StatusIs(absl::StatusCode::kUnavailable)) << occurrence;
    fs.ClearRules();
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
    EXPECT_THAT(store->Get("a"), IsOkAndHolds("1"));
  }
}

TEST(MetadataStore, ClosesOnceTheCallsUnderWayHaveEndedAndRefusesLaterOnes) {
  MemoryFileSystem fs;
  ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
  ASSERT_OK(store->Write(PutOf("a", "1"), MetadataSync::kUnsynced));
  repotxn::testing::Notification inside, may_leave;
  std::thread reader([&] {
    EXPECT_OK(store->Scan("", "", [&](absl::string_view, absl::string_view) {
      inside.Notify();
      may_leave.WaitForNotification();
      return true;
    }));
  });
  inside.WaitForNotification();
  std::atomic<bool> is_closed{false};
  std::thread closer([&] {
    EXPECT_OK(store->Close());
    is_closed = true;
  });
  // Refused from the moment at which closing began, which is before it ended.
  while (store->Get("a").ok()) {
  }
  EXPECT_FALSE(is_closed);
  may_leave.Notify();
  reader.join();
  closer.join();
  EXPECT_THAT(store->Get("a"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Sync(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->Write(PutOf("a", "2"), MetadataSync::kSynced), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(AllOf(*store), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(MetadataStore, DamageInATableIsDataLoss) {
  MemoryFileSystem fs;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, MetadataStore::Open(&fs, Meta()));
    ASSERT_OK(store->Write(PutOf("key", std::string(5000, 'v')), MetadataSync::kSynced));
    ASSERT_OK(store->Close());
    // The second opening turns the log into a table.
    ASSERT_OK_AND_ASSIGN(const auto again, MetadataStore::Open(&fs, Meta()));
    ASSERT_OK(again->Close());
  }
  int damaged = 0;
  ASSERT_OK_AND_ASSIGN(const auto entries, fs.List(Meta()));
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.find(".sst") == std::string::npos) continue;
    ASSERT_OK(fs.FlipBit(Meta() / entry.name, 2000, 3));
    ++damaged;
  }
  ASSERT_EQ(damaged, 1);
  const auto store = MetadataStore::Open(&fs, Meta());
  EXPECT_THAT(store.ok() ? (*store)->Get("key").status() : store.status(),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace repotxn::storage
