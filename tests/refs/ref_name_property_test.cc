#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "refs/ref_name.h"
#include "tests/refs/run_program.h"
#include "tests/support/seeded_random.h"

namespace repotxn::refs {
namespace {

using ::repotxn::testing::RunProgram;
using ::repotxn::testing::SeededRandom;

constexpr uint64_t kSeed = 20240607;
constexpr int kRandomNames = 2000;

// Goal: below refs/, within our limits and apart from refs/heads and refs/tags, exactly the names
// that `git check-ref-format` accepts are accepted. Names are asked for one by one from the git of
// this machine; a single disagreement fails and prints the name.
class RefNameAgreementTest : public ::testing::Test {
 protected:
  static void ExpectAgreement(const std::string& name) {
    const bool ours = !FindRefNameFault(name).has_value();
    const bool theirs = RunProgram({"git", "check-ref-format", name}).exit_code == 0;
    EXPECT_EQ(ours, theirs) << "name: " << ::testing::PrintToString(name);
    accepted_ += theirs ? 1 : 0;
    refused_ += theirs ? 0 : 1;
  }

  // Pieces that make forbidden forms likely, with single bytes of every kind in between.
  static std::string RandomName(SeededRandom& random) {
    static const std::vector<std::string> kPieces = {
        "a", "b",  "/", "/", ".",    "..",    ".lock", "lock", "@", "{", "@{", "-", "HEAD",
        "~", "^",  ":", "?", "*",    "[",     "]",     "\\",   " ", "x", "y",  "z", "feat",
        "}", "\"", "'", "$", "main", "heads", "tags",  "é",    "1", "2", "#",  "%", "&",
    };
    std::string name = "refs/";
    const uint64_t count = 1 + random.Below(8);
    for (uint64_t i = 0; i < count; ++i) {
      if (random.Below(12) == 0) {
        name.push_back(static_cast<char>(1 + random.Below(255)));
      } else {
        name += kPieces[random.Below(kPieces.size())];
      }
    }
    return name == "refs/heads" || name == "refs/tags" ? name + "x" : name;
  }

  static inline int accepted_ = 0;
  static inline int refused_ = 0;
};

TEST_F(RefNameAgreementTest, AgreesWithGitOverATable) {
  const std::vector<std::string> names = {"refs/heads/main",
                                          "refs/heads/HEAD",
                                          "refs/heads/@",
                                          "refs/heads/-x",
                                          "refs/heads/@{",
                                          "refs/heads/a@{b",
                                          "refs/heads/a{",
                                          "refs/heads/.a",
                                          "refs/heads/a.",
                                          "refs/heads/a./b",
                                          "refs/heads/a..b",
                                          "refs/heads/a.lock",
                                          "refs/heads/.lock",
                                          "refs/heads/a.lock/",
                                          "refs/heads/a.lock/b",
                                          "refs/heads/a.lock.b",
                                          "refs/heads/a//b",
                                          "refs/heads/a/",
                                          "refs/",
                                          "refs/a",
                                          "refs//a",
                                          "refs/heads/a b",
                                          "refs/heads/a\tb",
                                          "refs/heads/a\x7f",
                                          "refs/heads/\x80",
                                          "refs/heads/\xff",
                                          "refs/heads/a*",
                                          "refs/heads/a?",
                                          "refs/heads/a[",
                                          "refs/heads/a]",
                                          "refs/heads/a\\",
                                          "refs/heads/a^",
                                          "refs/heads/a~",
                                          "refs/heads/a:",
                                          "refs/@",
                                          "refs/heads/@/a",
                                          "refs/heads/..",
                                          "refs/heads/./a",
                                          "refs/heads/LOCK.Lock"};

  for (const std::string& name : names) ExpectAgreement(name);
}

TEST_F(RefNameAgreementTest, AgreesWithGitOverRandomNames) {
  SeededRandom random(kSeed);
  accepted_ = 0;
  refused_ = 0;

  for (int i = 0; i < kRandomNames; ++i) ExpectAgreement(RandomName(random));

  EXPECT_GT(accepted_, kRandomNames / 20);  // Both answers occurred, or nothing was compared.
  EXPECT_GT(refused_, kRandomNames / 20);
}

}  // namespace
}  // namespace repotxn::refs
