// A transaction over a list of repositories: reads one snapshot, stages changes, commits them all or none.
//
//   auto result = store->Run({}, [](Transaction& txn) -> absl::Status {
//     REPOTXN_ASSIGN_OR_RETURN(RepositoryId id, txn.OpenRepository(path));
//     return txn.UpdateRef(id, {.name = name, .value = refs::RefValue::Object(oid)});
//   });
//
// Reads are served at snapshot_lsn(), merged with the transaction's own staged writes; each read is declared and
// checked at commit (serializable over declared reads). Nothing staged is visible to anyone before commit, no lock is
// held in between, and a transaction that is dropped leaves nothing behind.
//
// Errors, common to all calls
//   kInvalidArgument     malformed name, path or value; nothing staged. Never retry.
//   kNotFound            the repository, ref or file is absent at the snapshot.
//   kPermissionDenied    a write in a read-only transaction.
//   kFailedPrecondition  the transaction has ended (Commit or Abort was called), or an expected old value differs.
//   kAborted             the store ended the transaction: it lay idle longer than StoreOptions::idle_lease, or its
//                        snapshot is too old (conflict detail kTooOld) because what it kept grew beyond the bounds.
//                        Begin a new one; nothing of this one is or will be committed.
//
// Durability: none before Commit() returns kCommitted.
// Single-threaded (one caller at a time). Must not outlive its Store.
#ifndef REPOTXN_TXN_TRANSACTION_H_
#define REPOTXN_TXN_TRANSACTION_H_

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "refs/ref_name.h"
#include "refs/ref_update.h"
#include "refs/ref_value.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "txn/outcome.h"
#include "txn/repository_path.h"
#include "wal/lsn.h"

namespace repotxn::txn {

class ObjectStaging;
class StoreCore;
class WriteSnapshot;
struct CapturedChanges;
struct StagedChanges;
struct WriteSnapshotOptions;

enum class Access : uint8_t { kReadOnly, kReadWrite };

// One file of a repository: its content and permission bits.
struct FileValue {
  std::string content;
  uint32_t mode = 0644;

  friend bool operator==(const FileValue&, const FileValue&) = default;
};

// A catalogue row as a transaction sees it.
struct RepositoryInfo {
  RepositoryId id;
  std::string path;
  ObjectFormat format = ObjectFormat::kSha1;
  wal::Lsn version;  // LSN of the row's last change
  uint64_t partition = 0;
};

struct CreateOptions {
  ObjectFormat format = ObjectFormat::kSha1;
  std::string head_target = "refs/heads/main";
};

struct PackMergeOptions {
  bool all = false;
};
// What a merge does.
struct PackMerge {
  int64_t packs_before = 0;
  int64_t packs_merged = 0;   // into one
  int64_t loose_objects = 0;  // taken into it
  int64_t objects = 0;        // in that one
};

struct RepackOptions {
  // Unreachable objects that were added before are removed, unless one that stays names them. InfinitePast: none.
  absl::Time expire_before = absl::InfinitePast();
};
// What a repack does.
struct Repack {
  int64_t packs_before = 0, packs_after = 0;
  int64_t reachable = 0;  // objects, in one pack
  int64_t cruft = 0;      // unreachable ones that stay, in another
  int64_t borrowed = 0;   // objects given up, since a pool has them
  int64_t removed = 0;    // objects that are gone
};

// What was written of the files that Git derives from objects and refs.
struct DerivedIndexes {
  bool has_commit_graph = false, has_multi_pack_index = false, has_bitmap = false;  // afterwards
  bool is_changed = false;
};

struct ForkOptions {
  // Refs that the fork begins with: those whose names begin with one of these. HEAD comes along if it is symbolic.
  std::vector<std::string> ref_prefixes = {"refs/heads/", "refs/tags/"};
};

// One name in a group: a repository, or (no id) a group.
struct GroupEntry {
  std::string name;
  std::optional<RepositoryId> repository;
  friend bool operator==(const GroupEntry&, const GroupEntry&) = default;
};

// Where a key lives: in the store, in a partition, or in a repository (and then it goes when the repository is purged,
// cannot be reached while it is removed, and meets its deletion).
struct KeySpace {
  uint64_t partition = 0;
  std::optional<RepositoryId> repository;

