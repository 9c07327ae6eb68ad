// Goal: a removed pack is nobody's answer, an added one is everybody's, in whatever order the two come.
#include "txn/condemned_files.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "txn/catalogue.h"
#include "txn/layout.h"

namespace repotxn::txn {
namespace {

using ::testing::ElementsAre;

const RepositoryId kId = *RepositoryId::FromHex(std::string(32, 'a'));
const std::string kPack = "pack-" + std::string(40, 'b');

std::vector<std::string> Names(const std::vector<CondemnedFiles::Pack>& packs) {
  std::vector<std::string> names;
  for (const CondemnedFiles::Pack& pack : packs) names.push_back(pack.name);
  return names;
}

TEST(CondemnedFilesTest, GivesUpWhatWasRemovedBeforeTheOldestReader) {
  CondemnedFiles files;
  EXPECT_FALSE(files.Contains(kId, kPack));
  files.Condemn({kId, "pack-2", wal::Lsn(9)});
  files.Condemn({kId, "pack-1", wal::Lsn(7)});
  EXPECT_THAT(Names(files.RemovedUpTo(wal::Lsn(6))), ElementsAre());
  EXPECT_THAT(Names(files.RemovedUpTo(wal::Lsn(7))), ElementsAre("pack-1"));
  EXPECT_THAT(Names(files.RemovedUpTo(wal::Lsn(99))), ElementsAre("pack-1", "pack-2"));
  EXPECT_TRUE(files.Contains(layout::PackFile(kId, "pack-1", ".pack")));
  EXPECT_FALSE(files.Contains(layout::PackFile(kId, "pack-1", ".idx")));
  files.Forget(kId, "pack-1");
  EXPECT_FALSE(files.Contains(kId, "pack-1"));
  EXPECT_EQ(files.size(), 1);
}

// Pardoned while its entry is on the way; the row is taken back by that entry, once.
TEST(CondemnedFilesTest, IsOrdinaryAgainFromThePardonOnAndSettledOnce) {
  CondemnedFiles files;
  EXPECT_FALSE(files.Settle(kId, kPack));
  files.Condemn({kId, kPack, wal::Lsn(7)});
  files.Pardon(kId, kPack);
  EXPECT_FALSE(files.Contains(kId, kPack));
  EXPECT_THAT(files.RemovedUpTo(wal::Lsn(99)), ElementsAre());
  EXPECT_TRUE(files.Settle(kId, kPack));
  EXPECT_FALSE(files.Settle(kId, kPack));
  // In recovery nobody unlinks, and the entry settles without a pardon.
  files.Condemn({kId, kPack, wal::Lsn(8)});
  EXPECT_TRUE(files.Settle(kId, kPack));
  EXPECT_EQ(files.size(), 0);
}

TEST(CondemnedFilesTest, RowKeysComeBackAsTheyWere) {
  const auto row = DecodeCondemnedKey(CondemnedKey(kId, kPack));
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->id, kId);
  EXPECT_EQ(row->pack, kPack);
  for (const std::string key : {"", "c/", "c/short", "d/aaaaaaaaaaaaaaaaaaaaaa"}) {
    EXPECT_EQ(DecodeCondemnedKey(key).status().code(), absl::StatusCode::kDataLoss) << key;
  }
}

}  // namespace
}  // namespace repotxn::txn
