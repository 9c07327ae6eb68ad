// Ordered map of byte strings on disk, for the applied state of a store; RocksDB over the
// FileSystem seam.
//
// Every byte goes through the FileSystem given to Open(), so a crash of an in-memory file system
// covers this too.
//
// Durability: a batch written with kSynced survives a crash from then on, whole. One written with
// kUnsynced may be lost with all later ones, never a part of it: after a crash the map holds a
// prefix of the batches, which includes every synced one. A later synced batch makes all earlier
// ones durable.
//
// Invariants
//   I1  A batch is there wholly or not at all.
//   I2  After the first failed write or sync nothing more is written: the store is poisoned until
//   it is opened again.
//
// Thread-safe.
//
// Lifetime: `fs` must outlive the store.
#ifndef REPOTXN_STORAGE_METADATA_STORE_H_
#define REPOTXN_STORAGE_METADATA_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/file_system.h"
#include "storage/store_path.h"

namespace repotxn::storage {

// Edits that take effect together, in the order in which they were added.
class MetadataBatch {
 public:
  struct Edit {
    enum class Kind : uint8_t { kPut, kDelete, kDeleteRange };
    Kind kind = Kind::kPut;
    std::string key;    // begin of a range, inclusive
    std::string value;  // end of a range, exclusive
  };

  void Put(absl::string_view key, absl::string_view value);
  void Delete(absl::string_view key);
  // Deletes every key in [begin, end).
  void DeleteRange(absl::string_view begin, absl::string_view end);
  void Clear() { edits_.clear(); }
  bool empty() const { return edits_.empty(); }
  const std::vector<Edit>& edits() const { return edits_; }

 private:
  std::vector<Edit> edits_;
};

enum class MetadataSync : uint8_t { kUnsynced, kSynced };

class MetadataStore {
 public:
  // Opens the map in directory `directory`, which is made when absent (its parent must exist).
  //
  // Errors
  //   kUnavailable   another process holds it, or the disk failed.
  //   kDataLoss      damage that no crash explains.
  static absl::StatusOr<std::unique_ptr<MetadataStore>> Open(FileSystem* fs,
                                                             const StorePath& directory);

  virtual ~MetadataStore() = default;

  // kNotFound when absent, kDataLoss when its block is damaged.
  virtual absl::StatusOr<std::string> Get(absl::string_view key) = 0;
  // kUnavailable when poisoned (I2); whether the failed batch is there is decided by the next Open.
  virtual absl::Status Write(const MetadataBatch& batch, MetadataSync sync) = 0;

  // Calls `visit` with each key in [begin, end) in byte order, as of the moment of the call, until
  // it returns false. An empty `end` is no bound. The views live during the call of `visit` only.
  using Visitor = std::function<bool(absl::string_view key, absl::string_view value)>;
  virtual absl::Status Scan(absl::string_view begin, absl::string_view end,
                            const Visitor& visit) = 0;

  // Makes every batch so far durable.
  virtual absl::Status Sync() = 0;
  // Waits for calls and background work under way, syncs, and closes. Later calls are kUnavailable.
  virtual absl::Status Close() = 0;
};

// The smallest key above every key that begins with `prefix`; "" (no bound) when there is none. For
// Scan over a prefix.
std::string PrefixEnd(absl::string_view prefix);

}  // namespace repotxn::storage

#endif  // REPOTXN_STORAGE_METADATA_STORE_H_
