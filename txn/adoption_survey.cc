#include "txn/adoption_survey.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "objects/alternates.h"
#include "objects/error_detail.h"
#include "objects/git_stream.h"
#include "objects/object_lookup.h"
#include "objects/object_reader.h"
#include "objects/pack_index.h"
#include "refs/loose_refs.h"
#include "refs/packed_refs.h"
#include "storage/status_macros.h"
#include "txn/entry_effects.h"

namespace repotxn::txn {
namespace {

using storage::FileKind;
using storage::StorePath;

constexpr int64_t kSmallFileBytesMax = 1 << 20;
constexpr int kDepthMax = 64;  // of directories below a repository
constexpr int kErrorLinesMax = 5;
constexpr int kFsckDamagedPack = 4;  // bit of git fsck's exit code

absl::StatusOr<std::string> ReadIfThere(storage::FileSystem& fs, const StorePath& path) {
  auto text = storage::ReadFile(fs, path, kSmallFileBytesMax);
  // What is no file is judged by its kind.
  if (absl::IsNotFound(text.status()) || absl::IsFailedPrecondition(text.status()) ||
      absl::IsInvalidArgument(text.status())) {
    return std::string();
  }
  return text;
}

absl::Status ListBelow(storage::FileSystem& fs, const StorePath& root, const std::string& prefix, int depth,
                       std::vector<AdoptionEntry>* entries) {
  if (depth > kDepthMax) return absl::FailedPreconditionError("directories are nested too deep");
  REPOTXN_ASSIGN_OR_RETURN(const StorePath directory, prefix.empty() ? root : root.Child(prefix));
  REPOTXN_ASSIGN_OR_RETURN(const auto listed, fs.List(directory));
  const bool is_fan_out = absl::StartsWith(prefix, "objects/") && prefix.size() == 10;
  for (const storage::DirectoryEntry& item : listed) {
    if (is_fan_out && item.kind == FileKind::kRegular && IsLooseObjectName(item.name)) continue;
    AdoptionEntry entry;
    entry.path = prefix.empty() ? item.name : absl::StrCat(prefix, "/", item.name);
    REPOTXN_ASSIGN_OR_RETURN(const StorePath path, directory.Child(item.name));
    REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(path));
    entry.kind = info.kind;
    entry.size = info.size;
    entry.modified = info.modified;
    const bool is_directory = entry.kind == FileKind::kDirectory;
    entries->push_back(entry);
    if (is_directory) REPOTXN_RETURN_IF_ERROR(ListBelow(fs, root, entry.path, depth + 1, entries));
  }
  return absl::OkStatus();
}

// A survey on its way.
class Surveyor {
 public:
  Surveyor(storage::FileSystem* fs, StorePath source, const AdoptOptions& options, int lock_descriptor)
      : fs_(fs), options_(options), lock_descriptor_(lock_descriptor) {
    survey_.source = std::move(source);
    survey_.report.source = survey_.source.text();
  }

