// The routes of the administration, for admin_api.cc; each takes a call that matched it.
//
// Thread-safe.
#ifndef REPOTXN_ADMIN_ROUTES_H_
#define REPOTXN_ADMIN_ROUTES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "admin/call.h"
#include "refs/ref_value.h"
#include "txn/repository_path.h"
#include "txn/store.h"

namespace repotxn::admin {

// A call with the parts of its path.
struct Matched {
  txn::Store& store;
  const Call& call;
  std::string owner;  // repository path or partition in front of "/-/"
  std::string item;   // what is named behind the resource; may be empty
};

using Route = absl::StatusOr<Reply> (*)(const Matched& matched);

// repository_calls.cc
absl::StatusOr<Reply> ListRepositories(const Matched& matched);
absl::StatusOr<Reply> CreateRepository(const Matched& matched);
absl::StatusOr<Reply> ShowRepository(const Matched& matched);
absl::StatusOr<Reply> DeleteRepository(const Matched& matched);
absl::StatusOr<Reply> UndeleteRepository(const Matched& matched);
absl::StatusOr<Reply> MoveRepository(const Matched& matched);
// link_calls.cc
absl::StatusOr<Reply> ForkRepository(const Matched& matched);
absl::StatusOr<Reply> CreatePool(const Matched& matched);
absl::StatusOr<Reply> LinkAlternate(const Matched& matched);
absl::StatusOr<Reply> UnlinkAlternate(const Matched& matched);
// group_calls.cc
absl::StatusOr<Reply> ListGroup(const Matched& matched);
absl::StatusOr<Reply> RemoveGroup(const Matched& matched);
// ref_calls.cc
absl::StatusOr<Reply> GetHead(const Matched& matched);
absl::StatusOr<Reply> SetHead(const Matched& matched);
absl::StatusOr<Reply> ListRefs(const Matched& matched);
absl::StatusOr<Reply> GetRef(const Matched& matched);
absl::StatusOr<Reply> PutRef(const Matched& matched);
absl::StatusOr<Reply> DeleteRef(const Matched& matched);
absl::StatusOr<Reply> UpdateRefs(const Matched& matched);
// file_calls.cc
absl::StatusOr<Reply> GetFile(const Matched& matched);
absl::StatusOr<Reply> PutFile(const Matched& matched);
absl::StatusOr<Reply> DeleteFile(const Matched& matched);
absl::StatusOr<Reply> ListFiles(const Matched& matched);
// key_calls.cc
absl::StatusOr<Reply> StoreKeys(const Matched& matched);
absl::StatusOr<Reply> PartitionKeys(const Matched& matched);
absl::StatusOr<Reply> RepositoryKeys(const Matched& matched);
// housekeeping_calls.cc
absl::StatusOr<Reply> ShowHousekeeping(const Matched& matched);
absl::StatusOr<Reply> RunHousekeeping(const Matched& matched);
absl::StatusOr<Reply> ShowAllHousekeeping(const Matched& matched);
absl::StatusOr<Reply> ControlHousekeeping(const Matched& matched);
// outcome_calls.cc
absl::StatusOr<Reply> OutcomeOfTransaction(const Matched& matched);
absl::StatusOr<Reply> OutcomeOfRequest(const Matched& matched);

// For all of them.

// A query parameter; `fallback` when absent.
std::string QueryOr(const Call& call, const std::string& name, const std::string& fallback);
// `limit`, from 1 to 1000; 100 when absent.
absl::StatusOr<int> LimitOf(const Call& call);
// Path of a repository that is to be made: "api" and what is below it belong to this interface.
absl::StatusOr<txn::RepositoryPath> NewPath(const std::string& text);
// Opens matched.owner.
absl::StatusOr<RepositoryId> OpenOwner(const Matched& matched, txn::Transaction& transaction);
// Adds the row of a repository, as the interface shows it everywhere, to `body`.
void AddRow(const txn::RepositoryInfo& row, Json& body);
// Adds the row of the repository at `path` to a committed reply; leaves it out when it is gone by now.
void AddRowAt(const Matched& matched, const txn::RepositoryPath& path, Reply& reply);
// "absent", "ref: <name>" or an object id in hex: as RefValue::ToString() writes it.
absl::StatusOr<refs::RefValue> ParseRefValue(const std::string& text);

}  // namespace repotxn::admin

#endif  // REPOTXN_ADMIN_ROUTES_H_
