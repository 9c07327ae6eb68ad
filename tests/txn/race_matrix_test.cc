// Every operation of a transaction raced with every other, in both orders.
//
// Two transactions begin at one snapshot; each performs its operation; they commit in one order, then, in a world of its
// own, in the other. The oracle is the same store, used serially: when both commit, what each was told and the whole
// final state must be those of running one after the other in commit order; when the second is aborted, the state must
// be that of the first alone, and running them serially must have told the second something else (or it stands in the
// list of conflicts by design, kByDesign).
//
// Operations that only read also write a key of their own, so that they have something to commit.
#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "locks/verdict.h"
#include "tests/txn/crash_sweep.h"

namespace repotxn::testing {
namespace {

using txn::KeySpace;
using txn::Transaction;

// The cast of every race.
struct Stage {
  explicit Stage(uint64_t seed) : world(seed) {
    EXPECT_THAT(world.Open(SmallOptions()), IsOk());
    m = world.Create("g/m");
    p = world.Create("g/p");
    b = world.Create("g/b");
    d = world.Create("g/d");
    const txn::CommitResult made = world.store().Run({}, [&](Transaction& txn) -> absl::Status {
      REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(m, {.name = Branch("main"), .value = World::At(1)}));
      REPOTXN_RETURN_IF_ERROR(txn.UpdateRef(m, {.name = Branch("old"), .value = World::At(1)}));
      REPOTXN_RETURN_IF_ERROR(txn.PutFile(m, "info/x", {"x", 0644}));
      REPOTXN_RETURN_IF_ERROR(txn.MakeDirectory(m, "empty"));
      REPOTXN_RETURN_IF_ERROR(txn.PutKey(KeySpace::OfRepository(m), "k", "1"));
      REPOTXN_RETURN_IF_ERROR(txn.LinkAlternate(b, p));
      REPOTXN_RETURN_IF_ERROR(txn.EnsureGroup("e"));
      return txn.DeleteRepository(d);
    });
    EXPECT_THAT(made.status, IsOk());
  }
  // The whole state with names in place of ids.
  std::string State() {
    std::string text = Visible(world);
    const auto listed = world.store().ListRepositories("", "", 1000);
    EXPECT_THAT(listed, IsOk());
    for (const txn::RepositoryInfo& info : *listed) {
      text = absl::StrReplaceAll(text, {{info.id.ToHex(), absl::StrCat("<", info.path, ">")}});
    }
    // Members come in the order of their ids.
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    const auto is_member = [](const std::string& line) { return absl::StartsWith(line, "lends "); };
    for (auto at = lines.begin(); at != lines.end();) {
      at = std::find_if(at, lines.end(), is_member);
      const auto end = std::find_if_not(at, lines.end(), is_member);
      std::sort(at, end);
      at = end;
    }
    return absl::StrJoin(lines, "\n");
  }
  World world;
  RepositoryId m, p, b, d;
};

// Performs an operation and tells what it was told, as text. An id is told as "id".
using Act = std::function<std::string(Stage&, Transaction&)>;
struct Operation {
  std::string name;
  Act act;
};
void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

std::string Text(const absl::Status& status) { return std::string(absl::StatusCodeToString(status.code())); }
template <typename T>
std::string Told(const absl::StatusOr<T>& value) {
  return Text(value.status());
}

// A reader's name is its key.
Operation Reader(const std::string& name, const Act& act) {
  return {name, [name, act](Stage& stage, Transaction& txn) {
            const std::string told = act(stage, txn);
            EXPECT_THAT(txn.PutKey(KeySpace::OfStore(), "saw/" + name, told), IsOk());
            return told;
          }};
}

std::vector<Operation> NameSpaceOperations() {
  const auto path = [](const char* text) { return Path(text); };
  return {
      {"CreateRepository", [=](Stage&, Transaction& t) { return Told(t.CreateRepository(path("n/r"), {})); }},
      {"CreateRepositoryInGroup", [=](Stage&, Transaction& t) { return Told(t.CreateRepository(path("e/r"), {})); }},
      {"CreateRepositoryBelow", [=](Stage&, Transaction& t) { return Told(t.CreateRepository(path("n/r/s"), {})); }},
      {"EnsureRepository", [=](Stage&, Transaction& t) { return Told(t.EnsureRepository(path("n/r"), {})); }},
      Reader("EnsureRepositoryThatIs", [=](Stage&, Transaction& t) { return Told(t.EnsureRepository(path("g/m"), {})); }),
      Reader("OpenRepository", [=](Stage&, Transaction& t) { return Told(t.OpenRepository(path("g/m"))); }),
      Reader("OpenRepositoryThatIsNot", [=](Stage&, Transaction& t) { return Told(t.OpenRepository(path("n/r"))); }),
      Reader("Describe", [](Stage& s, Transaction& t) {
        const auto info = t.Describe(s.m);
        return info.ok() ? info->path : Text(info.status());
      }),
      {"DeleteRepository", [](Stage& s, Transaction& t) { return Text(t.DeleteRepository(s.m)); }},
      {"DeletePool", [](Stage& s, Transaction& t) { return Text(t.DeleteRepository(s.p)); }},
      {"DeleteBorrower", [](Stage& s, Transaction& t) { return Text(t.DeleteRepository(s.b)); }},
      {"MoveRepository", [=](Stage& s, Transaction& t) { return Text(t.MoveRepository(s.m, path("n/r"))); }},
      {"UndeleteRepository", [=](Stage& s, Transaction& t) { return Text(t.UndeleteRepository(s.d, path("n/r"))); }},
      {"EnsureGroup", [](Stage&, Transaction& t) { return Text(t.EnsureGroup("n")); }},
      {"EnsureGroupAtPath", [](Stage&, Transaction& t) { return Text(t.EnsureGroup("n/r")); }},
      {"RemoveGroup", [](Stage&, Transaction& t) { return Text(t.RemoveGroup("e")); }},
      Reader("ListGroup", [](Stage&, Transaction& t) {
        const auto entries = t.ListGroup("e");
        return entries.ok() ? absl::StrCat(entries->size()) : Text(entries.status());
      }),
      {"LinkAlternate", [](Stage& s, Transaction& t) { return Text(t.LinkAlternate(s.m, s.p)); }},
      {"LinkAlternateBack", [](Stage& s, Transaction& t) { return Text(t.LinkAlternate(s.p, s.m)); }},
      Reader("Alternates", [](Stage& s, Transaction& t) {
        const auto ids = t.Alternates(s.m);
        return ids.ok() ? absl::StrCat(ids->size()) : Text(ids.status());
      }),
      Reader("Members", [](Stage& s, Transaction& t) {
        const auto ids = t.Members(s.p);
        return ids.ok() ? absl::StrCat(ids->size()) : Text(ids.status());
      }),
      {"ForkRepository", [=](Stage& s, Transaction& t) { return Told(t.ForkRepository(s.p, path("n/r"), {})); }},
  };
}

std::vector<Operation> RefOperations() {
  const auto update = [](const char* name, const refs::RefValue& value) {
    return [name, value](Stage& s, Transaction& t) {
      return Text(t.UpdateRef(s.m, {.name = Branch(name), .expected = {}, .value = value}));
    };
  };
  return {
      Reader("ReadRef", [](Stage& s, Transaction& t) {
        const auto value = t.ReadRef(s.m, Branch("main"));
        return value.ok() ? World::Name(*value) : Text(value.status());
      }),
      Reader("ListRefs", [](Stage& s, Transaction& t) {
        const auto refs = t.ListRefs(s.m, "refs/heads/");
        std::string told = Text(refs.status());
        if (refs.ok()) {
          for (const auto& [name, value] : *refs) absl::StrAppend(&told, " ", name.text(), "=", World::Name(value));
        }
        return told;
      }),
      {"UpdateRef", update("main", World::At(2))},
      {"UpdateRefExpecting", [](Stage& s, Transaction& t) {
         return Text(t.UpdateRef(s.m, {.name = Branch("main"), .expected = World::At(1), .value = World::At(3)}));
       }},
      {"CreateRef", update("topic", World::At(2))},
      {"CreateRefBelow", update("topic/x", World::At(2))},
      {"DeleteRef", update("old", refs::RefValue::Absent())},
      {"CreateRefBelowDeleted", [](Stage& s, Transaction& t) {
         // Gone in this transaction, so that a directory may take its place.
         std::string told = Text(t.UpdateRef(s.m, {.name = Branch("old"), .value = refs::RefValue::Absent()}));
         return told + Text(t.UpdateRef(s.m, {.name = Branch("old/x"), .expected = {}, .value = World::At(4)}));
       }},
      {"SetHead", [](Stage& s, Transaction& t) {
         return Text(t.UpdateRef(s.m, {.name = refs::RefName::Head(),
                                       .expected = {},
                                       .value = refs::RefValue::Symbolic(Branch("old"))}));
       }},
  };
}

std::vector<Operation> FileOperations() {
  return {
      Reader("ReadFile", [](Stage& s, Transaction& t) {
        const auto file = t.ReadFile(s.m, "info/x");
        return file.ok() ? file->content : Text(file.status());
      }),
      {"PutFile", [](Stage& s, Transaction& t) { return Text(t.PutFile(s.m, "info/x", {"y", 0644})); }},
      {"PutNewFile", [](Stage& s, Transaction& t) { return Text(t.PutFile(s.m, "info/new", {"y", 0644})); }},
      {"PutFileInDirectory", [](Stage& s, Transaction& t) { return Text(t.PutFile(s.m, "empty/f", {"y", 0644})); }},
      {"RemoveFile", [](Stage& s, Transaction& t) { return Text(t.RemoveFile(s.m, "info/x")); }},
      {"MakeDirectory", [](Stage& s, Transaction& t) { return Text(t.MakeDirectory(s.m, "empty/d")); }},
      {"RemoveDirectory", [](Stage& s, Transaction& t) { return Text(t.RemoveDirectory(s.m, "empty")); }},
      Reader("ListDirectory", [](Stage& s, Transaction& t) {
        const auto names = t.ListDirectory(s.m, "info");
        std::string told = Text(names.status());
        if (names.ok()) {
          for (const std::string& name : *names) absl::StrAppend(&told, " ", name);
        }
        return told;
      }),
      Reader("ReadWholeRepository", [](Stage& s, Transaction& t) {
        const absl::Status status = t.ReadWholeRepository(s.m);
        const auto refs = t.ListRefs(s.m, "");
        return refs.ok() ? absl::StrCat(Text(status), refs->size()) : Text(refs.status());
      }),
      Reader("ObjectExists", [](Stage& s, Transaction& t) {
        const auto exists = t.ObjectExists(s.m, MakeCommit(1).oid);
        return exists.ok() ? absl::StrCat(*exists) : Text(exists.status());
      }),
  };
}

std::vector<Operation> KeyOperations() {
  return {
      Reader("GetKey", [](Stage& s, Transaction& t) {
        const auto value = t.GetKey(KeySpace::OfRepository(s.m), "k");
        return !value.ok() ? Text(value.status()) : value->value_or("absent");
      }),
      {"PutKey", [](Stage& s, Transaction& t) { return Text(t.PutKey(KeySpace::OfRepository(s.m), "k", "2")); }},
      {"PutNewKey", [](Stage& s, Transaction& t) { return Text(t.PutKey(KeySpace::OfRepository(s.m), "n", "2")); }},
      {"DeleteKey", [](Stage& s, Transaction& t) { return Text(t.DeleteKey(KeySpace::OfRepository(s.m), "k")); }},
      Reader("ScanKeys", [](Stage& s, Transaction& t) {
        const auto rows = t.ScanKeys(KeySpace::OfRepository(s.m), "a", "z", 100);
        std::string told = Text(rows.status());
        if (rows.ok()) {
          for (const auto& [key, value] : *rows) absl::StrAppend(&told, " ", key, "=", value);
        }
        return told;
      }),
  };
}

std::vector<Operation> AllOperations() {
  std::vector<Operation> all;
  for (auto group : {NameSpaceOperations(), RefOperations(), FileOperations(), KeyOperations()}) {
    for (Operation& operation : group) all.push_back(std::move(operation));
  }
  return all;
}

// What two operations leave, run one after the other.
struct Serial {
  std::vector<std::string> told;
  std::vector<std::string> states;  // after the first, after both
};
Serial RunSerially(const Operation& first, const Operation& second) {
  Stage stage(3);
  Serial serial;
  for (const Operation* operation : {&first, &second}) {
    const auto txn = stage.world.Begin();
    serial.told.push_back(operation->act(stage, *txn));
    EXPECT_THAT(txn->Commit().status, IsOk()) << operation->name;
    serial.states.push_back(stage.State());
  }
  return serial;
}

class RaceMatrixTest : public ::testing::TestWithParam<Operation> {};

// Pairs of which the second is aborted though a serial run would have told it the same: the check is by version and by
// key, not by value. "*" is any operation.
struct ByDesign {
  const char* first;
  const char* second;
};
constexpr ByDesign kByDesign[] = {
    // A move, a deletion and a reader of everything meet whatever happens in the repository.
    {"MoveRepository", "*"},
    {"*", "MoveRepository"},
    {"*", "DeleteRepository"},
    {"*", "ReadWholeRepository"},
    // Two writes of one key.
    {"CreateRef", "CreateRef"},
    {"CreateRefBelow", "CreateRefBelow"},
    {"CreateRefBelowDeleted", "CreateRefBelowDeleted"},
    {"CreateRefBelowDeleted", "DeleteRef"},
    {"DeleteRef", "CreateRefBelowDeleted"},
    {"DeleteRef", "DeleteRef"},
    {"SetHead", "SetHead"},
    {"UpdateRef", "UpdateRef"},
    {"UpdateRefExpecting", "UpdateRef"},
    {"PutFile", "PutFile"},
    {"PutFile", "RemoveFile"},
    {"RemoveFile", "PutFile"},
    {"PutNewFile", "PutNewFile"},
    {"PutFileInDirectory", "PutFileInDirectory"},
    // A listing meets every write of what it lists, be it of the content alone.
    {"PutFile", "ListDirectory"},
    // Who passes a directory or a group meets its removal, though it would make it anew.
    {"RemoveDirectory", "MakeDirectory"},
    {"RemoveDirectory", "PutFileInDirectory"},
    {"RemoveGroup", "CreateRepositoryInGroup"},
    // The loser of an Ensure gets the winner's repository in its replay.
    {"*", "EnsureRepository"},
    {"DeleteRepository", "EnsureRepositoryThatIs"},
    // A group appeared where no repository was seen.
    {"CreateRepositoryBelow", "OpenRepositoryThatIsNot"},
    {"EnsureGroupAtPath", "OpenRepositoryThatIsNot"},
    // New tips rely on the chain of alternates as it was.
    {"LinkAlternate", "CreateRef"},
    {"LinkAlternate", "CreateRefBelow"},
    {"LinkAlternate", "CreateRefBelowDeleted"},
    {"LinkAlternate", "UpdateRef"},
    {"LinkAlternate", "UpdateRefExpecting"},
    {"LinkAlternateBack", "ForkRepository"},
    // And so does who was told that an object is there.
    {"LinkAlternate", "ObjectExists"},
};

bool IsByDesign(const std::string& first, const std::string& second) {
  for (const ByDesign& pair : kByDesign) {
    const auto is = [](const char* pattern, const std::string& name) {
      return std::string(pattern) == "*" || name == pattern;
    };
    if (is(pair.first, first) && is(pair.second, second)) return true;
  }
  return false;
}

// `first` commits before `second`, both begun at one snapshot.
void Race(const Operation& first, const Operation& second) {
  SCOPED_TRACE(absl::StrCat(first.name, " before ", second.name));
  const Serial serial = RunSerially(first, second);
  Stage stage(3);
  const auto one = stage.world.Begin();
  const auto two = stage.world.Begin();
  const std::string told_one = first.act(stage, *one);
  const std::string told_two = second.act(stage, *two);
  EXPECT_EQ(told_one, serial.told[0]);
  EXPECT_THAT(one->Commit().status, IsOk());
  const txn::CommitResult late = two->Commit();
  if (late.committed() && late.lsn == wal::Lsn()) {
    // It changed nothing, so it ran at its snapshot: before the first.
    EXPECT_EQ(told_two, RunSerially(second, first).told[0]);
    EXPECT_EQ(stage.State(), serial.states[0]);
  } else if (late.committed()) {
    EXPECT_EQ(told_two, serial.told[1]);
    EXPECT_EQ(stage.State(), serial.states[1]);
  } else {
    EXPECT_THAT(late.status, StatusIs(absl::StatusCode::kAborted));
    EXPECT_TRUE(locks::ConflictDetailOf(late.status).has_value());
    EXPECT_EQ(stage.State(), serial.states[0]);
    EXPECT_TRUE(told_two != serial.told[1] || IsByDesign(first.name, second.name)) << "a false conflict";
  }
}

TEST_P(RaceMatrixTest, EqualsSerialExecutionInBothOrders) {
  const Operation& mine = GetParam();
  bool is_past = false;  // each pair once
  for (const Operation& other : AllOperations()) {
    is_past = is_past || other.name == mine.name;
    if (!is_past) continue;
    Race(mine, other);
    if (other.name != mine.name) Race(other, mine);
  }
}
INSTANTIATE_TEST_SUITE_P(Race, RaceMatrixTest, ::testing::ValuesIn(AllOperations()),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace repotxn::testing
