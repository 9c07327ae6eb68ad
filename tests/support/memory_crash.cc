#include "tests/support/memory_crash.h"

#include <algorithm>

namespace repotxn::testing {
namespace {

using storage::FileKind;

// What a disk writes at once.
constexpr int64_t kSectorBytes = 512;

void GrowTo(std::string& data, int64_t size) {
  if (static_cast<int64_t>(data.size()) < size) data.resize(static_cast<size_t>(size), '\0');
}

}  // namespace

CrashState::CrashState(const CrashOptions& options) : options_(options), random_(options.seed) {
  // Few, half or most of the changes: each finds other faults.
  static constexpr uint64_t kPercents[] = {10, 50, 90};
  keep_percent_ = kPercents[random_.Below(3)];
}

InodePtr CrashState::Build(const InodePtr& root, const std::list<PendingChange>& pending) {
  const InodePtr copy = CopyOf(root);
  int64_t index = 0;
  for (const PendingChange& change : pending) {
    const bool keep = Keeps(index++);
    if (change.IsData()) {
      ApplyData(change, keep);
    } else {
      ApplyName(change, keep);
    }
  }
  // Data without its size cannot be seen; a size without its data reads as zeroes.
  for (const auto& [inode, size] : sizes_) {
    copies_[inode]->durable_data.resize(static_cast<size_t>(size), '\0');
  }
  copy->link_count = 1;
  Settle(copy);
  return copy;
}

// Copies the durable side, with all that can be reached from it.
InodePtr CrashState::CopyOf(const InodePtr& original) {
  InodePtr& copy = copies_[original.get()];
  if (copy != nullptr) return copy;
  copy = std::make_shared<MemoryInode>();
  const InodePtr made = copy;
  made->id = original->id;
  made->kind = original->kind;
  made->mode = original->mode;
  made->modified = original->modified;
  made->target = original->target;
  made->durable_data = original->durable_data;
  for (const auto& [name, child] : original->durable_children) {
    made->durable_children[name] = CopyOf(child);
  }
  return made;
}

bool CrashState::Keeps(int64_t index) {
  switch (options_.survival) {
    case CrashSurvival::kNothing:
      return false;
    case CrashSurvival::kEverything:
      return true;
    case CrashSurvival::kRandom:
      return random_.Below(100) < keep_percent_;
    case CrashSurvival::kChosen:
      return index < 64 && (options_.keep_mask >> index & 1) != 0;
  }
  return false;
}

CrashState::Entry CrashState::Origin(MemoryInode* directory, const std::string& name,
                                     const MemoryInode* inode) const {
  const auto it = origins_.find({directory, name, inode});
  return it == origins_.end() ? Entry(directory, name) : it->second;
}

void CrashState::EraseIfSame(const Entry& entry, const MemoryInode* inode) {
  NameMap& children = entry.first->durable_children;
  const auto it = children.find(entry.second);
  if (it != children.end() && it->second.get() == inode) children.erase(it);
}

void CrashState::ApplyName(const PendingChange& change, bool keep) {
  MemoryInode* const directory = CopyOf(change.directory).get();
  const InodePtr inode = CopyOf(change.inode);
  NameMap& children = directory->durable_children;
  switch (change.kind) {
    case PendingChange::Kind::kAddName:
      if (keep) children[change.name] = inode;
      return;
    case PendingChange::Kind::kRemoveName:
      if (!keep) return;
      // A dropped rename gave the inode this name: with the removal kept, the old name is gone too,
      // as it would be if the rename had been seen.
      EraseIfSame(Origin(directory, change.name, inode.get()), inode.get());
      children.erase(change.name);
      return;
    case PendingChange::Kind::kRenameName: {
      const Entry from = Origin(CopyOf(change.source).get(), change.source_name, inode.get());
      if (keep) {
        EraseIfSame(from, inode.get());
        children[change.name] = inode;
      } else {
        origins_[{directory, change.name, inode.get()}] = from;
      }
      return;
    }
    case PendingChange::Kind::kWrite:
    case PendingChange::Kind::kTruncate:
      return;
  }
}

void CrashState::ApplyData(const PendingChange& change, bool keep) {
  MemoryInode& copy = *CopyOf(change.inode);
  const auto it =
      sizes_.emplace(change.inode.get(), static_cast<int64_t>(copy.durable_data.size())).first;
  int64_t& size = it->second;
  if (change.kind == PendingChange::Kind::kWrite) {
    WritePieces(copy, change, keep);
    // The size is a change of its own: it may survive without the data, and the data without it.
    const bool keep_size =
        options_.survival == CrashSurvival::kRandom ? random_.Below(100) < keep_percent_ : keep;
    const int64_t end = change.offset + static_cast<int64_t>(change.bytes.size());
    if (keep_size) size = std::max(size, end);
  } else if (keep) {
    size = change.offset;
    copy.durable_data.resize(
        std::min(copy.durable_data.size(), static_cast<size_t>(change.offset)));
  }
}

void CrashState::WritePieces(MemoryInode& copy, const PendingChange& change, bool keep) {
  const int64_t end = change.offset + static_cast<int64_t>(change.bytes.size());
  for (int64_t at = change.offset; at < end;) {
    const int64_t next = std::min(end, (at / kSectorBytes + 1) * kSectorBytes);
    const bool keep_piece =
        options_.survival == CrashSurvival::kRandom ? random_.Below(100) < keep_percent_ : keep;
    if (keep_piece) {
      GrowTo(copy.durable_data, next);
      copy.durable_data.replace(static_cast<size_t>(at), static_cast<size_t>(next - at),
                                change.bytes, static_cast<size_t>(at - change.offset),
                                static_cast<size_t>(next - at));
    }
    at = next;
  }
}

void CrashState::Settle(const InodePtr& directory) {
  directory->children = directory->durable_children;
  for (const auto& [name, child] : directory->children) {
    ++child->link_count;
    if (child->kind == FileKind::kDirectory) {
      // Two renames of which one was dropped could give a directory a second way in; the first one
      // counts.
      if (child->link_count == 1) Settle(child);
    } else {
      child->data = child->durable_data;
    }
  }
}

}  // namespace repotxn::testing
