// Directory work that an opening could not do: one broken directory must not keep the store shut [hard case B14].
//
// An entry of the log's tail whose directory work fails is published like any other, and its work is *owed*: the
// repositories that it touches are set aside (txn/repository_state.h), nothing of theirs is materialized, and whatever later
// entries do to their directories waits behind it. It is tried again in the background and at each checkpoint. Until it is
// done the applied position stays below the entry, and with it the entry's payload: if we die, the next opening has all of
// it again. So the log grows meanwhile, which a gauge tells.
#include <set>

#include "absl/strings/str_cat.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/store_core.h"

namespace repotxn::txn {
namespace {

std::set<RepositoryId> Touched(const EntryEffects& effects) {
  std::set<RepositoryId> ids;
  for (const wal::CreateRepository& created : effects.created) ids.insert(created.id);
  for (const wal::AddPack& pack : effects.packs) ids.insert(pack.id);
  for (const wal::ReplaceDerived& derived : effects.derived) ids.insert(derived.id);
  for (const ChangedAlternates& changed : effects.alternates) ids.insert(changed.id);
  ids.insert(effects.purged.begin(), effects.purged.end());
  return ids;
}

}  // namespace

absl::Status StoreCore::DoDirectoryWorkInOrder(const EntryEffects& effects, const TransactionId& id, wal::Lsn lsn) {
  const storage::MutexLock lock(&owed_mutex_);
  for (const OwedWork& owed : owed_) {
    for (const RepositoryId& other : Touched(owed.effects)) {
      if (Touched(effects).contains(other)) return absl::UnavailableError("earlier work on the directory is owed");
    }
  }
  return DoDirectoryWork(effects, id, lsn);
}

void StoreCore::Owe(OwedWork work, const absl::Status& why) {
  storage::LogError(absl::StrCat("directory work of entry ", work.lsn.value(), " is owed: ", why.message()));
  for (const RepositoryId& id : Touched(work.effects)) SetAsideOwing(id, why);
  const storage::MutexLock lock(&owed_mutex_);
  owed_.push_back(std::move(work));
}

void StoreCore::SetAsideOwing(const RepositoryId& id, const absl::Status& why) {
  const auto row = RowOf(id, publisher_->committed_lsn());
  if (!row.ok() || !*row) return;  // purged
  const std::shared_ptr<RepositoryState> state = repositories_->Get(id, **row);
  const storage::MutexLock latch(state->latch());
  state->SetAside(why, environment_.clock->Monotonic());
  state->SetOwesDirectoryWork(true);
}

absl::Status StoreCore::DoOwedWork(Materializer::Try which) {
  const storage::MutexLock lock(&owed_mutex_);
  if (owed_.empty()) return absl::OkStatus();
  std::set<RepositoryId> blocked, done;
  std::vector<OwedWork> left;
  absl::Status first_failure;
  for (OwedWork& work : owed_) {
    const std::set<RepositoryId> ids = Touched(work.effects);
    bool is_blocked = false;
    for (const RepositoryId& id : ids) {
      const auto state = repositories_->Find(id);
      is_blocked |= blocked.contains(id);
      is_blocked |= which == Materializer::Try::kWhatIsWorthIt && state != nullptr &&
                    !state->IsWorthATry(environment_.clock->Monotonic());
    }
    absl::Status status = is_blocked ? absl::UnavailableError("directory work is owed")
                                     : DoDirectoryWork(work.effects, work.id, work.lsn);
    if (status.ok()) {
      done.insert(ids.begin(), ids.end());
      continue;
    }
    first_failure.Update(status);
    if (!is_blocked) {
      for (const RepositoryId& id : ids) SetAsideOwing(id, status);
    }
    blocked.insert(ids.begin(), ids.end());
    left.push_back(std::move(work));
  }
  owed_ = std::move(left);
  for (const RepositoryId& id : done) {
    const auto state = repositories_->Find(id);
    if (state == nullptr || blocked.contains(id)) continue;
    const storage::MutexLock latch(state->latch());
    state->SetOwesDirectoryWork(false);
  }
  return first_failure;
}

}  // namespace repotxn::txn
