#include "objects/derived_watch.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "objects/alternates.h"
#include "objects/derived_files.h"
#include "objects/derived_path.h"
#include "objects/multi_pack_index.h"
#include "objects/trailing_checksum.h"
#include "storage/log.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

using storage::StorePath;

// Some megabytes; more repositories than that are read again.
constexpr size_t kVerdictsMax = 64 << 10;
constexpr int64_t kChainBytesMax = 1 << 20;

bool IsSame(const storage::FileInfo& a, const storage::FileInfo& b) {
  return a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

}  // namespace

std::vector<std::string> DerivedWatch::SettingsFor(const StorePath& objects, ObjectFormat format) {
  std::vector<StorePath> directories = {objects};
  const auto chain = ResolveChain(*fs_, objects);
  bool are_sound = chain.ok();
  if (chain.ok()) directories.insert(directories.end(), chain->begin(), chain->end());
  for (size_t i = 0; are_sound && i < directories.size(); ++i) {
    const auto sound = AreSound(directories[i], format);
    are_sound = sound.ok() && *sound;
  }
  if (are_sound) return {};
  return {"core.commitGraph=false", "core.multiPackIndex=false", "pack.useBitmaps=false"};
}

absl::StatusOr<bool> DerivedWatch::AreSound(const StorePath& objects, ObjectFormat format) {
  const StorePath repository = objects.Parent();
  REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> files, ListDerivedFiles(*fs_, repository));
  std::set<std::string> packs;
  const auto entries = fs_->List(objects / "pack");
  if (!entries.ok() && !absl::IsNotFound(entries.status())) return entries.status();
  for (size_t i = 0; entries.ok() && i < entries->size(); ++i) {
    absl::string_view name = (*entries)[i].name;
    if (absl::StartsWith(name, "pack-") && absl::EndsWith(name, ".bitmap")) {
      files.push_back(absl::StrCat("objects/pack/", name));
    }
    if (absl::ConsumeSuffix(&name, ".idx")) packs.emplace(name.data(), name.size());
  }
  for (const std::string& file : files) {
    if (file == kCommitGraphChain) {
      REPOTXN_ASSIGN_OR_RETURN(const bool is_sound, IsChainSound(repository));
      if (!is_sound) return false;
      continue;
    }
    const auto verdict = VerdictOn(repository / file, format);
    if (absl::IsNotFound(verdict.status())) continue;  // replaced meanwhile
    REPOTXN_RETURN_IF_ERROR(verdict.status());
    if (!verdict->is_sound) return false;
    for (const std::string& pack : verdict->packs) {
      if (packs.contains(pack)) continue;
      // Added with its index since the listing, or gone.
      REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, objects / absl::StrCat("pack/", pack, ".idx")));
      if (!is_there) return false;
    }
  }
  return true;
}

absl::StatusOr<bool> DerivedWatch::IsChainSound(const StorePath& repository) {
  const auto chain = storage::ReadFile(*fs_, repository / kCommitGraphChain, kChainBytesMax);
  if (absl::IsNotFound(chain.status())) return true;
  if (absl::IsOutOfRange(chain.status())) return false;
  REPOTXN_RETURN_IF_ERROR(chain.status());
  const auto hashes = ParseCommitGraphChain(*chain);
  if (!hashes) return false;
  for (const std::string& hash : *hashes) {
    REPOTXN_ASSIGN_OR_RETURN(const bool is_there, storage::Exists(*fs_, repository / LayerPath(hash)));
    if (!is_there) return false;
  }
  return true;
}

absl::StatusOr<DerivedWatch::Verdict> DerivedWatch::VerdictOn(const StorePath& path, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs_->Stat(path));
  {
    const storage::MutexLock lock(&mutex_);
    const auto known = verdicts_.find(path);
    if (known != verdicts_.end() && IsSame(known->second.info, info)) return known->second;
  }
  REPOTXN_ASSIGN_OR_RETURN(Verdict verdict, Judge(path, format));
  verdict.info = info;
  if (!verdict.is_sound) {
    storage::LogWarning(absl::StrCat("damaged, and not used until it is written anew: ", path.text()));
  }
  const storage::MutexLock lock(&mutex_);
  if (verdicts_.size() >= kVerdictsMax) verdicts_.clear();
  verdicts_[path] = verdict;
  return verdict;
}

// Damage is a verdict; what keeps from reading is not.
absl::StatusOr<DerivedWatch::Verdict> DerivedWatch::Judge(const StorePath& path, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs_->OpenForRead(path));
  Verdict verdict;
  absl::Status status = VerifyTrailingChecksum(*file, path.text(), format).status();
  // Git ends at once over what it says in its first bytes.
  if (status.ok() && path.Name() == "multi-pack-index") {
    auto names = ReadPackNames(*file, path.text(), format);
    status = names.status();
    if (names.ok()) verdict.packs = *std::move(names);
  }
  if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) return verdict;
  REPOTXN_RETURN_IF_ERROR(status);
  verdict.is_sound = true;
  return verdict;
}

}  // namespace repotxn::objects
