// Rows at a snapshot, with those remembered of the metadata store: never another answer than the store and the versions
// give. Method: a metadata store that is overtaken at a chosen moment, and a long random history beside a plain model.
#include "txn/row_space.h"

#include <functional>
#include <map>

#include "gtest/gtest.h"
#include "storage/check.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"
#include "txn/layout.h"

namespace repotxn::testing {
namespace {

using txn::Row;
using txn::RowSpace;

// Passes everything on; before the answer of one Get() leaves, it runs what the test put in.
class OvertakenStore final : public storage::MetadataStore {
 public:
  explicit OvertakenStore(storage::MetadataStore* base) : base_(base) {}
  absl::StatusOr<std::string> Get(absl::string_view key) override {
    auto answer = base_->Get(key);
    if (auto action = std::exchange(action_, {})) action();
    return answer;
  }
  absl::Status Write(const storage::MetadataBatch& batch, storage::MetadataSync sync) override {
    return base_->Write(batch, sync);
  }
  absl::Status Scan(absl::string_view begin, absl::string_view end, const Visitor& visit) override {
    return base_->Scan(begin, end, visit);
  }
  absl::Status Sync() override { return base_->Sync(); }
  absl::Status Close() override { return base_->Close(); }
  void BeforeTheNextAnswer(std::function<void()> action) { action_ = std::move(action); }

 private:
  storage::MetadataStore* const base_;
  std::function<void()> action_;
};

class RowSpaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(base_, storage::MetadataStore::Open(&fs_, txn::layout::Metadata()));
    metadata_ = std::make_unique<OvertakenStore>(base_.get());
    rows_ = std::make_unique<RowSpace>(metadata_.get());
  }
  void Put(const std::string& key, const std::optional<std::string>& value) {
    newest_ = newest_.Next();
    rows_->Publish({{key, value}}, newest_);
  }
  void Materialize(wal::Lsn oldest) {
    const auto ignore = [](absl::string_view, const std::optional<std::string>&) { return absl::OkStatus(); };
    EXPECT_THAT(rows_->Materialize(newest_, oldest, ignore), IsOk());
  }
  // "value@lsn", "-" when absent.
  std::string At(const std::string& key, wal::Lsn at) {
    const auto row = rows_->Get(key, at);
    if (!row.ok()) return row.status().ToString();
    return *row ? absl::StrCat((*row)->value, "@", (*row)->version.value()) : "-";
  }
  std::string Newest(const std::string& key) { return At(key, newest_); }

  MemoryFileSystem fs_;
  std::unique_ptr<storage::MetadataStore> base_;
  std::unique_ptr<OvertakenStore> metadata_;
  std::unique_ptr<RowSpace> rows_;
  wal::Lsn newest_;
};

TEST_F(RowSpaceTest, AsksTheStoreOnceForARowInUse) {
  Put("p/a", "first");
  Materialize(newest_);
  EXPECT_EQ(Newest("p/a"), "first@1");
  const int64_t asked = rows_->stored_reads();

  for (int i = 0; i < 10; ++i) EXPECT_EQ(Newest("p/a"), "first@1");
  EXPECT_EQ(rows_->stored_reads(), asked);
  // Most repositories borrow from none.
  EXPECT_EQ(Newest("a/none"), "-");
  EXPECT_EQ(Newest("a/none"), "-");
  EXPECT_EQ(rows_->stored_reads(), asked + 1);
  Put("a/none", "a pool");
  Materialize(newest_);
  EXPECT_EQ(Newest("a/none"), "a pool@2");

  // Until it changes, and then once more.
  Put("p/a", "second");
  Materialize(newest_);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Newest("p/a"), "second@3");
  Put("p/a", std::nullopt);
  Materialize(newest_);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Newest("p/a"), "-");
}

TEST_F(RowSpaceTest, RemembersNeitherAbsenceNorOutcomesNorHugeRows) {
  Put("t/outcome", "committed");
  Put("p/huge", std::string(5000, 'x'));
  Materialize(newest_);
  for (const char* key : {"p/nobody", "t/outcome", "p/huge"}) {
    Newest(key);
    const int64_t asked = rows_->stored_reads();
    Newest(key);
    EXPECT_EQ(rows_->stored_reads(), asked + 1) << key;
  }
}

// A13, for rows: the answer that was on its way when the row changed is good for its reader, and for nobody after him.
std::string ReadAfterAnOvertakenRead(RowSpace* rows, OvertakenStore* metadata, const std::function<void()>& overtake) {
  metadata->BeforeTheNextAnswer(overtake);
  EXPECT_THAT(rows->Get("p/a", wal::Lsn(1)), IsOk());
  const auto row = rows->Get("p/a", wal::Lsn(2));
  return row.ok() && *row ? (*row)->value : "-";
}

TEST_F(RowSpaceTest, ForgetsAnAnswerThatWasOvertaken) {
  Put("p/a", "first");
  Materialize(newest_);
  EXPECT_EQ(ReadAfterAnOvertakenRead(rows_.get(), metadata_.get(), [&] {
    Put("p/a", "second");
    Materialize(newest_);
  }), "second");
}
TEST_F(RowSpaceTest, NoticesAnAnswerThatIsKeptThoughItWasOvertaken) {
  const PlantedBug bug("txn.remember_overtaken_row");
  Put("p/a", "first");
  Materialize(newest_);
  EXPECT_EQ(ReadAfterAnOvertakenRead(rows_.get(), metadata_.get(), [&] {
    Put("p/a", "second");
    Materialize(newest_);
  }), "first");
}

TEST_F(RowSpaceTest, AgreesWithAPlainModelAtEverySnapshotInUse) {
  SeededRandom random(7);
  std::map<std::string, std::map<uint64_t, std::string>> model;  // key, LSN, "value@lsn" or "-"
  wal::Lsn oldest;
  for (int step = 0; step < 4000; ++step) {
    const std::string key = absl::StrCat(step % 3 == 0 ? "a/" : "p/", random.Below(12));
    switch (random.Below(5)) {
      case 0:
        Put(key, absl::StrCat("v", step));
        model[key][newest_.value()] = absl::StrCat("v", step, "@", newest_.value());
        break;
      case 1:
        if (random.Below(4) == 0) {
          Put(key, std::nullopt);
          model[key][newest_.value()] = "-";
        }
        break;
      case 2:
        if (random.Below(3) == 0) Materialize(oldest);
        break;
      case 3:
        if (random.Below(6) == 0) oldest = newest_;
        break;
      default:
        for (const wal::Lsn at : {oldest, wal::Lsn((oldest.value() + newest_.value()) / 2), newest_}) {
          const auto& versions = model[key];
          const auto after = versions.upper_bound(at.value());
          ASSERT_EQ(At(key, at), after == versions.begin() ? "-" : std::prev(after)->second)
              << "step " << step << " key " << key << " at " << at.value();
        }
    }
  }
}

TEST(RowCacheTest, KeepsWhatIsUsedAndStaysWithinItsBound) {
  txn::RowCache<int> cache(4);
  for (int i = 0; i < 100; ++i) {
    cache.Put(absl::StrCat(i), i);
    ASSERT_LE(cache.size(), 8u);
    const int* used = cache.Find("0");
    ASSERT_NE(used, nullptr) << i;
    EXPECT_EQ(*used, 0);
  }
  EXPECT_EQ(cache.Find("50"), nullptr);
  cache.Erase("0");
  EXPECT_EQ(cache.Find("0"), nullptr);
}

}  // namespace
}  // namespace repotxn::testing
