#include "daemon/push_judge.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "locks/lock_key.h"
#include "locks/verdict.h"
#include "objects/closure_check.h"
#include "objects/error_detail.h"
#include "refs/ref_error.h"
#include "refs/ref_name.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

using refs::RefName;
using refs::RefValue;

constexpr int kSymbolicDepthMax = 5;
constexpr absl::string_view kBranches = "refs/heads/";

std::string ToString(absl::string_view text) { return std::string(text.data(), text.size()); }

// What a command demands or gives: the zero id is absence.
RefValue ValueOf(const ObjectId& id) { return RefValue::Object(id); }

}  // namespace

absl::StatusOr<HookSet> ReadHookSet(txn::Transaction& txn, const RepositoryId& id) {
  HookSet hooks;
  for (size_t i = 0; i < HookSet::kNames.size(); ++i) {
    absl::StatusOr<txn::FileValue> file =
        txn.ReadFile(id, absl::StrCat("hooks/", HookSet::kNames[i]));
    if (!file.ok() && !absl::IsNotFound(file.status())) return file.status();
    hooks.present[i] = file.ok() && (file->mode & 0111) != 0;
  }
  return hooks;
}

absl::StatusOr<PushPolicy> ReadPushPolicy(txn::Transaction& txn, const RepositoryId& id) {
  absl::StatusOr<txn::FileValue> file = txn.ReadFile(id, "config");
  if (absl::IsNotFound(file.status())) return PushPolicy();
  REPOTXN_RETURN_IF_ERROR(file.status());
  absl::StatusOr<GitConfig> config = GitConfig::Parse(file->content);
  // Not guessing: a policy that cannot be read may forbid this push.
  if (!config.ok()) {
    return absl::FailedPreconditionError("the configuration of the repository is malformed");
  }
  return PushPolicy::FromConfig(*config);
}

absl::StatusOr<RefValue> ReadResolved(txn::Transaction& txn, const RepositoryId& id,
                                      const RefName& name) {
  RefName at = name;
  for (int depth = 0; depth <= kSymbolicDepthMax; ++depth) {
    REPOTXN_ASSIGN_OR_RETURN(RefValue value, txn.ReadRef(id, at));
    if (!value.is_symbolic()) return value;
    at = value.target();
  }
  return RefValue::Absent();
}

std::string PushJudge::JudgeName(const PushCommand& command) {
  const absl::StatusOr<RefName> name = RefName::Parse(command.name);
  return name.ok() && !name->IsHead() ? "" : ToString(reason::kBadName);
}

void PushJudge::JudgeWithoutRepository(PushReport* report) const {
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    const PushCommand& command = request_.commands[i];
    RefReport& ref = report->refs[i];
    if (!ref.ok()) continue;
    ref.refusal = JudgeName(command);
    if (ref.ok() && !command.is_create()) {
      ref.refusal = ToString(reason::kUpdateFailed);
      ref.detail = absl::StrCat(command.name, " is absent, the push expected ",
                                command.old_value.ToHex());
    }
  }
}

std::string PushJudge::RivalOf(const txn::Transaction& txn, const RepositoryId& id,
                               const PushCommand& command, const RefValue& found) const {
  const auto conflict = locks::ConflictDetailOf(txn.previous_conflict());
  if (conflict.has_value() && conflict->rule == locks::ConflictRule::kRefWritten &&
      conflict->key == locks::LockKey::Ref(id, command.name).ToString()) {
    return absl::StrCat(" by transaction ", conflict->conflicting_transaction.ToHex(), " at LSN ",
                        conflict->conflicting_lsn.value());
  }
  if (changes_ == nullptr) return "";
  const ObjectId value =
      found.is_object() ? found.oid() : ObjectId::Zero(request_.capabilities.object_format);
  const auto change = changes_->Find(id, command.name, value);
  if (!change.has_value() || change->transaction_id == txn.id()) return "";
  std::string by = absl::StrCat(" by transaction ", change->transaction_id.ToHex());
  if (change->lsn != wal::Lsn()) absl::StrAppend(&by, " at LSN ", change->lsn.value());
  return by;
}

void PushJudge::RefuseMismatch(txn::Transaction& txn, const RepositoryId& id,
                               const PushCommand& command, const RefValue& found,
                               RefReport* ref) const {
  const std::string by = RivalOf(txn, id, command, found);
  const std::string is = found.is_absent() ? "absent" : absl::StrCat("at ", found.ToString());
  const std::string wanted =
      command.is_create() ? "it to be absent" : command.old_value.ToHex();
  const std::string seen = absl::StrCat("at LSN ", txn.snapshot_lsn().value());
  ref->refusal = absl::StrCat(reason::kUpdateFailed, ": changed", by.empty() ? " before" : by,
                              by.empty() ? absl::StrCat(" ", seen.substr(3)) : "");
  ref->detail = absl::StrCat(command.name, " changed", by, ": it is ", is, " ", seen,
                             ", the push expected ", wanted);
}

