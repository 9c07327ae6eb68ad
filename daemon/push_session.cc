#include "daemon/push_session.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "objects/error_detail.h"
#include "objects/git_child.h"
#include "refs/ref_name.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::daemon {
namespace {

using refs::RefName;
using refs::RefValue;

constexpr absl::string_view kBranches = "refs/heads/";
constexpr absl::Duration kAncestryTimeout = absl::Minutes(2);

std::string ToString(absl::string_view text) { return std::string(text.data(), text.size()); }

}  // namespace

PushSession::PushSession(Context context, const PushRequest& request)
    : context_(std::move(context)),
      request_(request),
      judge_(request, context_.changes),
      transaction_id_(context_.store->NewTransactionId()),
      fast_forwards_(request.commands.size()) {
  for (const PushCommand& command : request.commands) {
    settled_.refs.push_back(RefReport{command.name, "", ""});
  }
}

bool PushSession::Narrow(PushReport* report) const {
  if (is_atomic() && report->HasRefusal()) {
    report->RefuseAll(reason::kAtomicFailed);
    return false;
  }
  for (const RefReport& ref : report->refs) {
    if (ref.ok()) return true;
  }
  return false;
}

absl::Status PushSession::Prepare() {
  txn::BeginOptions begin;
  begin.access = txn::Access::kReadOnly;
  begin.deadline = context_.deadline;
  REPOTXN_ASSIGN_OR_RETURN(std::unique_ptr<txn::Transaction> txn, context_.store->Begin(begin));
  absl::StatusOr<RepositoryId> id = txn->OpenRepository(context_.path);
  is_existing_ = id.ok();
  if (!id.ok()) {
    if (!absl::IsNotFound(id.status()) || !context_.options->create_on_push) return id.status();
    judge_.JudgeWithoutRepository(&settled_);
    if (request_.capabilities.object_format != ObjectFormat::kSha1) {
      settled_.RefuseAll("a repository made by a push uses sha1");
    }
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryInfo info, txn->Describe(*id));
  if (info.format != request_.capabilities.object_format) {
    settled_.RefuseAll(absl::StrCat("wrong object format: the repository uses ",
                                    ObjectFormatName(info.format)));
    return absl::OkStatus();
  }
  REPOTXN_ASSIGN_OR_RETURN(policy_, ReadPushPolicy(*txn, *id));
  REPOTXN_ASSIGN_OR_RETURN(hooks_, ReadHookSet(*txn, *id));
  REPOTXN_RETURN_IF_ERROR(judge_.Judge(*txn, *id, policy_, &settled_));

  REPOTXN_ASSIGN_OR_RETURN(const RefValue head, ReadResolved(*txn, *id, RefName::Head()));
  may_be_empty_ = head.is_absent();
  if (may_be_empty_) {
    REPOTXN_ASSIGN_OR_RETURN(const auto branches, txn->ListRefs(*id, kBranches));
    may_be_empty_ = branches.empty();
  }
  return absl::OkStatus();
}

void PushSession::FailUnpack(const absl::Status& status, PushReport* report) const {
  const std::string oid = objects::ErrorDetail(status, "oid");
  const bool is_missing = absl::IsFailedPrecondition(status);
  report->unpack_error = absl::StrCat(status.message(), oid.empty() ? "" : " ", oid);
  absl::string_view why = reason::kUnpackerError;
  // A shallow client may lack the history that its new root stands on.
  if (is_missing) {
    why = request_.shallow.empty() ? reason::kMissingObjects : reason::kShallowNotAllowed;
  }
  report->RefuseAll(why);
  const std::string errors = objects::ErrorDetail(status, "stderr");
  if (!report->refs.empty() && report->refs[0].detail.empty()) report->refs[0].detail = errors;
}

absl::Status PushSession::IndexPack(const txn::ByteSource& pack) {
  REPOTXN_ASSIGN_OR_RETURN(staging_,
                           context_.store->StageObjects(transaction_id_, context_.path,
                                                        request_.capabilities.object_format));
  txn::IndexPackOptions options;
  options.pack_bytes_max = context_.options->pack_bytes_max;
  options.timeout = context_.deadline - absl::Now();
  options.fsck_objects = policy_.fsck_objects;
  return staging_->IndexPack(pack, options);
}

PushReport PushSession::Execute(const txn::ByteSource& pack, BandWriter& out) {
  if (!Narrow(&settled_)) return settled_;
  if (request_.has_pack()) {
    const absl::Status status = IndexPack(pack);
    if (!status.ok()) {
      FailUnpack(status, &settled_);
      return settled_;
    }
  }
  out.StartTicking();
  if (policy_.deny_non_fast_forwards) {
    const absl::Status status = CheckFastForwards(&settled_);
    if (!status.ok()) settled_.RefuseAll(status.message());
    if (!Narrow(&settled_)) return settled_;
  }
  if (hooks_.has_any_before()) {
    RunHooksBefore(out);
    if (!Narrow(&settled_)) return settled_;
  }
  if (staging_ != nullptr) {
    const absl::Status status = staging_->Seal();
    if (!status.ok()) {
      FailUnpack(status, &settled_);
      return settled_;
    }
  }
  txn::RunOptions run;
  run.begin.deadline = context_.deadline;
  run.begin.transaction_id = transaction_id_;
  run.retries_max = context_.options->retries_max;
  const txn::CommitResult result =
      context_.store->Run(run, [this](txn::Transaction& txn) { return Body(txn); });
  ReportOutcome(result);
  if (result.committed() && hooks_.has_post_receive()) RunPostReceive(out);
  return attempt_;
}

