// Answers whether an object is in a repository, of which type, and what it names, without a Git
// child.
//
// Looks into pack indexes and loose files of one object directory and of everything it borrows
// from; WithQuarantine() puts a transaction's own object directory in front. Never answers from a
// commit-graph, which hides holes, nor from a condemned file [hard cases A4, A5]. The empty tree
// always exists.
//
// The list of packs is cached. A miss reads the directories again before it is believed, so packs
// that are linked behind our back are found; NotePackAdded() spares that. A hit is believed only
// while the pack's file is there, so a pack that is unlinked behind our back is not answered from;
// NotePackRemoved() also frees its handle.
//
// Presence of an object is a hint to a transaction, absence too: what a commit depends on is
// checked again at commit.
//
// Errors, of every question
//   kNotFound         (not Exists()) no such object; detail "oid".
//   kDataLoss         a damaged file; detail "file".
//   kInvalidArgument  an id of the other format.
// A damaged pack does not hide another copy of the object: it is reported only when no other file
// has it.
//
// Invariants
//   I1  No answer comes from a file for which `is_condemned` was true when it was asked during the
//   call. I2  At most `open_packs_max` packs are open, beside those in use by calls under way.
//
// Thread-safe. `is_condemned` is called from any thread, with no latch of ours held.
//
// Lifetime: the file system must outlive it; a lookup with a quarantine keeps the live one alive.
#ifndef REPOTXN_OBJECTS_OBJECT_LOOKUP_H_
#define REPOTXN_OBJECTS_OBJECT_LOOKUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "objects/object_reader.h"
#include "objects/object_type.h"
#include "storage/file_system.h"
#include "storage/object_id.h"
#include "storage/store_path.h"
#include "storage/sync.h"

namespace repotxn::objects {

// Most annotated tags that Peel() follows.
inline constexpr int kTagChainMax = 64;

class ObjectLookup {
 public:
  // Whether the object file at this path (…/pack-x.pack, or a loose object) is condemned.
  using CondemnedPredicate = std::function<bool(const storage::StorePath&)>;

  struct Options {
    ObjectFormat format = ObjectFormat::kSha1;
    // Open packs kept; two descriptors each. Range [1, 4096].
    int open_packs_max = 64;
    // Largest commit or tag that is read, in bytes.
    int64_t content_bytes_max = kContentBytesMax;
    // Unset: nothing is condemned.
    CondemnedPredicate is_condemned = nullptr;
  };

  // A commit, tree or blob behind any number of annotated tags.
  struct Peeled {
    ObjectId oid;
    ObjectType type = ObjectType::kCommit;
    int tags = 0;  // number of tags passed; 0: the object itself
  };

  // Opens the object directory `objects` (…/<id>.git/objects) and its chain of alternates.
  //
  // Errors: kNotFound without that directory, kInvalidArgument or kFailedPrecondition as
  // ResolveChain().
  static absl::StatusOr<std::shared_ptr<ObjectLookup>> Open(storage::FileSystem* fs,
                                                            const storage::StorePath& objects,
                                                            Options options);

  // Looks first into the object directory `quarantine`, then asks `live`. The quarantine's
  // alternates are not followed. `live` may be null for a repository that the transaction creates;
  // its format and limits are then `options`.
  static std::shared_ptr<ObjectLookup> WithQuarantine(std::shared_ptr<ObjectLookup> live,
                                                      storage::FileSystem* fs,
                                                      const storage::StorePath& quarantine,
                                                      Options options);

  absl::StatusOr<bool> Exists(const ObjectId& oid);
  absl::StatusOr<ObjectInfo> Info(const ObjectId& oid);
  absl::StatusOr<ObjectType> Type(const ObjectId& oid);
  // kOutOfRange when larger than `content_bytes_max`.
  absl::StatusOr<ObjectContent> Read(const ObjectId& oid);
  // Follows annotated tags from `oid` to what is none, as `<oid>^{}` does; the final object exists,
  // and is of the type that the last tag says (else kDataLoss). kResourceExhausted beyond
  // kTagChainMax.
  absl::StatusOr<Peeled> Peel(const ObjectId& oid);
  // Parents as written in the commit; grafts, replace refs and `shallow` are not applied.
  // kFailedPrecondition when `oid` is no commit.
  absl::StatusOr<std::vector<ObjectId>> CommitParents(const ObjectId& oid);

  // The pack `name` ("pack-…", no suffix) was linked into the object directory given to Open().
  void NotePackAdded(absl::string_view name);
  // It was unlinked there.
  void NotePackRemoved(absl::string_view name);
  // The alternates of this or of a borrowed directory changed: resolves the chain again. Errors as
  // Open(); the lookup then keeps the chain it had.
  absl::Status NoteAlternatesChanged();

  ObjectFormat format() const { return options_.format; }
  // Borrowed object directories now in use, nearest first.
  std::vector<storage::StorePath> alternates() const;
  // Packs whose handles are open now. For tests and metrics.
  int open_packs() const;

 private:
  // Where a copy of an object was found.
  struct Found {
    std::shared_ptr<const Pack> pack;  // null: a loose object
    int64_t offset = 0;                // in the pack
    storage::StorePath file;
  };
  // An object directory and its packs as last listed; never changed once made.
  struct Directory {
    storage::StorePath path;
    std::vector<std::string> packs;  // stems
  };
  using DirectoryList = std::vector<std::shared_ptr<const Directory>>;
  struct OpenPack {
    std::shared_ptr<const Pack> pack;
    int64_t last_use = 0;
  };
  // Reads what was found; an error makes the search go on, except kOutOfRange.
  using Visitor = std::function<absl::Status(const Found&)>;

  ObjectLookup(storage::FileSystem* fs, storage::StorePath objects, Options options);
  absl::Status CheckFormat(const ObjectId& oid) const;
  // Shows copies of `oid` to `visit` until it is content with one. kNotFound when there is none.
  absl::Status Visit(const ObjectId& oid, const Visitor& visit);
  static bool AreAlike(const DirectoryList& a, const DirectoryList& b);
  // `*is_in_condemned` becomes true when a condemned pack has the object.
  absl::Status VisitDirectory(const Directory& directory, const ObjectId& oid,
                              const Visitor& visit, bool* is_in_condemned);
  absl::Status VisitPack(const Directory& directory, const std::string& name, const ObjectId& oid,
                         const Visitor& visit, bool* is_in_condemned);
  absl::Status VisitLoose(const Directory& directory, const ObjectId& oid, const Visitor& visit);
  bool IsCondemned(const storage::StorePath& file) const;
  absl::StatusOr<std::shared_ptr<const Pack>> UsePack(const Directory& directory,
                                                      const std::string& name);
  void DropPack(const storage::StorePath& stem) ABSL_LOCKS_EXCLUDED(mutex_);
  DirectoryList Directories() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Resolves the chain and lists packs anew.
  absl::StatusOr<DirectoryList> Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<const Directory>> ListPacks(const storage::StorePath& path);

  // Constant after construction.
  storage::FileSystem* const fs_;
  const storage::StorePath objects_;
  const Options options_;
  std::shared_ptr<ObjectLookup> live_;  // behind a quarantine, or null
  bool follows_alternates_ = true;

  // Held for an instant, never over input or output.
  mutable storage::Mutex mutex_{storage::MutexRank::kLeaf};
  DirectoryList directories_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<storage::StorePath, OpenPack> open_packs_ ABSL_GUARDED_BY(mutex_);  // I2
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace repotxn::objects

#endif  // REPOTXN_OBJECTS_OBJECT_LOOKUP_H_
