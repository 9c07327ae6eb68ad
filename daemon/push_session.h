// One push from its parsed commands to its report: steps 1 to 6 of receive_pack.h.
//
// Single-threaded.
#ifndef REPOTXN_DAEMON_PUSH_SESSION_H_
#define REPOTXN_DAEMON_PUSH_SESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/band_writer.h"
#include "daemon/git_hook.h"
#include "daemon/push_judge.h"
#include "daemon/push_report.h"
#include "daemon/push_request.h"
#include "daemon/receive_pack.h"
#include "daemon/recent_changes.h"
#include "txn/object_staging.h"
#include "txn/repository_path.h"
#include "txn/store.h"

namespace repotxn::daemon {

class PushSession {
 public:
  struct Context {
    txn::Store* store = nullptr;
    const ReceivePackOptions* options = nullptr;
    RecentChanges* changes = nullptr;
    txn::RepositoryPath path;
    std::string actor;   // for the log
    std::string origin;  // address of the client, for the log
    absl::Time deadline;
  };

  // All of the context and `request` must outlive the session.
  PushSession(Context context, const PushRequest& request);

  // Step 1. kNotFound when the repository is absent and not created by pushes; other errors are
  // the store's. The report has the refusals so far.
  absl::Status Prepare();
  // Steps 2 to 6. The pack is read from `pack` unless nothing is left to do.
  PushReport Execute(const txn::ByteSource& pack, BandWriter& out);

 private:
  bool is_atomic() const { return request_.capabilities.atomic; }
  // Whether something is left to commit in `report`; with `atomic` one refusal refuses all.
  bool Narrow(PushReport* report) const;
  void FailUnpack(const absl::Status& status, PushReport* report) const;

  absl::Status IndexPack(const txn::ByteSource& pack);
  void RunHooksBefore(BandWriter& out);
  // Runs `hooks/<name>`; an error counts as refusal, and the client is told.
  bool RunOneHook(const HookPlace& place, const char* name,
                  const std::vector<std::string>& arguments, absl::string_view input,
                  BandWriter& out) const;
  void RunPostReceive(BandWriter& out) const;
  // "<old> <new> <name>" lines of the commands that are not refused.
  std::string HookInput(const PushReport& report) const;
  HookPlace PlaceAt(const std::string& directory, bool is_quarantine) const;

  // Refuses what does not descend from the old value; asks Git once for each command.
  absl::Status CheckFastForwards(PushReport* report);
  absl::StatusOr<bool> IsFastForward(size_t index);

  absl::Status Body(txn::Transaction& txn);
  absl::Status StageHead(txn::Transaction& txn, const RepositoryId& id);
  absl::StatusOr<RepositoryId> OpenOrCreate(txn::Transaction& txn) const;
  void NoteChanges(const RepositoryId& id, wal::Lsn lsn) const;
  void ReportOutcome(const txn::CommitResult& result);

  const Context context_;
  const PushRequest& request_;
  const PushJudge judge_;
  const TransactionId transaction_id_;

  // What step 1 found.
  bool is_existing_ = false;
  bool may_be_empty_ = true;  // no branch and no HEAD target
  HookSet hooks_;
  PushPolicy policy_;

  std::shared_ptr<txn::ObjectStaging> staging_;  // null: only deletions
  std::vector<std::optional<bool>> fast_forwards_;
  // Refusals that no replay takes back; each run of the body begins with them.
  PushReport settled_;
  // Of the body's last run.
  PushReport attempt_;
  RepositoryId repository_;
  bool has_nothing_left_ = false;
};

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PUSH_SESSION_H_
