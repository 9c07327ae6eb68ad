#include "txn/set_aside.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "refs/ref_operations.h"
#include "storage/status_macros.h"
#include "wal/manifest_codec.h"

namespace repotxn::txn {
namespace {

absl::Status Damaged() { return absl::DataLossError("damaged row of the metadata store: repository set aside"); }

wal::Operation OperationOf(const RepositoryId& id, const std::string& path, const FileState& state) {
  switch (state.kind) {
    case FileState::Kind::kAbsent: return wal::RemoveFile{id, path};
    case FileState::Kind::kDirectory: return wal::MakeDirectory{id, path};
    case FileState::Kind::kFile: break;
  }
  return wal::PutFile{id, path, state.mode, wal::FileContent{*state.content, {}}};
}

// About the bytes that a change takes in a manifest, where a ref stands twice.
int64_t CostOf(const std::string& name, const RefState&) { return 2 * static_cast<int64_t>(name.size()) + 200; }
int64_t CostOf(const std::string& path, const FileState& state) {
  return static_cast<int64_t>(path.size()) + 100 + StateBytes(state);
}

std::string EncodeRow(const RepositoryId& repository, const RepositoryState::Changes& changes, const TransactionId& id,
                      absl::Time now) {
  wal::Manifest manifest;
  manifest.transaction_id = id;
  manifest.created_at = now;
  wal::RefsPacked packed{repository, {}};
  for (const auto& [name, version] : changes.refs) {
    const wal::LoggedRefValue value = version.state.value.ToLogged();
    if (version.state.is_packed && version.state.value.is_object()) {
      packed.refs.push_back(wal::PackedRef{name, value.bytes, value.peeled});
    } else {
      manifest.note.ref_changes.push_back(wal::RefChange{repository, name, {}, value});
    }
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(packed.refs.begin(), packed.refs.end(), by_name);
  std::sort(manifest.note.ref_changes.begin(), manifest.note.ref_changes.end(), by_name);
  if (!packed.refs.empty()) manifest.note.refs_packed.push_back(std::move(packed));
  refs::RefOperationOptions loose_stays_loose;
  loose_stays_loose.packed_threshold = std::numeric_limits<size_t>::max();
  manifest.operations =
      refs::DeriveRefOperations(manifest.note.ref_changes, manifest.note.refs_packed, loose_stays_loose);
  for (const auto& [path, version] : changes.files) {
    manifest.operations.push_back(OperationOf(repository, path, version.state));
  }
  return wal::EncodeManifest(manifest);
}

}  // namespace

std::string SetAsidePrefix(const RepositoryId& id) { return absl::StrCat(kSetAsidePrefix, id.ToHex(), "/"); }

std::vector<std::pair<std::string, std::string>> EncodeSetAside(const RepositoryId& repository,
                                                                RepositoryState::Changes changes,
                                                                const TransactionId& id, absl::Time now,
                                                                int64_t row_bytes) {
  std::vector<std::pair<std::string, std::string>> rows;
  RepositoryState::Changes part;
  int64_t bytes = 0;
  const auto finish = [&] {
    if (part.refs.empty() && part.files.empty()) return;
    rows.emplace_back(absl::StrCat(SetAsidePrefix(repository), absl::Hex(rows.size(), absl::kZeroPad8)),
                      EncodeRow(repository, part, id, now));
    part = RepositoryState::Changes();
    bytes = 0;
  };
  const auto take = [&](auto& all, auto RepositoryState::Changes::*list) {
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& change : all) {
      const int64_t cost = CostOf(change.first, change.second.state);
      if (bytes + cost > row_bytes) finish();
      bytes += cost;
      (part.*list).push_back(std::move(change));
    }
  };
  take(changes.refs, &RepositoryState::Changes::refs);
  take(changes.files, &RepositoryState::Changes::files);
  finish();
  return rows;
}

absl::StatusOr<RepositoryEffects> DecodeSetAside(absl::string_view key, absl::string_view value) {
  const auto manifest = wal::DecodeManifest(value);
  if (!manifest.ok() || !ValidateManifest(*manifest).ok()) return Damaged();
  const auto no_payload = [](const wal::PayloadFile&) -> absl::StatusOr<std::string> { return Damaged(); };
  REPOTXN_ASSIGN_OR_RETURN(EntryEffects effects, MakeEffects(*manifest, no_payload));
  if (effects.has_directory_work() || effects.repositories.size() != 1 ||
      !absl::StartsWith(key, SetAsidePrefix(effects.repositories[0].id))) {
    return Damaged();
  }
  return std::move(effects.repositories[0]);
}

}  // namespace repotxn::txn
