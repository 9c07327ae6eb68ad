// Random transactions over many repositories, with restarts and crashes in between, against a model that runs them one
// after another in the order of their LSNs.
//
// The model is the serial oracle: whatever several transactions that were open at the same time did, the store must
// look as if each had run alone, at its LSN. REPOTXN_HISTORY_TRANSACTIONS sets the number (default: 10,000 for the first seed, 500 for others).
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::KeySpace;
using txn::Transaction;

constexpr int kRepositories = 20;
constexpr int kOpenMax = 6;
constexpr int kRefs = 8, kFiles = 4, kKeys = 6;

// A repository as the model has it.
struct ModelRepository {
  std::map<std::string, int> refs;             // branch -> number of its commit
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> keys;
  std::string path;
  bool is_live = true;
};

// What one transaction did, to be done again on the model. A step reads the model and gives what it sees.
using Model = std::vector<ModelRepository>;
using Step = std::function<std::string(Model&)>;

// A transaction in flight: what it has been told, and its steps in the order in which they were made.
struct InFlight {
  std::unique_ptr<Transaction> txn;
  std::vector<std::pair<Step, std::string>> steps;  // with what the store told
};

class SerialHistoryTest : public ::testing::TestWithParam<int> {
 protected:
  SerialHistoryTest() : world_(static_cast<uint64_t>(GetParam())), random_(static_cast<uint64_t>(GetParam()) + 1000) {}

