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

inline txn::StoreOptions SmallOptions() {
  txn::StoreOptions options = World::Options();
  options.segment_bytes = 64 << 10;
  options.loose_refs_max = 3;
  return options;
}

// Everything that a client can see of a store, as text.
inline std::string Visible(World& world) {
  std::string text;
  {
    const auto transaction = world.Begin();
    const auto keys = transaction->ScanKeys(txn::KeySpace::OfStore(), "", "", 1000);
    if (!keys.ok()) return keys.status().ToString();
    for (const auto& [key, value] : *keys) absl::StrAppend(&text, "key ", key, "=", value, "\n");
    std::vector<std::string> groups = {""};
    while (!groups.empty()) {
      const std::string group = groups.back();
      groups.pop_back();
      const auto entries = transaction->ListGroup(group);
      if (!entries.ok()) return entries.status().ToString();
      for (const txn::GroupEntry& entry : *entries) {
        if (entry.repository) continue;
        groups.push_back(group.empty() ? entry.name : absl::StrCat(group, "/", entry.name));
        absl::StrAppend(&text, "group ", groups.back(), "\n");
      }
    }
  }
  const auto listed = world.store().ListRepositories("", "", 1000);
  if (!listed.ok()) return listed.status().ToString();
  for (const txn::RepositoryInfo& info : *listed) {
    absl::StrAppend(&text, "repository ", info.path, " ", info.id.ToHex(), "\n");
    auto transaction = world.Begin();
    const auto head = transaction->ReadRef(info.id, refs::RefName::Head());
    absl::StrAppend(&text, "HEAD ", head.ok() ? head->ToString() : head.status().ToString(), "\n");
    const auto alternates = transaction->Alternates(info.id);
    const auto members = transaction->Members(info.id);
    const auto keys = transaction->ScanKeys(txn::KeySpace::OfRepository(info.id), "", "", 1000);
    if (!alternates.ok() || !members.ok() || !keys.ok()) return absl::StrCat(text, "rows cannot be read");
    for (const RepositoryId& id : *alternates) absl::StrAppend(&text, "borrows ", id.ToHex(), "\n");
    for (const RepositoryId& id : *members) absl::StrAppend(&text, "lends ", id.ToHex(), "\n");
    for (const auto& [key, value] : *keys) absl::StrAppend(&text, "key ", key, "=", value, "\n");
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

// What is wrong with what a crash left; empty when nothing.
inline std::string Fault(CrashSweep::Image& image, const std::string& before, const std::string& after,
                         const TransactionId& id) {
  World world(7);
  world.owned_fs() = std::move(image.fs);
  if (absl::Status opened = world.Open(SmallOptions()); !opened.ok()) {
    return absl::StrCat("does not open: ", opened.ToString());
  }
  for (const storage::StorePath& directory : {txn::layout::Staging(), txn::layout::Snapshots()}) {
    const auto left = world.fs().List(directory);
    if (!left.ok() || !left->empty()) return absl::StrCat("leftovers in ", directory.text());
  }
  const std::string seen = Visible(world);
  const bool is_after = seen == after;
  if (!is_after && seen != before) return absl::StrCat("half there:\n", seen);
  if (!is_after && image.is_acknowledged) return "acknowledged and lost";
  if (!id.IsZero() && before != after) {
    const txn::CommitResult outcome = world.store().OutcomeOf(id);
    if (outcome.committed() != is_after) return absl::StrCat("outcome ", txn::CommitOutcomeName(outcome.outcome));
    if (!is_after && outcome.outcome != txn::CommitOutcome::kNotCommitted) return "outcome is not known";
  }
  if (absl::Status status = world.store().Materialize(); !status.ok()) return status.ToString();
  const std::string disk = OnDisk(world);
  // Once more, with nothing synced since: the same again.
  world.CrashAndKeep({CrashSurvival::kRandom, 21, 0});
  if (absl::Status opened = world.Open(SmallOptions()); !opened.ok()) return opened.ToString();
  if (Visible(world) != seen) return "another state after a second crash";
  if (absl::Status status = world.store().Close(); !status.ok()) return status.ToString();
  if (OnDisk(world) != disk) return absl::StrCat("differs on disk:\n", disk, "\nand\n", OnDisk(world));
  const auto payload = world.fs().List(txn::layout::Payload());
  if (!payload.ok() || !payload->empty()) return "payload that belongs to nobody";
  return "";
}
// The first fault among all images, or "".
inline std::string FirstFault(CrashSweep& sweep, const std::string& before, const std::string& after,
                              const TransactionId& id = {}) {
  for (CrashSweep::Image& image : sweep.images()) {
    const std::string when = image.when;
    if (std::string fault = Fault(image, before, after, id); !fault.empty()) {
      return absl::StrCat("crash before ", when, ": ", fault);
    }
  }
  return "";
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_TXN_CRASH_SWEEP_H_
