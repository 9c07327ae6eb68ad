// Rows of the applied state: their keys in the metadata store and their encodings. Pure.
//
// Nothing here that is not derivable from the log since the checkpoint. Every value is stored behind the 8 bytes
// (little endian) of the LSN of its last change, so that a row's version needs no field of its own.
//
//   key                       value
//   r/<repository id>         "<path>\0<partition, hex>\0<format>\0", and "<ns since 1970>\0" when it is removed but may
//                             still be brought back (the path is then the one it had)
//   a/<repository id>         ids of the repositories that it borrows from, in the order of its alternates file
//   l/<pool id><member id>    "L" the member borrows from the pool; "D" it does, and is removed
//   d/<ns, big endian><id>    when a repository was removed, empty value: finds what is due to be purged
//   c/<id><pack>              a pack that was removed and is still at its place, empty value: until nobody can need it
//   k/<partition, big endian><key>   a row of the key space
//   p/<path>                  "R<repository id>" a repository, "G" a group
//   t/<transaction id>        an outcome row: committed; the LSN prefix says where
//   q/<request id>            "C<transaction id>" committed, "F" fenced: a later commit with it is refused
//   o/<lsn, big endian>       the same outcome row, in LSN order: finds outcomes that are due to be forgotten
//   m/positions               applied position and consumers (wal/positions.h)
//   m/forgotten               how far outcomes have been forgotten
//
// Thread-compatible.
#ifndef REPOTXN_TXN_CATALOGUE_H_
#define REPOTXN_TXN_CATALOGUE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/id128.h"
#include "storage/object_id.h"
#include "wal/lsn.h"
#include "wal/operation.h"

namespace repotxn::txn {

struct RepositoryRow {
  std::string path;
  wal::PartitionId partition = 0;
  ObjectFormat format = ObjectFormat::kSha1;
  int64_t removed_at_ns = 0;  // 0: it is not removed
  bool is_removed() const { return removed_at_ns != 0; }
  friend bool operator==(const RepositoryRow&, const RepositoryRow&) = default;
};
// What a path names: a repository, or (no id) a group.
struct PathRow {
  std::optional<RepositoryId> repository;
  friend bool operator==(const PathRow&, const PathRow&) = default;
};
struct RequestRow {
  std::optional<TransactionId> committed;  // none: fenced
  friend bool operator==(const RequestRow&, const RequestRow&) = default;
};
// "<created_at, ns>\0<transaction id><request id>"
struct OutcomeRow {
  absl::Time created_at;
  TransactionId transaction_id;
  std::string request_id;
};

inline constexpr absl::string_view kPositionsKey = "m/positions";

std::string RepositoryKey(const RepositoryId& id);
std::string PathKey(absl::string_view path);
std::string TransactionKey(const TransactionId& id);
std::string RequestKey(absl::string_view request_id);
std::string OutcomeKey(wal::Lsn lsn);
std::string AlternatesKey(const RepositoryId& id);
std::string LinkKey(const RepositoryId& pool, const RepositoryId& member);
std::string LinksToPoolPrefix(const RepositoryId& pool);
std::string RemovedKey(int64_t removed_at_ns, const RepositoryId& id);
// A pack that was removed and is still at its place (txn/condemned_files.h); the LSN is the row's.
inline constexpr absl::string_view kCondemnedPrefix = "c/";
std::string CondemnedKey(const RepositoryId& id, absl::string_view pack);
struct CondemnedRow {
  RepositoryId id;
  std::string pack;
};
absl::StatusOr<CondemnedRow> DecodeCondemnedKey(absl::string_view key);
// Of the key space, of a repository's and of a partition's own keys. In KeyOfKeySpace `key` has the prefix, and may be
// empty: the first of the partition.
std::string KeyPrefixOfRepository(const RepositoryId& id);
inline constexpr absl::string_view kKeyPrefixOfPartition = "p";
// A key as the log has it, with its prefix, taken apart. Nothing when it has none of the prefixes.
struct OwnedKey {
  std::optional<RepositoryId> repository;
  std::string key;
};
std::optional<OwnedKey> SplitLoggedKey(absl::string_view logged);
std::string KeyOfKeySpace(wal::PartitionId partition, absl::string_view key);

std::string Encode(const RepositoryRow& row);
std::string Encode(const PathRow& row);
std::string Encode(const RequestRow& row);
std::string Encode(const OutcomeRow& row);
// kDataLoss when malformed.
absl::StatusOr<RepositoryRow> DecodeRepositoryRow(absl::string_view value);
absl::StatusOr<PathRow> DecodePathRow(absl::string_view value);
absl::StatusOr<RequestRow> DecodeRequestRow(absl::string_view value);
absl::StatusOr<OutcomeRow> DecodeOutcomeRow(absl::string_view value);
std::string EncodeIds(const std::vector<RepositoryId>& ids);
absl::StatusOr<std::vector<RepositoryId>> DecodeIds(absl::string_view value);

struct LinkRow {
  RepositoryId member;
  bool member_is_removed = false;
};
// Of a key with LinksToPoolPrefix() and its value.
absl::StatusOr<LinkRow> DecodeLinkRow(absl::string_view key, absl::string_view value);
struct RemovedRow {
  int64_t removed_at_ns = 0;
  RepositoryId id;
};
absl::StatusOr<RemovedRow> DecodeRemovedKey(absl::string_view key);

// A value with the LSN of its last change, as it stands in the metadata store.
std::string WithVersion(wal::Lsn lsn, absl::string_view value);
absl::StatusOr<std::pair<wal::Lsn, std::string>> SplitVersion(absl::string_view stored);

// Row changes of an entry: key and new value (nullopt: removed), each key once. What is given up comes before what is
// taken, so that two repositories may swap their paths in one entry.
using KeyChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;
KeyChanges CatalogueChanges(const wal::Manifest& manifest);

}  // namespace repotxn::txn

#endif  // REPOTXN_TXN_CATALOGUE_H_
