// Judges the commands of a push against one snapshot, and stages those that hold.
//
// Used twice: in a read-only transaction before the pack is read (nothing is staged), and in each
// run of the commit's body. What is read there is a declared read, so a command that was judged
// good cannot have become bad at commit.
//
// Single-threaded.
#ifndef REPOTXN_DAEMON_PUSH_JUDGE_H_
#define REPOTXN_DAEMON_PUSH_JUDGE_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/push_policy.h"
#include "daemon/push_report.h"
#include "daemon/push_request.h"
#include "daemon/recent_changes.h"
#include "refs/ref_value.h"
#include "storage/id128.h"
#include "txn/transaction.h"

namespace repotxn::daemon {

// A repository's hooks: those whose file is there and executable. Which ones a push met is a
// declared read.
struct HookSet {
  static constexpr std::array<const char*, 3> kNames = {"pre-receive", "update", "post-receive"};
  std::array<bool, 3> present{};

  bool has_pre_receive() const { return present[0]; }
  bool has_update() const { return present[1]; }
  bool has_post_receive() const { return present[2]; }
  bool has_any_before() const { return present[0] || present[1]; }
  friend bool operator==(const HookSet&, const HookSet&) = default;
};

absl::StatusOr<HookSet> ReadHookSet(txn::Transaction& txn, const RepositoryId& id);
// From the repository's own `config`. A file that is malformed is kFailedPrecondition.
absl::StatusOr<PushPolicy> ReadPushPolicy(txn::Transaction& txn, const RepositoryId& id);
// The value with symbolic refs followed, at most 5 times; absent when the chain ends nowhere.
absl::StatusOr<refs::RefValue> ReadResolved(txn::Transaction& txn, const RepositoryId& id,
                                            const refs::RefName& name);

class PushJudge {
 public:
  // `changes` may be null. All must outlive the judge.
  PushJudge(const PushRequest& request, const RecentChanges* changes)
      : request_(request), changes_(changes) {}

  // Refuses in `report` (one entry a command, in order) what names, policy or old values forbid at
  // the transaction's snapshot. Entries already refused are left alone.
  absl::Status Judge(txn::Transaction& txn, const RepositoryId& id, const PushPolicy& policy,
                     PushReport* report) const;
  // The same for a repository that does not exist: every old value is absent.
  void JudgeWithoutRepository(PushReport* report) const;

  // Stages the commands that are not refused, deletions first, so that a ref may take the place of
  // a directory of refs. A command that cannot be staged is refused in `report`.
  absl::Status Stage(txn::Transaction& txn, const RepositoryId& id, PushReport* report) const;

  // The branch that HEAD of an empty repository is set to, given HEAD's target: none when that
  // target is among the created branches or no branch is created.
  std::string NewHeadTarget(absl::string_view head_target, const PushReport& report) const;

 private:
  // Empty when the name is good.
  static std::string JudgeName(const PushCommand& command);
  // Who gave `ref` the value that was found, as far as it is known: " by transaction <id> at LSN <n>", else "". A replay
  // knows it from the conflict that its attempt lost with; for another ref, or when the value was there before the push
  // began, `changes` may remember.
  std::string RivalOf(const txn::Transaction& txn, const RepositoryId& id, const PushCommand& command,
                      const refs::RefValue& found) const;
  void RefuseMismatch(txn::Transaction& txn, const RepositoryId& id, const PushCommand& command,
                      const refs::RefValue& found, RefReport* ref) const;
  absl::Status JudgeOne(txn::Transaction& txn, const RepositoryId& id, const PushPolicy& policy,
                        const PushCommand& command, RefReport* ref) const;

  const PushRequest& request_;
  const RecentChanges* const changes_;
};

// Why Transaction::UpdateRef() refused, for the report; the detail goes into `detail`.
std::string RefusalOf(const absl::Status& status, const std::string& name, std::string* detail);

}  // namespace repotxn::daemon

#endif  // REPOTXN_DAEMON_PUSH_JUDGE_H_
