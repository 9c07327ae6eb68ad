#include "locks/footprint.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/locks/scenario.h"

namespace repotxn::locks {
namespace {

// Normalisation: order, merging of equal keys, escalation, and the division by partition.
class FootprintTest : public ::testing::Test {
 protected:
  const RepositoryId m_ = ScenarioId('M');

  static const Lock* Find(const Footprint& footprint, const LockKey& key) {
    for (const Lock& lock : footprint.locks()) {
      if (lock.key == key) return &lock;
    }
    return nullptr;
  }
  std::vector<Lock> ManyRefs(const std::string& directory, size_t count, LockMode mode) const {
    std::vector<Lock> locks;
    for (size_t i = 0; i < count; ++i) {
      LockKey key = LockKey::Ref(m_, absl::StrCat(directory.c_str(), i));
      locks.push_back(mode == LockMode::kShared ? Lock::Shared(std::move(key))
                                                : Lock::Exclusive(std::move(key)));
    }
    return locks;
  }
};

TEST_F(FootprintTest, SortsAndDropsRepeatedKeys) {
  const Footprint footprint({Lock::Shared(LockKey::Ref(m_, "b")), Lock::Shared(LockKey::Ref(m_, "a")),
                             Lock::Shared(LockKey::Ref(m_, "b"))});

  ASSERT_EQ(footprint.locks().size(), 3u);
  EXPECT_EQ(footprint.locks()[0], Lock::Passed(LockKey::Root(m_)));
  EXPECT_EQ(footprint.locks()[1].key, LockKey::Ref(m_, "a"));
  EXPECT_EQ(footprint.locks()[2].key, LockKey::Ref(m_, "b"));
  EXPECT_FALSE(footprint.has_exclusive());
}

TEST_F(FootprintTest, ExclusiveWinsOverShared) {
  const LockKey key = LockKey::Entry(m_, "config");

  const Footprint footprint({Lock::Shared(key), Lock::Exclusive(key), Lock::Passed(key)});

  EXPECT_EQ(*Find(footprint, key), Lock::Exclusive(key));
  EXPECT_EQ(footprint.exclusive_count(), 1u);
}

TEST_F(FootprintTest, BlindPutOfAKeyThatWasReadIsNoLongerBlind) {
  const LockKey key = LockKey::Key(7, "k");

  const Footprint footprint({Lock::Blind(key), Lock::Shared(key)});

  EXPECT_EQ(*Find(footprint, key), Lock::Exclusive(key));
}

TEST_F(FootprintTest, MakingAndRemovingIsAChange) {
  const LockKey key = LockKey::Entry(m_, "d");

  const Footprint footprint({Lock::Ensured(key), Lock::Exclusive(key, Effect::kDelete)});

  EXPECT_EQ(*Find(footprint, key), Lock::Exclusive(key));
}

TEST_F(FootprintTest, StaysExactUpToTheLimit) {
  const Footprint footprint(ManyRefs("refs/x/", Footprint::kKeysMax - 1, LockMode::kExclusive));

  EXPECT_FALSE(footprint.escalated());
  EXPECT_EQ(footprint.exclusive_count(), Footprint::kKeysMax - 1);
}

// B5
TEST_F(FootprintTest, EscalatesToDirectoriesAboveTheLimit) {
  std::vector<Lock> locks = ManyRefs("refs/x/", 3000, LockMode::kExclusive);
  for (Lock& lock : ManyRefs("refs/y/", 3000, LockMode::kShared)) locks.push_back(std::move(lock));
  locks.push_back(Lock::Shared(LockKey::Ref(m_, "HEAD")));

  const Footprint footprint(std::move(locks));

  EXPECT_TRUE(footprint.escalated());
  ASSERT_EQ(footprint.locks().size(), 4u);
  EXPECT_EQ(footprint.locks()[1], Lock::Shared(LockKey::Ref(m_, "HEAD")));
  EXPECT_EQ(footprint.locks()[2], Lock::Exclusive(LockKey::RefPrefix(m_, "refs/x/")));
  EXPECT_EQ(footprint.locks()[3], Lock::Shared(LockKey::RefPrefix(m_, "refs/y/")));
}

TEST_F(FootprintTest, EscalatesFurtherWhenDirectoriesAreMany) {
  std::vector<Lock> locks;
  for (int i = 0; i < 5000; ++i) {
    locks.push_back(Lock::Exclusive(LockKey::Ref(m_, absl::StrCat("refs/merge/", i, "/head"))));
    locks.push_back(Lock::Exclusive(LockKey::Entry(m_, absl::StrCat("a/", i, "/f"))));
  }

  const Footprint footprint(std::move(locks));

  ASSERT_EQ(footprint.locks().size(), 3u);
  EXPECT_NE(Find(footprint, LockKey::RefPrefix(m_, "refs/merge/")), nullptr);
}

TEST_F(FootprintTest, EscalatesKeysToAllOfThePartition) {
  std::vector<Lock> locks;
  for (int i = 0; i < 5000; ++i) locks.push_back(Lock::Blind(LockKey::Key(7, absl::StrCat(i))));

  const Footprint footprint(std::move(locks));

  ASSERT_EQ(footprint.locks().size(), 1u);
  EXPECT_EQ(footprint.locks()[0], Lock::Exclusive(LockKey::KeyRange(7, "", "")));
}

TEST_F(FootprintTest, DividesByPartition) {
  const auto footprints = SplitByPartition(
      {Lock::Shared(LockKey::Ref(m_, "a")), Lock::Shared(LockKey::Ref(ScenarioId('P'), "a")),
       Lock::Blind(LockKey::Key(9, "k")), Lock::Shared(LockKey::PathEntry("g")),
       Lock::Exclusive(LockKey::Link(m_, ScenarioId('P')))},
      [](const RepositoryId& id) { return id == ScenarioId('P') ? wal::PartitionId{9} : 7; });

  ASSERT_EQ(footprints.size(), 3u);
  EXPECT_EQ(footprints.at(wal::kNameSpacePartition).locks().size(), 2u);
  EXPECT_EQ(footprints.at(7).locks().size(), 2u);
  EXPECT_EQ(footprints.at(9).locks().size(), 3u);
}

}  // namespace
}  // namespace repotxn::locks
