#include "txn/catalogue.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

std::string Encode(const RepositoryRow& row) {
  std::string value = row.path;
  value.push_back('\0');
  absl::StrAppend(&value, absl::Hex(row.partition));
  value.push_back('\0');
  const absl::string_view format = ObjectFormatName(row.format);
  value.append(format.data(), format.size());
  value.push_back('\0');
  return value;
}

absl::StatusOr<RepositoryRow> DecodeRepositoryRow(absl::string_view value) {
  RepositoryRow row;
  std::string partition, format;
  if (!TakeField(&value, &row.path) || !TakeField(&value, &partition) ||
      !TakeField(&value, &format) || !value.empty()) {
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

KeyChanges CatalogueChanges(const wal::Manifest& manifest) {
  KeyChanges changes;
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto* create = std::get_if<wal::CreateRepository>(&operation)) {
      changes.emplace_back(RepositoryKey(create->id),
                           Encode(RepositoryRow{create->path, create->partition, create->format}));
      changes.emplace_back(PathKey(create->path), Encode(PathRow{create->id}));
    } else if (const auto* group = std::get_if<wal::EnsureGroup>(&operation)) {
      changes.emplace_back(PathKey(group->path), Encode(PathRow{}));
    }
  }
  if (!manifest.request_id.empty()) {
    RequestRow row;
    if (!manifest.note.fences_request) row.committed = manifest.transaction_id;
    changes.emplace_back(RequestKey(manifest.request_id), Encode(row));
  }
  changes.emplace_back(TransactionKey(manifest.transaction_id),
                       Encode(OutcomeRow{manifest.created_at, manifest.transaction_id,
                                         manifest.request_id}));
  return changes;
}

}  // namespace repotxn::txn