absl::StatusOr<RepositoryId> PushSession::OpenOrCreate(txn::Transaction& txn) const {
  absl::StatusOr<RepositoryId> id = txn.OpenRepository(context_.path);
  if (id.ok() || !absl::IsNotFound(id.status()) || !context_.options->create_on_push) return id;
  txn::CreateOptions create;
  create.format = request_.capabilities.object_format;
  return txn.CreateRepository(context_.path, create);
}

absl::Status PushSession::Body(txn::Transaction& txn) {
  attempt_ = settled_;
  has_nothing_left_ = false;
  txn.SetActor(context_.actor, context_.origin);
  if (request_.capabilities.push_options) txn.SetPushOptions(request_.options);

  REPOTXN_ASSIGN_OR_RETURN(repository_, OpenOrCreate(txn));
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryInfo info, txn.Describe(repository_));
  if (info.format != request_.capabilities.object_format) {
    return absl::FailedPreconditionError("the repository was made with another object format");
  }
  REPOTXN_ASSIGN_OR_RETURN(const HookSet hooks, ReadHookSet(txn, repository_));
  if (hooks != hooks_) {
    return absl::FailedPreconditionError("the hooks changed during the push, push again");
  }
  REPOTXN_ASSIGN_OR_RETURN(const PushPolicy policy, ReadPushPolicy(txn, repository_));
  REPOTXN_RETURN_IF_ERROR(judge_.Judge(txn, repository_, policy, &attempt_));
  if (policy.deny_non_fast_forwards) REPOTXN_RETURN_IF_ERROR(CheckFastForwards(&attempt_));
  if (Narrow(&attempt_)) {
    // The pack first: the new tips are looked for in it.
    if (staging_ != nullptr && staging_->has_pack()) {
      REPOTXN_RETURN_IF_ERROR(txn.AddPack(repository_, staging_));
    }
    if (may_be_empty_) REPOTXN_RETURN_IF_ERROR(StageHead(txn, repository_));
    REPOTXN_RETURN_IF_ERROR(judge_.Stage(txn, repository_, &attempt_));
  }
  if (!Narrow(&attempt_)) {
    has_nothing_left_ = true;
    return absl::CancelledError("every command of the push was refused");
  }
  // Before the commit, so that whoever sees the new values also finds who made them.
  NoteChanges(repository_, wal::Lsn::Zero());
  return absl::OkStatus();
}

absl::Status PushSession::StageHead(txn::Transaction& txn, const RepositoryId& id) {
  REPOTXN_ASSIGN_OR_RETURN(const RefValue head, txn.ReadRef(id, RefName::Head()));
  if (!head.is_symbolic()) return absl::OkStatus();
  const std::string target = judge_.NewHeadTarget(head.target().text(), attempt_);
  if (target.empty()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const RefValue current, txn.ReadRef(id, head.target()));
  if (!current.is_absent()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const auto branches, txn.ListRefs(id, kBranches));
  if (!branches.empty()) return absl::OkStatus();
  REPOTXN_ASSIGN_OR_RETURN(const RefName name, RefName::Parse(target));
  return txn.UpdateRef(id, refs::RefUpdate{RefName::Head(), std::nullopt, RefValue::Symbolic(name),
                                           /*no_deref=*/true});
}

void PushSession::NoteChanges(const RepositoryId& id, wal::Lsn lsn) const {
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    if (!attempt_.refs[i].ok()) continue;
    context_.changes->Note(id, request_.commands[i].name, request_.commands[i].new_value,
                           {transaction_id_, lsn});
  }
}

void PushSession::ReportOutcome(const txn::CommitResult& result) {
  if (result.committed()) {
    NoteChanges(repository_, result.lsn);
    return;
  }
  if (has_nothing_left_) return;
  // The body may have ended before it judged anything.
  if (attempt_.refs.empty()) attempt_ = settled_;
  if (result.outcome == txn::CommitOutcome::kUnknown) {
    attempt_.RefuseAll(
        absl::StrCat("outcome unknown, transaction ", transaction_id_.ToHex()));
    return;
  }
  for (RefReport& ref : attempt_.refs) {
    if (ref.ok()) ref.refusal = RefusalOf(result.status, ref.name, &ref.detail);
  }
}

// Hooks.

