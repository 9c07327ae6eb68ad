// The administration over HTTP: each route with what it gives, and what it refuses.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/daemon/served_store.h"

namespace repotxn::daemon {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using repotxn::testing::RawExchange;
using repotxn::testing::ServedStore;
using repotxn::testing::StatusOfAnswer;

struct Answer {
  int status = 0;
  json body;

  std::string code() const { return body.contains("error") ? body["error"].value("code", "") : ""; }
  std::string detail(const std::string& name) const {
    return body.contains("error") ? body["error"]["detail"].value(name, "") : "";
  }
};

// Goal: the interfaces for operators say what is so. Method: HTTP as a client speaks it, and after
// each refusal the whole state (Picture) is what it was. Fails when a status, a code or a page
// differs from docs/operating.md, or a refused call changed something.
class RestTest : public ServedStore {
 protected:
  void SetUp() override { Serve(); }

  Answer Ask(const std::string& method, const std::string& path, const std::string& body = "",
             const std::string& headers = "") const {
    std::string request = absl::StrCat(method, " /api/", path, " HTTP/1.1\r\nHost: test\r\n",
                                       "Connection: close\r\n", headers);
    if (method != "GET") absl::StrAppend(&request, "Content-Length: ", body.size(), "\r\n");
    const std::string answer = RawExchange(port(), absl::StrCat(request, "\r\n", body));
    const size_t at = answer.find("\r\n\r\n");
    return {StatusOfAnswer(answer), json::parse(at == std::string::npos ? "" : answer.substr(at + 4),
                                                nullptr, /*allow_exceptions=*/false)};
  }
  Answer Get(const std::string& path) const { return Ask("GET", path); }
  json Must(const std::string& method, const std::string& path, const std::string& body = "",
            const std::string& headers = "") const {
    const Answer answer = Ask(method, path, body, headers);
    EXPECT_LT(answer.status, 300) << method << " " << path << "\n" << answer.body.dump();
    return answer.body;
  }
  void Create(const std::string& path) const {
    EXPECT_EQ(Ask("POST", "repositories", absl::StrCat(R"({"path":")", path, "\"}")).status, 201);
  }
  // Everything that the interface shows: groups, rows, refs, files and keys.
  json Picture() const {
    json all;
    all["top"] = Must("GET", "groups");
    all["keys"] = Must("GET", "keys");
    const json listed = Must("GET", "repositories");
    for (const json& row : listed["repositories"]) {
      const std::string path = row["path"];
      json& one = all["repositories"][path];
      one["row"] = Must("GET", "repositories/" + path);
      for (const char* part : {"refs", "files", "keys", "head"}) {
        one[part] = Must("GET", absl::StrCat("repositories/", path, "/-/", part));
      }
    }
    return all;
  }
  // Each call is refused with the status and the code, and nothing changes.
  struct Refusal {
    std::string method, path, body;
    int status;
    std::string code;
  };
  void ExpectRefused(const std::vector<Refusal>& refusals) const {
    const json before = Picture();
    for (const Refusal& refusal : refusals) {
      const Answer answer = Ask(refusal.method, refusal.path, refusal.body);
      const std::string what =
          absl::StrCat(refusal.method, " ", refusal.path, " ", refusal.body, "\n", answer.body.dump());
      EXPECT_EQ(answer.status, refusal.status) << what;
      EXPECT_EQ(answer.code(), refusal.code) << what;
    }
    EXPECT_EQ(Picture(), before);
  }
  // Two commits on main of `repository`; their ids, older first.
  std::vector<std::string> PushTwo(const std::string& repository) {
    git_.Init("work");
    git_.Commit("work", "a", "1");
    const std::string first = git_.Must("work", {"rev-parse", "HEAD"});
    git_.Commit("work", "a", "2");
    git_.Must("work", {"push", "-q", Url(repository), "main"});
    return {first, git_.Must("work", {"rev-parse", "HEAD"})};
  }
};

