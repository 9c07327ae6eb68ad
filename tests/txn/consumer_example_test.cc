// Goal: the example of docs/embedding.md compiles, does what the text around it says, and is the one that stands there.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/posix_file_system.h"
#include "tests/txn/world.h"

namespace repotxn::txn {
namespace {

// begin of the example
absl::Status SendMailForCommits(Store& store, const std::function<absl::Status(const ConsumedEntry&)>& send) {
  const absl::Status made = store.CreateConsumer("mail", {});
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  while (true) {
    const auto entries = store.NextEntries("mail", {});
    if (!entries.ok()) return entries.status();
    for (const ConsumedEntry& entry : *entries) {
      if (absl::Status sent = send(entry); !sent.ok()) return sent;
      if (absl::Status noted = store.AcknowledgeEntries("mail", entry.lsn); !noted.ok()) return noted;
    }
  }
}
// end of the example

using repotxn::testing::Branch;
using repotxn::testing::IsOk;
using repotxn::testing::StatusIs;
using repotxn::testing::World;

// B23
TEST(ConsumerExampleTest, SendsWhatTheLastRunDidNotAndEndsWithTheStore) {
  World world;
  ASSERT_THAT(world.Open(), IsOk());
  const RepositoryId id = world.Create("r");
  ASSERT_THAT(world.store().CreateConsumer("mail", {}), IsOk());
  std::vector<wal::Lsn> committed, sent;
  for (int n = 1; n <= 3; ++n) committed.push_back(world.Set(id, Branch("main"), World::At(n)).lsn);

  // The second one fails; the run after it begins there.
  int calls = 0;
  const auto fail_once = [&](const ConsumedEntry& entry) {
    if (++calls == 2) return absl::UnavailableError("no mail server");
    sent.push_back(entry.lsn);
    return absl::OkStatus();
  };
  EXPECT_THAT(SendMailForCommits(world.store(), fail_once), StatusIs(absl::StatusCode::kUnavailable));
  absl::Status ended;
  std::thread mailer([&] { ended = SendMailForCommits(world.store(), fail_once); });
  while (world.store().ListConsumers()[0].lag_entries > 0) std::this_thread::yield();
  EXPECT_THAT(world.store().Close(), IsOk());
  mailer.join();

  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(sent, committed);
}

TEST(ConsumerExampleTest, IsTheOneOfTheDocument) {
  auto fs = storage::OpenPosixFileSystem(REPOTXN_SOURCE_DIR);
  ASSERT_THAT(fs, IsOk());
  const auto source =
      storage::ReadFile(**fs, storage::StorePath::Literal("tests/txn/consumer_example_test.cc"));
  const auto document = storage::ReadFile(**fs, storage::StorePath::Literal("docs/embedding.md"));
  ASSERT_THAT(source, IsOk());
  ASSERT_THAT(document, IsOk());
  const std::string begin = "// begin of the example\n", end = "// end of the example\n";
  const size_t from = source->find(begin) + begin.size();

  const std::string example = source->substr(from, source->find(end) - from);

  EXPECT_GT(example.size(), 500u);
  EXPECT_TRUE(absl::StrContains(*document, absl::StrCat("```cpp\n", example, "```\n")));
}

}  // namespace
}  // namespace repotxn::txn
