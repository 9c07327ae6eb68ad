#include "objects/derived_watch.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

bool IsSame(const storage::FileInfo& a, const storage::FileInfo& b) {
  return a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

// Damage is a verdict; what keeps from reading is not.
absl::StatusOr<bool> Judge(storage::FileSystem& fs, const StorePath& path, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const auto file, fs.OpenForRead(path));
  absl::Status status = VerifyTrailingChecksum(*file, path.text(), format).status();
  // Of this one Git looks at what it says before anything else, and its packs have to be there.
  if (status.ok() && path.Name() == "multi-pack-index") {
    const auto names = ReadPackNames(*file, path.text(), format);
    status = names.status();
    for (size_t i = 0; status.ok() && i < names->size(); ++i) {
      REPOTXN_ASSIGN_OR_RETURN(const bool is_there,
                               storage::Exists(fs, path.Parent() / absl::StrCat((*names)[i], ".idx")));
      if (!is_there) return false;
    }
  }
  if (absl::IsDataLoss(status) || absl::IsUnimplemented(status)) return false;
  REPOTXN_RETURN_IF_ERROR(status);
  return true;
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
  REPOTXN_ASSIGN_OR_RETURN(std::vector<std::string> files, ListDerivedFiles(*fs_, objects.Parent()));
  const auto packs = fs_->List(objects / "pack");
  if (!packs.ok() && !absl::IsNotFound(packs.status())) return packs.status();
  if (packs.ok()) {
    for (const storage::DirectoryEntry& entry : *packs) {
      if (absl::StartsWith(entry.name, "pack-") && absl::EndsWith(entry.name, ".bitmap")) {
        files.push_back(absl::StrCat("objects/pack/", entry.name));
      }
    }
  }
  for (const std::string& file : files) {
    if (file == kCommitGraphChain) continue;  // ends in no checksum; one that names nothing is ignored
    const auto is_sound = IsSound(objects.Parent() / file, format);
    if (absl::IsNotFound(is_sound.status())) continue;  // replaced meanwhile
    REPOTXN_RETURN_IF_ERROR(is_sound.status());
    if (!*is_sound) return false;
  }
  return true;
}

absl::StatusOr<bool> DerivedWatch::IsSound(const StorePath& path, ObjectFormat format) {
  REPOTXN_ASSIGN_OR_RETURN(const storage::FileInfo info, fs_->Stat(path));
  {
    const storage::MutexLock lock(&mutex_);
    const auto known = verdicts_.find(path);
    if (known != verdicts_.end() && IsSame(known->second.info, info)) return known->second.is_sound;
  }
  REPOTXN_ASSIGN_OR_RETURN(const bool is_sound, Judge(*fs_, path, format));
  if (!is_sound) storage::LogWarning(absl::StrCat("damaged, and not used until it is written anew: ", path.text()));
  const storage::MutexLock lock(&mutex_);
  if (verdicts_.size() >= kVerdictsMax) verdicts_.clear();
  verdicts_[path] = Verdict{info, is_sound};
  return is_sound;
}

}  // namespace repotxn::objects
