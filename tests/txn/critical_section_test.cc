#include "storage/critical_section.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "storage/child_process.h"
#include "storage/posix_file_system.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_directory.h"
#include "tests/txn/world.h"

namespace repotxn::testing {
namespace {

// What is allocated by threads while they are inside a critical section.
std::atomic<int64_t> allocations_inside{0};
std::atomic<int64_t> bytes_inside{0};

[[maybe_unused]] void* Allocate(size_t size) {
  if (storage::CriticalSection::IsInside()) {
    allocations_inside.fetch_add(1, std::memory_order_relaxed);
    bytes_inside.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace
}  // namespace repotxn::testing

#if !REPOTXN_SANITIZED
void* operator new(size_t size) { return repotxn::testing::Allocate(size); }
void* operator new[](size_t size) { return repotxn::testing::Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace repotxn::testing {
namespace {

using txn::Transaction;

struct Cost {
  int64_t allocations = 0;
  int64_t bytes = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
  friend void PrintTo(const Cost& cost, std::ostream* out) {
    *out << cost.allocations << " allocations, " << cost.bytes << " bytes";
  }
};

// A world in which commits of one ref are measured. The history keeps everything: nothing is evicted here.
class CriticalSectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (REPOTXN_SANITIZED) GTEST_SKIP() << "operator new is the sanitizer's";
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }
  bool Set(const std::string& branch, int n) {
    return world_.Set(id_, Branch(branch), World::At(n)).committed();
  }
  // The cost of the critical section of one commit; the dearest of several is kept apart, since tables grow now and then.
  Cost Measure(Cost* dearest) {
    std::vector<Cost> costs;
    for (int n = 0; n < 41; ++n) {
      const Cost before{allocations_inside.load(), bytes_inside.load()};
      EXPECT_TRUE(Set("measured", n % 10));
      costs.push_back({allocations_inside.load() - before.allocations, bytes_inside.load() - before.bytes});
    }
    std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) { return a.bytes < b.bytes; });
    *dearest = costs.back();
    return costs[costs.size() / 2];
  }

  World world_;
  RepositoryId id_;
};

TEST_F(CriticalSectionTest, AllocatesTheSameWhateverTheHistoryHolds) {
  Cost dearest_before, dearest_after;
  const Cost before = Measure(&dearest_before);
  for (int n = 0; n < 20'000; ++n) ASSERT_TRUE(Set(absl::StrCat("d", n % 97, "/b", n % 1009), n % 10));

  const Cost after = Measure(&dearest_after);

  EXPECT_EQ(after, before);
  // A step of growth is bounded, never a copy of all that is there.
  EXPECT_LE(dearest_after.bytes, 256 << 10);
}

TEST_F(CriticalSectionTest, AllocatesTheSameWhateverTheNumberOfRefs) {
  const auto fill = [&](int from, int to) {
    return world_.store().Run({}, [&](Transaction& txn) {
      absl::Status status;
      for (int n = from; n < to; ++n) {
        status.Update(txn.UpdateRef(
            id_, {.name = Branch(absl::StrCat("many/", n)), .expected = {}, .value = World::At(1)}));
      }
      return status;
    });
  };
  Cost dearest;
  ASSERT_TRUE(fill(0, 10).committed());
  const Cost few = Measure(&dearest);
  ASSERT_TRUE(fill(10, 5000).committed());

  EXPECT_EQ(Measure(&dearest), few);
}

using CriticalSectionDeathTest = CriticalSectionTest;

TEST_F(CriticalSectionDeathTest, StopsWhoeverTouchesTheDiskOrStartsAChildInside) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDirectory temporary;
  ASSERT_OK_AND_ASSIGN(const auto fs, storage::OpenPosixFileSystem(temporary.path()));
  EXPECT_DEATH(
      {
        const storage::CriticalSection section;
        IgnoreBecause(fs->Stat(storage::StorePath()).status(), "it does not come back");
      },
      "IsInside");
  EXPECT_DEATH(
      {
        const storage::CriticalSection section;
        IgnoreBecause(world_.fs().SyncAll(), "it does not come back");
      },
      "IsInside");
  EXPECT_DEATH(
      {
        const storage::CriticalSection section;
        storage::ChildOptions options;
        options.argv = {"/bin/true"};
        IgnoreBecause(storage::ChildProcess::Start(options).status(), "it does not come back");
      },
      "IsInside");
}

}  // namespace
}  // namespace repotxn::testing