HookPlace PushSession::PlaceAt(const std::string& directory, bool is_quarantine) const {
  HookPlace place;
  place.directory = directory;
  place.is_quarantine = is_quarantine;
  place.push_options = request_.options;
  place.has_push_options = request_.capabilities.push_options;
  place.transaction_id = transaction_id_.ToHex();
  return place;
}

std::string PushSession::HookInput(const PushReport& report) const {
  std::string input;
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    const PushCommand& command = request_.commands[i];
    if (!report.refs[i].ok()) continue;
    absl::StrAppend(&input, command.old_value.ToHex(), " ", command.new_value.ToHex(), " ",
                    command.name, "\n");
  }
  return input;
}

bool PushSession::RunOneHook(const HookPlace& place, const char* name,
                             const std::vector<std::string>& arguments, absl::string_view input,
                             BandWriter& out) const {
  const absl::StatusOr<bool> is_accepted =
      RunHook(place, name, arguments, input, context_.options->hook_timeout,
              [&out](absl::string_view text) { out.Progress(text); });
  if (is_accepted.ok()) return *is_accepted;
  out.Progress(absl::StrCat("hook ", name, ": ", CleanLine(is_accepted.status().message()), "\n"));
  storage::LogWarning(absl::StrCat("hook ", name, " failed in transaction ",
                                   transaction_id_.ToHex(), ": ",
                                   is_accepted.status().message()));
  return false;
}

void PushSession::RunHooksBefore(BandWriter& out) {
  // A push of deletions only has no objects, but its hooks still need a directory of their own.
  if (staging_ == nullptr) {
    absl::StatusOr<std::shared_ptr<txn::ObjectStaging>> staging = context_.store->StageObjects(
        transaction_id_, context_.path, request_.capabilities.object_format);
    if (!staging.ok()) return settled_.RefuseAll(staging.status().message());
    staging_ = *std::move(staging);
  }
  const absl::Status status = staging_->CompleteWithRefs();
  if (!status.ok()) return settled_.RefuseAll(status.message());
  const HookPlace place = PlaceAt(staging_->absolute_path(), /*is_quarantine=*/true);
  if (hooks_.has_pre_receive() &&
      !RunOneHook(place, "pre-receive", {}, HookInput(settled_), out)) {
    return settled_.RefuseAll(reason::kPreReceiveDeclined);
  }
  if (!hooks_.has_update()) return;
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    const PushCommand& command = request_.commands[i];
    RefReport& ref = settled_.refs[i];
    if (!ref.ok()) continue;
    const std::vector<std::string> arguments = {command.name, command.old_value.ToHex(),
                                                command.new_value.ToHex()};
    if (!RunOneHook(place, "update", arguments, "", out)) {
      ref.refusal = ToString(reason::kUpdateHookDeclined);
      if (is_atomic()) return;
    }
  }
}

void PushSession::RunPostReceive(BandWriter& out) const {
  absl::StatusOr<std::shared_ptr<const txn::SnapshotDirectory>> snapshot =
      context_.store->ReadSnapshot(context_.path);
  if (!snapshot.ok()) {
    storage::LogWarning(absl::StrCat("no snapshot for hook post-receive of transaction ",
                                     transaction_id_.ToHex()));
    return;
  }
  // The push is done; what the hook answers changes nothing.
  RunOneHook(PlaceAt((*snapshot)->absolute_path(), /*is_quarantine=*/false), "post-receive", {},
             HookInput(attempt_), out);
}

// Ancestry.

absl::Status PushSession::CheckFastForwards(PushReport* report) {
  for (size_t i = 0; i < request_.commands.size(); ++i) {
    const PushCommand& command = request_.commands[i];
    const bool is_update = !command.is_create() && !command.is_delete();
    if (!report->refs[i].ok() || !is_update || !absl::StartsWith(command.name, kBranches)) continue;
    REPOTXN_ASSIGN_OR_RETURN(const bool is_fast_forward, IsFastForward(i));
    if (!is_fast_forward) report->refs[i].refusal = ToString(reason::kNonFastForward);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PushSession::IsFastForward(size_t index) {
  if (fast_forwards_[index].has_value()) return *fast_forwards_[index];
  const PushCommand& command = request_.commands[index];
  objects::GitCommand git;
  git.repository = staging_->absolute_path();
  git.arguments = {"merge-base", "--is-ancestor", command.old_value.ToHex(),
                   command.new_value.ToHex()};
  git.is_check = true;
  git.lock_fd = context_.store->lock_descriptor();
  objects::RunLimits limits;
  limits.timeout = kAncestryTimeout;
  REPOTXN_ASSIGN_OR_RETURN(const objects::GitResult result,
                           objects::RunGit(git, objects::TextSource(""), limits));
  if (result.exit_code != 0 && result.exit_code != 1) {
    return absl::FailedPreconditionError("the ancestry of a pushed commit cannot be read");
  }
  fast_forwards_[index] = result.exit_code == 0;
  return *fast_forwards_[index];
}

}  // namespace repotxn::daemon
