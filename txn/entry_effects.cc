#include "txn/entry_effects.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "objects/derived_path.h"
#include "refs/ref_name.h"
#include "refs/ref_operations.h"
#include "storage/check.h"
#include "storage/status_macros.h"
#include "storage/store_path.h"
#include "txn/layout.h"
#include "txn/repository_path.h"

namespace repotxn::txn {
namespace {

absl::Status Malformed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("malformed manifest: ", what));
}

bool IsPackName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "pack-") || (name.size() != 40 && name.size() != 64)) return false;
  for (const char c : name) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

bool IsPayload(const wal::PayloadFile& file) { return file.size >= 0 && file.sha256.size() == 32; }

absl::Status ValidateMode(uint32_t mode) {
  return (mode & ~uint32_t{0777}) == 0 ? absl::OkStatus() : Malformed("mode of a file");
}

bool IsAmong(const RepositoryId& id, const std::vector<RepositoryId>& ids) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// What a repository borrows from: each once, and never itself.
absl::Status ValidateAlternates(const RepositoryId& id, const std::vector<RepositoryId>& alternates) {
  std::set<RepositoryId> seen = {id};
  for (const RepositoryId& pool : alternates) {
    if (pool.IsZero() || !seen.insert(pool).second) return Malformed("alternates");
  }
  return absl::OkStatus();
}

absl::Status ValidateFacts(const RepositoryId& id, const wal::RowFacts& facts) {
  if (facts.partition == wal::kNameSpacePartition) return Malformed("partition");
  if (facts.format != ObjectFormat::kSha1 && facts.format != ObjectFormat::kSha256) {
    return Malformed("object format");
  }
  return ValidateAlternates(id, facts.alternates);
}

absl::Status ValidateLink(const RepositoryId& member, const RepositoryId& pool,
                          const std::vector<RepositoryId>& alternates) {
  if (member.IsZero() || pool.IsZero() || member == pool) return Malformed("link");
  return ValidateAlternates(member, alternates);
}

absl::Status ValidateKey(const std::string& key) {
  return key.size() < 2 ? Malformed("key") : absl::OkStatus();
}

// An adopted directory is none of the store's own, and what is set aside lies in it.
absl::Status ValidateAdopted(const wal::CreateRepository& op) {
  if (!op.is_adopted()) {
    return op.set_aside.empty() ? absl::OkStatus() : Malformed("paths to set aside");
  }
  if (!CheckAdoptable(op.adopted_from).ok()) return Malformed("directory of an adopted repository");
  for (const std::string& path : op.set_aside) {
    if (path.empty() || !storage::StorePath::Parse(path).ok()) return Malformed("path to set aside");
  }
  return absl::OkStatus();
}

