#include "txn/catalogue.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/status_macros.h"

namespace repotxn::txn {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged row of the metadata store: ", what));
}

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, value >>= 8) bytes[static_cast<size_t>(i)] = static_cast<char>(value);
  return bytes;
}

// Takes the text before the next NUL off `value`.
bool TakeField(absl::string_view* value, std::string* field) {
  const size_t end = value->find('\0');
  if (end == absl::string_view::npos) return false;
  *field = std::string(value->data(), end);
  value->remove_prefix(end + 1);
  return true;
}

std::string Nanoseconds(absl::Time time) { return absl::StrCat(absl::ToUnixNanos(time)); }

}  // namespace

std::string RepositoryKey(const RepositoryId& id) { return absl::StrCat("r/", id.bytes()); }
std::string PathKey(absl::string_view path) { return absl::StrCat("p/", path); }
std::string TransactionKey(const TransactionId& id) { return absl::StrCat("t/", id.bytes()); }
std::string RequestKey(absl::string_view request_id) { return absl::StrCat("q/", request_id); }
std::string OutcomeKey(wal::Lsn lsn) { return absl::StrCat("o/", BigEndian(lsn.value())); }

std::string AlternatesKey(const RepositoryId& id) { return absl::StrCat("a/", id.bytes()); }
std::string LinksToPoolPrefix(const RepositoryId& pool) { return absl::StrCat("l/", pool.bytes()); }
std::string LinkKey(const RepositoryId& pool, const RepositoryId& member) {
  return absl::StrCat("l/", pool.bytes(), member.bytes());
}
std::string RemovedKey(int64_t removed_at_ns, const RepositoryId& id) {
  return absl::StrCat("d/", BigEndian(static_cast<uint64_t>(removed_at_ns)), id.bytes());
}
std::string KeyPrefixOfRepository(const RepositoryId& id) { return absl::StrCat("r", id.bytes()); }
std::string CondemnedKey(const RepositoryId& id, absl::string_view pack) {
  return absl::StrCat(kCondemnedPrefix, id.bytes(), pack);
}
std::optional<OwnedKey> SplitLoggedKey(absl::string_view logged) {
  if (absl::ConsumePrefix(&logged, kKeyPrefixOfPartition)) return OwnedKey{std::nullopt, std::string(logged)};
  if (!absl::ConsumePrefix(&logged, "r")) return std::nullopt;
  const auto id = RepositoryId::FromBytes(logged.substr(0, RepositoryId::kBytes));
  if (!id.ok()) return std::nullopt;
  return OwnedKey{*id, std::string(logged.substr(RepositoryId::kBytes))};
}
std::string KeyOfKeySpace(wal::PartitionId partition, absl::string_view key) {
  return absl::StrCat("k/", BigEndian(partition), key);
}

std::string Encode(const RepositoryRow& row) {
  std::string value = row.path;
  value.push_back('\0');
  absl::StrAppend(&value, absl::Hex(row.partition));
  value.push_back('\0');
  const absl::string_view format = ObjectFormatName(row.format);
  value.append(format.data(), format.size());
  value.push_back('\0');
  if (row.is_removed()) {
    absl::StrAppend(&value, row.removed_at_ns);
    value.push_back('\0');
  }
  return value;
}

absl::StatusOr<RepositoryRow> DecodeRepositoryRow(absl::string_view value) {
  RepositoryRow row;
  std::string partition, format;
  if (!TakeField(&value, &row.path) || !TakeField(&value, &partition) ||
      !TakeField(&value, &format)) {
    return Damaged("repository");
  }
  std::string removed_at;
  if (!value.empty() &&
      (!TakeField(&value, &removed_at) || !absl::SimpleAtoi(removed_at, &row.removed_at_ns) ||
       row.removed_at_ns == 0 || !value.empty())) {
    return Damaged("repository");
  }
  if (!absl::SimpleHexAtoi(partition, &row.partition)) return Damaged("partition of a repository");
  const auto parsed = ParseObjectFormat(format);
  if (!parsed.ok()) return Damaged("object format of a repository");
  row.format = *parsed;
  return row;
}

std::string Encode(const PathRow& row) {
  return row.repository ? absl::StrCat("R", row.repository->bytes()) : std::string("G");
}

absl::StatusOr<PathRow> DecodePathRow(absl::string_view value) {
  if (value == "G") return PathRow{};
  if (value.empty() || value[0] != 'R') return Damaged("path");
  const auto id = RepositoryId::FromBytes(value.substr(1));
  if (!id.ok()) return Damaged("path");
  return PathRow{*id};
}

