#include "refs/ref_operations.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "refs/loose_refs.h"
#include "refs/packed_refs.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/check.h"
#include "storage/status_macros.h"

namespace repotxn::refs {
namespace {

using Kind = wal::LoggedRefValue::Kind;

constexpr uint32_t kRefFileMode = 0644;

absl::string_view View(const std::string& text) {
  return absl::string_view(text.data(), text.size());
}

bool IsHeadName(const std::string& name) { return View(name) == kHeadText; }

// What one repository's part of a note says.
struct NotePart {
  std::vector<const wal::RefChange*> changes;
  std::vector<const wal::PackedRef*> packed;
};
using NoteParts = std::map<RepositoryId, NotePart>;

NoteParts PartsOf(absl::Span<const wal::RefChange> ref_changes,
                  absl::Span<const wal::RefsPacked> refs_packed) {
  NoteParts parts;
  for (const wal::RefChange& change : ref_changes) parts[change.id].changes.push_back(&change);
  for (const wal::RefsPacked& packing : refs_packed) {
    NotePart& part = parts[packing.id];
    for (const wal::PackedRef& ref : packing.refs) part.packed.push_back(&ref);
  }
  return parts;
}

// Whether a large batch may put this change straight into packed-refs.
bool IsPackable(const wal::RefChange& change) {
  return change.new_value.kind == Kind::kObject && !IsHeadName(change.name);
}

bool IsLargeBatch(const NotePart& part, size_t threshold) {
  const auto updates =
      std::count_if(part.changes.begin(), part.changes.end(),
                    [](const wal::RefChange* change) { return IsPackable(*change); });
  return static_cast<size_t>(updates) > threshold;
}

std::string LooseContent(const wal::LoggedRefValue& logged) {
  const auto value = RefValue::FromLogged(logged);
  if (REPOTXN_NEVER(!value.ok())) return std::string();  // A requirement on the note.
  return EncodeLooseRef(*value);
}

// Derives one repository's operations.
class PartDerivation {
 public:
  PartDerivation(const RepositoryId& id, bool is_large_batch)
      : id_(id), is_large_batch_(is_large_batch) {}

  std::vector<wal::Operation> Derive(const NotePart& part) {
    for (const wal::RefChange* change : part.changes) TakeChange(*change);
    for (const wal::PackedRef* ref : part.packed) PlacePacked(*ref);
    return Ordered();
  }

 private:
  void TakeChange(const wal::RefChange& change) {
    if (change.new_value.kind == Kind::kAbsent) {
      edit_.remove.push_back(change.name);
      removed_files_.push_back(change.name);
    } else if (is_large_batch_ && IsPackable(change)) {
      PlacePacked({change.name, change.new_value.bytes, change.new_value.peeled});
    } else {
      wal::PutFile put{id_, change.name, kRefFileMode, {}};
      put.content.inline_bytes = LooseContent(change.new_value);
      put_files_.push_back(std::move(put));
    }
  }

  void PlacePacked(const wal::PackedRef& ref) {
    edit_.set.push_back(ref);
    removed_files_.push_back(ref.name);
  }

  std::vector<wal::Operation> Ordered() {
    std::sort(edit_.set.begin(), edit_.set.end(),
              [](const wal::PackedRef& a, const wal::PackedRef& b) { return a.name < b.name; });
    std::sort(edit_.remove.begin(), edit_.remove.end());
    std::sort(removed_files_.begin(), removed_files_.end());
    std::sort(put_files_.begin(), put_files_.end(),
              [](const wal::PutFile& a, const wal::PutFile& b) { return a.path < b.path; });
    std::vector<wal::Operation> operations;
    operations.reserve(1 + removed_files_.size() + put_files_.size());
    if (!edit_.set.empty() || !edit_.remove.empty()) {
      edit_.id = id_;
      operations.emplace_back(std::move(edit_));
    }
    for (std::string& path : removed_files_) {
      operations.emplace_back(wal::RemoveFile{id_, std::move(path)});
    }
    for (wal::PutFile& put : put_files_) operations.emplace_back(std::move(put));
    return operations;
  }

