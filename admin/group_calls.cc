// Groups: what is in one, and their removal.
#include "admin/commit_reply.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {

absl::StatusOr<Reply> ListGroup(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const auto entries, transaction->ListGroup(matched.item));
  Reply reply;
  reply.body["group"] = matched.item;
  reply.body["entries"] = Json::array();
  for (const txn::GroupEntry& entry : entries) {
    Json item = {{"name", entry.name}, {"kind", entry.repository ? "repository" : "group"}};
    if (entry.repository) item["id"] = entry.repository->ToHex();
    reply.body["entries"].push_back(std::move(item));
  }
  return reply;
}

absl::StatusOr<Reply> RemoveGroup(const Matched& matched) {
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) {
    return transaction.RemoveGroup(matched.item);
  });
}

}  // namespace repotxn::admin
