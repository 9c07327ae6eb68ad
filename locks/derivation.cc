#include "locks/derivation.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace repotxn::locks {
namespace {

constexpr absl::string_view kAlternatesPath = "objects/info/alternates";

absl::string_view ViewOf(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

// Calls `visit` with "a/b", "a" and "" for "a/b/c"; with nothing for the root.
template <typename Visit>
void ForEachParent(absl::string_view path, Visit visit) {
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    path = slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
    visit(path);
  }
}

// The same without the root.
template <typename Visit>
void ForEachGroupAbove(absl::string_view path, Visit visit) {
  ForEachParent(path, [&visit](absl::string_view parent) {
    if (!parent.empty()) visit(parent);
  });
}

// Collects the locks of one transaction. One overload of Add() an operation: the table of the design, row by row.
class Deriver {
 public:
  explicit Deriver(const RepositoryFacts& facts) : facts_(facts) {}

  void Add(const wal::CreateRepository& op);
  void Add(const wal::RemoveRepository& op);
  void Add(const wal::SetPath& op);
  void Add(const wal::EnsureGroup& op);
  void Add(const wal::RemoveGroup& op);
  void Add(const wal::PutFile& op) { WriteEntry(op.id, ViewOf(op.path), Effect::kChange); }
  void Add(const wal::RemoveFile& op) { WriteEntry(op.id, ViewOf(op.path), Effect::kDelete); }
  void Add(const wal::MakeDirectory& op);
  void Add(const wal::RemoveDirectory& op);
  // Refs lock by name, from the note.
  void Add(const wal::EditPackedRefs& op) { TouchRoot(op.id); }
  void Add(const wal::AddPack& op);
  void Add(const wal::RemovePack& op);
  void Add(const wal::ReplaceDerived& op) {
    WriteEntry(op.id, ViewOf(op.path), op.remove ? Effect::kDelete : Effect::kChange);
  }
  void Add(const wal::LinkAlternate& op);
  void Add(const wal::UnlinkAlternate& op);
  void Add(const wal::PutKey& op) {
    Push(Lock::Blind(LockKey::Key(op.partition, ViewOf(op.key))));
  }
  void Add(const wal::DeleteKey& op) {
    Push(Lock::Blind(LockKey::Key(op.partition, ViewOf(op.key))));
  }

  void Add(const wal::RefChange& change);
  void Add(const wal::ObjectsRemoved& removed);
  void AddRequest(const std::string& request_id) {
    Push(Lock::Exclusive(LockKey::Request(ViewOf(request_id)), Effect::kCreate));
  }
  void AddReads(const DeclaredReads& reads);

  std::vector<Lock> Take() { return std::move(locks_); }

 private:
  void Push(Lock lock) { locks_.push_back(std::move(lock)); }
  void TouchRoot(const RepositoryId& id) { Push(Lock::Passed(LockKey::Root(id))); }
  void PassParents(const RepositoryId& id, absl::string_view path) {
    ForEachParent(path, [this, &id](absl::string_view parent) {
      Push(Lock::Passed(LockKey::Entry(id, parent)));
    });
  }
  void WriteEntry(const RepositoryId& id, absl::string_view path, Effect effect);
  void EnsureGroupsAbove(absl::string_view path);
  void ReadAlternatesOfChain(const RepositoryId& id);
  void LeavePath(const RepositoryId& id);

