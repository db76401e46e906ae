// The server of `tutti watch` as browsers, and others, meet it: over a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tutti/error.h"
#include "watch/http_client.h"
#include "watch/sample_run.h"
#include "watch/server.h"

namespace tutti {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kToken = "a-token-for-tests";

class WatchServerOverASocket : public testing::Test {
 protected:
  WatchServerOverASocket()
      : runs_("tutti-watch-server-test"),
        watch_({{}, runs_.folder(), std::chrono::milliseconds(0), std::chrono::milliseconds(0)}) {}

  void SetUp() override {
    if (TUTTI_HAS_SERVER == 0) GTEST_SKIP() << "built without cpp-httplib";
    server_ = std::make_unique<WatchServer>(watch_, WatchServerOptions{"127.0.0.1", 0, kToken});
  }
  int port() const { return server_->port(); }
  std::string cookie() const {
    return "Host: localhost\r\nCookie: other=1; tutti-watch-" + std::to_string(port()) + "=" + kToken + "\r\n";
  }

  SampleRuns runs_;
  Watch watch_;
  std::unique_ptr<WatchServer> server_;
};

TEST_F(WatchServerOverASocket, ShowsNothingWithoutTheToken) {
  for (const char* path : {"/", "/watch.js", "/chart.js", "/api/state", "/api/timeline?run=first", "/nothing",
                           "/?token=a-token-for-test", "/?token=", "/api/state?token=A-token-for-tests"})
    EXPECT_EQ(get(port(), path).status, 401) << path;
  const std::string wrong = "Host: localhost\r\nCookie: tutti-watch-1=" + kToken + "\r\n";
  EXPECT_EQ(get(port(), "/", wrong).status, 401) << "the cookie of another port's server";
  EXPECT_EQ(get(port(), "/", "Host: localhost\r\nAuthorization: Bearer no\r\n").status, 401);
}

TEST_F(WatchServerOverASocket, TakesTheTokenOnceAndThenItsCookie) {
  const HttpAnswer first = get(port(), "/?token=" + kToken);
  EXPECT_EQ(first.status, 303) << "so that the token leaves the address bar";
  EXPECT_THAT(first.head, HasSubstr("Location: ./"));
  EXPECT_THAT(first.head, HasSubstr("=" + kToken + "; HttpOnly; SameSite=Lax"));
  const HttpAnswer page = get(port(), "/", cookie());
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<title>tutti watch</title>"));
  EXPECT_THAT(page.head, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"));
  EXPECT_THAT(page.head, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page.head, Not(HasSubstr("Access-Control-Allow")));
  for (const char* path : {"/watch.js", "/watch.css", "/chart.js"}) EXPECT_EQ(get(port(), path, cookie()).status, 200);
  // Scripts of a person's own.
  EXPECT_EQ(get(port(), "/api/state?token=" + kToken).status, 200);
  EXPECT_EQ(get(port(), "/api/state", "Host: localhost\r\nAuthorization: Bearer " + kToken + "\r\n").status, 200);
}

TEST_F(WatchServerOverASocket, RefusesNamesThatSomebodyElseMayHaveGivenToThisMachine) {
  for (const char* host : {"Host: evil.example\r\n", "Host: 192.168.1.5\r\n", ""})
    EXPECT_EQ(get(port(), "/?token=" + kToken, host).status, 403) << host;
  EXPECT_EQ(get(port(), "/?token=" + kToken, "Host: localhost:9999\r\n").status, 303) << "as over a tunnel of ssh";
}

TEST_F(WatchServerOverASocket, TellsWhatThePageAsksFor) {
  runs_.begin("a run");
  runs_.progress("a run", 10, 2);
  const HttpAnswer answer = get(port(), "/api/state?run=a%20run&have=", cookie());
  ASSERT_EQ(answer.status, 200);
  const json state = json::parse(answer.body);
  EXPECT_EQ(state.at("known").at(0).at("key"), "a run");
  EXPECT_EQ(state.at("runs").at(0).at("progress").at("columns").at("loss"), json({2}));
  const std::string have = state.at("runs").at(0).at("have");
  const json again = json::parse(get(port(), "/api/state?run=a+run&have=" + have, cookie()).body);
  EXPECT_EQ(again.at("runs").at(0).at("progress").at("step"), json::array());
  EXPECT_EQ(get(port(), "/api/timeline?run=a+run", cookie()).status, 404);
  EXPECT_EQ(get(port(), "/api/timeline?run=../../etc/passwd", cookie()).status, 404);
}

TEST_F(WatchServerOverASocket, HasNothingElseAndTakesNothing) {
  for (const char* path : {"/nothing", "/../../etc/passwd", "/watch.js/", "/api"})
    EXPECT_EQ(get(port(), path, cookie()).status, 404) << path;
  for (const char* method : {"POST", "PUT", "DELETE"})
    EXPECT_GE(
        talk(port(), method + std::string(" /api/state HTTP/1.1\r\n") + cookie() + "Content-Length: 0\r\n\r\n").status,
        400)
        << method;
  EXPECT_EQ(get(port(), "/", cookie()).status, 200) << "and goes on";
}

TEST_F(WatchServerOverASocket, AnswersWhileManyConnectionsStaySilent) {
  std::vector<Fd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect_to(port()));
  EXPECT_EQ(get(port(), "/", cookie()).status, 200);
}

TEST_F(WatchServerOverASocket, DoesNotShareItsPort) {
  try {
    const WatchServer second(watch_, {"127.0.0.1", port(), kToken});
    FAIL() << "two servers on one port";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot listen on 127.0.0.1 port " + std::to_string(port())));
  }
}

}  // namespace
}  // namespace tutti