  absl::StatusOr<Survey> Run(absl::Time now) {
    REPOTXN_RETURN_IF_ERROR(JudgeFiles(now));
    if (!IsRefused()) REPOTXN_RETURN_IF_ERROR(ReadRefs());
    if (!IsRefused()) REPOTXN_RETURN_IF_ERROR(ReadAlternates());
    if (!IsRefused() && options_.verify_content) REPOTXN_RETURN_IF_ERROR(VerifyContent());
    if (!IsRefused()) REPOTXN_RETURN_IF_ERROR(WalkObjects());
    FindPacksWithoutRev();
    auto& set_aside = survey_.report.set_aside;
    std::sort(set_aside.begin(), set_aside.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(survey_);
  }

 private:
  bool IsRefused() const { return !survey_.report.refusals.empty(); }
  void Refuse(absl::string_view path, absl::string_view reason) {
    survey_.report.refusals.push_back(
        {std::string(path.data(), path.size()), std::string(reason.data(), reason.size())});
  }
  void SetAside(std::string path, absl::string_view reason) {
    auto& set_aside = survey_.report.set_aside;
    if (!IsSetAside(path)) set_aside.push_back({std::move(path), std::string(reason.data(), reason.size())});
  }

  absl::Status JudgeFiles(absl::Time now) {
    AdoptionListing listing;
    REPOTXN_RETURN_IF_ERROR(ListBelow(*fs_, survey_.source, "", 0, &listing.entries));
    std::sort(listing.entries.begin(), listing.entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    REPOTXN_ASSIGN_OR_RETURN(listing.head, ReadIfThere(*fs_, survey_.source / "HEAD"));
    REPOTXN_ASSIGN_OR_RETURN(listing.config, ReadIfThere(*fs_, survey_.source / "config"));
    AdoptionPlan plan = PlanAdoption(listing, now, options_.lock_age_min);
    survey_.report.format = plan.format;
    survey_.report.set_aside = std::move(plan.set_aside);
    survey_.report.refusals = std::move(plan.refusals);
    survey_.head_target = std::move(plan.head_target);
    for (AdoptionEntry& entry : listing.entries) files_.push_back(std::move(entry.path));
    return absl::OkStatus();
  }

  absl::Status ReadRefs() {
    const ObjectFormat format = survey_.report.format;
    auto content = storage::ReadFile(*fs_, survey_.source / refs::kPackedRefsPath, refs::kPackedRefsBytesMax);
    refs::PackedRefs packed(format);
    if (content.ok()) {
      auto parsed = refs::PackedRefs::Parse(*std::move(content), format);
      if (!parsed.ok()) {
        Refuse(refs::kPackedRefsPath, parsed.status().message());
        return absl::OkStatus();
      }
      packed = *std::move(parsed);
    } else if (!absl::IsNotFound(content.status())) {
      return content.status();
    }
    REPOTXN_ASSIGN_OR_RETURN(const refs::LooseRefListing loose,
                             refs::ListLooseRefs(*fs_, survey_.source, "refs/", format));
    for (const refs::RefFault& fault : loose.faults) {
      if (!absl::EndsWith(fault.name, ".lock")) Refuse(fault.name, fault.status.message());
    }
    absl::flat_hash_set<std::string> names;
    for (const refs::NamedRef& ref : loose.refs) {
      names.insert(ref.name.text());
      if (ref.value.is_object()) tips_.emplace_back(ref.name.text(), ref.value.oid());
    }
    for (size_t i = 0; i < packed.size(); ++i) {
      const refs::PackedRefs::Entry entry = packed.At(i);
      std::string name(entry.name.data(), entry.name.size());
      if (!names.insert(name).second) continue;
      tips_.emplace_back(std::move(name), entry.value().oid());
    }
    survey_.report.refs = static_cast<int64_t>(names.size());
    const auto head = refs::ReadLooseRef(*fs_, survey_.source, refs::RefName::Head(), format);
    if (head.ok() && head->is_object()) tips_.emplace_back("HEAD", head->oid());
    return absl::OkStatus();
  }

  absl::Status ReadAlternates() {
    const StorePath objects = survey_.source / "objects";
    REPOTXN_ASSIGN_OR_RETURN(const std::string text, ReadIfThere(*fs_, objects / "info/alternates"));
    if (text.empty()) return absl::OkStatus();
    const auto root = fs_->AbsolutePath(StorePath());
    const auto lines = objects::ParseAlternates(text, objects, root.ok() ? *root : "");
    const auto chain = objects::ResolveChain(*fs_, objects);
    const absl::Status& fault = lines.ok() ? chain.status() : lines.status();
    if (absl::IsInvalidArgument(fault) || absl::IsFailedPrecondition(fault)) {
      Refuse("objects/info/alternates", absl::StrCat(fault.message(), " ", objects::ErrorDetail(fault, "path")));
      return absl::OkStatus();
    }
    REPOTXN_RETURN_IF_ERROR(fault);
    for (const StorePath& line : *lines) {
      if (line.Name() != "objects") {
        Refuse("objects/info/alternates", "borrows from what is no repository");
        continue;
      }
      const StorePath lender = line.Parent();
      if (std::find(survey_.lenders.begin(), survey_.lenders.end(), lender) != survey_.lenders.end()) continue;
      survey_.lenders.push_back(lender);
      survey_.report.borrows_from.push_back(lender.text());
    }
    return absl::OkStatus();
  }

  // Link checks trust what an object's name says; so every object is hashed once.
  absl::Status VerifyContent() {
    const auto absolute = fs_->AbsolutePath(survey_.source);
    if (absl::IsUnimplemented(absolute.status())) return absl::OkStatus();
    REPOTXN_RETURN_IF_ERROR(absolute.status());
    objects::GitCommand command;
    command.repository = *absolute;
    command.arguments = {"fsck", "--full", "--no-dangling", "--no-progress", "--no-reflogs"};
    command.settings = {"core.multiPackIndex=false"};
    command.is_check = true;
    command.lock_fd = lock_descriptor_;
    REPOTXN_ASSIGN_OR_RETURN(const auto fsck, objects::GitStream::Start(command, nullptr, options_.timeout));
    // What is missing is the walk's to find; it may be much.
    std::string line;
    for (bool has_line = true; has_line;) {
      REPOTXN_ASSIGN_OR_RETURN(has_line, fsck->ReadLine(&line));
    }
    REPOTXN_ASSIGN_OR_RETURN(const objects::GitResult result, fsck->Finish());
    if (result.exit_code > 128) return absl::UnavailableError("git fsck was ended by a signal");
    bool is_damaged = result.exit_code == 128 || (result.exit_code & kFsckDamagedPack) != 0;
    for (const absl::string_view error : absl::StrSplit(result.errors, '\n')) {
      // "error in commit …" is about style, in which old histories are free.
      is_damaged = is_damaged || (absl::StartsWith(error, "error: ") && !absl::StrContains(error, "Could not read"));
    }
    if (is_damaged) {
      Refuse("", absl::StrCat("git fsck: ", objects::SanitisedErrors(result.errors, kErrorLinesMax, *absolute)));
    }
    return absl::OkStatus();
  }

  absl::Status WalkObjects() {
    objects::ClosureWalkOptions walk;
    walk.format = survey_.report.format;
    walk.timeout = options_.timeout;
    walk.lock_fd = lock_descriptor_;
    auto closure = objects::WalkClosure(*fs_, survey_.source, walk);
    if (absl::IsDataLoss(closure.status())) {
      Refuse("", absl::StrCat(closure.status().message(), " ", objects::ErrorDetail(closure.status(), "oid")));
      return absl::OkStatus();
    }
    REPOTXN_RETURN_IF_ERROR(closure.status());
    survey_.report.objects = closure->objects;
    survey_.report.missing_links = std::move(closure->missing_links);
    survey_.report.open_objects = std::move(closure->open_objects);
    REPOTXN_RETURN_IF_ERROR(JudgeTips());
    return IsRefused() || survey_.report.open_objects.empty() ? absl::OkStatus() : SetAsideOpenObjects();
  }

  absl::Status JudgeTips() {
    objects::ObjectLookup::Options lookup;
    lookup.format = survey_.report.format;
    REPOTXN_ASSIGN_OR_RETURN(const auto objects,
                             objects::ObjectLookup::Open(fs_, survey_.source / "objects", lookup));
    const std::vector<ObjectId>& open = survey_.report.open_objects;
    for (const auto& [name, oid] : tips_) {
      REPOTXN_ASSIGN_OR_RETURN(const bool exists, objects->Exists(oid));
      if (!exists) Refuse(name, "names an object that is missing");
      if (std::binary_search(open.begin(), open.end(), oid)) {
        Refuse(name, "leads to an object that is missing");
      }
    }
    return absl::OkStatus();
  }

  absl::Status SetAsideOpenObjects() {
    for (const ObjectId& oid : survey_.report.open_objects) {
      const std::string loose = absl::StrCat("objects/", objects::LooseObjectName(oid));
      REPOTXN_ASSIGN_OR_RETURN(const bool is_loose, storage::Exists(*fs_, survey_.source / loose));
      if (is_loose) SetAside(loose, "leads to a missing object");
    }
    REPOTXN_ASSIGN_OR_RETURN(survey_.split_packs, PacksWithOpenObjects());
    for (const std::string& file : files_) {
      for (const std::string& stem : survey_.split_packs) {
        if (absl::StartsWith(file, absl::StrCat("objects/pack/", stem, "."))) {
          SetAside(file, "holds objects that lead to a missing one; the others are packed anew");
        }
      }
      // Both may answer for what is set aside.
      if (absl::StartsWith(file, "objects/pack/multi-pack-index") || file == "objects/info/commit-graph" ||
          file == "objects/info/commit-graphs") {
        SetAside(file, "may name objects that are set aside");
      }
    }
    return absl::OkStatus();
  }

  bool IsSetAside(const std::string& file) const {
    const auto& set_aside = survey_.report.set_aside;
    return std::any_of(set_aside.begin(), set_aside.end(),
                       [&](const AdoptionFinding& finding) { return finding.path == file; });
  }

  void FindPacksWithoutRev() {
    for (const std::string& file : files_) {
      absl::string_view stem = file;
      if (!absl::ConsumePrefix(&stem, "objects/pack/pack-") || !absl::ConsumeSuffix(&stem, ".pack")) continue;
      if (IsSetAside(file)) continue;
      const std::string name = absl::StrCat("pack-", stem);
      if (!std::binary_search(files_.begin(), files_.end(), absl::StrCat("objects/pack/", name, ".rev"))) {
        survey_.packs_without_rev.push_back(name);
      }
    }
  }

  absl::StatusOr<std::vector<std::string>> PacksWithOpenObjects() {
    std::vector<std::string> stems;
    for (const std::string& file : files_) {
      absl::string_view stem = file;
      if (!absl::ConsumePrefix(&stem, "objects/pack/") || !absl::ConsumeSuffix(&stem, ".idx")) continue;
      if (IsSetAside(file)) continue;
      REPOTXN_ASSIGN_OR_RETURN(
          const auto index, objects::PackIndex::Open(*fs_, survey_.source / file, survey_.report.format));
      for (const ObjectId& oid : survey_.report.open_objects) {
        REPOTXN_ASSIGN_OR_RETURN(const auto offset, index->Find(oid));
        if (!offset) continue;
        stems.emplace_back(stem.data(), stem.size());
        break;
      }
    }
    return stems;
  }

  storage::FileSystem* const fs_;
  const AdoptOptions options_;
  const int lock_descriptor_;
  Survey survey_;
  std::vector<std::string> files_;
  std::vector<std::pair<std::string, ObjectId>> tips_;
};

}  // namespace

absl::StatusOr<Survey> SurveyRepository(storage::FileSystem& fs, const StorePath& source, absl::Time now,
                                        const AdoptOptions& options, int lock_descriptor) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs.Stat(source));
  if (info.kind != FileKind::kDirectory) return absl::FailedPreconditionError("source is no directory");
  return Surveyor(&fs, source, options, lock_descriptor).Run(now);
}

absl::StatusOr<std::vector<StorePath>> FindRepositories(storage::FileSystem& fs, const StorePath& root) {
  std::vector<StorePath> found;
  std::vector<StorePath> waiting = {root};
  while (!waiting.empty()) {
    const StorePath directory = waiting.back();
    waiting.pop_back();
    REPOTXN_ASSIGN_OR_RETURN(const auto entries, fs.List(directory));
    const auto has = [&](absl::string_view name) {
      return std::any_of(entries.begin(), entries.end(),
                         [&](const storage::DirectoryEntry& entry) { return entry.name == name; });
    };
    if (has("HEAD") && has("objects") && has("refs")) {
      found.push_back(directory);
      continue;
    }
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (entry->kind != FileKind::kDirectory) continue;
      REPOTXN_ASSIGN_OR_RETURN(StorePath child, directory.Child(entry->name));
      if (!child.IsWithin(StorePath::Literal("repositories/@id"))) waiting.push_back(std::move(child));
    }
  }
  return found;
}

}  // namespace repotxn::txn
