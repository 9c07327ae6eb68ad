// Goal: what is committed is told to file and webhook in order, nothing is left out whatever fails, and stopping never waits
// for a receiver that does not answer.
#include "daemon/event_delivery.h"

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "daemon/event_file.h"
#include "daemon/http_server.h"
#include "daemon/webhook.h"
#include "storage/check.h"
#include "tests/daemon/served_store.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/notification.h"
#include "tests/txn/world.h"

namespace repotxn::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using repotxn::testing::Branch;
using repotxn::testing::FaultFileSystem;
using repotxn::testing::FileOperation;
using repotxn::testing::IsOk;
using repotxn::testing::MemoryFileSystem;
using repotxn::testing::Notification;
using repotxn::testing::StatusIs;
using repotxn::testing::World;

constexpr EventDeliveryOptions kQuick = {.backoff_first = absl::Milliseconds(1),
                                         .backoff_max = absl::Milliseconds(1)};

TEST(EventBackoffTest, DoublesUpToItsBound) {
  const EventDeliveryOptions options;
  std::vector<int64_t> seconds;
  for (int n = 1; n <= 9; ++n) seconds.push_back(absl::ToInt64Seconds(BackoffAfter(n, options)));
  EXPECT_THAT(seconds, ElementsAre(1, 2, 4, 8, 16, 32, 60, 60, 60));
  EXPECT_EQ(BackoffAfter(1'000'000, options), absl::Seconds(60));
}

TEST(WebhookUrlTest, TakesPlainHttpAddressesOnly) {
  const auto text = [](const std::string& url) {
    const auto parsed = ParseWebhookUrl(url);
    return parsed.ok() ? absl::StrCat(parsed->host, " ", parsed->port, " ", parsed->target) : "refused";
  };
  EXPECT_EQ(text("http://hooks.example/a/b?c=d"), "hooks.example 80 /a/b?c=d");
  EXPECT_EQ(text("http://127.0.0.1:8080"), "127.0.0.1 8080 /");
  EXPECT_EQ(text("http://[::1]:81/x"), "::1 81 /x");
  EXPECT_EQ(text("http://[::1]/x"), "::1 80 /x");
  for (const std::string url : {"", "http://", "https://a/", "ftp://a/", "http://a:0/", "http://a:x/", "http://u@a/",
                                "http://a/ b", "http://a/#f", "http://a/\r\nX: y"}) {
    EXPECT_EQ(text(url), "refused") << url;
  }
}

txn::ConsumedEntry Entry(uint64_t lsn) {
  txn::ConsumedEntry entry;
  entry.lsn = wal::Lsn(lsn);
  entry.created_at = absl::FromUnixNanos(1'700'000'000'000'000'007);
  entry.actor = "alice";
  entry.origin = "192.0.2.7";
  txn::ConsumedRefChange change;
  change.path = "g/r";
  change.ref = "refs/heads/\xff";
  change.new_value = World::At(1);
  entry.ref_changes.push_back(change);
  return entry;
}

TEST(EventJsonTest, SaysEverythingInOneLine) {
  const std::string zeros(32, '0');
  EXPECT_EQ(EventJson(StoreId(), Entry(7)),
            absl::StrCat("{\"incarnation\":\"", zeros, "\",\"lsn\":7,\"transaction_id\":\"", zeros,
                         "\",\"time\":\"2023-11-14T22:13:20.000000007Z\",\"pusher\":\"alice\","
                         "\"origin\":\"192.0.2.7\",\"push_options\":[],\"changes\":[{\"repository_id\":\"", zeros,
                         "\",\"repository\":\"g/r\",\"ref\":\"refs/heads/\xef\xbf\xbd\","
                         "\"ref_hex\":\"726566732f68656164732fff\",\"old\":null,\"new\":\"",
                         World::At(1).ToString(), "\"}]}"));
}