absl::Status PushJudge::JudgeOne(txn::Transaction& txn, const RepositoryId& id,
                                 const PushPolicy& policy, const PushCommand& command,
                                 RefReport* ref) const {
  ref->refusal = JudgeName(command);
  if (!ref->ok()) return absl::OkStatus();
  const RefName name = *RefName::Parse(command.name);
  if (policy.IsHidden(command.name)) {
    ref->refusal = ToString(reason::kHidden);
    return absl::OkStatus();
  }
  if (command.is_delete() && policy.deny_deletes) {
    ref->refusal = ToString(reason::kDeletionProhibited);
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(const RefValue found, ReadResolved(txn, id, name));
  if (!found.SameAs(ValueOf(command.old_value))) {
    RefuseMismatch(txn, id, command, found, ref);
    return absl::OkStatus();
  }
  if (command.is_delete() && !found.is_absent() && policy.deny_delete_current) {
    REPOTXN_ASSIGN_OR_RETURN(const RefValue head, txn.ReadRef(id, RefName::Head()));
    if (head.is_symbolic() && head.target() == name) {
      ref->refusal = ToString(reason::kCurrentBranch);
    }
  }
  return absl::OkStatus();
}

absl::Status PushJudge::Judge(txn::Transaction& txn, const RepositoryId& id,
                              const PushPolicy& policy, PushReport* report) const {
  REPOTXN_DCHECK(report->refs.size() == request_.commands.size());
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    if (!report->refs[i].ok()) continue;
    REPOTXN_RETURN_IF_ERROR(
        JudgeOne(txn, id, policy, request_.commands[i], &report->refs[i]));
  }
  return absl::OkStatus();
}

absl::Status PushJudge::Stage(txn::Transaction& txn, const RepositoryId& id,
                              PushReport* report) const {
  for (const bool deletes : {true, false}) {
    for (size_t i = 0; i < request_.commands.size(); ++i) {
      const PushCommand& command = request_.commands[i];
      RefReport& ref = report->refs[i];
      if (!ref.ok() || command.is_delete() != deletes) continue;
      REPOTXN_ASSIGN_OR_RETURN(const RefName name, RefName::Parse(command.name));
      const absl::Status status = txn.UpdateRef(
          id, refs::RefUpdate{name, ValueOf(command.old_value), ValueOf(command.new_value), false});
      if (status.ok()) continue;
      // A command that cannot hold is the client's matter; anything else ends the push.
      if (!absl::IsFailedPrecondition(status) && !absl::IsInvalidArgument(status)) return status;
      ref.refusal = RefusalOf(status, command.name, &ref.detail);
    }
  }
  return absl::OkStatus();
}

std::string PushJudge::NewHeadTarget(absl::string_view head_target,
                                     const PushReport& report) const {
  std::string first;
  bool has_master = false;
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    const PushCommand& command = request_.commands[i];
    if (!report.refs[i].ok() || command.is_delete()) continue;
    if (command.name == head_target) return "";
    if (command.name == "refs/heads/master") has_master = true;
    if (first.empty() && absl::StartsWith(command.name, kBranches)) first = command.name;
  }
  return has_master ? "refs/heads/master" : first;
}

std::string RefusalOf(const absl::Status& status, const std::string& name, std::string* detail) {
  if (const auto conflict = locks::ConflictDetailOf(status)) {
    *detail = absl::StrCat(name, ": ", conflict->rule_text(), " (", conflict->key,
                           ") by transaction ", conflict->conflicting_transaction.ToHex(),
                           " at LSN ", conflict->conflicting_lsn.value(), ", after LSN ",
                           conflict->snapshot_lsn.value());
    return absl::StrCat(reason::kUpdateFailed, ": changed by transaction ",
                        conflict->conflicting_transaction.ToHex(), " at LSN ",
                        conflict->conflicting_lsn.value());
  }
  if (const auto mismatch = refs::RefMismatchDetail(status)) {
    *detail = absl::StrCat(name, " is ", mismatch->found, ", the push expected ",
                           mismatch->expected);
    return ToString(reason::kUpdateFailed);
  }
  if (const auto blocked = refs::DirectoryFileDetail(status)) {
    *detail = absl::StrCat("cannot have both ", blocked->wanted, " and ", blocked->blocked_by,
                           ": one is a directory of the other");
    return absl::StrCat(reason::kUpdateFailed, ": ", blocked->blocked_by, " exists");
  }
  const std::string oid = objects::ErrorDetail(status, "oid");
  if (!oid.empty()) *detail = absl::StrCat(name, ": object ", oid);
  for (const objects::TipFaultKind kind :
       {objects::TipFaultKind::kMissing, objects::TipFaultKind::kNotACommit,
        objects::TipFaultKind::kOtherFormat}) {
    const absl::string_view known = objects::TipFaultReason(kind);
    if (status.message() == known) return ToString(known);
  }
  // It was there when the pack was proved, or the ref judged.
  if (!oid.empty()) return absl::StrCat(reason::kMissingObjects, ": removed meanwhile, push again");
  return absl::StrCat(reason::kUpdateFailed, ": ", status.message());
}

}  // namespace repotxn::daemon