  static KeySpace OfStore() { return {}; }
  static KeySpace OfPartition(uint64_t partition) { return {partition, std::nullopt}; }
  static KeySpace OfRepository(const RepositoryId& id) { return {0, id}; }
};
inline constexpr size_t kKeyBytesMax = 1 << 10;
inline constexpr size_t kValueBytesMax = 1 << 20;

class Transaction {
 public:
  // An uncommitted transaction is aborted.
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const TransactionId& id() const;
  wal::Lsn snapshot_lsn() const;

  // In a replay by Store::Run: the conflict that the attempt before lost with (kAborted with its detail); else OK.
  const absl::Status& previous_conflict() const;

  // Moves the snapshot of the whole transaction, all its repositories included, to the newest committed LSN, when
  // nothing that it has read changed meanwhile; kAborted with the conflict otherwise, and the transaction stays as it was.
  absl::Status Extend();

  // Catalogue. A path that is looked up, found or not, is a declared read.
  absl::StatusOr<RepositoryId> OpenRepository(const RepositoryPath& path);
  absl::StatusOr<RepositoryInfo> Describe(const RepositoryId& id);
  // Strict: kAlreadyExists when the path is a repository or a group, or a repository stands at one of its ancestors.
  // Missing ancestors become groups. The id is drawn here.
  absl::StatusOr<RepositoryId> CreateRepository(const RepositoryPath& path, const CreateOptions& options);
  // Idempotent: the repository at `path`, made when there is none. Whoever loses a race gets the winner's in a replay.
  absl::StatusOr<RepositoryId> EnsureRepository(const RepositoryPath& path, const CreateOptions& options);
  // Takes constant time; the path is free at once. The repository can be brought back until the undelete time has
  // passed (StoreOptions::undelete_retention), then it is purged.
  // kFailedPrecondition: live repositories borrow objects from it, or this transaction created it.
  absl::Status DeleteRepository(const RepositoryId& id);
  // kAlreadyExists: as CreateRepository(). Nothing is copied; open readers are not disturbed.
  absl::Status MoveRepository(const RepositoryId& id, const RepositoryPath& to);
  // kNotFound: no repository with this id was deleted, or it was purged. kFailedPrecondition: one that it borrowed from
  // is gone. kAlreadyExists: `path` is taken.
  absl::Status UndeleteRepository(const RepositoryId& id, const RepositoryPath& path);

  // Makes `path` and its missing ancestors groups. kAlreadyExists when one of them is a repository.
  absl::Status EnsureGroup(absl::string_view path);
  // kFailedPrecondition while anything lives below.
  absl::Status RemoveGroup(absl::string_view path);
  // What is directly below a group ("" is the top), by name.
  absl::StatusOr<std::vector<GroupEntry>> ListGroup(absl::string_view path);

  // Alternates. `member` borrows the objects of `pool`, which may borrow itself; a chain has at most 4 links.
  // kAlreadyExists: it does already. kFailedPrecondition: a circle, a chain too long, other object formats.
  absl::Status LinkAlternate(const RepositoryId& member, const RepositoryId& pool);
  // First copies into `member` every object of the pool that an object of the member names, directly or not, whatever it
  // takes (Git children run); then the link is gone. Conflicts with whatever adds objects or refs to the member meanwhile.
  // kNotFound: no such link. kDataLoss: an object that is named exists nowhere.
  absl::Status UnlinkAlternate(const RepositoryId& member, const RepositoryId& pool);
  // Repositories that `id` borrows from directly, in order; and that borrow from it directly.
  absl::StatusOr<std::vector<RepositoryId>> Alternates(const RepositoryId& id);
  absl::StatusOr<std::vector<RepositoryId>> Members(const RepositoryId& pool);
  // A new repository in the partition of `source` that borrows its objects and begins with its refs at the snapshot
  // (they are no declared reads: later pushes to the source do not abort the fork). The cost does not depend on the
  // number of objects. Errors: as CreateRepository() and LinkAlternate().
  absl::StatusOr<RepositoryId> ForkRepository(const RepositoryId& source, const RepositoryPath& path,
                                              const ForkOptions& options);
  // A new repository in the partition of `member` that has all its objects and no refs, and from which `member` borrows from now on.
  // Reads every pack once (digests), copies none: files are linked. Loose objects are packed.
  absl::StatusOr<RepositoryId> CreatePool(const RepositoryId& member, const RepositoryPath& path);

