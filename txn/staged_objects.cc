#include "txn/staged_objects.h"

#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "objects/pack_indexer.h"
#include "objects/quarantine.h"
#include "objects/repository_skeleton.h"
#include "storage/log.h"
#include "storage/status_macros.h"
#include "txn/layout.h"

namespace repotxn::txn {

StagedObjects::StagedObjects(const Context& context, const TransactionId& id,
                             std::shared_ptr<RepositoryState> live, ObjectFormat format)
    : context_(context), id_(id), live_(std::move(live)), format_(format) {
  if (context_.registry != nullptr) kept_ = context_.registry->EnterDirectory();
  links_from_ = context_.links_from;
  // After that: what is removed from here on stays on disk, and is met at commit.
  if (!context_.are_links_doubtful || !context_.are_links_doubtful()) links_checked_ = kept_;
}

absl::StatusOr<std::shared_ptr<StagedObjects>> StagedObjects::Create(
    const Context& context, const TransactionId& id, std::shared_ptr<RepositoryState> live,
    ObjectFormat format) {
  // A transaction may stage objects for several repositories.
  static std::atomic<uint64_t> count{0};
  const storage::StorePath directory =
      layout::Staging() / absl::StrCat("objects-", id.ToHex(), "-", count.fetch_add(1));
  std::shared_ptr<StagedObjects> staged(new StagedObjects(context, id, live, format));
  objects::ObjectSnapshotOptions options;
  options.format = format;
  options.shallow = context.shallow;
  if (live != nullptr) options.live_repository = live->directory();
  REPOTXN_RETURN_IF_ERROR(objects::MakeObjectSnapshot(*context.fs, directory, options));
  staged->directory_ = directory;
  auto absolute = context.fs->AbsolutePath(directory);
  if (absolute.ok()) {
    staged->absolute_path_ = *std::move(absolute);
  } else if (!absl::IsUnimplemented(absolute.status())) {
    return absolute.status();
  }
  return staged;
}

StagedObjects::~StagedObjects() {
  if (!directory_.IsRoot()) {
    IgnoreBecause(storage::RemoveTree(*context_.fs, directory_), "staging/ is wiped at open");
  }
  if (context_.registry != nullptr) context_.registry->LeaveDirectory(kept_);
}

absl::Status StagedObjects::IndexPack(const ByteSource& source, const IndexPackOptions& options) {
  objects::PackIndexer::Options indexer;
  indexer.input_bytes_max = options.pack_bytes_max;
  indexer.timeout = options.timeout;
  indexer.fsck = options.fsck_objects;
  indexer.lock_fd = context_.lock_descriptor;
  // A transaction is not idle while its child works, however long a client takes to send the pack.
  if (context_.registry != nullptr) context_.registry->EnterChild(id_);
  const auto leave = absl::MakeCleanup([this] {
    if (context_.registry != nullptr) context_.registry->LeaveChild(id_, context_.clock->Monotonic());
  });
  REPOTXN_ASSIGN_OR_RETURN(const objects::PackIndexer::Result result,
                           objects::PackIndexer(indexer).Index(absolute_path_, format_, source));
  if (!result.is_empty) pack_name_ = result.pack_name;
  return absl::OkStatus();
}

absl::Status StagedObjects::StageIndexedPack(absl::string_view name, absl::string_view pack,
                                             absl::string_view index,
                                             absl::string_view reverse_index) {
  const storage::StorePath packs = directory_ / "objects/pack";
  const std::pair<absl::string_view, absl::string_view> files[] = {
      {".pack", pack}, {".rev", reverse_index}, {".idx", index}};
  for (const auto& [suffix, content] : files) {
    REPOTXN_RETURN_IF_ERROR(
        storage::WriteFile(*context_.fs, packs / absl::StrCat(name, suffix), content, 0444));
  }
  pack_name_ = std::string(name.data(), name.size());
  return absl::OkStatus();
}

absl::Status StagedObjects::CompleteWithRefs() {
  if (live_ == nullptr) return absl::OkStatus();
  return context_.snapshots->LinkInto(live_.get(), directory_).status();
}

absl::Status StagedObjects::Seal() {
  if (!has_pack() || is_sealed_) return absl::OkStatus();
  payload_ = context_.payloads->Of(id_);
  const storage::StorePath packs = directory_ / "objects/pack";
  operation_.name = pack_name_;
  REPOTXN_ASSIGN_OR_RETURN(operation_.pack,
                           payload_->AddLinked(packs / absl::StrCat(pack_name_, ".pack")));
  REPOTXN_ASSIGN_OR_RETURN(operation_.reverse_index,
                           payload_->AddLinked(packs / absl::StrCat(pack_name_, ".rev")));
  if (is_cruft_) {
    REPOTXN_ASSIGN_OR_RETURN(operation_.cruft_times,
                             payload_->AddLinked(packs / absl::StrCat(pack_name_, ".mtimes")));
  }
  REPOTXN_ASSIGN_OR_RETURN(operation_.index,
                           payload_->AddLinked(packs / absl::StrCat(pack_name_, ".idx")));
  REPOTXN_RETURN_IF_ERROR(payload_->Seal());
  is_sealed_ = true;
  return absl::OkStatus();
}

std::shared_ptr<objects::ObjectLookup> StagedObjects::Lookup(
    std::shared_ptr<objects::ObjectLookup> live) {
  if (lookup_ != nullptr && lookup_live_ == live) return lookup_;
  objects::ObjectLookup::Options options;
  options.format = format_;
  lookup_live_ = live;
  lookup_ = objects::ObjectLookup::WithQuarantine(std::move(live), context_.fs,
                                                  directory_ / "objects", options);
  return lookup_;
}

wal::AddPack StagedObjects::AddPackTo(const RepositoryId& repository) const {
  REPOTXN_DCHECK(is_sealed_ && has_pack());
  wal::AddPack operation = operation_;
  operation.id = repository;
  return operation;
}

}  // namespace repotxn::txn