TEST_F(RestTest, CreatesStrictlyOrEnsuresAndDescribes) {
  const json made = Must("POST", "repositories", R"({"path":"group/demo","format":"sha256"})");
  EXPECT_EQ(made["path"], "group/demo");
  EXPECT_EQ(made["format"], "sha256");
  EXPECT_EQ(made["outcome"], "committed");
  EXPECT_EQ(made["transaction_id"].get<std::string>().size(), 32u);

  const json ensured = Must("POST", "repositories", R"({"path":"group/demo","ensure":true})");
  EXPECT_EQ(ensured["id"], made["id"]);

  json row = Must("GET", "repositories/group/demo");
  EXPECT_EQ(row["id"], made["id"]);
  EXPECT_EQ(row["head"], "ref: refs/heads/main");
  EXPECT_EQ(row["partition"], made["partition"]);
  EXPECT_EQ(row["alternates"], json::array());
  ExpectRefused({{"POST", "repositories", R"({"path":"group/demo"})", 409, "already_exists"},
                 {"POST", "repositories", R"({"path":"group"})", 409, "already_exists"},
                 {"POST", "repositories", R"({"path":"group/demo/in"})", 409, "already_exists"},
                 {"GET", "repositories/absent", "", 404, "not_found"},
                 {"DELETE", "repositories/absent", "", 404, "not_found"}});
}

TEST_F(RestTest, RefusesWhatIsNotMeantSo) {
  Create("demo");
  std::vector<Refusal> refusals;
  for (const char* body :
       {"", "[]", "{", R"({"path":1})", R"({"path":"../x"})", "{}", R"({"path":"a","format":"md5"})",
        R"({"path":"api/x"})", R"({"path":"/abs"})", R"({"path":"a","colour":"red"})",
        R"({"path":"a","path":"b"})", R"({"path":"a","head":"x y"})", R"({"path":"a"} x)"}) {
    refusals.push_back({"POST", "repositories", body, 400, "invalid_argument"});
  }
  for (const char* path : {"repositories?limit=0", "repositories?colour=red", "requests?id=x",
                           "requests", "transactions/xyz", "repositories/demo/-/refs/a..b"}) {
    refusals.push_back({"GET", path, "", 400, "invalid_argument"});
  }
  refusals.push_back({"GET", "nothing", "", 404, "not_found"});
  refusals.push_back({"GET", "repositories/demo/-/nothing", "", 404, "not_found"});
  refusals.push_back({"PUT", "repositories", "{}", 405, "not_found"});
  refusals.push_back({"DELETE", "repositories/demo", "{}", 400, "invalid_argument"});
  refusals.push_back({"PUT", "keys?key=a", absl::StrCat(R"({"value":")", std::string(5 << 20, 'x'), "\"}"),
                      413, "resource_exhausted"});
  ExpectRefused(refusals);
  const Answer unknown = Ask("POST", "repositories", R"({"path":"a","colour":"red"})");
  EXPECT_EQ(unknown.detail("field"), "colour");
}

TEST_F(RestTest, ListsInPages) {
  for (const char* path : {"b/two", "a/one", "a/three", "c"}) Create(path);
  std::vector<std::string> paths;
  std::string after;
  for (int page = 0; page < 10; ++page) {
    const json body = Must("GET", absl::StrCat("repositories?limit=2&after=", after));
    for (const json& row : body["repositories"]) paths.push_back(row["path"]);
    if (!body.contains("next")) break;
    after = body["next"];
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"a/one", "a/three", "b/two", "c"}));
  EXPECT_EQ(Must("GET", "repositories?prefix=a/")["repositories"].size(), 2u);
}