  // Merges packs of the repository into one, without loss: every object of theirs is in the new pack, reachable or not, and
  // the old ones are removed; their files go when no older reader is left. Which: those that have to be so that each pack
  // holds at least twice as many objects as all smaller ones together, or all. Git children run; meets no push, whichever
  // comes first, only another removal of the same packs. Nothing to merge: no change.
  //
  // A pack with a `.keep` file stays as it is; a multi-pack-index that names a removed pack goes in the same entry.
  //
  // Errors: kFailedPrecondition the repository is created by the same transaction, or a file of a later Git that names packs
  // stands in the way; kDataLoss a damaged pack.
  absl::StatusOr<PackMerge> MergePacks(const RepositoryId& id, const PackMergeOptions& options);

  // Packs the repository anew: the objects that its refs, or any object or ref of a repository that borrows from it, reach go
  // into one pack; the others into a second with the time of each (a cruft pack), but for those that expire, which are removed.
  // Closure is proved: nothing that stays, here or in a borrower, names what goes. What a pool has is given up. Git
  // children run; pushes go on meanwhile, and what they use of the objects to be removed makes it begin anew (kAborted).
  //
  // Errors: kFailedPrecondition loose objects are there (MergePacks() first), a `.keep` (nothing expires then), the
  // repository is created by the same transaction, or packs were rewritten by it already; kDataLoss a missing or damaged
  // object. At the commit: kFailedPrecondition when objects are lost by it and the transaction changes anything else of any
  // repository, since that would not be looked at.
  absl::StatusOr<Repack> RepackObjects(const RepositoryId& id, const RepackOptions& options);
  // Brings commit-graph, multi-pack-index and bitmap up to date with refs and packs, and removes damaged or stale parts. Git
  // children run, and the transaction's snapshot moves forward to the packs that are there; what is pushed after that is
  // covered the next time, and a concurrent removal of a pack aborts it. A repository that borrows has neither
  // commit-graph nor bitmap, Git reads its pool's; a shallow one has none either. A pool without refs has no bitmap.
  //
  // Errors: kAborted something that was read has changed; kFailedPrecondition the repository is created by the same
  // transaction; kDataLoss a missing or damaged object.
  absl::StatusOr<DerivedIndexes> WriteDerivedIndexes(const RepositoryId& id);

  // Refs. Full names. A read of a symbolic ref (also a dangling one) gives its own value, unresolved; absent refs are
  // RefValue::Absent(), not an error.
  absl::StatusOr<refs::RefValue> ReadRef(const RepositoryId& id, const refs::RefName& name);
  // Refs below refs/ whose names begin with `prefix` (any bytes), sorted; "" is all of them. HEAD is not listed.
  absl::StatusOr<std::vector<std::pair<refs::RefName, refs::RefValue>>> ListRefs(const RepositoryId& id,
                                                                                absl::string_view prefix);
  // kFailedPrecondition: expected old value differs at the snapshot, a directory/file conflict with an existing ref,
  // or the new object is absent (or not a commit, below refs/heads/).
  absl::Status UpdateRef(const RepositoryId& id, const refs::RefUpdate& update);

  // Files of a repository. Not HEAD, packed-refs, refs/, objects/, logs/, *.lock, gc.pid: kInvalidArgument.
  absl::StatusOr<FileValue> ReadFile(const RepositoryId& id, absl::string_view path);
  absl::Status PutFile(const RepositoryId& id, absl::string_view path, FileValue value);
  // kNotFound when absent.
  absl::Status RemoveFile(const RepositoryId& id, absl::string_view path);
  absl::Status MakeDirectory(const RepositoryId& id, absl::string_view path);
  // kFailedPrecondition when not empty.
  absl::Status RemoveDirectory(const RepositoryId& id, absl::string_view path);
  // Names in a directory ("" is the repository itself; HEAD, refs/, objects/ and packed-refs are not listed).
  absl::StatusOr<std::vector<std::string>> ListDirectory(const RepositoryId& id, absl::string_view path);

