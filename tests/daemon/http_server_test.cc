#include "daemon/http_server.h"

#include <zlib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/daemon/raw_http.h"
#include "tests/support/status_matchers.h"

namespace repotxn::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using repotxn::testing::IsOk;
using repotxn::testing::PostHead;
using repotxn::testing::RawConnection;
using repotxn::testing::RawExchange;
using repotxn::testing::StatusIs;
using repotxn::testing::StatusOfAnswer;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() / 2 + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Goal: bodies and answers of any size stream through bounded memory, and a bad or slow client ends
// only its own exchange. Method: real sockets, bytes as the test writes them. Fails when a body is
// cut, a limit is passed, or a connection never ends (20 s of silence show in the answer).
class HttpServerTest : public ::testing::Test {
 protected:
  void Serve(HttpHandler handler) {
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(options_, std::move(handler));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }

  // Answers with the method, the number of body bytes and how the body ended.
  static void CountBody(const HttpRequest& request, const BodyReader& body, ResponseWriter& out) {
    size_t bytes = 0;
    char buffer[1000];
    while (true) {
      const absl::StatusOr<size_t> size = body(absl::MakeSpan(buffer));
      if (!size.ok()) {
        return out.Reply(400, "text/plain",
                         absl::StrCat("bad ", absl::StatusCodeToString(size.status().code())));
      }
      if (*size == 0) break;
      bytes += *size;
    }
    out.Reply(200, "text/plain", absl::StrCat(request.method, " read ", bytes));
  }

  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, GivesPathQueryAndHeadersDecoded) {
  Serve([](const HttpRequest& request, const BodyReader&, ResponseWriter& out) {
    out.Reply(200, "text/plain",
              absl::StrCat(request.path, "|", request.Query("service"), "|",
                           request.Header("git-protocol"), "|", request.raw_target, "|",
                           request.has_body ? "body" : "none"),
              {{"X-Extra", "yes"}});
  });
  const std::string answer = RawExchange(
      port(), "GET /a%2eb?service=x%20y HTTP/1.1\r\nGit-Protocol: version=2\r\n"
              "Connection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("/a.b|x y|version=2|/a%2eb?service=x%20y|none"));
  EXPECT_THAT(answer, HasSubstr("X-Extra: yes"));
}

TEST_F(HttpServerTest, ReadsBodiesWithLengthChunkedAndGzipped) {
  Serve(CountBody);
  const std::string text(300'000, 'x');
  EXPECT_THAT(RawExchange(port(), PostHead("/", "Content-Length: 300000\r\n") + text),
              HasSubstr("POST read 300000"));
  EXPECT_THAT(RawExchange(port(), PostHead("/", "Transfer-Encoding: chunked\r\n") +
                                      "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"),
              HasSubstr("POST read 8"));
  const std::string packed = Gzip(text);
  EXPECT_THAT(RawExchange(port(), PostHead("/", absl::StrCat("Content-Encoding: gzip\r\n",
                                                             "Content-Length: ", packed.size(),
                                                             "\r\n")) +
                                      packed),
              HasSubstr("POST read 300000"));
  EXPECT_THAT(RawExchange(port(), PostHead("/", "")), HasSubstr("POST read 0"));
}

TEST_F(HttpServerTest, SaysContinueToAClientThatAsks) {
  Serve(CountBody);
  RawConnection connection(port());
  connection.Send(PostHead("/", "Expect: 100-continue\r\nContent-Length: 3\r\n"));
  ASSERT_THAT(connection.Read("\r\n\r\n"), HasSubstr("100 Continue"));
  connection.Send("abc");
  EXPECT_THAT(connection.Read(), HasSubstr("POST read 3"));
}

TEST_F(HttpServerTest, BoundsABodyAlsoAfterDecompression) {
  options_.body_bytes_max = 100'000;
  Serve(CountBody);
  EXPECT_EQ(StatusOfAnswer(RawExchange(port(), PostHead("/", "Content-Length: 100001\r\n"))), 413);

  const std::string bomb = Gzip(std::string(10'000'000, '\0'));
  ASSERT_LT(bomb.size(), 100'000u);
  EXPECT_THAT(RawExchange(port(), PostHead("/", absl::StrCat("Content-Encoding: gzip\r\n",
                                                             "Content-Length: ", bomb.size(),
                                                             "\r\n")) +
                                      bomb),
              HasSubstr("bad RESOURCE_EXHAUSTED"));
}

TEST_F(HttpServerTest, TellsTheHandlerThatABodyWasCutOff) {
  // The client is gone by then, so only the handler knows.
  for (const char* body : {"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"}) {
    repotxn::testing::Notification ended;
    absl::Status status;
    Serve([&](const HttpRequest&, const BodyReader& reader, ResponseWriter&) {
      char buffer[100];
      absl::StatusOr<size_t> size = size_t{0};
      do {
        size = reader(absl::MakeSpan(buffer));
      } while (size.ok() && *size > 0);
      status = size.status();
      ended.Notify();
    });
    RawConnection connection(port());
    connection.Send(absl::StrCat("POST / HTTP/1.1\r\n", body));
    connection.EndSending();
    ASSERT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(30))) << body;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << body;
    server_.reset();
  }
}

TEST_F(HttpServerTest, EndsAnExchangeWhoseBodyStopsComing) {
  options_.idle_timeout = absl::Seconds(1);
  Serve(CountBody);
  RawConnection connection(port());
  connection.Send(PostHead("/", "Content-Length: 10\r\n") + "abc");
  EXPECT_THAT(connection.Read(), HasSubstr("bad INVALID_ARGUMENT"));
}

TEST_F(HttpServerTest, RefusesAmbiguousOrUnknownFramingAndClosesTheConnection) {
  Serve(CountBody);
  const struct {
    const char* head;
    int status;
  } cases[] = {
      {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Content-Length: 3\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: -1\r\n", 400},
      {"Content-Length: 3x\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Content-Encoding: zstd\r\nContent-Length: 3\r\n", 415},
  };
  for (const auto& test : cases) {
    // A second request hidden in the body must not be answered.
    const std::string answer =
        RawExchange(port(), absl::StrCat("POST / HTTP/1.1\r\n", test.head, "\r\n",
                                         "GET /hidden HTTP/1.1\r\n\r\n"));
    EXPECT_EQ(StatusOfAnswer(answer), test.status) << test.head << answer;
    EXPECT_THAT(answer.substr(9), Not(HasSubstr("HTTP/1.1 "))) << test.head;
  }
  EXPECT_EQ(StatusOfAnswer(RawExchange(
                port(), "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")), 400);
  EXPECT_EQ(StatusOfAnswer(RawExchange(port(), "GET /a%0ab HTTP/1.1\r\n\r\n")), 400);
  EXPECT_EQ(StatusOfAnswer(RawExchange(port(), "TRACE / HTTP/1.1\r\n\r\n")), 405);
}

TEST_F(HttpServerTest, ServesSeveralRequestsOnOneConnection) {
  Serve(CountBody);
  RawConnection connection(port());
  connection.Send("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab");
  EXPECT_THAT(connection.Read("read 2"), HasSubstr("POST read 2"));
  connection.Send("POST / HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
  EXPECT_THAT(connection.Read(), HasSubstr("POST read 3"));
}

TEST_F(HttpServerTest, ClosesAConnectionWhoseBodyWasNotReadToItsEnd) {
  Serve([](const HttpRequest&, const BodyReader&, ResponseWriter& out) {
    out.Reply(403, "text/plain", "no");
  });
  // More than is read and dropped for a refused body.
  const std::string head = "POST / HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n";
  RawConnection connection(port());
  connection.Send(head + std::string(2'000'000, 'x'));
  const std::string answer = connection.Read();
  EXPECT_EQ(StatusOfAnswer(answer), 403) << answer;
}

TEST_F(HttpServerTest, DropsTheRestOfABodyWhenTheHandlerHasAnsweredWell) {
  Serve([](const HttpRequest&, const BodyReader&, ResponseWriter& out) {
    out.Start(200, "text/plain", {});
    EXPECT_THAT(out.Write("report"), IsOk());
  });
  const std::string answer =
      RawExchange(port(), PostHead("/", "Content-Length: 4000000\r\n") +
                              std::string(4'000'000, 'x'));
  EXPECT_EQ(StatusOfAnswer(answer), 200);
  EXPECT_THAT(answer, HasSubstr("report"));
}

TEST_F(HttpServerTest, StreamsAnAnswerLargerThanItsPipes) {
  Serve([](const HttpRequest&, const BodyReader&, ResponseWriter& out) {
    out.Start(200, "application/octet-stream", {});
    const std::string piece(100'000, 'y');
    for (int i = 0; i < 100; ++i) EXPECT_THAT(out.Write(piece), IsOk());
  });
  const std::string answer = RawExchange(port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_GT(answer.size(), 10'000'000u);
  EXPECT_THAT(answer.substr(answer.size() - 5), "0\r\n\r\n");
}

TEST_F(HttpServerTest, TellsTheHandlerThatTheClientIsGone) {
  repotxn::testing::Notification ended;
  absl::Status status;
  Serve([&](const HttpRequest&, const BodyReader&, ResponseWriter& out) {
    out.Start(200, "application/octet-stream", {});
    const std::string piece(100'000, 'y');
    do {
      status = out.Write(piece);
    } while (status.ok());
    ended.Notify();
  });
  {
    RawConnection connection(port());
    connection.Send("GET / HTTP/1.1\r\n\r\n");
    connection.Read("\r\n\r\n");
  }
  ASSERT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(HttpServerTest, EndsARequestAtItsDeadline) {
  options_.request_timeout = absl::Milliseconds(300);
  Serve(CountBody);
  RawConnection connection(port());
  connection.Send(PostHead("/", "Content-Length: 10\r\n") + "abc");
  // The time without a byte that is allowed is much longer.
  EXPECT_THAT(connection.Read("\r\n\r\n"), Not(HasSubstr("<silence>")));
}

TEST_F(HttpServerTest, ServesManyConnectionsAtOnce) {
  constexpr int kClients = 64;
  std::atomic<int> inside{0};
  repotxn::testing::Notification all_inside;
  Serve([&](const HttpRequest&, const BodyReader&, ResponseWriter& out) {
    if (inside.fetch_add(1) + 1 == kClients) all_inside.Notify();
    EXPECT_TRUE(all_inside.WaitForNotificationWithTimeout(absl::Seconds(60)));
    out.Reply(200, "text/plain", "ok");
  });
  std::vector<std::thread> clients;
  std::atomic<int> served{0};
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      const std::string answer = RawExchange(port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
      if (StatusOfAnswer(answer) == 200) served.fetch_add(1);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served.load(), kClients);
}

TEST_F(HttpServerTest, FinishesRunningRequestsWhenItStops) {
  repotxn::testing::Notification entered;
  repotxn::testing::Notification leave;
  Serve([&](const HttpRequest& request, const BodyReader&, ResponseWriter& out) {
    if (request.method == "POST") return out.Reply(200, "text/plain", "not yet");
    entered.Notify();
    leave.WaitForNotificationWithTimeout(absl::Seconds(60));
    out.Start(200, "text/plain", {});
    EXPECT_THAT(out.Write("done"), IsOk());
  });
  RawConnection connection(port());
  connection.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(entered.WaitForNotificationWithTimeout(absl::Seconds(30)));

  bool was_graceful = false;
  std::thread stopper([&] { was_graceful = server_->Stop(absl::Seconds(30)); });
  // New requests are refused from the moment it stops.
  const absl::Time until = absl::Now() + absl::Seconds(30);
  int status = 200;
  while (status == 200 && absl::Now() < until) {
    status = StatusOfAnswer(RawExchange(port(), PostHead("/", "Content-Length: 0\r\n")));
  }
  EXPECT_EQ(status, 503);
  leave.Notify();
  EXPECT_THAT(connection.Read(), HasSubstr("done"));
  stopper.join();
  EXPECT_TRUE(was_graceful);
  EXPECT_FALSE(RawConnection(port()).is_open());
}

TEST_F(HttpServerTest, BreaksWhatStillRunsAfterTheGraceTime) {
  repotxn::testing::Notification entered;
  absl::Status status;
  Serve([&](const HttpRequest&, const BodyReader& body, ResponseWriter& out) {
    entered.Notify();
    char c = 0;
    status = body(absl::MakeSpan(&c, 1)).status();
    out.Reply(503, "text/plain", "stopped");
  });
  RawConnection connection(port());
  connection.Send(PostHead("/", "Content-Length: 5\r\n"));
  ASSERT_TRUE(entered.WaitForNotificationWithTimeout(absl::Seconds(30)));
  connection.EndSending();
  server_->Stop(absl::ZeroDuration());
  server_.reset();
  EXPECT_FALSE(status.ok());
}

TEST_F(HttpServerTest, AnswersWhenTheHandlerDoesNot) {
  Serve([](const HttpRequest&, const BodyReader&, ResponseWriter&) {});
  EXPECT_EQ(StatusOfAnswer(RawExchange(port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")),
            500);
}

TEST_F(HttpServerTest, SaysThatAnAddressIsInUse) {
  Serve(CountBody);
  HttpServerOptions same = options_;
  same.host = "no-such-host.invalid";
  EXPECT_THAT(HttpServer::Start(same, CountBody), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace repotxn::daemon