std::string Encode(const RequestRow& row) {
  return row.committed ? absl::StrCat("C", row.committed->bytes()) : std::string("F");
}

absl::StatusOr<RequestRow> DecodeRequestRow(absl::string_view value) {
  if (value == "F") return RequestRow{};
  if (value.empty() || value[0] != 'C') return Damaged("request id");
  const auto id = TransactionId::FromBytes(value.substr(1));
  if (!id.ok()) return Damaged("request id");
  return RequestRow{*id};
}

std::string Encode(const OutcomeRow& row) {
  std::string value = Nanoseconds(row.created_at);
  value.push_back('\0');
  return absl::StrCat(value, row.transaction_id.bytes(), row.request_id);
}

absl::StatusOr<OutcomeRow> DecodeOutcomeRow(absl::string_view value) {
  std::string time;
  int64_t nanoseconds = 0;
  if (!TakeField(&value, &time) || !absl::SimpleAtoi(time, &nanoseconds) ||
      value.size() < TransactionId::kBytes) {
    return Damaged("outcome");
  }
  OutcomeRow row;
  row.created_at = absl::FromUnixNanos(nanoseconds);
  REPOTXN_ASSIGN_OR_RETURN(row.transaction_id,
                           TransactionId::FromBytes(value.substr(0, TransactionId::kBytes)));
  const absl::string_view request = value.substr(TransactionId::kBytes);
  row.request_id = std::string(request.data(), request.size());
  return row;
}

std::string WithVersion(wal::Lsn lsn, absl::string_view value) {
  std::string stored(8, '\0');
  uint64_t rest = lsn.value();
  for (size_t i = 0; i < 8; ++i, rest >>= 8) stored[i] = static_cast<char>(rest);
  return absl::StrCat(stored, value);
}

absl::StatusOr<std::pair<wal::Lsn, std::string>> SplitVersion(absl::string_view stored) {
  if (stored.size() < 8) return Damaged("version");
  uint64_t lsn = 0;
  for (size_t i = 8; i-- > 0;) lsn = lsn << 8 | static_cast<uint8_t>(stored[i]);
  const absl::string_view value = stored.substr(8);
  return std::make_pair(wal::Lsn(lsn), std::string(value.data(), value.size()));
}

std::string EncodeIds(const std::vector<RepositoryId>& ids) {
  std::string value;
  for (const RepositoryId& id : ids) absl::StrAppend(&value, id.bytes());
  return value;
}

absl::StatusOr<std::vector<RepositoryId>> DecodeIds(absl::string_view value) {
  std::vector<RepositoryId> ids;
  while (!value.empty()) {
    const auto id = RepositoryId::FromBytes(value.substr(0, RepositoryId::kBytes));
    if (!id.ok()) return Damaged("alternates");
    ids.push_back(*id);
    value.remove_prefix(RepositoryId::kBytes);
  }
  return ids;
}

absl::StatusOr<LinkRow> DecodeLinkRow(absl::string_view key, absl::string_view value) {
  constexpr size_t kPrefixBytes = 2 + RepositoryId::kBytes;
  if (key.size() != kPrefixBytes + RepositoryId::kBytes || (value != "L" && value != "D")) {
    return Damaged("link");
  }
  LinkRow row;
  REPOTXN_ASSIGN_OR_RETURN(row.member, RepositoryId::FromBytes(key.substr(kPrefixBytes)));
  row.member_is_removed = value == "D";
  return row;
}

absl::StatusOr<CondemnedRow> DecodeCondemnedKey(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kCondemnedPrefix) || key.size() <= RepositoryId::kBytes) return Damaged("condemned pack");
  CondemnedRow row;
  REPOTXN_ASSIGN_OR_RETURN(row.id, RepositoryId::FromBytes(key.substr(0, RepositoryId::kBytes)));
  row.pack = std::string(key.substr(RepositoryId::kBytes));
  return row;
}

absl::StatusOr<RemovedRow> DecodeRemovedKey(absl::string_view key) {
  if (key.size() != 2 + 8 + RepositoryId::kBytes) return Damaged("removed repository");
  uint64_t time = 0;
  for (size_t i = 2; i < 10; ++i) time = time << 8 | static_cast<uint8_t>(key[i]);
  RemovedRow row;
  row.removed_at_ns = static_cast<int64_t>(time);
  REPOTXN_ASSIGN_OR_RETURN(row.id, RepositoryId::FromBytes(key.substr(10)));
  return row;
}

namespace {

// Collects the row changes of one entry. Two passes over the operations: what is given up, then what is taken.
class CatalogueBuilder {
 public:
  explicit CatalogueBuilder(absl::Time created_at) : now_ns_(absl::ToUnixNanos(created_at)) {}