  const RepositoryId id_;
  const bool is_large_batch_;
  wal::EditPackedRefs edit_;
  std::vector<std::string> removed_files_;
  std::vector<wal::PutFile> put_files_;
};

absl::Status Malformed(absl::string_view what) { return absl::DataLossError(what); }

absl::Status CheckChange(const wal::RefChange& change) {
  const auto name = RefName::Parse(View(change.name));
  if (!name.ok()) return Malformed("malformed ref name in a ref change");
  REPOTXN_RETURN_IF_ERROR(RefValue::FromLogged(change.old_value).status());
  REPOTXN_RETURN_IF_ERROR(RefValue::FromLogged(change.new_value).status());
  if (name->IsHead() && change.new_value.kind == Kind::kAbsent) {
    return Malformed("ref change deletes HEAD");
  }
  return absl::OkStatus();
}

absl::Status CheckPacking(const wal::RefsPacked& packing) {
  if (packing.refs.empty()) return Malformed("packing of no refs");
  const std::string* last = nullptr;
  for (const wal::PackedRef& ref : packing.refs) {
    if (last != nullptr && !(*last < ref.name)) return Malformed("packed refs are not sorted");
    last = &ref.name;
    if (IsHeadName(ref.name) || FindRefNameFault(View(ref.name))) {
      return Malformed("malformed name of a packed ref");
    }
    const wal::LoggedRefValue value{Kind::kObject, ref.oid, ref.peeled};
    REPOTXN_RETURN_IF_ERROR(RefValue::FromLogged(value).status());
  }
  return absl::OkStatus();
}

absl::Status CheckNote(const wal::Note& note) {
  for (const wal::RefChange& change : note.ref_changes) {
    REPOTXN_RETURN_IF_ERROR(CheckChange(change));
  }
  std::set<RepositoryId> packed_repositories;
  for (const wal::RefsPacked& packing : note.refs_packed) {
    REPOTXN_RETURN_IF_ERROR(CheckPacking(packing));
    if (!packed_repositories.insert(packing.id).second) {
      return Malformed("two packings of one repository");
    }
  }
  for (const auto& [id, part] : PartsOf(note.ref_changes, note.refs_packed)) {
    absl::flat_hash_set<absl::string_view> names;
    for (const wal::RefChange* change : part.changes) {
      if (!names.insert(View(change->name)).second) return Malformed("two changes of one ref");
    }
    for (const wal::PackedRef* ref : part.packed) {
      if (names.contains(View(ref->name))) return Malformed("ref both changed and packed");
    }
  }
  return absl::OkStatus();
}

bool IsRefPath(const std::string& path) {
  const absl::string_view view = View(path);
  return view == kHeadText || view == kPackedRefsPath || view == "refs" ||
         view.substr(0, 5) == "refs/";
}

// The repository of an operation that belongs to the derivation; no value for every other one.
std::optional<RepositoryId> RefRepositoryOf(const wal::Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::optional<RepositoryId> {
        using Op = std::decay_t<decltype(op)>;
        if constexpr (std::is_same_v<Op, wal::EditPackedRefs>) {
          return op.id;
        } else if constexpr (std::is_same_v<Op, wal::PutFile> ||
                             std::is_same_v<Op, wal::RemoveFile> ||
                             std::is_same_v<Op, wal::MakeDirectory> ||
                             std::is_same_v<Op, wal::RemoveDirectory>) {
          if (IsRefPath(op.path)) return op.id;
        }
        return std::nullopt;
      },
      operation);
}

using OperationList = std::vector<const wal::Operation*>;

bool IsDerivation(const OperationList& found, const RepositoryId& id, const NotePart& part,
                  bool is_large_batch) {
  const std::vector<wal::Operation> derived = PartDerivation(id, is_large_batch).Derive(part);
  return std::equal(derived.begin(), derived.end(), found.begin(), found.end(),
                    [](const wal::Operation& a, const wal::Operation* b) { return a == *b; });
}

using DroppedNames = std::map<RepositoryId, absl::flat_hash_set<std::string>>;

bool IsDropped(const DroppedNames& dropped, const RepositoryId& id, const std::string& name) {
  const auto names = dropped.find(id);
  return names != dropped.end() && names->second.contains(name);
}

// Whether every dropped name is packed by the note.
bool AllArePacked(const DroppedNames& dropped, const wal::Note& note) {
  size_t found = 0;
  size_t wanted = 0;
  for (const auto& [id, names] : dropped) wanted += names.size();
  for (const wal::RefsPacked& packing : note.refs_packed) {
    for (const wal::PackedRef& ref : packing.refs) {
      if (IsDropped(dropped, packing.id, ref.name)) ++found;
    }
  }
  return found == wanted;
}

// Takes dropped names out of the lines that an operation sets.
void DropLines(const DroppedNames& dropped, wal::Operation& operation) {
  auto* edit = std::get_if<wal::EditPackedRefs>(&operation);
  if (edit == nullptr) return;
  std::erase_if(edit->set,
                [&](const wal::PackedRef& ref) { return IsDropped(dropped, edit->id, ref.name); });
}

// Whether nothing is left of an operation whose lines were dropped.
bool IsWhollyDropped(const DroppedNames& dropped, const wal::Operation& operation) {
  if (const auto* edit = std::get_if<wal::EditPackedRefs>(&operation)) {
    return edit->set.empty() && edit->remove.empty();
  }
  const auto* remove = std::get_if<wal::RemoveFile>(&operation);
  return remove != nullptr && IsDropped(dropped, remove->id, remove->path);
}

}  // namespace

