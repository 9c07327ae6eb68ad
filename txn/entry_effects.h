// What one entry changes, as versions to publish and directory work to do. Pure.
//
// Made once, while staging or in recovery, so that publication only moves values. Refs come from the note alone, files
// from the file operations alone (which the caller has verified to say the same: refs::VerifyRefOperations).
#ifndef REPOTXN_TXN_ENTRY_EFFECTS_H_
#define REPOTXN_TXN_ENTRY_EFFECTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "refs/ref_value.h"
#include "storage/id128.h"
#include "txn/catalogue.h"
#include "wal/operation.h"

namespace repotxn::txn {

// A ref at one LSN, and where the entry leaves it.
struct RefState {
  refs::RefValue value;
  bool is_packed = false;  // placed in packed-refs instead of a file of its own
};
inline int64_t StateBytes(const RefState&) { return 0; }

// A file or directory of a repository at one LSN. Content is shared, never copied.
struct FileState {
  enum class Kind : uint8_t { kAbsent, kFile, kDirectory };
  Kind kind = Kind::kAbsent;
  uint32_t mode = 0644;
  std::shared_ptr<const std::string> content;  // of a file
};
inline int64_t StateBytes(const FileState& state) {
  return state.content == nullptr ? 0 : static_cast<int64_t>(state.content->size());
}

struct RepositoryEffects {
  RepositoryId id;
  std::vector<std::pair<std::string, RefState>> refs;
  std::vector<std::pair<std::string, FileState>> files;
};

// All that a repository borrows from after the entry, in the order of its alternates file.
struct ChangedAlternates {
  RepositoryId id;
  std::vector<RepositoryId> alternates;
};

struct EntryEffects {
  std::vector<RepositoryEffects> repositories;  // sorted by id
  KeyChanges keys;
  // Directory work, done after the entry is durable and before it is published.
  std::vector<wal::CreateRepository> created;
  std::vector<wal::AddPack> packs;
  // In the order in which they are done, whatever the manifest's (objects/derived_path.h).
  std::vector<wal::ReplaceDerived> derived;
  std::vector<ChangedAlternates> alternates;
  // Condemned when the entry is published; no directory work.
  std::vector<wal::RemovePack> removed_packs;
  // Repositories that have lost objects, whose packs are among those removed.
  std::vector<RepositoryId> objects_removed;
  std::vector<RepositoryId> purged;
  // Those of `purged` whose directories are given back, and where to.
  std::vector<std::pair<RepositoryId, std::string>> released;
  absl::Time created_at;

  bool has_directory_work() const {
    return !created.empty() || !packs.empty() || !derived.empty() || !alternates.empty() || !purged.empty();
  }
};

// Whole validation of a manifest before its first effect: every name, path, mode, id and value; operations that are
// specified but not applied by this version are kUnimplemented, everything else that is wrong is kDataLoss.
absl::Status ValidateManifest(const wal::Manifest& manifest);

// `read_payload` gives the content of a payload file (PutFile above the inline bound). The manifest is valid.
using PayloadReader = std::function<absl::StatusOr<std::string>(const wal::PayloadFile&)>;
absl::StatusOr<EntryEffects> MakeEffects(const wal::Manifest& manifest, const PayloadReader& read_payload);

// Takes names out of the packing part of `effects`, as wal::DroppedRef says.
void DropPackedRefs(absl::Span<const wal::DroppedRef> dropped, EntryEffects* effects);

// Whether callers may write `path` of a repository as a file: not HEAD, packed-refs, refs/, objects/, logs/, FETCH_HEAD,
// *.lock, gc.pid, nothing malformed. kInvalidArgument says why.
absl::Status CheckWritablePath(absl::string_view path);

// Whether the directory `source` below the store's root may become a repository: none of the store's own, none that
// holds one. kInvalidArgument says why. Directories in lost-found/ and below repositories/ may.
absl::Status CheckAdoptable(absl::string_view source);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_ENTRY_EFFECTS_H_
