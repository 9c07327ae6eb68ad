#include "cli/entry_json.h"

#include <map>
#include <string>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "txn/catalogue.h"

namespace repotxn::cli {
namespace {

std::string Hex(const std::string& bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

Json Start(const char* operation, const RepositoryId& id) {
  return {{"operation", operation}, {"repository", id.ToHex()}};
}

Json Ids(const std::vector<RepositoryId>& ids) {
  Json list = Json::array();
  for (const RepositoryId& id : ids) list.push_back(id.ToHex());
  return list;
}

void AddContent(Json& json, const wal::FileContent& content) {
  json["bytes"] = content.is_payload() ? content.payload.size
                                       : static_cast<int64_t>(content.inline_bytes.size());
  json["is_payload"] = content.is_payload();
}

// An operation of one file or directory.
template <typename Operation>
Json OfPath(const char* name, const Operation& operation) {
  Json json = Start(name, operation.id);
  SetBytes(json, "path", operation.path);
  return json;
}

template <typename Operation>
Json OfLink(const char* name, const Operation& operation) {
  return {{"operation", name},
          {"member", operation.member.ToHex()},
          {"pool", operation.pool.ToHex()},
          {"alternates", Ids(operation.alternates)}};
}

// An operation of one key, as its owner knows it.
template <typename Operation>
Json OfKey(const char* name, const Operation& operation) {
  Json json = {{"operation", name}, {"partition", absl::StrCat(operation.partition)}};
  const auto owned = txn::SplitLoggedKey(operation.key);
  if (owned && owned->repository) json["repository"] = owned->repository->ToHex();
  SetBytes(json, "key", owned ? owned->key : operation.key);
  return json;
}

// One overload a kind; a new kind does not compile without its own.
struct DescribeOperation {
  Json operator()(const wal::CreateRepository& create) const {
    Json json = OfPath("create_repository", create);
    json["partition"] = absl::StrCat(create.partition);
    const absl::string_view format = ObjectFormatName(create.format);
    json["format"] = std::string(format.data(), format.size());
    SetBytes(json, "head", create.head_target);
    return json;
  }
  Json operator()(const wal::RemoveRepository& remove) const {
    return OfPath(remove.purge ? "purge_repository" : "remove_repository", remove);
  }
  Json operator()(const wal::SetPath& set) const {
    Json json = OfPath("set_path", set);
    SetBytes(json, "old_path", set.old_path);
    return json;
  }
  Json operator()(const wal::EnsureGroup& group) const {
    return {{"operation", "ensure_group"}, {"path", group.path}};
  }
  Json operator()(const wal::RemoveGroup& group) const {
    return {{"operation", "remove_group"}, {"path", group.path}};
  }
  Json operator()(const wal::PutFile& put) const {
    Json json = OfPath("put_file", put);
    json["mode"] = absl::StrFormat("%04o", put.mode);
    AddContent(json, put.content);
    return json;
  }
  Json operator()(const wal::RemoveFile& remove) const { return OfPath("remove_file", remove); }
  Json operator()(const wal::MakeDirectory& make) const { return OfPath("make_directory", make); }
  Json operator()(const wal::RemoveDirectory& remove) const {
    return OfPath("remove_directory", remove);
  }
  Json operator()(const wal::EditPackedRefs& edit) const {
    Json json = Start("edit_packed_refs", edit.id);
    json["set"] = edit.set.size();
    json["remove"] = edit.remove.size();
    return json;
  }
  Json operator()(const wal::AddPack& add) const {
    Json json = Start("add_pack", add.id);
    json["name"] = add.name;
    json["bytes"] = add.pack.size;
    return json;
  }
  Json operator()(const wal::RemovePack& remove) const {
    Json json = Start("remove_pack", remove.id);
    json["name"] = remove.name;
    return json;
  }
  Json operator()(const wal::ReplaceDerived& replace) const {
    Json json = OfPath(replace.remove ? "remove_derived" : "replace_derived", replace);
    if (!replace.remove) AddContent(json, replace.content);
    return json;
  }
  Json operator()(const wal::LinkAlternate& link) const { return OfLink("link_alternate", link); }
  Json operator()(const wal::UnlinkAlternate& link) const {
    return OfLink("unlink_alternate", link);
  }
  Json operator()(const wal::PutKey& put) const {
    Json json = OfKey("put_key", put);
    json["bytes"] = put.value.size();
    return json;
  }
  Json operator()(const wal::DeleteKey& remove) const { return OfKey("delete_key", remove); }
};

std::string ValueText(const wal::LoggedRefValue& value) {
  switch (value.kind) {
    case wal::LoggedRefValue::Kind::kAbsent: return "absent";
    case wal::LoggedRefValue::Kind::kObject: return Hex(value.bytes);
    case wal::LoggedRefValue::Kind::kSymbolic: return absl::StrCat("ref: ", value.bytes);
  }
  return "unknown";
}

Json NoteToJson(const wal::Note& note) {
  Json json;
  SetBytes(json, "actor", note.actor);
  SetBytes(json, "origin", note.origin);
  json["push_options"] = Json::array();
  for (const std::string& option : note.push_options) {
    Json item;
    SetBytes(item, "option", option);
    json["push_options"].push_back(std::move(item));
  }
  json["ref_changes"] = Json::array();
  for (const wal::RefChange& change : note.ref_changes) {
    Json item = {{"repository", change.id.ToHex()}};
    SetBytes(item, "name", change.name);
    SetBytes(item, "old", ValueText(change.old_value));
    SetBytes(item, "new", ValueText(change.new_value));
    json["ref_changes"].push_back(std::move(item));
  }
  json["refs_packed"] = Json::array();
  for (const wal::RefsPacked& packed : note.refs_packed) {
    json["refs_packed"].push_back({{"repository", packed.id.ToHex()}, {"refs", packed.refs.size()}});
  }
  json["objects_removed"] = Json::array();
  for (const wal::ObjectsRemoved& removed : note.objects_removed) {
    json["objects_removed"].push_back(
        {{"repository", removed.id.ToHex()}, {"objects", removed.oids.size()}});
  }
  json["fences_request"] = note.fences_request;
  return json;
}

int64_t BytesOf(const LogRecord& record) {
  const wal::EntryHeader& header = record.header;
  return wal::kEntryHeaderBytes + header.body_bytes + header.dropped_bytes + header.payload_size;
}

std::string Summary(const wal::Manifest& manifest) {
  std::map<std::string, int> kinds;
  for (const wal::Operation& operation : manifest.operations) {
    ++kinds[std::visit(DescribeOperation(), operation)["operation"].get<std::string>()];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", kind, " ", count);
  }
  if (!manifest.note.ref_changes.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "refs ", manifest.note.ref_changes.size());
  }
  if (manifest.note.fences_request) absl::StrAppend(&text, text.empty() ? "" : ", ", "fence");
  return text.empty() ? "nothing" : text;
}

}  // namespace

Json SummaryToJson(const LogRecord& record) {
  Json json = {{"lsn", record.header.lsn.value()},
               {"transaction_id", record.header.transaction_id.ToHex()},
               {"bytes", BytesOf(record)}};
  if (!record.entry) {
    json["summary"] = "manifest is gone with its payload";
    return json;
  }
  const wal::Manifest& manifest = record.entry->manifest;
  json["created_at"] = absl::FormatTime(absl::RFC3339_full, manifest.created_at, absl::UTCTimeZone());
  json["summary"] = Summary(manifest);
  return json;
}

Json EntryToJson(const LogRecord& record) {
  Json json = SummaryToJson(record);
  json["epoch"] = record.header.epoch;
  json["chain"] = record.header.chain.ToHex();
  json["body_bytes"] = record.header.body_is_payload ? record.header.payload_size
                                                     : int64_t{record.header.body_bytes};
  json["body_is_payload"] = record.header.body_is_payload;
  if (!record.entry) return json;
  const wal::Manifest& manifest = record.entry->manifest;
  SetBytes(json, "request_id", manifest.request_id);
  json["operations"] = Json::array();
  for (const wal::Operation& operation : manifest.operations) {
    json["operations"].push_back(std::visit(DescribeOperation(), operation));
  }
  json["note"] = NoteToJson(manifest.note);
  json["dropped"] = Json::array();
  for (const wal::DroppedRef& dropped : record.entry->dropped) {
    Json item = {{"repository", dropped.id.ToHex()}};
    SetBytes(item, "name", dropped.name);
    json["dropped"].push_back(std::move(item));
  }
  return json;
}

}  // namespace repotxn::cli
