#include "wal/manifest_codec.h"

#include <utility>

#include "google/protobuf/arena.h"
#include "google/protobuf/unknown_field_set.h"
#include "storage/check.h"
#include "storage/checksum.h"
#include "storage/status_macros.h"
#include "wal/manifest.pb.h"

namespace repotxn::wal {
namespace {

using google::protobuf::Arena;

absl::Status Malformed() { return absl::DataLossError("encoded manifest is malformed"); }

// --- Encoding. What equals its default is left out, so that one value has one encoding. ---

template <typename Id>
std::string IdBytes(const Id& id) {
  return std::string(id.bytes().data(), id.bytes().size());
}

void Encode(const PayloadFile& file, pb::PayloadFile* out) {
  out->set_index(file.index);
  out->set_size(static_cast<uint64_t>(file.size));
  out->set_sha256(file.sha256);
}

template <typename Message>
void EncodeContent(const FileContent& content, Message* out) {
  if (content.is_payload()) {
    Encode(content.payload, out->mutable_content()->mutable_payload());
  } else if (!content.inline_bytes.empty()) {
    out->mutable_content()->set_inline_bytes(content.inline_bytes);
  }
}

void Encode(const PackedRef& ref, pb::PackedRef* out) {
  out->set_name(ref.name);
  out->set_oid(ref.oid);
  out->set_peeled(ref.peeled);
}

void Encode(const RowFacts& facts, pb::RowFacts* out) {
  out->set_partition(facts.partition);
  out->set_format(static_cast<uint32_t>(facts.format));
  for (const RepositoryId& id : facts.alternates) out->add_alternates(IdBytes(id));
  out->set_removed_at_ns(facts.removed_at_ns);
}

struct OperationEncoder {
  pb::Operation* out;

  void operator()(const CreateRepository& op) const {
    pb::CreateRepository* const to = out->mutable_create_repository();
    to->set_id(IdBytes(op.id));
    to->set_path(op.path);
    to->set_partition(op.partition);
    to->set_format(static_cast<uint32_t>(op.format));
    to->set_head_target(op.head_target);
    to->set_adopted_from(op.adopted_from);
    for (const std::string& path : op.set_aside) to->add_set_aside(path);
  }
  void operator()(const RemoveRepository& op) const {
    pb::RemoveRepository* const to = out->mutable_remove_repository();
    EncodePath(op, to);
    Encode(op.facts, to->mutable_facts());
    to->set_purge(op.purge);
    to->set_released_to(op.released_to);
  }
  void operator()(const SetPath& op) const {
    pb::SetPath* const to = out->mutable_set_path();
    EncodePath(op, to);
    to->set_old_path(op.old_path);
    Encode(op.facts, to->mutable_facts());
  }
  void operator()(const EnsureGroup& op) const { out->mutable_ensure_group()->set_path(op.path); }
  void operator()(const RemoveGroup& op) const { out->mutable_remove_group()->set_path(op.path); }
  void operator()(const PutFile& op) const {
    pb::PutFile* const to = out->mutable_put_file();
    EncodePath(op, to);
    to->set_mode(op.mode);
    EncodeContent(op.content, to);
  }
  void operator()(const RemoveFile& op) const { EncodePath(op, out->mutable_remove_file()); }
  void operator()(const MakeDirectory& op) const { EncodePath(op, out->mutable_make_directory()); }
  void operator()(const RemoveDirectory& op) const {
    EncodePath(op, out->mutable_remove_directory());
  }
  void operator()(const EditPackedRefs& op) const {
    pb::EditPackedRefs* const to = out->mutable_edit_packed_refs();
    to->set_id(IdBytes(op.id));
    for (const PackedRef& ref : op.set) Encode(ref, to->add_set());
    for (const std::string& name : op.remove) to->add_remove(name);
  }
  void operator()(const AddPack& op) const {
    pb::AddPack* const to = out->mutable_add_pack();
    to->set_id(IdBytes(op.id));
    to->set_name(op.name);
    if (!op.pack.sha256.empty()) Encode(op.pack, to->mutable_pack());
    if (!op.index.sha256.empty()) Encode(op.index, to->mutable_index());
    if (!op.reverse_index.sha256.empty()) Encode(op.reverse_index, to->mutable_reverse_index());
    if (op.is_cruft()) Encode(op.cruft_times, to->mutable_cruft_times());
  }
  void operator()(const RemovePack& op) const {
    out->mutable_remove_pack()->set_id(IdBytes(op.id));
    out->mutable_remove_pack()->set_name(op.name);
  }
  void operator()(const ReplaceDerived& op) const {
    pb::ReplaceDerived* const to = out->mutable_replace_derived();
    EncodePath(op, to);
    to->set_remove(op.remove);
    EncodeContent(op.content, to);
  }
  void operator()(const LinkAlternate& op) const { EncodeLink(op, out->mutable_link_alternate()); }
  void operator()(const UnlinkAlternate& op) const {
    EncodeLink(op, out->mutable_unlink_alternate());
  }
  void operator()(const PutKey& op) const {
    pb::PutKey* const to = out->mutable_put_key();
    to->set_partition(op.partition);
    to->set_key(op.key);
    to->set_value(op.value);
  }
  void operator()(const DeleteKey& op) const {
    out->mutable_delete_key()->set_partition(op.partition);
    out->mutable_delete_key()->set_key(op.key);
  }

