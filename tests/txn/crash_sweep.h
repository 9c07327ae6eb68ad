// Crash clones at every mutating call of something that a store does, each checked by opening it again.
//
//   CrashSweep sweep(&world);
//   sweep.Record([&] { ... commit ...; sweep.NoteAcknowledged(); });
//   for (const CrashSweep::Image& image : sweep.images()) ...
//
// Clones that are alike are kept once. Single-threaded, apart from the hook.
#ifndef REPOTXN_TESTS_TXN_CRASH_SWEEP_H_
#define REPOTXN_TESTS_TXN_CRASH_SWEEP_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "storage/checksum.h"
#include "tests/txn/world.h"

namespace repotxn::testing {

// What a crash may leave: the least, the most, and some of what lies between.
inline std::vector<CrashOptions> CrashKinds() {
  return {{CrashSurvival::kNothing, 0, 0},
          {CrashSurvival::kEverything, 0, 0},
          {CrashSurvival::kRandom, 11, 0},
          {CrashSurvival::kRandom, 12, 0},
          {CrashSurvival::kRandom, 13, 0}};
}

class CrashSweep {
 public:
  struct Image {
    std::unique_ptr<MemoryFileSystem> fs;
    std::string when;
    bool is_acknowledged = false;
  };

  explicit CrashSweep(MemoryFileSystem* fs) : fs_(fs) {}

  // Runs `act`, cloning before each mutating call and once after the last.
  void Record(const std::function<void()>& act) {
    fs_->SetMutationHook([this](int64_t index, absl::string_view op, const storage::StorePath& path) {
      Clone(absl::StrCat(index, " ", op, " ", path.text()));
    });
    act();
    fs_->SetMutationHook({});
    Clone("after");
  }
  // From here on a crash must not lose what was done.
  void NoteAcknowledged() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_acknowledged_ = true;
  }
  std::vector<Image>& images() { return images_; }

 private:
  void Clone(const std::string& when) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const CrashOptions& kind : CrashKinds()) {
      auto clone = fs_->CrashClone(kind);
      if (!seen_.insert({is_acknowledged_, storage::Sha256(clone->DumpTree())}).second) continue;
      images_.push_back({std::move(clone),
                         absl::StrCat(when, ", survival ", static_cast<int>(kind.survival), " seed ", kind.seed),
                         is_acknowledged_});
    }
  }

  MemoryFileSystem* const fs_;
  std::mutex mutex_;
  bool is_acknowledged_ = false;
  std::set<std::pair<bool, std::string>> seen_;
  std::vector<Image> images_;
};

// Everything that a client can see of a store, as text.
inline std::string Visible(World& world) {
  std::string text;
  const auto listed = world.store().ListRepositories("", "", 1000);
  if (!listed.ok()) return listed.status().ToString();
  for (const txn::RepositoryInfo& info : *listed) {
    absl::StrAppend(&text, "repository ", info.path, " ", info.id.ToHex(), "\n");
    auto transaction = world.Begin();
    const auto head = transaction->ReadRef(info.id, refs::RefName::Head());
    absl::StrAppend(&text, "HEAD ", head.ok() ? head->ToString() : head.status().ToString(), "\n");
    const auto refs = transaction->ListRefs(info.id, "");
    if (!refs.ok()) return absl::StrCat(text, refs.status().ToString());
    for (const auto& [name, value] : *refs) absl::StrAppend(&text, name.text(), " ", value.ToString(), "\n");
    std::vector<std::string> pending = {""};
    while (!pending.empty()) {
      const std::string directory = pending.back();
      pending.pop_back();
      const auto names = transaction->ListDirectory(info.id, directory);
      if (!names.ok()) return absl::StrCat(text, names.status().ToString());
      for (const std::string& name : *names) {
        const std::string path = directory.empty() ? name : absl::StrCat(directory, "/", name);
        const auto file = transaction->ReadFile(info.id, path);
        if (file.ok()) {
          absl::StrAppend(&text, path, " ", file->mode, " ", absl::StrCat(file->content.size(), " ", absl::CEscape(file->content.substr(0, 40))), "\n");
        } else {
          absl::StrAppend(&text, path, "/ ", absl::StatusCodeToString(file.status().code()), "\n");
          pending.push_back(path);
        }
      }
    }
  }
  return text;
}

// The repositories on disk, byte for byte, without link counts (payload files share inodes for a while).
inline std::string OnDisk(World& world) {
  std::vector<std::string> lines = absl::StrSplit(world.fs().DumpTree(txn::layout::Repositories()), '\n');
  for (std::string& line : lines) {
    const size_t links = line.find(" links ");
    if (links != std::string::npos) line.erase(links, line.find(" xxh3 ") - links);
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_CRASH_SWEEP_H_