  const RepositoryFacts& facts_;
  std::vector<Lock> locks_;
  // Repositories whose chain was read; pushes of many refs name one repository again and again.
  std::vector<RepositoryId> chains_read_;
};

void Deriver::WriteEntry(const RepositoryId& id, absl::string_view path, Effect effect) {
  TouchRoot(id);
  if (IsRefStorage(path)) return;
  Push(Lock::Exclusive(LockKey::Entry(id, path), effect));
  PassParents(id, path);
}

// A repository needs the groups above it and makes them when they are missing. Because the group rows are locks, a
// repository at a prefix of the path, or below it, is met without a rule of its own.
void Deriver::EnsureGroupsAbove(absl::string_view path) {
  ForEachGroupAbove(path, [this](absl::string_view group) {
    Push(Lock::Ensured(LockKey::PathEntry(group)));
  });
}

void Deriver::ReadAlternatesOfChain(const RepositoryId& id) {
  if (std::find(chains_read_.begin(), chains_read_.end(), id) != chains_read_.end()) return;
  chains_read_.push_back(id);
  for (const RepositoryId& each : AlternatesChain(id, facts_)) {
    TouchRoot(each);
    Push(Lock::Shared(LockKey::Entry(each, kAlternatesPath)));
  }
}

// The path that a deletion or a move gives up.
void Deriver::LeavePath(const RepositoryId& id) {
  const std::optional<std::string> path = facts_.path_of(id);
  if (!path.has_value()) return;
  Push(Lock::Exclusive(LockKey::PathEntry(ViewOf(*path)), Effect::kDelete));
  ForEachGroupAbove(ViewOf(*path), [this](absl::string_view group) {
    Push(Lock::Passed(LockKey::PathEntry(group)));
  });
}

void Deriver::Add(const wal::CreateRepository& op) {
  Push(Lock::Exclusive(LockKey::PathEntry(ViewOf(op.path)), Effect::kCreate));
  EnsureGroupsAbove(ViewOf(op.path));
  Push(Lock::Exclusive(LockKey::Root(op.id), Effect::kCreate));
}

void Deriver::Add(const wal::RemoveRepository& op) {
  Push(Lock::Exclusive(LockKey::Subtree(op.id, ""), Effect::kDelete));
  LeavePath(op.id);
  // Who borrows from it must not appear meanwhile; its own links go with it.
  Push(Lock::Shared(LockKey::LinksToPool(op.id)));
  for (const RepositoryId& pool : facts_.alternates_of(op.id)) {
    Push(Lock::Exclusive(LockKey::Link(op.id, pool), Effect::kDelete));
  }
}

void Deriver::Add(const wal::SetPath& op) {
  Push(Lock::Exclusive(LockKey::Subtree(op.id, "")));
  LeavePath(op.id);
  Push(Lock::Exclusive(LockKey::PathEntry(ViewOf(op.path)), Effect::kCreate));
  EnsureGroupsAbove(ViewOf(op.path));
  if (!op.old_path.empty()) return;
  // It was removed: the links that went with it come back, to pools that must still be there.
  for (const RepositoryId& pool : op.facts.alternates) {
    ReadAlternatesOfChain(pool);
    Push(Lock::Exclusive(LockKey::Link(op.id, pool), Effect::kCreate));
  }
}

void Deriver::Add(const wal::EnsureGroup& op) {
  Push(Lock::Ensured(LockKey::PathEntry(ViewOf(op.path))));
  EnsureGroupsAbove(ViewOf(op.path));
}

void Deriver::Add(const wal::RemoveGroup& op) {
  Push(Lock::Exclusive(LockKey::PathEntry(ViewOf(op.path)), Effect::kDelete));
  Push(Lock::Shared(LockKey::PathChildren(ViewOf(op.path))));
  ForEachGroupAbove(ViewOf(op.path), [this](absl::string_view group) {
    Push(Lock::Passed(LockKey::PathEntry(group)));
  });
}

void Deriver::Add(const wal::MakeDirectory& op) {
  TouchRoot(op.id);
  if (IsRefStorage(ViewOf(op.path))) return;
  Push(Lock::Ensured(LockKey::Entry(op.id, ViewOf(op.path))));
  PassParents(op.id, ViewOf(op.path));
}

void Deriver::Add(const wal::RemoveDirectory& op) {
  WriteEntry(op.id, ViewOf(op.path), Effect::kDelete);
  if (IsRefStorage(ViewOf(op.path))) return;
  Push(Lock::Shared(LockKey::Children(op.id, ViewOf(op.path))));
}

void Deriver::Add(const wal::AddPack& op) {
  TouchRoot(op.id);
  const std::string path = absl::StrCat("objects/pack/", ViewOf(op.name), ".pack");
  Push(Lock::Announced(LockKey::Entry(op.id, ViewOf(path))));
  ReadAlternatesOfChain(op.id);
}

// A removal meets an addition of the same pack after its snapshot, so that it names only packs that it has seen.
void Deriver::Add(const wal::RemovePack& op) {
  const std::string path = absl::StrCat("objects/pack/", ViewOf(op.name), ".pack");
  WriteEntry(op.id, ViewOf(path), Effect::kDelete);
}

void Deriver::Add(const wal::LinkAlternate& op) {
  WriteEntry(op.member, kAlternatesPath, Effect::kChange);
  ReadAlternatesOfChain(op.pool);
  Push(Lock::Exclusive(LockKey::Link(op.member, op.pool), Effect::kCreate));
}

void Deriver::Add(const wal::UnlinkAlternate& op) {
  WriteEntry(op.member, kAlternatesPath, Effect::kDelete);
  TouchRoot(op.pool);
  Push(Lock::Exclusive(LockKey::Link(op.member, op.pool), Effect::kDelete));
}

void Deriver::Add(const wal::RefChange& change) {
  using Kind = wal::LoggedRefValue::Kind;
  const bool was_live = change.old_value.kind != Kind::kAbsent;
  const bool is_live = change.new_value.kind != Kind::kAbsent;
  TouchRoot(change.id);
  LockKey key = LockKey::Ref(change.id, ViewOf(change.name));
  if (!was_live && !is_live) {
    Push(Lock::Shared(std::move(key)));  // found to be absent, left absent
    return;
  }
  Push(Lock::Exclusive(std::move(key), !was_live  ? Effect::kCreate
                                       : !is_live ? Effect::kDelete
                                                  : Effect::kChange));
  if (change.new_value.kind == Kind::kObject) ReadAlternatesOfChain(change.id);
}

void Deriver::Add(const wal::ObjectsRemoved& removed) {
  TouchRoot(removed.id);
  Push(Lock::Announced(LockKey::Objects(removed.id)));
}

void Deriver::AddReads(const DeclaredReads& reads) {
  for (const auto& read : reads.files) {
    TouchRoot(read.id);
    if (IsRefStorage(ViewOf(read.name))) continue;
    Push(Lock::Shared(LockKey::Entry(read.id, ViewOf(read.name))));
  }
  for (const auto& read : reads.directories) {
    TouchRoot(read.id);
    if (IsRefStorage(ViewOf(read.name))) continue;
    Push(Lock::Shared(LockKey::Entry(read.id, ViewOf(read.name))));
    Push(Lock::Shared(LockKey::Children(read.id, ViewOf(read.name))));
  }
  for (const auto& read : reads.refs) {
    TouchRoot(read.id);
    Push(Lock::Shared(LockKey::Ref(read.id, ViewOf(read.name))));
  }
  for (const auto& read : reads.ref_prefixes) {
    TouchRoot(read.id);
    Push(Lock::Shared(LockKey::RefPrefix(read.id, ViewOf(read.name))));
  }
  for (const RepositoryId& id : reads.whole_repositories) {
    TouchRoot(id);
    Push(Lock::Shared(LockKey::Subtree(id, "")));
  }
  for (const auto& read : reads.keys) {
    Push(Lock::Shared(LockKey::Key(read.partition, ViewOf(read.key))));
  }
  for (const auto& read : reads.key_ranges) {
    Push(Lock::Shared(
        LockKey::KeyRange(read.partition, ViewOf(read.first), ViewOf(read.end))));
  }
  for (const std::string& path : reads.repository_paths) {
    Push(Lock::Shared(LockKey::PathEntry(ViewOf(path))));
  }
  for (const std::string& group : reads.groups) {
    Push(Lock::Passed(LockKey::PathEntry(ViewOf(group))));
    Push(Lock::Shared(LockKey::PathChildren(ViewOf(group))));
  }
  for (const std::string& request_id : reads.request_ids) {
    Push(Lock::Shared(LockKey::Request(ViewOf(request_id))));
  }
  for (const RepositoryId& pool : reads.links_to_pools) {
    Push(Lock::Shared(LockKey::LinksToPool(pool)));
  }
}

}  // namespace

