#include "daemon/access.h"

#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace repotxn::daemon {
namespace {

using repotxn::testing::StatusIs;

constexpr char kFile[] =
    "# who may do what\n"
    "\n"
    "reader-token-0123456789 alice ro\n"
    "writer-token-0123456789 bob rw\r\n"
    "plain-token-01234567890\n"
    "short-form-token-012345 ro\n";

// Goal: exactly the tokens of the file are let in, with exactly their right. Fails when a token is
// taken that is not there, or refused that is.
class AccessListTest : public ::testing::Test {
 protected:
  static AccessList Parsed(const char* text) {
    absl::StatusOr<AccessList> list = AccessList::Parse(text);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *std::move(list) : AccessList();
  }
  static std::string Basic(const std::string& user, const std::string& password) {
    return "Basic " + absl::Base64Escape(user + ":" + password);
  }
};

TEST_F(AccessListTest, TakesTokensAsBearerAndAsBasicPassword) {
  const AccessList list = Parsed(kFile);
  EXPECT_EQ(list.Judge("Bearer reader-token-0123456789").right, Right::kRead);
  EXPECT_EQ(list.Judge("Bearer reader-token-0123456789").name, "alice");
  EXPECT_EQ(list.Judge(Basic("anyone", "writer-token-0123456789")).right, Right::kWrite);
  EXPECT_EQ(list.Judge(Basic("", "writer-token-0123456789")).name, "bob");
  EXPECT_EQ(list.Judge("bearer plain-token-01234567890").right, Right::kWrite);
  EXPECT_EQ(list.Judge("Bearer short-form-token-012345").right, Right::kRead);
}

TEST_F(AccessListTest, GivesNothingToAnybodyElse) {
  const AccessList list = Parsed(kFile);
  for (const std::string& header :
       {std::string(), std::string("Bearer "), std::string("Bearer reader-token-012345678"),
        std::string("Bearer reader-token-01234567890"), std::string("reader-token-0123456789"),
        std::string("Digest reader-token-0123456789"), Basic("reader-token-0123456789", ""),
        std::string("Basic !!!"), std::string("Bearer # who may do what")}) {
    EXPECT_EQ(list.Judge(header).right, Right::kNone) << header;
  }
  EXPECT_EQ(AccessList().Judge("Bearer x").right, Right::kNone);
}

TEST_F(AccessListTest, LetsEverybodyWriteWhenOpen) {
  EXPECT_EQ(AccessList::Open().Judge("").right, Right::kWrite);
}

TEST_F(AccessListTest, RefusesFilesThatAreNotMeantSo) {
  for (const char* text :
       {"", "# nothing\n", "short ro\n", "reader-token-0123456789 alice maybe\n",
        "reader-token-0123456789 alice ro more\n",
        "reader-token-0123456789 a ro\nreader-token-0123456789 b rw\n"}) {
    EXPECT_THAT(AccessList::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST_F(AccessListTest, SaysThatAFileIsNotThere) {
  EXPECT_THAT(AccessList::Load("/nonexistent/tokens"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(LoopbackTest, KnowsAddressesOfThisMachineOnly) {
  for (const char* host : {"127.0.0.1", "127.9.8.7", "::1", "localhost", "LOCALHOST"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.0.0.1.evil.example", "127.1", "",
                           "localhost.example", "127.0.0.256", "127.0.0.+1"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace repotxn::daemon