// The file.
class EventFileTest : public ::testing::Test {
 protected:
  static storage::StorePath Name() { return storage::StorePath::Literal("events"); }
  std::unique_ptr<EventFile> Open() {
    auto file = EventFile::Open(&fs_, Name(), StoreId());
    EXPECT_THAT(file, IsOk());
    return *std::move(file);
  }
  // LSNs of its lines; -1 for one that is no document.
  std::vector<int> Lsns() {
    std::vector<int> lsns;
    std::vector<std::string> lines = absl::StrSplit(*storage::ReadFile(memory_, Name()), '\n');
    if (lines.back().empty()) lines.pop_back();
    for (const std::string& line : lines) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      lsns.push_back(json.is_discarded() ? -1 : json["lsn"].get<int>());
    }
    return lsns;
  }

  MemoryFileSystem memory_;
  FaultFileSystem fs_{&memory_};
};

TEST_F(EventFileTest, TornLastLineIsCutWhenItIsOpened) {
  ASSERT_THAT(Open()->Deliver(Entry(1)), IsOk());
  const std::string whole = *storage::ReadFile(memory_, Name());
  const std::string next = EventJson(StoreId(), Entry(2)) + "\n";
  for (size_t bytes = 0; bytes < next.size(); ++bytes) {
    ASSERT_THAT(storage::WriteFile(memory_, Name(), whole + next.substr(0, bytes)), IsOk());
    const auto file = Open();
    EXPECT_EQ(*storage::ReadFile(memory_, Name()), whole) << bytes;
    ASSERT_THAT(file->Deliver(Entry(2)), IsOk());
    EXPECT_THAT(Lsns(), ElementsAre(1, 2)) << bytes;
  }
}

TEST_F(EventFileTest, LineIsDurableWhenItIsDelivered) {
  const auto file = Open();
  ASSERT_THAT(file->Deliver(Entry(1)), IsOk());

  const auto crashed = memory_.CrashClone({repotxn::testing::CrashSurvival::kNothing, 0, 0});

  EXPECT_EQ(*storage::ReadFile(*crashed, Name()), EventJson(StoreId(), Entry(1)) + "\n");
}

TEST_F(EventFileTest, FailedSyncIsNeverTakenForADelivery) {
  const auto file = Open();
  fs_.AddRule({.operation = FileOperation::kSync, .status = absl::UnavailableError("sync failed")});

  EXPECT_FALSE(file->Deliver(Entry(1)).ok());
  fs_.ClearRules();

  EXPECT_FALSE(file->Deliver(Entry(1)).ok()) << "a second sync is not believed";
  EXPECT_THAT(Open()->Deliver(Entry(1)), IsOk());
}

// A receiver that refuses the first so many, and keeps what it took.
class Receiver : public EventSink {
 public:
  Receiver(int refusals, size_t wanted) : refusals_(refusals), wanted_(wanted) {}
  absl::Status Deliver(const txn::ConsumedEntry& entry) override {
    const storage::MutexLock lock(&mutex_);
    if (refusals_ != 0) {
      --refusals_;
      has_refused_.Notify();
      return absl::UnavailableError("not now");
    }
    lsns_.push_back(entry.lsn.value());
    if (lsns_.size() == wanted_) is_complete_.Notify();
    return absl::OkStatus();
  }
  std::vector<uint64_t> lsns() {
    const storage::MutexLock lock(&mutex_);
    return lsns_;
  }
  Notification is_complete_, has_refused_;

 private:
  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  int refusals_;  // negative: for ever
  const size_t wanted_;
  std::vector<uint64_t> lsns_;
};

// Lends a receiver to a delivery.
class Lent final : public EventSink {
 public:
  explicit Lent(Receiver* receiver) : receiver_(receiver) {}
  absl::Status Deliver(const txn::ConsumedEntry& entry) override { return receiver_->Deliver(entry); }

 private:
  Receiver* const receiver_;
};

class EventDeliveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(world_.Open(), IsOk());
    id_ = world_.Create("r");
  }
  std::unique_ptr<EventDelivery> Start(std::unique_ptr<EventSink> sink,
                                       const EventDeliveryOptions& options = kQuick) {
    auto delivery = EventDelivery::Start(&world_.store(), storage::Clock::System(), "c", std::move(sink), options);
    EXPECT_THAT(delivery, IsOk());
    return *std::move(delivery);
  }
  // Commits n changes; their LSNs.
  std::vector<uint64_t> Commit(int n) {
    std::vector<uint64_t> lsns;
    for (int i = 0; i < n; ++i) {
      lsns.push_back(world_.Set(id_, Branch("main"), World::At(++value_ % 10)).lsn.value());
    }
    return lsns;
  }
  // A receiver never answers; what was committed meanwhile; what the next one gets after a restart.
  std::vector<uint64_t> RefuseThenRestart(std::vector<uint64_t>* committed) {
    Receiver deaf(-1, 0), good(0, 4);
    auto delivery = Start(std::make_unique<Lent>(&deaf), {.backoff_first = absl::Hours(1), .backoff_max = absl::Hours(1)});
    *committed = Commit(3);
    deaf.has_refused_.WaitForNotification();
    delivery->Stop();
    delivery.reset();
    EXPECT_THAT(world_.Reopen(), IsOk());
    delivery = Start(std::make_unique<Lent>(&good));
    committed->push_back(Commit(1)[0]);
    // The last one comes in any case; what is missing is missing before it.
    while (good.lsns().empty() || good.lsns().back() != committed->back()) {
      if (good.is_complete_.WaitForNotificationWithTimeout(absl::Milliseconds(5))) break;
    }
    delivery->Stop();
    return good.lsns();
  }

  World world_;
  RepositoryId id_;
  int value_ = 0;
};

TEST_F(EventDeliveryTest, TellsEveryChangeInOrderThoughTheFirstAttemptsFail) {
  Receiver receiver(5, 4);
  const auto delivery = Start(std::make_unique<Lent>(&receiver));

  const std::vector<uint64_t> committed = Commit(4);

  receiver.is_complete_.WaitForNotification();
  EXPECT_EQ(receiver.lsns(), committed);
}

// The back-off of an hour is broken off, and nothing was acknowledged for it.
TEST_F(EventDeliveryTest, StopsAtOnceAndGoesOnAfterARestartWithWhatWasNotTaken) {
  std::vector<uint64_t> committed;
  const std::vector<uint64_t> told = RefuseThenRestart(&committed);
  EXPECT_EQ(told, committed);
}

TEST_F(EventDeliveryTest, NoticesAnAcknowledgementBeforeTheDelivery) {
  const PlantedBug bug("daemon.acknowledge_before_delivery");
  std::vector<uint64_t> committed;
  const std::vector<uint64_t> told = RefuseThenRestart(&committed);
  EXPECT_NE(told, committed);
}

// A receiver that has hung up: the first write to it raises SIGPIPE in the thread that delivers.
class HungUp final : public EventSink {
 public:
  explicit HungUp(Receiver* receiver) : receiver_(receiver) {}
  absl::Status Deliver(const txn::ConsumedEntry& entry) override {
    if (std::exchange(is_first_, false)) {
      std::raise(SIGPIPE);
      return absl::UnavailableError("broken pipe");
    }
    return receiver_->Deliver(entry);
  }

 private:
  Receiver* const receiver_;
  bool is_first_ = true;
};

TEST_F(EventDeliveryTest, AReceiverThatHangsUpEndsACallAndNotTheProcess) {
  Receiver receiver(0, 2);
  const auto delivery = Start(std::make_unique<HungUp>(&receiver));
  const std::vector<uint64_t> committed = Commit(2);
  receiver.is_complete_.WaitForNotification();
  EXPECT_EQ(receiver.lsns(), committed);
}

