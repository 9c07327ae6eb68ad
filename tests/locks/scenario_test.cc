#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "locks/conflict_history.h"
#include "tests/locks/scenario.h"

namespace repotxn::locks {
namespace {

using Rule = ConflictRule;

struct Scenario {
  const char* id;         // of the scenario or hard case
  const char* committed;  // transactions after my snapshot, separated by '|'
  const char* mine;
  ConflictRule outcome;   // kNone: commits

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.id << ": after [" << scenario.committed << "] I [" << scenario.mine << "]";
  }
};

// Each row: what others committed after my snapshot, what I did, whether I commit. Method: derive both sides from
// operations and reads, record theirs, check mine. A row fails when a conflict is missed, invented or misnamed.
class ConflictScenarioTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(ConflictScenarioTest, EndsAsTheTableSays) {
  const Scenario& scenario = GetParam();
  const wal::Lsn snapshot_lsn(5);
  ConflictHistory history(snapshot_lsn);
  wal::Lsn lsn = snapshot_lsn;
  const std::vector<std::string> committed =
      absl::StrSplit(scenario.committed, '|', absl::SkipWhitespace());
  for (const std::string& script : committed) {
    lsn = lsn.Next();
    history.Record(Footprint(ScenarioTransaction(script).Locks()), lsn, TransactionId());
  }

  const Footprint mine(ScenarioTransaction(scenario.mine).Locks());
  const CheckResult result = history.Check(mine, snapshot_lsn);