std::vector<wal::Operation> DeriveRefOperations(absl::Span<const wal::RefChange> ref_changes,
                                                absl::Span<const wal::RefsPacked> refs_packed,
                                                const RefOperationOptions& options) {
  std::vector<wal::Operation> operations;
  for (const auto& [id, part] : PartsOf(ref_changes, refs_packed)) {
    const bool is_large_batch = IsLargeBatch(part, options.packed_threshold);
    std::vector<wal::Operation> of_part = PartDerivation(id, is_large_batch).Derive(part);
    std::move(of_part.begin(), of_part.end(), std::back_inserter(operations));
  }
  return operations;
}

bool IsRefOperation(const wal::Operation& operation) {
  return RefRepositoryOf(operation).has_value();
}

absl::Status VerifyRefOperations(const wal::Manifest& manifest) {
  REPOTXN_RETURN_IF_ERROR(CheckNote(manifest.note));
  std::map<RepositoryId, OperationList> found;
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto id = RefRepositoryOf(operation)) found[*id].push_back(&operation);
  }
  const NoteParts parts = PartsOf(manifest.note.ref_changes, manifest.note.refs_packed);
  for (const auto& [id, operations] : found) {
    if (parts.count(id) == 0) return Malformed("ref operations without a ref change");
  }
  for (const auto& [id, part] : parts) {
    const OperationList& operations = found[id];
    if (!IsDerivation(operations, id, part, false) && !IsDerivation(operations, id, part, true)) {
      return Malformed("ref operations differ from the ref changes");
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyDropped(absl::Span<const wal::DroppedRef> dropped, wal::Manifest& manifest) {
  DroppedNames names;
  for (const wal::DroppedRef& ref : dropped) names[ref.id].insert(ref.name);
  if (!AllArePacked(names, manifest.note)) return Malformed("dropped ref is not packed here");
  for (wal::RefsPacked& packing : manifest.note.refs_packed) {
    std::erase_if(packing.refs, [&](const wal::PackedRef& ref) {
      return IsDropped(names, packing.id, ref.name);
    });
  }
  std::erase_if(manifest.note.refs_packed,
                [](const wal::RefsPacked& packing) { return packing.refs.empty(); });
  for (wal::Operation& operation : manifest.operations) DropLines(names, operation);
  std::erase_if(manifest.operations,
                [&](const wal::Operation& operation) { return IsWhollyDropped(names, operation); });
  return absl::OkStatus();
}

RefPlacements::RefPlacements(const wal::Manifest& manifest) {
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto* edit = std::get_if<wal::EditPackedRefs>(&operation)) {
      edits_.emplace(edit->id, edit);
    }
  }
}

RefPlacement RefPlacements::Of(const wal::RefChange& change) const {
  if (change.new_value.kind == Kind::kAbsent) return RefPlacement::kAbsent;
  const auto edit = edits_.find(change.id);
  if (edit == edits_.end()) return RefPlacement::kLoose;
  const std::vector<wal::PackedRef>& set = edit->second->set;
  const auto line = std::lower_bound(
      set.begin(), set.end(), change.name,
      [](const wal::PackedRef& ref, const std::string& name) { return ref.name < name; });
  return line != set.end() && line->name == change.name ? RefPlacement::kPacked
                                                        : RefPlacement::kLoose;
}

}  // namespace repotxn::refs
