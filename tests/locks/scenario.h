// A small language for what a transaction did, so that a conflict scenario is one line.
//
// Statements are separated by ';'. "@P" in front names a repository other than M: M at g/m, P (a pool) at g/p, B (at
// g/b) which borrows from P. "r/" begins a ref name, in place of "refs/". What each verb stands for is in ScenarioTransaction::Add().
//
// Single-threaded.
#ifndef REPOTXN_TESTS_LOCKS_SCENARIO_H_
#define REPOTXN_TESTS_LOCKS_SCENARIO_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "locks/derivation.h"
#include "locks/footprint.h"

namespace repotxn::locks {

inline RepositoryId ScenarioId(char name) {
  std::array<uint8_t, RepositoryId::kBytes> bytes{};
  bytes[0] = static_cast<uint8_t>(name);
  return RepositoryId(bytes);
}

inline RepositoryFacts ScenarioFacts() {
  RepositoryFacts facts;
  facts.path_of = [](const RepositoryId& id) -> std::optional<std::string> {
    if (id == ScenarioId('M')) return "g/m";
    if (id == ScenarioId('P')) return "g/p";
    if (id == ScenarioId('B')) return "g/b";
    return std::nullopt;
  };
  facts.alternates_of = [](const RepositoryId& id) {
    return id == ScenarioId('B') ? std::vector<RepositoryId>{ScenarioId('P')}
                                 : std::vector<RepositoryId>{};
  };
  return facts;
}

class ScenarioTransaction {
 public:
  explicit ScenarioTransaction(const std::string& script) {
    for (absl::string_view text : absl::StrSplit(script, ';', absl::SkipWhitespace())) {
      std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
      char repository = 'M';
      if (words[0][0] == '@') {
        repository = words[0][1];
        words.erase(words.begin());
      }
      words.resize(3);
      Add(ScenarioId(repository), words[0], words[1], words[2]);
    }
  }

  std::vector<Lock> Locks() const {
    return DeriveLocks(operations_, note_, request_id_, reads_, ScenarioFacts());
  }

 private:
  using Kind = wal::LoggedRefValue::Kind;

  void ChangeRef(const RepositoryId& id, const std::string& name, Kind from, Kind to) {
    wal::RefChange change;
    change.id = id;
    change.name = name;
    change.old_value.kind = from;
    change.new_value.kind = to;
    note_.ref_changes.push_back(change);
    // The file that the derivation in refs/ adds; it must not matter here.
    operations_.push_back(wal::PutFile{id, name, 0644, {}});
  }

  // "r/" is short for "refs/".
  bool AddToRefs(const RepositoryId& id, const std::string& verb, std::string a) {
    if (a.compare(0, 2, "r/") == 0) a.insert(1, "efs");
    if (verb == "create-ref") ChangeRef(id, a, Kind::kAbsent, Kind::kObject);
    else if (verb == "update-ref") ChangeRef(id, a, Kind::kObject, Kind::kObject);
    else if (verb == "delete-ref") ChangeRef(id, a, Kind::kObject, Kind::kAbsent);
    else if (verb == "delete-absent-ref") ChangeRef(id, a, Kind::kAbsent, Kind::kAbsent);
    else if (verb == "set-head") ChangeRef(id, "HEAD", Kind::kSymbolic, Kind::kSymbolic);
    else if (verb == "read-ref") reads_.refs.push_back({id, a});
    else if (verb == "list-refs") reads_.ref_prefixes.push_back({id, a});
    else if (verb == "pack-ref") {
      operations_.push_back(wal::EditPackedRefs{id, {{a, "oid", ""}}, {}});
      operations_.push_back(wal::RemoveFile{id, a});
      note_.refs_packed.push_back({id, {{a, "oid", ""}}});
    } else return false;
    return true;
  }

  bool AddToFiles(const RepositoryId& id, const std::string& verb, const std::string& a) {
    if (verb == "put") operations_.push_back(wal::PutFile{id, a, 0644, {}});
    else if (verb == "remove") operations_.push_back(wal::RemoveFile{id, a});
    else if (verb == "mkdir") operations_.push_back(wal::MakeDirectory{id, a});
    else if (verb == "rmdir") operations_.push_back(wal::RemoveDirectory{id, a});
    else if (verb == "read") reads_.files.push_back({id, a});
    else if (verb == "list") reads_.directories.push_back({id, a});
    else if (verb == "read-all") reads_.whole_repositories.push_back(id);
    else if (verb == "add-pack") operations_.push_back(wal::AddPack{id, a, {}, {}, {}});
    else if (verb == "remove-pack") operations_.push_back(wal::RemovePack{id, a});
    else if (verb == "derived") operations_.push_back(wal::ReplaceDerived{id, a, false, {}});
    else if (verb == "remove-objects") note_.objects_removed.push_back({id, {"oid"}});
    else return false;
    return true;
  }

  bool AddToNameSpace(const RepositoryId& id, const std::string& verb, const std::string& a) {
    const RepositoryId other = ScenarioId(a.empty() ? '-' : a[0]);
    if (verb == "create") operations_.push_back(wal::CreateRepository{id, a, 7, {}, ""});
    else if (verb == "delete") operations_.push_back(wal::RemoveRepository{id});
    else if (verb == "move") operations_.push_back(wal::SetPath{id, a, "elsewhere"});
    else if (verb == "group") operations_.push_back(wal::EnsureGroup{a});
    else if (verb == "remove-group") operations_.push_back(wal::RemoveGroup{a});
    else if (verb == "look-up") reads_.repository_paths.push_back(a);
    else if (verb == "list-group") reads_.groups.push_back(a);
    else if (verb == "link") operations_.push_back(wal::LinkAlternate{id, other});
    else if (verb == "unlink") operations_.push_back(wal::UnlinkAlternate{id, other});
    else if (verb == "read-members") reads_.links_to_pools.push_back(id);
    else return false;
    return true;
  }

  bool AddToKeys(const std::string& verb, const std::string& a, const std::string& b) {
    if (verb == "put-key") operations_.push_back(wal::PutKey{7, a, "v"});
    else if (verb == "delete-key") operations_.push_back(wal::DeleteKey{7, a});
    else if (verb == "read-key") reads_.keys.push_back({7, a});
    else if (verb == "iterate") reads_.key_ranges.push_back({7, a, b});
    else if (verb == "request") request_id_ = a;
    else if (verb == "read-request") reads_.request_ids.push_back(a);
    else return false;
    return true;
  }

  void Add(const RepositoryId& id, const std::string& verb, const std::string& a,
           const std::string& b) {
    const bool is_known = AddToRefs(id, verb, a) || AddToFiles(id, verb, a) ||
                          AddToNameSpace(id, verb, a) || AddToKeys(verb, a, b);
    EXPECT_TRUE(is_known) << verb;
  }

  std::vector<wal::Operation> operations_;
  wal::Note note_;
  std::string request_id_;
  DeclaredReads reads_;
};

}  // namespace repotxn::locks

#endif  // REPOTXN_TESTS_LOCKS_SCENARIO_H_