  EXPECT_EQ(std::string(ConflictRuleText(result.rule)),
            std::string(ConflictRuleText(scenario.outcome)))
      << scenario;
  EXPECT_EQ(result.ok(), scenario.outcome == Rule::kNone) << scenario;
  // At a snapshot that has seen everything nothing meets.
  EXPECT_TRUE(history.Check(mine, lsn).ok()) << scenario;
}

constexpr Scenario kRefScenarios[] = {
    {"REF-05, RDB-05, C035", "create-ref r/p", "create-ref r/p/c", Rule::kRefAbove},
    {"C035, RDB-06 the other way", "create-ref r/p/c", "create-ref r/p", Rule::kRefBelow},
    {"C035 several levels", "create-ref r/p/c/d/e", "create-ref r/p", Rule::kRefBelow},
    {"REF-06", "create-ref r/p/c", "delete-absent-ref r/p", Rule::kNone},
    {"REF-07, RDB-07", "update-ref r/x", "delete-ref r/p; create-ref r/p/c", Rule::kNone},
    {"REF-07 against an update of it", "update-ref r/p", "delete-ref r/p; create-ref r/p/c",
     Rule::kRefWritten},
    {"REF-11 same value too", "create-ref r/main", "create-ref r/main", Rule::kRefWritten},
    {"REF-13, RDB-09, RDB-11", "update-ref r/main", "update-ref r/main; update-ref r/other", Rule::kRefWritten},
    {"REF-14, RDB-12", "delete-ref r/main", "update-ref r/main", Rule::kRefWritten},
    {"REF-18", "delete-ref r/a/x", "delete-ref r/b/y", Rule::kNone},
    {"REF-18 last refs of one directory", "delete-ref r/a/x", "delete-ref r/a/y", Rule::kNone},
    {"REF-19, two packed refs", "delete-ref r/a", "delete-ref r/b", Rule::kNone},
    {"REF-20, new directory twice", "create-ref r/new/a", "create-ref r/new/b", Rule::kNone},
    {"REF-21", "pack-ref r/a | create-ref r/b", "create-ref r/c", Rule::kNone},
    {"REF-25", "delete-ref r/main", "delete-ref r/main", Rule::kRefWritten},
    {"C036 directory emptied", "delete-ref r/p/c", "create-ref r/p", Rule::kNone},
    {"B13 create and delete below cancel", "create-ref r/p/c | delete-ref r/p/c", "create-ref r/p",
     Rule::kNone},
    {"B13 but not when made again",
     "create-ref r/p/c | delete-ref r/p/c | create-ref r/p/c", "create-ref r/p", Rule::kRefBelow},
    {"B13 one of two stays", "create-ref r/p/c; create-ref r/p/d | delete-ref r/p/c",
     "create-ref r/p", Rule::kRefBelow},
    {"B13 created and deleted above", "create-ref r/p | delete-ref r/p", "create-ref r/p/c",
     Rule::kNone},
    {"B13 head moved under a push", "set-head r/dev", "read-ref HEAD; update-ref r/main",
     Rule::kRefWritten},
    {"RDB-02, RDB-04 two heads", "set-head r/m", "set-head r/n", Rule::kRefWritten},
    {"RDB-03 head set again and again", "set-head r/m | set-head r/n", "set-head r/o", Rule::kRefWritten},
    {"RDB-02 branch of head updated", "update-ref r/main", "set-head r/n", Rule::kNone},
    {"C023, RDB-10 ABA", "update-ref r/main | update-ref r/main", "update-ref r/main", Rule::kRefWritten},
    {"RDB-13 delete and create again", "delete-ref r/x | create-ref r/x", "update-ref r/x",
     Rule::kRefWritten},
    {"C150 write skew", "update-ref r/a; read-ref r/b", "update-ref r/b; read-ref r/a",
     Rule::kRefWritten},
    {"B4 a committed reader", "read-ref r/a; update-ref r/b", "update-ref r/a", Rule::kNone},
    {"C022, C029 packing against update", "pack-ref r/a", "update-ref r/a", Rule::kNone},
    {"C022, C029 packing against delete", "pack-ref r/a", "delete-ref r/a", Rule::kNone},
    {"B5 update before packing", "update-ref r/a", "pack-ref r/a", Rule::kNone},
    {"B5 delete before packing", "delete-ref r/a", "pack-ref r/a", Rule::kNone},
    {"phantom", "create-ref r/tags/v1", "list-refs r/tags/; put config", Rule::kRefPrefixWritten},
    {"odd prefix met", "create-ref r/tags/v12", "list-refs r/tags/v1", Rule::kRefPrefixWritten},
    {"odd prefix not met", "create-ref r/tags/v2", "list-refs r/tags/v1", Rule::kNone},
    {"prefix is not a component", "create-ref r/tagsx", "list-refs r/tags/", Rule::kNone},
    {"all refs", "set-head r/n", "list-refs", Rule::kRefPrefixWritten},
    {"RHM-03 other repository", "@P create-ref r/a", "create-ref r/a; list-refs", Rule::kNone},
};
INSTANTIATE_TEST_SUITE_P(Refs, ConflictScenarioTest, ::testing::ValuesIn(kRefScenarios));

constexpr Scenario kFileScenarios[] = {
    {"FSH-08, C098 write, write", "put config", "put config", Rule::kEntryWritten},
    {"FSH-08 write, remove", "put f", "remove f", Rule::kEntryWritten},
    {"FSH-05, FSH-09 remove, write", "remove f", "put f", Rule::kEntryWritten},
    {"FSH-27 other file", "put info/a", "put info/b", Rule::kNone},
    {"FSH-08, FSR-04 read of a written file", "put f", "read f; put g", Rule::kEntryWritten},
    {"FSH-08, FSR-04 read of an absent file that came", "put info/x", "read info/x", Rule::kEntryWritten},
    {"FSH-04, FSH-07 two make one directory", "mkdir d; put d/a", "mkdir d; put d/b", Rule::kNone},
    {"FSH-04 directory made, file inside", "mkdir d", "put d/a", Rule::kNone},
    {"FSH-07 directory made, file in its place", "mkdir d", "put d", Rule::kEntryWritten},
    {"file in place of my directory", "put d", "mkdir d", Rule::kEntryWritten},
    {"FSH-10 file in place of my parent", "put a", "put a/b/c", Rule::kAncestorRemoved},
    {"FSH-10 parent removed", "rmdir d", "put d/x", Rule::kAncestorRemoved},
    {"FSH-06, FSH-09 parent removed, I make it", "rmdir d", "mkdir d", Rule::kEntryWritten},
    {"FSH-10 filled under my removal", "put d/x", "rmdir d", Rule::kChildrenWritten},
    {"listing", "put d/x", "list d", Rule::kChildrenWritten},
    {"listing of a directory made", "mkdir d", "list d", Rule::kEntryWritten},
    {"FSH-27 listing, two levels below", "put d/e/x", "list d", Rule::kNone},
    {"FSH-27 listing elsewhere", "put dx", "list d", Rule::kNone},
    {"whole repository, file", "put a/b/c", "read-all", Rule::kSubtreeWritten},
    {"whole repository, ref", "update-ref r/a", "read-all", Rule::kSubtreeWritten},
    {"whole repository, pack", "add-pack p", "read-all", Rule::kSubtreeWritten},
    {"whole repository, packing", "pack-ref r/a", "read-all", Rule::kNone},
    {"whole repository, other one", "@P put f; @P update-ref r/a", "read-all", Rule::kNone},
    {"B6 files of refs have no keys", "update-ref refs/heads/a", "put refs/heads/a; read packed-refs",
     Rule::kNone},
    {"B6 last ref of a directory", "rmdir refs/heads/a; delete-ref refs/heads/a/b",
     "create-ref refs/heads/a/c", Rule::kNone},
};
INSTANTIATE_TEST_SUITE_P(Files, ConflictScenarioTest, ::testing::ValuesIn(kFileScenarios));

constexpr Scenario kObjectScenarios[] = {
    {"two pushes of packs", "add-pack p", "add-pack q", Rule::kNone},
    {"the same pack twice", "add-pack p", "add-pack p", Rule::kNone},
    {"A7 pack that came after", "add-pack p", "remove-pack p", Rule::kEntryWritten},
    {"A7 pack that was there", "add-pack p", "remove-pack q", Rule::kNone},
    {"C033 pack removed twice", "remove-pack p", "remove-pack p", Rule::kEntryWritten},
    {"removed, then pushed again", "remove-pack p", "add-pack p", Rule::kNone},
    {"repack and packing", "remove-pack p; derived objects/info/commit-graph", "pack-ref r/a",
     Rule::kNone},
    {"C033 two commit-graphs", "derived objects/info/commit-graph", "derived objects/info/commit-graph",
     Rule::kEntryWritten},
    {"commit-graph and midx", "derived objects/info/commit-graph",
     "derived objects/pack/multi-pack-index", Rule::kNone},
    {"ref update and repack", "update-ref r/a; add-pack p", "remove-pack q", Rule::kNone},
    {"A11 link changed under new tips", "unlink P", "update-ref r/a", Rule::kEntryWritten},
    {"A11 link of the pool changed", "@P link M", "@B add-pack p", Rule::kEntryWritten},
    {"deletion needs no chain", "unlink P", "delete-ref r/a", Rule::kNone},
    {"objects removed is no conflict by itself", "remove-objects", "add-pack p", Rule::kNone},
};
INSTANTIATE_TEST_SUITE_P(Objects, ConflictScenarioTest, ::testing::ValuesIn(kObjectScenarios));

constexpr Scenario kNameSpaceScenarios[] = {
    {"A10 create twice", "@N create g/x", "@Q create g/x", Rule::kEntryWritten},
    {"A10, C081 repository above", "@N create g", "@Q create g/x", Rule::kEntryWritten},
    {"A10, C081 repository below", "@N create g/x/y", "@Q create g/x", Rule::kEntryWritten},
    {"siblings in a new group", "@N create h/x", "@Q create h/y", Rule::kNone},
    {"C146 group removed", "remove-group h", "@Q create h/x", Rule::kEntryWritten},
    {"C146 group filled", "@N create h/x", "remove-group h", Rule::kEntryWritten},
    {"group made twice", "group h/i", "group h/i", Rule::kNone},
    {"move onto a created path", "@N create h/x", "move h/x", Rule::kEntryWritten},
    {"created where one moved away", "move h/x", "@N create g/m", Rule::kEntryWritten},
    {"look-up of an absent path that came", "@N create h/x", "look-up h/x; put f",
     Rule::kEntryWritten},
    {"listing of a group", "@N create g/x", "list-group g", Rule::kChildrenWritten},
    {"A25, CM-04 ref write after deletion", "delete", "update-ref r/main", Rule::kAncestorRemoved},
    {"A25 file write after deletion", "delete", "put config", Rule::kAncestorRemoved},
    {"A25 ref read after deletion", "delete", "read-ref r/main", Rule::kAncestorRemoved},
    {"A25 packing after deletion", "delete", "pack-ref r/main", Rule::kAncestorRemoved},
    {"A25 pack after deletion", "delete", "add-pack p", Rule::kAncestorRemoved},
    {"REPO-19 delete after a ref write", "update-ref r/main", "delete", Rule::kSubtreeWritten},
    {"REPO-19 delete after a pack", "add-pack p", "delete", Rule::kSubtreeWritten},
    {"REPO-12 delete twice", "delete", "delete", Rule::kAncestorRemoved},
    {"CM-01 delete beside another", "@P update-ref r/main", "delete", Rule::kNone},
    {"move and push", "move h/m", "update-ref r/main", Rule::kAncestorRemoved},
    {"C060 link, then pool deleted", "link P", "@P delete", Rule::kLinkWritten},
    {"C060 pool deleted, then link", "@P delete", "link P", Rule::kAncestorRemoved},
    {"two members of one pool", "link P", "@N link P", Rule::kNone},
    {"ALT-06 one member, two pools", "link P", "link B", Rule::kEntryWritten},
    {"members asked for", "link P", "@P read-members", Rule::kLinkWritten},
    {"members of another pool", "link P", "@B read-members", Rule::kNone},
    {"A24, C142 request id twice", "request a; put f", "request a; put g", Rule::kRequestUsed},
    {"two request ids", "request a; put f", "request b; put g", Rule::kNone},
};
INSTANTIATE_TEST_SUITE_P(NameSpace, ConflictScenarioTest, ::testing::ValuesIn(kNameSpaceScenarios));

constexpr Scenario kKeyScenarios[] = {
    {"KV-11, KV-12 read of a put key", "put-key k", "read-key k", Rule::kKeyWritten},
    {"KV-13 read of a deleted key", "delete-key k", "read-key k; put-key x", Rule::kKeyWritten},
    {"KV-07 blind put twice", "put-key k", "put-key k", Rule::kNone},
    {"KV-10 blind delete after put", "put-key k", "delete-key k", Rule::kNone},
    {"read and put", "put-key k", "read-key k; put-key k", Rule::kKeyWritten},
    {"KV-14 read, read", "read-key k; put-key x", "read-key k", Rule::kNone},
    {"KV-16 phantom in an empty range", "put-key b", "iterate a c; put-key z", Rule::kKeyRangeWritten},
    {"end of a range is outside", "put-key c", "iterate a c", Rule::kNone},
    {"before the range", "put-key Z", "iterate a", Rule::kNone},
    {"range without bound", "put-key zzz", "iterate a", Rule::kKeyRangeWritten},
    {"lost update over two commits", "put-key k | put-key k", "read-key k", Rule::kKeyWritten},
};
INSTANTIATE_TEST_SUITE_P(Keys, ConflictScenarioTest, ::testing::ValuesIn(kKeyScenarios));

}  // namespace
}  // namespace repotxn::locks
