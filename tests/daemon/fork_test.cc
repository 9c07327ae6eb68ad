// Goal: stock Git works with a fork as with any repository, and sends and gets no object twice: what
// the pool has is not sent to the fork. Fails when a client sends objects that the server has, when a
// clone misses one, or when Git finds fault with the directory of the fork.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/daemon/served_store.h"

namespace repotxn::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using repotxn::testing::IsOk;
using repotxn::testing::ServedStore;
using repotxn::testing::StatusOfAnswer;

class ForkTest : public ServedStore {
 protected:
  // `up` with `commits` commits on main, made in work tree "work", and `fork` of it.
  void MakeFork(int commits) {
    Serve();
    git_.Init("work");
    for (int i = 0; i < commits; ++i) git_.Commit("work", "file", absl::StrCat(i));
    git_.Must("work", {"push", "-q", Url("up"), "main"});
    const std::string made = PostJson("/api/repositories/up/-/fork", R"({"path":"fork"})");
    ASSERT_EQ(StatusOfAnswer(made), 201) << made;
  }
  // What pack-objects of the client says: "Total <objects> (delta ...".
  std::string Push(const std::string& repository, const std::string& what) {
    return git_.Must("work", {"push", "--progress", Url(repository), what});
  }
  std::string Advertised(const std::string& repository) const {
    return Get(absl::StrCat("/", repository, ".git/info/refs?service=git-receive-pack"));
  }
  std::string Head(const std::string& tree) const { return git_.Must(tree, {"rev-parse", "HEAD"}); }
};

TEST_F(ForkTest, PushOfWhatThePoolHasSendsNoObject) {
  MakeFork(1);
  // The pool goes ahead of its fork.
  for (int i = 10; i < 20; ++i) git_.Commit("work", "file", absl::StrCat(i));
  EXPECT_THAT(Push("up", "main"), HasSubstr("Total 30 "));
  const std::string tip = Head("work");
  EXPECT_THAT(Advertised("fork"), HasSubstr(absl::StrCat(tip, " .have\n")));

  EXPECT_THAT(Push("fork", "main"), Not(HasSubstr("Writing objects")));
  EXPECT_THAT(Refs("fork"), HasSubstr(absl::StrCat(tip, "\trefs/heads/main")));

  // One commit more: its three objects, and nothing below them.
  git_.Commit("work", "file", "more");
  EXPECT_THAT(Push("fork", "main:side"), HasSubstr("Total 3 "));
}

TEST_F(ForkTest, AdvertisesEachBorrowedTipOnceAndNoneOfItsOwn) {
  MakeFork(1);
  EXPECT_THAT(Advertised("fork"), Not(HasSubstr(".have")));
  git_.Commit("work", "file", "ahead");
  const std::string tip = Head("work");
  git_.Must("work", {"push", "-q", Url("up"), "main", "main:twice", "main:refs/secret/x"});
  const std::string shown = Advertised("fork");
  const size_t first = shown.find(tip);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(shown.find(tip, first + 1), std::string::npos) << shown;

  // What the pool hides from its own clients its forks do not tell.
  git_.Commit("work", "file", "hidden");
  git_.Must("work", {"push", "-q", Url("up"), "main:refs/secret/x", "--force"});
  const std::string hidden = Head("work");
  EXPECT_THAT(Advertised("fork"), HasSubstr(hidden));
  const std::string config = R"({"content":"[transfer]\n\thideRefs = refs/secret\n"})";
  const std::string put = testing::RawExchange(
      port(), absl::StrCat("PUT /api/repositories/up/-/files/config HTTP/1.1\r\nConnection: close\r\n"
                           "Content-Length: ", config.size(), "\r\n\r\n", config));
  EXPECT_EQ(StatusOfAnswer(put), 200) << put;
  EXPECT_THAT(Advertised("fork"), Not(HasSubstr(hidden)));
}

// A repository without refs of its own: the first line is a `.have`, with the capabilities.
TEST_F(ForkTest, PushToAnEmptyMemberNegotiatesAgainstItsPool) {
  MakeFork(3);
  ASSERT_EQ(StatusOfAnswer(PostJson("/api/repositories", R"({"path":"empty"})")), 201);
  ASSERT_EQ(StatusOfAnswer(PostJson("/api/repositories/empty/-/alternates", R"({"pool":"up"})")), 201);
  EXPECT_THAT(Push("empty", "main"), Not(HasSubstr("Writing objects")));
  git_.Must("", {"clone", "-q", Url("empty"), git_.Tree("copy")});
  EXPECT_EQ(Head("copy"), Head("work"));
}

TEST_F(ForkTest, ServesClonesFetchesAndShallowOnesInBothProtocols) {
  MakeFork(4);
  git_.Commit("work", "file", "own");
  Push("fork", "main");
  const std::string tip = Head("work");
  for (const char* protocol : {"protocol.version=0", "protocol.version=2"}) {
    const std::string full = absl::StrCat("full-", protocol);
    git_.Must("", {"-c", protocol, "clone", "-q", Url("fork"), git_.Tree(full)});
    EXPECT_EQ(Head(full), tip);
    git_.Must(full, {"fsck", "--full", "--strict"});
    const std::string shallow = absl::StrCat("shallow-", protocol);
    git_.Must("", {"-c", protocol, "clone", "-q", "--depth=2", Url("fork"), git_.Tree(shallow)});
    EXPECT_EQ(git_.Must(shallow, {"rev-list", "--count", "HEAD"}), "2");
    git_.Must(shallow, {"-c", protocol, "fetch", "-q", "--unshallow"});
    EXPECT_EQ(git_.Must(shallow, {"rev-list", "--count", "HEAD"}), "5");
  }
}

// The directory itself, with stock Git, while nobody has the store open.
TEST_F(ForkTest, GitFindsNoFaultWithTheDirectoryOfAForkAtRest) {
  MakeFork(3);
  git_.Commit("work", "file", "own");
  Push("fork", "main");
  EXPECT_THAT(server_->Stop(), IsOk());

  for (const char* path : {"up", "fork"}) {
    const std::string directory = absl::StrCat(options_.store, "/repositories/", path, ".git");
    git_.Must("", {"-c", "safe.directory=*", "--git-dir", directory, "fsck", "--full", "--strict"});
  }
  const std::string fork = options_.store + "/repositories/fork.git";
  EXPECT_EQ(git_.Must("", {"-c", "safe.directory=*", "--git-dir", fork, "rev-parse", "main"}),
            Head("work"));
}

}  // namespace
}  // namespace repotxn::daemon
