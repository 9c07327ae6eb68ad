// The pure part of recovery: which segments count, where the log ends, and whether that is damage.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/status_macros.h"
#include "wal/recovery.h"

namespace repotxn::wal {
namespace {

// Constant text first, then the facts: file, LSN.
absl::Status Damage(absl::string_view what, uint64_t number, Lsn lsn) {
  return absl::DataLossError(absl::StrCat("log is damaged before its tail: ", what, " [segment ",
                                          number, ", lsn ", lsn.value(), "]"));
}

// R1 and R5. The files that count, oldest first; empty for an empty log.
absl::StatusOr<std::vector<const ScannedFile*>> FilesThatCount(
    const LogPosition& base, const LogPosition& durable, absl::Span<const ScannedFile> files) {
  uint64_t newest_recovered = 0;
  for (const ScannedFile& file : files) {
    if (file.header && file.header->is_recovered()) newest_recovered = file.number;
  }
  std::vector<const ScannedFile*> counting;
  bool found_start = false;
  for (const ScannedFile& file : files) {
    if (!file.header || file.number < newest_recovered) continue;
    if (file.header->first_lsn <= base.lsn.Next()) {
      counting.clear();
      found_start = true;
    }
    counting.push_back(&file);
  }
  if (!counting.empty() && !found_start) {
    return Damage("segments before the oldest one are missing", counting.front()->number,
                  base.lsn.Next());
  }
  const uint64_t start = counting.empty() ? 0 : counting.front()->number;
  for (const ScannedFile& file : files) {
    if (file.header || file.number < start) continue;
    const bool was_used = file.traces.proves_header || (start == 0 && file.traces.has_entries);
    if (was_used) return Damage("segment header", file.number, base.lsn.Next());
  }
  if (start == 0 && durable.lsn != Lsn::Zero()) {
    return Damage("no segment has a header", 0, base.lsn.Next());
  }
  return counting;
}

// R2, for two neighbours.
absl::Status CheckLink(const ScannedFile& previous, const ScannedFile& next) {
  const SegmentHeader& header = *next.header;
  if (header.previous_number != previous.number || header.previous_salt != previous.header->salt) {
    return Damage("a segment between is missing", next.number, header.first_lsn);
  }
  // A segment is continued only after all of it was synced: whatever is bad in it now was good.
  if (previous.scan.inside_group || previous.scan.next_lsn != header.first_lsn) {
    return Damage("bad record", previous.number, previous.scan.next_lsn);
  }
  if (previous.scan.chain != header.previous_chain) {
    return Damage("chain", next.number, header.first_lsn);
  }
  return absl::OkStatus();
}

// R3, for the last segment: whether something proves that the record which would be next was
// durable.
bool IsProvablyDurable(const LogPosition& durable, const ScannedFile& last) {
  if (REPOTXN_PLANT("wal.accept_torn_tail")) return false;
  const Lsn n = last.scan.next_lsn;
  if (n <= durable.lsn || n <= last.header->durable_lsn) return true;
  if (n <= last.scan.later_durable_before) return true;
  return last.scan.later_group && !last.scan.inside_group;
}

// R4, for base.
absl::Status CheckBase(const LogPosition& base, const ScannedFile& start) {
  const Lsn first = start.header->first_lsn;
  REPOTXN_DCHECK(first <= base.lsn.Next() && base.lsn < start.scan.next_lsn);
  const ChainChecksum& chain =
      first == base.lsn.Next()
          ? start.header->previous_chain
          : start.scan.entries[static_cast<size_t>(base.lsn.value() - first.value())].chain;
  if (chain == base.chain) return absl::OkStatus();
  return Damage("chain differs from the applied state", start.number, base.lsn);
}

// R4, for what is known to be durable above base.
absl::Status CheckDurable(const LogPosition& durable, const RecoveryPlan& plan) {
  for (const RecoveryPlan::Source& source : plan.tail) {
    if (source.entries.empty() || source.entries.back().lsn < durable.lsn) continue;
    const Lsn first = source.entries.front().lsn;
    if (first > durable.lsn) return absl::OkStatus();  // it is base itself
    const size_t index = static_cast<size_t>(durable.lsn.value() - first.value());
    if (source.entries[index].chain == durable.chain) return absl::OkStatus();
    return Damage("chain differs from the applied state", source.number, durable.lsn);
  }
  return absl::OkStatus();
}

RecoveryPlan::Source SourceAbove(const LogPosition& base, const ScannedFile& file) {
  RecoveryPlan::Source source;
  source.number = file.number;
  for (const ScannedEntry& entry : file.scan.entries) {
    if (entry.lsn > base.lsn) source.entries.push_back(entry);
  }
  return source;
}

}  // namespace

absl::StatusOr<RecoveryPlan> PlanRecovery(const LogPosition& base, const LogPosition& durable,
                                          absl::Span<const ScannedFile> files) {
  REPOTXN_DCHECK(base.lsn <= durable.lsn);
  REPOTXN_DCHECK(std::is_sorted(files.begin(), files.end(),
                                [](const auto& a, const auto& b) { return a.number < b.number; }));
  RecoveryPlan plan;
  plan.end = base;
  for (const ScannedFile& file : files) {
    if (file.header) plan.newest_epoch = std::max(plan.newest_epoch, file.header->epoch);
  }
  REPOTXN_ASSIGN_OR_RETURN(const std::vector<const ScannedFile*> counting,
                           FilesThatCount(base, durable, files));
  if (counting.empty()) return plan;
  for (size_t i = 1; i < counting.size(); ++i) {
    REPOTXN_RETURN_IF_ERROR(CheckLink(*counting[i - 1], *counting[i]));
  }
  const ScannedFile& last = *counting.back();
  if (IsProvablyDurable(durable, last)) {
    return Damage("bad record", last.number, last.scan.next_lsn);
  }
  // With the planted bug the log may end below base; there is nothing above it then.
  if (last.scan.next_lsn > base.lsn) {
    REPOTXN_RETURN_IF_ERROR(CheckBase(base, *counting.front()));
    for (const ScannedFile* file : counting) plan.tail.push_back(SourceAbove(base, *file));
    if (last.scan.next_lsn.Previous() > base.lsn) {
      plan.end = LogPosition{last.scan.next_lsn.Previous(), last.scan.chain};
    }
    REPOTXN_RETURN_IF_ERROR(CheckDurable(durable, plan));
  }
  plan.first_needed = counting.front()->number;
  plan.torn_bytes = last.scan.later_bytes;
  if (plan.torn_bytes > 0 || last.scan.inside_group) REPOTXN_PROBE("wal.torn_tail");
  return plan;
}

}  // namespace repotxn::wal
