// What a log entry says: the operations, which are the only ways in which an entry changes a store, and the note.
//
// Plain values. Names, object ids and paths are bytes here; refs/ and objects/ own the strong types and txn/ validates
// a decoded manifest wholly before its first effect. wal/manifest.proto is the specification of the encoded form.
//
// Two descriptions of ref changes stand in an entry: the note's RefChange (logical: lock keys, history and the overlay
// of refs come from these alone) and file operations derived from them by one pure function in refs/ (the files come
// from these alone). Whoever decodes verifies that both say the same; a mismatch is kDataLoss.
#ifndef REPOTXN_WAL_OPERATION_H_
#define REPOTXN_WAL_OPERATION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/object_id.h"

namespace repotxn::wal {

// Conflict domain inside a store. 0 owns the name space above repositories; the others are random, never reused.
using PartitionId = uint64_t;
inline constexpr PartitionId kNameSpacePartition = 0;

// Contents above this travel as payload files, smaller ones inline.
inline constexpr int64_t kInlineContentBytesMax = 64 << 10;

// A large file of an entry: payload/<transaction id>/<index>.
struct PayloadFile {
  uint32_t index = 0;
  int64_t size = 0;     // bytes
  std::string sha256;   // 32 bytes

  friend bool operator==(const PayloadFile&, const PayloadFile&) = default;
};

// Content of a file: inline, or by payload file when `payload` has a digest.
struct FileContent {
  std::string inline_bytes;
  PayloadFile payload;