  template <typename Op, typename Message>
  static void EncodePath(const Op& op, Message* to) {
    to->set_id(IdBytes(op.id));
    to->set_path(op.path);
  }
  template <typename Op, typename Message>
  static void EncodeLink(const Op& op, Message* to) {
    to->set_member(IdBytes(op.member));
    to->set_pool(IdBytes(op.pool));
    for (const RepositoryId& id : op.alternates) to->add_alternates(IdBytes(id));
  }
};

void Encode(const LoggedRefValue& value, pb::RefValue* out) {
  out->set_kind(static_cast<uint32_t>(value.kind));
  out->set_bytes(value.bytes);
  out->set_peeled(value.peeled);
}

void Encode(const Note& note, pb::Note* out) {
  for (const RefChange& change : note.ref_changes) {
    pb::RefChange* const to = out->add_ref_changes();
    to->set_id(IdBytes(change.id));
    to->set_name(change.name);
    if (change.old_value != LoggedRefValue{}) Encode(change.old_value, to->mutable_old_value());
    if (change.new_value != LoggedRefValue{}) Encode(change.new_value, to->mutable_new_value());
  }
  for (const RefsPacked& packed : note.refs_packed) {
    pb::RefsPacked* const to = out->add_refs_packed();
    to->set_id(IdBytes(packed.id));
    for (const PackedRef& ref : packed.refs) Encode(ref, to->add_refs());
  }
  for (const ObjectsRemoved& removed : note.objects_removed) {
    pb::ObjectsRemoved* const to = out->add_objects_removed();
    to->set_id(IdBytes(removed.id));
    for (const std::string& oid : removed.oids) to->add_oids(oid);
  }
  out->set_actor(note.actor);
  out->set_origin(note.origin);
  for (const std::string& option : note.push_options) out->add_push_options(option);
  out->set_fences_request(note.fences_request);
}

// --- Decoding. Takes strings out of the parsed message instead of copying them. ---

template <typename Id>
bool Decode(const std::string& bytes, Id* id) {
  absl::StatusOr<Id> decoded = Id::FromBytes(absl::string_view(bytes.data(), bytes.size()));
  if (!decoded.ok()) return false;
  *id = *decoded;
  return true;
}

bool Decode(const pb::PayloadFile& from, PayloadFile* file) {
  if (from.sha256().size() != storage::kSha256Bytes || from.size() > INT64_MAX) return false;
  file->index = from.index();
  file->size = static_cast<int64_t>(from.size());
  file->sha256 = from.sha256();
  return true;
}

template <typename Message>
bool DecodeContent(Message* from, FileContent* content) {
  if (!from->has_content()) return true;
  pb::FileContent* const parsed = from->mutable_content();
  content->inline_bytes = std::move(*parsed->mutable_inline_bytes());
  if (!parsed->has_payload()) return true;
  return content->inline_bytes.empty() && Decode(parsed->payload(), &content->payload);
}

void Decode(pb::PackedRef* from, PackedRef* ref) {
  ref->name = std::move(*from->mutable_name());
  ref->oid = std::move(*from->mutable_oid());
  ref->peeled = std::move(*from->mutable_peeled());
}

template <typename Op, typename Message>
bool DecodePath(Message* from, Op* op) {
  op->path = std::move(*from->mutable_path());
  return Decode(from->id(), &op->id);
}
template <typename Message>
bool DecodeAlternates(const Message& from, std::vector<RepositoryId>* ids) {
  ids->resize(static_cast<size_t>(from.alternates_size()));
  for (int i = 0; i < from.alternates_size(); ++i) {
    if (!Decode(from.alternates(i), &(*ids)[static_cast<size_t>(i)])) return false;
  }
  return true;
}
template <typename Message>
bool DecodeFacts(const Message& from, RowFacts* facts) {
  if (!from.has_facts() || (from.facts().format() != 1 && from.facts().format() != 2)) return false;
  facts->partition = from.facts().partition();
  facts->format = static_cast<ObjectFormat>(from.facts().format());
  facts->removed_at_ns = from.facts().removed_at_ns();
  return DecodeAlternates(from.facts(), &facts->alternates);
}
template <typename Op, typename Message>
bool DecodeLink(const Message& from, Op* op) {
  return Decode(from.member(), &op->member) && Decode(from.pool(), &op->pool) &&
         DecodeAlternates(from, &op->alternates);
}

bool DecodeOp(pb::CreateRepository* from, CreateRepository* op) {
  if (from->format() != 1 && from->format() != 2) return false;
  op->partition = from->partition();
  op->format = static_cast<ObjectFormat>(from->format());
  op->head_target = std::move(*from->mutable_head_target());
  op->adopted_from = std::move(*from->mutable_adopted_from());
  for (std::string& path : *from->mutable_set_aside()) op->set_aside.push_back(std::move(path));
  return DecodePath(from, op);
}
bool DecodeOp(pb::RemoveRepository* from, RemoveRepository* op) {
  op->purge = from->purge();
  op->released_to = std::move(*from->mutable_released_to());
  return DecodePath(from, op) && DecodeFacts(*from, &op->facts);
}
bool DecodeOp(pb::SetPath* from, SetPath* op) {
  op->old_path = std::move(*from->mutable_old_path());
  return DecodePath(from, op) && DecodeFacts(*from, &op->facts);
}
bool DecodeOp(pb::EnsureGroup* from, EnsureGroup* op) {
  op->path = std::move(*from->mutable_path());
  return true;
}
bool DecodeOp(pb::RemoveGroup* from, RemoveGroup* op) {
  op->path = std::move(*from->mutable_path());
  return true;
}
bool DecodeOp(pb::PutFile* from, PutFile* op) {
  op->mode = from->mode();
  return DecodePath(from, op) && DecodeContent(from, &op->content);
}
bool DecodeOp(pb::RemoveFile* from, RemoveFile* op) { return DecodePath(from, op); }
bool DecodeOp(pb::MakeDirectory* from, MakeDirectory* op) { return DecodePath(from, op); }
bool DecodeOp(pb::RemoveDirectory* from, RemoveDirectory* op) { return DecodePath(from, op); }
bool DecodeOp(pb::EditPackedRefs* from, EditPackedRefs* op) {
  op->set.resize(static_cast<size_t>(from->set_size()));
  for (int i = 0; i < from->set_size(); ++i) {
    Decode(from->mutable_set(i), &op->set[static_cast<size_t>(i)]);
  }
  op->remove.reserve(static_cast<size_t>(from->remove_size()));
  for (std::string& name : *from->mutable_remove()) op->remove.push_back(std::move(name));
  return Decode(from->id(), &op->id);
}
bool DecodeOp(pb::AddPack* from, AddPack* op) {
  op->name = std::move(*from->mutable_name());
  return Decode(from->id(), &op->id) && (!from->has_pack() || Decode(from->pack(), &op->pack)) &&
         (!from->has_index() || Decode(from->index(), &op->index)) &&
         (!from->has_reverse_index() || Decode(from->reverse_index(), &op->reverse_index)) &&
         (!from->has_cruft_times() || Decode(from->cruft_times(), &op->cruft_times));
}
bool DecodeOp(pb::RemovePack* from, RemovePack* op) {
  op->name = std::move(*from->mutable_name());
  return Decode(from->id(), &op->id);
}
bool DecodeOp(pb::ReplaceDerived* from, ReplaceDerived* op) {
  op->remove = from->remove();
  return DecodePath(from, op) && DecodeContent(from, &op->content);
}
bool DecodeOp(pb::LinkAlternate* from, LinkAlternate* op) { return DecodeLink(*from, op); }
bool DecodeOp(pb::UnlinkAlternate* from, UnlinkAlternate* op) { return DecodeLink(*from, op); }
bool DecodeOp(pb::PutKey* from, PutKey* op) {
  op->partition = from->partition();
  op->key = std::move(*from->mutable_key());
  op->value = std::move(*from->mutable_value());
  return true;
}
bool DecodeOp(pb::DeleteKey* from, DeleteKey* op) {
  op->partition = from->partition();
  op->key = std::move(*from->mutable_key());
  return true;
}

template <typename Op, typename Message>
bool DecodeAs(Message* from, Operation* out) {
  return DecodeOp(from, &out->emplace<Op>());
}

absl::StatusOr<bool> Decode(pb::Operation* from, Operation* out) {
  switch (from->kind_case()) {
    case pb::Operation::kPutFile:
      return DecodeAs<PutFile>(from->mutable_put_file(), out);
    case pb::Operation::kRemoveFile:
      return DecodeAs<RemoveFile>(from->mutable_remove_file(), out);
    case pb::Operation::kEditPackedRefs:
      return DecodeAs<EditPackedRefs>(from->mutable_edit_packed_refs(), out);
    case pb::Operation::kAddPack:
      return DecodeAs<AddPack>(from->mutable_add_pack(), out);
    case pb::Operation::kPutKey:
      return DecodeAs<PutKey>(from->mutable_put_key(), out);
    case pb::Operation::kDeleteKey:
      return DecodeAs<DeleteKey>(from->mutable_delete_key(), out);
    case pb::Operation::kMakeDirectory:
      return DecodeAs<MakeDirectory>(from->mutable_make_directory(), out);
    case pb::Operation::kRemoveDirectory:
      return DecodeAs<RemoveDirectory>(from->mutable_remove_directory(), out);
    case pb::Operation::kRemovePack:
      return DecodeAs<RemovePack>(from->mutable_remove_pack(), out);
    case pb::Operation::kReplaceDerived:
      return DecodeAs<ReplaceDerived>(from->mutable_replace_derived(), out);
    case pb::Operation::kCreateRepository:
      return DecodeAs<CreateRepository>(from->mutable_create_repository(), out);
    case pb::Operation::kRemoveRepository:
      return DecodeAs<RemoveRepository>(from->mutable_remove_repository(), out);
    case pb::Operation::kSetPath:
      return DecodeAs<SetPath>(from->mutable_set_path(), out);
    case pb::Operation::kEnsureGroup:
      return DecodeAs<EnsureGroup>(from->mutable_ensure_group(), out);
    case pb::Operation::kRemoveGroup:
      return DecodeAs<RemoveGroup>(from->mutable_remove_group(), out);
    case pb::Operation::kLinkAlternate:
      return DecodeAs<LinkAlternate>(from->mutable_link_alternate(), out);
    case pb::Operation::kUnlinkAlternate:
      return DecodeAs<UnlinkAlternate>(from->mutable_unlink_alternate(), out);
    case pb::Operation::KIND_NOT_SET:
      break;
  }
  if (from->GetReflection()->GetUnknownFields(*from).empty()) return false;
  return absl::UnimplementedError("manifest holds an operation of a newer form");
}

bool Decode(pb::RefValue* from, LoggedRefValue* value) {
  if (from->kind() > static_cast<uint32_t>(LoggedRefValue::Kind::kSymbolic)) return false;
  value->kind = static_cast<LoggedRefValue::Kind>(from->kind());
  value->bytes = std::move(*from->mutable_bytes());
  value->peeled = std::move(*from->mutable_peeled());
  return true;
}

bool Decode(pb::RefChange* from, RefChange* change) {
  change->name = std::move(*from->mutable_name());
  return Decode(from->id(), &change->id) &&
         (!from->has_old_value() || Decode(from->mutable_old_value(), &change->old_value)) &&
         (!from->has_new_value() || Decode(from->mutable_new_value(), &change->new_value));
}

bool Decode(pb::Note* from, Note* note) {
  for (pb::RefChange& change : *from->mutable_ref_changes()) {
    if (!Decode(&change, &note->ref_changes.emplace_back())) return false;
  }
  for (pb::RefsPacked& packed : *from->mutable_refs_packed()) {
    RefsPacked& to = note->refs_packed.emplace_back();
    if (!Decode(packed.id(), &to.id)) return false;
    for (pb::PackedRef& ref : *packed.mutable_refs()) Decode(&ref, &to.refs.emplace_back());
  }
  for (pb::ObjectsRemoved& removed : *from->mutable_objects_removed()) {
    ObjectsRemoved& to = note->objects_removed.emplace_back();
    if (!Decode(removed.id(), &to.id)) return false;
    for (std::string& oid : *removed.mutable_oids()) to.oids.push_back(std::move(oid));
  }
  note->actor = std::move(*from->mutable_actor());
  note->origin = std::move(*from->mutable_origin());
  for (std::string& option : *from->mutable_push_options()) {
    note->push_options.push_back(std::move(option));
  }
  note->fences_request = from->fences_request();
  return true;
}

absl::Status DecodeParsed(pb::Manifest* from, Manifest* manifest) {
  if (from->operations_size() > kManifestOperationsMax) return Malformed();
  if (!Decode(from->transaction_id(), &manifest->transaction_id)) return Malformed();
  manifest->request_id = std::move(*from->mutable_request_id());
  manifest->created_at = absl::FromUnixNanos(from->created_at_ns());
  manifest->operations.reserve(static_cast<size_t>(from->operations_size()));
  for (pb::Operation& operation : *from->mutable_operations()) {
    REPOTXN_ASSIGN_OR_RETURN(const bool decoded,
                             Decode(&operation, &manifest->operations.emplace_back()));
    if (!decoded) return Malformed();
  }
  if (from->has_note() && !Decode(from->mutable_note(), &manifest->note)) return Malformed();
  return absl::OkStatus();
}

bool Same(const std::string& a, absl::string_view b) {
  return absl::string_view(a.data(), a.size()) == b;
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  Arena arena;
  pb::Manifest* const out = Arena::CreateMessage<pb::Manifest>(&arena);
  out->set_format_level(kManifestFormatLevel);
  out->set_transaction_id(IdBytes(manifest.transaction_id));
  out->set_request_id(manifest.request_id);
  out->set_created_at_ns(absl::ToUnixNanos(manifest.created_at));
  for (const Operation& operation : manifest.operations) {
    std::visit(OperationEncoder{out->add_operations()}, operation);
  }
  if (manifest.note != Note{}) Encode(manifest.note, out->mutable_note());
  return out->SerializeAsString();
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes) {
  if (bytes.empty() || static_cast<int64_t>(bytes.size()) > kManifestBytesMax) return Malformed();
  Arena arena;
  pb::Manifest* const parsed = Arena::CreateMessage<pb::Manifest>(&arena);
  if (!parsed->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Malformed();
  if (parsed->format_level() > kManifestFormatLevel) {
    return absl::UnimplementedError("manifest has a newer format level");
  }
  if (parsed->format_level() != kManifestFormatLevel) return Malformed();
  Manifest manifest;
  REPOTXN_RETURN_IF_ERROR(DecodeParsed(parsed, &manifest));
  // The only accepted encoding is ours: unknown fields, other orders and spelt-out defaults end
  // here.
  if (!Same(EncodeManifest(manifest), bytes)) return Malformed();
  return manifest;
}

std::string EncodeDropped(const std::vector<DroppedRef>& dropped) {
  if (dropped.empty()) return std::string();
  Arena arena;
  pb::DroppedList* const out = Arena::CreateMessage<pb::DroppedList>(&arena);
  out->set_format_level(kManifestFormatLevel);
  for (const DroppedRef& ref : dropped) {
    pb::DroppedRef* const to = out->add_refs();
    to->set_id(IdBytes(ref.id));
    to->set_name(ref.name);
  }
  return out->SerializeAsString();
}

absl::StatusOr<std::vector<DroppedRef>> DecodeDropped(absl::string_view bytes) {
  std::vector<DroppedRef> dropped;
  if (bytes.empty()) return dropped;
  if (static_cast<int64_t>(bytes.size()) > kDroppedBytesMax) return Malformed();
  Arena arena;
  pb::DroppedList* const parsed = Arena::CreateMessage<pb::DroppedList>(&arena);
  if (!parsed->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Malformed();
  if (parsed->format_level() > kManifestFormatLevel) {
    return absl::UnimplementedError("dropped list has a newer format level");
  }
  dropped.reserve(static_cast<size_t>(parsed->refs_size()));
  for (pb::DroppedRef& ref : *parsed->mutable_refs()) {
    DroppedRef& to = dropped.emplace_back();
    if (!Decode(ref.id(), &to.id)) return Malformed();
    to.name = std::move(*ref.mutable_name());
  }
  if (!Same(EncodeDropped(dropped), bytes)) return Malformed();
  return dropped;
}

}  // namespace repotxn::wal
