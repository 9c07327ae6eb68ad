// Files of a repository: config, hooks, description.
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "admin/commit_reply.h"
#include "admin/json_fields.h"
#include "admin/routes.h"
#include "storage/status_macros.h"

namespace repotxn::admin {
namespace {

// "0644", "755": permission bits in octal.
absl::StatusOr<uint32_t> ParseMode(const std::string& text) {
  uint32_t mode = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return FieldError("mode is written in octal", "mode");
    mode = mode * 8 + static_cast<uint32_t>(c - '0');
    if (mode > 0777) break;
  }
  if (text.empty() || mode > 0777) return FieldError("mode is one of 0000 to 0777", "mode");
  return mode;
}

}  // namespace

absl::StatusOr<Reply> GetFile(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const txn::FileValue file, transaction->ReadFile(id, matched.item));
  Reply reply;
  SetBytes(reply.body, "path", matched.item);
  reply.body["mode"] = absl::StrFormat("%04o", file.mode);
  SetBytes(reply.body, "content", file.content);
  return reply;
}

absl::StatusOr<Reply> PutFile(const Matched& matched) {
  REPOTXN_ASSIGN_OR_RETURN(JsonFields fields, JsonFields::Parse(matched.call.body));
  txn::FileValue file;
  REPOTXN_ASSIGN_OR_RETURN(file.content, fields.Bytes("content"));
  REPOTXN_ASSIGN_OR_RETURN(const std::string mode, fields.StringOr("mode", "0644"));
  REPOTXN_RETURN_IF_ERROR(fields.Finish());
  REPOTXN_ASSIGN_OR_RETURN(file.mode, ParseMode(mode));
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, transaction));
    return transaction.PutFile(id, matched.item, file);
  });
}

absl::StatusOr<Reply> DeleteFile(const Matched& matched) {
  return Commit(matched.store, matched.call, [&](txn::Transaction& transaction) -> absl::Status {
    REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, transaction));
    return transaction.RemoveFile(id, matched.item);
  });
}

absl::StatusOr<Reply> ListFiles(const Matched& matched) {
  const std::string below = QueryOr(matched.call, "below", "");
  REPOTXN_ASSIGN_OR_RETURN(const auto transaction, BeginRead(matched.store, matched.call));
  REPOTXN_ASSIGN_OR_RETURN(const RepositoryId id, OpenOwner(matched, *transaction));
  REPOTXN_ASSIGN_OR_RETURN(const auto names, transaction->ListDirectory(id, below));
  Reply reply;
  SetBytes(reply.body, "directory", below);
  reply.body["entries"] = Json::array();
  for (const std::string& name : names) {
    Json item;
    SetBytes(item, "name", name);
    reply.body["entries"].push_back(std::move(item));
  }
  return reply;
}

}  // namespace repotxn::admin
