// Repositories: create, list, show, delete, bring back, move.
#include <vector>

#include "absl/strings/str_cat.h"
#include "admin/commit_reply.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

// [{"id", "path"}].
absl::StatusOr<Json> Named(txn::Transaction& transaction, const std::vector<RepositoryId>& ids) {
  Json list = Json::array();
  for (const RepositoryId& id : ids) {
    REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryInfo row, transaction.Describe(id));
    list.push_back({{"id", id.ToHex()}, {"path", row.path}});
  }
  return list;
}

}  // namespace

void AddRow(const txn::RepositoryInfo& row, Json& body) {
  body["path"] = row.path;
  body["id"] = row.id.ToHex();
  const absl::string_view format = ObjectFormatName(row.format);
  body["format"] = std::string(format.data(), format.size());
  body["version"] = row.version.value();
  // All 64 bits are in use, more than a JSON number holds everywhere.
  body["partition"] = absl::StrCat(row.partition);
}

void AddRowAt(const Matched& matched, const txn::RepositoryPath& path, Reply& reply) {
  if (!reply.ok() || !reply.body.contains("lsn")) return;
  const auto read = [&]() -> absl::StatusOr<txn::RepositoryInfo> {
    REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, transaction->OpenRepository(path));
    return transaction->Describe(id);
  };
  const absl::StatusOr<txn::RepositoryInfo> row = read();
  if (row.ok()) AddRow(*row, reply.body);
}

absl::StatusOr<Reply> ListRepositories(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const int limit, LimitOf(matched.call));
  const std::string prefix = QueryOr(matched.call, "prefix", "");
  const std::string after = QueryOr(matched.call, "after", "");
  // One more than asked for tells whether there is a next page.
  REPOTXN_ASSIGN_OR_RETURN(auto rows, matched.store.ListRepositories(prefix, after, limit + 1));
  Reply reply;
  reply.body["repositories"] = Json::array();
  const bool has_more = rows.size() > static_cast<size_t>(limit);
  if (has_more) rows.resize(static_cast<size_t>(limit));
  for (const txn::RepositoryInfo& row : rows) {
    Json item;
    AddRow(row, item);
    reply.body["repositories"].push_back(std::move(item));
  }
  if (has_more) reply.body["next"] = rows.back().path;
  return reply;
}

absl::StatusOr<Reply> CreateRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string text, fields.String("path"));
  REPOTXN_ASSIGN_OR_RETURN(const std::string format, fields.StringOr("format", "sha1"));
  txn::CreateOptions options;
  REPOTXN_ASSIGN_OR_RETURN(options.head_target, fields.StringOr("head", options.head_target));
  REPOTXN_ASSIGN_OR_RETURN(const bool ensure, fields.BoolOr("ensure", false));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, NewPath(text));
  REPOTXN_ASSIGN_OR_RETURN(options.format, ParseObjectFormat(format));
  const auto body = [&](txn::Transaction& transaction) {
    return ensure ? transaction.EnsureRepository(path, options).status()
                  : transaction.CreateRepository(path, options).status();
  };
  Reply reply = Commit(matched.store, matched.call, body, 201);
  AddRowAt(matched, path, reply);
  return reply;
}

absl::StatusOr<Reply> ShowRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path,
                           txn::RepositoryPath::Parse(matched.item));
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, transaction->OpenRepository(path));
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryInfo row, transaction->Describe(id));
  REPOTXN_ASSIGN_OR_RETURN(const refs::RefValue head,
                           transaction->ReadRef(id, refs::RefName::Head()));
  Reply reply;
  AddRow(row, reply.body);
  SetBytes(reply.body, "head", head.ToString());
  REPOTXN_ASSIGN_OR_RETURN(const auto pools, transaction->Alternates(id));
  REPOTXN_ASSIGN_OR_RETURN(reply.body["alternates"], Named(*transaction, pools));
  REPOTXN_ASSIGN_OR_RETURN(const auto members, transaction->Members(id));
  REPOTXN_ASSIGN_OR_RETURN(reply.body["members"], Named(*transaction, members));
  return reply;
}

absl::StatusOr<Reply> DeleteRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path,
                           txn::RepositoryPath::Parse(matched.item));
  // Empty until the body ran: a call that finds its request committed tells no id.
  std::string id_text;
  const auto body = [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, transaction.OpenRepository(path));
    id_text = id.ToHex();
    return transaction.DeleteRepository(id);
  };
  Reply reply = Commit(matched.store, matched.call, body);
  if (reply.ok() && !id_text.empty()) reply.body["id"] = id_text;
  return reply;
}

absl::StatusOr<Reply> UndeleteRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string id_text, fields.String("id"));
  REPOTXN_ASSIGN_OR_RETURN(const std::string path_text, fields.String("path"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, RepositoryId::FromHex(id_text));
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, NewPath(path_text));
  Reply reply = Commit(matched.store, matched.call, [&](txn::Transaction& transaction) {
    return transaction.UndeleteRepository(id, path);
  });
  AddRowAt(matched, path, reply);
  return reply;
}

absl::StatusOr<Reply> MoveRepository(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  REPOTXN_ASSIGN_OR_RETURN(const std::string to, fields.String("to"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(const txn::RepositoryPath path, NewPath(to));
  Reply reply =
      Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
        REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, transaction));
        return transaction.MoveRepository(id, path);
      });
  AddRowAt(matched, path, reply);
  return reply;
}

}  // namespace repotxn::admin