TEST_F(RestTest, MovesDeletesAndBringsBack) {
  Create("a/one");
  Create("taken");
  const json made = Must("GET", "repositories/a/one");

  EXPECT_EQ(Must("POST", "repositories/a/one/-/move", R"({"to":"b/two"})")["id"], made["id"]);
  ExpectRefused({{"POST", "repositories/a/one/-/move", R"({"to":"x"})", 404, "not_found"},
                 {"POST", "repositories/b/two/-/move", R"({"to":"taken"})", 409, "already_exists"},
                 {"POST", "repositories/b/two/-/move", R"({"to":"api/x"})", 400, "invalid_argument"},
                 {"DELETE", "groups/b", "", 409, "failed_precondition"},
                 {"DELETE", "groups/absent", "", 404, "not_found"}});
  EXPECT_EQ(Must("DELETE", "groups/a")["outcome"], "committed");
  EXPECT_EQ(Must("DELETE", "repositories/b/two")["id"], made["id"]);
  const json groups = Must("GET", "groups");
  EXPECT_EQ(groups["entries"], json::parse(absl::StrCat(
      R"([{"name":"b","kind":"group"},{"name":"taken","kind":"repository","id":)",
      Must("GET", "repositories/taken")["id"].dump(), "}]")));
  ExpectRefused({{"POST", "undelete", absl::StrCat(R"({"id":)", made["id"].dump(), R"(,"path":"taken"})"),
                  409, "already_exists"},
                 {"POST", "undelete", R"({"id":"00","path":"x"})", 400, "invalid_argument"},
                 {"POST", "undelete", absl::StrCat(R"({"id":")", std::string(32, '1'), R"(","path":"x"})"),
                  404, "not_found"}});
  EXPECT_EQ(Must("POST", "undelete", absl::StrCat(R"({"id":)", made["id"].dump(), R"(,"path":"c"})"))["id"],
            made["id"]);
  EXPECT_EQ(Must("GET", "repositories/c")["id"], made["id"]);
}

TEST_F(RestTest, ForksLinksUnlinksAndMakesPools) {
  const std::vector<std::string> commits = PushTwo("up");
  Create("other");

  const json fork = Must("POST", "repositories/up/-/fork", R"({"path":"fork"})");
  EXPECT_EQ(fork["partition"], Must("GET", "repositories/up")["partition"]);
  EXPECT_EQ(Must("GET", "repositories/fork/-/refs")["refs"],
            Must("GET", "repositories/up/-/refs")["refs"]);
  EXPECT_EQ(Must("GET", "repositories/up")["members"][0]["path"], "fork");
  EXPECT_EQ(Must("GET", "repositories/fork")["alternates"][0]["path"], "up");
  Must("POST", "repositories/other/-/alternates", R"({"pool":"up"})");
  ExpectRefused({{"DELETE", "repositories/up", "", 409, "failed_precondition"},
                 {"POST", "repositories/other/-/alternates", R"({"pool":"up"})", 409, "already_exists"},
                 {"POST", "repositories/up/-/alternates", R"({"pool":"fork"})", 409, "failed_precondition"},
                 {"POST", "repositories/up/-/fork", R"({"path":"other"})", 409, "already_exists"},
                 {"POST", "repositories/up/-/fork", R"({"path":"x","ref_prefixes":"y"})", 400,
                  "invalid_argument"},
                 {"DELETE", "repositories/fork/-/alternates", "", 400, "invalid_argument"},
                 {"DELETE", "repositories/fork/-/alternates?pool=other", "", 404, "not_found"}});

  Must("DELETE", "repositories/other/-/alternates?pool=up");
  Must("DELETE", "repositories/fork/-/alternates?pool=up");
  const json pool = Must("POST", "repositories/fork/-/pool", R"({"path":"pools/fork"})");
  EXPECT_EQ(Must("GET", "repositories/pools/fork")["members"][0]["path"], "fork");
  Must("DELETE", "repositories/up");
  git_.Must("", {"clone", "-q", Url("fork"), git_.Tree("copy")});
  EXPECT_EQ(git_.Must("copy", {"rev-parse", "HEAD"}), commits[1]);
}

