#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "refs/ref_operations.h"
#include "refs/ref_reader.h"
#include "storage/posix_file_system.h"
#include "tests/refs/ref_test_util.h"
#include "tests/refs/run_program.h"
#include "tests/support/seeded_random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::ApplyRefOperations;
using ::repotxn::testing::RepositoryIdOf;
using ::repotxn::testing::RunProgram;
using ::repotxn::testing::SeededRandom;
using ::repotxn::testing::TempDirectory;

// Goal: refs written by us are read by the git of this machine exactly as we read them, and the
// other way round. Each test makes a real bare repository with five commits and two annotated tags
// and compares whole listings: name, id and peeled id. One ref read differently fails.
class GitRefsAgreementTest : public ::testing::Test {
 protected:
  GitRefsAgreementTest() {
    EXPECT_EQ(RunProgram({"git", "init", "-q", "--bare", root_.path() + "/r.git"}).exit_code, 0);
    auto fs = storage::OpenPosixFileSystem(root_.path());
    EXPECT_OK(fs);
    if (fs.ok()) fs_ = std::move(fs).value();
    const std::string tree = Git({"mktree"});
    for (const char* subject : {"one", "two", "three", "four", "five"}) {
      objects_.push_back({Id(Git({"commit-tree", "-m", subject, tree})), ObjectId()});
    }
    objects_.push_back({MakeTag("t1", objects_[0].oid), objects_[0].oid});
    objects_.push_back({MakeTag("t2", objects_[5].oid), objects_[0].oid});  // A tag of a tag.
  }

  struct Object {
    ObjectId oid;
    ObjectId peeled;
  };

  static std::string Trimmed(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  static ObjectId Id(const std::string& hex) {
    const auto oid = ObjectId::FromHex(hex, ObjectFormat::kSha1);
    EXPECT_OK(oid);
    return oid.ok() ? *oid : ObjectId();
  }

  std::string Git(std::vector<std::string> args, const std::string& input = "") {
    args.insert(args.begin(), {"git", "--git-dir=" + root_.path() + "/r.git"});
    const auto result = RunProgram(args, input);
    EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(args);
    return Trimmed(result.out);
  }
  int GitExitCode(std::vector<std::string> args) {
    args.insert(args.begin(), {"git", "--git-dir=" + root_.path() + "/r.git"});
    return RunProgram(args).exit_code;
  }

  ObjectId MakeTag(const std::string& name, const ObjectId& target) {
    const bool is_tag = objects_.size() > 5;
    return Id(Git({"mktag"}, "object " + target.ToHex() + "\ntype " + (is_tag ? "tag" : "commit") +
                                 "\ntag " + name + "\ntagger a <a@b> 1000000000 +0000\n\nx\n"));
  }

  // Name -> id of all refs, with "<name>^{}" -> peeled id for annotated tags.
  std::map<std::string, std::string> GitsShowRef() {
    std::map<std::string, std::string> refs;
    std::istringstream in(
        RunProgram({"git", "--git-dir=" + root_.path() + "/r.git", "show-ref", "-d"}).out);
    for (std::string line; std::getline(in, line);) refs[line.substr(41)] = line.substr(0, 40);
    return refs;
  }
  std::map<std::string, std::string> OurShowRef() {
    std::map<std::string, std::string> refs;
    RefReader reader(*fs_, Repository(), ObjectFormat::kSha1);
    const auto listing = reader.List("refs/");
    EXPECT_OK(listing);
    if (!listing.ok()) return refs;
    EXPECT_TRUE(listing->faults.empty());
    for (const NamedRef& ref : listing->refs) {
      refs[ref.name.text()] = ref.value.oid().ToHex();
      // A loose file has no peeled id, so what the object is decides.
      for (const Object& object : objects_) {
        if (object.oid != ref.value.oid() || object.peeled.empty()) continue;
        const ObjectId peeled = ref.value.peeled();
        EXPECT_TRUE(peeled.empty() || peeled == object.peeled);
        refs[ref.name.text() + "^{}"] = object.peeled.ToHex();
      }
    }
    return refs;
  }

  static storage::StorePath Repository() { return storage::StorePath::Literal("r.git"); }

  // A name that neither is above nor below one of `taken`.
  static std::string FreeName(SeededRandom& random, const std::set<std::string>& taken) {
    static const char* const kLeaves[] = {"a", "b", "HEAD", "@", "-x", "é", "\xff\xfe", "z.z", "A"};
    while (true) {
      std::string name = random.Below(2) == 0 ? "refs/heads" : "refs/tags";
      for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
        name += std::string("/") + kLeaves[random.Below(9)] + std::to_string(random.Below(6));
      }
      const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const std::string& other) {
        return (other + "/").compare(0, name.size() + 1, name + "/") == 0 ||
               (name + "/").compare(0, other.size() + 1, other + "/") == 0;
      });
      if (is_free) return name;
    }
  }

  // One transaction's random changes against `state`, which is brought up to date.
  std::vector<wal::RefChange> RandomChanges(SeededRandom& random,
                                            std::map<std::string, RefValue>& state) {
    std::set<std::string> taken;
    for (const auto& [name, value] : state) taken.insert(name);
    std::map<std::string, wal::RefChange> changes;
    for (uint64_t i = 1 + random.Below(8); i > 0; --i) {
      std::string name = FreeName(random, taken);
      if (!state.empty() && random.Below(2) == 0) {
        name = std::next(state.begin(), static_cast<long>(random.Below(state.size())))->first;
      }
      if (changes.count(name) > 0) continue;
      const RefValue before = state.count(name) > 0 ? state[name] : RefValue::Absent();
      // Git refuses a branch that is no commit.
      const bool is_branch = RefName::Literal(name).IsBranch();
      const Object& object = objects_[random.Below(is_branch ? 5 : objects_.size())];
      const RefValue after = !before.is_absent() && random.Below(3) == 0
                                 ? RefValue::Absent()
                                 : RefValue::Object(object.oid, object.peeled);
      if (before.SameAs(after)) continue;
      // A deleted name stays taken within the transaction, so that no change depends on another.
      taken.insert(name);
      changes[name] = {RepositoryIdOf(1), name, before.ToLogged(), after.ToLogged()};
      if (after.is_absent()) {
        state.erase(name);
      } else {
        state[name] = after;
      }
    }
    std::vector<wal::RefChange> list;
    for (const auto& [name, change] : changes) list.push_back(change);
    return list;
  }

  const TempDirectory root_;
  std::unique_ptr<storage::FileSystem> fs_;
  std::vector<Object> objects_;
};

