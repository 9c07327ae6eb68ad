// What a transaction has staged so far: private to txn/.
#ifndef REPOTXN_TXN_STAGED_CHANGES_H_
#define REPOTXN_TXN_STAGED_CHANGES_H_

#include <algorithm>
#include <any>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "locks/derivation.h"
#include "locks/intent_queue.h"
#include "refs/ref_update.h"
#include "storage/wait_limit.h"
#include "txn/entry_effects.h"
#include "txn/repository_state.h"
#include "txn/staged_objects.h"
#include "txn/transaction.h"
#include "txn/transaction_life.h"
#include "txn/write_directories.h"
#include "wal/operation.h"

namespace repotxn::txn {

class StoreCore;
struct ObjectRemoval;

struct StagedRepository {
  RepositoryId id;
  // The live repository; nullptr for one that this transaction creates.
  std::shared_ptr<RepositoryState> live;
  std::optional<wal::CreateRepository> created;
  refs::RefStaging refs;
  // Names whose staged value is present or absent, for the D/F rule over the transaction's own view.
  std::set<std::string> present, absent;
  std::map<std::string, FileState> files;
  std::shared_ptr<StagedObjects> objects;
  // Operations on the repository as a whole, in the order of their calls.
  std::vector<wal::Operation> operations;
  bool is_removed = false;
  // Created by ForkRepository(): its refs go straight to packed-refs.
  bool is_fork = false;
  // Packs beside `objects`, whose files are payload already, and what keeps those that are new.
  std::vector<wal::AddPack> packs;
  std::vector<std::shared_ptr<StagedObjects>> more_objects;
  // Objects that are nowhere once its packs are removed.
  std::vector<ObjectId> removed_objects;
  // Objects that must be there still when it commits: those asked for; and, in what it borrows, those that it gives up.
  std::vector<ObjectId> needed_objects;
  std::vector<ObjectId> given_up_objects;
  // What it borrows from after this transaction; unset: unchanged.
  std::optional<std::vector<RepositoryId>> alternates;

  bool removes_packs() const {
    return std::any_of(operations.begin(), operations.end(),
                       [](const wal::Operation& operation) { return std::holds_alternative<wal::RemovePack>(operation); });
  }
  ObjectFormat format() const { return live != nullptr ? live->format() : created->format; }
};

// Results of the steps of Transaction::RunOnce: one for all plays of a body.
struct RunMemo {
  std::map<std::string, std::any> results;
};

struct StagedChanges {
  StagedChanges();
  ~StagedChanges();

  StoreCore* core = nullptr;
  TransactionId id;
  std::unique_ptr<TransactionLife> life;
  std::shared_ptr<RunMemo> memo;
  wal::Lsn snapshot_lsn;
  Access access = Access::kReadWrite;
  storage::WaitLimit limit;
  std::string request_id;
  bool is_attempt = false;  // of Run: the id stays live between attempts
  bool has_ended = false;   // by its owner
  // Commits of keys for which others stand in line are put off: unless this is one whose turn it is.
  bool has_turn = true;
  // Filled by a commit that lost, or was put off: the lines to stand in.
  std::vector<locks::IntentQueue::Claim> lines_to_stand_in;
  bool was_put_off = false;
  // Set by a commit whose caller left before the outcome was known: the commit itself lets the id go.
  bool is_detached = false;
  // Set for an entry that only fences its request id.
  bool fences_request = false;

  // Set when objects are removed (txn/object_looks.h).
  std::unique_ptr<ObjectRemoval> removal;

  // Kept while packs are staged that StagedObjects does not keep.
  std::shared_ptr<TransactionPayload> payload;

  locks::DeclaredReads reads;
  std::map<RepositoryId, StagedRepository> repositories;
  // The name space as this transaction leaves it: what it took, and (nullopt) gave up.
  std::map<std::string, std::optional<PathRow>> paths;
  std::set<std::string> groups;          // to be ensured
  std::set<std::string> removed_groups;
  // Key space: partition and key; nullopt: deleted.
  std::map<std::pair<wal::PartitionId, std::string>, std::optional<std::string>> keys;
  std::string actor, origin;
  absl::Status previous_conflict;
  std::vector<std::string> push_options;
  // Gone when the transaction ends.
  std::vector<std::unique_ptr<WriteDirectories>> write_snapshots;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_STAGED_CHANGES_H_
