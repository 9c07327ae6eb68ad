#include "txn/repository_table.h"

namespace repotxn::txn {

std::shared_ptr<RepositoryState> RepositoryTable::Get(const RepositoryId& id,
                                                      const RepositoryRow& row) {
  const storage::MutexLock lock(&mutex_);
  std::shared_ptr<RepositoryState>& state = states_[id];
  if (state == nullptr) {
    state = std::make_shared<RepositoryState>(fs_, condemned_, id, row.partition, row.format);
  }
  return state;
}

std::shared_ptr<RepositoryState> RepositoryTable::Find(const RepositoryId& id) const {
  const storage::MutexLock lock(&mutex_);
  const auto it = states_.find(id);
  return it == states_.end() ? nullptr : it->second;
}

void RepositoryTable::Remove(const RepositoryId& id) {
  const storage::MutexLock lock(&mutex_);
  states_.erase(id);
  dirty_.erase(id);
}

void RepositoryTable::MarkDirty(const RepositoryId& id) {
  const storage::MutexLock lock(&mutex_);
  dirty_.insert(id);
}

std::vector<std::shared_ptr<RepositoryState>> RepositoryTable::DirtyLocked() const {
  std::vector<std::shared_ptr<RepositoryState>> dirty;
  for (const RepositoryId& id : dirty_) {
    const auto it = states_.find(id);
    if (it != states_.end()) dirty.push_back(it->second);
  }
  return dirty;
}

std::vector<std::shared_ptr<RepositoryState>> RepositoryTable::Dirty() const {
  const storage::MutexLock lock(&mutex_);
  return DirtyLocked();
}

std::vector<std::shared_ptr<RepositoryState>> RepositoryTable::TakeDirty() {
  const storage::MutexLock lock(&mutex_);
  auto taken = DirtyLocked();
  dirty_.clear();
  return taken;
}

std::vector<std::shared_ptr<RepositoryState>> RepositoryTable::All() const {
  const storage::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<RepositoryState>> all;
  for (const auto& [id, state] : states_) all.push_back(state);
  return all;
}

}  // namespace repotxn::txn
