#include "locks/verdict.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/check.h"

namespace repotxn::locks {
namespace {

// Payload: decimal rule, snapshot LSN, conflicting LSN, transaction id in hex, text of the key; one space between two.
constexpr size_t kPayloadFields = 5;

std::string Encode(const ConflictDetail& detail) {
  return absl::StrCat(static_cast<int>(detail.rule), " ", detail.snapshot_lsn.value(), " ",
                      detail.conflicting_lsn.value(), " ",
                      detail.conflicting_transaction.ToHex(), " ", detail.key);
}

std::optional<ConflictDetail> Decode(const std::string& payload) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(payload.data(), payload.size()),
                     absl::MaxSplits(' ', kPayloadFields - 1));
  if (fields.size() != kPayloadFields) return std::nullopt;
  uint32_t rule = 0;
  uint64_t snapshot_lsn = 0;
  uint64_t conflicting_lsn = 0;
  if (!absl::SimpleAtoi(fields[0], &rule) || !absl::SimpleAtoi(fields[1], &snapshot_lsn) ||
      !absl::SimpleAtoi(fields[2], &conflicting_lsn)) {
    return std::nullopt;
  }
  if (rule == 0 || rule > static_cast<uint32_t>(ConflictRule::kRequestUsed)) return std::nullopt;
  const auto transaction = TransactionId::FromHex(fields[3]);
  if (!transaction.ok()) return std::nullopt;
  ConflictDetail detail;
  detail.rule = static_cast<ConflictRule>(rule);
  detail.snapshot_lsn = wal::Lsn(snapshot_lsn);
  detail.conflicting_lsn = wal::Lsn(conflicting_lsn);
  detail.conflicting_transaction = *transaction;
  detail.key.assign(fields[4].data(), fields[4].size());
  return detail;
}

}  // namespace

absl::string_view ConflictRuleText(ConflictRule rule) {
  switch (rule) {
    case ConflictRule::kNone:
      break;
    case ConflictRule::kTooOld:
      return "snapshot is older than the conflict history";
    case ConflictRule::kEntryWritten:
      return "path was written after the snapshot";
    case ConflictRule::kChildrenWritten:
      return "listed directory changed after the snapshot";
    case ConflictRule::kSubtreeWritten:
      return "subtree changed after the snapshot";
    case ConflictRule::kAncestorRemoved:
      return "something above the path was removed or replaced after the snapshot";
    case ConflictRule::kRefWritten:
      return "ref was written after the snapshot";
    case ConflictRule::kRefPrefixWritten:
      return "refs under the prefix were written after the snapshot";
    case ConflictRule::kRefAbove:
      return "a ref that is a directory of the new name was created after the snapshot";
    case ConflictRule::kRefBelow:
      return "a ref below the new name was created after the snapshot";
    case ConflictRule::kKeyWritten:
      return "key was written after the snapshot";
    case ConflictRule::kKeyRangeWritten:
      return "keys in the range were written after the snapshot";
    case ConflictRule::kLinkWritten:
      return "link between repositories was written after the snapshot";
    case ConflictRule::kRequestUsed:
      return "request id was used after the snapshot";
  }
  return "no conflict";
}

ConflictDetail DetailOf(const CheckResult& result, const Footprint& footprint) {
  ConflictDetail detail;
  detail.rule = result.rule;
  detail.snapshot_lsn = result.snapshot_lsn;
  detail.conflicting_lsn = result.conflicting_lsn;
  detail.conflicting_transaction = result.conflicting_transaction;
  if (result.verdict == Verdict::kConflict &&
      REPOTXN_ALWAYS(result.lock_index < footprint.locks().size())) {
    detail.key = footprint.locks()[result.lock_index].key.ToString();
  }
  return detail;
}

absl::Status ToStatus(const CheckResult& result, const Footprint& footprint) {
  if (result.ok()) return absl::OkStatus();
  return ToStatus(DetailOf(result, footprint));
}

absl::Status ToStatus(const ConflictDetail& detail) {
  absl::Status status = absl::AbortedError(detail.rule_text());
  status.SetPayload(kConflictPayloadUrl, absl::Cord(Encode(detail)));
  return status;
}

std::optional<ConflictDetail> ConflictDetailOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kConflictPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  return Decode(std::string(*payload));
}

}  // namespace repotxn::locks
