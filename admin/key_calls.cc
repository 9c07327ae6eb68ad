// The key space of the store, of a partition, of a repository: one key, or a range.
#include <optional>

#include "absl/strings/numbers.h"
#include "admin/commit_reply.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

// Where the keys of a call are; a repository is looked up in the transaction.
using SpaceOf = absl::StatusOr<txn::KeySpace> (*)(const Matched&, txn::Transaction&);

absl::StatusOr<Reply> GetOne(const Matched& matched, SpaceOf space_of, const std::string& key) {
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const txn::KeySpace space, space_of(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const auto value, transaction->GetKey(space, key));
  if (!value) return absl::NotFoundError("key is absent");
  Reply reply;
  SetBytes(reply.body, "key", key);
  SetBytes(reply.body, "value", *value);
  return reply;
}

absl::StatusOr<Reply> GetRange(const Matched& matched, SpaceOf space_of) {
  REPOTXN_ASSIGN_OR_RETURN(const int limit, LimitOf(matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const txn::KeySpace space, space_of(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(
      auto rows, transaction->ScanKeys(space, QueryOr(matched.call, "first", ""),
                                       QueryOr(matched.call, "end", ""), limit + 1));
  Reply reply;
  reply.body["keys"] = Json::array();
  if (rows.size() > static_cast<size_t>(limit)) {
    // The `first` of the next page.
    SetBytes(reply.body, "next", rows.back().first);
    rows.pop_back();
  }
  for (const auto& [key, value] : rows) {
    Json item;
    SetBytes(item, "key", key);
    SetBytes(item, "value", value);
    reply.body["keys"].push_back(std::move(item));
  }
  return reply;
}

absl::StatusOr<Reply> Put(const Matched& matched, SpaceOf space_of, const std::string& key) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string value, fields.Bytes("value"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const txn::KeySpace space, space_of(matched, transaction));
    return transaction.PutKey(space, key, value);
  });
}

absl::StatusOr<Reply> Delete(const Matched& matched, SpaceOf space_of, const std::string& key) {
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const txn::KeySpace space, space_of(matched, transaction));
    return transaction.DeleteKey(space, key);
  });
}

absl::StatusOr<Reply> Keys(const Matched& matched, SpaceOf space_of) {
  const auto found = matched.call.query.find("key");
  const bool is_one = found != matched.call.query.end();
  if (is_one && (matched.call.query.count("first") + matched.call.query.count("end") +
                     matched.call.query.count("limit") >
                 0)) {
    return FieldError("one key is asked for, or a range", "key");
  }
  const bool is_get = matched.call.method == "GET" || matched.call.method == "HEAD";
  if (!is_one) {
    if (is_get) return GetRange(matched, space_of);
    return FieldError("a parameter is missing", "key");
  }
  if (is_get) return GetOne(matched, space_of, found->second);
  return matched.call.method == "PUT" ? Put(matched, space_of, found->second)
                                      : Delete(matched, space_of, found->second);
}

}  // namespace

absl::StatusOr<Reply> StoreKeys(const Matched& matched) {
  return Keys(matched, [](const Matched&, txn::Transaction&) -> absl::StatusOr<txn::KeySpace> {
    return txn::KeySpace::OfStore();
  });
}

absl::StatusOr<Reply> PartitionKeys(const Matched& matched) {
  return Keys(matched, [](const Matched& call, txn::Transaction&) -> absl::StatusOr<txn::KeySpace> {
    uint64_t partition = 0;
    // Zero is the store's own.
    if (!absl::SimpleAtoi(call.owner, &partition) || partition == 0) {
      return absl::InvalidArgumentError("a partition is a positive number");
    }
    return txn::KeySpace::OfPartition(partition);
  });
}

absl::StatusOr<Reply> RepositoryKeys(const Matched& matched) {
  return Keys(matched,
              [](const Matched& call, txn::Transaction& transaction) -> absl::StatusOr<txn::KeySpace> {
                REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(call, transaction));
                return txn::KeySpace::OfRepository(id);
              });
}

}  // namespace repotxn::admin