std::vector<Lock> DeriveLocks(absl::Span<const wal::Operation> operations, const wal::Note& note,
                              const std::string& request_id, const DeclaredReads& reads,
                              const RepositoryFacts& facts) {
  Deriver deriver(facts);
  for (const wal::Operation& operation : operations) {
    std::visit([&deriver](const auto& op) { deriver.Add(op); }, operation);
  }
  for (const wal::RefChange& change : note.ref_changes) deriver.Add(change);
  for (const wal::ObjectsRemoved& removed : note.objects_removed) deriver.Add(removed);
  if (!request_id.empty()) deriver.AddRequest(request_id);
  deriver.AddReads(reads);
  return deriver.Take();
}

std::vector<Lock> DeriveLocks(const wal::Manifest& manifest, const DeclaredReads& reads,
                              const RepositoryFacts& facts) {
  return DeriveLocks(manifest.operations, manifest.note, manifest.request_id, reads, facts);
}

std::vector<RepositoryId> AlternatesChain(const RepositoryId& id, const RepositoryFacts& facts,
                                          int depth_max) {
  std::vector<RepositoryId> chain = {id};
  size_t level_begin = 0;
  for (int depth = 0; depth < depth_max && level_begin < chain.size(); ++depth) {
    const size_t level_end = chain.size();
    for (size_t i = level_begin; i < level_end; ++i) {
      for (const RepositoryId& pool : facts.alternates_of(chain[i])) {
        if (std::find(chain.begin(), chain.end(), pool) == chain.end()) chain.push_back(pool);
      }
    }
    level_begin = level_end;
  }
  return chain;
}

bool IsRefStorage(absl::string_view path) {
  return path == "HEAD" || path == "packed-refs" || path == "refs" ||
         absl::StartsWith(path, "refs/");
}

}  // namespace repotxn::locks