// Judges one operation.
struct OperationValidator {
  absl::Status operator()(const wal::CreateRepository& op) const {
    if (op.id.IsZero() || op.partition == wal::kNameSpacePartition) return Malformed("repository");
    if (!RepositoryPath::Parse(op.path).ok()) return Malformed("path of a repository");
    if (op.format != ObjectFormat::kSha1 && op.format != ObjectFormat::kSha256) {
      return Malformed("object format");
    }
    const auto head = refs::RefName::Parse(op.head_target);
    if (!head.ok() || head->IsHead()) return Malformed("target of HEAD");
    return ValidateAdopted(op);
  }
  absl::Status operator()(const wal::RemoveRepository& op) const {
    if (op.id.IsZero() || !RepositoryPath::Parse(op.path).ok()) return Malformed("repository");
    if (op.purge != (op.facts.removed_at_ns != 0)) return Malformed("time of a removal");
    if (!op.released_to.empty() && (!op.purge || !CheckAdoptable(op.released_to).ok())) {
      return Malformed("directory of a released repository");
    }
    return ValidateFacts(op.id, op.facts);
  }
  absl::Status operator()(const wal::SetPath& op) const {
    if (op.id.IsZero() || !RepositoryPath::Parse(op.path).ok()) return Malformed("repository");
    if (op.old_path.empty() ? op.facts.removed_at_ns == 0
                            : op.facts.removed_at_ns != 0 || !RepositoryPath::Parse(op.old_path).ok()) {
      return Malformed("former path of a repository");
    }
    return ValidateFacts(op.id, op.facts);
  }
  absl::Status operator()(const wal::RemoveGroup& op) const {
    return RepositoryPath::Parse(op.path).ok() ? absl::OkStatus() : Malformed("path of a group");
  }
  absl::Status operator()(const wal::LinkAlternate& op) const {
    REPOTXN_RETURN_IF_ERROR(ValidateLink(op.member, op.pool, op.alternates));
    return IsAmong(op.pool, op.alternates) ? absl::OkStatus() : Malformed("alternates");
  }
  absl::Status operator()(const wal::UnlinkAlternate& op) const {
    REPOTXN_RETURN_IF_ERROR(ValidateLink(op.member, op.pool, op.alternates));
    return !IsAmong(op.pool, op.alternates) ? absl::OkStatus() : Malformed("alternates");
  }
  absl::Status operator()(const wal::PutKey& op) const { return ValidateKey(op.key); }
  absl::Status operator()(const wal::DeleteKey& op) const { return ValidateKey(op.key); }
  absl::Status operator()(const wal::EnsureGroup& op) const {
    return RepositoryPath::Parse(op.path).ok() ? absl::OkStatus() : Malformed("path of a group");
  }
  absl::Status operator()(const wal::PutFile& op) const {
    if (absl::Status s = ValidateMode(op.mode); !s.ok()) return s;
    if (op.content.is_payload() && !IsPayload(op.content.payload)) return Malformed("payload");
    return refs::IsRefOperation(op) || CheckWritablePath(op.path).ok() ? absl::OkStatus()
                                                                      : Malformed("path of a file");
  }
  absl::Status operator()(const wal::RemoveFile& op) const {
    return refs::IsRefOperation(op) || CheckWritablePath(op.path).ok() ? absl::OkStatus()
                                                                      : Malformed("path of a file");
  }
  absl::Status operator()(const wal::MakeDirectory& op) const {
    return CheckWritablePath(op.path).ok() ? absl::OkStatus() : Malformed("path of a directory");
  }
  absl::Status operator()(const wal::RemoveDirectory& op) const {
    return CheckWritablePath(op.path).ok() ? absl::OkStatus() : Malformed("path of a directory");
  }
  // Compared with the note, line by line, by VerifyRefOperations.
  absl::Status operator()(const wal::EditPackedRefs&) const { return absl::OkStatus(); }
  absl::Status operator()(const wal::AddPack& op) const {
    if (!IsPackName(op.name)) return Malformed("name of a pack");
    return IsPayload(op.pack) && IsPayload(op.index) && IsPayload(op.reverse_index) &&
                   (!op.is_cruft() || IsPayload(op.cruft_times))
               ? absl::OkStatus()
               : Malformed("payload of a pack");
  }
  absl::Status operator()(const wal::RemovePack& op) const {
    return IsPackName(op.name) ? absl::OkStatus() : Malformed("name of a pack");
  }
  absl::Status operator()(const wal::ReplaceDerived& op) const {
    if (!objects::DerivedKindOf(op.path)) return Malformed("path of a derived file");
    if (!op.content.inline_bytes.empty()) return Malformed("content of a derived file");
    const bool is_sound = op.remove ? !op.content.is_payload() : IsPayload(op.content.payload);
    return is_sound ? absl::OkStatus() : Malformed("payload of a derived file");
  }
};

class EffectsBuilder {
 public:
  RepositoryEffects& Of(const RepositoryId& id) {
    RepositoryEffects& effects = repositories_[id];
    effects.id = id;
    return effects;
  }
  // The directories that a path needs: made with it when they are missing, so they have versions like anything else.
  void AddParents(const RepositoryId& id, const std::string& path) {
    for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      Of(id).files.emplace_back(path.substr(0, slash),
                                FileState{FileState::Kind::kDirectory, 0755, nullptr});
    }
  }
  std::vector<RepositoryEffects> Take() {
    std::vector<RepositoryEffects> all;
    for (auto& [id, effects] : repositories_) all.push_back(std::move(effects));
    return all;
  }

 private:
  std::map<RepositoryId, RepositoryEffects> repositories_;
};

