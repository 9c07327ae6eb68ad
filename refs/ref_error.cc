// A payload is a sequence of strings, each behind its length as eight bytes, least significant
// first.
#include "refs/ref_error.h"

#include <utility>
#include <vector>

#include "absl/strings/cord.h"

namespace repotxn::refs {
namespace {

constexpr absl::string_view kNameFaultUrl = "repotxn/ref-name-fault";
constexpr absl::string_view kMismatchUrl = "repotxn/ref-mismatch";
constexpr absl::string_view kDirectoryFileUrl = "repotxn/directory-file-conflict";
constexpr absl::string_view kDamageUrl = "repotxn/ref-file-damage";

void AppendNumber(uint64_t number, std::string& out) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

bool TakeNumber(absl::string_view& in, uint64_t& number) {
  if (in.size() < 8) return false;
  number = 0;
  for (size_t i = 8; i-- > 0;) number = (number << 8) | static_cast<uint8_t>(in[i]);
  in.remove_prefix(8);
  return true;
}

absl::Status WithFields(absl::Status status, absl::string_view url,
                        const std::vector<std::string>& fields) {
  std::string bytes;
  for (const std::string& field : fields) {
    AppendNumber(field.size(), bytes);
    bytes += field;
  }
  status.SetPayload(url, absl::Cord(bytes));
  return status;
}

// The fields of the payload `url`; no value when there is none or it has another number of fields.
std::optional<std::vector<std::string>> FieldsOf(const absl::Status& status, absl::string_view url,
                                                 size_t count) {
  const auto payload = status.GetPayload(url);
  if (!payload) return std::nullopt;
  const std::string bytes(*payload);
  absl::string_view rest(bytes.data(), bytes.size());
  std::vector<std::string> fields;
  while (!rest.empty()) {
    uint64_t size = 0;
    if (!TakeNumber(rest, size) || size > rest.size()) return std::nullopt;
    fields.emplace_back(rest.data(), static_cast<size_t>(size));
    rest.remove_prefix(static_cast<size_t>(size));
  }
  if (fields.size() != count) return std::nullopt;
  return fields;
}

std::string EncodedNumber(uint64_t number) {
  std::string bytes;
  AppendNumber(number, bytes);
  return bytes;
}

uint64_t DecodedNumber(const std::string& bytes) {
  absl::string_view rest(bytes.data(), bytes.size());
  uint64_t number = 0;
  return TakeNumber(rest, number) ? number : 0;
}

std::string Text(absl::string_view view) { return std::string(view.data(), view.size()); }

}  // namespace

absl::Status RefNameError(absl::string_view name, size_t offset, absl::string_view rule) {
  return WithFields(absl::InvalidArgumentError("malformed ref name"), kNameFaultUrl,
                    {Text(name), EncodedNumber(offset), Text(rule)});
}

absl::Status RefMismatchError(const RefMismatch& mismatch) {
  return WithFields(absl::FailedPreconditionError("ref does not have the expected old value"),
                    kMismatchUrl, {mismatch.name, mismatch.expected, mismatch.found});
}

absl::Status DirectoryFileError(const DirectoryFileConflict& conflict) {
  return WithFields(absl::FailedPreconditionError("one ref is a directory of the other"),
                    kDirectoryFileUrl, {conflict.wanted, conflict.blocked_by});
}

absl::Status RefFileDamageError(const RefFileDamage& damage) {
  return WithFields(absl::DataLossError("damaged ref file"), kDamageUrl,
                    {damage.file, EncodedNumber(damage.line), damage.rule});
}

std::optional<RefNameFaultText> RefNameFaultDetail(const absl::Status& status) {
  const auto fields = FieldsOf(status, kNameFaultUrl, 3);
  if (!fields) return std::nullopt;
  return RefNameFaultText{(*fields)[0], DecodedNumber((*fields)[1]), (*fields)[2]};
}

std::optional<RefMismatch> RefMismatchDetail(const absl::Status& status) {
  const auto fields = FieldsOf(status, kMismatchUrl, 3);
  if (!fields) return std::nullopt;
  return RefMismatch{(*fields)[0], (*fields)[1], (*fields)[2]};
}

std::optional<DirectoryFileConflict> DirectoryFileDetail(const absl::Status& status) {
  const auto fields = FieldsOf(status, kDirectoryFileUrl, 2);
  if (!fields) return std::nullopt;
  return DirectoryFileConflict{(*fields)[0], (*fields)[1]};
}

std::optional<RefFileDamage> RefFileDamageDetail(const absl::Status& status) {
  const auto fields = FieldsOf(status, kDamageUrl, 3);
  if (!fields) return std::nullopt;
  return RefFileDamage{(*fields)[0], DecodedNumber((*fields)[1]), (*fields)[2]};
}

}  // namespace repotxn::refs
