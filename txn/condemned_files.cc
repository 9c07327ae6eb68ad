#include "txn/condemned_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "txn/layout.h"

namespace repotxn::txn {

void CondemnedFiles::Condemn(Pack pack) {
  const storage::StorePath file = layout::PackFile(pack.id, pack.name, ".pack");
  const storage::MutexLock lock(&mutex_);
  packs_.insert_or_assign(file, std::move(pack));
  size_.store(static_cast<int64_t>(packs_.size()));
}

bool CondemnedFiles::Contains(const storage::StorePath& file) const {
  if (size_.load() == 0) return false;
  const storage::MutexLock lock(&mutex_);
  return packs_.contains(file);
}

bool CondemnedFiles::Contains(const RepositoryId& id, absl::string_view name) const {
  return size_.load() > 0 && Contains(layout::PackFile(id, name, ".pack"));
}

void CondemnedFiles::Pardon(const RepositoryId& id, absl::string_view name) {
  const storage::StorePath file = layout::PackFile(id, name, ".pack");
  const storage::MutexLock lock(&mutex_);
  if (packs_.erase(file) == 0) return;
  pardoned_.insert(file);
  size_.store(static_cast<int64_t>(packs_.size()));
}

bool CondemnedFiles::Settle(const RepositoryId& id, absl::string_view name) {
  const storage::StorePath file = layout::PackFile(id, name, ".pack");
  const storage::MutexLock lock(&mutex_);
  const bool was_there = packs_.erase(file) + pardoned_.erase(file) > 0;
  size_.store(static_cast<int64_t>(packs_.size()));
  return was_there;
}

wal::Lsn CondemnedFiles::RemovalOf(const RepositoryId& id, absl::string_view name) const {
  if (size_.load() == 0) return wal::Lsn::Zero();
  const storage::MutexLock lock(&mutex_);
  const auto found = packs_.find(layout::PackFile(id, name, ".pack"));
  return found == packs_.end() ? wal::Lsn::Zero() : found->second.lsn;
}

bool CondemnedFiles::HasRemovedUpTo(const RepositoryId& id, wal::Lsn lsn) const {
  if (size_.load() == 0) return false;
  const storage::MutexLock lock(&mutex_);
  return std::any_of(packs_.begin(), packs_.end(),
                     [&](const auto& entry) { return entry.second.id == id && entry.second.lsn <= lsn; });
}

std::vector<CondemnedFiles::Pack> CondemnedFiles::RemovedUpTo(wal::Lsn lsn) const {
  std::vector<Pack> packs;
  if (size_.load() == 0) return packs;
  {
    const storage::MutexLock lock(&mutex_);
    for (const auto& [file, pack] : packs_) {
      if (pack.lsn <= lsn) packs.push_back(pack);
    }
  }
  std::sort(packs.begin(), packs.end(), [](const Pack& a, const Pack& b) { return a.lsn < b.lsn; });
  return packs;
}

void CondemnedFiles::Forget(const RepositoryId& id, absl::string_view name) {
  const storage::MutexLock lock(&mutex_);
  packs_.erase(layout::PackFile(id, name, ".pack"));
  size_.store(static_cast<int64_t>(packs_.size()));
}

}  // namespace repotxn::txn