// Parts before what names them, removals last.
void SortDerived(std::vector<wal::ReplaceDerived>* derived) {
  if (REPOTXN_PLANT("txn.chain_before_its_layers")) {
    std::reverse(derived->begin(), derived->end());
    return;
  }
  const auto order = [](const wal::ReplaceDerived& op) {
    return objects::DerivedOrder(*objects::DerivedKindOf(op.path), op.remove);
  };
  std::stable_sort(derived->begin(), derived->end(),
                   [&order](const auto& a, const auto& b) { return order(a) < order(b); });
}

absl::Status AddRefEffects(const wal::Manifest& manifest, EffectsBuilder* builder) {
  const refs::RefPlacements placements(manifest);
  for (const wal::RefChange& change : manifest.note.ref_changes) {
    RefState state;
    REPOTXN_ASSIGN_OR_RETURN(state.value, refs::RefValue::FromLogged(change.new_value));
    state.is_packed = placements.Of(change) == refs::RefPlacement::kPacked;
    builder->Of(change.id).refs.emplace_back(change.name, std::move(state));
  }
  for (const wal::RefsPacked& packing : manifest.note.refs_packed) {
    for (const wal::PackedRef& ref : packing.refs) {
      REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid, ObjectId::FromBytes(ref.oid));
      ObjectId peeled;
      if (!ref.peeled.empty()) {
        REPOTXN_ASSIGN_OR_RETURN(peeled, ObjectId::FromBytes(ref.peeled));
      }
      builder->Of(packing.id)
          .refs.emplace_back(ref.name, RefState{refs::RefValue::Object(oid, peeled), true});
    }
  }
  return absl::OkStatus();
}