TEST_F(RestTest, UpdatesRefsAllOrNoneAgainstTheirOldValues) {
  const std::vector<std::string> commits = PushTwo("demo");
  const std::string refs = "repositories/demo/-/refs";
  const auto value = [&](const std::string& fields) { return absl::StrCat("{", fields, "}"); };
  const std::string old_id = absl::StrCat("\"", commits[0], "\"");
  const std::string new_id = absl::StrCat("\"", commits[1], "\"");

  Must("PUT", refs + "/heads/side", value(absl::StrCat(R"("value":)", old_id, R"(,"expected":"absent")")));
  EXPECT_EQ(Must("GET", refs + "/heads/side")["value"], commits[0]);
  const Answer differs = Ask("PUT", refs + "/heads/side",
                             value(absl::StrCat(R"("value":)", new_id, R"(,"expected":)", new_id)));
  EXPECT_EQ(differs.detail("ref"), "refs/heads/side");
  EXPECT_EQ(differs.detail("found"), commits[0]);
  EXPECT_EQ(differs.body["outcome"], "not committed");
  const std::string missing = absl::StrCat("\"", std::string(40, '7'), "\"");
  ExpectRefused(
      {{"PUT", refs + "/heads/side", value(absl::StrCat(R"("value":)", new_id, R"(,"expected":"absent")")),
        409, "failed_precondition"},
       {"PUT", refs + "/heads/side/in", value(absl::StrCat(R"("value":)", new_id)), 409,
        "failed_precondition"},
       {"PUT", refs + "/heads/x", value(absl::StrCat(R"("value":)", missing)), 409, "failed_precondition"},
       {"PUT", refs + "/heads/x", value(R"("value":"main")"), 400, "invalid_argument"},
       {"PUT", refs + "/heads/x", "{}", 400, "invalid_argument"},
       {"GET", refs + "/heads/x", "", 404, "not_found"},
       {"DELETE", refs + "/heads/x", "", 404, "not_found"},
       {"DELETE", absl::StrCat(refs, "/heads/side?expected=", commits[1]), "", 409, "failed_precondition"},
       {"PUT", "repositories/absent/-/refs/heads/x", value(absl::StrCat(R"("value":)", new_id)), 404,
        "not_found"},
       // One of the two does not hold: neither is done.
       {"POST", refs,
        absl::StrCat(R"({"updates":[{"name":"refs/heads/new","value":)", new_id,
                     R"(},{"name":"refs/heads/side","value":)", new_id, R"(,"expected":)", new_id, "}]}"),
        409, "failed_precondition"},
       {"POST", refs, R"({"updates":[{"name":"refs/heads/a","value":"absent","why":1}]})", 400,
        "invalid_argument"}});

  Must("POST", refs,
       absl::StrCat(R"({"updates":[{"name":"refs/heads/new","value":)", new_id,
                    R"(,"expected":"absent"},{"name":"refs/heads/side","value":"absent","expected":)",
                    old_id, R"(},{"name":"refs/heads/alias","value":"ref: refs/heads/new"}]})"));
  EXPECT_EQ(Refs("demo"), absl::StrCat(commits[1], "\tHEAD\n", commits[1], "\trefs/heads/alias\n",
                                       commits[1], "\trefs/heads/main\n", commits[1],
                                       "\trefs/heads/new"));
  const json page = Must("GET", refs + "?prefix=refs/heads/&limit=1&after=refs/heads/alias");
  EXPECT_EQ(page, (json{{"refs", {{{"name", "refs/heads/main"}, {"value", commits[1]}}}},
                        {"next", "refs/heads/main"}}));
}

TEST_F(RestTest, ReadsAndSetsTheDefaultBranch) {
  PushTwo("demo");
  const std::string head = "repositories/demo/-/head";
  EXPECT_EQ(Must("GET", head), (json{{"name", "HEAD"}, {"value", "ref: refs/heads/main"}}));
  Must("PUT", head, R"({"value":"ref: refs/heads/next","expected":"ref: refs/heads/main"})");
  EXPECT_EQ(Must("GET", head)["value"], "ref: refs/heads/next");
  ExpectRefused({{"PUT", head, R"({"value":"absent"})", 400, "invalid_argument"},
                 {"PUT", head, R"({"value":"ref: HEAD"})", 400, "invalid_argument"},
                 {"PUT", head, R"({"value":"ref: refs/heads/x","expected":"ref: refs/heads/main"})", 409,
                  "failed_precondition"}});
}

