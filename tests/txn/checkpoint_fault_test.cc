// A checkpoint whose disk fails: each sync in turn, in every way in which a sync fails. Method: the loop "the N-th sync
// fails", N growing until the checkpoint gets through without meeting the fault.
//
// Whatever fails: the checkpoint says so, nothing that was acknowledged is lost by the power cut that follows, also when
// the checkpoint was tried again in between and the disk then says that all is well.
#include "storage/check.h"
#include "tests/support/fault_file_system.h"
#include "tests/txn/crash_sweep.h"
#include "txn/staged_objects.h"

namespace repotxn::testing {
namespace {

using txn::CommitResult;
using txn::Transaction;

// How a sync fails, beyond its answer.
struct Failure {
  const char* name;
  bool later_syncs_lie;  // the kernel has marked the pages clean: the next sync "succeeds"
  bool is_sticky;
};
constexpr Failure kFailures[] = {{"once", false, false}, {"once, then it lies", true, false}, {"for good", false, true}};

class CheckpointFaultTest : public ::testing::Test {
 protected:
  static txn::StoreOptions Options() {
    txn::StoreOptions options = World::Options();
    options.segment_bytes = 64 << 10;
    options.direct_pack_refs_min = 2;
    return options;
  }
  // A store with everything that a checkpoint brings to disk: a new repository, a pack, large and small files, loose and
  // packed refs, rows.
  void SetUp() override {
    ASSERT_THAT(world_.Open(Options()), IsOk());
    id_ = world_.Create("r");
    ASSERT_TRUE(Set({"p", "q", "s"}, 1).committed());
    ASSERT_THAT(world_.store().Checkpoint(), IsOk());
    ASSERT_TRUE(Set({"p", "q", "s", "t"}, 2).committed());
    ASSERT_TRUE(Set({"main"}, 3).committed());
    const TransactionId id = world_.store().NewTransactionId();
    std::shared_ptr<txn::ObjectStaging> staging;
    txn::RunOptions run;
    run.begin.transaction_id = id;
    run.begin.request_id = "request";
    const CommitResult much = world_.store().Run(run, [&](Transaction& txn) -> absl::Status {
      REPOTXN_ASSIGN_OR_RETURN(const RepositoryId created, txn.CreateRepository(Path("g/new"), {}));
      REPOTXN_ASSIGN_OR_RETURN(staging, world_.store().StageObjects(id, Path("g/new"), ObjectFormat::kSha1));
      REPOTXN_RETURN_IF_ERROR(dynamic_cast<txn::StagedObjects&>(*staging).StageIndexedPack(
          absl::StrCat("pack-", std::string(40, 'a')), std::string(3000, 'P'), "index", "reverse"));
      REPOTXN_RETURN_IF_ERROR(txn.AddPack(created, staging));
      return txn.PutFile(created, "info/large", {std::string(70'000, 'L'), 0644});
    });
    ASSERT_TRUE(much.committed()) << much.status;
    staging.reset();
    acknowledged_ = Visible(world_);
  }
  CommitResult Set(const std::vector<std::string>& branches, int n) {
    return world_.store().Run({}, [&](Transaction& txn) {
      absl::Status status;
      for (const std::string& branch : branches) {
        status.Update(txn.UpdateRef(id_, {.name = Branch(branch), .expected = {}, .value = World::At(n)}));
      }
      return status;
    });
  }

  // What is wrong after the `occurrence`-th `operation` of a checkpoint fails; empty when nothing. Sets `has_fired`.
  std::string FaultOf(FileOperation operation, int64_t occurrence, const Failure& failure, bool* has_fired) {
    auto disk = world_.fs().CrashClone({CrashSurvival::kEverything, 0, 0});
    FaultFileSystem fault(disk.get());
    World world(static_cast<uint64_t>(occurrence));
    if (absl::Status opened = world.OpenOn(&fault, Options()); !opened.ok()) return opened.ToString();
    fault.AddRule({.operation = operation,
                   .occurrence = occurrence,
                   .status = absl::UnavailableError("sync failed"),
                   .is_sticky = failure.is_sticky,
                   .later_syncs_lie = failure.later_syncs_lie});
    const absl::Status checkpoint = world.store().Checkpoint();
    *has_fired = fault.fault_count() > 0;
    if (*has_fired == checkpoint.ok()) return absl::StrCat("answered ", checkpoint.ToString());
    if (*has_fired) {
      const bool is_poisoned = !world.store().Health().ok();
      poisonings_ += is_poisoned ? 1 : 0;
      const absl::Status again = world.store().Checkpoint();
      if (is_poisoned && again.ok()) return "a poisoned store took a checkpoint";
      if (is_poisoned && world.Set(id_, Branch("late"), World::At(5)).outcome != txn::CommitOutcome::kNotCommitted) {
        return "a poisoned store took a commit";
      }
    }
    auto left = disk->CrashClone({CrashSurvival::kNothing, 0, 0});
    world.Drop();
    World after(99);
    after.owned_fs() = std::move(left);
    if (absl::Status opened = after.Open(Options()); !opened.ok()) return opened.ToString();
    if (const std::string seen = Visible(after); seen != acknowledged_) return absl::StrCat("lost:\n", seen);
    return "";
  }
  // The same for every sync of a checkpoint; the number of faults met in `faults`.
  std::string FirstFault(int* faults) {
    for (const FileOperation operation : {FileOperation::kSync, FileOperation::kSyncFile,
                                          FileOperation::kSyncDirectory, FileOperation::kSyncAll}) {
      for (const Failure& failure : kFailures) {
        bool has_fired = true;
        for (int64_t n = 1; has_fired; ++n) {
          if (std::string wrong = FaultOf(operation, n, failure, &has_fired); !wrong.empty()) {
            return absl::StrCat(FileOperationName(operation), " ", n, ", ", failure.name, ": ", wrong);
          }
          *faults += has_fired ? 1 : 0;
        }
      }
    }
    return "";
  }

  World world_;
  RepositoryId id_;
  std::string acknowledged_;
  int poisonings_ = 0;
};

// C017, B22: the log is kept until what it holds is durable elsewhere, and a failed sync is the end of the store's writing.
TEST_F(CheckpointFaultTest, LosesNothingWhicheverSyncFails) {
  int faults = 0;
  EXPECT_EQ(FirstFault(&faults), "");
  // packed-refs, the file system, the position; what fails behind the position only leaves something to clear away.
  EXPECT_GE(faults, 3 * 3);
  EXPECT_GE(poisonings_, 3 * 3);
}

TEST_F(CheckpointFaultTest, NoticesAPositionThatIsAheadOfTheDisk) {
  const PlantedBug bug("txn.applied_before_sync");
  int faults = 0;
  EXPECT_NE(FirstFault(&faults), "");
}

}  // namespace
}  // namespace repotxn::testing