  // Key space: rows of the embedder's own, up to kKeyBytesMax and kValueBytesMax. Puts and deletes are blind: they meet
  // reads of the key, not one another. kNotFound: the repository of the space is absent.
  absl::StatusOr<std::optional<std::string>> GetKey(const KeySpace& space, absl::string_view key);
  absl::Status PutKey(const KeySpace& space, absl::string_view key, absl::string_view value);
  absl::Status DeleteKey(const KeySpace& space, absl::string_view key);
  // At most `limit` rows with keys in [first, end), in order; an empty `end` is no bound. Protected against phantoms as
  // far as it looked, also when it found nothing.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ScanKeys(const KeySpace& space,
                                                                           absl::string_view first,
                                                                           absl::string_view end, int limit);

  // Declares everything in the repository as read: refs, files, keys and objects that are added. For whoever lets a
  // program read it and cannot say what.
  absl::Status ReadWholeRepository(const RepositoryId& id);

  // Objects. Existence of an object is a dependency checked again at commit; absence is a hint.
  absl::StatusOr<bool> ObjectExists(const RepositoryId& id, const ObjectId& oid);
  // Adds the sealed pack of `staging` (kept alive by the caller until the outcome is known; may be given again to a
  // replay of the body). A staging without a pack adds nothing.
  absl::Status AddPack(const RepositoryId& id, std::shared_ptr<ObjectStaging> staging);

  // Runs `action` at most once in a call of Store::Run, however often the body is played again, and gives the same
  // result, errors included, to every later call with the same `step`. For what reaches outside: asking a policy server,
  // running a hook. `action` returns absl::Status or an absl::StatusOr of something that can be copied, and may use the
  // transaction; what it reads there is declared in this play alone, so read again what the decision rests on. Outside
  // of Run: once a transaction. kInvalidArgument: the step had a result of another type.
  template <typename Action>
  std::invoke_result_t<Action&> RunOnce(absl::string_view step, Action&& action) {
    using Result = std::invoke_result_t<Action&>;
    static_assert(std::is_constructible_v<Result, absl::Status>, "a step returns Status or StatusOr");
    std::any result;
    const absl::Status status =
        RunOnceErased(step, [&action] { return std::any(Result(action())); }, &result);
    if (!status.ok()) return Result(status);
    if (Result* kept = std::any_cast<Result>(&result)) return *std::move(kept);
    return Result(absl::InvalidArgumentError("step had a result of another type"));
  }

  // Git children that write (txn/write_snapshot.h): private directories of these repositories, all at one LSN, to which
  // the snapshot of the whole transaction moves first. They go when the transaction ends.
  absl::StatusOr<WriteSnapshot*> OpenWriteSnapshot(std::vector<RepositoryId> ids, const WriteSnapshotOptions& options);
  // Stages what children left there, once; says what that was, a repository each. Nothing is staged after an error.
  absl::StatusOr<std::vector<CapturedChanges>> Capture(WriteSnapshot* snapshot);

  // Facts for the log: who, from where, with which push options.
  void SetActor(absl::string_view actor, absl::string_view origin);
  void SetPushOptions(std::vector<std::string> options);

  // Checks without committing: OK, or the kAborted that a commit now would get.
  absl::Status DryRun();
  // Commits. Afterwards the transaction has ended whatever the outcome. See CommitResult.
  CommitResult Commit();
  void Abort();

 private:
  friend class Store;
  friend class StoreCore;
  explicit Transaction(std::unique_ptr<StagedChanges> changes);
  absl::Status RunOnceErased(absl::string_view step, absl::FunctionRef<std::any()> action, std::any* result);
  absl::StatusOr<RepositoryId> CreateIn(const RepositoryPath& path, const CreateOptions& options,
                                        uint64_t partition);
  absl::StatusOr<std::vector<RepositoryId>> MembersOf(const RepositoryId& pool);
  // Longest chain of links that ends in `id`.
  absl::StatusOr<int> DepthAbove(const RepositoryId& id, int limit);
  absl::Status BringInBorrowedObjects(const RepositoryId& member, const RepositoryId& pool);
  std::unique_ptr<StagedChanges> changes_;
};

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_TRANSACTION_H_
