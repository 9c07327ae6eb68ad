// What the daemon remembers between requests: recent changes and pinned snapshots; and its counters.
#include <memory>
#include <string>
#include <vector>

#include "daemon/metrics.h"
#include "daemon/pinned_snapshots.h"
#include "daemon/recent_changes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scripted_clock.h"

namespace repotxn::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ObjectId Oid(char digit) { return *ObjectId::FromHex(std::string(40, digit)); }
RepositoryId Repository(char digit) { return *RepositoryId::FromHex(std::string(32, digit)); }
TransactionId Txn(char digit) { return *TransactionId::FromHex(std::string(32, digit)); }

// Goal: a loser is told who gave the ref the value it found, or nothing; never somebody else.
TEST(RecentChangesTest, NamesTheTransactionThatMadeTheValue) {
  RecentChanges changes;
  changes.Note(Repository('a'), "refs/heads/x", Oid('1'), {Txn('1'), wal::Lsn(5)});
  changes.Note(Repository('a'), "refs/heads/x", Oid('2'), {Txn('2'), wal::Lsn(6)});

  EXPECT_EQ(changes.Find(Repository('a'), "refs/heads/x", Oid('1'))->transaction_id, Txn('1'));
  EXPECT_EQ(changes.Find(Repository('a'), "refs/heads/x", Oid('2'))->lsn, wal::Lsn(6));
  EXPECT_FALSE(changes.Find(Repository('b'), "refs/heads/x", Oid('1')).has_value());
  EXPECT_FALSE(changes.Find(Repository('a'), "refs/heads/y", Oid('1')).has_value());
  EXPECT_FALSE(changes.Find(Repository('a'), "refs/heads/x", Oid('3')).has_value());
}

TEST(RecentChangesTest, KeepsTheNewerOfTwoAndForgetsTheOldestBeyondItsBound) {
  RecentChanges changes(/*entries_max=*/2);
  changes.Note(Repository('a'), "x", Oid('1'), {Txn('1'), wal::Lsn(5)});
  changes.Note(Repository('a'), "x", Oid('1'), {Txn('2'), wal::Lsn(0)});
  EXPECT_EQ(changes.Find(Repository('a'), "x", Oid('1'))->transaction_id, Txn('1'));

  changes.Note(Repository('a'), "x", Oid('2'), {Txn('3'), wal::Lsn(6)});
  changes.Note(Repository('a'), "x", Oid('3'), {Txn('4'), wal::Lsn(7)});
  EXPECT_FALSE(changes.Find(Repository('a'), "x", Oid('1')).has_value());
  EXPECT_TRUE(changes.Find(Repository('a'), "x", Oid('3')).has_value());
}

class FakeSnapshot final : public txn::SnapshotDirectory {
 public:
  const std::string& absolute_path() const override { return path_; }
  const storage::StorePath& path() const override { return store_path_; }
  wal::Lsn lsn() const override { return wal::Lsn(1); }
  ObjectFormat format() const override { return ObjectFormat::kSha1; }
  std::vector<std::string> GitSettings() const override { return {}; }

 private:
  std::string path_;
  storage::StorePath store_path_;
};

// Goal: what was shown stays as long as promised, and not longer. Fails when a pin outlives its
// time or its bound (disk that never comes free), or goes early (a fetch that fails).
class PinnedSnapshotsTest : public ::testing::Test {
 protected:
  testing::ScriptedClock clock_;
  std::shared_ptr<FakeSnapshot> first_ = std::make_shared<FakeSnapshot>();
  std::shared_ptr<FakeSnapshot> second_ = std::make_shared<FakeSnapshot>();
  std::shared_ptr<FakeSnapshot> third_ = std::make_shared<FakeSnapshot>();
};

TEST_F(PinnedSnapshotsTest, GivesTheYoungestOfARepositoryFirstUntilTheirTimeIsOver) {
  PinnedSnapshots pins(&clock_, absl::Seconds(60), 10);
  pins.Pin("a", first_);
  clock_.Advance(absl::Seconds(30));
  pins.Pin("a", second_);
  pins.Pin("b", third_);
  EXPECT_THAT(pins.Of("a"), ElementsAre(second_, first_));

  clock_.Advance(absl::Seconds(30));
  EXPECT_THAT(pins.Of("a"), ElementsAre(second_));
  EXPECT_EQ(first_.use_count(), 1);

  pins.Clear();
  EXPECT_EQ(third_.use_count(), 1);
}

TEST_F(PinnedSnapshotsTest, ShowingASnapshotAgainKeepsItLonger) {
  PinnedSnapshots pins(&clock_, absl::Seconds(60), 10);
  pins.Pin("a", first_);
  clock_.Advance(absl::Seconds(59));
  pins.Pin("a", first_);
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(pins.size(), 1u);
}

TEST_F(PinnedSnapshotsTest, LetsTheOldestGoBeyondTheBound) {
  PinnedSnapshots pins(&clock_, absl::Seconds(60), 2);
  pins.Pin("a", first_);
  pins.Pin("a", second_);
  pins.Pin("a", third_);
  EXPECT_THAT(pins.Of("a"), ElementsAre(third_, second_));
  EXPECT_EQ(first_.use_count(), 1);
}

// Goal: a scraper reads what happened. Fails when a number is cut, or a bucket is not cumulative.
TEST(MetricsTest, CountsRequestsByKindClassAndTime) {
  RequestMetrics metrics;
  for (const double seconds : {0.0005, 0.02, 1000.0}) {
    metrics.Begin();
    metrics.End(RequestKind::kPush, 200, absl::Seconds(seconds));
  }
  metrics.Begin();
  metrics.End(RequestKind::kFetch, 503, absl::Milliseconds(1));
  std::string text;
  metrics.AppendText(&text);

  EXPECT_THAT(text, HasSubstr("repotxn_requests_total{kind=\"push\",class=\"2xx\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_requests_total{kind=\"fetch\",class=\"5xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_request_seconds_bucket{kind=\"push\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_request_seconds_bucket{kind=\"push\",le=\"0.05\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_request_seconds_bucket{kind=\"push\",le=\"300\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_request_seconds_bucket{kind=\"push\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("repotxn_requests_in_flight 0\n"));
}

TEST(MetricsTest, WritesLargeLsnsInFull) {
  txn::StoreMetrics store;
  store.committed_lsn = 123'456'789'012;
  store.poisoned = true;
  std::string text;
  AppendStoreMetrics(store, &text);
  EXPECT_THAT(text, HasSubstr("\nrepotxn_store_committed_lsn 123456789012\n"));
  EXPECT_THAT(text, HasSubstr("\nrepotxn_store_poisoned 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("e+")));
}

}  // namespace
}  // namespace repotxn::daemon
