// Object pools: forks, links, pools made from a member.
#include "admin/commit_reply.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {

absl::StatusOr<Reply> ForkRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string text, fields.String("path"));
  REPOTXN_ASSIGN_OR_RETURN(auto prefixes, fields.OptionalStrings("ref_prefixes"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, NewPath(text));
  txn::ForkOptions options;
  if (prefixes) options.ref_prefixes = *std::move(prefixes);
  const auto body = [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId source, OpenOwner(matched, transaction));
    return transaction.ForkRepository(source, path, options).status();
  };
  Reply reply = Commit(matched.store, matched.call, body, 201);
  AddRowAt(matched, path, reply);
  return reply;
}

absl::StatusOr<Reply> CreatePool(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string text, fields.String("path"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, NewPath(text));
  const auto body = [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId member, OpenOwner(matched, transaction));
    return transaction.CreatePool(member, path).status();
  };
  Reply reply = Commit(matched.store, matched.call, body, 201);
  AddRowAt(matched, path, reply);
  return reply;
}

absl::StatusOr<Reply> LinkAlternate(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string text, fields.String("pool"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, txn::RepositoryPath::Parse(text));
  const auto body = [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId member, OpenOwner(matched, transaction));
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId pool, transaction.OpenRepository(path));
    return transaction.LinkAlternate(member, pool);
  };
  return Commit(matched.store, matched.call, body, 201);
}

absl::StatusOr<Reply> UnlinkAlternate(const Matched& matched) {
  const std::string text = QueryOr(matched.call, "pool", "");
  if (text.empty()) return FieldError("a parameter is missing", "pool");
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, txn::RepositoryPath::Parse(text));
  const auto body = [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId member, OpenOwner(matched, transaction));
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId pool, transaction.OpenRepository(path));
    return transaction.UnlinkAlternate(member, pool);
  };
  return Commit(matched.store, matched.call, body);
}

}  // namespace repotxn::admin
