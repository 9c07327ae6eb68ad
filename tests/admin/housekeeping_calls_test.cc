// Goal: housekeeping is planned, run, told and paused through the administration; a run that did not do all it should is an
// error, and tells every task all the same. Method: calls on a store in memory. Fails when something that stood in the way is
// answered as if it were done.
#include <string>

#include "absl/strings/str_cat.h"
#include "admin/admin_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/txn/world.h"

namespace repotxn::admin {
namespace {

using repotxn::testing::Branch;
using repotxn::testing::IsOk;
using repotxn::testing::World;

class HousekeepingCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("a/demo");
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(world_.Set(id_, Branch(absl::StrCat("b", n)), World::At(n)).committed());
  }
  // Git keeps something there: the loose objects of this world cannot be packed.
  void PutKeepFile() {
    const auto file = txn::layout::RepositoryDirectory(id_) / "objects" / "pack" / "multi-pack-index.d";
    ASSERT_THAT(storage::WriteFile(world_.fs(), file, ""), IsOk());
  }
  Reply Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    Call call;
    call.method = method;
    call.path = path.substr(0, path.find('?'));
    if (call.path != path) call.query = {{"look", path.substr(path.find('=') + 1)}};
    call.body = body;
    return AdminApi(&world_.store()).Handle(call);
  }

  World world_;
  RepositoryId id_;
};

constexpr char kDemo[] = "repositories/a/demo/-/housekeeping";

TEST_F(HousekeepingCallsTest, ShowsWhatARepositoryNeedsAndHowItWent) {
  PutKeepFile();
  Reply reply = Ask("GET", kDemo);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.body["path"], "a/demo");
  EXPECT_EQ(reply.body["plan"], (Json::array({{{"task", "merge-packs"}, {"reason", "10 loose objects"}}})));
  EXPECT_EQ(reply.body["sizes"]["loose_objects"], 10);
  EXPECT_EQ(reply.body["status"]["paused"], false);
  ASSERT_EQ(reply.body["status"]["tasks"].size(), 4u);
  EXPECT_EQ(reply.body["status"]["tasks"][1]["needed"], true);
  EXPECT_FALSE(reply.body["status"]["tasks"][1].contains("outcome"));

  EXPECT_EQ(Ask("POST", kDemo, "{}").status, 409);
  reply = Ask("GET", kDemo);
  EXPECT_EQ(reply.body["status"]["tasks"][1]["outcome"], "stood in the way");
  EXPECT_EQ(reply.body["status"]["tasks"][1]["needed"], true);
}

TEST_F(HousekeepingCallsTest, RunsTasksAndTellsWhatTheyDid) {
  const Reply done = Ask("POST", kDemo, R"({"tasks":["pack-refs"]})");
  ASSERT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.body["tasks"][0]["outcome"], "done");
  EXPECT_EQ(done.body["tasks"][0]["refs_packed"], 3);
  EXPECT_EQ(Ask("POST", kDemo, R"({"tasks":["pack-refs"]})").body["tasks"][0]["outcome"], "nothing to do");
}

TEST_F(HousekeepingCallsTest, WhatStoodInTheWayIsAnErrorThatTellsEveryTask) {
  PutKeepFile();
  const Reply reply = Ask("POST", kDemo, R"({"tasks":["merge-packs","pack-refs"],"grace_seconds":0})");
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.body["error"]["code"], "failed_precondition");
  ASSERT_EQ(reply.body["tasks"].size(), 2u);
  EXPECT_EQ(reply.body["tasks"][0]["outcome"], "done");
  EXPECT_EQ(reply.body["tasks"][1]["outcome"], "stood in the way");
  EXPECT_EQ(reply.body["tasks"][1]["error"]["code"], "failed_precondition");
}

TEST_F(HousekeepingCallsTest, ListsWhoNeedsSomethingAndRunsAllOfThem) {
  PutKeepFile();
  EXPECT_TRUE(Ask("GET", "housekeeping").body["tasks"].empty());  // nobody has looked
  const Reply looked = Ask("GET", "housekeeping?look=true");
  ASSERT_EQ(looked.body["tasks"].size(), 1u) << looked.body;
  EXPECT_EQ(looked.body["tasks"][0]["path"], "a/demo");
  EXPECT_EQ(looked.body["tasks"][0]["task"], "merge-packs");

  const Reply run = Ask("POST", "housekeeping", R"({"run":true,"tasks":["pack-refs","merge-packs"]})");
  EXPECT_EQ(run.status, 409);
  ASSERT_EQ(run.body["tasks"].size(), 2u);
  EXPECT_EQ(run.body["tasks"][0]["path"], "a/demo");
  EXPECT_EQ(run.body["tasks"][0]["outcome"], "done");
}

TEST_F(HousekeepingCallsTest, PausesAndResumes) {
  EXPECT_EQ(Ask("POST", "housekeeping", R"({"paused":true})").body["paused"], true);
  EXPECT_EQ(Ask("GET", "housekeeping").body["paused"], true);
  EXPECT_EQ(Ask("POST", "housekeeping", R"({"paused":false})").body["paused"], false);
  EXPECT_EQ(Ask("GET", "housekeeping").body["paused"], false);
}

TEST_F(HousekeepingCallsTest, RefusesWhatMakesNoSense) {
  for (const char* body :
       {R"({"tasks":["gc"]})", R"({"tasks":[]})", R"({"tasks":"repack"})", R"({"tasks":["repack"],"all":true})",
        R"({"all":1})", R"({"grace_seconds":-1})", R"({"grace_seconds":1.5})", R"({"grace_seconds":18446744073709551615})",
        R"({"grace":1})", ""}) {
    EXPECT_EQ(Ask("POST", kDemo, body).status, 400) << body;
  }
  for (const char* body : {"{}", R"({"paused":1})", R"({"run":true,"paused":true})", R"({"all":true})"}) {
    EXPECT_EQ(Ask("POST", "housekeeping", body).status, 400) << body;
  }
  EXPECT_EQ(Ask("GET", "housekeeping?look=maybe").status, 400);
  EXPECT_EQ(Ask("GET", "repositories/absent/-/housekeeping").status, 404);
  EXPECT_EQ(Ask("POST", "repositories/absent/-/housekeeping", "{}").status, 404);
  EXPECT_EQ(Ask("DELETE", kDemo).status, 405);
}

TEST_F(HousekeepingCallsTest, NeedsTheRightToWriteForWhatActs) {
  const auto needs_write = [](const std::string& method, const std::string& path) {
    Call call;
    call.method = method;
    call.path = path;
    return AdminApi::NeedsWrite(call);
  };
  EXPECT_FALSE(needs_write("GET", kDemo));
  EXPECT_FALSE(needs_write("GET", "housekeeping"));
  EXPECT_TRUE(needs_write("POST", kDemo));
  EXPECT_TRUE(needs_write("POST", "housekeeping"));
}

}  // namespace
}  // namespace repotxn::admin