  void GiveUp(const wal::Operation& operation) {
    if (const auto* remove = std::get_if<wal::RemoveRepository>(&operation)) {
      Remove(*remove);
    } else if (const auto* move = std::get_if<wal::SetPath>(&operation)) {
      if (!move->old_path.empty()) Erase(PathKey(move->old_path));
    } else if (const auto* group = std::get_if<wal::RemoveGroup>(&operation)) {
      Erase(PathKey(group->path));
    } else if (const auto* unlink = std::get_if<wal::UnlinkAlternate>(&operation)) {
      Erase(LinkKey(unlink->pool, unlink->member));
      PutAlternates(unlink->member, unlink->alternates);
    } else if (const auto* pack = std::get_if<wal::RemovePack>(&operation)) {
      Put(CondemnedKey(pack->id, pack->name), "");
    } else if (const auto* key = std::get_if<wal::DeleteKey>(&operation)) {
      Erase(KeyOfKeySpace(key->partition, key->key));
    }
  }
  void Take(const wal::Operation& operation) {
    if (const auto* create = std::get_if<wal::CreateRepository>(&operation)) {
      Put(RepositoryKey(create->id),
          Encode(RepositoryRow{create->path, create->partition, create->format, 0}));
      Put(PathKey(create->path), Encode(PathRow{create->id}));
    } else if (const auto* group = std::get_if<wal::EnsureGroup>(&operation)) {
      Put(PathKey(group->path), Encode(PathRow{}));
    } else if (const auto* move = std::get_if<wal::SetPath>(&operation)) {
      Put(RepositoryKey(move->id),
          Encode(RepositoryRow{move->path, move->facts.partition, move->facts.format, 0}));
      Put(PathKey(move->path), Encode(PathRow{move->id}));
      if (!move->old_path.empty()) return;
      Erase(RemovedKey(move->facts.removed_at_ns, move->id));
      for (const RepositoryId& pool : move->facts.alternates) Put(LinkKey(pool, move->id), "L");
    } else if (const auto* link = std::get_if<wal::LinkAlternate>(&operation)) {
      Put(LinkKey(link->pool, link->member), "L");
      PutAlternates(link->member, link->alternates);
    } else if (const auto* key = std::get_if<wal::PutKey>(&operation)) {
      Put(KeyOfKeySpace(key->partition, key->key), key->value);
    }
  }

  void Put(std::string key, std::string value) { changes_[std::move(key)] = std::move(value); }
  KeyChanges Finish() { return KeyChanges(changes_.begin(), changes_.end()); }

 private:
  void Erase(std::string key) { changes_[std::move(key)] = std::nullopt; }
  void PutAlternates(const RepositoryId& id, const std::vector<RepositoryId>& alternates) {
    if (alternates.empty()) {
      Erase(AlternatesKey(id));
    } else {
      Put(AlternatesKey(id), EncodeIds(alternates));
    }
  }
  void Remove(const wal::RemoveRepository& op) {
    if (op.purge) {
      Erase(RepositoryKey(op.id));
      Erase(AlternatesKey(op.id));
      Erase(RemovedKey(op.facts.removed_at_ns, op.id));
      for (const RepositoryId& pool : op.facts.alternates) Erase(LinkKey(pool, op.id));
      return;
    }
    Erase(PathKey(op.path));
    Put(RepositoryKey(op.id),
        Encode(RepositoryRow{op.path, op.facts.partition, op.facts.format, now_ns_}));
    Put(RemovedKey(now_ns_, op.id), "");
    for (const RepositoryId& pool : op.facts.alternates) Put(LinkKey(pool, op.id), "D");
  }

  const int64_t now_ns_;
  std::map<std::string, std::optional<std::string>> changes_;
};

}  // namespace

KeyChanges CatalogueChanges(const wal::Manifest& manifest) {
  CatalogueBuilder builder(manifest.created_at);
  for (const wal::Operation& operation : manifest.operations) builder.GiveUp(operation);
  for (const wal::Operation& operation : manifest.operations) builder.Take(operation);
  if (!manifest.request_id.empty()) {
    RequestRow row;
    if (!manifest.note.fences_request) row.committed = manifest.transaction_id;
    builder.Put(RequestKey(manifest.request_id), Encode(row));
  }
  builder.Put(TransactionKey(manifest.transaction_id),
              Encode(OutcomeRow{manifest.created_at, manifest.transaction_id, manifest.request_id}));
  return builder.Finish();
}

}  // namespace repotxn::txn
