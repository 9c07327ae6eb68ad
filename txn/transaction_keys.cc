// Transactions over the key space: the embedder's own rows, beside the repositories that they speak of.
//
// In the log and in the tables a key of a repository is "r<id><key>" in the repository's partition, any other "p<key>".
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/metadata_store.h"
#include "storage/status_macros.h"
#include "txn/staged_changes.h"
#include "txn/store_core.h"
#include "txn/transaction.h"
#include "txn/transaction_internal.h"

namespace repotxn::txn {
namespace {

constexpr int kRowsAtOnce = 1000;

// Where the keys of a space are.
struct Place {
  wal::PartitionId partition = wal::kNameSpacePartition;
  std::string prefix;

  std::string Of(absl::string_view key) const { return absl::StrCat(prefix, key); }
};

absl::StatusOr<Place> PlaceOf(const KeySpace& space, StagedChanges* changes) {
  if (!space.repository) return Place{space.partition, std::string(kKeyPrefixOfPartition)};
  REPOTXN_ASSIGN_OR_RETURN(const StagedRepository* repository, Touch(changes, *space.repository));
  // The repository's root: its keys go with it.
  changes->reads.files.push_back({*space.repository, ""});
  return Place{repository->live != nullptr ? repository->live->partition() : repository->created->partition,
               KeyPrefixOfRepository(*space.repository)};
}

absl::Status CheckKey(absl::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("key is empty");
  return key.size() > kKeyBytesMax ? absl::InvalidArgumentError("key is longer than 1 KiB")
                                   : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<std::string>> Transaction::GetKey(const KeySpace& space,
                                                               absl::string_view key) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  REPOTXN_RETURN_IF_ERROR(CheckKey(key));
  REPOTXN_ASSIGN_OR_RETURN(const Place place, PlaceOf(space, changes_.get()));
  const std::string name = place.Of(key);
  const auto staged = changes_->keys.find({place.partition, name});
  if (staged != changes_->keys.end()) return staged->second;
  changes_->reads.keys.push_back({place.partition, name});
  REPOTXN_ASSIGN_OR_RETURN(std::optional<Row> row,
                           changes_->core->rows()->Get(KeyOfKeySpace(place.partition, name),
                                                       changes_->snapshot_lsn));
  return row ? std::optional<std::string>(std::move(row->value)) : std::nullopt;
}

absl::Status Transaction::PutKey(const KeySpace& space, absl::string_view key, absl::string_view value) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckKey(key));
  if (value.size() > kValueBytesMax) return absl::InvalidArgumentError("value is larger than 1 MiB");
  REPOTXN_ASSIGN_OR_RETURN(const Place place, PlaceOf(space, changes_.get()));
  changes_->keys[{place.partition, place.Of(key)}] = std::string(value.data(), value.size());
  return absl::OkStatus();
}

absl::Status Transaction::DeleteKey(const KeySpace& space, absl::string_view key) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckWritable());
  REPOTXN_RETURN_IF_ERROR(CheckKey(key));
  REPOTXN_ASSIGN_OR_RETURN(const Place place, PlaceOf(space, changes_.get()));
  changes_->keys[{place.partition, place.Of(key)}] = std::nullopt;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Transaction::ScanKeys(
    const KeySpace& space, absl::string_view first, absl::string_view end, int limit) {
  const ActiveCall call(changes_.get());
  REPOTXN_RETURN_IF_ERROR(call.CheckOpen());
  if (limit <= 0) return absl::InvalidArgumentError("limit of a scan");
  REPOTXN_ASSIGN_OR_RETURN(const Place place, PlaceOf(space, changes_.get()));
  const std::string from = place.Of(first);
  const std::string to = end.empty() ? storage::PrefixEnd(place.prefix) : place.Of(end);
  std::map<std::string, std::optional<std::string>> found;
  for (auto it = changes_->keys.lower_bound({place.partition, from});
       it != changes_->keys.end() && it->first.first == place.partition && it->first.second < to; ++it) {
    found.emplace(it->first.second, it->second);
  }
  const std::string row_prefix = KeyOfKeySpace(place.partition, place.prefix);
  const size_t cut = KeyOfKeySpace(place.partition, "").size();
  std::string after = KeyOfKeySpace(place.partition, from);
  // A scan begins behind `after`: the first key itself is asked for alone.
  REPOTXN_ASSIGN_OR_RETURN(std::optional<Row> exact, changes_->core->rows()->Get(after, changes_->snapshot_lsn));
  if (exact && from < to) found.emplace(from, std::move(exact->value));
  for (bool is_done = from >= to; !is_done;) {
    REPOTXN_ASSIGN_OR_RETURN(std::vector<Row> rows,
                             changes_->core->rows()->Scan(row_prefix, after, changes_->snapshot_lsn,
                                                          std::min(limit, kRowsAtOnce)));
    is_done = rows.empty();
    for (Row& row : rows) {
      std::string name = row.key.substr(cut);
      if (name >= to) {
        is_done = true;
        break;
      }
      after = row.key;
      found.emplace(std::move(name), std::move(row.value));
    }
    // Complete up to `after` only: what is staged beyond it must not end the scan.
    int present = 0;
    const auto complete = found.upper_bound(after.substr(cut));
    for (auto it = found.begin(); it != complete; ++it) present += it->second ? 1 : 0;
    if (present >= limit) is_done = true;
  }
  std::vector<std::pair<std::string, std::string>> rows;
  for (auto& [name, value] : found) {
    if (static_cast<int>(rows.size()) >= limit) break;
    if (value) rows.emplace_back(name.substr(place.prefix.size()), *std::move(value));
  }
  // What a cut-off scan did not look at is not read.
  std::string read_end = to;
  if (static_cast<int>(rows.size()) >= limit) {
    read_end = place.Of(rows.back().first);
    read_end.push_back('\0');
  }
  changes_->reads.key_ranges.push_back({place.partition, from, std::move(read_end)});
  return rows;
}

}  // namespace repotxn::txn