  bool is_payload() const { return !payload.sha256.empty(); }
  friend bool operator==(const FileContent&, const FileContent&) = default;
};

struct CreateRepository {
  RepositoryId id;
  std::string path;               // without ".git"
  PartitionId partition = 0;
  ObjectFormat format = ObjectFormat::kSha1;
  std::string head_target;        // refs/heads/main
  // Of an adopted repository: the directory below the store's root that becomes its own, and the paths in it that are
  // moved to lost-found/adopt-<id>/. Empty: a new repository.
  std::string adopted_from = "";
  std::vector<std::string> set_aside = {};
  bool is_adopted() const { return !adopted_from.empty(); }
  friend bool operator==(const CreateRepository&, const CreateRepository&) = default;
};
// Facts of a repository's row travel with what changes it, so that an entry is applied without reading the row.
struct RowFacts {
  PartitionId partition = 0;
  ObjectFormat format = ObjectFormat::kSha1;
  std::vector<RepositoryId> alternates = {};  // repositories that it borrows from, in the order of its alternates file
  int64_t removed_at_ns = 0;                  // since 1970; 0: it is not removed
  friend bool operator==(const RowFacts&, const RowFacts&) = default;
};
// Frees the path and hides the repository; its directory and its row stay for as long as it may be brought back.
// `purge`: it was removed before, and now goes for good.
struct RemoveRepository {
  RepositoryId id;
  std::string path = "";          // that it has; of a purge: that it had
  RowFacts facts = {};
  bool purge = false;
  // Of a purge: where below the store's root its directory goes, whole, with what its adoption set aside. Empty: nowhere.
  std::string released_to = "";
  friend bool operator==(const RemoveRepository&, const RemoveRepository&) = default;
};
// Moves a repository's path, or brings a removed one back (`old_path` is empty); its directory does not move.
struct SetPath {
  RepositoryId id;
  std::string path;
  std::string old_path = "";
  RowFacts facts = {};
  friend bool operator==(const SetPath&, const SetPath&) = default;
};
struct EnsureGroup {
  std::string path;
  friend bool operator==(const EnsureGroup&, const EnsureGroup&) = default;
};
struct RemoveGroup {
  std::string path;
  friend bool operator==(const RemoveGroup&, const RemoveGroup&) = default;
};
struct PutFile {
  RepositoryId id;
  std::string path;               // inside the repository
  uint32_t mode = 0644;           // permission bits
  FileContent content;
  friend bool operator==(const PutFile&, const PutFile&) = default;
};
struct RemoveFile {
  RepositoryId id;
  std::string path;
  friend bool operator==(const RemoveFile&, const RemoveFile&) = default;
};
struct MakeDirectory {
  RepositoryId id;
  std::string path;
  friend bool operator==(const MakeDirectory&, const MakeDirectory&) = default;
};
struct RemoveDirectory {
  RepositoryId id;
  std::string path;
  friend bool operator==(const RemoveDirectory&, const RemoveDirectory&) = default;
};
struct PackedRef {
  std::string name;
  std::string oid;                // bytes of the id
  std::string peeled;             // bytes of the peeled id of an annotated tag, else empty
  friend bool operator==(const PackedRef&, const PackedRef&) = default;
};
// Named lines of packed-refs; names that are not there are fine.
struct EditPackedRefs {
  RepositoryId id;
  std::vector<PackedRef> set;        // sorted by name, strictly
  std::vector<std::string> remove;   // sorted, strictly; disjoint from set
  friend bool operator==(const EditPackedRefs&, const EditPackedRefs&) = default;
};
struct AddPack {
  RepositoryId id;
  std::string name;               // "pack-<hex>" without suffix
  PayloadFile pack, index, reverse_index;
  // Of a pack of unreachable objects: when each was added last (objects/cruft_times.h). Else none.
  PayloadFile cruft_times = {};
  bool is_cruft() const { return !cruft_times.sha256.empty(); }
  friend bool operator==(const AddPack&, const AddPack&) = default;
};
struct RemovePack {
  RepositoryId id;
  std::string name;
  friend bool operator==(const RemovePack&, const RemovePack&) = default;
};
// commit-graph, multi-pack-index, bitmap: a derived file below objects/, replaced or (no content) removed.
struct ReplaceDerived {
  RepositoryId id;
  std::string path;
  bool remove = false;
  FileContent content;
  friend bool operator==(const ReplaceDerived&, const ReplaceDerived&) = default;
};
// `alternates`: everything that the member borrows from afterwards, in the order of its alternates file.
struct LinkAlternate {
  RepositoryId member, pool;
  std::vector<RepositoryId> alternates = {};
  friend bool operator==(const LinkAlternate&, const LinkAlternate&) = default;
};
struct UnlinkAlternate {
  RepositoryId member, pool;
  std::vector<RepositoryId> alternates = {};
  friend bool operator==(const UnlinkAlternate&, const UnlinkAlternate&) = default;
};
struct PutKey {
  PartitionId partition = 0;
  std::string key, value;
  friend bool operator==(const PutKey&, const PutKey&) = default;
};
struct DeleteKey {
  PartitionId partition = 0;
  std::string key;
  friend bool operator==(const DeleteKey&, const DeleteKey&) = default;
};

using Operation =
    std::variant<CreateRepository, RemoveRepository, SetPath, EnsureGroup, RemoveGroup, PutFile, RemoveFile,
                 MakeDirectory, RemoveDirectory, EditPackedRefs, AddPack, RemovePack, ReplaceDerived, LinkAlternate,
                 UnlinkAlternate, PutKey, DeleteKey>;

// Value of a ref in the log: absent, an object id, or the name of another ref.
struct LoggedRefValue {
  enum class Kind : uint8_t { kAbsent = 0, kObject = 1, kSymbolic = 2 };
  Kind kind = Kind::kAbsent;
  std::string bytes;              // id bytes, or target name
  std::string peeled;             // for an annotated tag: id bytes of what it finally names
  friend bool operator==(const LoggedRefValue&, const LoggedRefValue&) = default;
};
struct RefChange {
  RepositoryId id;
  std::string name;               // full name; HEAD included
  LoggedRefValue old_value, new_value;
  friend bool operator==(const RefChange&, const RefChange&) = default;
};
// Refs whose values were moved into packed-refs without a change of value.
struct RefsPacked {
  RepositoryId id;
  std::vector<PackedRef> refs;    // sorted by name
  friend bool operator==(const RefsPacked&, const RefsPacked&) = default;
};
struct ObjectsRemoved {
  RepositoryId id;
  std::vector<std::string> oids;
  friend bool operator==(const ObjectsRemoved&, const ObjectsRemoved&) = default;
};

// Logical facts beside the file operations; changes no file by itself.
struct Note {
  std::vector<RefChange> ref_changes;
  std::vector<RefsPacked> refs_packed;
  std::vector<ObjectsRemoved> objects_removed;
  std::string actor;                       // who
  std::string origin;                      // from where
  std::vector<std::string> push_options;
  // This entry only fences request_id of the manifest: a later commit with it is refused.
  bool fences_request = false;
  friend bool operator==(const Note&, const Note&) = default;
};

struct Manifest {
  TransactionId transaction_id;
  std::string request_id;                  // empty: none
  absl::Time created_at;                   // nanoseconds; becomes the mtime of linked packs
  std::vector<Operation> operations;
  Note note;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// A ref taken out of a packing by the critical section because it was written meanwhile. It removes the name from
// RefsPacked and from EditPackedRefs::set, and the RemoveFile of its loose file.
struct DroppedRef {
  RepositoryId id;
  std::string name;
  friend bool operator==(const DroppedRef&, const DroppedRef&) = default;
};

}  // namespace repotxn::wal

#endif  // REPOTXN_WAL_OPERATION_H_
