#include "txn/adoption_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "objects/error_detail.h"
#include "objects/git_child.h"
#include "refs/ref_name.h"

namespace repotxn::txn {
namespace {

constexpr absl::string_view kPackDirectory = "objects/pack/";

bool IsTrue(absl::string_view value) {
  const std::string lower = absl::AsciiStrToLower(value);
  return lower == "true" || lower == "yes" || lower == "on" || lower == "1";
}

absl::string_view NameOf(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsLock(absl::string_view path) {
  return absl::EndsWith(path, ".lock") && !absl::StartsWith(path, "hooks/");
}

// Files of a pack share a stem; this is the part before the first dot of the name.
std::string StemOf(absl::string_view name) {
  const absl::string_view stem = name.substr(0, name.find('.'));
  return std::string(stem.data(), stem.size());
}

class Planner {
 public:
  Planner(const AdoptionListing& listing, absl::Time now, absl::Duration lock_age_min)
      : listing_(listing), now_(now), lock_age_min_(lock_age_min) {}

  AdoptionPlan Plan() {
    JudgeShape();
    JudgeConfig();
    JudgeHead();
    for (const AdoptionEntry& entry : listing_.entries) {
      if (!whole_.empty() && absl::StartsWith(entry.path, whole_)) continue;
      JudgeEntry(entry);
    }
    JudgePacks();
    std::sort(plan_.set_aside.begin(), plan_.set_aside.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(plan_);
  }

 private:
  void Refuse(absl::string_view path, absl::string_view reason) {
    plan_.refusals.push_back({std::string(path.data(), path.size()), std::string(reason.data(), reason.size())});
  }
  void SetAside(const AdoptionEntry& entry, absl::string_view reason) {
    plan_.set_aside.push_back({entry.path, std::string(reason.data(), reason.size())});
    if (entry.kind == storage::FileKind::kDirectory) whole_ = absl::StrCat(entry.path, "/");
  }

  void JudgeShape() {
    std::map<absl::string_view, storage::FileKind> kinds;
    for (const AdoptionEntry& entry : listing_.entries) kinds[entry.path] = entry.kind;
    const auto is = [&](absl::string_view path, storage::FileKind kind) {
      const auto it = kinds.find(path);
      return it != kinds.end() && it->second == kind;
    };
    if (is("HEAD", storage::FileKind::kRegular) && is("objects", storage::FileKind::kDirectory) &&
        is("refs", storage::FileKind::kDirectory)) {
      return;
    }
    Refuse("", "not a bare repository");
  }

  void JudgeConfig() {
    const auto settings = objects::ParseRepositoryConfig(listing_.config);
    if (!settings.ok()) {
      Refuse("config", absl::StrCat(settings.status().message(), ", line ",
                                    objects::ErrorDetail(settings.status(), "line")));
      return;
    }
    for (const objects::ConfigSetting& setting : *settings) JudgeSetting(setting);
  }
  void JudgeSetting(const objects::ConfigSetting& setting) {
    absl::string_view extension = setting.name;
    if (setting.name == "core.bare" && !IsTrue(setting.value)) Refuse("config", "repository is not bare");
    if (setting.name == "core.worktree") Refuse("config", "repository has a work tree");
    if (setting.name == "core.repositoryformatversion" && setting.value != "0" && setting.value != "1") {
      Refuse("config", "repository has an unknown format version");
    }
    if (!absl::ConsumePrefix(&extension, "extensions.") || extension == "noop") return;
    const auto format = ParseObjectFormat(setting.value);
    if (extension == "objectformat" && format.ok()) {
      plan_.format = *format;
    } else {
      Refuse("config", absl::StrCat("repository needs the extension ", extension));
    }
  }

  void JudgeHead() {
    absl::string_view target = absl::StripAsciiWhitespace(listing_.head);
    if (!absl::ConsumePrefix(&target, "ref:")) {
      if (!ObjectId::FromHex(target, plan_.format).ok()) Refuse("HEAD", "HEAD is malformed");
      return;
    }
    const auto name = refs::RefName::Parse(absl::StripAsciiWhitespace(target));
    if (name.ok() && !name->IsHead()) {
      plan_.head_target = name->text();
    } else {
      Refuse("HEAD", "HEAD names no ref");
    }
  }

  void JudgeEntry(const AdoptionEntry& entry) {
    const std::string& path = entry.path;
    if (entry.kind == storage::FileKind::kSymlink) return Refuse(path, "symbolic link");
    if (entry.kind == storage::FileKind::kOther) return Refuse(path, "special file");
    if (IsLock(path) || path == "gc.pid") {
      if (lock_age_min_ > absl::ZeroDuration() && now_ - entry.modified < lock_age_min_)
        return Refuse(path, "somebody may hold this lock");
      return SetAside(entry, "stale lock");
    }
    if (path == "logs") return SetAside(entry, "reflogs");
    if (path == "FETCH_HEAD" || path == "gc.log" || path == "packed-refs.new") {
      return SetAside(entry, "left by Git");
    }
    if (path == "info/grafts" && entry.size > 0) return Refuse(path, "grafts");
    if (path == "objects/info/http-alternates") return Refuse(path, "borrows over HTTP");
    if (path == "reftable") return Refuse(path, "refs are no files");
    if (absl::StartsWith(path, "worktrees/")) return Refuse(path, "linked work tree");
    if (absl::StartsWith(path, "objects/")) JudgeObjectFile(entry);
  }

  void JudgeObjectFile(const AdoptionEntry& entry) {
    const absl::string_view name = NameOf(entry.path);
    if (absl::StartsWith(name, "tmp_") || absl::StartsWith(name, ".tmp-") ||
        absl::StartsWith(name, "incoming-")) {
      return SetAside(entry, "temporary file");
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(entry.path, '/');
    if (parts.size() == 3 && parts[1].size() == 2 && entry.kind == storage::FileKind::kRegular) {
      return SetAside(entry, "not an object");
    }
    if (!absl::StartsWith(entry.path, kPackDirectory) || parts.size() != 3) return;
    if (absl::StartsWith(name, "multi-pack-index")) return;
    if (absl::EndsWith(name, ".promisor")) return Refuse(entry.path, "partial clone");
    if (absl::EndsWith(name, ".keep")) return SetAside(entry, "keep file");
    if (!absl::StartsWith(name, "pack-")) return SetAside(entry, "not a pack");
    packs_[StemOf(name)].push_back(&entry);
  }

  // A pack is pack and index; what stands alone is invisible to Git.
  void JudgePacks() {
    for (const auto& [stem, files] : packs_) {
      const auto has = [&files = files, name = absl::StrCat(kPackDirectory, stem)](absl::string_view suffix) {
        return std::any_of(files.begin(), files.end(), [&](const AdoptionEntry* file) {
          return file->path == absl::StrCat(name, suffix);
        });
      };
      if (has(".pack") && has(".idx")) continue;
      for (const AdoptionEntry* file : files) SetAside(*file, "incomplete pack");
    }
  }

  const AdoptionListing& listing_;
  const absl::Time now_;
  const absl::Duration lock_age_min_;
  AdoptionPlan plan_;
  std::string whole_;  // prefix of a directory that is set aside whole
  std::map<std::string, std::vector<const AdoptionEntry*>> packs_;
};

}  // namespace

bool IsLooseObjectName(absl::string_view name) {
  return (name.size() == 38 || name.size() == 62) && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

AdoptionPlan PlanAdoption(const AdoptionListing& listing, absl::Time now, absl::Duration lock_age_min) {
  return Planner(listing, now, lock_age_min).Plan();
}

}  // namespace repotxn::txn