absl::Status AddFileEffects(const wal::Operation& operation, const PayloadReader& read_payload,
                            EffectsBuilder* builder) {
  if (const auto* put = std::get_if<wal::PutFile>(&operation)) {
    FileState state{FileState::Kind::kFile, put->mode, nullptr};
    std::string content = put->content.inline_bytes;
    builder->AddParents(put->id, put->path);
    if (put->content.is_payload()) {
      REPOTXN_ASSIGN_OR_RETURN(content, read_payload(put->content.payload));
    }
    state.content = std::make_shared<const std::string>(std::move(content));
    builder->Of(put->id).files.emplace_back(put->path, std::move(state));
  } else if (const auto* remove = std::get_if<wal::RemoveFile>(&operation)) {
    builder->Of(remove->id).files.emplace_back(remove->path, FileState{});
  } else if (const auto* make = std::get_if<wal::MakeDirectory>(&operation)) {
    builder->AddParents(make->id, make->path);
    builder->Of(make->id).files.emplace_back(
        make->path, FileState{FileState::Kind::kDirectory, 0755, nullptr});
  } else if (const auto* rmdir = std::get_if<wal::RemoveDirectory>(&operation)) {
    builder->Of(rmdir->id).files.emplace_back(rmdir->path, FileState{});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWritablePath(absl::string_view path) {
  const auto parsed = storage::StorePath::Parse(path);
  if (!parsed.ok()) return parsed.status();
  if (path.empty()) return absl::InvalidArgumentError("path of a file is empty");
  const std::vector<absl::string_view> components = absl::StrSplit(path, '/');
  static const std::set<std::string>* const reserved = new std::set<std::string>{
      "HEAD", "packed-refs", "refs", "objects", "logs", "FETCH_HEAD", "gc.pid"};
  if (reserved->count(std::string(components[0].data(), components[0].size())) > 0) {
    return absl::InvalidArgumentError("path is reserved for refs, objects or git itself");
  }
  for (const absl::string_view component : components) {
    if (absl::EndsWith(component, ".lock")) {
      return absl::InvalidArgumentError("path ends in .lock");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAdoptable(absl::string_view source) {
  const auto path = storage::StorePath::Parse(source);
  if (!path.ok()) return path.status();
  const absl::Status ours = absl::InvalidArgumentError("directory is one of the store's own");
  if (path->IsRoot()) return ours;
  for (const storage::StorePath& directory :
       {layout::Log(), layout::Payload(), layout::Staging(), layout::Snapshots(),
        layout::PendingDelete(), layout::Metadata(), layout::RepositoryDirectories()}) {
    if (path->IsWithin(directory) || directory.IsWithin(*path)) return ours;
  }
  return *path == layout::LostFound() ? ours : absl::OkStatus();
}

absl::Status ValidateManifest(const wal::Manifest& manifest) {
  if (manifest.transaction_id.IsZero()) return Malformed("transaction id");
  for (const wal::Operation& operation : manifest.operations) {
    REPOTXN_RETURN_IF_ERROR(std::visit(OperationValidator{}, operation));
  }
  for (const wal::ObjectsRemoved& removed : manifest.note.objects_removed) {
    if (removed.id.IsZero() || removed.oids.empty()) return Malformed("removed objects");
    for (const std::string& oid : removed.oids) {
      if (!ObjectId::FromBytes(oid).ok()) return Malformed("id of a removed object");
    }
  }
  return refs::VerifyRefOperations(manifest);
}

absl::StatusOr<EntryEffects> MakeEffects(const wal::Manifest& manifest,
                                         const PayloadReader& read_payload) {
  EntryEffects effects;
  effects.created_at = manifest.created_at;
  EffectsBuilder builder;
  for (const wal::Operation& operation : manifest.operations) {
    if (const auto* create = std::get_if<wal::CreateRepository>(&operation)) {
      effects.created.push_back(*create);
    } else if (const auto* pack = std::get_if<wal::AddPack>(&operation)) {
      effects.packs.push_back(*pack);
    } else if (const auto* removed = std::get_if<wal::RemovePack>(&operation)) {
      effects.removed_packs.push_back(*removed);
    } else if (const auto* derived = std::get_if<wal::ReplaceDerived>(&operation)) {
      effects.derived.push_back(*derived);
    } else if (const auto* link = std::get_if<wal::LinkAlternate>(&operation)) {
      effects.alternates.push_back(ChangedAlternates{link->member, link->alternates});
    } else if (const auto* unlink = std::get_if<wal::UnlinkAlternate>(&operation)) {
      effects.alternates.push_back(ChangedAlternates{unlink->member, unlink->alternates});
    } else if (const auto* remove = std::get_if<wal::RemoveRepository>(&operation)) {
      if (remove->purge) effects.purged.push_back(remove->id);
      if (!remove->released_to.empty()) effects.released.emplace_back(remove->id, remove->released_to);
    } else if (!refs::IsRefOperation(operation)) {
      REPOTXN_RETURN_IF_ERROR(AddFileEffects(operation, read_payload, &builder));
    }
  }
  for (const wal::ObjectsRemoved& removed : manifest.note.objects_removed) {
    effects.objects_removed.push_back(removed.id);
  }
  SortDerived(&effects.derived);
  REPOTXN_RETURN_IF_ERROR(AddRefEffects(manifest, &builder));
  effects.repositories = builder.Take();
  effects.keys = CatalogueChanges(manifest);
  return effects;
}

void DropPackedRefs(absl::Span<const wal::DroppedRef> dropped, EntryEffects* effects) {
  std::set<std::pair<RepositoryId, absl::string_view>> names;
  for (const wal::DroppedRef& ref : dropped) names.emplace(ref.id, ref.name);
  for (RepositoryEffects& repository : effects->repositories) {
    std::erase_if(repository.refs, [&](const std::pair<std::string, RefState>& ref) {
      return ref.second.is_packed && names.count({repository.id, ref.first}) > 0;
    });
  }
}

}  // namespace repotxn::txn