// A webhook server on this machine, which answers 500 to the first so many.
class HookServer {
 public:
  HookServer(int port, int refusals, size_t wanted) : refusals_(refusals), wanted_(wanted) {
    HttpServerOptions options;
    options.port = port;
    auto server = HttpServer::Start(options, [this](const HttpRequest& request, const BodyReader& body,
                                                    ResponseWriter& out) { Handle(request, body, out); });
    EXPECT_THAT(server, IsOk());
    if (server.ok()) server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  std::vector<std::string> lsns() {
    const storage::MutexLock lock(&mutex_);
    return lsns_;
  }
  Notification is_complete_;

 private:
  void Handle(const HttpRequest& request, const BodyReader& body, ResponseWriter& out) {
    std::string text;
    char buffer[4096];
    while (true) {
      const auto read = body(absl::MakeSpan(buffer));
      if (!read.ok() || *read == 0) break;
      text.append(buffer, *read);
    }
    const bool is_taken = Take(request, text);
    out.Reply(is_taken ? 204 : 500, "text/plain", "");
    if (is_taken && lsns().size() == wanted_) is_complete_.Notify();
  }
  bool Take(const HttpRequest& request, const std::string& text) {
    const storage::MutexLock lock(&mutex_);
    if (refusals_-- > 0) return false;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const absl::string_view header = request.Header("repotxn-lsn");
    const std::string lsn(header.data(), header.size());
    const bool is_right = !json.is_discarded() && absl::StrCat(json["lsn"].get<int>()) == lsn &&
                          json["incarnation"].get<std::string>() == request.Header("repotxn-incarnation") &&
                          json["transaction_id"].get<std::string>() == request.Header("repotxn-transaction");
    lsns_.push_back(is_right ? lsn : "wrong: " + text);
    return true;
  }

  storage::Mutex mutex_{storage::MutexRank::kLeaf};
  int refusals_;
  const size_t wanted_;
  std::vector<std::string> lsns_;
  std::unique_ptr<HttpServer> server_;
};

std::vector<std::string> Texts(const std::vector<uint64_t>& lsns) {
  std::vector<std::string> texts;
  for (const uint64_t lsn : lsns) texts.push_back(absl::StrCat(lsn));
  return texts;
}

class WebhookTest : public EventDeliveryTest {
 protected:
  std::unique_ptr<EventDelivery> StartFor(int port) {
    const auto url = ParseWebhookUrl(absl::StrCat("http://127.0.0.1:", port, "/hook"));
    EXPECT_THAT(url, IsOk());
    return Start(MakeWebhook(*url, WebhookOptions(), world_.store().incarnation()));
  }
};

TEST_F(WebhookTest, RepeatsUntilTheServerTakesIt) {
  HookServer server(0, 3, 4);
  const auto delivery = StartFor(server.port());

  const std::vector<uint64_t> committed = Commit(4);

  server.is_complete_.WaitForNotification();
  EXPECT_EQ(server.lsns(), Texts(committed));
}

TEST_F(WebhookTest, ServerThatIsDownAtFirstGetsEverythingInOrder) {
  const int port = HookServer(0, 0, 0).port();
  const auto delivery = StartFor(port);
  const std::vector<uint64_t> committed = Commit(5);

  HookServer server(port, 0, 5);

  server.is_complete_.WaitForNotification();
  EXPECT_EQ(server.lsns(), Texts(committed));
}

// The whole program: a push is told to both, and the lag is told to the operator.
class ServedEventsTest : public repotxn::testing::ServedStore {};

TEST_F(ServedEventsTest, TellsAPushToFileAndWebhook) {
  HookServer server(0, 1, 1);
  options_.webhook = absl::StrCat("http://127.0.0.1:", server.port(), "/");
  options_.events_file = store_.path() + "/events";
  Serve();
  git_.Must("", {"init", "-q", "-b", "main", "work"});
  git_.Must("work", {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x"});
  git_.Must("work", {"push", "-q", Url("demo"), "main"});
  server.is_complete_.WaitForNotification();
  const std::string caught_up = "repotxn_consumer_lag_entries{consumer=\"events-file\"} 0\n";
  while (!absl::StrContains(Get("/metrics"), caught_up)) {
  }
  EXPECT_THAT(Get("/metrics"), HasSubstr("repotxn_consumer_dropped{consumer=\"webhook\"} 0\n"));

  std::ifstream in(options_.events_file);
  const std::string line((std::istreambuf_iterator<char>(in)), {});
  const auto json = nlohmann::json::parse(line, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << line;
  EXPECT_EQ(server.lsns(), std::vector<std::string>{absl::StrCat(json["lsn"].get<int>())});
  EXPECT_EQ(json["changes"][0]["repository"], "demo");
}

}  // namespace
}  // namespace repotxn::daemon