TEST_F(GitRefsAgreementTest, GitReadsWhatWeWrite) {
  SeededRandom random(11);
  std::map<std::string, RefValue> state;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto changes = RandomChanges(random, state);
    const size_t threshold = random.Below(3) == 0 ? 0 : 64;
    ApplyRefOperations(*fs_, "r.git",
                       DeriveRefOperations(changes, {}, {.packed_threshold = threshold}));
    if (random.Below(4) == 0 && !state.empty()) {
      wal::RefsPacked packing{RepositoryIdOf(1), {}};
      for (const auto& [name, value] : state) {
        const auto logged = value.ToLogged();
        packing.refs.push_back({name, logged.bytes, logged.peeled});
      }
      ApplyRefOperations(*fs_, "r.git", DeriveRefOperations({}, std::vector{packing}));
    }

    const auto theirs = GitsShowRef();

    ASSERT_EQ(OurShowRef(), theirs);
    size_t names = 0;
    for (const auto& [name, value] : state) {
      ASSERT_EQ(theirs.count(name), 1u) << name;
      ASSERT_EQ(theirs.at(name), value.oid().ToHex());
      names += value.peeled().empty() ? 1u : 2u;
    }
    ASSERT_EQ(theirs.size(), names);
  }
  EXPECT_EQ(GitExitCode({"fsck", "--strict"}), 0);
}

TEST_F(GitRefsAgreementTest, WeReadWhatGitWrites) {
  SeededRandom random(12);
  std::map<std::string, RefValue> state;
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::string script;
    for (const wal::RefChange& change : RandomChanges(random, state)) {
      const RefValue value = RefValue::FromLogged(change.new_value).value();
      // The names go over stdin with NUL, as bytes.
      script += value.is_absent()
                    ? "delete " + change.name + std::string(2, '\0')
                    : "update " + change.name + '\0' + value.oid().ToHex() + std::string(2, '\0');
    }
    Git({"update-ref", "--stdin", "-z"}, script);
    if (random.Below(3) == 0) Git({"pack-refs", "--all"});

    ASSERT_EQ(OurShowRef(), GitsShowRef());
    ASSERT_EQ(OurShowRef().empty(), state.empty());
  }
}

// The bytes too: the same refs packed by git and by us are the same file.
TEST_F(GitRefsAgreementTest, PackedFileIsTheOneThatGitWrites) {
  SeededRandom random(13);
  std::map<std::string, RefValue> state;
  for (int round = 0; round < 10; ++round) {
    ApplyRefOperations(*fs_, "r.git", DeriveRefOperations(RandomChanges(random, state), {}));
  }
  ASSERT_GT(state.size(), 5u);
  std::vector<wal::PackedRef> set;
  for (const auto& [name, value] : state) {
    const auto logged = value.ToLogged();
    set.push_back({name, logged.bytes, logged.peeled});
  }

  Git({"pack-refs", "--all"});

  ASSERT_OK_AND_ASSIGN(const PackedRefsEdit edit, EditPackedRefs(PackedRefs(), set, {}));
  ASSERT_OK_AND_ASSIGN(const std::string theirs,
                       storage::ReadFile(*fs_, Repository() / "packed-refs"));
  EXPECT_EQ(edit.content, theirs);
}