  void SetUp() override {
    options_ = SmallOptions();
    options_.undelete_retention = absl::Hours(100'000);
    options_.idle_lease = absl::InfiniteDuration();
    ASSERT_THAT(world_.Open(options_), IsOk());
    for (int i = 0; i < kRepositories; ++i) {
      ModelRepository repository;
      repository.path = absl::StrCat("g", i % 3, "/r", i);
      ids_.push_back(world_.Create(repository.path));
      model_.push_back(std::move(repository));
    }
  }
  uint64_t Draw(uint64_t n) { return random_.Below(n); }

  // One read or write, drawn; performed on the transaction now and kept for the model.
  void Act(InFlight* flight) {
    const auto r = static_cast<size_t>(Draw(kRepositories));
    const std::string ref = absl::StrCat("b", Draw(kRefs)), file = absl::StrCat("info/f", Draw(kFiles)),
                      key = absl::StrCat("k", Draw(kKeys));
    const int n = static_cast<int>(Draw(10));
    Transaction& txn = *flight->txn;
    const RepositoryId id = ids_[r];
    std::string told;
    Step step;
    switch (Draw(11)) {
      case 0:
      case 1: {
        const auto value = txn.ReadRef(id, Branch(ref));
        told = Told(value.status(), value.ok() ? World::Name(*value) : "");
        step = [r, ref](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          const auto it = m[r].refs.find(ref);
          return it == m[r].refs.end() ? World::Name(refs::RefValue::Absent()) : absl::StrCat("c", it->second);
        };
        break;
      }
      case 2: {
        const auto listed = txn.ListRefs(id, "refs/heads/");
        told = Told(listed.status(), "");
        if (listed.ok()) {
          for (const auto& [name, value] : *listed) absl::StrAppend(&told, name.text(), "=", World::Name(value), " ");
        }
        step = [r](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          std::string text;
          for (const auto& [name, number] : m[r].refs) absl::StrAppend(&text, "refs/heads/", name, "=c", number, " ");
          return text;
        };
        break;
      }
      case 3:
      case 4: {
        told = Told(txn.UpdateRef(id, {.name = Branch(ref), .expected = {}, .value = World::At(n)}), "");
        step = [r, ref, n](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          m[r].refs[ref] = n;
          return "";
        };
        break;
      }
      case 5: {
        told = Told(txn.UpdateRef(id, {.name = Branch(ref), .expected = {}, .value = refs::RefValue::Absent()}), "");
        step = [r, ref](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          m[r].refs.erase(ref);
          return "";
        };
        break;
      }
      case 6: {
        const std::string content = absl::StrCat(Draw(1000));
        told = Told(txn.PutFile(id, file, {content, 0644}), "");
        step = [r, file, content](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          m[r].files[file] = content;
          return "";
        };
        break;
      }
      case 7: {
        const auto value = txn.ReadFile(id, file);
        told = value.ok() ? value->content : "NOT_FOUND";
        step = [r, file](Model& m) -> std::string {
          const auto it = m[r].files.find(file);
          return !m[r].is_live || it == m[r].files.end() ? "NOT_FOUND" : it->second;
        };
        break;
      }
      case 8: {
        const std::string value = absl::StrCat(Draw(1000));
        told = Told(txn.PutKey(KeySpace::OfRepository(id), key, value), "");
        step = [r, key, value](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          m[r].keys[key] = value;
          return "";
        };
        break;
      }
      case 9: {
        const auto rows = txn.ScanKeys(KeySpace::OfRepository(id), "k1", "k4", 100);
        told = Told(rows.status(), "");
        if (rows.ok()) {
          for (const auto& [name, value] : *rows) absl::StrAppend(&told, name, "=", value, " ");
        }
        step = [r](Model& m) -> std::string {
          if (!m[r].is_live) return "NOT_FOUND";
          std::string text;
          for (auto it = m[r].keys.lower_bound("k1"); it != m[r].keys.end() && it->first < "k4"; ++it) {
            absl::StrAppend(&text, it->first, "=", it->second, " ");
          }
          return text;
        };
        break;
      }
      default:
        ActOnLife(flight, r, &told, &step);
        break;
    }
    flight->steps.emplace_back(std::move(step), std::move(told));
  }
  // Now and then a repository is deleted, brought back, or moved.
  void ActOnLife(InFlight* flight, size_t r, std::string* told, Step* step) {
    Transaction& txn = *flight->txn;
    const RepositoryId id = ids_[r];
    if (Draw(3) != 0) {
      const std::string path = absl::StrCat("h", Draw(4), "/m", r, "-", Draw(3));
      *told = Told(txn.MoveRepository(id, Path(path)), "");
      *step = [r, path](Model& m) -> std::string {
        if (!m[r].is_live) return "NOT_FOUND";
        m[r].path = path;
        return "";
      };
      return;
    }
    absl::Status status = txn.DeleteRepository(id);
    const bool is_undeletion = absl::IsNotFound(status);
    const std::string back = absl::StrCat("back/r", r);
    if (is_undeletion) status = txn.UndeleteRepository(id, Path(back));
    *told = absl::StrCat(Told(status, ""), is_undeletion ? "back" : "gone");
    *step = [r, back](Model& m) -> std::string {
      m[r].is_live = !m[r].is_live;
      if (m[r].is_live) m[r].path = back;
      return m[r].is_live ? "back" : "gone";
    };
  }
  static std::string Told(const absl::Status& status, const std::string& value) {
    return status.ok() ? value : std::string(absl::StatusCodeToString(status.code()));
  }

  // Commits; a transaction that made it must have been told what the model tells it at its place.
  void Finish(InFlight flight) {
    // A transaction whose step failed in a way that stages nothing, and that the model does not know, is given up.
    for (const auto& [step, told] : flight.steps) {
      if (told == "FAILED_PRECONDITION" || told == "FAILED_PRECONDITIONback" || told == "FAILED_PRECONDITIONgone" || told == "NOT_FOUNDback") return;
    }
    const CommitResult result = flight.txn->Commit();
    if (!result.committed()) {
      EXPECT_TRUE(absl::IsAborted(result.status)) << result.status;
      ++aborted_;
      return;
    }
    // Nothing changed: it read at its snapshot, which has passed.
    if (result.lsn == wal::Lsn()) return;
    EXPECT_GT(result.lsn, last_);
    last_ = result.lsn;
    ++committed_;
    for (const auto& [step, told] : flight.steps) EXPECT_EQ(step(model_), told);
  }

  void Compare() {
    for (size_t r = 0; r < ids_.size(); ++r) {
      const ModelRepository& model = model_[r];
      auto txn = world_.Begin();
      if (!model.is_live) {
        EXPECT_THAT(txn->ReadRef(ids_[r], Branch("b0")), StatusIs(absl::StatusCode::kNotFound));
        continue;
      }
      EXPECT_EQ(txn->Describe(ids_[r])->path, model.path);
      EXPECT_EQ(*txn->OpenRepository(Path(model.path)), ids_[r]);
      std::map<std::string, int> refs;
      const auto listed = txn->ListRefs(ids_[r], "refs/heads/");
      ASSERT_THAT(listed, IsOk());
      for (const auto& [name, value] : *listed) {
        refs[name.text().substr(11)] = World::Name(value)[1] - '0';
      }
      EXPECT_EQ(refs, model.refs);
      const auto keys = txn->ScanKeys(KeySpace::OfRepository(ids_[r]), "", "", 1000);
      ASSERT_THAT(keys, IsOk());
      EXPECT_EQ((std::map<std::string, std::string>(keys->begin(), keys->end())), model.keys);
      for (const auto& [file, content] : model.files) {
        const auto read = txn->ReadFile(ids_[r], file);
        ASSERT_THAT(read, IsOk());
        EXPECT_EQ(read->content, content);
      }
    }
  }

  World world_;
  SeededRandom random_;
  txn::StoreOptions options_;
  std::vector<RepositoryId> ids_;
  Model model_;
  wal::Lsn last_;
  int committed_ = 0, aborted_ = 0;
};

TEST_P(SerialHistoryTest, LooksAsIfEachTransactionHadRunAlone) {
  int wanted = GetParam() == 1 ? 10'000 : 500;
  if (const char* count = std::getenv("REPOTXN_HISTORY_TRANSACTIONS")) {
    ASSERT_TRUE(absl::SimpleAtoi(count, &wanted));
  }
  std::vector<InFlight> open;
  for (int finished = 0; finished < wanted;) {
    if (open.size() < kOpenMax && Draw(2) == 0) {
      InFlight flight;
      flight.txn = world_.Begin();
      open.push_back(std::move(flight));
      continue;
    }
    if (open.empty()) continue;
    const size_t which = Draw(open.size());
    if (open[which].steps.size() < 5 && Draw(3) != 0) {
      Act(&open[which]);
      continue;
    }
    Finish(std::move(open[which]));
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    ++finished;
    if (Draw(15) == 0) {
      ASSERT_THAT(world_.store().RunBackgroundWork(), IsOk());
    }
    if (Draw(60) != 0) continue;
    open.clear();
    if (Draw(2) == 0) {
      ASSERT_THAT(world_.store().Close(), IsOk());
      world_.Drop();
    } else {
      world_.CrashAndKeep({CrashSurvival::kRandom, Draw(1000), 0});
    }
    ASSERT_THAT(world_.Open(options_), IsOk());
    Compare();
    if (HasFailure()) return;
  }
  open.clear();
  Compare();
  ASSERT_THAT(world_.store().Close(), IsOk());
  world_.Drop();
  ASSERT_THAT(world_.Open(options_), IsOk());
  Compare();
  EXPECT_GT(committed_, wanted / 4);
  EXPECT_GT(aborted_, 0);
  RecordProperty("committed", committed_);
  RecordProperty("aborted", aborted_);
}
INSTANTIATE_TEST_SUITE_P(Seeds, SerialHistoryTest, ::testing::Range(1, 9));

}  // namespace
}  // namespace repotxn::testing