TEST_F(RestTest, KeepsFilesOfARepository) {
  Create("demo");
  const std::string files = "repositories/demo/-/files";
  Must("PUT", files + "/hooks/update", R"({"content":"#!/bin/sh\nexit 0\n","mode":"0755"})");
  Must("PUT", files + "/info/raw", R"({"content_hex":"00ff"})");
  EXPECT_EQ(Must("GET", files + "/hooks/update"),
            (json{{"path", "hooks/update"}, {"mode", "0755"}, {"content", "#!/bin/sh\nexit 0\n"}}));
  EXPECT_EQ(Must("GET", files + "/info/raw")["content_hex"], "00ff");
  EXPECT_THAT(Must("GET", files + "?below=hooks")["entries"].dump(), HasSubstr(R"({"name":"update"})"));
  ExpectRefused({{"PUT", files + "/HEAD", R"({"content":"x"})", 400, "invalid_argument"},
                 {"PUT", files + "/objects/x", R"({"content":"x"})", 400, "invalid_argument"},
                 {"PUT", files + "/x.lock", R"({"content":"x"})", 400, "invalid_argument"},
                 {"PUT", files + "/../x", R"({"content":"x"})", 400, "invalid_argument"},
                 {"PUT", files + "/x", R"({"content":"x","content_hex":"00"})", 400, "invalid_argument"},
                 {"PUT", files + "/x", R"({"content_hex":"0g"})", 400, "invalid_argument"},
                 {"PUT", files + "/x", R"({"content":"x","mode":"888"})", 400, "invalid_argument"},
                 {"GET", files + "/absent", "", 404, "not_found"},
                 {"DELETE", files + "/absent", "", 404, "not_found"}});
  Must("DELETE", files + "/hooks/update");
  EXPECT_EQ(Get(files + "/hooks/update").status, 404);
}

TEST_F(RestTest, KeepsKeysOfStorePartitionAndRepositoryApart) {
  Create("demo");
  const std::string partition = Must("GET", "repositories/demo")["partition"];
  const std::vector<std::string> spaces = {"keys", absl::StrCat("partitions/", partition, "/-/keys"),
                                           "repositories/demo/-/keys"};
  for (const std::string& space : spaces) {
    for (const char* key : {"a", "b%00%2f", "c"}) {
      Must("PUT", absl::StrCat(space, "?key=", key), absl::StrCat(R"({"value":")", space, "\"}"));
    }
  }
  for (const std::string& space : spaces) {
    EXPECT_EQ(Must("GET", space + "?key=a"), (json{{"key", "a"}, {"value", space}}));
    const json page = Must("GET", space + "?first=b&limit=1");
    EXPECT_EQ(page["keys"].size(), 1u);
    EXPECT_EQ(page["next"], "c");
    EXPECT_EQ(Must("GET", space + "?end=b")["keys"].size(), 1u);
    ExpectRefused({{"GET", space + "?key=z", "", 404, "not_found"},
                   {"PUT", space, R"({"value":"x"})", 400, "invalid_argument"},
                   {"PUT", space + "?key=x", R"({"text":"x"})", 400, "invalid_argument"},
                   {"GET", space + "?key=a&limit=1", "", 400, "invalid_argument"},
                   {"PUT", absl::StrCat(space, "?key=", std::string(2000, 'k')), R"({"value":"x"})", 400,
                    "invalid_argument"}});
    Must("DELETE", space + "?key=a");
    EXPECT_EQ(Get(space + "?key=a").status, 404);
  }
  ExpectRefused({{"GET", "partitions/0/-/keys", "", 400, "invalid_argument"},
                 {"GET", "repositories/absent/-/keys", "", 404, "not_found"}});
}

// A client that did not hear the answer sends the call again: it is done once, and the first answer
// comes back.
TEST_F(RestTest, DoesACallWithOneIdempotencyKeyOnce) {
  const std::string key = "Idempotency-Key: request-7\r\n";
  const json first = Must("POST", "repositories", R"({"path":"demo"})", key);
  const json again = Must("POST", "repositories", R"({"path":"demo"})", key);
  EXPECT_EQ(again, first);

  const json asked = Must("GET", "requests?id=request-7&issued_at=2020-01-01T00:00:00Z");
  EXPECT_EQ(asked["outcome"], "committed");
  EXPECT_EQ(asked["lsn"], first["lsn"]);
  EXPECT_EQ(asked["transaction_id"], first["transaction_id"]);
  EXPECT_EQ(Ask("POST", "repositories", R"({"path":"x"})",
                absl::StrCat("Idempotency-Key: ", std::string(201, 'k'), "\r\n")).status, 400);
}