// C041, C039: the odd names through create, update, pack and delete.
TEST_F(GitRefsAgreementTest, OddNamesRoundTripThroughEveryOperation) {
  std::vector<std::string> names = {"refs/heads/HEAD",
                                    "refs/heads/@",
                                    "refs/heads/-x",
                                    "refs/heads/X1",
                                    "refs/heads/x1",
                                    "refs/heads/docs",
                                    "refs/tags/v1",
                                    "refs/heads/DOCS/part",
                                    "refs/heads/v1",
                                    "refs/heads/\xff",
                                    "refs/heads/" + std::string(240, 'n')};
  std::sort(names.begin(), names.end());
  const RefValue first = RefValue::Object(objects_[0].oid);
  const RefValue second = RefValue::Object(objects_[1].oid);
  const auto apply = [&](const RefValue& from, const RefValue& to) {
    std::vector<wal::RefChange> changes;
    for (const std::string& name : names) {
      changes.push_back({RepositoryIdOf(1), name, from.ToLogged(), to.ToLogged()});
    }
    ApplyRefOperations(*fs_, "r.git", DeriveRefOperations(changes, {}));
  };
  const auto expect_all = [&](const RefValue& value) {
    const auto theirs = GitsShowRef();
    EXPECT_EQ(theirs, OurShowRef());
    EXPECT_EQ(theirs.size(), value.is_absent() ? 0 : names.size());
    for (const auto& [name, hex] : theirs) EXPECT_EQ(hex, value.oid().ToHex()) << name;
  };

  apply(RefValue::Absent(), first);
  expect_all(first);
  apply(first, second);
  expect_all(second);
  wal::RefsPacked packing{RepositoryIdOf(1), {}};
  for (const std::string& name : names) packing.refs.push_back({name, second.ToLogged().bytes, ""});
  ApplyRefOperations(*fs_, "r.git", DeriveRefOperations({}, std::vector{packing}));
  expect_all(second);
  apply(second, RefValue::Absent());
  expect_all(RefValue::Absent());
}

TEST_F(GitRefsAgreementTest, SymbolicChainsEndWhereGitsEnd) {
  Git({"update-ref", "refs/heads/end", objects_[0].oid.ToHex()});
  RefReader reader(*fs_, Repository(), ObjectFormat::kSha1);
  std::string target = "refs/heads/end";
  bool both_resolved = false;
  bool both_refused = false;
  for (int hops = 1; hops <= 7; ++hops) {
    const std::string name = "refs/heads/s" + std::to_string(hops);
    Git({"symbolic-ref", name, target});
    target = name;

    const bool theirs = GitExitCode({"rev-parse", "--verify", "-q", name}) == 0;
    const bool ours = reader.Resolve(RefName::Literal(name)).ok();

    EXPECT_EQ(ours, theirs) << hops << " hops";
    both_resolved = both_resolved || (ours && theirs);
    both_refused = both_refused || (!ours && !theirs);
  }
  EXPECT_TRUE(both_resolved);
  EXPECT_TRUE(both_refused);
}

// What we call damage, Git refuses too; what we read, it reads. Not compared is the zero id, which
// Git omits from listings and still resolves.
TEST_F(GitRefsAgreementTest, LooseContentsAreJudgedAlike) {
  const std::string hex = objects_[0].oid.ToHex();
  Git({"update-ref", "refs/heads/end", hex});
  const std::vector<std::string> contents = {hex,
                                             hex + "\n",
                                             hex + " text\n",
                                             hex + "\nmore",
                                             hex + "x\n",
                                             hex.substr(1) + "\n",
                                             "",
                                             "\n",
                                             "ref: refs/heads/end",
                                             "ref:refs/heads/end\n",
                                             "ref: \trefs/heads/end \n\n",
                                             "ref: refs/heads/en d\n",
                                             "ref: \n",
                                             " " + hex + "\n"};
  int read = 0;
  for (const std::string& content : contents) {
    ASSERT_OK(storage::WriteFile(*fs_, Repository() / "refs/heads/a", content));
    RefReader reader(*fs_, Repository(), ObjectFormat::kSha1);

    const bool ours = reader.Resolve(RefName::Literal("refs/heads/a")).ok();
    const bool theirs = GitExitCode({"rev-parse", "--verify", "-q", "refs/heads/a"}) == 0;

    EXPECT_EQ(ours, theirs) << ::testing::PrintToString(content);
    read += theirs ? 1 : 0;
  }
  EXPECT_EQ(read, 7);
}

}  // namespace
}  // namespace repotxn::refs
