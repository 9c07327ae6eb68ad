// Derives the locks of a transaction from what it writes and what it declared to have read.
//
// Pure: the same manifest, reads and facts give the same locks, on every node and at every retry. The rules are the
// table of docs/design.md, "Conflict checking". The ones that hold for all of it:
//
//  * every operation and read inside a repository holds S entry(root of its id), so that it meets a deletion or move
//    (X subtree(root));
//  * `packed-refs`, `HEAD` and everything below `refs/` have no path keys: refs lock by name, from the note's ref
//    changes and never from the files that store them;
//  * whoever writes below a directory, or a group, passes it: meets its removal and a file in its place, and
//    commutes with everybody else who makes it;
//  * whoever adds objects or tips holds S of the alternates file of every repository on its chain.
//
// Thread-safe.
#ifndef REPOTXN_LOCKS_DERIVATION_H_
#define REPOTXN_LOCKS_DERIVATION_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "locks/footprint.h"
#include "storage/id128.h"
#include "wal/operation.h"

namespace repotxn::locks {

// What a transaction declares to have read at its snapshot; present and absent alike.
struct DeclaredReads {
  struct OfRepository {
    RepositoryId id;
    std::string name;  // path, ref name or prefix
  };
  struct OfKey {
    wal::PartitionId partition = 0;
    std::string key;
  };
  struct OfKeyRange {
    wal::PartitionId partition = 0;
    std::string first;
    std::string end;  // "" is no bound
  };
  std::vector<OfRepository> files;
  std::vector<OfRepository> directories;       // listed
  std::vector<OfRepository> refs;              // every hop of a symbolic ref is one of these
  std::vector<OfRepository> ref_prefixes;      // listed
  std::vector<RepositoryId> whole_repositories;
  std::vector<OfKey> keys;
  std::vector<OfKeyRange> key_ranges;          // iterated, also when empty
  std::vector<std::string> repository_paths;   // looked up
  std::vector<std::string> groups;             // listed
  std::vector<std::string> request_ids;        // looked up
  std::vector<RepositoryId> links_to_pools;    // the members of a pool were asked for
};

// What the transaction's snapshot says of repositories that it touches.
struct RepositoryFacts {
  // Path of a repository; nothing when it has none.
  std::function<std::optional<std::string>(const RepositoryId&)> path_of;
  // Repositories that this one borrows from directly, in the order of its alternates file.
  std::function<std::vector<RepositoryId>(const RepositoryId&)> alternates_of;
};

// Locks of `operations`, `note.ref_changes`, `note.objects_removed`, `request_id` (empty: none) and `reads`, of all
// partitions and not yet normalised.
std::vector<Lock> DeriveLocks(absl::Span<const wal::Operation> operations, const wal::Note& note,
                              const std::string& request_id, const DeclaredReads& reads,
                              const RepositoryFacts& facts);

// The same of a whole manifest.
std::vector<Lock> DeriveLocks(const wal::Manifest& manifest, const DeclaredReads& reads,
                              const RepositoryFacts& facts);

// Every repository on the alternates chain of `id`, itself first, each once, at most `depth_max` levels below it.
inline constexpr int kAlternatesDepthMax = 4;
std::vector<RepositoryId> AlternatesChain(const RepositoryId& id, const RepositoryFacts& facts,
                                          int depth_max = kAlternatesDepthMax);

// Whether a path inside a repository has no path key because refs lock by name.
bool IsRefStorage(absl::string_view path);

}  // namespace repotxn::locks

#endif  // REPOTXN_LOCKS_DERIVATION_H_