TEST_F(RestTest, TellsTheOutcomeOfATransactionAndFencesARequestThatNeverCame) {
  EXPECT_EQ(Must("GET", absl::StrCat("transactions/", std::string(32, 'a')))["outcome"],
            "not committed");
  const json made = Must("POST", "repositories", R"({"path":"demo"})");
  const json told = Must("GET", absl::StrCat("transactions/", std::string(made["transaction_id"])));
  EXPECT_EQ(told["outcome"], "committed");
  EXPECT_EQ(told["lsn"], made["lsn"]);

  EXPECT_EQ(Get("requests?id=late&issued_at=2020-01-01T00:00:00Z").status, 410);
  EXPECT_EQ(Must("GET", "requests?id=late&issued_at=2999-01-01T00:00:00Z")["outcome"], "not committed");
  const Answer late = Ask("POST", "repositories", R"({"path":"x"})", "Idempotency-Key: late\r\n");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(Get("repositories/x").status, 404);
}

TEST_F(RestTest, AnswersProbesAndMetrics) {
  EXPECT_EQ(StatusOfAnswer(ServedStore::Get("/healthz")), 200);
  EXPECT_EQ(StatusOfAnswer(ServedStore::Get("/readyz")), 200);
  Create("demo");
  EXPECT_THAT(ServedStore::Get("/metrics"),
              AllOf(HasSubstr("repotxn_store_commits_total 1\n"),
                    HasSubstr("repotxn_requests_total{kind=\"rest\",class=\"2xx\"} 1\n")));
}

// Goal: each route asks for the right that it needs. Asking for an outcome may fence it, so it writes.
class RestRightsTest : public RestTest {
 protected:
  void SetUp() override {
    options_.token_file = store_.path() + "/tokens";
    std::ofstream(options_.token_file) << "reader-token-0123456789 alice ro\n"
                                          "writer-token-0123456789 bob rw\n";
    Serve();
  }
};

TEST_F(RestRightsTest, ReadersReadAndOnlyWritersWrite) {
  const std::string writer = "Authorization: Bearer writer-token-0123456789\r\n";
  const std::string reader = "Authorization: Bearer reader-token-0123456789\r\n";
  Must("POST", "repositories", R"({"path":"demo"})", writer);
  for (const char* path : {"repositories", "repositories/demo", "repositories/demo/-/refs",
                           "repositories/demo/-/head", "repositories/demo/-/files/config",
                           "repositories/demo/-/keys", "keys", "groups"}) {
    EXPECT_EQ(Ask("GET", path, "", reader).status, 200) << path;
    EXPECT_EQ(Ask("GET", path).status, 401) << path;
  }
  const std::vector<std::pair<std::string, std::string>> writes = {
      {"POST", "repositories"}, {"DELETE", "repositories/demo"}, {"POST", "undelete"},
      {"POST", "repositories/demo/-/move"}, {"POST", "repositories/demo/-/fork"},
      {"POST", "repositories/demo/-/pool"}, {"POST", "repositories/demo/-/alternates"},
      {"DELETE", "repositories/demo/-/alternates?pool=x"}, {"DELETE", "groups/x"},
      {"PUT", "repositories/demo/-/head"}, {"POST", "repositories/demo/-/refs"},
      {"PUT", "repositories/demo/-/refs/heads/x"}, {"DELETE", "repositories/demo/-/refs/heads/x"},
      {"PUT", "repositories/demo/-/files/x"}, {"DELETE", "repositories/demo/-/files/config"},
      {"PUT", "keys?key=a"}, {"DELETE", "keys?key=a"}, {"PUT", "partitions/7/-/keys?key=a"},
      {"PUT", "repositories/demo/-/keys?key=a"}, {"PATCH", "repositories/demo"}, {"POST", "nothing"},
      {"GET", "transactions/00000000000000000000000000000000"}, {"GET", "requests?id=x"}};
  const json before = Ask("GET", "repositories/demo", "", reader).body;
  for (const auto& [method, path] : writes) {
    EXPECT_EQ(Ask(method, path, "", reader).status, 403) << method << " " << path;
    EXPECT_EQ(Ask(method, path).status, 401) << method << " " << path;
  }
  EXPECT_EQ(Ask("GET", "repositories/demo", "", reader).body, before);
}

}  // namespace
}  // namespace repotxn::daemon
